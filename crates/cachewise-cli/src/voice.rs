//! What the command says beside its result, all of it on stderr: errors, warnings, notes, progress.
//!
//! A warning has an id, a cause and a remedy, is said once, and is switched off by
//! `--silence ID`. Progress is a bar where stderr is a terminal that can draw one, plain lines
//! elsewhere. Nothing is coloured, so there is nothing to switch off. A stderr that is closed
//! silences it; that is no error.

use crate::args::Output;
use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{IsTerminal, Write, stderr};

pub(crate) fn error(failure: &Failure) {
    if let Some(message) = failure.message() {
        line(&format_args!("error: {message}"));
    }
}

fn line(text: &dyn fmt::Display) {
    let _ = writeln!(stderr(), "{text}");
}

pub(crate) struct Voice {
    quiet: bool,
    silenced: BTreeSet<String>,
    said: BTreeSet<String>,
    progress: Option<ProgressBar>,
}

impl Voice {
    pub(crate) fn new(output: &Output) -> Self {
        Self {
            quiet: output.quiet,
            silenced: output.silence.iter().cloned().collect(),
            said: BTreeSet::new(),
            progress: None,
        }
    }

    pub(crate) fn note(&mut self, text: &dyn fmt::Display) {
        if !self.quiet {
            self.once(format!("note: {text}"));
        }
    }

    pub(crate) fn warn(&mut self, id: &str, cause: &dyn fmt::Display, remedy: &dyn fmt::Display) {
        if !self.quiet && !self.silenced.contains(id) {
            self.once(format!("warning[{id}]: {cause}; {remedy}"));
        }
    }

    fn once(&mut self, text: String) {
        if self.said.insert(text.clone()) {
            match &self.progress {
                Some(bar) => bar.suspend(|| line(&text)),
                None => line(&text),
            }
        }
    }

    pub(crate) fn begin(&mut self, steps: usize) {
        if !self.quiet && can_draw() {
            let bar =
                ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {wide_msg} {eta}") {
                bar.set_style(style);
            }
            self.progress = Some(bar);
        }
    }

    pub(crate) fn step(&mut self, what: &dyn fmt::Display) {
        match &self.progress {
            Some(bar) => {
                bar.set_message(what.to_string());
                bar.tick();
            }
            None if self.quiet => {}
            None => line(&format_args!("measuring: {what}")),
        }
    }

    pub(crate) fn step_done(&self) {
        self.steps_done(1);
    }

    pub(crate) fn steps_done(&self, count: usize) {
        if let Some(bar) = &self.progress {
            bar.inc(count as u64);
        }
    }

    /// There are more steps than was said at first.
    pub(crate) fn more(&self, steps: usize) {
        if let Some(bar) = &self.progress {
            bar.inc_length(steps as u64);
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.progress.take() {
            bar.finish_and_clear();
        }
    }
}

/// Whatever ends the measurement, the bar does not stay on the screen.
impl Drop for Voice {
    fn drop(&mut self) {
        self.end();
    }
}

fn can_draw() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stderr().is_terminal() && !set("NO_COLOR") && !dumb
}
