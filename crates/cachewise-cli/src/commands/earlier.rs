//! Finished cells of an earlier JSON result of `map` or `tune`.

use super::{HEAD, differing};
use crate::failure::Failure;
use crate::record::Object;
use crate::results::{Fields, Kind, Results};
use cachewise_measure::Machine;
use cachewise_measure::map::Measured;
use std::path::Path;

/// Those that have figures, with all their samples.
pub(super) fn cells(path: &Path, machine: &Machine) -> Result<Vec<Measured>, Failure> {
    let results = Results::read(path)?;
    let fail =
        |what: String| Failure::Input(format!("cannot go on from {}: {what}", path.display()));
    if results.kind != Kind::Map {
        return Err(fail("it is a result of bench; give one of map or tune --format json".into()));
    }
    check_machine(&results.machine, machine).map_err(fail)?;
    results.finished_cells().map_err(fail)
}

/// Figures of two machines must not stand in one map.
fn check_machine(theirs: &Fields, machine: &Machine) -> Result<(), String> {
    let ours = Object::new("machine", HEAD, machine);
    let ours = serde_json::to_value(&ours).map_err(|error| error.to_string())?;
    let Some(ours) = ours.as_object() else { return Ok(()) };
    match differing(theirs, ours).first() {
        None => Ok(()),
        Some(field) => Err(format!(
            "it was measured on another machine ({field} was {}, here it is {}); start anew",
            theirs[*field], ours[*field]
        )),
    }
}
