//! `map`: the operation, its later use and its bystanders, by parts and as a whole.

mod heat;
mod resume;
mod rows;
mod words;

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
    self, Axes, Axis, Cell, Core, Measured, Progress, Status, Survey, UseKind, Walk,
};
use cachewise_measure::{Contestant, Error, Machine, Page, Temperature};
pub(crate) use rows::CELLS;
use rows::Row;
use std::time::{Duration, Instant};

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
        time: effort.time,
        samples: effort.samples,
        seed: effort.seed,
        stop: &stop,
    };
    let planned = survey.cells.iter().filter(|cell| !known.iter().any(|m| m.cell == **cell));
    let mut teller = Teller::new(planned.count(), effort.time, voice);
    let ended = survey.run(&mut known, &mut |progress| teller.tell(progress))?;
    voice.end();
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
    let sections = sections(&known, effort.seed, voice);
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

fn sections(known: &[Measured], seed: u64, voice: &mut Voice) -> Vec<Section> {
    let mut lines = map::break_even(known, seed);
    lines.sort_by_key(|line| order(&line.line));
    let mut known: Vec<&Measured> = known.iter().collect();
    known.sort_by_key(|measured| order(&measured.cell));
    let rows: Vec<Row> = known.iter().flat_map(|measured| Row::all(measured, seed)).collect();
    for row in &rows {
        if let (Status::Error | Status::Skipped, Some(because)) = (row.status, &row.because) {
            voice.note(&format_args!("{} ({}): {because}", row.status, row.variant));
        }
    }
    let mut sections = vec![
        Section::list("verdicts", words::VERDICTS, words::verdicts(&lines)),
        Section::list("break_even", rows::BREAK_EVEN, lines.iter().cloned()),
        Section::list("cells", rows::CELLS, rows),
    ];
    // The cells are the cases: the first list, which is what goes line by line.
    sections.rotate_right(1);
    let pictures = heat::pictures(&known, seed);
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

/// Says how far it has come and how long the rest will take.
struct Teller<'a> {
    voice: &'a mut Voice,
    started: Instant,
    /// What the survey was given.
    time: Duration,
    done: usize,
    planned: usize,
}

impl<'a> Teller<'a> {
    fn new(planned: usize, time: Duration, voice: &'a mut Voice) -> Self {
        voice.begin(planned);
        Self { voice, started: Instant::now(), time, done: 0, planned }
    }

    fn tell(&mut self, progress: Progress) {
        match progress {
            Progress::Choosing(like) => {
                self.voice.step(&format_args!("contenders for {}", soil(like)));
            }
            Progress::Measuring(like, count, _) => {
                let left = self.planned.saturating_sub(self.done);
                let each = self.started.elapsed().checked_div(self.done as u32);
                let given = self.time.saturating_sub(self.started.elapsed());
                let rest = each.map(|each| (each * left as u32).min(given));
                let rest =
                    rest.map_or(String::new(), |rest| format!(", about {} left", time(rest)));
                let (done, planned) = (self.done, self.planned);
                let what = soil(like);
                self.voice
                    .step(&format_args!("{what}, {count} cells ({done} of {planned} done{rest})"));
            }
            Progress::Done(count) => {
                self.done += count;
                self.voice.steps_done(count);
            }
            Progress::Refining(count) => {
                self.planned += count;
                self.voice.more(count);
            }
        }
    }
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..100 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// What cells that are measured together have in common.
fn soil(cell: &Cell) -> String {
    let mut text = format!("{} of {}", cell.operation, Size(cell.size_bytes));
    if cell.operation == Operation::Copy {
        text += &format!(", {} source", cell.source);
    }
    if cell.page != Page::Base {
        text += &format!(", {} pages", cell.page);
    }
    if cell.threads != 1 {
        text += &format!(", {} threads", cell.threads);
    }
    text
}
