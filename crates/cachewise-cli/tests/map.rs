//! What scripts rely on of `map`. No test asserts a time.
//!
//! Without time, each planned cell that shares the first one's memory gets its least number of
//! samples, and the rest is left out.

use assert_cmd::cargo::cargo_bin;
use predicates::str::contains;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

fn cachewise(args: &str) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(cargo_bin!("cachewise"));
    for name in ["FORCE", "DISABLE", "NT_THRESHOLD", "PROFILE"] {
        command.env_remove(format!("CACHEWISE_{name}"));
    }
    command.args(args.split_whitespace());
    command
}

const MAP: &str = "map copy --size 4K --source cold --use 0,1 --use-kind read --delay 0,32K \
                   --victim 0,16K --walk dependent --variant mov,portable --time 0";

static OUTPUT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let assert = cachewise(MAP).args(["--format", "json"]).assert().success();
    assert.get_output().stdout.clone()
});
static JSON: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&OUTPUT).expect("stdout is one JSON value"));

/// The result as a file of this test's own.
fn saved(name: &str, json: &Value) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, json.to_string()).unwrap();
    path
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list")).as_slice()
}

fn has_fields(object: &Value, fields: &str) {
    for field in fields.split_whitespace() {
        assert!(object.get(field).is_some(), "no {field} in {object}");
    }
}

const CELL: &str = "operation size_bytes use_share use_kind delay_bytes victim_bytes retouch \
                    source threads variant op_ns use_ns victim_ns victim_baseline_ns \
                    victim_excess_ns whole_ns whole_low_ns whole_high_ns unattributed_ns status";

#[test]
fn cells_have_the_fields_of_the_contract() {
    assert_eq!((&JSON["schema_version"], &JSON["command"]), (&1.into(), &"map".into()));
    has_fields(&JSON["range"], "footprint_bytes last_level_bytes level level_claimed load_ns");
    // Two victims, two delays, two shares, three contenders.
    assert_eq!(list(&JSON, "cells").len(), 2 * 2 * 2 * 3);
    for cell in list(&JSON, "cells") {
        has_fields(cell, CELL);
        has_fields(cell, "delay_ns victim_walk victim_core page because samples_ns");
        assert_eq!(cell["status"], "ok", "{cell}");
    }
}

#[test]
fn the_whole_is_its_parts_and_what_is_left() {
    for cell in list(&JSON, "cells") {
        let ns = |key: &str| cell[key].as_f64().unwrap_or_else(|| panic!("{key}: {cell}"));
        let parts = ns("victim_ns") + ns("op_ns") + ns("delay_ns") + ns("use_ns");
        assert!((ns("whole_ns") - parts - ns("unattributed_ns")).abs() < 0.01, "{cell}");
        assert!(ns("whole_low_ns") <= ns("whole_ns") && ns("whole_ns") <= ns("whole_high_ns"));
        let part = |key: &str, has: bool| assert!((ns(key) > 0.0) == has, "{key}: {cell}");
        part("victim_baseline_ns", cell["victim_bytes"] != 0);
        part("use_baseline_ns", cell["use_share"] != 0.0);
        part("delay_ns", cell["delay_bytes"] != 0);
    }
}

