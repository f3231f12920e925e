//! The pictures of `map`: who wins the whole, by how much, and of which parts it is made.

use super::bars::{Bar, Bars};
use super::heat::{self, Call, Heat};
use super::markup::{Element, element};
use super::picture::Pattern;
use super::{
    described, figure, grouped, label, shown, sorted_values, values, with_interval, without,
};
use crate::commands::map;
use crate::commands::map::words::{Verdict, verdicts};
use crate::record;
use crate::results::cells::measured;
use crate::results::{Case, Kind, Results, name_of};
use cachewise_measure::map::{Duel, Side, duel};

pub(super) const METHOD: &[&str] = &[
    "A step is: the bystander walks its working set, the operation, other traffic, the use of the \
     result. Its parts are timed with time stamps between them, the whole in separate steps without \
     them; what the parts leave unexplained is shown as unattributed. What the bystander lost is its \
     time less that of the same walks in the same loop without the operation.",
    "The loop's footprint exceeds the cache that it is about, so write-backs are paid inside. Memory \
     is mapped anew for every batch, written and read back before anything is timed; contenders take \
     turns in freshly shuffled order.",
    "The figure is the median of the whole; its interval covers 95 % of a bootstrap over batches and \
     the samples within each. In each cell the best non-temporal variant and the best of all others, \
     libc among them, are picked on one half of the samples and compared on the other. A difference \
     is called one if the interval is clear of 1 and the ratio is off by at least 2 %.",
];

/// The same seed, the same interval.
const SEED: u64 = 1;

/// The columns of a heat map, the first that vary: the use, or else whatever else there is.
const COLUMNS: [&[&str]; 6] = [
    &["use_kind", "use_share"],
    &["victim_bytes"],
    &["delay_bytes"],
    &["retouch"],
    &["source"],
    &["threads"],
];
/// A heat map of its own for each of these, unless its rows would be one.
const PAGES: [&str; 5] = ["operation", "size_bytes", "source", "threads", "page"];

pub(super) fn pictures(results: &Results) -> Vec<(&'static str, &'static str, Vec<Element>)> {
    let cells = cells(results);
    let axes = Axes::of(results);
    let mut maps = vec![element("p").text(
        "How many times faster the whole step is with the best non-temporal variant than with the \
         best of all others: ▲ non-temporal wins (striped edge), ▼ temporal wins (full edge), = no \
         difference, ? too little is known. Point at a cell for the variants and the interval.",
    )];
    let mut bars = vec![
        element("p").text(
            "The parts of a step, as far as the operation has to do with them: a bystander's own \
             walks are left out, and of the traffic between operation and use what it takes with the \
             quickest contender. Beside each bar the median of the whole. What is below zero is not \
             drawn; the numbers have it.",
        ),
        keys(),
    ];
    let firsts: Vec<&Case> = cells.iter().filter_map(|cell| cell.first().copied()).collect();
    for page in grouped(&firsts, &axes.pages) {
        let Some(first) = page.first() else { continue };
        let described = described(first, &axes.pages);
        let here: Vec<&Vec<&Case>> = cells
            .iter()
            .filter(|cell| cell.first().is_some_and(|c| agree(c, first, &axes.pages)))
            .collect();
        maps.push(figure(&described, axes.heat(&described, &here).draw()));
        bars.push(element("h3").text(&described));
        let pictures = here.iter().filter_map(|cell| axes.parts(&described, cell));
        bars.push(element("div").class("pictures").children(pictures));
    }
    vec![
        ("break-even", "Break-even", break_even(results)),
        ("whole", "Who wins the whole", maps),
        ("parts", "Of which parts it is made", bars),
    ]
}

/// The rows of a cell: its contenders.
fn cells(results: &Results) -> Vec<Vec<&Case>> {
    let cases: Vec<&Case> = results.cases.iter().filter(|case| case.is_ok()).collect();
    grouped(&cases, &without(&Kind::Map.identity(), &["variant"]))
}

fn agree(one: &Case, other: &Case, keys: &[&str]) -> bool {
    keys.iter().all(|key| one.get(key) == other.get(key))
}

/// What varies, and where it goes.
struct Axes {
    pages: Vec<&'static str>,
    rows: Vec<&'static str>,
    columns: Vec<&'static str>,
}

