//! The pictures of `bench`: every variant against libc at every size, then the times.

use super::bars::{Bar, Bars};
use super::heat::{Call, Cell, Heat, Row};
use super::markup::{Element, element};
use super::picture::Pattern;
use super::{
    Group, Section, figure, grouped, label, sorted_values, values, with_interval, without,
};
use crate::results::{Case, Kind, Results};
use cachewise::variant::{self, Operation, Store};
use cachewise_measure::contestant::LIBC;
use cachewise_measure::stats::Estimate;
use cachewise_measure::verdict::is_a_difference;

pub(super) const METHOD: &[&str] = &[
    "Each figure is the time of the operation alone: what the later use of the bytes costs, and what \
     was evicted for them, is not in it.",
    "Memory is mapped anew for every batch, written and read back before anything is timed. Results \
     are checked byte for byte. In every round all contestants run once in freshly shuffled order; \
     before each sample its contestant runs untimed until the caches hold what it leaves there. Hot: \
     the same buffers again and again. Cold: each piece once per pass over a range larger than the \
     last-level cache is said to be.",
    "The figure is the median; its interval covers 95 % of a bootstrap in two levels, batches and the \
     samples within each. Ratios are taken round by round. A difference is called one if the \
     interval is clear of 1 and the ratio is off by at least 2 %.",
];

/// Which fields part the page's groups.
pub(super) fn groups(results: &Results) -> Vec<&'static str> {
    without(&Results::varying(Kind::Bench, &[results]), &["size_bytes", "variant"])
}

pub(super) fn sections(groups: &[Group]) -> Vec<Section> {
    let mut content = vec![element("p").text(
        "How many times faster than libc: ▲ faster (striped edge), ▼ slower (full edge), = no \
         difference. Point at a cell for its interval.",
    )];
    content.extend(groups.iter().map(|group| figure(&group.title, heat(group).draw())));
    vec![Section::new("ratios", "Against libc", content)]
}

/// What stands before the groups, and the pictures in each.
pub(super) fn legend() -> Vec<Element> {
    let text = "Median time of a call with its 95 % interval; the dashed line is libc's. A broken \
                end: the bar is longer than the picture.";
    vec![element("p").text(text), keys()]
}

pub(super) fn pictures(group: &Group) -> Vec<Element> {
    let ok: Vec<&Case> = group.cases.iter().copied().filter(|case| case.is_ok()).collect();
    let sizes = grouped(&ok, &["size_bytes"]);
    let pictures = sizes.iter().filter_map(|cases| {
        let size = cases.first()?.value("size_bytes").for_people();
        let title = format!("{}, {size}", group.title);
        Some(figure(&size, times(&title, cases).draw()))
    });
    vec![element("div").class("pictures").children(pictures)]
}

fn heat(group: &Group) -> Heat {
    let cases: Vec<&Case> = group.cases.iter().copied().filter(|case| case.is_ok()).collect();
    let cases = &cases;
    let columns = sorted_values(cases, &["size_bytes"]);
    let mut rows: Vec<&Case> = grouped(cases, &["variant"]).iter().map(|same| same[0]).collect();
    rows.sort_by_key(|case| {
        (KINDS.iter().position(|kind| kind.0 == pattern(case)), case.text("variant"))
    });
    let cell = |variant: &str, size: &[_]| {
        let found = cases
            .iter()
            .find(|c| c.text("variant") == variant && values(c, &["size_bytes"]) == size)?;
        let ratio = Estimate {
            median: found.number("ratio")?,
            low: found.number("ratio_low")?,
            high: found.number("ratio_high")?,
        };
        let call = match is_a_difference(&ratio) {
            false => Call::Even,
            true if ratio.median > 1.0 => Call::Up,
            true => Call::Down,
        };
        let hint = format!(
            "{}, {}: {:.2} ({:.2} to {:.2}) times as fast as libc; {}",
            found.text("variant"),
            found.value("size_bytes").for_people(),
            ratio.median,
            ratio.low,
            ratio.high,
            with_interval(found, Kind::Bench)
        );
        Some(Cell { ratio: ratio.median, call, winner: String::new(), hint })
    };
    let row = |case: &&Case| {
        let variant = case.text("variant");
        let cells = columns.iter().map(|size| cell(variant, size)).collect();
        Row { names: vec![variant.to_owned()], link: None, cells }
    };
    Heat {
        title: format!("Speed against libc: {}", group.title),
        description: "One row per variant, one column per size. Each cell holds how many times \
                      faster than libc the variant is, and a sign: up for faster, down for slower, \
                      equal for no difference."
            .into(),
        row_names: vec!["variant".into()],
        column_name: "size of a call".into(),
        columns: columns.iter().map(|size| label(&["size_bytes"], size)).collect(),
        rows: rows.iter().map(row).collect(),
    }
}

fn times(title: &str, cases: &[&Case]) -> Bars {
    let keys = Kind::Bench.time();
    let mut cases: Vec<&Case> = cases.to_vec();
    let median = |case: &Case| case.number(keys.median).unwrap_or(f64::INFINITY);
    cases.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let bar = |case: &&Case| {
        let rate = match case.number("gb_per_s") {
            Some(_) => format!(" {:>6} GB/s", case.value("gb_per_s").for_people()),
            None => String::new(),
        };
        Bar {
            label: case.text("variant").to_owned(),
            parts: vec![(pattern(case), case.number(keys.median).unwrap_or(0.0))],
            interval: case.number(keys.low).zip(case.number(keys.high)),
            figure: format!("{:>7}{rate}", case.value(keys.median).for_people()),
            hint: with_interval(case, Kind::Bench),
        }
    };
    let libc = cases.iter().find(|case| case.text("variant") == LIBC);
    Bars {
        title: format!("Time of a call: {title}"),
        description: "One bar per variant, the fastest first; the figures are beside the bars."
            .into(),
        bars: cases.iter().map(bar).collect(),
        reference: libc.map(|case| median(case)),
    }
}

fn pattern(case: &Case) -> Pattern {
    let operation = match case.text("operation") {
        "clear" => Operation::Clear,
        _ => Operation::Copy,
    };
    match variant::find(operation, case.text("variant")).map(variant::Variant::store) {
        Ok(Store::Temporal) => Pattern::Full,
        Ok(Store::NonTemporal) => Pattern::Striped,
        Ok(Store::Implementation) => Pattern::Dotted,
        Err(_) => Pattern::Empty,
    }
}

/// In the order of the heat map's rows.
const KINDS: [(Pattern, &str); 4] = [
    (Pattern::Empty, "libc, the public calls, peers"),
    (Pattern::Full, "temporal stores"),
    (Pattern::Dotted, "the CPU chooses (rep)"),
    (Pattern::Striped, "non-temporal stores"),
];

fn keys() -> Element {
    element("ul").class("keys").children(KINDS.map(|(pattern, meaning)| pattern.key(meaning)))
}
