//! A cell in words, the same wherever it is spoken of: headings, verdicts, progress.

use crate::size::Size;
use cachewise::variant::Operation;
use cachewise_measure::Page;
use cachewise_measure::map::{Cell, Share, UseKind, Victim};

/// What cells that are measured together have in common.
pub(super) fn soil(cell: &Cell) -> String {
    format!("{} of {}{}", cell.operation, Size(cell.size_bytes), ground(cell))
}

/// The same of any size.
pub(super) fn of_any_size(cell: &Cell) -> String {
    format!("{}{}", cell.operation, ground(cell))
}

fn ground(cell: &Cell) -> String {
    let Cell { operation, source, page, threads, .. } = *cell;
    let mut text = String::new();
    if operation == Operation::Copy {
        text += &format!(", {source} source");
    }
    if page != Page::Base {
        text += &format!(", {page} pages");
    }
    if threads != 1 {
        text += &format!(", {threads} threads");
    }
    text
}

/// What is done to the result.
pub(super) fn used(kind: UseKind) -> &'static str {
    match kind {
        UseKind::Read => "read",
        UseKind::Write => "written",
    }
}

/// The same, and after how much else.
pub(super) fn used_when(cell: &Cell) -> String {
    let used = used(cell.use_kind);
    match (cell.used, cell.delay_bytes) {
        (Share::NONE, 0) => "unused".into(),
        (Share::NONE, bytes) => format!("unused, {} of traffic", Size(bytes)),
        (_, 0) => format!("{used} at once"),
        (_, bytes) => format!("{used} after {} of traffic", Size(bytes)),
    }
}

/// How a bystander goes through its working set, if there is one.
pub(super) fn bystander(victim: &Victim) -> Option<String> {
    let Victim { bytes, walk, core, retouch } = *victim;
    let often = match retouch {
        0 | 1 => String::new(),
        often => format!(", {often} times"),
    };
    (bytes > 0).then(|| format!("{walk} loads, {core} core{often}"))
}

/// All of a cell, in a few words.
pub(super) fn described(cell: &Cell) -> String {
    let share = match cell.used {
        Share::NONE => String::new(),
        share => percent(share.as_f64()) + " ",
    };
    let mut text = format!("{}, {share}{}", soil(cell), used_when(cell));
    if cell.victim != Victim::NONE {
        text += &format!(", bystander {}", Size(cell.victim.bytes).short());
    }
    text
}

/// Whole percents, and tenths where that would be none.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}