#[test]
fn libc_is_in_every_cell_and_each_contender_once() {
    for cells in list(&JSON, "cells").chunks(3) {
        let mut names: Vec<&str> = cells.iter().map(|c| c["variant"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["libc", "mov", "portable"]);
    }
}

/// One side is missing here: there is nothing to break even with.
#[test]
fn without_a_side_there_is_no_break_even() {
    assert!(list(&JSON, "break_even").is_empty() && list(&JSON, "verdicts").is_empty());
}

#[test]
fn a_quick_map_has_break_even_lines_verdicts_and_a_picture() {
    let args = "map clear --quick --size 4K --use 0,1 --use-kind read --victim 0 --time 0";
    let output = cachewise(args).args(["--format", "json"]).assert().success();
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let lines = list(&value, "break_even");
    assert_eq!(lines.len(), 1);
    has_fields(&lines[0], "operation size_bytes source use_kind delay_bytes victim_bytes retouch");
    has_fields(&lines[0], "threads until_share until_share_low until_share_high verdict");
    let sides = ["non-temporal", "temporal", "no difference", "too noisy to tell"];
    assert!(sides.contains(&lines[0]["wins_before"].as_str().unwrap()));
    assert_eq!(list(&value, "verdicts").len(), 1);
    // libc and at most four others in each cell, one of each kind of store among them.
    assert!(list(&value, "cells").len() <= 2 * 5 + 5);

    let path = saved("quick.json", &value);
    let output = cachewise(args).arg("--resume").arg(path).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("clear; read at once\n"), "{text}");
    assert_fits_a_terminal(&text);
    // What follows stands last.
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}: {text}"));
    let order = [at("N, n: "), at("whole"), at("break-even, "), at("which side wins")];
    assert!(order.is_sorted(), "{text}");

    let noisy = saved("noisy.json", &with_noise(value));
    let assert = cachewise(args).arg("--resume").arg(&noisy).assert().success();
    assert.stderr(contains("warning[noisy-cells]")).stdout(contains("?"));
    let silenced =
        cachewise(args).args(["--silence", "noisy-cells", "--resume"]).arg(noisy).assert();
    let silenced = String::from_utf8(silenced.success().get_output().stderr.clone()).unwrap();
    assert!(!silenced.contains("noisy-cells"), "{silenced}");
}

/// No two rows' samples up and down in the same rounds.
fn with_noise(mut value: Value) -> Value {
    for (row, cell) in value["cells"].as_array_mut().unwrap().iter_mut().enumerate() {
        let mut index = row;
        for batch in cell["samples_ns"].as_array_mut().unwrap() {
            for sample in batch.as_array_mut().unwrap() {
                *sample = 10_f64.powi((7 * index % 5) as i32 + 2).into();
                index += row + 1;
            }
        }
    }
    value
}

fn assert_fits_a_terminal(text: &str) {
    assert!(!text.is_empty());
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\u{1b}'), "{line}");
    }
}

#[test]
fn a_map_of_many_axes_and_its_comparison_fit_80_columns() {
    let args = "map clear --size 4K --use 1 --use-kind write --delay 32K --victim 16K --retouch 3 \
                --walk independent --threads 2 --time 0";
    let output = cachewise(args).args(["--format", "json"]).assert().success();
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    for list in ["cells", "break_even", "verdicts"] {
        assert!(self::list(&value, list).iter().all(|row| row["source"].is_null()), "{list}");
    }
    let line = &list(&value, "break_even")[0];
    assert_eq!((&line["shares"][0], line["shares"].as_array().unwrap().len()), (&1.0.into(), 1));
    assert!(line["ratios"][0].is_f64() && line["temporal"][0].is_string(), "{line}");

    let path = saved("axes.json", &value);
    let path = path.to_str().unwrap();
    let table = cachewise(args).args(["--resume", path]).assert().success();
    let table = table.stderr(contains("next: cachewise report FILE.json"));
    let text = String::from_utf8(table.get_output().stdout.clone()).unwrap();
    assert!(text.contains("written after 32 KiB of traffic") && text.contains("3 times"), "{text}");
    assert_fits_a_terminal(&text);

    let mut other = value.clone();
    for cell in other["cells"].as_array_mut().unwrap() {
        for (key, value) in [("use_share", 0.25.into()), ("use_kind", "read".into())] {
            cell[key] = value;
        }
        for key in ["delay_bytes", "victim_bytes", "retouch", "threads"] {
            cell[key] = (2 * cell[key].as_u64().unwrap()).into();
        }
        (cell["victim_walk"], cell["victim_core"]) = ("dependent".into(), "other".into());
    }
    let cells = value["cells"].as_array().unwrap().iter().cloned();
    other["cells"].as_array_mut().unwrap().extend(cells);
    let other = saved("axes-2.json", &other);
    let table = cachewise(&format!("compare {path} {}", other.display())).assert().success();
    assert_fits_a_terminal(&String::from_utf8(table.get_output().stdout.clone()).unwrap());
}