impl Axes {
    fn of(results: &Results) -> Self {
        let varying = without(&Results::varying(Kind::Map, &[results]), &["variant"]);
        let varies = |key: &&str| varying.contains(key);
        let present =
            |keys: &[&'static str]| keys.iter().copied().filter(varies).collect::<Vec<_>>();
        let columns = COLUMNS.iter().map(|keys| present(keys)).find(|keys| !keys.is_empty());
        let columns = columns.unwrap_or_default();
        let mut pages = without(&present(&PAGES), &columns);
        let mut rows = without(&without(&varying, &columns), &pages);
        if rows.is_empty() && pages.contains(&"size_bytes") {
            pages.retain(|key| *key != "size_bytes");
            rows.push("size_bytes");
        }
        Self { pages, rows, columns }
    }

    fn heat(&self, title: &str, cells: &[&Vec<&Case>]) -> Heat {
        let firsts: Vec<&Case> = cells.iter().filter_map(|cell| cell.first().copied()).collect();
        let columns = sorted_values(&firsts, &self.columns);
        let mut rows = sorted_values(&firsts, &self.rows);
        let all = rows.clone();
        rows.retain(|row| !all.iter().any(|other| other != row && fits(row, other)));
        let cell = |row: &Vec<_>, column: &Vec<_>| {
            let found = cells.iter().find(|cell| {
                let is_it = |c: &&Case| {
                    fits(&values(c, &self.rows), row) && values(c, &self.columns) == *column
                };
                cell.first().is_some_and(is_it)
            })?;
            Some(contest(found))
        };
        let row = |row: Vec<_>| {
            let cells = columns.iter().map(|column| cell(&row, column)).collect();
            (shown(&self.rows, &row), cells)
        };
        Heat {
            title: format!("Non-temporal against temporal: {title}"),
            description: "Each cell holds how many times faster the whole step is with the best \
                          non-temporal variant than with the best of all others, and a sign: up \
                          where non-temporal wins, down where temporal wins, equal for no difference."
                .into(),
            row_names: self.rows.iter().map(|key| name_of(key)).collect(),
            column_name: self.columns.iter().map(|key| name_of(key)).collect::<Vec<_>>().join(", "),
            columns: columns.iter().map(|column| or_all(label(&self.columns, column))).collect(),
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn parts(&self, title: &str, cell: &[&Case]) -> Option<Element> {
        let keys: Vec<&str> = self.rows.iter().chain(&self.columns).copied().collect();
        let caption = or_all(cell.first()?.described(&keys));
        let mut cases = cell.to_vec();
        let whole = |case: &Case| case.number(Kind::Map.time().median).unwrap_or(f64::INFINITY);
        cases.sort_by(|a, b| whole(a).total_cmp(&whole(b)));
        // All wait for the traffic; what it takes beyond the least is their doing.
        let delays = cases.iter().filter_map(|case| case.number(DELAY));
        let least = delays.fold(f64::INFINITY, f64::min);
        let part = |case: &Case, key| match case.number(key) {
            Some(ns) if key == DELAY => ns - least,
            ns => ns.unwrap_or(0.0),
        };
        let bar = |case: &&Case| Bar {
            label: case.text("variant").to_owned(),
            parts: PARTS.map(|(pattern, key, _)| (pattern, part(case, key))).into(),
            interval: None,
            figure: case.value(Kind::Map.time().median).for_people(),
            hint: parts_in_words(case),
        };
        let bars = Bars {
            title: format!("Parts of a step: {title}, {caption}"),
            description: "One bar per contender, the fastest whole first: the operation, the \
                          traffic, the use, the bystander's loss, the rest. The whole is beside it."
                .into(),
            bars: cases.iter().map(bar).collect(),
            reference: None,
        };
        Some(figure(&caption, bars.draw()))
    }
}

/// Whether what these values say is also said by the others. A result that is not used is used
/// neither at once nor later, so it stands in the rows of all delays.
fn fits(values: &[serde_json::Value], others: &[serde_json::Value]) -> bool {
    values.iter().zip(others).all(|(value, other)| value.is_null() || value == other)
}

const DELAY: &str = "delay_ns";

const PARTS: [(Pattern, &str, &str); 5] = [
    (Pattern::Full, "op_ns", "operation"),
    (Pattern::Crossed, DELAY, "traffic between"),
    (Pattern::Striped, "use_ns", "use"),
    (Pattern::Dotted, "victim_excess_ns", "bystander's loss"),
    (Pattern::Empty, "unattributed_ns", "unattributed"),
];

fn keys() -> Element {
    element("ul").class("keys").children(PARTS.map(|(pattern, _, meaning)| pattern.key(meaning)))
}

fn parts_in_words(case: &Case) -> String {
    let part = |(_, key, meaning): (_, &str, &str)| {
        let value = case.value(key);
        (value != record::Value::Missing).then(|| format!("{meaning} {}", value.for_people()))
    };
    let parts: Vec<String> = PARTS.into_iter().filter_map(part).collect();
    format!("{}; whole {}", parts.join(", "), with_interval(case, Kind::Map))
}

/// An axis along which nothing varies.
fn or_all(label: String) -> String {
    if label.is_empty() { "all".into() } else { label }
}

/// The two sides of a cell, from the samples in the file.
fn contest(cases: &[&Case]) -> heat::Cell {
    let open = |hint: String| heat::Cell { ratio: 1.0, call: Call::Open, hint };
    let cells = match measured(cases.iter().copied()) {
        Ok(cells) => cells,
        Err(error) => return open(error),
    };
    let Some(duel) = cells.first().and_then(|cell| duel(cell, SEED)) else {
        return open("one of the two sides is missing, or has too few samples".into());
    };
    let call = match duel.side() {
        Side::NonTemporal => Call::Up,
        Side::Temporal => Call::Down,
        Side::Neither => Call::Even,
        Side::Unclear => Call::Open,
    };
    let Duel { nontemporal, temporal, ratio } = duel;
    let hint = format!(
        "{nontemporal} against {temporal}: {:.2} ({:.2} to {:.2}) times as fast",
        ratio.median, ratio.low, ratio.high
    );
    heat::Cell { ratio: ratio.median, call, hint }
}

/// The verdicts, from the samples in the file: JSON lines hold no others.
fn break_even(results: &Results) -> Vec<Element> {
    let cells = match measured(&results.cases) {
        Ok(cells) => cells,
        Err(error) => return vec![element("p").text(format_args!("Not to be had: {error}."))],
    };
    let verdicts = verdicts(&map::lines(&cells, SEED));
    if verdicts.is_empty() {
        let text = "No cell has both sides, with samples enough to compare them.";
        return vec![element("p").text(text)];
    }
    let said = |verdict: &Verdict| {
        let what = element("strong").text(verdict.what());
        element("li").child(what).text(format_args!(": {}", verdict.text))
    };
    vec![
        element("p").text(
            "Up to which share of the result that is used afterwards the best non-temporal variant \
             wins the whole step, operation, use and bystander together.",
        ),
        element("ul").children(verdicts.iter().map(said)),
    ]
}
