//! Aligned text, at most 80 columns wide.
//!
//! Written here because it is shorter than telling a table crate to draw no lines, to keep to 80
//! columns whatever the terminal says, and where to give way: first the gaps, then the widest text.

use super::{Sheet, sheets};
use crate::record::Report;
use std::io::{self, Write};

const WIDTH: usize = 80;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for (index, sheet) in sheets(report).into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_sheet(&sheet, out)?;
    }
    Ok(())
}

fn write_sheet(sheet: &Sheet, out: &mut dyn Write) -> io::Result<()> {
    if !sheet.heading.is_empty() {
        writeln!(out, "{}", sheet.heading)?;
    }
    let titles: Vec<String> = sheet.titles.iter().map(|title| (*title).to_owned()).collect();
    let titles = (!titles.is_empty()).then_some(&titles);
    let mut widths = vec![0; sheet.right.len()];
    for line in titles.into_iter().chain(&sheet.lines) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let gap = fit(&mut widths, &sheet.right);
    for line in titles.into_iter().chain(&sheet.lines) {
        let cells = line.iter().zip(&widths).zip(&sheet.right).map(|((cell, &width), &right)| {
            let cell = shorten(cell, width);
            if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let text = cells.collect::<Vec<_>>().join(gap);
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// Narrows the columns until they fit, and says by what they are parted.
fn fit(widths: &mut [usize], right: &[bool]) -> &'static str {
    let total = |widths: &[usize], gap: usize| {
        widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
    };
    if total(widths, 2) <= WIDTH {
        return "  ";
    }
    while total(widths, 1) > WIDTH {
        let texts = widths.iter_mut().zip(right).filter(|(_, right)| !**right);
        match texts.map(|(width, _)| width).max() {
            Some(widest) if *widest > 1 => *widest -= 1,
            _ => break,
        }
    }
    " "
}

fn shorten(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    cell.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sheet: &Sheet) -> Vec<String> {
        let mut out = Vec::new();
        write_sheet(sheet, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn numbers_stand_right_and_texts_left() {
        let sheet = Sheet {
            heading: "group".into(),
            titles: vec!["name", "n"],
            right: vec![false, true],
            lines: vec![vec!["a".into(), "1".into()], vec!["bcdef".into(), "100".into()]],
        };
        assert_eq!(lines(&sheet), ["group", "name     n", "a        1", "bcdef  100"]);
    }

    #[test]
    fn whatever_comes_fits_in_80_columns() {
        let sheet = Sheet {
            heading: String::new(),
            titles: vec!["one", "two", "three"],
            right: vec![false, false, true],
            lines: vec![vec!["µ".repeat(100), "y".repeat(70), "123".into()]],
        };
        let lines = lines(&sheet);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(lines[1].ends_with(" 123") && lines[1].contains('…'));
    }
}
