//! Finished cells of an earlier JSON result of `map`.

use super::super::HEAD;
use crate::failure::Failure;
use crate::record::Object;
use crate::results::{Fields, Kind, Results};
use cachewise::variant::Operation;
use cachewise_measure::Machine;
use cachewise_measure::map::Measured;
use serde_json::Value;
use std::path::Path;

/// The cells of this operation that were finished.
pub(super) fn read(
    path: &Path,
    machine: &Machine,
    operation: Operation,
) -> Result<Vec<Measured>, Failure> {
    let results = Results::read(path)?;
    let fail =
        |what: String| Failure::Input(format!("cannot go on from {}: {what}", path.display()));
    if results.kind != Kind::Map {
        return Err(fail("it is a result of bench; give one of map --format json".into()));
    }
    check_machine(&results.machine, machine).map_err(fail)?;
    let mut cells = results.finished_cells().map_err(fail)?;
    cells.retain(|measured| measured.cell.operation == operation);
    Ok(cells)
}

/// Figures of two machines must not stand in one map. What may change between two runs on one, its
/// memory and the CPUs it lets us use, is no difference.
fn check_machine(theirs: &Fields, machine: &Machine) -> Result<(), String> {
    let ours = Object::new("machine", HEAD, machine);
    let ours = serde_json::to_value(&ours).map_err(|error| error.to_string())?;
    let fields = ["vendor", "brand", "family", "model", "stepping", "last_level_bytes"];
    let theirs = |field: &str| theirs.get(field).unwrap_or(&Value::Null);
    match fields.into_iter().find(|field| ours[*field] != *theirs(field)) {
        None => Ok(()),
        Some(field) => Err(format!(
            "it was measured on another machine ({field} was {}, here it is {}); start anew",
            theirs(field),
            ours[field]
        )),
    }
}
