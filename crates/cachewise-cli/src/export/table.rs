//! Aligned text, at most 80 columns wide.
//!
//! Written here because it is shorter than telling a table crate to draw no lines, to keep to 80
//! columns whatever the terminal says, and where to give way: first the gaps, then the widest text,
//! which goes on in the next line.

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
        wrap(&sheet.heading, WIDTH).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    if sheet.preformatted {
        return sheet.lines.iter().try_for_each(|line| writeln!(out, "{}", line.concat()));
    }
    let mut widths = vec![0; sheet.right.len()];
    for line in sheet.with_titles() {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let gap = fit(&mut widths, &sheet.right);
    for line in sheet.with_titles() {
        let cells: Vec<Vec<String>> =
            line.iter().zip(&widths).map(|(cell, &width)| wrap(cell, width)).collect();
        for row in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = cells.iter().zip(&widths).zip(&sheet.right);
            let padded = cells.map(|((cell, &width), &right)| {
                let part = cell.get(row).map_or("", String::as_str);
                if right { format!("{part:>width$}") } else { format!("{part:<width$}") }
            });
            writeln!(out, "{}", padded.collect::<Vec<_>>().join(gap).trim_end())?;
        }
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

/// Breaks a text between words, or within one that is too long for a line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let letters: Vec<char> = word.chars().collect();
        for (index, part) in letters.chunks(width.max(1)).enumerate() {
            let line = lines.last_mut().filter(|_| index == 0);
            let used = line.as_ref().map_or(width, |line| line.chars().count());
            match line {
                Some(line) if used == 0 => line.extend(part),
                Some(line) if used + 1 + part.len() <= width => {
                    line.push(' ');
                    line.extend(part);
                }
                _ => lines.push(part.iter().collect()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sheet: &Sheet) -> Vec<String> {
        let mut out = Vec::new();
        write_sheet(sheet, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    fn sheet(right: &[bool], rows: &[&[&str]]) -> Sheet {
        let owned = |row: &&[&str]| row.iter().map(|cell| (*cell).to_owned()).collect();
        let mut lines: Vec<Vec<String>> = rows.iter().map(owned).collect();
        let titles = lines.remove(0);
        Sheet { heading: String::new(), titles, right: right.to_vec(), lines, preformatted: false }
    }

    #[test]
    fn numbers_stand_right_and_texts_left() {
        let sheet = sheet(&[false, true], &[&["name", "n"], &["a", "1"], &["bcdef", "100"]]);
        assert_eq!(lines(&sheet), ["name     n", "a        1", "bcdef  100"]);
    }

    #[test]
    fn whatever_comes_fits_in_80_columns_and_nothing_is_lost() {
        let long = "µ".repeat(100);
        let words = "some words that go on and on ".repeat(9);
        let mut sheet =
            sheet(&[false, false, true], &[&["one", "two", "three"], &[&long, &words, "123"]]);
        sheet.heading = "a heading, of many; ".repeat(9);
        let lines = lines(&sheet);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(lines.iter().any(|line| line.ends_with(" 123")));
        let text = lines.concat();
        assert_eq!(text.matches("heading").count(), 9);
        assert_eq!(text.matches('µ').count(), 100);
        assert_eq!(text.matches("words").count(), 9);
    }

    #[test]
    fn texts_are_broken_between_words() {
        assert_eq!(wrap("to be or not", 5), ["to be", "or", "not"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
