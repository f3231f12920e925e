//! The formats: one file each, all from one [`Report`].

mod csv;
mod json;
mod markdown;
mod table;

use crate::record::{Head, List, Report, Row, Section, Value};
use clap::ValueEnum;
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, at most 80 columns wide.
    Table,
    /// For scripts: everything, units in the names.
    Json,
    /// For spreadsheets: the list of cases, or all lists if there are no cases.
    Csv,
    /// For reports.
    Markdown,
}

pub(crate) fn write(report: &Report, format: Format, lines: bool) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match format {
        Format::Table => table::write(report, &mut out)?,
        Format::Json if lines => json::write_lines(report, &mut out)?,
        Format::Json => json::write(report, &mut out)?,
        Format::Csv => csv::write(report, &mut out)?,
        Format::Markdown => markdown::write(report, &mut out)?,
    }
    out.flush()
}

/// A section as people see it: under a heading, titles over texts.
struct Sheet {
    heading: String,
    titles: Vec<String>,
    /// Numbers stand to the right.
    right: Vec<bool>,
    lines: Vec<Vec<String>>,
    /// Each line is one text, to be left as it is.
    preformatted: bool,
}

impl Sheet {
    /// The titles, if there are any, and the lines.
    fn with_titles(&self) -> impl Iterator<Item = &Vec<String>> {
        Some(&self.titles).filter(|titles| !titles.is_empty()).into_iter().chain(&self.lines)
    }
}

/// All sheets of a report. A list makes one per group, an object one with a line per field.
fn sheets(report: &Report) -> Vec<Sheet> {
    let sheets = report.sections.iter().flat_map(|section| match section {
        Section::List(list) => list_sheets(list),
        Section::Object(object) => {
            let shown = object.fields.iter().filter_map(|(head, v)| Some((head.title?, v)));
            let lines: Vec<_> =
                shown.map(|(title, v)| vec![title.to_owned(), v.for_people()]).collect();
            let (heading, titles, right) = (object.key.to_owned(), vec![], vec![false; 2]);
            vec![Sheet { heading, titles, right, lines, preformatted: false }]
        }
        Section::Picture(picture) => {
            let (heading, titles, right) = (picture.heading.clone(), vec![], vec![false]);
            let lines = picture.lines.iter().map(|line| vec![line.clone()]).collect();
            vec![Sheet { heading, titles, right, lines, preformatted: true }]
        }
    });
    sheets.filter(|sheet| !sheet.lines.is_empty()).collect()
}

fn list_sheets(list: &List) -> Vec<Sheet> {
    let shown: Vec<(usize, &'static str)> = list
        .heads
        .iter()
        .enumerate()
        .filter_map(|(index, head): (_, &Head)| Some((index, head.title?)))
        .collect();
    let rows: Vec<&Row> = list.rows.iter().filter(|row| !row.only_data).collect();
    let sheet = |rows: &[&Row]| {
        let number = |index: usize| {
            let mut values = rows.iter().map(|row| &row.values[index]);
            let mut known = values.by_ref().filter(|value| **value != Value::Missing).peekable();
            known.peek().is_some() && known.all(Value::is_number)
        };
        Sheet {
            heading: rows.first().map_or(String::new(), |row| row.group.clone()),
            titles: shown.iter().map(|&(_, title)| title.to_owned()).collect(),
            right: shown.iter().map(|&(index, _)| number(index)).collect(),
            lines: rows
                .iter()
                .map(|row| shown.iter().map(|&(i, _)| row.values[i].for_people()).collect())
                .collect(),
            preformatted: false,
        }
    };
    rows.chunk_by(|a, b| a.group == b.group).map(sheet).collect()
}
