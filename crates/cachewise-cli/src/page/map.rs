//! The pictures of `map`: who wins the whole, by how much, and of which parts it is made.

use super::bars::{Bar, Bars};
use super::glance::{self, Known};
use super::heat::{self, Call, Heat, Row};
use super::markup::{Element, element};
use super::picture::Pattern;
use super::{
    Group, Section, figure, grouped, label, policy, shown, sorted_values, values, with_interval,
    without,
};
use crate::commands::map;
use crate::commands::map::words::{Verdict, verdicts};
use crate::record;
use crate::results::cells::measured;
use crate::results::{Case, Kind, Results, name_of};
use cachewise_measure::map::{Cell, Duel, Side, duel};

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
     libc among them, are picked on one half of the samples and compared on the other: by the \
     difference of their whole steps, round by round. It is told against what the operation costs in \
     all, which is the whole less what bystander, traffic and use cost by themselves; as a share of \
     the whole any difference would vanish beside a large bystander.",
    "It is called a difference if the interval is clear of 1 and the ratio is off by at least 2 %. \
     Where it is none, and yet the interval reaches beyond 10 %, the cell is too noisy to tell.",
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

pub(super) const RATIO: &str = "\
    How many times more the operation costs in all (its own time and what it adds to the use, the \
    traffic and the bystander) with the best of all other variants than with the best non-temporal \
    one: ▲ above 1, non-temporal wins (striped edge); ▼ below 1, temporal wins (full edge); = no \
    difference; ? too noisy to tell or too few samples. Below it, who wins.";

/// Which fields part the page's groups.
pub(super) fn groups(results: &Results) -> Vec<&'static str> {
    Axes::of(results).pages
}

/// What stands before the groups.
pub(super) fn legend() -> Vec<Element> {
    vec![
        element("p").text(
            "Of each, who wins in all its cells, then the parts of a step, as far as the operation \
             has to do with them: a bystander's own walks are left out, and so is what the traffic \
             between operation and use takes without the operation (in results that do not have \
             that, with the quickest contender). Beside each bar the median of the whole. What is \
             below zero is not drawn; the numbers have it.",
        ),
        keys(),
    ]
}

/// A cell with its contenders.
struct Met<'a> {
    cases: Vec<&'a Case>,
    /// If it can be read as one.
    cell: Option<Cell>,
    contest: heat::Cell,
}

impl<'a> Met<'a> {
    fn new(cases: Vec<&'a Case>) -> Self {
        let measured = measured(cases.iter().copied()).map(|mut cells| cells.pop());
        let contest = match &measured {
            Ok(measured) => contest(measured.as_ref().and_then(|cell| duel(cell, SEED))),
            Err(error) => open(error.clone()),
        };
        let cell = measured.ok().flatten().map(|measured| measured.cell);
        Self { cases, cell, contest }
    }

    fn first(&self) -> &'a Case {
        self.cases[0]
    }
}

pub(super) struct Map<'a> {
    axes: Axes,
    /// By the page's groups.
    met: Vec<Vec<Met<'a>>>,
}

impl<'a> Map<'a> {
    pub(super) fn new(results: &Results, groups: &[Group<'a>]) -> Self {
        let met = |group: &Group<'a>| {
            let ok: Vec<&Case> = group.cases.iter().copied().filter(|case| case.is_ok()).collect();
            let cells = grouped(&ok, &without(&Kind::Map.identity(), &["variant"]));
            cells.into_iter().map(Met::new).collect()
        };
        Self { axes: Axes::of(results), met: groups.iter().map(met).collect() }
    }

    pub(super) fn sections(&self, results: &Results) -> Vec<Section> {
        let mut sections: Vec<Section> = policy::section(results).into_iter().collect();
        let met = self.met.iter().enumerate();
        let met = met.flat_map(|(group, met)| met.iter().map(move |met| (group, met)));
        let known = met.filter_map(|(group, met)| {
            Some(Known { group, cell: met.cell?, contest: &met.contest })
        });
        sections.extend(glance::section(&known.collect::<Vec<_>>()));
        sections.push(Section::new("break-even", "Break-even", break_even(results)));
        sections
    }

