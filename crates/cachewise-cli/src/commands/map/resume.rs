//! Finished cells of an earlier JSON result of `map`.

use super::super::HEAD;
use crate::failure::Failure;
use crate::record::{Object, SCHEMA_VERSION};
use cachewise::variant::Operation;
use cachewise_measure::Machine;
use cachewise_measure::map::{Cell, Measured, Misses, Outcome, Share, Status, Times, Victim};
use cachewise_measure::stats::Samples;
use serde_json::Value as Json;
use std::path::Path;

/// The cells of this operation that were finished.
pub(super) fn read(
    path: &Path,
    machine: &Machine,
    operation: Operation,
) -> Result<Vec<Measured>, Failure> {
    let fail = |what: &str| Failure::Input(format!("cannot go on from {}: {what}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| fail(&error.to_string()))?;
    let json: Json = serde_json::from_slice(&bytes)
        .map_err(|error| fail(&format!("{error}; give a result of map --format json")))?;
    if json["command"] != "map" || json["schema_version"] != SCHEMA_VERSION {
        return Err(fail("it is no result of this version's map --format json"));
    }
    check_machine(&json["machine"], machine).map_err(|what| fail(&what))?;
    let rows = json["cells"].as_array().ok_or_else(|| fail("it has no cells"))?;
    let mut known: Vec<Measured> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let (cell, outcome) = outcome(row)
            .ok_or_else(|| fail(&format!("cell {index} lacks a field, or has a wrong one")))?;
        if cell.operation != operation || outcome.status != Status::Ok {
            continue;
        }
        match known.iter_mut().find(|measured| measured.cell == cell) {
            Some(measured) => measured.outcomes.push(outcome),
            None => known.push(Measured { cell, outcomes: vec![outcome] }),
        }
    }
    Ok(known)
}

/// Figures of two machines must not stand in one map. What may change between two runs on one, its
/// memory and the CPUs it lets us use, is no difference.
fn check_machine(theirs: &Json, machine: &Machine) -> Result<(), String> {
    let ours = Object::new("machine", HEAD, machine);
    let ours = serde_json::to_value(&ours).map_err(|error| error.to_string())?;
    let fields = ["vendor", "brand", "family", "model", "stepping", "last_level_bytes"];
    match fields.into_iter().find(|field| ours[field] != theirs[field]) {
        None => Ok(()),
        Some(field) => Err(format!(
            "it was measured on another machine ({field} was {}, here it is {}); start anew",
            theirs[field], ours[field]
        )),
    }
}

fn outcome(row: &Json) -> Option<(Cell, Outcome)> {
    let number = |key: &str| row[key].as_u64().and_then(|n| usize::try_from(n).ok());
    let word = |key: &str| row[key].as_str();
    let cell = Cell {
        operation: match word("operation")? {
            "copy" => Operation::Copy,
            "clear" => Operation::Clear,
            _ => return None,
        },
        size_bytes: number("size_bytes")?,
        source: word("source")?.parse().ok()?,
        page: word("page")?.parse().ok()?,
        threads: number("threads")?,
        used: Share::new(row["use_share"].as_f64()?)?,
        use_kind: word("use_kind")?.parse().ok()?,
        delay_bytes: number("delay_bytes")?,
        victim: Victim {
            bytes: number("victim_bytes")?,
            walk: word("victim_walk")?.parse().ok()?,
            core: word("victim_core")?.parse().ok()?,
            retouch: number("retouch")?.try_into().ok()?,
        },
    };
    let status: Status = word("status")?.parse().ok()?;
    let times = match status {
        Status::Ok => times(row)?,
        _ => Times::default(),
    };
    let (variant, because) = (word("variant")?.to_owned(), word("because").map(str::to_owned));
    Some((cell, Outcome { variant, status, because, times }))
}

fn times(row: &Json) -> Option<Times> {
    let samples = |key: &str| {
        let batch = |batch: &Json| batch.as_array()?.iter().map(Json::as_f64).collect();
        let batches: Option<Vec<Vec<f64>>> = row[key].as_array()?.iter().map(batch).collect();
        batches.map(Samples::new)
    };
    // Not in a result from a machine that has no counters.
    let misses = |key: &str| samples(key).unwrap_or_default();
    Some(Times {
        op: samples("op_samples_ns")?,
        delay: samples("delay_samples_ns")?,
        used: samples("use_samples_ns")?,
        victim: samples("victim_samples_ns")?,
        victim_baseline: samples("victim_baseline_samples_ns")?,
        use_baseline: samples("use_baseline_samples_ns")?,
        whole: samples("samples_ns")?,
        misses: Misses {
            op: misses("op_misses_samples"),
            used: misses("use_misses_samples"),
            victim: misses("victim_misses_samples"),
        },
    })
}
