//! A survey of cells under way: how far it has come, and what could not be had.

use super::cell::soil;
use crate::failure::Failure;
use crate::voice::Voice;
use cachewise_measure::map::{Cell, End, Measured, Progress, Status, Survey};
use std::time::{Duration, Instant};

/// Measures what is not among the `known` cells, and tells what happens.
pub(super) fn run(
    survey: &Survey,
    known: &mut Vec<Measured>,
    voice: &mut Voice,
) -> Result<End, Failure> {
    let is_new = |cell: &&Cell| !known.iter().any(|measured| measured.cell == **cell);
    let planned = survey.cells.iter().filter(is_new).count();
    let mut teller = Teller::new(planned, survey, voice);
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
    /// Whether what is left of the time goes into a closer look.
    looks_closer: bool,
    done: usize,
    planned: usize,
}

impl<'a> Teller<'a> {
    fn new(planned: usize, survey: &Survey, voice: &'a mut Voice) -> Self {
        voice.begin(planned);
        let (time, looks_closer) = (survey.time, !survey.fixed);
        Self { voice, started: Instant::now(), time, looks_closer, done: 0, planned }
    }

    fn tell(&mut self, progress: Progress) {
        match progress {
            Progress::Choosing(like) => {
                self.voice.step(&format_args!("contenders for {}", soil(like)));
            }
            Progress::Measuring(like, count) => {
                let (done, planned, what) = (self.done, self.planned, soil(like));
                let (left, cells) = (self.left(), if count == 1 { "cell" } else { "cells" });
                self.voice.step(&format_args!(
                    "{what}, {count} {cells} ({done} of {planned} done{left})"
                ));
            }
            Progress::Done(count) => {
                self.done += count;
                self.voice.steps_done(count);
            }
            Progress::Refining(count) => {
                self.planned += count;
                self.looks_closer = false;
                self.voice.more(count);
            }
        }
    }

    fn left(&self) -> String {
        let Some(each) = self.started.elapsed().checked_div(self.done as u32) else {
            return String::new();
        };
        let given = self.time.saturating_sub(self.started.elapsed());
        let left = (each * self.planned.saturating_sub(self.done) as u32).min(given);
        match self.looks_closer {
            true => {
                format!(", about {} left, with a closer look at most {}", time(left), time(given))
            }
            false => format!(", about {} left", time(left)),
        }
    }
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..100 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
