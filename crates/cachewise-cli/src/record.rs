//! One record of a result, from which all formats are made.
//!
//! A report is a list of sections. A section is a list of rows under columns, or an object with
//! named fields. A column has a key (JSON, CSV) and perhaps a title (tables); without a title it is
//! only for machines. A value knows its unit and so how it is written for people.

use crate::size::Bytes;

pub(crate) const SCHEMA_VERSION: u64 = 1;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Missing,
    Flag(bool),
    Count(u64),
    Text(String),
    Words(Vec<String>),
    Bytes(u64),
    Ns(f64),
    GbPerS(f64),
    Ratio(f64),
    Share(f64),
    /// Low and high of a ratio.
    Interval(f64, f64),
    List(Vec<Value>),
    /// Values with names, one level deeper.
    Named(Vec<(&'static str, Value)>),
    /// Raw samples, batch by batch.
    Samples(Vec<Vec<f64>>),
}

#[derive(Clone, Copy)]
pub(crate) struct Column<R: 'static> {
    pub(crate) key: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) value: fn(&R) -> Value,
    /// Tells the row from others: two results of one case agree in it.
    pub(crate) identifies: bool,
}

/// The same column, which identifies.
pub(crate) const fn identifying<R>(column: Column<R>) -> Column<R> {
    let Column { key, title, value, .. } = column;
    Column { key, title, value, identifies: true }
}

/// A column for machines and people.
pub(crate) const fn shown<R>(
    key: &'static str,
    title: &'static str,
    value: fn(&R) -> Value,
) -> Column<R> {
    Column { key, title: Some(title), value, identifies: false }
}

/// A column for people.
pub(crate) const fn only_shown<R>(title: &'static str, value: fn(&R) -> Value) -> Column<R> {
    Column { key: "", title: Some(title), value, identifies: false }
}

/// A column for machines.
pub(crate) const fn data<R>(key: &'static str, value: fn(&R) -> Value) -> Column<R> {
    Column { key, title: None, value, identifies: false }
}

/// A column's name without its row type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Empty: for people only.
    pub(crate) key: &'static str,
    pub(crate) title: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Row {
    /// Rows of one group stand under one heading.
    pub(crate) group: String,
    /// Left out of tables.
    pub(crate) only_data: bool,
    pub(crate) values: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct List {
    pub(crate) key: &'static str,
    /// Whether these are the report's cases: what goes line by line, and into CSV.
    pub(crate) are_cases: bool,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: &'static str,
    pub(crate) fields: Vec<(Head, Value)>,
}

/// For people: lines that are left as they are.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) heading: String,
    pub(crate) lines: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Section {
    List(List),
    Object(Object),
    Picture(Picture),
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) command: &'static str,
    /// The common head's machine.
    pub(crate) machine: Object,
    /// And what was run on it.
    pub(crate) run: Object,
    pub(crate) sections: Vec<Section>,
}

impl Report {
    /// The list of its cases, if it is about any.
    pub(crate) fn cases(&self) -> Option<&List> {
        self.sections.iter().find_map(|section| match section {
            Section::List(list) if list.are_cases => Some(list),
            _ => None,
        })
    }
}

/// What a row of a list adds to its values.
pub(crate) trait Grouped {
    fn group(&self) -> String {
        String::new()
    }

    fn only_data(&self) -> bool {
        false
    }
}

impl Section {
    /// Empty: for people only.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::List(list) => list.key,
            Self::Object(object) => object.key,
            Self::Picture(_) => "",
        }
    }

    pub(crate) fn list<R: Grouped>(
        key: &'static str,
        columns: &[Column<R>],
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        Self::List(List::new(key, columns, rows))
    }

    /// A list that is left out of tables.
    pub(crate) fn data<R: Grouped>(
        key: &'static str,
        columns: &[Column<R>],
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let mut list = List::new(key, columns, rows);
        list.rows.iter_mut().for_each(|row| row.only_data = true);
        Self::List(list)
    }

    /// The same, as the list of the report's cases.
    pub(crate) fn of_cases(mut self) -> Self {
        if let Self::List(list) = &mut self {
            list.are_cases = true;
        }
        self
    }

    pub(crate) fn object<R>(key: &'static str, columns: &[Column<R>], of: &R) -> Self {
        Self::Object(Object::new(key, columns, of))
    }
}

