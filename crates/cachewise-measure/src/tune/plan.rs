//! Which cells are measured for a profile, and who takes part.

use crate::case::{Align, Case, Page, Pattern, Temperature};
use crate::contestant::Contestant;
use crate::map::{self, Cell, Core, Measured, Share, UseKind, Victim, Walk};
use crate::runner::{Effort, Stop, measure};
use crate::{Error, Machine};
use cachewise::switch::{self, Slot};
use cachewise::variant::{self, Operation, Store, Variant};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// One size to the next is the grid's step.
const SIZES_BYTES: [usize; 9] =
    [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const QUICK_SIZES_BYTES: [usize; 5] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20];

/// The cells for both operations, those on the same ground next to each other. Without sizes, the
/// plan's own; `quick` is fewer of everything.
///
/// For each size: the result used at once by reading and by writing, not used, not used beside a
/// bystander that fills half of the second level. The whole plan adds a partial use beside the
/// bystander, a use after the second level has been gone through, and hot sources.
pub fn plan(machine: &Machine, sizes_bytes: &[usize], quick: bool) -> Vec<Cell> {
    let sizes = match (sizes_bytes.is_empty(), quick) {
        (false, _) => sizes_bytes,
        (true, true) => &QUICK_SIZES_BYTES,
        (true, false) => &SIZES_BYTES,
    };
    let l2_bytes = machine.geometry.l2_bytes().value;
    let bystander =
        Victim { bytes: l2_bytes / 2, walk: Walk::Dependent, core: Core::Same, retouch: 1 };
    let quarter = Share::new(0.25).unwrap_or(Share::ALL);
    let (read, write) = (UseKind::Read, UseKind::Write);
    let mut scenarios = vec![
        (Share::ALL, read, 0, Victim::NONE),
        (Share::ALL, write, 0, Victim::NONE),
        (Share::NONE, read, 0, Victim::NONE),
        (Share::NONE, read, 0, bystander),
    ];
    if !quick {
        scenarios.push((quarter, read, 0, bystander));
        scenarios.push((Share::ALL, read, 4 * l2_bytes, Victim::NONE));
    }
    let mut cells = Vec::new();
    for operation in [Operation::Clear, Operation::Copy] {
        let sources = match (operation, quick) {
            (Operation::Copy, false) => &[Temperature::Cold, Temperature::Hot][..],
            _ => &[Temperature::Cold],
        };
        for &source in sources {
            for &size_bytes in sizes {
                cells.extend(scenarios.iter().map(|&(used, use_kind, delay_bytes, victim)| Cell {
                    operation,
                    size_bytes,
                    source,
                    page: Page::Base,
                    threads: 1,
                    used,
                    use_kind,
                    delay_bytes,
                    victim,
                }));
            }
        }
    }
    cells
}

/// Of each kind of store, how many go on.
const KEPT: usize = 3;

/// Who takes part in the cells of an operation: libc, what the library uses, `also`, and of each
/// kind of store the three that are fastest by themselves, hot, over three sizes.
///
/// A contender that is slow in all of them doesn't win a cell by what it leaves in the cache: that
/// is decided by the kind of store, and each kind is kept.
///
/// # Errors
///
/// If memory cannot be had, or stopped.
pub fn screen(
    machine: &Machine,
    operation: Operation,
    also: &[&'static Variant],
    effort: &Effort,
    stop: &Stop,
) -> Result<Vec<Contestant>, Error> {
    const SCREEN_BYTES: [usize; 3] = [1 << 10, 16 << 10, 1 << 20];
    let slots = || Slot::ALL.into_iter().filter(|slot| slot.operation() == operation);
    let rows: Vec<&'static Variant> = variant::all()
        .iter()
        .filter(|v| v.unavailable().is_none() && slots().any(|slot| slot.accepts(v)))
        .collect();
    let field: Vec<Contestant> =
        rows.iter().map(|row| Contestant::variant(row)).collect::<Result<_, _>>()?;
    let mut sums = vec![Some(0.0); field.len()];
    for size_bytes in SCREEN_BYTES {
        let case = Case {
            operation,
            size_bytes,
            temperature: Temperature::Hot,
            pattern: Pattern::Walk,
            align: Align::default(),
            threads: 1,
        };
        let measured = measure(machine, &case, &field, effort, stop)?;
        for (sum, result) in sums.iter_mut().zip(measured.results) {
            let log = result.ok().and_then(|samples| samples.median()).map(f64::ln);
            *sum = sum.zip(log).map(|(sum, log)| sum + log);
        }
    }
    let required = slots().flat_map(|slot| [switch::get(slot), switch::get_below_threshold(slot)]);
    let mut kept: Vec<&'static Variant> = required.chain(also.iter().copied()).collect();
    for nontemporal in [false, true] {
        let of_kind = |row: &&'static Variant| (row.store() == Store::NonTemporal) == nontemporal;
        let mut ranked: Vec<(f64, &'static Variant)> =
            sums.iter().zip(&rows).filter_map(|(sum, row)| Some(((*sum)?, *row))).collect();
        ranked.retain(|(_, row)| of_kind(row));
        ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        kept.extend(ranked.into_iter().take(KEPT).map(|(_, row)| row));
    }
    let kept = rows.into_iter().filter(|row| kept.contains(row)).map(Contestant::variant);
    [Ok(Contestant::libc(operation))].into_iter().chain(kept).collect()
}

/// The planned cells on their way.
pub struct Survey<'a> {
    /// This machine.
    pub machine: &'a Machine,
    /// As [`plan`] gives them.
    pub cells: &'a [Cell],
    /// Those that take part, libc first, of both operations.
    pub field: &'a [Contestant],
    /// For all cells together. None is left out: where the time is short, each gets the least that
    /// can be scored.
    pub effort: Effort,
    /// Set by whoever wants no more.
    pub stop: &'a Stop,
}

/// What came of the planned cells.
#[derive(Debug, Default)]
pub struct Surveyed {
    /// Those with figures.
    pub cells: Vec<Measured>,
    /// The first cell of each ground that has none, and why.
    pub without: Vec<(Cell, Error)>,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

impl Survey<'_> {
    /// Measures ground by ground; says each time what comes and how many cells that is.
    pub fn run(&self, tell: &mut dyn FnMut(&Cell, usize)) -> Surveyed {
        let until = Instant::now() + self.effort.time;
        let mut surveyed = Surveyed::default();
        let mut left = self.cells.len();
        for (index, cells) in self.cells.chunk_by(|a, b| a.soil() == b.soil()).enumerate() {
            let (first, count) = (cells[0], cells.len());
            tell(&first, count);
            let time = until.saturating_duration_since(Instant::now());
            let effort = Effort {
                time: time.mul_f64(count as f64 / left as f64),
                seed: self.effort.seed ^ (index as u64) << 32,
                ..self.effort
            };
            left -= count;
            let field: Vec<&Contestant> =
                self.field.iter().filter(|who| who.operation() == first.operation).collect();
            match map::measure(self.machine, cells, &field, &effort, self.stop) {
                Ok(measured) => surveyed.cells.extend(measured),
                Err(Error::Stopped) => {}
                Err(error) => surveyed.without.push((first, error)),
            }
            if self.stop.load(Ordering::Relaxed) {
                surveyed.stopped = true;
                break;
            }
        }
        surveyed
    }
}
