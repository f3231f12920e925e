//! What scripts rely on: stdout, stderr, exit codes. No test asserts a time.
//!
//! Sizes are small and the time is none, so a case is three batches of one round.

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::io::{BufRead, BufReader};
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

fn json(args: &str) -> Value {
    let output = cachewise(args).args(["--format", "json"]).assert().success();
    serde_json::from_slice(&output.get_output().stdout).expect("stdout is one JSON value")
}

/// One measurement for all the tests that only look at it.
const BENCH: &str = "bench copy --size 64,4K --temperature hot,cold --pattern walk,random \
                     --align 0,1:3 --variant public,mov --samples 3 --time 0";
static BENCH_JSON: LazyLock<Value> = LazyLock::new(|| json(BENCH));

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list")).as_slice()
}

fn has_fields(object: &Value, fields: &str) {
    for field in fields.split_whitespace() {
        assert!(object.get(field).is_some(), "no {field} in {object}");
    }
}

/// The names of variants in `list` that `keep` accepts.
fn variants(operation: &str, keep: impl Fn(&Value) -> bool) -> Vec<String> {
    let all = json("list");
    let rows = list(&all, "variants").iter();
    rows.filter(|row| row["operation"] == operation && keep(row))
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_json_has_the_common_head() {
    for value in [json("list"), json("machine"), BENCH_JSON.clone()] {
        assert_eq!(value["schema_version"], 1);
        has_fields(&value, "command machine run");
        has_fields(
            &value["machine"],
            "vendor brand hypervisor cpus memory_bytes l1d_bytes l2_bytes",
        );
        let run = &value["run"];
        assert_eq!(run["tool_version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(list(run, "arguments")[0], value["command"]);
        assert_eq!(run["date"].as_str().unwrap().split('-').count(), 3);
        assert_eq!(run["libc"].is_string(), cfg!(target_env = "gnu"));
    }
}

#[test]
fn list_has_the_fields_of_the_contract() {
    let value = json("list");
    assert_eq!(value["command"], "list");
    assert_eq!(list(&value, "slots").len(), 8);
    for slot in list(&value, "slots") {
        has_fields(slot, "slot variant decided_by");
    }
    for variant in list(&value, "variants") {
        has_fields(variant, "name operation store registers prefetch stores_once needs");
        assert!(variant["needs"].is_array());
        let available = variant["available"].as_bool().unwrap();
        assert_eq!(available, variant["unavailable_because"].is_null(), "{variant}");
    }
}

#[test]
fn machine_has_the_fields_of_the_contract() {
    let value = json("machine");
    has_fields(&value["cpu"], "vendor brand source");
    for cache in list(&value, "caches") {
        has_fields(cache, "level kind size_bytes line_bytes shared_by source measured_ns");
        let instructions = cache["kind"] == "instruction";
        assert!(!instructions || cache["measured_ns"].is_null());
    }
    has_fields(&value["counters"], "available because remedy");
    let available = value["counters"]["available"].as_bool().unwrap();
    assert_eq!(available, value["counters"]["remedy"].is_null());
    for doubt in list(&value, "doubts") {
        has_fields(doubt, "id cause remedy");
    }
}

#[test]
fn bench_has_the_fields_of_the_contract() {
    let value = &*BENCH_JSON;
    assert!(value["limits"]["read_gb_per_s"].as_f64().unwrap() > 0.0);
    has_fields(&value["limits"], "nt_store_gb_per_s");
    // Hot in one order, cold in two; two alignments, two sizes, libc and two variants.
    assert_eq!(list(value, "cases").len(), 3 * 2 * 2 * 3);
    for case in list(value, "cases") {
        has_fields(case, "operation variant size_bytes temperature pattern threads");
        assert_eq!(case["status"], "ok", "{case}");
        let number = |key: &str| case[key].as_f64().unwrap_or_else(|| panic!("{key}: {case}"));
        assert!(0.0 < number("low_ns"));
        assert!(number("low_ns") <= number("median_ns"));
        assert!(number("median_ns") <= number("high_ns"));
        assert!(number("gb_per_s") > 0.0);
        assert!(number("latency_ns") > 0.0);
        has_fields(case, "level level_claimed share_of_limit ratio ratio_low ratio_high");
        assert_eq!(case["samples"], 3);
    }
}

#[test]
fn libc_is_always_there_and_equal_to_itself() {
    let libc = list(&BENCH_JSON, "cases").iter().filter(|case| case["variant"] == "libc");
    let ratios: Vec<&Value> = libc.map(|case| &case["ratio"]).collect();
    assert_eq!(ratios.len(), 12);
    assert!(ratios.iter().all(|ratio| **ratio == 1.0), "{ratios:?}");
}

#[test]
fn verdict_has_the_fields_of_the_contract() {
    let value = json("--size 4K --samples 12 --time 0");
    assert_eq!(value["command"], "verdict");
    let slots: Vec<&str> =
        list(&value, "verdicts").iter().map(|verdict| verdict["slot"].as_str().unwrap()).collect();
    assert_eq!(slots.len(), 8, "{slots:?}");
    for verdict in list(&value, "verdicts") {
        has_fields(verdict, "slot from_bytes variant against ratio ratio_low ratio_high");
        assert!(["faster", "no difference"].contains(&verdict["verdict"].as_str().unwrap()));
        assert_eq!(verdict["from_bytes"], 4096);
    }
}

#[test]
fn verdict_says_what_is_not_in_it_and_what_to_try_next() {
    cachewise("--size 4K --samples 12 --time 0")
        .assert()
        .success()
        .stderr(contains("written and read back").and(contains("next: cachewise map copy --quick")))
        .stdout(contains("copy_page_nontemporal"));
}

#[test]
fn tables_fit_80_columns_and_hold_no_notes() {
    for args in [
        "list",
        "machine",
        BENCH,
        TUNE,
        "--help",
        "bench --help",
        "tune --help",
        "--size 4K --time 0",
    ] {
        let output = cachewise(args).assert().success();
        let stdout = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        assert!(!stdout.is_empty());
        for line in stdout.lines() {
            assert!(line.chars().count() <= 80, "{args}: {line}");
            assert!(!line.contains('\u{1b}'), "{args}: {line}");
            for word in ["note:", "warning[", "measuring:", "error:"] {
                assert!(!line.starts_with(word), "{args}: {line}");
            }
        }
    }
}

#[test]
fn csv_has_one_row_per_case_and_its_numbers_read() {
    let output = cachewise(BENCH).args(["--format", "csv", "--quiet"]).assert().success();
    let output = output.stderr("").get_output().stdout.clone();
    let mut reader = csv::Reader::from_reader(output.as_slice());
    let headers = reader.headers().unwrap().clone();
    let column = |name| headers.iter().position(|header| header == name).unwrap();
    let rows: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), list(&BENCH_JSON, "cases").len());
    for row in rows {
        assert!(row[column("median_ns")].parse::<f64>().unwrap() > 0.0);
        assert_eq!(&row[column("status")], "ok");
    }
}

/// Whatever other lists a command has: what is written line by line, and as CSV, are its cases.
#[test]
fn lines_and_csv_are_the_cases_of_each_command() {
    let bench = TemporaryFile::new("cases.json");
    std::fs::write(bench.path(), BENCH_JSON.to_string()).unwrap();
    let compare = format!("compare {0} {0}", bench.path());
    let cases = list(&BENCH_JSON, "cases").len();
    let variants = list(&json("list"), "variants").len();
    for (args, count, fields) in [
        ("list", Some(variants), "name operation store available"),
        ("bench clear --size 64 --variant mov --samples 3 --time 0", Some(4), "variant median_ns"),
        (&compare, Some(cases), "variant a_ns b_ns verdict"),
        ("--size 4K --samples 12 --time 0", Some(8), "slot variant verdict"),
        (TUNE, None, "operation variant use_share whole_ns"),
        ("machine", Some(1), "cpu caches counters"),
    ] {
        let output = cachewise(args).args(["--format", "json", "--lines"]).assert().success();
        let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        assert!(
            text.lines().count() > 0 && count.is_none_or(|count| text.lines().count() == count)
        );
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line is JSON");
            has_fields(&line, "schema_version command machine run");
            has_fields(&line, fields);
        }
    }
    for (args, count) in [("list", variants), (&compare, cases)] {
        let output = cachewise(args).args(["--format", "csv"]).assert().success();
        let mut reader = csv::Reader::from_reader(output.get_output().stdout.as_slice());
        // A second table would be of another width, and an error.
        let rows: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.len(), count);
    }
}

