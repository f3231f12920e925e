//! Results of `bench`, `map` and `tune`, read back: one JSON value, or JSON lines of one case each.
//!
//! Cases stay what they are in the file, names and values, so that a field which this version does
//! not know is still shown; only what means nothing in a case is left out of it. What the commands
//! themselves declare is used, not repeated: which columns identify a case
//! ([`identifying`](crate::record::Column)). Rows of a map become its [`cells`] again where more
//! than names and values is needed. What is read is somebody else's file: everything that is used is
//! checked, and the message says where and what to do.

pub(crate) mod cells;

use crate::commands::{bench, map};
use crate::failure::Failure;
use crate::record::{self, Column, SCHEMA_VERSION};
use cachewise_measure::Samples;
use cachewise_measure::compare::Timed;
use serde_json::Value;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub(crate) type Fields = serde_json::Map<String, Value>;

/// Which command made a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bench,
    Map,
}

/// The names of a time: its median, the interval's ends, the samples.
pub(crate) struct TimeKeys {
    pub(crate) median: &'static str,
    pub(crate) low: &'static str,
    pub(crate) high: &'static str,
    pub(crate) samples: &'static str,
}

impl Kind {
    /// What this command writes, if it is read here. A policy is fitted to cells of a map.
    fn of(command: &str) -> Option<Self> {
        match command {
            "bench" => Some(Self::Bench),
            "map" | "tune" => Some(Self::Map),
            _ => None,
        }
    }

    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Bench => "bench",
            Self::Map => "map",
        }
    }

    /// Under which name its cases stand.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Bench => "cases",
            Self::Map => "cells",
        }
    }

    /// The names of the fields that tell one case from another.
    pub(crate) fn identity(self) -> Vec<&'static str> {
        match self {
            Self::Bench => identifying(bench::CASES),
            Self::Map => identifying(map::CELLS),
        }
    }

    /// The time that counts.
    pub(crate) fn time(self) -> TimeKeys {
        match self {
            Self::Bench => TimeKeys {
                median: "median_ns",
                low: "low_ns",
                high: "high_ns",
                samples: "samples_ns",
            },
            Self::Map => TimeKeys {
                median: "whole_ns",
                low: "whole_low_ns",
                high: "whole_high_ns",
                samples: "samples_ns",
            },
        }
    }
}

fn identifying<R>(columns: &[Column<R>]) -> Vec<&'static str> {
    columns.iter().filter(|column| column.identifies).map(|column| column.key).collect()
}

/// A result file.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) machine: Fields,
    pub(crate) cases: Vec<Case>,
    /// What else stands beside the cases, such as limits.
    pub(crate) others: Fields,
}

/// One row of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) fields: Fields,
}

const HEAD: [&str; 3] = ["schema_version", "command", "machine"];
const MAKE_ONE: &str = "bench and map make one, as in: cachewise map copy --format json > FILE";

impl Results {
    /// Reads a file, or standard input if it is called `-`.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = if path == Path::new("-") {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            fs::read_to_string(path)
        };
        let fail = |because: String| Failure::Input(format!("{}: {because}", path.display()));
        let text = text.map_err(|error| {
            fail(match error.kind() {
                io::ErrorKind::NotFound => format!("there is no such file; {MAKE_ONE}"),
                io::ErrorKind::InvalidData => format!("is not text; {MAKE_ONE}"),
                _ => error.to_string(),
            })
        })?;
        parse(&text).map_err(fail).map(|(kind, machine, cases, others)| {
            let path = path.to_owned();
            Self { path, kind, machine, cases, others }
        })
    }

    /// Which of the identifying fields are not the same in all cases of these results that have
    /// them.
    pub(crate) fn varying(kind: Kind, of: &[&Results]) -> Vec<&'static str> {
        let cases = || of.iter().flat_map(|results| &results.cases);
        let varies = |key: &&str| {
            let mut values = cases().map(|case| case.get(key)).filter(|value| !value.is_null());
            values.next().is_some_and(|first| values.any(|value| value != first))
        };
        kind.identity().into_iter().filter(varies).collect()
    }
}

