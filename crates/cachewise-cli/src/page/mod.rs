//! `report`'s page: one file of HTML that needs nothing else, no script, no font, no network.
//!
//! Everything is in the file that was read; the page only draws it. So a page can be made of a
//! result from any machine, today or next year.

mod bars;
mod bench;
mod glance;
mod heat;
mod map;
mod markup;
mod picture;
mod policy;
mod table;

use crate::results::{Case, Kind, Results, name_of, value};
use markup::{Element, element};
use std::collections::BTreeMap;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub(crate) fn html(results: &Results) -> String {
    let title = title(results);
    let head = element("head")
        .child(element("meta").with("charset", "utf-8"))
        .child(
            element("meta")
                .with("name", "viewport")
                .with("content", "width=device-width, initial-scale=1"),
        )
        .child(element("title").text(&title));
    let sections = sections(results);
    let nav = element("nav").child(element("ul").children(sections.iter().map(Section::link)));
    let body = element("body")
        .child(picture::patterns())
        .child(element("header").child(element("h1").text(&title)).child(nav))
        .child(element("main").children(sections.into_iter().map(Section::draw)));
    // The style is text of ours without anything to escape, and a parser of HTML would not undo it.
    let page = element("html").with("lang", "en").child(head).child(body).to_string();
    let style = format!("<style>{STYLE}</style></head>");
    format!("<!DOCTYPE html>\n{}\n", page.replacen("</head>", &style, 1))
}

fn title(results: &Results) -> String {
    let brand = results.machine.get("brand").and_then(serde_json::Value::as_str);
    let mut operations: Vec<&str> = results.cases.iter().map(|c| c.text("operation")).collect();
    operations.sort_unstable();
    operations.dedup();
    format!(
        "cachewise {} {} on {}",
        results.command,
        operations.join(" and "),
        brand.unwrap_or("an unnamed machine")
    )
}

struct Section {
    id: &'static str,
    title: &'static str,
    content: Vec<Element>,
    /// Folded away, but for the first: a page of thousands of cases is to be seen at a glance.
    parts: Vec<(String, Vec<Element>)>,
}

impl Section {
    fn new(id: &'static str, title: &'static str, content: Vec<Element>) -> Self {
        Self { id, title, content, parts: Vec::new() }
    }

    fn link(&self) -> Element {
        let link = |to: String, title: &str| element("a").with("href", to).text(title);
        let parts = self.parts.iter().enumerate();
        let parts: Vec<Element> = parts
            .map(|(index, (title, _))| {
                element("li").child(link(format!("#{}", place(self.id, index)), title))
            })
            .collect();
        let parts = (parts.len() > 1).then(|| element("ul").children(parts));
        element("li").child(link(format!("#{}", self.id), self.title)).children(parts)
    }

    fn draw(self) -> Element {
        let part = |(index, (title, content)): (usize, (String, Vec<Element>))| {
            // A link to what is inside unfolds it.
            let id = place(self.id, index);
            let inside = element("div").class("part").with("id", id).children(content);
            let details = folded(element("h3").text(title), [inside]);
            if index == 0 { details.with("open", "open") } else { details }
        };
        element("section")
            .with("id", self.id)
            .child(element("h2").text(self.title))
            .children(self.content)
            .children(self.parts.into_iter().enumerate().map(part))
    }
}

/// The id of a part of a section.
fn place(section: &str, part: usize) -> String {
    format!("{section}-{part}")
}

fn folded(title: Element, content: impl IntoIterator<Item = Element>) -> Element {
    element("details").child(element("summary").child(title)).children(content)
}

/// Cases that stand together: of each, pictures, numbers and samples.
struct Group<'a> {
    title: String,
    cases: Vec<&'a Case>,
}

const SCENARIOS: &str = "scenarios";