#[test]
fn markdown_rows_have_as_many_cells_as_their_header() {
    let output = cachewise("list --format markdown").assert().success();
    let stdout = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let tables = stdout.split("\n\n").filter(|block| block.starts_with('|'));
    let mut count = 0;
    for table in tables {
        let cells: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
        assert!(cells.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn help_shows_examples_first() {
    for args in ["--help", "bench --help"] {
        let output = cachewise(args).assert().success();
        let stdout = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        let (examples, usage) = (stdout.find("Examples:"), stdout.find("Usage:"));
        assert!(examples.unwrap() < usage.unwrap());
    }
}

#[test]
fn an_unknown_variant_is_a_usage_error_that_lists_the_right_ones() {
    let available = variants("copy", |row| row["available"] == true);
    let assert = cachewise("bench copy --variant mowntps").assert().code(2).stdout("");
    let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("mowntps"));
    for name in available.iter().map(String::as_str).chain(["libc", "public"]) {
        assert!(stderr.contains(name), "{name}: {stderr}");
    }
}

/// Where the CPU has everything, one variant is taken away.
#[test]
fn an_unavailable_variant_has_an_exit_code_of_its_own() {
    let missing = variants("clear", |row| row["available"] == false);
    let (name, disable) = match missing.first() {
        Some(name) => (name.clone(), String::new()),
        None => ("movnti".to_owned(), "movnti".to_owned()),
    };
    cachewise(&format!("bench clear --variant {name}"))
        .env("CACHEWISE_DISABLE", disable)
        .assert()
        .code(3)
        .stdout("")
        .stderr(contains(name).and(contains("available: ")));
}

#[test]
fn unavailable_variants_are_unsupported_cases() {
    let mut command = cachewise("bench clear --size 64 --temperature hot --samples 3 --time 0");
    let output = command
        .args(["--format", "json"])
        .env("CACHEWISE_DISABLE", "mov")
        .assert()
        .success()
        .stderr(contains("mov is disabled"));
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let case = list(&value, "cases").iter().find(|case| case["variant"] == "mov").unwrap();
    assert_eq!(case["status"], "unsupported");
    assert!(case["median_ns"].is_null() && case["because"].is_string(), "{case}");
}

#[test]
fn wrong_words_are_usage_errors_that_say_what_is_right() {
    for (args, says) in [
        ("bench copy --size 4KB", "KiB"),
        ("bench copy --size 99999999999G", "more than any memory"),
        ("bench copy --align 5000", "4096"),
        ("bench copy --threads 0", "1..=1024"),
        ("bench move", "copy, clear"),
        ("bench copy --peer libc.so.6", "LIB.so:SYMBOL"),
        ("bench copy --peer libnone.so:memcpy", "cannot load"),
        ("bench copy --time never", "seconds"),
        ("--format xml", "json"),
        ("map copy --use 1.5", "word"),
        ("map copy --use-kind both", "read, write"),
        ("map copy --walk random", "dependent, independent"),
        ("map copy --page 1GiB", "4KiB, 2MiB"),
        ("map copy --resume /no/such/file.json", "there is no such file"),
        ("list --lines", "--format json"),
        ("report result.json --lines", "leave that out"),
        ("tune --glibc --time 5", "give --samples"),
    ] {
        cachewise(args).assert().code(2).stdout("").stderr(contains(says));
    }
}

#[test]
fn a_size_beyond_memory_is_skipped_with_its_reason() {
    let value =
        json("bench clear --size 64,1048576G --temperature hot --variant mov --samples 3 --time 0");
    let (small, large): (Vec<&Value>, Vec<&Value>) =
        list(&value, "cases").iter().partition(|case| case["size_bytes"] == 64);
    assert!(small.iter().all(|case| case["status"] == "ok"));
    assert!(!large.is_empty());
    for case in large {
        assert_eq!(case["status"], "skipped");
        assert!(case["because"].as_str().unwrap().contains("memory"), "{case}");
    }
}

#[test]
fn a_peer_stands_beside_the_others() {
    let value = json(
        "bench copy --size 64 --temperature hot --variant mov --peer libc.so.6:memmove \
         --samples 3 --time 0",
    );
    let peer = list(&value, "cases").iter().find(|c| c["variant"] == "libc.so.6:memmove").unwrap();
    assert_eq!(peer["status"], "ok");
}

/// `memccpy` stops early: whatever it does in how little time is no copy.
#[test]
fn a_peer_that_copies_wrongly_gets_no_figure() {
    let output = cachewise("bench clear --size 64 --temperature hot --variant mov --samples 3")
        .args(["--time", "0", "--format", "json", "--peer", "libc.so.6:memchr"])
        .assert()
        .code(2);
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let peer = list(&value, "cases").iter().find(|c| c["variant"] == "libc.so.6:memchr").unwrap();
    assert_eq!(peer["status"], "error");
    assert!(peer["median_ns"].is_null() && peer["because"].as_str().unwrap().contains("wrongly"));
    assert!(list(&value, "cases").iter().any(|case| case["status"] == "ok"));
}

#[test]
fn threads_work_at_the_same_time() {
    let value = json(
        "bench clear --size 4K --temperature cold --threads 2 --variant mov --samples 3 --time 0",
    );
    for case in list(&value, "cases") {
        assert_eq!((&case["threads"], &case["status"]), (&2.into(), &"ok".into()));
    }
}

#[test]
fn the_environment_forces_a_slot_and_is_named_as_the_one_who_did() {
    let name = variants("clear", |row| row["available"] == true && row["stores_once"] == "always")
        .pop()
        .expect("every build has one");
    let output = cachewise("list --format json")
        .env("CACHEWISE_FORCE", format!("clear_page={name}"))
        .assert()
        .success();
    let value: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let slot = list(&value, "slots").iter().find(|slot| slot["slot"] == "clear_page").unwrap();
    assert_eq!(slot["variant"], name);
    assert_eq!(slot["decided_by"], "environment");
}

#[test]
fn a_wrong_environment_is_an_error_that_lists_the_right_names() {
    for (variable, text, says) in [
        ("CACHEWISE_FORCE", "clear_page=none_such", "available: "),
        ("CACHEWISE_FORCE", "no_slot=movnti", "copy_nontemporal"),
        ("CACHEWISE_FORCE", "movnti", "slot=variant"),
        ("CACHEWISE_NT_THRESHOLD", "big", "always"),
        ("CACHEWISE_DISABLE", "nothing", "CPU feature"),
    ] {
        cachewise("list").env(variable, text).assert().code(2).stdout("").stderr(contains(says));
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for args in [&["list"][..], &["list", "--format", "json"], &["list", "--format", "csv"]] {
        let mut child = Command::new(cargo_bin!("cachewise"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// A full disk is one: nobody must take half a result for a whole one.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(cargo_bin!("cachewise")).arg("list").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "));
}

/// Interrupted in its second case, the first one is kept.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_finished_cases() {
    let mut child = Command::new(cargo_bin!("cachewise"))
        .args("bench clear --variant mov --temperature hot --format json --size".split(' '))
        .args(["64,128", "--samples", "600", "--time", "4"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(stderr.any(|line| line.contains("128 B")));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // Both pipes are emptied at once, or the child could wait for one while we do for the other.
    let rest = std::thread::spawn(move || stderr.count());
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cases = list(&value, "cases");
    let measured: Vec<_> = cases.iter().filter(|case| case["status"] == "ok").collect();
    assert_eq!(measured.len(), 2, "{measured:?}");
    assert!(measured.iter().all(|case| case["size_bytes"] == 64));
}

/// Warnings come before the first measurement, and nobody waits for that here.
#[test]
fn warnings_are_silenced_by_id() {
    let warned = |silence: &str| {
        let mut child = Command::new(cargo_bin!("cachewise"))
            .args("bench clear --size 64 --variant mov --threads 1024 --silence".split(' '))
            .arg(silence)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let warnings = lines.take_while(|line| !line.starts_with("measuring:"));
        let warnings: Vec<String> = warnings.filter(|line| line.starts_with("warning")).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        warnings.iter().any(|line| line.starts_with("warning[threads-exceed-cpus]: "))
    };
    assert!(warned("other-id"));
    assert!(!warned("other-id,threads-exceed-cpus"));
}

#[test]
fn output_arguments_go_on_either_side_of_a_subcommand() {
    let before = cachewise("--format csv list").assert().success();
    let after = cachewise("list --format csv").assert().success();
    assert_eq!(before.get_output().stdout, after.get_output().stdout);
}

#[test]
fn the_quick_verdicts_arguments_before_a_subcommand_are_refused() {
    for args in ["--size 4K list", "--seed 3 bench copy"] {
        cachewise(args).assert().code(2).stdout("").stderr(contains("belongs behind"));
    }
}

/// The least that is measured, at one size: no figure of it is looked at.
const TUNE: &str = "tune --quick --size 4K --samples 12 --time 0";

struct TemporaryFile(std::path::PathBuf);

impl TemporaryFile {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("cachewise-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Measured once: what it wrote is loaded, checked, changed and refused.
#[test]
fn a_profile_is_written_loaded_checked_and_refused_elsewhere() {
    let file = TemporaryFile::new("profile.toml");
    let value = json(&format!("{TUNE} -o {}", file.path()));
    assert_eq!(value["command"], "tune");
    has_fields(&value["profile"], "schema_version tool_version seed date");
    has_fields(&value["profile"]["machine"], "vendor brand family l2_bytes features");
    assert!(value["profile"]["variants"].is_object() && value["profile"]["thresholds"].is_object());
    has_fields(&value["regret"], "held_out unclear cells median p95 worst worst_cell");
    let rivals = list(&value, "rivals");
    for name in ["always libc", "always temporal", "always non-temporal", "library untuned"] {
        assert!(rivals.iter().any(|rival| rival["policy"] == name), "{name}");
    }
    rivals.iter().for_each(|rival| has_fields(rival, "cells median p95 worst worst_cell"));
    let choices = list(&value, "choices");
    assert_eq!(choices.len(), 8 + 6);
    for choice in choices {
        has_fields(choice, "name part chosen default verdict saving saving_low saving_high cells");
        let named = match choice["part"].as_str().unwrap() {
            "variant" => &value["profile"]["variants"],
            _ => &value["profile"]["thresholds"],
        };
        let is_named = named.get(choice["name"].as_str().unwrap()).is_some();
        assert_eq!(is_named, choice["verdict"] == "better", "{choice}");
    }

    let text = std::fs::read_to_string(file.path()).unwrap();
    for part in ["schema_version = 1", "[machine]", "[variants]", "[thresholds]", "[evidence]"] {
        assert!(text.contains(part), "{text}");
    }
    let loaded = cachewise("list --format json").env("CACHEWISE_PROFILE", file.path()).assert();
    let loaded: Value = serde_json::from_slice(&loaded.success().get_output().stdout).unwrap();
    for slot in list(&loaded, "slots") {
        let named = value["profile"]["variants"].get(slot["slot"].as_str().unwrap());
        assert_eq!(slot["decided_by"] == "profile", named.is_some(), "{slot}");
    }

    // From its own result comes the same fit.
    let result = TemporaryFile::new("tune.json");
    std::fs::write(result.path(), value.to_string()).unwrap();
    let again = json(&format!("tune --from {}", result.path()));
    assert_eq!(again["profile"]["variants"], value["profile"]["variants"]);
    assert_eq!(again["regret"]["cells"], value["regret"]["cells"]);
    assert_eq!(list(&again, "cells").len(), list(&value, "cells").len());

    // Without sizes: what is checked is what the profile says it was measured by.
    let check = format!("tune --samples 12 --time 0 --check {}", file.path());
    let checked = json(&check);
    assert_eq!(list(&checked, "checks").len(), 8 + 6);
    let cells = |value: &Value| -> std::collections::BTreeSet<String> {
        let keys = ["operation", "size_bytes", "source", "use_share", "use_kind", "victim_bytes"];
        let cell = |cell: &Value| keys.map(|key| cell[key].to_string()).join(" ");
        list(value, "cells").iter().map(cell).collect()
    };
    assert_eq!(cells(&value).len(), 2 * 4);
    assert_eq!(cells(&checked), cells(&value));
    for row in list(&checked, "checks") {
        has_fields(row, "name part then now standing saving saving_low saving_high");
    }

    let gate = cachewise(&format!("{check} --fail-on differs --format json")).assert();
    let gated: Value = serde_json::from_slice(&gate.get_output().stdout).unwrap();
    let differs = list(&gated, "checks").iter().any(|row| row["standing"] == "differs");
    gate.code(i32::from(differs));

    std::fs::write(file.path(), text.replace("plan = \"quick ", "plan = \"slow ")).unwrap();
    let refused = cachewise(&check).assert().code(2).stdout("");
    refused.stderr(contains("\"slow\" is no plan").and(contains("give --size or --quick")));

    std::fs::write(file.path(), text.replace("family = ", "family = 9")).unwrap();
    for args in ["list", &check] {
        let mut command = cachewise(args);
        if args == "list" {
            command.env("CACHEWISE_PROFILE", file.path());
        }
        let refused = command.assert().code(2).stdout("");
        refused.stderr(contains("another machine").and(contains("family")));
    }
    cachewise("list").env("CACHEWISE_PROFILE", format!("any:{}", file.path())).assert().success();
}

#[test]
fn profiles_that_cannot_be_read_or_written_are_errors_before_or_after_measuring() {
    cachewise("tune --check /no/such/profile")
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("/no/such/profile"));
    let output = format!("{TUNE} -o /no/such/folder/profile.toml");
    cachewise(&output).assert().code(2).stdout("").stderr(contains("/no/such/folder"));
    for args in ["tune --glibc -o x", "tune --check x -o y", "tune --check x --glibc"] {
        cachewise(args).assert().code(2).stdout("").stderr(contains("cannot be used with"));
    }
}

/// The process that `tune --glibc` starts under each setting.
#[test]
fn times_of_libc_are_one_per_size_or_two_of_the_whole() {
    let times = json("libc-times copy --size 1K,4K --quiet");
    assert_eq!(list(&times, "times").len(), 2);
    let times = json("libc-times clear --size 4K --whole --quiet");
    assert_eq!(list(&times, "times").len(), 2);
    for time in list(&times, "times") {
        assert!(time["ns"].as_f64().unwrap() > 0.0);
    }
}