type Parsed = (Kind, Fields, Vec<Case>, Fields);

fn parse(text: &str) -> Result<Parsed, String> {
    if text.trim().is_empty() {
        return Err(format!("is empty; {MAKE_ONE}"));
    }
    let mut parsed = match serde_json::from_str(text) {
        Ok(Value::Object(whole)) => one(whole)?,
        Ok(_) => return Err(format!("is JSON, but no result of cachewise; {MAKE_ONE}")),
        Err(whole_error) => lines(text, &whole_error)?,
    };
    let (kind, _, cases, _) = &mut parsed;
    let (kind, cases) = (*kind, cases);
    if cases.is_empty() {
        return Err(format!("has no {}; measure again", kind.list()));
    }
    for (index, case) in cases.iter_mut().enumerate() {
        case.forget_what_means_nothing();
        case.check(kind).map_err(|error| format!("{} {index}: {error}", kind.list()))?;
    }
    Ok(parsed)
}

fn lines(text: &str, whole_error: &dyn Display) -> Result<Parsed, String> {
    let mut all: Option<Parsed> = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Ok(value) = serde_json::from_str(line) else {
            return Err(match all {
                None => format!("is no JSON ({whole_error}); was it cut short? {MAKE_ONE}"),
                Some(_) => format!(
                    "line {} is no JSON; was it cut short? remove that line, or measure again",
                    index + 1
                ),
            });
        };
        let Value::Object(line) = value else {
            return Err(format!("line {} is no result of cachewise; {MAKE_ONE}", index + 1));
        };
        let next = one(line).map_err(|error| format!("line {}: {error}", index + 1))?;
        match &mut all {
            None => all = Some(next),
            Some((kind, machine, cases, others)) => {
                if (*kind, &*machine) != (next.0, &next.1) {
                    return Err(format!(
                        "line {} is of another command or another machine than the lines before; \
                         make a file of each",
                        index + 1
                    ));
                }
                cases.extend(next.2);
                others.extend(next.3);
            }
        }
    }
    all.ok_or_else(|| format!("is empty; {MAKE_ONE}"))
}

/// A whole result, or a line: the head and the fields of one case.
fn one(mut fields: Fields) -> Result<Parsed, String> {
    match fields.get("schema_version") {
        Some(Value::Number(version)) if version.as_u64() == Some(SCHEMA_VERSION) => {}
        Some(version) => {
            return Err(format!(
                "has schema_version {version}, and this cachewise reads {SCHEMA_VERSION}; take the \
                 cachewise that wrote it, or measure again"
            ));
        }
        None => return Err(format!("is no result of cachewise: no schema_version; {MAKE_ONE}")),
    }
    let command = fields.get("command").and_then(Value::as_str).unwrap_or_default();
    let Some(kind) = Kind::of(command) else {
        return Err(format!("is a result of \"{command}\", not of bench, map or tune; {MAKE_ONE}"));
    };
    let Some(Value::Object(machine)) = fields.remove("machine") else {
        return Err("does not say on which machine it was measured; measure again".into());
    };
    HEAD.iter().for_each(|key| drop(fields.remove(*key)));
    let rows = match fields.remove(kind.list()) {
        None if fields.contains_key("variant") => {
            return Ok((kind, machine, vec![Case { fields }], Fields::new()));
        }
        None => vec![],
        Some(Value::Array(rows)) => rows,
        Some(_) => return Err(format!("{} is no list; measure again", kind.list())),
    };
    let case = |row| match row {
        Value::Object(fields) => Ok(Case { fields }),
        _ => Err(format!("{} holds something that is no case; measure again", kind.list())),
    };
    let cases = rows.into_iter().map(case).collect::<Result<_, _>>()?;
    Ok((kind, machine, cases, fields))
}

impl Case {
    /// `Null` where there is none.
    pub(crate) fn get(&self, key: &str) -> &Value {
        self.fields.get(key).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.get(key).as_f64()
    }

    pub(crate) fn value(&self, key: &str) -> record::Value {
        value(key, self.get(key))
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.text("status") == "ok"
    }

