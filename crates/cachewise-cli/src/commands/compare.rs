//! `compare`: two results of one command, case by case.
//!
//! Cases belong together if all their identifying fields are equal. What stands in one result only,
//! or has no figure in one of them, is listed with its reason: a gate that compared nothing must not
//! look like one that found nothing. So a case that has come to an error counts as worse, and a
//! scenario of which only the reference could be compared is no success.
//!
//! All intervals together hold at 95 %: with many cases each of them is
//! [wider](cachewise_measure::compare), or chance alone would close the gate.

use super::{Done, End, differing, report};
use crate::args::{Compare, FailOn};
use crate::failure::Failure;
use crate::record::{Column, Grouped, Head, List, Row, Section, Value, data, only_shown, shown};
use crate::results::{Case, Results, value};
use crate::voice::Voice;
use cachewise_measure::Machine;
use cachewise_measure::compare::{Basis, Change, Comparison};
use cachewise_measure::contestant::LIBC;
use std::collections::{BTreeMap, BTreeSet};

/// For the intervals: the same files give the same answer.
const SEED: u64 = 1;

pub(super) fn run(machine: &Machine, args: &Compare, voice: &mut Voice) -> Result<Done, Failure> {
    let (a, b) = (Results::read(&args.a)?, Results::read(&args.b)?);
    if a.kind != b.kind {
        let (a, b) = (a.command, b.command);
        return Err(Failure::Input(format!(
            "the first result is of {a}, the second of {b}; compare two of the same command"
        )));
    }
    warn_if_machines_differ(&a, &b, voice);
    warn_if_libc_differs(&a, &b, voice);
    let matches = matches(&a, &b, voice);
    if matches.iter().all(|row| row.comparison.is_none()) {
        return Err(Failure::Input(
            "no case has a figure in both results; measure the same cases again, with the \
             arguments of the first result"
                .into(),
        ));
    }
    if args.fail_on.is_some() {
        check_gate(&a, &matches)?;
    }
    notes(&a, &b, &matches, voice);

    let summary = Summary::of(&matches, args.fail_on);
    let end = match summary.failing {
        Some(failing) if failing > 0 => End::Negative,
        _ => End::Complete,
    };
    let files = [File { name: "A", of: &a }, File { name: "B", of: &b }].map(File::row);
    let sections = vec![
        Section::list("files", FILES, files),
        Section::List(list(&a, &b, matches)),
        Section::object("summary", SUMMARY, &summary),
    ];
    Ok(Done { report: report("compare", machine, sections), end })
}

/// A gate that judged nothing, or nothing but the reference of a scenario, is an error.
fn check_gate(a: &Results, matches: &[Match]) -> Result<(), Failure> {
    if matches.iter().all(|row| row.verdict() == Value::Missing) {
        return Err(Failure::Input(
            "no case has samples enough to be judged; measure both again with more --samples and \
             --time"
                .into(),
        ));
    }
    let keys: Vec<&str> = a.kind.identity().into_iter().filter(|key| *key != "variant").collect();
    let mut scenarios: BTreeMap<String, Vec<&Match>> = BTreeMap::new();
    for row in matches {
        scenarios.entry(values(&row.case, &keys)).or_default().push(row);
    }
    // What B does not have at all is warned of.
    scenarios.retain(|_, rows| rows.iter().any(|row| row.in_b));
    let is_rival = |row: &&Match| row.a_ns.is_some() && row.case.text("variant") != LIBC;
    scenarios.values_mut().for_each(|rows| rows.retain(|row| is_rival(row)));
    scenarios.retain(|_, rivals| {
        !rivals.is_empty() && rivals.iter().all(|row| row.verdict() == Value::Missing)
    });
    let Some(first) = scenarios.values().flatten().next() else {
        return Ok(());
    };
    let names: BTreeSet<&str> =
        matches.iter().filter(is_rival).map(|row| row.case.text("variant")).collect();
    let names: Vec<&str> = names.into_iter().collect();
    Err(Failure::Input(format!(
        "in {} scenarios nothing but {LIBC} could be judged, first: {}; map screens its contenders \
         anew in each run, so measure B with those of A, --variant {}, and with samples enough",
        scenarios.len(),
        first.case.described(&keys),
        names.join(",")
    )))
}

