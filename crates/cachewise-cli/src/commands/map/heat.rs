//! Who wins where, at a glance: one letter a cell, so that it reads without colour, in 80 columns.

use crate::commands::cell::{bystander, of_any_size, percent, used_when};
use crate::record::{Picture, Section};
use crate::size::Size;
use cachewise_measure::map::{Cell, Duel, Share, Side, Victim};

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
pub(super) fn pictures(duels: &[(Cell, Duel)]) -> Vec<Section> {
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
        let of_it = duels.iter().filter(|(cell, _)| belongs(cell, scenario)).collect::<Vec<_>>();
        Section::Picture(Picture { heading: heading(scenario, &of_it), lines: grid(&of_it) })
    };
    scenarios.iter().map(picture).collect()
}

fn heading(scenario: &Cell, duels: &[&(Cell, Duel)]) -> String {
    let used = duels.iter().map(|(cell, _)| cell.used).max().unwrap_or(Share::NONE);
    let used = used_when(&Cell { used, ..*scenario });
    let mut text = format!("{}; {used}", of_any_size(scenario));
    let has_bystander = duels.iter().any(|(cell, _)| cell.victim != Victim::NONE);
    if let Some(how) = bystander(&scenario.victim).filter(|_| has_bystander) {
        text += &format!("; bystander: {how}");
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
    let widest = (WIDTH - LABEL - GAP) / LETTER;
    let mut lines = Vec::new();
    for shares in shares.chunks(widest) {
        columns(duels, &sizes, &victims, shares, &mut lines);
    }
    lines.push(LEGEND.to_owned());
    lines
}

/// As many bystanders beside each other as there is room for.
fn columns(
    duels: &[&(Cell, Duel)],
    sizes: &[usize],
    victims: &[usize],
    shares: &[Share],
    lines: &mut Vec<String>,
) {
    let name = |bytes: usize| if bytes == 0 { "none".into() } else { Size(bytes).short() };
    let names = victims.iter().map(|&bytes| name(bytes).len());
    let block = names.chain([LETTER * shares.len()]).max().unwrap_or(0);
    let line = |label: String, victims: &[usize], text: &dyn Fn(usize) -> String| {
        let blocks = victims.iter().map(|&bytes| format!("{:GAP$}{:>block$}", "", text(bytes)));
        format!("{label:LABEL$}{}", blocks.collect::<String>()).trim_end().to_owned()
    };
    let each = |text: &dyn Fn(Share) -> String| -> String {
        shares.iter().map(|&share| format!("{:>LETTER$}", text(share))).collect()
    };
    let used = each(&|share| percent(share.as_f64()).trim_end_matches(" %").to_owned());
    for victims in victims.chunks((WIDTH - LABEL) / (block + GAP)) {
        lines.push(line("bystander".into(), victims, &name));
        lines.push(line("used, %".into(), victims, &|_| used.clone()));
        lines.extend(sizes.iter().map(|&size| {
            let letters = |victim: usize| {
                each(&|share| {
                    let at = |(cell, _): &&&(Cell, Duel)| {
                        (cell.size_bytes, cell.victim.bytes, cell.used) == (size, victim, share)
                    };
                    let letter = duels.iter().find(at).map_or(' ', |(_, duel)| letter(duel));
                    letter.to_string()
                })
            };
            line(Size(size).short(), victims, &letters)
        }));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise::variant::Operation;
    use cachewise_measure::map::{Core, UseKind, Walk};
    use cachewise_measure::stats::Estimate;
    use cachewise_measure::{Page, Temperature};

    const PLAIN: Cell = Cell {
        operation: Operation::Copy,
        size_bytes: 4096,
        source: Temperature::Hot,
        page: Page::Base,
        threads: 1,
        used: Share::ALL,
        use_kind: UseKind::Read,
        delay_bytes: 0,
        victim: Victim::NONE,
    };

    fn drawn(cells: &[Cell]) -> Vec<Picture> {
        let duel = |ratio| Duel {
            nontemporal: "nt".into(),
            temporal: "libc".into(),
            ratio: Estimate { median: ratio, low: ratio, high: ratio },
        };
        let duels: Vec<(Cell, Duel)> = cells.iter().map(|&cell| (cell, duel(1.2))).collect();
        let picture = |section| match section {
            Section::Picture(picture) => picture,
            other => panic!("{other:?}"),
        };
        pictures(&duels).into_iter().map(picture).collect()
    }

    #[test]
    fn headings_say_what_rows_and_columns_do_not() {
        let unused = Cell { used: Share::NONE, ..PLAIN };
        let victim = |core, retouch| Victim { bytes: 4096, walk: Walk::Dependent, core, retouch };
        for (cells, heading) in [
            (vec![unused, PLAIN], "copy, hot source; read at once"),
            (vec![unused], "copy, hot source; unused"),
            (
                vec![Cell { operation: Operation::Clear, use_kind: UseKind::Write, ..PLAIN }],
                "clear; written at once",
            ),
            (
                vec![unused, PLAIN, Cell { victim: victim(Core::Same, 1), ..PLAIN }],
                "copy, hot source; read at once; bystander: dependent loads, same core",
            ),
            (
                vec![Cell { victim: victim(Core::Other, 0), delay_bytes: 32768, ..PLAIN }],
                "copy, hot source; read after 32 KiB of traffic; bystander: dependent loads, other \
                 core",
            ),
            (
                vec![Cell { victim: victim(Core::Same, 3), threads: 2, page: Page::Huge, ..PLAIN }],
                "copy, hot source, 2MiB pages, 2 threads; read at once; bystander: dependent loads, \
                 same core, 3 times",
            ),
        ] {
            let headings: Vec<String> = drawn(&cells).into_iter().map(|p| p.heading).collect();
            assert_eq!(headings, [heading]);
        }
    }

    #[test]
    fn a_picture_of_many_shares_or_bystanders_fits_80_columns() {
        let share = |n: usize| Share::new(n as f64 / 40.0).unwrap();
        let shares: Vec<Cell> = (0..=40).map(|n| Cell { used: share(n), ..PLAIN }).collect();
        let victim = |n| Victim {
            bytes: 100_usize << n,
            core: Core::Same,
            walk: Walk::Dependent,
            retouch: 1,
        };
        let victims: Vec<Cell> = (0..30).map(|n| Cell { victim: victim(n), ..PLAIN }).collect();
        for cells in [shares, victims] {
            for picture in drawn(&cells) {
                let letters = |line: &String| line.matches(" n").count();
                let drawn: usize = picture.lines.iter().map(letters).sum();
                assert!(drawn >= cells.len(), "{:#?}", picture.lines);
                assert!(picture.lines.iter().all(|line| line.chars().count() <= WIDTH));
            }
        }
    }
}
