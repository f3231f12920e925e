//! Which cells are measured for a profile, and who takes part.

use crate::case::{Page, Temperature};
use crate::contestant::Contestant;
use crate::map::{self, Cell, Core, Share, UseKind, Victim, Walk};
use crate::runner::Stop;
use crate::words::words;
use crate::{Error, Machine};
use cachewise::switch::{self, Slot};
use cachewise::variant::{self, Operation, Store, Variant};
use std::fmt;
use std::str::FromStr;

/// One size to the next is the grid's step.
const SIZES_BYTES: [usize; 9] =
    [128, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const QUICK_SIZES_BYTES: [usize; 5] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20];

/// Which cells are measured for a profile. Its text goes into the profile, so that who checks it
/// measures the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    scenarios: Scenarios,
    sizes_bytes: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenarios {
    Full,
    Quick,
}

words! {
    Scenarios: "plan" { Full => "full", Quick => "quick" }
}

impl Plan {
    /// Without sizes, the plan's own; `quick` is fewer of everything.
    pub fn new(sizes_bytes: &[usize], quick: bool) -> Self {
        let sizes_bytes = match (sizes_bytes, quick) {
            ([], true) => &QUICK_SIZES_BYTES,
            ([], false) => &SIZES_BYTES[..],
            (given, _) => given,
        };
        let scenarios = if quick { Scenarios::Quick } else { Scenarios::Full };
        Self { scenarios, sizes_bytes: sizes_bytes.to_vec() }
    }

    /// The plan that has these cells and no others, in whichever order.
    pub fn of(cells: &[Cell], machine: &Machine) -> Option<Self> {
        let mut sizes_bytes: Vec<usize> = cells.iter().map(|cell| cell.size_bytes).collect();
        sizes_bytes.sort_unstable();
        sizes_bytes.dedup();
        let has = |plan: &Self| {
            let planned = plan.cells(machine);
            planned.len() == cells.len() && planned.iter().all(|cell| cells.contains(cell))
        };
        [false, true].map(|quick| Self::new(&sizes_bytes, quick)).into_iter().find(has)
    }

    /// Whether it is the one of fewer scenarios.
    pub fn is_quick(&self) -> bool {
        self.scenarios == Scenarios::Quick
    }

    /// The cells for both operations, those on the same ground next to each other.
    ///
    /// For each size: the result used at once by reading and by writing, not used, not used beside
    /// a bystander that fills half of the second level. The full plan adds a partial use beside the
    /// bystander, a use after the second level has been gone through, and hot sources.
    pub fn cells(&self, machine: &Machine) -> Vec<Cell> {
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
        if !self.is_quick() {
            scenarios.push((quarter, read, 0, bystander));
            scenarios.push((Share::ALL, read, 4 * l2_bytes, Victim::NONE));
        }
        let mut cells = Vec::new();
        for operation in [Operation::Clear, Operation::Copy] {
            let sources = match (operation, self.is_quick()) {
                (Operation::Copy, false) => &[Temperature::Cold, Temperature::Hot][..],
                _ => &[Temperature::Cold],
            };
            for &source in sources {
                for &size_bytes in &self.sizes_bytes {
                    let cells_here =
                        scenarios.iter().map(|s| cell(operation, source, size_bytes, *s));
                    cells.extend(cells_here);
                }
            }
        }
        cells
    }
}

/// Share, kind of use, delay, bystander.
type Scenario = (Share, UseKind, usize, Victim);

fn cell(operation: Operation, source: Temperature, size_bytes: usize, scenario: Scenario) -> Cell {
    let (used, use_kind, delay_bytes, victim) = scenario;
    let (page, threads) = (Page::Base, 1);
    Cell { operation, size_bytes, source, page, threads, used, use_kind, delay_bytes, victim }
}

