//! Tables of GitHub's markdown.

use super::sheets;
use crate::record::Report;
use std::io::{self, Write};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for (index, sheet) in sheets(report).into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        if !sheet.heading.is_empty() {
            writeln!(out, "**{}**\n", sheet.heading)?;
        }
        if sheet.preformatted {
            writeln!(out, "```text")?;
            sheet.lines.iter().try_for_each(|line| writeln!(out, "{}", line.concat()))?;
            writeln!(out, "```")?;
            continue;
        }
        // Every table has a header there, even an empty one.
        let mut titles = sheet.titles.clone();
        titles.resize(sheet.right.len(), String::new());
        line(&titles, out)?;
        let rule: Vec<String> =
            sheet.right.iter().map(|&r| if r { "---:" } else { "---" }.to_owned()).collect();
        line(&rule, out)?;
        sheet.lines.iter().try_for_each(|cells| line(cells, out))?;
    }
    Ok(())
}

fn line(cells: &[String], out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(out, "| {} |", cells.join(" | "))
}
