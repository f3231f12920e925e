//! Which cells are worth their time.
//!
//! All axes crossed would be thousands of cells. So a cell may depart from the plainest scenario only
//! so far: a step for a bystander of the usual size, for another kind of use, for another walk; two
//! steps, which is all there are, for a delay or another bystander. Size, source and share are
//! crossed with everything, and so is every axis whose values somebody asked for.

use super::cell::{Cell, Core, Share, UseKind, Victim, Walk};
use crate::Machine;
use crate::case::{Page, Temperature};
use cachewise::variant::Operation;

/// Values to try, the plainest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis<T> {
    /// The values.
    pub values: Vec<T>,
    /// Whether each is to be met with everything.
    pub crossed: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// Copy or clear.
    pub operation: Operation,
    /// Lengths of a call.
    pub sizes: Vec<usize>,
    /// Where a copy's source is.
    pub sources: Vec<Temperature>,
    /// Shares of the result that are used.
    pub shares: Vec<Share>,
    /// The pages.
    pub page: Page,
    /// Threads at once.
    pub threads: usize,
    /// How often a bystander goes through its working set per operation.
    pub retouch: u32,
    /// How the result is used.
    pub use_kinds: Axis<UseKind>,
    /// Bytes read between operation and use.
    pub delays: Axis<usize>,
    /// Working sets of the bystander: none, the usual one, others.
    pub victims: Axis<usize>,
    /// How the bystander goes through it.
    pub walks: Axis<Walk>,
    /// Where the bystander runs.
    pub cores: Axis<Core>,
    /// How many steps a cell may depart from the plainest scenario.
    pub departures: usize,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Delays and working sets go up to so many L2.
const BEYOND_L2: usize = 4;

impl<T: Copy> Axis<T> {
    fn of(values: &[T]) -> Self {
        Self { values: values.to_vec(), crossed: false }
    }

    /// Values that somebody asked for.
    pub fn given(values: Vec<T>) -> Self {
        Self { values, crossed: true }
    }

    /// Each value, and how far it departs from the plainest: the second and the others.
    fn each(&self, second: usize, others: usize) -> impl Iterator<Item = (T, usize)> + '_ {
        let departs = move |index| match index {
            _ if self.crossed => 0,
            0 => 0,
            1 => second,
            _ => others,
        };
        self.values.iter().enumerate().map(move |(index, value)| (*value, departs(index)))
    }
}

impl Axes {
    /// The full map of this machine: working sets and delays by its caches.
    pub fn full(machine: &Machine, operation: Operation) -> Self {
        let (l1, l2) = (l1_bytes(machine), l2_bytes(machine));
        Self {
            sizes: vec![4 * KIB, 64 * KIB, MIB, 16 * KIB, 256 * KIB, 4 * MIB, 16 * MIB],
            departures: 2,
            delays: Axis::of(&[0, l1, l2, BEYOND_L2 * l2]),
            victims: Axis::of(&[0, l2 / 2, l1 / 2, l2, BEYOND_L2 * l2]),
            walks: Axis::of(&[Walk::Dependent, Walk::Independent]),
            ..Self::quick(machine, operation)
        }
    }

    /// What can be seen in a minute.
    pub fn quick(machine: &Machine, operation: Operation) -> Self {
        let sources: &[Temperature] = match operation {
            Operation::Copy => &[Temperature::Cold, Temperature::Hot],
            Operation::Clear => &[Temperature::Cold],
        };
        Self {
            operation,
            sizes: vec![4 * KIB, 64 * KIB, MIB],
            sources: sources.to_vec(),
            // A word of each page is one miss where a quarter of it is sixteen.
            shares: [0.0, 0.002, 0.25, 1.0].into_iter().filter_map(Share::new).collect(),
            page: Page::Base,
            threads: 1,
            retouch: 1,
            use_kinds: Axis::of(&[UseKind::Read, UseKind::Write]),
            delays: Axis::of(&[0]),
            victims: Axis::of(&[0, l2_bytes(machine) / 2]),
            walks: Axis::of(&[Walk::Dependent]),
            cores: Axis::of(&[Core::Same]),
            departures: 1,
        }
    }

    /// The cells, those that depart least first, and among them those of one size and source
    /// together; if they are few, all of one size and source together. A cell that another one is
    /// the same as is left out.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<(usize, Cell)> = Vec::new();
        for (cell, departures) in self.crossed() {
            let cell = plain(cell);
            match cells.iter_mut().find(|(_, known)| *known == cell) {
                Some((least, _)) => *least = departures.min(*least),
                None => cells.push((departures, cell)),
            }
        }
        cells.retain(|(departures, _)| *departures <= self.departures);
        let of_soil = |cell: &Cell| cells.iter().filter(|(_, c)| c.soil() == cell.soil()).count();
        // As long as no ground has more than one group of them, those of one ground stay together.
        if cells.iter().any(|(_, cell)| of_soil(cell) > GROUP_MAX) {
            cells.sort_by_key(|(departures, _)| *departures);
        } else {
            let soils: Vec<_> = cells.iter().map(|(_, cell)| cell.soil()).collect();
            cells.sort_by_key(|(_, cell)| soils.iter().position(|soil| *soil == cell.soil()));
        }
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    fn crossed(&self) -> Vec<(Cell, usize)> {
        let mut cells = Vec::new();
        for &size_bytes in &self.sizes {
            for &source in &self.sources {
                for (bytes, victim_departs) in self.victims.each(1, 2) {
                    for (walk, walk_departs) in self.walks.each(1, 1) {
                        for (core, core_departs) in self.cores.each(1, 1) {
                            let retouch = self.retouch;
                            let victim = Victim { bytes, walk, core, retouch };
                            let departs = victim_departs + walk_departs + core_departs;
                            let cell = self.cell(size_bytes, source, victim);
                            cells.extend(self.uses(cell).map(|(cell, d)| (cell, d + departs)));
                        }
                    }
                }
            }
        }
        cells
    }

