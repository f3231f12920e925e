//! A survey of cells under way: how far it has come, and what could not be had.

use crate::failure::Failure;
use crate::size::Size;
use crate::voice::Voice;
use cachewise::variant::Operation;
use cachewise_measure::Page;
use cachewise_measure::map::{Cell, End, Measured, Progress, Share, Status, Survey, Victim};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Measures what is not among the `known` cells, and tells what happens.
pub(super) fn run(
    survey: &Survey,
    known: &mut Vec<Measured>,
    voice: &mut Voice,
) -> Result<End, Failure> {
    let is_new = |cell: &&Cell| !known.iter().any(|measured| measured.cell == **cell);
    let planned = survey.cells.iter().filter(is_new).count();
    let mut teller = Teller::new(planned, survey.time, voice);
    let end = survey.run(known, &mut |progress| teller.tell(progress));
    voice.end();
    let outcomes = known.iter().flat_map(|measured| &measured.outcomes);
    for outcome in outcomes.filter(|o| matches!(o.status, Status::Error | Status::Skipped)) {
        if let Some(because) = &outcome.because {
            voice.note(&format_args!("{} ({}): {because}", outcome.status, outcome.variant));
        }
    }
    Ok(end?)
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
pub(super) fn soil(cell: &Cell) -> String {
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

/// A cell in a few words.
pub(super) fn scenario(cell: &Cell) -> String {
    let mut text = soil(cell);
    let used = cell.used.as_f64() * 100.0;
    let _ = match cell.used {
        Share::NONE => write!(text, ", unused"),
        _ => write!(text, ", {used:.0} % {} after", cell.use_kind),
    };
    if cell.delay_bytes > 0 {
        let _ = write!(text, ", {} between", Size(cell.delay_bytes).short());
    }
    if cell.victim != Victim::NONE {
        let _ = write!(text, ", bystander {}", Size(cell.victim.bytes).short());
    }
    text
}