fn sections(results: &Results) -> Vec<Section> {
    let keys = match results.kind {
        Kind::Bench => bench::groups(results),
        Kind::Map => map::groups(results),
    };
    let cases: Vec<&Case> = results.cases.iter().collect();
    let mut groups: Vec<Group> = grouped(&cases, &keys)
        .into_iter()
        .filter_map(|cases| Some(Group { title: described(cases.first()?, &keys), cases }))
        .collect();
    groups.sort_by_key(|group| group.cases.first().map(|case| case.text("operation")));

    let varying = Results::varying(results.kind, &[results]);
    let part = |group: &Group, pictures: Vec<Element>| {
        let title = |text: &str| element("span").text(text);
        let numbers = folded(title("The numbers"), table::numbers(&group.cases));
        let samples = table::samples(&group.cases, results.kind, &without(&varying, &keys));
        let samples = folded(title("The samples"), samples);
        (group.title.clone(), pictures.into_iter().chain([numbers, samples]).collect())
    };
    let (mut sections, legend, parts, method) = match results.kind {
        Kind::Bench => {
            let parts = groups.iter().map(|group| part(group, bench::pictures(group))).collect();
            (bench::sections(&groups), bench::legend(), parts, bench::METHOD)
        }
        Kind::Map => {
            let map = map::Map::new(results, &groups);
            let parts = groups
                .iter()
                .enumerate()
                .map(|(i, g)| part(g, map.pictures(i, &g.title)))
                .collect();
            (map.sections(results), map::legend(), parts, map::METHOD)
        }
    };
    sections.push(Section { parts, ..Section::new(SCENARIOS, "Scenario by scenario", legend) });
    sections.push(Section::new("machine", "The machine", machine(results)));
    sections.push(Section::new("method", "The method", paragraphs(method)));
    sections.push(Section::new("doubts", "Doubts", doubts(results)));
    let title = |key: &str| element("span").text(key);
    let others = results.others.iter();
    let others = others.map(|(key, other)| folded(title(key), table::other(other)));
    let others: Vec<Element> = others.collect();
    if !others.is_empty() {
        sections.push(Section::new("others", "What else is in the file", others));
    }
    sections
}

fn machine(results: &Results) -> Vec<Element> {
    let mut content = vec![facts(&results.machine)];
    if !results.run.is_empty() {
        content.extend([element("h3").text("The run"), facts(&results.run)]);
    }
    content
}

fn paragraphs(texts: &[&str]) -> Vec<Element> {
    texts.iter().map(|text| element("p").text(text)).collect()
}

/// Names and values.
fn facts(fields: &crate::results::Fields) -> Element {
    let fact = |(key, found): (&String, &serde_json::Value)| {
        let shown = value(key, found).for_people();
        [element("dt").text(name_of(key)), element("dd").text(shown)]
    };
    element("dl").children(fields.iter().flat_map(fact))
}

fn figure(caption: &str, picture: Element) -> Element {
    element("figure").child(element("figcaption").text(caption)).child(picture)
}

/// Cases that agree in these fields, in the order in which they come.
fn grouped<'a>(cases: &[&'a Case], keys: &[&str]) -> Vec<Vec<&'a Case>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    for &case in cases {
        let identity: Vec<String> = keys.iter().map(|key| case.get(key).to_string()).collect();
        let place = *places.entry(identity).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    groups
}