impl List {
    fn new<R: Grouped>(
        key: &'static str,
        columns: &[Column<R>],
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let heads = columns.iter().map(|c| Head { key: c.key, title: c.title }).collect();
        let row = |row: R| Row {
            group: row.group(),
            only_data: row.only_data(),
            values: columns.iter().map(|column| (column.value)(&row)).collect(),
        };
        Self { key, are_cases: false, heads, rows: rows.into_iter().map(row).collect() }
    }
}

impl Object {
    pub(crate) fn new<R>(key: &'static str, columns: &[Column<R>], of: &R) -> Self {
        let field = |c: &Column<R>| (Head { key: c.key, title: c.title }, (c.value)(of));
        Self { key, fields: columns.iter().map(field).collect() }
    }
}

impl Value {
    pub(crate) fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    pub(crate) fn bytes(bytes: usize) -> Self {
        Self::Bytes(bytes as u64)
    }

    pub(crate) fn or_missing<T>(value: Option<T>, make: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Missing, make)
    }

    pub(crate) fn is_number(&self) -> bool {
        !matches!(
            self,
            Self::Missing
                | Self::Flag(_)
                | Self::Text(_)
                | Self::Words(_)
                | Self::Named(_)
                | Self::List(_)
        )
    }

    /// As people read it.
    pub(crate) fn for_people(&self) -> String {
        match self {
            Self::Missing => "-".into(),
            Self::Flag(true) => "yes".into(),
            Self::Flag(false) => "no".into(),
            Self::Count(count) => count.to_string(),
            Self::Text(text) => text.clone(),
            Self::Words(words) if words.is_empty() => "-".into(),
            Self::Words(words) => words.join(" "),
            Self::List(values) => {
                values.iter().map(Self::for_people).collect::<Vec<_>>().join(", ")
            }
            Self::Bytes(bytes) => Bytes(*bytes).short(),
            Self::Ns(ns) => time(*ns),
            Self::GbPerS(rate) => three_digits(*rate),
            Self::Ratio(ratio) => format!("{ratio:.2}x"),
            // A word per page is not nothing.
            Self::Share(share) if (0.0005..0.01).contains(share) => {
                format!("{:.1} %", share * 100.0)
            }
            Self::Share(share) => format!("{:.0} %", share * 100.0),
            Self::Interval(low, high) => format!("{low:.2}-{high:.2}"),
            Self::Named(values) => {
                let each =
                    values.iter().map(|(key, value)| format!("{key} {}", value.for_people()));
                each.collect::<Vec<_>>().join(", ")
            }
            Self::Samples(samples) => samples.iter().map(Vec::len).sum::<usize>().to_string(),
        }
    }
}

fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        ..999.5 => (ns, "ns"),
        ..999.5e3 => (ns / 1e3, "µs"),
        ..999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// At least three digits and no more after the point than that takes.
fn three_digits(value: f64) -> String {
    match value.abs() {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, text) in [
            (Value::Ns(0.5), "0.50 ns"),
            (Value::Ns(12.34), "12.3 ns"),
            (Value::Ns(1234.0), "1.23 µs"),
            (Value::Ns(2.5e9), "2.50 s"),
            (Value::Ns(-374.95), "-375 ns"),
            (Value::Ns(999.7), "1.00 µs"),
            (Value::GbPerS(123.4), "123"),
            (Value::Share(0.873), "87 %"),
            (Value::Share(0.002), "0.2 %"),
            (Value::Share(0.0), "0 %"),
            (Value::Ratio(1.0449), "1.04x"),
            (Value::Missing, "-"),
        ] {
            assert_eq!(value.for_people(), text);
        }
    }
}