/// A case of either result, with what became of it.
struct Match {
    case: Case,
    a_ns: Option<f64>,
    b_ns: Option<f64>,
    comparison: Option<Comparison>,
    /// It has a figure in A, and in B something is wrong.
    broken: bool,
    in_b: bool,
    status: String,
    because: Option<String>,
}

fn matches(a: &Results, b: &Results, voice: &mut Voice) -> Vec<Match> {
    let (of_a, of_b) = (by_identity(a, voice), by_identity(b, voice));
    let mut done = BTreeSet::new();
    let mut matches = Vec::new();
    for case in a.cases.iter().chain(&b.cases) {
        let identity = identity(a, case);
        let sides = (of_a.get(&identity).copied(), of_b.get(&identity).copied());
        if done.insert(identity) {
            matches.extend(matched(a, sides));
        }
    }
    let judged = matches.iter().filter(|row| row.change().is_some()).count();
    for row in &mut matches {
        row.comparison = row.comparison.map(|comparison| comparison.among(judged));
    }
    matches
}

/// The identifying fields, comparable.
fn identity(results: &Results, case: &Case) -> String {
    values(case, &results.kind.identity())
}

fn values(case: &Case, keys: &[&str]) -> String {
    keys.iter().map(|key| case.get(key).to_string()).collect::<Vec<_>>().join(",")
}

fn by_identity<'a>(results: &'a Results, voice: &mut Voice) -> BTreeMap<String, &'a Case> {
    let mut cases = BTreeMap::new();
    for case in &results.cases {
        if cases.insert(identity(results, case), case).is_some() {
            voice.warn(
                "case-twice",
                &format_args!("{} has a case more than once", results.path.display()),
                &"the last of them counts; keep one run per file",
            );
        }
    }
    cases
}

fn matched(of: &Results, sides: (Option<&Case>, Option<&Case>)) -> Option<Match> {
    let timed = |case: Option<&Case>| case.and_then(|case| case.timed(of.kind));
    let (a, b) = (timed(sides.0), timed(sides.1));
    let comparison = a.as_ref().zip(b.as_ref()).map(|(a, b)| Comparison::new(a, b, SEED));
    let case = sides.0.or(sides.1)?.clone();
    let broken = a.is_some() && sides.1.is_some_and(|case| case.text("status") == "error");
    let (status, because) = match (sides, &comparison) {
        ((Some(_), None), _) => ("skipped", Some("only in A".to_owned())),
        ((None, _), _) => ("skipped", Some("only in B".to_owned())),
        (_, Some(Comparison { basis: Basis::Nothing, .. })) => {
            ("ok", Some("too few samples".to_owned()))
        }
        (_, Some(_)) => ("ok", None),
        ((Some(a), Some(b)), None) if a.text("status") == b.text("status") => {
            (a.text("status"), Some(a.because()))
        }
        ((Some(a), Some(b)), None) => {
            let side = |name, case: &Case| format!("{name} {}", case.because());
            let status = if broken { "error" } else { "skipped" };
            (status, Some(format!("{}; {}", side("A", a), side("B", b))))
        }
    };
    let ns = |timed: Option<_>| timed.map(|t: cachewise_measure::compare::Timed| t.median_ns);
    let (a_ns, b_ns, in_b) = (ns(a), ns(b), sides.1.is_some());
    Some(Match { case, a_ns, b_ns, comparison, broken, in_b, status: status.into(), because })
}

impl Match {
    fn change(&self) -> Option<Change> {
        self.comparison.as_ref()?.change()
    }

    fn verdict(&self) -> Value {
        match self.change() {
            Some(Change::Better) => Value::text("better"),
            Some(Change::Worse) => Value::text("worse"),
            Some(Change::None) => Value::text("no difference"),
            None if self.broken => Value::text("error"),
            None => Value::Missing,
        }
    }

    fn ratio(&self) -> Value {
        Value::or_missing(self.comparison.as_ref(), |c| Value::Ratio(c.ratio))
    }

    fn interval<T>(&self, make: impl FnOnce((f64, f64)) -> T) -> Option<T> {
        self.comparison.as_ref()?.interval.map(make)
    }
}

