//! `report`: a result as a page with pictures, to stdout or to a file.

use crate::args::Report;
use crate::failure::Failure;
use crate::page;
use crate::results::Results;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

pub(super) fn run(args: &Report) -> Result<ExitCode, Failure> {
    let page = page::html(&Results::read(&args.file)?);
    match &args.output {
        None => {
            let mut out = io::stdout().lock();
            out.write_all(page.as_bytes())?;
            out.flush()?;
        }
        Some(path) => fs::write(path, page).map_err(|error| {
            Failure::Input(format!("{}: cannot be written: {error}", path.display()))
        })?,
    }
    Ok(ExitCode::SUCCESS)
}
