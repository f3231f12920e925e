//! The rows of `map`'s cells as what was measured: what a later run goes on from, and what a page
//! draws.

use super::{Case, Results, samples};
use cachewise::variant::Operation;
use cachewise_measure::contestant::LIBC;
use cachewise_measure::map::{
    Cell, Measured, Misses, Outcome, Share, Status, Times, UseKind, Victim,
};
use cachewise_measure::{Page, Samples, Temperature};
use serde_json::Value;
use std::str::FromStr;

/// Those of these rows that have figures, by cell, in the order in which they come.
pub(crate) fn measured<'a>(
    cases: impl IntoIterator<Item = &'a Case>,
) -> Result<Vec<Measured>, String> {
    let mut cells: Vec<Measured> = Vec::new();
    for (index, case) in cases.into_iter().enumerate().filter(|(_, case)| case.is_ok()) {
        let (cell, outcome) = outcome(case).map_err(|error| format!("cell {index}: {error}"))?;
        match cells.iter_mut().find(|measured| measured.cell == cell) {
            Some(measured) => measured.outcomes.push(outcome),
            None => cells.push(Measured { cell, outcomes: vec![outcome] }),
        }
    }
    // In a file they stand by their times; libc is the first of them.
    for measured in &mut cells {
        measured.outcomes.sort_by_key(|outcome| outcome.variant != LIBC);
    }
    Ok(cells)
}

impl Results {
    /// The cells that have figures, with all their samples: what can be measured further.
    pub(crate) fn finished_cells(&self) -> Result<Vec<Measured>, String> {
        let cells = measured(&self.cases)?;
        let mut outcomes = cells.iter().flat_map(Measured::ok);
        if outcomes.any(|outcome| !outcome.times.is_complete()) {
            return Err("it lacks samples of some parts; measure anew".into());
        }
        drop(outcomes);
        Ok(cells)
    }
}

/// What has no meaning in a cell may be missing, and is as [`Cell`] says.
fn outcome(case: &Case) -> Result<(Cell, Outcome), String> {
    let used = Share::new(number(case, "use_share")?).ok_or_else(|| wrong(case, "use_share"))?;
    let is_used = used != Share::NONE;
    let victim_bytes = whole(case, "victim_bytes")?;
    let victim = match victim_bytes {
        0 => Victim::NONE,
        bytes => Victim {
            bytes,
            walk: word(case, "victim_walk")?,
            core: word(case, "victim_core")?,
            retouch: whole(case, "retouch")?,
        },
    };
    let operation = operation(case)?;
    let cell = Cell {
        operation,
        size_bytes: whole(case, "size_bytes")?,
        source: match operation {
            Operation::Copy => word(case, "source")?,
            Operation::Clear => Temperature::Cold,
        },
        page: word::<Page>(case, "page")?,
        threads: whole(case, "threads")?,
        used,
        use_kind: if is_used { word(case, "use_kind")? } else { UseKind::Read },
        delay_bytes: whole(case, "delay_bytes")?,
        victim,
    };
    let status: Status = word(case, "status")?;
    let because = case.get("because").as_str().map(str::to_owned);
    let variant = case.text("variant").to_owned();
    let mut times = times(case)?;
    // Earlier versions did not write it down. Nothing takes no time.
    if cell.delay_bytes == 0 && times.delay_baseline.count() == 0 {
        let none = times.whole.batches().iter().map(|batch| vec![0.0; batch.len()]);
        times.delay_baseline = Samples::new(none.collect());
    }
    Ok((cell, Outcome { variant, status, because, times }))
}

fn operation(case: &Case) -> Result<Operation, String> {
    let name = case.text("operation");
    let known = [Operation::Copy, Operation::Clear];
    known
        .into_iter()
        .find(|known| known.to_string() == name)
        .ok_or_else(|| wrong(case, "operation"))
}

fn times(case: &Case) -> Result<Times, String> {
    let of = |key| samples(case.get(key)).ok_or_else(|| wrong(case, key));
    Ok(Times {
        op: of("op_samples_ns")?,
        delay: of("delay_samples_ns")?,
        delay_baseline: of("delay_baseline_samples_ns")?,
        used: of("use_samples_ns")?,
        victim: of("victim_samples_ns")?,
        victim_baseline: of("victim_baseline_samples_ns")?,
        use_baseline: of("use_baseline_samples_ns")?,
        whole: of("samples_ns")?,
        misses: Misses {
            op: of("op_misses_samples")?,
            used: of("use_misses_samples")?,
            victim: of("victim_misses_samples")?,
        },
    })
}

fn number(case: &Case, key: &str) -> Result<f64, String> {
    case.number(key).ok_or_else(|| wrong(case, key))
}

fn whole<T: TryFrom<u64>>(case: &Case, key: &str) -> Result<T, String> {
    let number = case.get(key).as_u64().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| wrong(case, key))
}

fn word<T: FromStr>(case: &Case, key: &str) -> Result<T, String> {
    case.text(key).parse().map_err(|_| wrong(case, key))
}

fn wrong(case: &Case, key: &str) -> String {
    match case.get(key) {
        Value::Null => format!("{key} is missing; measure anew"),
        value => format!("{key} can't be {value}; measure anew"),
    }
}
