//! The numbers as they are in the file, names, units and digits.

use super::markup::{Element, element};
use super::without;
use crate::results::{Case, Fields, Kind, samples as read_samples};
use serde_json::Value;
use std::collections::BTreeSet;

/// All figures of these cases.
pub(super) fn numbers(cases: &[&Case]) -> Vec<Element> {
    list(&cases.iter().map(|case| &case.fields).collect::<Vec<_>>())
}

/// An object, or a list of them.
pub(super) fn other(found: &Value) -> Vec<Element> {
    match found {
        Value::Object(fields) => list(&[fields]),
        Value::Array(items) => list(&items.iter().filter_map(Value::as_object).collect::<Vec<_>>()),
        _ => vec![],
    }
}

/// A field of these rows, in the order in which they come.
struct Column<'a> {
    key: &'a str,
    /// The same in all rows: said once.
    is_constant: bool,
    is_number: bool,
}

fn columns<'a>(rows: &[&'a Fields]) -> Vec<Column<'a>> {
    let mut keys: Vec<&String> = Vec::new();
    let mut seen = BTreeSet::new();
    keys.extend(rows.iter().flat_map(|row| row.keys()).filter(|key| seen.insert(*key)));
    let column = |key: &'a String| {
        let values = || rows.iter().map(|row| row.get(key).unwrap_or(&Value::Null));
        let is_shown = !values().any(is_samples) && values().any(|value| !value.is_null());
        is_shown.then(|| Column {
            key,
            is_constant: rows.len() > 1 && values().zip(values().skip(1)).all(|(a, b)| a == b),
            is_number: values().any(Value::is_number),
        })
    };
    keys.into_iter().filter_map(column).collect()
}

fn list(rows: &[&Fields]) -> Vec<Element> {
    let Some(first) = rows.first() else { return vec![] };
    let (once, columns): (Vec<_>, Vec<_>) = columns(rows).into_iter().partition(|c| c.is_constant);
    let get = |row: &Fields, column: &Column| row.get(column.key).map_or(String::new(), raw);
    let mut content = Vec::new();
    if !once.is_empty() {
        let same = once.iter().map(|column| format!("{} {}", column.key, get(first, column)));
        let same = same.collect::<Vec<_>>().join(", ");
        content.push(element("p").text(format_args!("The same in all rows: {same}.")));
    }
    let class = |cell: Element, column: &Column| match column.is_number {
        true => cell.class("number"),
        false => cell,
    };
    let head =
        columns.iter().map(|column| class(breakable(column.key).with("scope", "col"), column));
    let row = |row: &&Fields| {
        let cell = |column: &Column| class(element("td"), column).text(get(row, column));
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

/// The raw samples of each of these cases, called by the fields that tell them apart.
pub(super) fn samples(cases: &[&Case], kind: Kind, names: &[&'static str]) -> Vec<Element> {
    let last = without(names, &["variant"]);
    let name = |case: &Case| format!("{}: {}", case.text("variant"), case.described(&last));
    let key = kind.time().samples;
    let sampled = cases.iter().filter(|case| is_samples(case.get(key)));
    let row = |case: &&Case| {
        element("tr")
            .child(element("td").text(name(case)))
            .child(element("td").class("samples").text(batches(case.get(key))))
    };
    let rows: Vec<Element> = sampled.map(row).collect();
    if rows.is_empty() {
        return vec![element("p").text("The file holds none.")];
    }
    let text = format!(
        "Of {}, in the order in which they were taken; a bar parts batches, each in memory mapped \
         anew. Those of the parts, if there are any, are in the file.",
        kind.time().median
    );
    vec![element("p").text(text), table(&["case", "samples"], rows)]
}

/// A table that scrolls by itself.
pub(super) fn table(titles: &[&str], rows: Vec<Element>) -> Element {
    let head = titles.iter().map(|title| element("th").with("scope", "col").text(title));
    let table = element("table")
        .child(element("thead").child(element("tr").children(head)))
        .child(element("tbody").children(rows));
    scrolling(table)
}

fn batches(value: &Value) -> String {
    let samples = read_samples(value).unwrap_or_default();
    let batch =
        |batch: &Vec<f64>| batch.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    samples.batches().iter().map(batch).collect::<Vec<_>>().join(" | ")
}