const COLUMNS: &[Column<Match>] = &[
    shown("a_ns", "A", |m| Value::or_missing(m.a_ns, Value::Ns)),
    shown("b_ns", "B", |m| Value::or_missing(m.b_ns, Value::Ns)),
    shown("ratio", "ratio", Match::ratio),
    data("ratio_low", |m| Value::or_missing(m.interval(|(low, _)| low), Value::Ratio)),
    data("ratio_high", |m| Value::or_missing(m.interval(|(_, high)| high), Value::Ratio)),
    only_shown("interval", |m| {
        m.interval(|(low, high)| Value::Interval(low, high)).unwrap_or(Value::Missing)
    }),
    data("interval_from", |m| match m.comparison.map(|c| c.basis) {
        Some(Basis::Samples) => Value::text("samples"),
        Some(Basis::Intervals) => Value::text("intervals"),
        Some(Basis::Nothing) | None => Value::Missing,
    }),
    data("verdict", Match::verdict),
    only_shown("verdict", |m| match (m.change(), &m.because) {
        (None, Some(because)) => Value::text(because),
        _ => m.verdict(),
    }),
    data("status", |m| Value::text(&m.status)),
    data("because", |m| Value::or_missing(m.because.as_ref(), Value::text)),
];

/// The identifying fields, as in the files, then the columns. For people, the size and the variant
/// are columns; what else tells the cases of these two results apart is the heading.
fn list(a: &Results, b: &Results, matches: Vec<Match>) -> List {
    let keys = a.kind.identity();
    let title = |key: &str| {
        [("size_bytes", "size"), ("variant", "variant")].into_iter().find(|t| t.0 == key)
    };
    let heads = keys.iter().map(|&key| Head { key, title: title(key).map(|t| t.1) });
    let heads = heads.chain(COLUMNS.iter().map(|c| Head { key: c.key, title: c.title })).collect();
    let varying = Results::varying(a.kind, &[a, b]);
    let in_heading: Vec<&str> = keys
        .iter()
        .copied()
        .filter(|key| *key == "operation" || varying.contains(key))
        .filter(|key| title(key).is_none())
        .collect();
    let row = |m: &Match| Row {
        group: m.case.described(&in_heading),
        // Neither machine can run it: no news.
        only_data: m.status == "unsupported",
        values: keys
            .iter()
            .map(|key| value(key, m.case.get(key)))
            .chain(COLUMNS.iter().map(|column| (column.value)(m)))
            .collect(),
    };
    let mut rows: Vec<Row> = matches.iter().map(row).collect();
    let mut order = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        order.entry(row.group.clone()).or_insert(index);
    }
    rows.sort_by_key(|row| order.get(&row.group).copied());
    List { key: "cases", are_cases: true, heads, rows }
}

struct Summary {
    better: u64,
    worse: u64,
    no_difference: u64,
    errors: u64,
    not_compared: u64,
    /// Worse by more than was allowed, or an error; `None` if nothing was asked.
    failing: Option<u64>,
    allowed: Option<FailOn>,
}

impl Summary {
    fn of(matches: &[Match], allowed: Option<FailOn>) -> Self {
        let count =
            |is_it: &dyn Fn(&Match) -> bool| matches.iter().filter(|one| is_it(one)).count() as u64;
        let changed = |change| count(&|m: &Match| m.change() == Some(change));
        let failing = |FailOn(share): FailOn| {
            count(&|m: &Match| m.broken || m.comparison.is_some_and(|c| c.is_worse_by(share)))
        };
        Self {
            better: changed(Change::Better),
            worse: changed(Change::Worse),
            no_difference: changed(Change::None),
            errors: count(&|m: &Match| m.broken),
            not_compared: count(&|m: &Match| {
                m.verdict() == Value::Missing && m.status != "unsupported"
            }),
            failing: allowed.map(failing),
            allowed,
        }
    }
}

const SUMMARY: &[Column<Summary>] = &[
    shown("better", "better", |s| Value::Count(s.better)),
    shown("worse", "worse", |s| Value::Count(s.worse)),
    shown("no_difference", "no difference", |s| Value::Count(s.no_difference)),
    shown("errors", "errors", |s| Value::Count(s.errors)),
    shown("not_compared", "not compared", |s| Value::Count(s.not_compared)),
    data("fail_on_worse_share", |s| Value::or_missing(s.allowed, |FailOn(x)| Value::Share(x))),
    shown("failing", "worse than allowed", |s| Value::or_missing(s.failing, Value::Count)),
];

