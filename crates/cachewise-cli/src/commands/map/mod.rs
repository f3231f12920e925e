//! `map`: the operation, its later use and its bystanders, by parts and as a whole.

mod heat;
mod resume;
mod rows;
pub(crate) mod words;

use super::{Done, End, report, warn_if_range_is_short};
use crate::args::Map;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::Section;
use crate::size::Size;
use crate::voice::Voice;
use cachewise::variant::{self, Operation};
use cachewise_measure::contestant::LIBC;
use cachewise_measure::counters::Counters;
use cachewise_measure::map::{
    self, Axes, Axis, BreakEven, Cell, Core, Measured, Status, Survey, UseKind, Walk,
};
use cachewise_measure::{Contestant, Error, Machine, Page, Temperature};
pub(crate) use rows::{CELLS, Row};

pub(super) fn run(machine: &Machine, args: &Map, voice: &mut Voice) -> Result<Done, Failure> {
    let operation = args.operation.into();
    let field = field(operation, args)?;
    let mut known = match &args.resume {
        Some(path) => resume::read(path, machine, operation)?,
        None => Vec::new(),
    };
    let effort = args.effort.of_map(args.quick);
    let stop = interrupt::on_ctrl_c()?;
    notes(machine, args, voice);
    let cells = axes(machine, operation, args).cells();
    let survey = Survey {
        machine,
        field: &field,
        all_contend: !args.variant.is_empty(),
        cells,
        fixed: false,
        time: effort.time,
        samples: effort.samples,
        seed: effort.seed,
        stop: &stop,
    };
    let ended = super::survey::run(&survey, &mut known, voice)?;
    let end = match ended {
        map::End::Stopped => End::Stopped,
        _ if known.iter().flat_map(|m| &m.outcomes).any(|o| o.status == Status::Error) => {
            End::Errors
        }
        _ => End::Complete,
    };
    if let map::End::TimeShort(left) = ended {
        voice.note(&format_args!(
            "no time for {left} of the planned cells; give more by --time, or take this result as \
             JSON and go on with --resume"
        ));
    }
    let sections = sections(&known, effort.seed);
    Ok(Done { report: report("map", machine, sections), end })
}

/// From the smallest and plainest, so that neighbours in a table are neighbours in the map. The
/// plan's order is another: the most telling first.
fn order(cell: &Cell) -> impl Ord + use<> {
    let Cell { size_bytes, source, page, threads, victim, .. } = *cell;
    let soil = (source == Temperature::Hot, page == Page::Huge, threads, size_bytes);
    let victim = (victim.core == Core::Other, victim.walk == Walk::Independent, victim.bytes);
    (soil, cell.use_kind == UseKind::Write, cell.delay_bytes, victim, cell.used)
}

/// The lines of these cells, in that order.
pub(crate) fn lines(cells: &[Measured], seed: u64) -> Vec<BreakEven> {
    let mut lines = map::break_even(cells, seed);
    lines.sort_by_key(|line| order(&line.line));
    lines
}

fn sorted(cells: &[Measured]) -> Vec<&Measured> {
    let mut cells: Vec<&Measured> = cells.iter().collect();
    cells.sort_by_key(|measured| order(&measured.cell));
    cells
}

/// The rows of these cells, in that order.
pub(crate) fn rows(cells: &[Measured], seed: u64) -> Vec<Row> {
    sorted(cells).into_iter().flat_map(|measured| Row::all(measured, seed)).collect()
}

fn sections(cells: &[Measured], seed: u64) -> Vec<Section> {
    let lines = lines(cells, seed);
    let mut sections = vec![
        Section::list("cells", CELLS, rows(cells, seed)).of_cases(),
        Section::list("break_even", rows::BREAK_EVEN, lines.iter().cloned()),
        Section::list("verdicts", words::VERDICTS, words::verdicts(&lines)),
    ];
    let pictures = heat::pictures(&sorted(cells), seed);
    sections.splice(0..0, pictures);
    sections
}

/// libc first: it sets the length of a pass. The public calls are a policy over the variants, and
/// a policy is what the map is for.
fn field(operation: Operation, args: &Map) -> Result<Vec<Contestant>, Error> {
    let libc = [Ok(Contestant::libc(operation))].into_iter();
    if args.variant.is_empty() {
        let rows = variant::all().iter().filter(|v| v.operation() == operation);
        let rows = rows.filter(|v| v.unavailable().is_none()).map(Contestant::variant);
        return libc.chain(rows).collect();
    }
    let named = args.variant.iter().filter(|name| *name != LIBC);
    libc.chain(named.map(|name| Contestant::named(operation, name))).collect()
}

/// What was asked for, and for the rest the plan's own values.
fn axes(machine: &Machine, operation: Operation, args: &Map) -> Axes {
    let mut axes = match args.quick {
        true => Axes::quick(machine, operation),
        false => Axes::full(machine, operation),
    };
    let bytes = |sizes: &[Size]| sizes.iter().map(|size| size.0).collect::<Vec<usize>>();
    if !args.size.is_empty() {
        axes.sizes = bytes(&args.size);
    }
    if !args.shares.is_empty() {
        axes.shares = args.shares.clone();
    }
    if !args.source.is_empty() {
        axes.sources = args.source.iter().map(|&source| source.into()).collect();
    }
    if !args.delay.is_empty() {
        axes.delays = Axis::given(bytes(&args.delay));
    }
    if !args.victim.is_empty() {
        axes.victims = Axis::given(bytes(&args.victim));
    }
    if !args.use_kind.is_empty() {
        axes.use_kinds = Axis::given(args.use_kind.clone());
    }
    if !args.walk.is_empty() {
        axes.walks = Axis::given(args.walk.clone());
    }
    axes.cores = Axis::given(args.core.clone());
    (axes.page, axes.threads, axes.retouch) = (args.page, args.threads.into(), args.retouch);
    axes
}

fn notes(machine: &Machine, args: &Map, voice: &mut Voice) {
    for note in [
        "a step is: the bystander's walk, the operation, the delay's traffic, the use",
        "whole: steps without time stamps; parts: steps with them; rest: what the parts don't explain",
        "non-temporal: the best variant that stores around the cache; temporal: the best of the \
         others, libc too; picked on half of the samples, compared on the other half",
    ] {
        voice.note(&note);
    }
    let range = machine.range(args.threads.into());
    voice.note(&format_args!(
        "destinations and cold sources are met once per pass over {}, the last-level cache is said \
         to have {}",
        Size(range.footprint_bytes),
        Size(range.last_level_bytes),
    ));
    warn_if_range_is_short(machine, args.threads.into(), voice);
    let counters = Counters::probe();
    if let Some(remedy) = counters.remedy() {
        voice.note(&format_args!("no misses beside the times: {counters}; {remedy}"));
    }
    for doubt in machine.geometry.doubts() {
        voice.warn(doubt.id(), &doubt.cause(), &doubt.remedy());
    }
}
