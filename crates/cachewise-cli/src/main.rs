//! The command: it parses, calls the scales and presents what they say. It computes nothing.
//!
//! What scripts rely on: stdout carries only the result, in one of four formats made from one
//! record, or as a page; everything else goes to stderr. Exit codes: see [`failure::Failure`].
#![forbid(unsafe_code)]

mod args;
mod commands;
mod export;
mod failure;
mod interrupt;
mod page;
mod record;
mod results;
mod size;
mod voice;

use args::Args;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::from_command_line();
    match run(&args) {
        Ok(code) => code,
        Err(failure) => {
            voice::error(&failure);
            failure.exit_code()
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    cachewise::init().map_err(cachewise_measure::Error::from)?;
    commands::run(args)
}