struct File<'a> {
    name: &'static str,
    of: &'a Results,
}

struct FileRow {
    name: &'static str,
    path: String,
    command: String,
    brand: Value,
    cpus: Value,
    cases: u64,
}

impl File<'_> {
    fn row(self) -> FileRow {
        let Self { name, of } = self;
        let machine = |key: &str| of.machine.get(key).map_or(Value::Missing, |v| value(key, v));
        FileRow {
            name,
            path: of.path.display().to_string(),
            command: of.command.clone(),
            brand: machine("brand"),
            cpus: machine("cpus"),
            cases: of.cases.len() as u64,
        }
    }
}

const FILES: &[Column<FileRow>] = &[
    shown("name", "", |file| Value::text(file.name)),
    shown("path", "file", |file| Value::text(&file.path)),
    shown("command", "of", |file| Value::text(&file.command)),
    shown("brand", "machine", |file| file.brand.clone()),
    shown("cpus", "cpus", |file| file.cpus.clone()),
    shown("cases", "cases", |file| Value::Count(file.cases)),
];

impl Grouped for FileRow {}

fn warn_if_machines_differ(a: &Results, b: &Results, voice: &mut Voice) {
    let shown = |of: &Results, key: &str| value(key, &of.machine[key]).for_people();
    let differing: Vec<String> = differing(&a.machine, &b.machine)
        .into_iter()
        .map(|key| format!("{key} {} and {}", shown(a, key), shown(b, key)))
        .collect();
    if !differing.is_empty() {
        voice.warn(
            "different-machines",
            &format_args!("the results come from different machines: {}", differing.join(", ")),
            &"what changed may be the machine; compare results of one machine to judge a program",
        );
    }
}

fn warn_if_libc_differs(a: &Results, b: &Results, voice: &mut Voice) {
    let libc = |of: &Results| of.run.get(LIBC)?.as_str().map(str::to_owned);
    if let (Some(a), Some(b)) = (libc(a), libc(b))
        && a != b
    {
        voice.warn(
            "other-libc",
            &format_args!(
                "libc is {a} in A and {b} in B, and each run's ratios are against its own"
            ),
            &"measure both beside the same libc",
        );
    }
}

fn notes(a: &Results, b: &Results, matches: &[Match], voice: &mut Voice) {
    let varying = Results::varying(a.kind, &[a, b]);
    let constant: Vec<&str> =
        a.kind.identity().into_iter().filter(|key| !varying.contains(key)).collect();
    if let Some(case) = a.cases.first().filter(|_| !constant.is_empty()) {
        voice.note(&format_args!("all cases: {}", case.described(&constant)));
    }
    voice.note(&format_args!(
        "ratio is {} of A over that of B: above 1, B is faster; with its 95 % interval",
        a.kind.time().median
    ));
    let judged = matches.iter().filter(|m| m.change().is_some()).count();
    if judged > 1 {
        voice.note(&format_args!(
            "{judged} cases are judged at once: each interval is widened until all of them together \
             hold at 95 %"
        ));
    }
    voice.note(
        &"an interval knows what varied within the two runs, not what changed between them: \
          compare two runs of the same first",
    );
    let count = |basis: Basis| {
        matches.iter().filter(|m| m.comparison.is_some_and(|c| c.basis == basis)).count()
    };
    let (crosswise, none) = (count(Basis::Intervals), count(Basis::Nothing));
    if crosswise > 0 {
        voice.warn(
            "samples-missing",
            &format_args!("{crosswise} cases have no raw samples; their intervals are wide"),
            &"keep the whole JSON, with its samples",
        );
    }
    if none > 0 {
        voice.warn(
            "samples-few",
            &format_args!("{none} cases have too few samples, or no interval, for a verdict"),
            &"measure with more --samples and --time",
        );
    }
    let missing = matches.iter().filter(|m| m.status == "skipped").count();
    let errors = matches.iter().filter(|m| m.broken).count();
    if errors > 0 {
        voice.warn(
            "cases-broken",
            &format_args!("{errors} cases have a figure in A and an error in B"),
            &"the reasons are beside them; under --fail-on each counts as worse",
        );
    }
    if missing > 0 {
        voice.warn(
            "cases-unmatched",
            &format_args!("{missing} cases have a figure in at most one of the results"),
            &"measure both with the same arguments",
        );
    }
}
