//! `map`: the operation, its later use and its bystanders, by parts and as a whole.

mod heat;
mod rows;
pub(crate) mod words;

use super::{Done, End, earlier, note_first_touch, report, warn_if_range_is_short};
use crate::args::Map;
use crate::export::Format;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Section, Value, data};
use crate::size::Size;
use crate::voice::Voice;
use cachewise::variant::{self, Operation};
use cachewise_measure::contestant::LIBC;
use cachewise_measure::counters::Counters;
use cachewise_measure::map::{
    self, Axes, Axis, BreakEven, Cell, Core, Duel, Measured, Side, Status, Survey, UseKind, Walk,
};
use cachewise_measure::{Contestant, Error, Ladder, Located, Machine, Page, Range, Temperature};
pub(crate) use rows::{CELLS, Row};

/// Of cells' rows, a table that is longer hides what follows from it.
const ROWS_MAX: usize = 60;

pub(super) fn run(
    machine: &Machine,
    args: &Map,
    format: Format,
    voice: &mut Voice,
) -> Result<Done, Failure> {
    let operation = args.operation.into();
    let field = field(operation, args)?;
    let mut known = match &args.resume {
        Some(path) => earlier::cells(path, machine)?,
        None => Vec::new(),
    };
    known.retain(|measured| measured.cell.operation == operation);
    let effort = args.effort.of_map(args.quick);
    let stop = interrupt::on_ctrl_c()?;
    notes(machine, args, voice);
    let ground = Ground::locate(machine, args, voice)?;
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
        let go_on = match format {
            Format::Json => "go on from this result with --resume FILE",
            _ => "run again with --format json > FILE, then --resume FILE",
        };
        voice.note(&format_args!(
            "no time for {left} of the planned cells; give more by --time, or {go_on}"
        ));
    }
    let mut sections = sections(&known, effort.seed, format, voice);
    sections.push(Section::object("range", GROUND, &ground));
    voice.note(
        &"next: cachewise report FILE.json -o page.html   (FILE.json: a map by --format json), \
          cachewise tune -o profile.toml",
    );
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

/// What follows from the cells stands last, where a terminal is read first.
fn sections(cells: &[Measured], seed: u64, format: Format, voice: &mut Voice) -> Vec<Section> {
    let lines = lines(cells, seed);
    let duel = |m: &Measured| Some((m.cell, map::duel(m, seed)?));
    let duels: Vec<(Cell, Duel)> = sorted(cells).into_iter().filter_map(duel).collect();
    warn_if_noisy(&duels, voice);
    let rows = rows(cells, seed);
    let count = rows.len();
    let cells = match format {
        Format::Table if count > ROWS_MAX => {
            voice.note(&format_args!(
                "{count} rows of cells are left out; they are in --format json, csv and markdown, \
                 and on the page of cachewise report"
            ));
            Section::data("cells", CELLS, rows)
        }
        _ => Section::list("cells", CELLS, rows),
    };
    let mut sections = heat::pictures(&duels);
    sections.extend([
        cells.of_cases(),
        Section::list("break_even", rows::BREAK_EVEN, lines.iter().cloned()),
        Section::list("verdicts", words::VERDICTS, words::verdicts(&lines)),
    ]);
    sections
}

/// Noise here and there is told where it is.
fn warn_if_noisy(duels: &[(Cell, Duel)], voice: &mut Voice) {
    let noisy = duels.iter().filter(|(_, duel)| duel.side() == Side::Unclear).count();
    if noisy > 0 && 3 * noisy >= duels.len() {
        voice.warn(
            "noisy-cells",
            &format_args!("{noisy} of {} cells are too noisy to tell who wins", duels.len()),
            &"measure on an idle machine, or give more by --time and --samples",
        );
    }
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

/// Where destinations and cold sources come from (case 27).
struct Ground {
    range: Range,
    located: Located,
}

impl Ground {
    fn locate(machine: &Machine, args: &Map, voice: &mut Voice) -> Result<Self, Error> {
        voice.step(&"the latency of its levels");
        let range = machine.range(args.threads.into());
        let located =
            Ladder::measure(machine)?.locate_range(range.footprint_bytes, args.threads.into())?;
        let Located { level, latency_ns, .. } = located;
        voice.note(&format_args!(
            "destinations and cold sources are met once per pass over {}: {level} by its latency, {} \
             a load; the last-level cache is said to have {}",
            Size(range.footprint_bytes),
            Value::Ns(latency_ns).for_people(),
            Size(range.last_level_bytes),
        ));
        Ok(Self { range, located })
    }
}

const GROUND: &[Column<Ground>] = &[
    data("footprint_bytes", |g| Value::bytes(g.range.footprint_bytes)),
    data("last_level_bytes", |g| Value::bytes(g.range.last_level_bytes)),
    data("level", |g| Value::text(g.located.level)),
    data("level_claimed", |g| Value::text(g.located.level_claimed)),
    data("load_ns", |g| Value::Ns(g.located.latency_ns)),
];

fn notes(machine: &Machine, args: &Map, voice: &mut Voice) {
    for note in [
        "a step is: the bystander's walk, the operation, the delay's traffic, the use",
        "whole: steps without time stamps; parts: steps with them; rest: what the parts don't explain",
        "non-temporal: the best variant that stores around the cache; temporal: the best of the \
         others, libc too; picked on half of the samples, compared on the other half",
        "lost: how much longer the bystander's walk takes than without the operation; libc: libc's \
         whole over the row's",
    ] {
        voice.note(&note);
    }
    note_first_touch(voice);
    warn_if_range_is_short(machine, args.threads.into(), voice);
    let counters = Counters::probe();
    if let Some(remedy) = counters.remedy() {
        voice.note(&format_args!("no misses beside the times: {counters}; {remedy}"));
    }
    for doubt in machine.geometry.doubts() {
        voice.warn(doubt.id(), &doubt.cause(), &doubt.remedy());
    }
}
