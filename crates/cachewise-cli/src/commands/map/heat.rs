//! Who wins where, at a glance: one letter a cell, so that it reads without colour, in 80 columns.

use super::rows::percent;
use crate::record::{Picture, Section};
use crate::size::Size;
use cachewise::variant::Operation;
use cachewise_measure::map::{Cell, Duel, Measured, Share, Side, UseKind, Victim, duel};

const WIDTH: usize = 80;
const LABEL: usize = 9;
const LETTER: usize = 4;
const GAP: usize = 2;
/// From here on a letter is a capital.
const LARGE: f64 = 1.5;

const LEGEND: &str =
    "N, n: non-temporal wins (N: by half or more); T, t: temporal; .: equal; ?: noise";

/// A cell without what the rows and columns say.
fn scenario(cell: &Cell) -> Cell {
    let victim = Victim { bytes: 1, ..cell.victim };
    Cell { size_bytes: 0, used: Share::ALL, victim, ..*cell }
}

/// A cell that belongs to several scenarios is in all of them.
fn belongs(cell: &Cell, scenario: &Cell) -> bool {
    let mut like = self::scenario(cell);
    if cell.used == Share::NONE {
        like.use_kind = scenario.use_kind;
    }
    if cell.victim == Victim::NONE {
        like.victim = scenario.victim;
    }
    like == *scenario
}

/// One picture per scenario.
pub(super) fn pictures(known: &[&Measured], seed: u64) -> Vec<Section> {
    let duels: Vec<(Cell, Duel)> =
        known.iter().filter_map(|measured| Some((measured.cell, duel(measured, seed)?))).collect();
    let mut scenarios: Vec<Cell> = Vec::new();
    let decisive = |cell: &Cell| cell.used != Share::NONE && cell.victim != Victim::NONE;
    let any = duels.iter().any(|(cell, _)| decisive(cell));
    for (cell, _) in duels.iter().filter(|(cell, _)| decisive(cell) || !any) {
        let scenario = scenario(cell);
        if !scenarios.contains(&scenario) {
            scenarios.push(scenario);
        }
    }
    let picture = |scenario: &Cell| {
        let of_it = duels.iter().filter(|(cell, _)| belongs(cell, scenario));
        Section::Picture(Picture {
            heading: heading(scenario),
            lines: grid(&of_it.collect::<Vec<_>>()),
        })
    };
    scenarios.iter().map(picture).collect()
}

fn heading(scenario: &Cell) -> String {
    let Cell { operation, source, use_kind, delay_bytes, threads, page, victim, .. } = *scenario;
    let source = match operation {
        Operation::Copy => format!(", {source} source"),
        Operation::Clear => String::new(),
    };
    let used = if use_kind == UseKind::Read { "read" } else { "written" };
    let when = match delay_bytes {
        0 => "at once".into(),
        bytes => format!("after {}", Size(bytes)),
    };
    let mut text = format!("{operation}{source}; {used} {when}; bystander {}", victim.walk);
    match victim.retouch {
        1 => {}
        0 => text += ", other core",
        more => text += &format!(", {more} times"),
    }
    if threads != 1 {
        text += &format!("; {threads} threads");
    }
    if page != cachewise_measure::Page::Base {
        text += &format!("; {page} pages");
    }
    text
}

/// Rows are sizes; columns the shares, under the bystanders.
fn grid(duels: &[&(Cell, Duel)]) -> Vec<String> {
    let mut sizes: Vec<usize> = duels.iter().map(|(cell, _)| cell.size_bytes).collect();
    let mut victims: Vec<usize> = duels.iter().map(|(cell, _)| cell.victim.bytes).collect();
    let mut shares: Vec<Share> = duels.iter().map(|(cell, _)| cell.used).collect();
    let tidy = |values: &mut Vec<usize>| {
        values.sort_unstable();
        values.dedup();
    };
    tidy(&mut sizes);
    tidy(&mut victims);
    shares.sort_unstable();
    shares.dedup();
    // A share that was looked at in a few lines only, to find where they break even, has no column.
    let lines = sizes.len() * victims.len();
    let count = |share: Share| duels.iter().filter(|(cell, _)| cell.used == share).count();
    shares.retain(|&share| 3 * count(share) >= lines);
    let block = LETTER * shares.len() + GAP;
    let per_row = ((WIDTH - LABEL) / block.max(1)).max(1);
    let mut lines = Vec::new();
    for victims in victims.chunks(per_row) {
        let mut heads = format!("{:LABEL$}", "bystander");
        let mut used = format!("{:LABEL$}", "used, %");
        for &victim in victims {
            let name = if victim == 0 { "none".into() } else { Size(victim).short() };
            heads += &format!("{:GAP$}{name:>width$}", "", width = block - GAP);
            used += &format!("{:GAP$}", "");
            for share in &shares {
                let percent = percent(share.as_f64());
                used += &format!("{:>LETTER$}", percent.trim_end_matches(" %"));
            }
        }
        lines.extend([heads, used]);
        for &size in &sizes {
            let mut row = format!("{:LABEL$}", Size(size).short());
            for &victim in victims {
                row += &format!("{:GAP$}", "");
                for &share in &shares {
                    let at = |(cell, _): &&&(Cell, Duel)| {
                        (cell.size_bytes, cell.victim.bytes, cell.used) == (size, victim, share)
                    };
                    let letter = duels.iter().find(at).map_or(' ', |(_, duel)| letter(duel));
                    row += &format!("{letter:>LETTER$}");
                }
            }
            lines.push(row.trim_end().to_owned());
        }
    }
    lines.push(LEGEND.to_owned());
    lines
}

fn letter(duel: &Duel) -> char {
    let large = duel.ratio.median.ln().abs() >= LARGE.ln();
    match (duel.side(), large) {
        (Side::Neither, _) => '.',
        (Side::Unclear, _) => '?',
        (Side::NonTemporal, false) => 'n',
        (Side::NonTemporal, true) => 'N',
        (Side::Temporal, false) => 't',
        (Side::Temporal, true) => 'T',
    }
}
