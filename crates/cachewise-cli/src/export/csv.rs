//! Comma-separated values (RFC 4180): one table, the cases, since tools read no more than one. A
//! report without cases has all its lists, an empty line between two. Objects are for JSON.

use crate::record::{List, Report, Section, Value};
use std::io::{self, Write};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if let Some(cases) = report.cases() {
        return write_list(cases, out);
    }
    let for_machines = report.sections.iter().filter(|section| !section.key().is_empty());
    let lists = for_machines.filter_map(|section| match section {
        Section::List(list) => Some(list),
        Section::Object(_) | Section::Picture(_) => None,
    });
    for (index, list) in lists.enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_list(list, out)?;
    }
    Ok(())
}

fn write_list(list: &List, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let wanted = |index: &usize| {
        let is_samples = |v: &Value| matches!(v, Value::Samples(_));
        !list.heads[*index].key.is_empty()
            && !list.rows.iter().any(|row| is_samples(&row.values[*index]))
    };
    let wanted: Vec<usize> = (0..list.heads.len()).filter(wanted).collect();
    writer.write_record(wanted.iter().map(|&index| list.heads[index].key))?;
    for row in &list.rows {
        writer.write_record(wanted.iter().map(|&index| cell(&row.values[index])))?;
    }
    writer.flush()
}

/// As in JSON, without quotes; what is missing is empty.
fn cell(value: &Value) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Text(text) => text.clone(),
        Value::Words(words) => words.join(" "),
        Value::List(values) => values.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
