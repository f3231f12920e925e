//! The numbers as they are in the file, names, units and digits.

use super::markup::{Element, element};
use super::without;
use crate::results::{Case, Fields, Results, samples as read_samples};
use serde_json::Value;
use std::collections::BTreeMap;

/// All figures of all cases, then whatever else the file holds.
pub(super) fn numbers(results: &Results) -> Vec<Element> {
    let rows: Vec<&Fields> = results.cases.iter().map(|case| &case.fields).collect();
    let mut content = list(results.kind.list(), &rows);
    for (key, other) in &results.others {
        let rows: Vec<&Fields> = match other {
            Value::Object(fields) => vec![fields],
            Value::Array(items) => items.iter().filter_map(Value::as_object).collect(),
            _ => vec![],
        };
        content.extend(list(key, &rows));
    }
    content
}

fn list(heading: &str, rows: &[&Fields]) -> Vec<Element> {
    let mut keys: Vec<&String> = Vec::new();
    let mut seen = BTreeMap::new();
    for key in rows.iter().flat_map(|row| row.keys()) {
        if seen.insert(key, ()).is_none() {
            keys.push(key);
        }
    }
    let get = |row: &Fields, key: &str| row.get(key).cloned().unwrap_or(Value::Null);
    let is_sample = |key: &str| rows.iter().any(|row| is_samples(&get(row, key)));
    keys.retain(|key| !is_sample(key) && rows.iter().any(|row| !get(row, key).is_null()));
    // What is the same in all rows is said once.
    let constant = |key: &str| {
        rows.len() > 1 && rows.windows(2).all(|pair| get(pair[0], key) == get(pair[1], key))
    };
    let (once, columns): (Vec<&String>, Vec<&String>) = keys.into_iter().partition(|k| constant(k));
    let mut content = vec![element("h3").text(heading)];
    if let Some(first) = rows.first().filter(|_| !once.is_empty()) {
        let same = once.iter().map(|key| format!("{key} {}", raw(&get(first, key))));
        let same = same.collect::<Vec<_>>().join(", ");
        content.push(element("p").text(format_args!("The same in all rows: {same}.")));
    }
    let number = |key: &str| rows.iter().any(|row| get(row, key).is_number());
    let class = |cell: Element, key: &str| if number(key) { cell.class("number") } else { cell };
    let head = columns.iter().map(|key| class(breakable(key).with("scope", "col"), key));
    let row = |row: &&Fields| {
        let cell = |key: &&String| class(element("td"), key).text(raw(&get(row, key)));
        element("tr").children(columns.iter().map(cell))
    };
    let table = element("table")
        .child(element("thead").child(element("tr").children(head)))
        .child(element("tbody").children(rows.iter().map(row)));
    content.push(scrolling(table));
    content
}

/// A heading that may be broken behind each of its words.
fn breakable(key: &str) -> Element {
    let words = key.split_inclusive('_');
    words.fold(element("th"), |head, word| head.text(word).child(element("wbr")))
}

/// A region that scrolls by itself, by keys too.
fn scrolling(table: Element) -> Element {
    let region = element("div").class("scroll").with("tabindex", 0).with("role", "region");
    region.with("aria-label", "table").child(table)
}

fn raw(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(raw).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn is_samples(value: &Value) -> bool {
    let is_batch = |item: &Value| item.is_number() || item.is_array();
    value.as_array().is_some_and(|items| items.iter().all(is_batch))
        && read_samples(value).is_some()
}

/// The raw samples of each case, folded away on the screen.
pub(super) fn samples(results: &Results) -> Vec<Element> {
    let varying = Results::varying(results.kind, &[results]);
    let varying = if varying.is_empty() { vec!["variant"] } else { varying };
    let last = without(&varying, &["variant"]);
    let name = |case: &Case| format!("{}: {}", case.text("variant"), case.described(&last));
    let key = results.kind.time().samples;
    let sampled = results.cases.iter().filter(|case| is_samples(case.get(key)));
    let row = |case: &Case| {
        element("tr")
            .child(element("td").text(name(case)))
            .child(element("td").class("samples").text(batches(case.get(key))))
    };
    let rows: Vec<Element> = sampled.map(row).collect();
    if rows.is_empty() {
        return vec![element("p").text("The file holds none.")];
    }
    let head = ["case", "samples"].map(|title| element("th").with("scope", "col").text(title));
    let table = element("table")
        .child(element("thead").child(element("tr").children(head)))
        .child(element("tbody").children(rows));
    let text = format!(
        "Of {}, in the order in which they were taken; a bar parts batches, each in memory mapped \
         anew. Those of the parts, if there are any, are in the file.",
        results.kind.time().median
    );
    let summary = element("summary").text("All samples, case by case");
    vec![element("p").text(text), element("details").child(summary).child(scrolling(table))]
}

fn batches(value: &Value) -> String {
    let samples = read_samples(value).unwrap_or_default();
    let batch =
        |batch: &Vec<f64>| batch.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    samples.batches().iter().map(batch).collect::<Vec<_>>().join(" | ")
}