    /// Why there is no figure: the status and its reason.
    pub(crate) fn because(&self) -> String {
        match self.text("because") {
            "" => self.text("status").to_owned(),
            because => format!("{}: {because}", self.text("status")),
        }
    }

    /// The values of these fields, one after the other, each with its name unless it speaks for
    /// itself.
    pub(crate) fn described(&self, keys: &[&str]) -> String {
        let with_name = |key: &&str| match (*key, self.value(key)) {
            (_, record::Value::Missing) => None,
            ("operation" | "size_bytes" | "variant" | "temperature" | "pattern", value) => {
                Some(value.for_people())
            }
            (key, value) => Some(format!("{} {}", name_of(key), value.for_people())),
        };
        keys.iter().filter_map(with_name).collect::<Vec<_>>().join(", ")
    }

    /// The time that counts, if there is one.
    pub(crate) fn timed(&self, kind: Kind) -> Option<Timed> {
        let keys = kind.time();
        let median_ns = self.number(keys.median).filter(|_| self.is_ok())?;
        let interval_ns = self.number(keys.low).zip(self.number(keys.high));
        let samples = samples(self.get(keys.samples)).unwrap_or_default();
        Some(Timed { median_ns, interval_ns, samples })
    }

    /// How nothing is used, where nobody runs and what is cleared from is no part of a case.
    fn forget_what_means_nothing(&mut self) {
        if self.text("operation") == "clear" {
            self.fields.entry("source").and_modify(|value| *value = Value::Null);
        }
        for (key, hangs_on_it) in [
            ("use_share", &["use_kind"][..]),
            ("victim_bytes", &["victim_walk", "victim_core", "retouch"][..]),
        ] {
            if self.number(key) == Some(0.0) {
                for key in hangs_on_it {
                    self.fields.entry(*key).and_modify(|value| *value = Value::Null);
                }
            }
        }
    }

    fn check(&self, kind: Kind) -> Result<(), String> {
        for key in ["operation", "variant", "status"] {
            if self.get(key).as_str().is_none() {
                return Err(format!("{key} is missing; measure again"));
            }
        }
        let keys = kind.time();
        let positive = |key: &str| match self.get(key) {
            Value::Null => true,
            value => value.as_f64().is_some_and(|ns| ns > 0.0 && ns.is_finite()),
        };
        if let Some(key) = [keys.median, keys.low, keys.high].into_iter().find(|key| !positive(key))
        {
            return Err(format!("{key} is {}, which is no time; measure again", self.get(key)));
        }
        let is_time = |ns: &f64| *ns > 0.0 && ns.is_finite();
        match samples(self.get(keys.samples)) {
            Some(samples) if samples.batches().iter().flatten().all(is_time) => Ok(()),
            _ => Err(format!("{} holds something else than times; measure again", keys.samples)),
        }
    }
}

/// Samples by batch, or one batch without brackets of its own. `None` for anything else.
pub(crate) fn samples(value: &Value) -> Option<Samples> {
    let batch = |value: &Value| value.as_array()?.iter().map(Value::as_f64).collect();
    match value {
        Value::Null => Some(Samples::default()),
        Value::Array(items) if items.iter().all(Value::is_array) => {
            items.iter().map(batch).collect::<Option<_>>().map(Samples::new)
        }
        flat => Some(Samples::new(vec![batch(flat)?])),
    }
}

/// A field's value; its name says the unit.
pub(crate) fn value(key: &str, value: &Value) -> record::Value {
    use record::Value as Shown;
    match value {
        Value::Null => Shown::Missing,
        Value::Bool(flag) => Shown::Flag(*flag),
        Value::String(text) => Shown::Text(text.clone()),
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            let whole = number.as_u64();
            match whole {
                Some(bytes) if key.ends_with("_bytes") => Shown::Bytes(bytes),
                _ if key.ends_with("_ns") => Shown::Ns(float),
                _ if key.ends_with("gb_per_s") => Shown::GbPerS(float),
                _ if key.contains("ratio") => Shown::Ratio(float),
                _ if key.contains("share") => Shown::Share(float),
                _ => whole.map_or_else(|| Shown::text(number), Shown::Count),
            }
        }
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Shown::Words(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        other => match samples(other) {
            Some(samples) => Shown::Samples(samples.batches().to_vec()),
            None => Shown::text(other),
        },
    }
}