/// `quick 1024 4096`: which scenarios, then the sizes in bytes.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scenarios)?;
        self.sizes_bytes.iter().try_for_each(|bytes| write!(f, " {bytes}"))
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(' ');
        let scenarios = words.next().unwrap_or_default().parse()?;
        let size = |word: &str| match word.parse() {
            Ok(0) | Err(_) => Err(format!("\"{word}\" is no size in bytes")),
            Ok(bytes) => Ok(bytes),
        };
        let sizes_bytes: Vec<usize> = words.map(size).collect::<Result<_, _>>()?;
        match sizes_bytes.as_slice() {
            [] => Err("there are no sizes".into()),
            _ => Ok(Self { scenarios, sizes_bytes }),
        }
    }
}

/// Of each kind of store, how many go on. What the CPU chooses by itself it chooses alike for all
/// widths of one instruction.
const KEPT: [(Store, usize); 3] =
    [(Store::Temporal, 4), (Store::NonTemporal, 4), (Store::Implementation, 1)];

/// Who takes part in the cells of an operation: libc, what the library uses, `also`, and of each
/// kind of store the few that are fastest in whole steps, with nothing used and with all of it, over
/// three sizes and the sources there are. What a `_nontemporal` call does by ordinary stores takes
/// part with the fence that it has there.
///
/// # Errors
///
/// If memory cannot be had, or stopped.
pub fn screen(
    machine: &Machine,
    operation: Operation,
    also: &[&'static Variant],
    samples: usize,
    seed: u64,
    stop: &Stop,
) -> Result<Vec<Contestant>, Error> {
    const SCREEN_BYTES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
    let slots = || Slot::ALL.into_iter().filter(|slot| slot.operation() == operation);
    let rows: Vec<&'static Variant> = variant::all()
        .iter()
        .filter(|v| v.unavailable().is_none() && slots().any(|slot| slot.accepts(v)))
        .collect();
    let field: Vec<Contestant> =
        rows.iter().map(|row| Contestant::variant(row)).collect::<Result<_, _>>()?;
    let scenarios = [Share::NONE, Share::ALL].map(|used| (used, UseKind::Read, 0, Victim::NONE));
    let sources = match operation {
        Operation::Copy => &[Temperature::Cold, Temperature::Hot][..],
        Operation::Clear => &[Temperature::Cold],
    };
    let field_refs: Vec<&Contestant> = field.iter().collect();
    let mut screened = Vec::new();
    for &source in sources {
        for size_bytes in SCREEN_BYTES {
            let cells = scenarios.map(|scenario| cell(operation, source, size_bytes, scenario));
            screened.extend(map::screen(machine, &cells, &field_refs, samples, seed, stop)?);
        }
    }
    let mut ranked = map::scores(&screened);
    ranked.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let below = || slots().map(switch::get_below_threshold);
    let required = slots().map(switch::get).chain(below()).chain(also.iter().copied());
    let mut kept: Vec<&'static Variant> = required.collect();
    for (kind, count) in KEPT {
        let of_kind = rows.iter().copied().filter(|row| row.store() == kind);
        let mut of_kind: Vec<&'static Variant> = of_kind.collect();
        of_kind.sort_by_key(|row| ranked.iter().position(|(name, _)| name == row.name()));
        kept.extend(of_kind.into_iter().take(count));
    }
    let fenced = rows.iter().filter(|row| row.store() != Store::NonTemporal);
    let in_nontemporal = |row: &&&Variant| {
        slots().any(|slot| {
            let serves = [switch::get(slot), switch::get_below_threshold(slot)];
            slot.is_nontemporal() && (serves.contains(row) || also.contains(row))
        })
    };
    let fenced = fenced.filter(in_nontemporal).map(|row| Contestant::fenced(row));
    let kept = rows.iter().filter(|row| kept.contains(row)).map(|row| Contestant::variant(row));
    [Ok(Contestant::libc(operation))].into_iter().chain(kept).chain(fenced).collect()
}