/// Cells of sizes that the first result never had: nothing of them is measured.
#[test]
fn many_cells_are_in_all_formats_but_the_table() {
    let mut value = JSON.clone();
    let cells = value["cells"].as_array_mut().unwrap();
    let first = cells.clone();
    for factor in [2, 4] {
        cells.extend(first.iter().cloned().map(|mut cell| {
            cell["size_bytes"] = (4096 * factor).into();
            cell
        }));
    }
    let count = cells.len();
    let path = saved("many.json", &value);
    let map = |format: &str| {
        let args = ["--format", format, "--resume", path.to_str().unwrap()];
        let assert = cachewise(MAP).args(args).assert().success();
        let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
        (text, String::from_utf8(assert.get_output().stderr.clone()).unwrap())
    };
    let (table, said) = map("table");
    assert!(
        !table.contains("whole") && said.contains(&format!("{count} rows of cells are left out"))
    );
    let (markdown, said) = map("markdown");
    assert!(markdown.contains("whole") && !said.contains("left out"));
    let rows = markdown.lines().filter(|line| line.starts_with("| ") && !line.contains("whole"));
    assert_eq!(rows.filter(|line| !line.contains("---")).count(), count);
}

#[test]
fn going_on_takes_finished_cells_as_they_are() {
    let path = saved("whole.json", &JSON);
    let output = cachewise(MAP)
        .args(["--format", "json", "--resume", path.to_str().unwrap()])
        .assert()
        .success();
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let (cells, before) = (list(&value, "cells"), list(&JSON, "cells"));
    assert_eq!(cells.len(), before.len());
    for (cell, before) in cells.iter().zip(before) {
        // Figures are made anew from samples that were rounded; the samples are what they were.
        for key in ["variant", "use_share", "victim_bytes", "delay_bytes", "samples_ns"] {
            assert_eq!(cell[key], before[key]);
        }
    }
}

#[test]
fn another_machines_cells_are_refused() {
    let mut value = JSON.clone();
    value["machine"]["brand"] = "Difference Engine".into();
    let path = saved("foreign.json", &value);
    cachewise(MAP)
        .args(["--resume", path.to_str().unwrap()])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("another machine (brand was \"Difference Engine\""));
    let mut value = JSON.clone();
    value["cells"][0]["source"] = "lukewarm".into();
    let path = saved("flawed.json", &value);
    let assert = cachewise(MAP).args(["--resume", path.to_str().unwrap()]).assert().code(2);
    assert.stdout("").stderr(contains("cell 0"));
}

#[test]
fn each_line_stands_for_itself() {
    let path = saved("lines.json", &JSON);
    let output = cachewise(MAP)
        .args(["--format", "json", "--lines", "--resume", path.to_str().unwrap()])
        .assert()
        .success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(lines.len(), list(&JSON, "cells").len());
    for (line, cell) in lines.iter().zip(list(&JSON, "cells")) {
        has_fields(line, "schema_version command machine run");
        has_fields(line, CELL);
        // The figures are made anew from samples that were rounded.
        assert_eq!(line["samples_ns"], cell["samples_ns"]);
    }
}

#[test]
fn a_bystander_on_another_core_has_figures_or_a_reason() {
    let output = cachewise(
        "map clear --size 4K --use 0 --victim 16K --walk dependent --core other --time 0 \
         --variant mov --format json",
    )
    .assert()
    .success();
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    for cell in list(&value, "cells") {
        assert_eq!(cell["victim_core"], "other");
        match cell["status"].as_str().unwrap() {
            "ok" => assert!(cell["victim_excess_ns"].is_f64(), "{cell}"),
            "skipped" => assert!(cell["because"].as_str().unwrap().contains("cores"), "{cell}"),
            other => panic!("{other}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_finished_cells() {
    a_signal_keeps_the_finished_cells("-INT");
}

#[cfg(unix)]
#[test]
fn being_told_to_end_keeps_the_finished_cells() {
    a_signal_keeps_the_finished_cells("-TERM");
}

/// Stopped in its second size, the first one's cells are kept.
#[cfg(unix)]
fn a_signal_keeps_the_finished_cells(signal: &str) {
    let mut child = Command::new(cargo_bin!("cachewise"))
        .args(
            "map clear --size 4K,8K --use 0 --victim 0 --delay 0 --variant mov --time 60"
                .split(' '),
        )
        .args(["--samples", "600", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(stderr.any(|line| line.starts_with("measuring: clear of 8 KiB")));
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest = std::thread::spawn(move || stderr.count());
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list(&value, "cells").len(), 2);
    assert!(list(&value, "cells").iter().all(|cell| cell["size_bytes"] == 4096));
}