    /// Of the group with this index.
    pub(super) fn pictures(&self, group: usize, title: &str) -> Vec<Element> {
        let Some(met) = self.met.get(group).filter(|met| !met.is_empty()) else {
            return vec![element("p").text("None of its cases has a figure.")];
        };
        let parts = met.iter().map(|met| self.axes.parts(title, met));
        vec![
            figure("Who wins", self.axes.heat(title, met).draw()),
            element("div").class("pictures").children(parts),
        ]
    }
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

    fn heat(&self, title: &str, cells: &[Met]) -> Heat {
        let firsts: Vec<&Case> = cells.iter().map(Met::first).collect();
        let columns = sorted_values(&firsts, &self.columns);
        let mut rows = sorted_values(&firsts, &self.rows);
        let all = rows.clone();
        rows.retain(|row| !all.iter().any(|other| other != row && fits(row, other)));
        let places: Vec<_> =
            firsts.iter().map(|c| (values(c, &self.rows), values(c, &self.columns))).collect();
        let cell = |row: &Vec<_>, column: &Vec<_>| {
            let here = places.iter().position(|(r, c)| fits(r, row) && c == column)?;
            Some(cells[here].contest.clone())
        };
        let row = |row: Vec<_>| Row {
            names: shown(&self.rows, &row),
            link: None,
            cells: columns.iter().map(|column| cell(&row, column)).collect(),
        };
        Heat {
            title: format!("Non-temporal against temporal: {title}"),
            description: RATIO.into(),
            row_names: self.rows.iter().map(|key| name_of(key)).collect(),
            column_name: self.columns.iter().map(|key| name_of(key)).collect::<Vec<_>>().join(", "),
            columns: columns.iter().map(|column| or_all(label(&self.columns, column))).collect(),
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn parts(&self, title: &str, met: &Met) -> Element {
        let keys: Vec<&str> = self.rows.iter().chain(&self.columns).copied().collect();
        let caption = or_all(met.first().described(&keys));
        let mut cases = met.cases.clone();
        let whole = |case: &Case| case.number(Kind::Map.time().median).unwrap_or(f64::INFINITY);
        cases.sort_by(|a, b| whole(a).total_cmp(&whole(b)));
        // All wait for the traffic; what it takes beyond that is the operation's doing.
        let delays = cases.iter().filter_map(|case| case.number(DELAY));
        let least = delays.fold(f64::INFINITY, f64::min);
        let part = |case: &Case, key| match case.number(key) {
            Some(ns) if key == DELAY => ns - case.number("delay_baseline_ns").unwrap_or(least),
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
        figure(&caption, bars.draw())
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

fn open(hint: String) -> heat::Cell {
    heat::Cell { ratio: 1.0, call: Call::Open, winner: String::new(), hint }
}

/// The two sides of a cell.
fn contest(duel: Option<Duel>) -> heat::Cell {
    let Some(duel) = duel else {
        return open("one of the two sides is missing, or has too few samples of a part".into());
    };
    let (call, winner) = match duel.side() {
        Side::NonTemporal => (Call::Up, duel.nontemporal.clone()),
        Side::Temporal => (Call::Down, duel.temporal.clone()),
        Side::Neither => (Call::Even, String::new()),
        Side::Unclear => (Call::Open, String::new()),
    };
    let Duel { nontemporal, temporal, ratio } = duel;
    let hint = format!(
        "with {temporal} the operation costs {:.2} ({:.2} to {:.2}) times as much in all as with \
         {nontemporal}",
        ratio.median, ratio.low, ratio.high
    );
    heat::Cell { ratio: ratio.median, call, winner, hint }
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
            "Up to which share of the result that is used afterwards the operation costs less with \
             the best non-temporal variant, use and bystander included.",
        ),
        element("ul").children(verdicts.iter().map(said)),
    ]
}
