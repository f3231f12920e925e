//! JSON: `schema_version`, `command`, `machine`, `run`, then the sections by their keys. What is missing
//! is null, so that every object of a list has the same names.

use crate::record::{List, Object, Report, Row, SCHEMA_VERSION, Section, Value};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use std::io::{self, Write};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// The cases, one object a line: with the common head, so that each line stands for itself. A report
/// without cases is one line.
pub(super) fn write_lines(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(list) = report.cases() else {
        serde_json::to_writer(&mut *out, report)?;
        return writeln!(out);
    };
    for row in &list.rows {
        serde_json::to_writer(&mut *out, &Line { report, list, row })?;
        writeln!(out)?;
    }
    Ok(())
}

struct Line<'a> {
    report: &'a Report,
    list: &'a List,
    row: &'a Row,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("schema_version", &SCHEMA_VERSION)?;
        map.serialize_entry("command", self.report.command)?;
        for object in [&self.report.machine, &self.report.run] {
            map.serialize_entry(object.key, object)?;
        }
        let fields = self.list.heads.iter().zip(&self.row.values);
        for (head, value) in fields.filter(|(head, _)| !head.key.is_empty()) {
            map.serialize_entry(head.key, value)?;
        }
        map.end()
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("schema_version", &SCHEMA_VERSION)?;
        map.serialize_entry("command", self.command)?;
        for object in [&self.machine, &self.run] {
            map.serialize_entry(object.key, object)?;
        }
        for section in self.sections.iter().filter(|section| !section.key().is_empty()) {
            match section {
                Section::List(list) => map.serialize_entry(list.key, list)?,
                Section::Object(object) => map.serialize_entry(object.key, object)?,
                Section::Picture(_) => {}
            }
        }
        map.end()
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let keys = self.heads.iter().map(|head| head.key);
        to.collect_seq(self.rows.iter().map(|row| Entries(keys.clone().zip(&row.values))))
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Entries(self.fields.iter().map(|(head, value)| (head.key, value))).serialize(to)
    }
}

struct Entries<I>(I);

impl<'a, I: Iterator<Item = (&'static str, &'a Value)> + Clone> Serialize for Entries<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.clone().filter(|(key, _)| !key.is_empty()))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => to.serialize_none(),
            Self::Flag(flag) => to.serialize_bool(*flag),
            Self::Count(count) => to.serialize_u64(*count),
            Self::Text(text) => to.serialize_str(text),
            Self::Words(words) => words.serialize(to),
            Self::List(values) => values.serialize(to),
            Self::Bytes(bytes) => to.serialize_u64(*bytes),
            Self::Ns(number) | Self::GbPerS(number) | Self::Ratio(number) | Self::Share(number) => {
                to.serialize_f64(rounded(*number))
            }
            Self::Named(values) => to.collect_map(values.iter().map(|(key, value)| (key, value))),
            Self::Interval(low, high) => [rounded(*low), rounded(*high)].serialize(to),
            // Thousands of numbers: not each in a line of its own.
            Self::Samples(batches) => {
                let batch = |batch: &Vec<f64>| batch.iter().map(|&ns| rounded(ns)).collect();
                let batches: Vec<Vec<f64>> = batches.iter().map(batch).collect();
                serde_json::value::to_raw_value(&batches).map_err(S::Error::custom)?.serialize(to)
            }
        }
    }
}

/// To a thousandth: no clock here knows more.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