/// A field's name as people read it: without its unit, which the value has.
pub(crate) fn name_of(key: &str) -> String {
    let unit = ["_bytes", "_ns", "_gb_per_s"].into_iter().find(|unit| key.ends_with(unit));
    key.strip_suffix(unit.unwrap_or_default()).unwrap_or(key).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r#""operation": "copy", "size_bytes": 64, "variant": "mov", "threads": 1,
        "median_ns": 2.0, "low_ns": 1.5, "high_ns": 2.5, "status": "ok""#;

    fn head(version: u64, command: &str) -> String {
        format!(r#""schema_version": {version}, "command": "{command}", "machine": {{"cpus": 2}}"#)
    }

    fn whole(version: u64, command: &str, list: &str, case: &str) -> String {
        format!(r#"{{{}, "{list}": [{{{case}}}], "limits": {{}}}}"#, head(version, command))
    }

    #[test]
    fn a_whole_result_and_its_lines_are_the_same() {
        let (kind, machine, cases, others) = parse(&whole(1, "bench", "cases", CASE)).unwrap();
        assert_eq!((kind, cases.len(), others.len()), (Kind::Bench, 1, 1));
        let line = format!("{{{}, {CASE}}}", head(1, "bench")).replace('\n', "");
        let read = parse(&format!("{line}\n\n{line}\n")).unwrap();
        assert_eq!(read.2, [cases[0].clone(), cases[0].clone()]);
        assert_eq!(read.1, machine);
        assert_eq!(parse(&line).unwrap().2, cases);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_place_and_the_remedy() {
        let line = format!("{{{}, {CASE}}}", head(1, "bench")).replace('\n', "");
        for (text, says) in [
            (" \n".into(), "is empty"),
            ("[1]".into(), "no result of cachewise"),
            ("{}".into(), "no schema_version"),
            (whole(2, "bench", "cases", CASE), "has schema_version 2, and this cachewise reads 1"),
            (whole(1, "list", "slots", CASE), "result of \"list\", not of bench, map or tune"),
            (whole(1, "map", "cases", CASE), "has no cells"),
            (whole(1, "bench", "cases", ""), "cases 0: operation is missing"),
            (whole(1, "bench", "cases", &CASE.replace("2.0", "-2.0")), "median_ns is -2.0"),
            (whole(1, "bench", "cases", &CASE.replace("2.0", "\"2\"")), "which is no time"),
            (
                whole(1, "bench", "cases", &format!("{CASE}, \"samples_ns\": [[1, null]]")),
                "samples_ns holds something else",
            ),
            (whole(1, "bench", "cases", CASE)[..120].into(), "cut short"),
            (format!("{line}\n{}", &line[..50]), "line 2 is no JSON"),
            (format!("{line}\n{}", line.replace(": 2}", ": 3}")), "line 2 is of another command"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(says), "{error}");
            assert!(error.contains(';') || error.contains('?'), "no remedy: {error}");
        }
    }

    #[test]
    fn names_and_values_carry_their_units() {
        let (_, _, cases, _) = parse(&whole(1, "bench", "cases", CASE)).unwrap();
        let keys = ["operation", "size_bytes", "pattern", "threads"];
        assert_eq!(cases[0].described(&keys), "copy, 64 B, threads 1");
        assert_eq!(value("median_ns", &2.0.into()).for_people(), "2.00 ns");
        assert_eq!(value("share_of_limit", &0.5.into()).for_people(), "50 %");
        assert_eq!(samples(&serde_json::json!([[1.0, 2.0], [3.0]])).unwrap().count(), 3);
        assert_eq!(samples(&serde_json::json!([1.0, 2.0])).unwrap().batches().len(), 1);
        assert_eq!(samples(&serde_json::json!([1.0, "2"])), None);
    }
}