    fn cell(&self, size_bytes: usize, source: Temperature, victim: Victim) -> Cell {
        let Self { operation, page, threads, .. } = *self;
        let (used, use_kind, delay_bytes) = (Share::NONE, UseKind::Read, 0);
        Cell { operation, size_bytes, source, page, threads, used, use_kind, delay_bytes, victim }
    }

    fn uses(&self, cell: Cell) -> impl Iterator<Item = (Cell, usize)> + '_ {
        self.use_kinds.each(1, 1).flat_map(move |(use_kind, kind_departs)| {
            self.delays.each(2, 2).flat_map(move |(delay_bytes, delay_departs)| {
                let cell = Cell { use_kind, delay_bytes, ..cell };
                let of_share =
                    move |&used: &Share| (Cell { used, ..cell }, kind_departs + delay_departs);
                self.shares.iter().map(of_share)
            })
        })
    }
}

/// What has no meaning in a cell is as [`Cell`] says, so that equal cells are equal.
fn plain(mut cell: Cell) -> Cell {
    if cell.operation == Operation::Clear {
        cell.source = Temperature::Cold;
    }
    if cell.used == Share::NONE {
        cell.use_kind = UseKind::Read;
    }
    if cell.victim.bytes == 0 || (cell.victim.core == Core::Same && cell.victim.retouch == 0) {
        cell.victim = Victim::NONE;
    }
    if cell.victim.core == Core::Other {
        cell.victim.retouch = 0;
    }
    cell
}

fn l1_bytes(machine: &Machine) -> usize {
    machine.geometry.l1d_bytes().value
}

fn l2_bytes(machine: &Machine) -> usize {
    machine.geometry.l2_bytes().value
}

/// Cells that have memory in common, so many at most, so that little is lost on Ctrl-C and its
/// mapping is paid by several.
pub(super) fn groups(cells: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    let same_soil = cells.chunk_by(|a, b| a.soil() == b.soil());
    same_soil.flat_map(|cells| cells.chunks(GROUP_MAX))
}

const GROUP_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn machine() -> Machine {
        Machine::detect()
    }

    #[test]
    fn no_cell_is_planned_twice_and_the_plainest_come_first() {
        for operation in [Operation::Copy, Operation::Clear] {
            let cells = Axes::full(&machine(), operation).cells();
            let different: HashSet<Cell> = cells.iter().copied().collect();
            assert_eq!(different.len(), cells.len());
            assert_eq!(cells[0].victim, Victim::NONE);
            assert_eq!(cells[0].used, Share::NONE);
            let quick = Axes::quick(&machine(), operation).cells();
            assert!(quick.len() * 5 < cells.len());
            // Every line begins with the cell of it whose result is not used.
            let begins = |cell: &Cell| Cell { used: Share::NONE, use_kind: UseKind::Read, ..*cell };
            assert!(cells.iter().all(|cell| cells.contains(&begins(cell))));
            assert!(quick.iter().all(|cell| quick.contains(&begins(cell))));
            let soils = quick.chunk_by(|a, b| a.soil() == b.soil()).count();
            assert_eq!(groups(&quick).count(), soils);
        }
    }

    #[test]
    fn what_has_no_meaning_is_left_out() {
        for cell in Axes::full(&machine(), Operation::Clear).cells() {
            assert_eq!(cell.source, Temperature::Cold);
            assert!(cell.used != Share::NONE || cell.use_kind == UseKind::Read);
            assert!(cell.victim.bytes > 0 || cell.victim == Victim::NONE);
        }
    }

    #[test]
    fn only_what_was_asked_for_is_crossed() {
        let both = |cell: &Cell| cell.delay_bytes > 0 && cell.use_kind == UseKind::Write;
        let mut axes = Axes::full(&machine(), Operation::Copy);
        assert!(!axes.cells().iter().any(both));
        axes.delays = Axis::given(vec![0, 4096]);
        assert!(axes.cells().iter().any(both));
        axes.sizes = vec![512];
        assert!(axes.cells().iter().all(|cell| cell.size_bytes == 512));
    }

    #[test]
    fn groups_have_one_soil_and_are_complete() {
        let cells = Axes::full(&machine(), Operation::Copy).cells();
        let groups: Vec<&[Cell]> = groups(&cells).collect();
        assert!(groups.iter().all(|group| group.iter().all(|c| c.soil() == group[0].soil())));
        assert_eq!(groups.concat(), cells);
    }
}