/// The keys without these.
fn without(keys: &[&'static str], left_out: &[&str]) -> Vec<&'static str> {
    keys.iter().copied().filter(|key| !left_out.contains(key)).collect()
}

/// A time with its interval.
fn with_interval(case: &Case, kind: Kind) -> String {
    let keys = kind.time();
    let shown = |key| case.value(key).for_people();
    format!("{} ({} to {})", shown(keys.median), shown(keys.low), shown(keys.high))
}

/// A share that is worth a doubt: of the median, by which its interval reaches farther; of the
/// whole, that its parts leave unexplained.
const WIDE: f64 = 0.1;

/// What the file itself gives reason to doubt.
fn doubts(results: &Results) -> Vec<Element> {
    let mut doubts = Vec::new();
    if results.machine.get("hypervisor") == Some(&true.into()) {
        doubts.push(
            "This is a virtual machine: who else uses its caches and its memory is not known."
                .to_owned(),
        );
    }
    let ok: Vec<&Case> = results.cases.iter().filter(|case| case.is_ok()).collect();
    let wide =
        ok.iter().filter(|case| spread(case, results.kind).is_some_and(|s| s > WIDE)).count();
    if wide > 0 {
        doubts.push(format!(
            "{wide} of {} figures have an interval that reaches more than {:.0} % from the median; \
             more samples, or a quieter machine, would narrow it.",
            ok.len(),
            WIDE * 100.0
        ));
    }
    let unsampled =
        ok.iter().filter(|case| case.timed(results.kind).is_none_or(|t| t.samples.count() == 0));
    let unsampled = unsampled.count();
    if unsampled > 0 {
        doubts.push(format!("{unsampled} figures have no raw samples in the file."));
    }
    let unexplained = ok.iter().filter(|case| {
        let (rest, whole) = (case.number("unattributed_ns"), case.number("whole_ns"));
        rest.zip(whole).is_some_and(|(rest, whole)| rest.abs() > WIDE * whole)
    });
    let unexplained = unexplained.count();
    if unexplained > 0 {
        doubts.push(format!(
            "In {unexplained} of {} figures the parts and the whole differ by more than {:.0} % of \
             the whole.",
            ok.len(),
            WIDE * 100.0
        ));
    }
    let no_baseline = |case: &&&Case| {
        case.number("delay_bytes") > Some(0.0) && case.get("delay_baseline_ns").is_null()
    };
    let no_baseline = ok.iter().filter(no_baseline).count();
    if no_baseline > 0 {
        doubts.push(format!(
            "For {no_baseline} figures the file does not say what the traffic takes without the \
             operation, as those of earlier versions don't: who wins there is not known."
        ));
    }
    let level = |case: &&&Case| {
        case.get("level") != case.get("level_claimed") && !case.get("level_claimed").is_null()
    };
    let levels = ok.iter().filter(level).count();
    if levels > 0 {
        doubts.push(format!(
            "{levels} figures come from another level of the hierarchy, by its latency, than the \
             claimed cache sizes say."
        ));
    }
    let failed: Vec<&Case> = results.cases.iter().filter(|case| !case.is_ok()).collect();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for case in failed {
        let reason = format!("{}, {}", case.text("variant"), case.because());
        *reasons.entry(reason).or_default() += 1;
    }
    doubts.extend(reasons.into_iter().map(|(reason, count)| match count {
        1 => format!("One case without a figure: {reason}."),
        _ => format!("{count} cases without a figure: {reason}."),
    }));
    let stored = results.others.get("doubts").and_then(serde_json::Value::as_array);
    for doubt in stored.into_iter().flatten() {
        let text = |key| doubt.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        doubts.push(format!("{}; {}", text("cause"), text("remedy")));
    }
    if doubts.is_empty() {
        return vec![element("p").text("Nothing in the file gives a reason for one.")];
    }
    let items = doubts.iter().map(|doubt| element("li").text(doubt));
    vec![element("ul").children(items)]
}

fn spread(case: &Case, kind: Kind) -> Option<f64> {
    let timed = case.timed(kind)?;
    let (low, high) = timed.interval_ns?;
    Some((timed.median_ns - low).max(high - timed.median_ns) / timed.median_ns)
}

/// All values of these fields together: numbers by size, words in the order in which they come.
fn sorted_values(cases: &[&Case], keys: &[&str]) -> Vec<Vec<serde_json::Value>> {
    let mut found: Vec<Vec<serde_json::Value>> = Vec::new();
    for case in cases {
        let values = values(case, keys);
        if !found.contains(&values) {
            found.push(values);
        }
    }
    let first = |key: usize, value: &serde_json::Value| {
        found.iter().position(|values| values.get(key) == Some(value)).unwrap_or(0) as f64
    };
    let rank = |values: &Vec<serde_json::Value>| -> Vec<f64> {
        let ranks = values.iter().enumerate();
        ranks.map(|(key, value)| value.as_f64().unwrap_or_else(|| first(key, value))).collect()
    };
    let mut ranked: Vec<(Vec<f64>, Vec<serde_json::Value>)> =
        found.iter().map(|values| (rank(values), values.clone())).collect();
    ranked.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    ranked.into_iter().map(|(_, values)| values).collect()
}

fn values(case: &Case, keys: &[&str]) -> Vec<serde_json::Value> {
    keys.iter().map(|key| case.get(key).clone()).collect()
}

/// What the cases of a picture have in common, the operation in any case.
fn described(case: &Case, keys: &[&str]) -> String {
    let others =
        case.described(&keys.iter().copied().filter(|k| *k != "operation").collect::<Vec<_>>());
    match (case.text("operation"), others.as_str()) {
        (operation, "") => operation.to_owned(),
        (operation, others) => format!("{operation}, {others}"),
    }
}

/// The values of these fields as they are shown.
fn shown(keys: &[&str], values: &[serde_json::Value]) -> Vec<String> {
    keys.iter().zip(values).map(|(key, found)| value(key, found).for_people()).collect()
}

/// The values in a row, for a label; what is missing is left out.
fn label(keys: &[&str], values: &[serde_json::Value]) -> String {
    let known = keys.iter().zip(values).filter(|(_, value)| !value.is_null());
    let known = known.map(|(key, found)| value(key, found).for_people());
    known.collect::<Vec<_>>().join(" ")
}
