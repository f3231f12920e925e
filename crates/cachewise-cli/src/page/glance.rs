//! A map at a glance: sizes against shares, in the plainest scenario and beside the bystander that
//! most cells have. What else there is stands scenario by scenario, where the sizes lead.

use super::heat::{self, Heat, Row};
use super::map::RATIO;
use super::markup::element;
use super::{SCENARIOS, Section, figure, place};
use crate::record::Value;
use crate::size::Size;
use cachewise::variant::Operation;
use cachewise_measure::Page;
use cachewise_measure::map::{Cell, Share, UseKind, Victim};
use std::cmp::Reverse;

/// A cell, its outcome, and in which of the page's groups it is.
pub(super) struct Known<'a> {
    pub(super) group: usize,
    pub(super) cell: Cell,
    pub(super) contest: &'a heat::Cell,
}

pub(super) fn section(known: &[Known]) -> Option<Section> {
    let delay_bytes = known.iter().map(|known| known.cell.delay_bytes).min()?;
    let plain = |known: &&Known| known.cell.delay_bytes == delay_bytes;
    let known: Vec<&Known> = known.iter().filter(plain).collect();
    let beside = [Some(Victim::NONE), usual_bystander(&known)];
    let scenarios = kinds(&known)
        .into_iter()
        .flat_map(|kind| beside.into_iter().flatten().map(move |victim| Cell { victim, ..kind }));
    let pictures = scenarios.filter_map(|scenario| {
        let of_it: Vec<&Known> =
            known.iter().copied().filter(|known| belongs(&known.cell, &scenario)).collect();
        let title = in_words(&scenario);
        (!of_it.is_empty()).then(|| figure(&title, heat(&title, &of_it).draw()))
    });
    let text = format!("{RATIO} Each size leads to its scenario, which has more than is here.");
    let pictures = element("div").class("pairs").children(pictures);
    let content = vec![element("p").text(text), pictures];
    Some(Section::new("overview", "At a glance", content))
}

fn usual_bystander(known: &[&Known]) -> Option<Victim> {
    let mut counts: Vec<(usize, Victim)> = Vec::new();
    for victim in known.iter().map(|known| known.cell.victim).filter(|v| *v != Victim::NONE) {
        match counts.iter_mut().find(|(_, other)| *other == victim) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, victim)),
        }
    }
    // Of equals the first.
    counts.into_iter().min_by_key(|(count, _)| Reverse(*count)).map(|(_, victim)| victim)
}

/// What the cells of a picture have in common, but for the bystander.
fn kind(cell: &Cell) -> Cell {
    Cell { size_bytes: 0, used: Share::ALL, victim: Victim::NONE, ..*cell }
}

/// A cell whose result is not used belongs to every kind of use, and has one of its own only where
/// there is no other.
fn kinds(known: &[&Known]) -> Vec<Cell> {
    let (unused, used): (Vec<&Cell>, Vec<&Cell>) =
        known.iter().map(|known| &known.cell).partition(|cell| cell.used == Share::NONE);
    let mut kinds: Vec<Cell> = Vec::new();
    for cell in used.into_iter().chain(unused) {
        if !kinds.iter().any(|known| belongs(&Cell { victim: Victim::NONE, ..*cell }, known)) {
            kinds.push(kind(cell));
        }
    }
    kinds
}

fn belongs(cell: &Cell, scenario: &Cell) -> bool {
    let use_kind = match cell.used {
        Share::NONE => scenario.use_kind,
        _ => cell.use_kind,
    };
    Cell { use_kind, victim: cell.victim, ..kind(cell) } == *scenario
}

fn in_words(scenario: &Cell) -> String {
    let Cell { operation, source, use_kind, delay_bytes, page, threads, victim, .. } = *scenario;
    let mut text = operation.to_string();
    if operation == Operation::Copy {
        text += &format!(", {source} source");
    }
    text += if use_kind == UseKind::Read { ", read" } else { ", written" };
    if delay_bytes > 0 {
        text += &format!(" after {} of traffic", Size(delay_bytes));
    }
    if page != Page::Base {
        text += &format!(", {page} pages");
    }
    if threads != 1 {
        text += &format!(", {threads} threads");
    }
    match victim {
        Victim::NONE => text + "; no bystander",
        Victim { bytes, walk, core, .. } => {
            format!("{text}; beside {} ({walk} loads, {core} core)", Size(bytes))
        }
    }
}

/// What was looked at in a few sizes only, to find where they break even, has no column.
fn heat(title: &str, known: &[&Known]) -> Heat {
    let mut sizes: Vec<usize> = known.iter().map(|known| known.cell.size_bytes).collect();
    let mut shares: Vec<Share> = known.iter().map(|known| known.cell.used).collect();
    sizes.sort_unstable();
    sizes.dedup();
    shares.sort_unstable();
    shares.dedup();
    let count = |share: Share| known.iter().filter(|known| known.cell.used == share).count();
    shares.retain(|&share| 3 * count(share) >= sizes.len());
    let row = |&size: &usize| {
        let of_it = || known.iter().filter(|known| known.cell.size_bytes == size);
        let cell = |share: &Share| of_it().find(|known| known.cell.used == *share);
        Row {
            names: vec![Size(size).short()],
            link: of_it().next().map(|known| format!("#{}", place(SCENARIOS, known.group))),
            cells: shares.iter().map(|share| Some(cell(share)?.contest.clone())).collect(),
        }
    };
    Heat {
        title: format!("Non-temporal against temporal: {title}"),
        description: format!("One row per size, one column per share of the result used. {RATIO}"),
        row_names: vec!["size".into()],
        column_name: "share of the result that is used".into(),
        columns: shares.iter().map(|s| Value::Share(s.as_f64()).for_people()).collect(),
        rows: sizes.iter().map(row).collect(),
    }
}
