//! `compare` and `report` on results made up here: what they say, and how they end.

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use predicates::str::contains;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn cachewise(args: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(cargo_bin!("cachewise"));
    for name in ["FORCE", "DISABLE", "NT_THRESHOLD", "PROFILE"] {
        command.env_remove(format!("CACHEWISE_{name}"));
    }
    command.args(args);
    command
}

/// A file of this test's own.
fn file(test: &str, name: &str, content: impl ToString) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, content.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Six batches of five, each a percent around the median.
fn samples(median_ns: f64) -> Value {
    let batch: Vec<f64> = (0..5).map(|i| median_ns * (0.99 + 0.005 * f64::from(i))).collect();
    json!(vec![batch; 6])
}

fn case(variant: &str, size_bytes: u64, median_ns: f64) -> Value {
    json!({
        "operation": "copy", "size_bytes": size_bytes, "variant": variant, "temperature": "hot",
        "pattern": null, "align_dst_bytes": 0, "align_src_bytes": 0, "threads": 1,
        "median_ns": median_ns, "low_ns": median_ns * 0.99, "high_ns": median_ns * 1.01,
        "gb_per_s": 1.5, "against": "libc", "ratio": 100.0 / median_ns,
        "ratio_low": 99.0 / median_ns, "ratio_high": 101.0 / median_ns, "level": "L2",
        "level_claimed": "L1d", "status": "ok", "because": null, "samples": 30,
        "samples_ns": samples(median_ns),
    })
}

fn cell(variant: &str, victim_bytes: u64, use_share: f64, whole_ns: f64) -> Value {
    json!({
        "operation": "copy", "size_bytes": 65536, "use_share": use_share, "use_kind": "read",
        "delay_bytes": 0, "victim_bytes": victim_bytes, "victim_walk": "dependent",
        "victim_core": "same", "retouch": 1, "source": "cold", "page": "4KiB", "threads": 1,
        "variant": variant, "op_ns": whole_ns * 0.5, "delay_ns": 0.0, "use_ns": whole_ns * 0.2,
        "victim_ns": whole_ns * 0.25, "victim_baseline_ns": whole_ns * 0.1,
        "victim_excess_ns": whole_ns * 0.15, "whole_ns": whole_ns, "whole_low_ns": whole_ns * 0.99,
        "whole_high_ns": whole_ns * 1.01, "unattributed_ns": -3.0, "status": "ok",
        "because": null, "samples_ns": samples(whole_ns), "op_samples_ns": samples(whole_ns * 0.5),
        "delay_baseline_ns": 0.0, "delay_baseline_samples_ns": samples(0.0),
        "use_baseline_samples_ns": samples(0.0), "victim_baseline_samples_ns": samples(0.0),
    })
}

fn without(mut case: Value, keys: &[&str]) -> Value {
    keys.iter().for_each(|key| drop(case.as_object_mut().unwrap().remove(*key)));
    case
}

fn head(command: &str) -> Value {
    json!({
        "schema_version": 1, "command": command,
        "machine": { "brand": "A <b>CPU</b> & \"more\"", "cpus": 2, "hypervisor": true },
    })
}

fn result(command: &str, list: &str, cases: &[Value]) -> Value {
    let mut whole = head(command);
    whole[list] = json!(cases);
    whole
}

fn bench(cases: &[Value]) -> Value {
    result("bench", "cases", cases)
}

fn lines(command: &str, cases: &[Value]) -> String {
    let line = |case: &Value| {
        let mut line = head(command);
        let fields = case.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(fields);
        format!("{line}\n")
    };
    cases.iter().map(line).collect()
}

fn compared(a: &str, b: &str) -> Value {
    let output = cachewise(&["compare", a, b, "--format", "json"]).assert().success();
    serde_json::from_slice(&output.get_output().stdout).expect("stdout is one JSON value")
}

/// libc stays, `mov` gets 10 % slower, `movnti` twice as fast.
fn two_runs(test: &str) -> (String, String) {
    let a = [case("libc", 64, 100.0), case("mov", 64, 100.0), case("movnti", 64, 100.0)];
    let b = [case("movnti", 64, 50.0), case("mov", 64, 110.0), case("libc", 64, 100.5)];
    (file(test, "a.json", bench(&a)), file(test, "b.json", bench(&b)))
}

#[test]
fn compare_has_a_ratio_an_interval_and_a_verdict_per_case() {
    let (a, b) = two_runs("verdicts");
    let value = compared(&a, &b);
    assert_eq!((&value["schema_version"], &value["command"]), (&json!(1), &json!("compare")));
    let cases = value["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for (case, (variant, ratio, verdict)) in cases.iter().zip([
        ("libc", 100.0 / 100.5, "no difference"),
        ("mov", 100.0 / 110.0, "worse"),
        ("movnti", 2.0, "better"),
    ]) {
        assert_eq!((&case["variant"], &case["verdict"]), (&json!(variant), &json!(verdict)));
        let number = |key: &str| case[key].as_f64().unwrap();
        assert!((number("ratio") - ratio).abs() < 1e-3, "{case}");
        assert!(number("ratio_low") <= number("ratio") && number("ratio") <= number("ratio_high"));
        assert_eq!(case["interval_from"], "samples");
        assert_eq!(case["size_bytes"], 64);
    }
    let summary = &value["summary"];
    assert_eq!(
        [&summary["better"], &summary["worse"], &summary["no_difference"], &summary["failing"]],
        [&json!(1), &json!(1), &json!(1), &Value::Null]
    );
}

#[test]
fn fail_on_ends_with_1_only_if_asked_and_beyond_what_was_asked() {
    let (a, b) = two_runs("fail-on");
    for (fail_on, code) in [("worse:3%", 1), ("worse:0%", 1), ("worse:9.5 %", 0), ("worse:20%", 0)]
    {
        cachewise(&["compare", &a, &b, "--fail-on", fail_on]).assert().code(code);
    }
    cachewise(&["compare", &a, &b]).assert().code(0);
    // 110 instead of 100 is worse by 10 %, but a percent of noise reaches below that.
    cachewise(&["compare", &a, &b, "--fail-on", "worse:10%"]).assert().code(0);
    for wrong in ["worse", "worse:3", "better:3%", "worse:-1%", "worse:x%", "worse:NaN%"] {
        let assert = cachewise(&["compare", &a, &b, "--fail-on", wrong]).assert().code(2);
        assert.stdout("").stderr(contains("worse:3%"));
    }
}

/// A gate that could judge nothing is not open.
#[test]
fn fail_on_without_anything_to_judge_is_an_error() {
    let bare = |ns| bench(&[without(case("mov", 64, ns), &["samples_ns", "low_ns", "high_ns"])]);
    let (a, b) = (file("bare", "a", bare(100.0)), file("bare", "b", bare(200.0)));
    cachewise(&["compare", &a, &b]).assert().success().stderr(contains("warning[samples-few]"));
    assert_eq!(compared(&a, &b)["cases"][0]["verdict"], Value::Null);
    let gate = cachewise(&["compare", &a, &b, "--fail-on", "worse:3%"]).assert().code(2);
    gate.stdout("").stderr(contains("--samples"));
}

#[test]
fn without_samples_the_intervals_are_taken_crosswise_and_that_is_said() {
    let stored = |ns| bench(&[without(case("mov", 64, ns), &["samples_ns"])]);
    let (a, b) = (file("stored", "a", stored(100.0)), file("stored", "b", stored(200.0)));
    let value = compared(&a, &b);
    let case = &value["cases"][0];
    assert_eq!((&case["interval_from"], &case["verdict"]), (&json!("intervals"), &json!("worse")));
    assert!((case["ratio_low"].as_f64().unwrap() - 99.0 / 202.0).abs() < 1e-3);
    assert!((case["ratio_high"].as_f64().unwrap() - 101.0 / 198.0).abs() < 1e-3);
    let said = cachewise(&["compare", &a, &b]).assert().success();
    said.stderr(contains("warning[samples-missing]"));
}

#[test]
fn cases_of_one_side_are_listed_with_their_reason() {
    let mut failed = case("movnti", 64, 1.0);
    failed["status"] = json!("error");
    failed["because"] = json!("it copied wrongly");
    let a = bench(&[case("libc", 64, 9.0), case("mov", 64, 9.0), case("movnti", 64, 9.0)]);
    let b = bench(&[case("libc", 64, 9.0), case("mov", 128, 9.0), failed]);
    let (a, b) = (file("unmatched", "a", a), file("unmatched", "b", b));
    let value = compared(&a, &b);
    let because = |variant: &str, size: u64| {
        let cases = value["cases"].as_array().unwrap();
        let is_it = |c: &&Value| c["variant"] == variant && c["size_bytes"] == size;
        let case = cases.iter().find(is_it).unwrap();
        assert!(case["ratio"].is_null(), "{case}");
        let broken = (&json!("error"), &json!("error"));
        let expected = if variant == "movnti" { broken } else { (&Value::Null, &json!("skipped")) };
        assert_eq!((&case["verdict"], &case["status"]), expected);
        case["because"].as_str().unwrap().to_owned()
    };
    assert_eq!(because("mov", 64), "only in A");
    assert_eq!(because("mov", 128), "only in B");
    assert!(because("movnti", 64).contains("it copied wrongly"));
    let summary = &value["summary"];
    assert_eq!((&summary["errors"], &summary["not_compared"]), (&json!(1), &json!(2)));
    let said = cachewise(&["compare", &a, &b]).assert().success();
    said.stderr(contains("[cases-unmatched]: 2 cases").and(contains("[cases-broken]: 1 cases")))
        .stdout(contains("only in A").and(contains("it copied wrongly")));
    let gate = cachewise(&["compare", &a, &b, "--fail-on", "worse:3%"]).assert().code(1);
    gate.stdout(contains("it copied wrongly"));
}

/// Each run of a map screens its contenders anew: a gate that met nobody but the reference is none.
#[test]
fn fail_on_with_nothing_but_the_reference_to_judge_is_an_error() {
    let of =
        |variant: &str, share: f64| [cell("libc", 0, share, 100.0), cell(variant, 0, share, 50.0)];
    let a = result("map", "cells", &[of("movnti", 0.0), of("movnti", 1.0)].concat());
    let b = result("map", "cells", &[of("movnti", 0.0), of("movntdq", 1.0)].concat());
    let (a, b) = (file("reference", "a", a), file("reference", "b", b));
    cachewise(&["compare", &a, &b]).assert().success();
    let gate = ["compare", &a, &b, "--fail-on", "worse:3%"];
    let said = cachewise(&gate).assert().code(2).stdout("");
    said.stderr(contains("nothing but libc").and(contains("--variant movnti")));
    // A scenario that B has not at all is warned of, as is any case of one side.
    let b = file("reference", "c", result("map", "cells", &of("movnti", 0.0)));
    let gate = cachewise(&["compare", &a, &b, "--fail-on", "worse:3%"]).assert().success();
    gate.stderr(contains("[cases-unmatched]: 2 cases"));
}

/// Of many equal cases, some differ by chance: the interval of each knows how many there are.
#[test]
fn intervals_of_many_cases_are_wider_and_that_is_said() {
    let of = |sizes: u64, ns: f64| {
        let cases: Vec<Value> = (1..=sizes).map(|size| case("mov", 64 * size, ns)).collect();
        file("many", &format!("{sizes}-{ns}"), bench(&cases))
    };
    let width = |sizes| {
        let value = compared(&of(sizes, 100.0), &of(sizes, 100.0));
        let end = |key: &str| value["cases"][0][key].as_f64().unwrap();
        end("ratio_high") - end("ratio_low")
    };
    assert!(width(100) > 1.3 * width(1), "{} {}", width(100), width(1));
    let said = cachewise(&["compare", &of(100, 100.0), &of(100, 100.0)]).assert().success();
    said.stderr(contains("note: 100 cases are judged at once"));
}

#[test]
fn one_case_without_times_spoils_no_other() {
    let mut spoiled = case("mov", 64, 10.0);
    spoiled["samples_ns"] = json!([[10.0, -1.0]]);
    let (libc, bad) = (case("libc", 64, 10.0), bench(&[case("libc", 64, 10.0), spoiled]));
    let good = file("spoiled", "good", bench(&[libc, case("mov", 64, 10.0)]));
    let bad = file("spoiled", "bad", bad);
    let value = compared(&good, &bad);
    assert_eq!(value["cases"][0]["verdict"], "no difference");
    assert_eq!(value["cases"][1]["verdict"], "error");
    let page = cachewise(&["report", &bad]).assert().success();
    page.stdout(contains("samples_ns holds something else than times"));
}

/// Each identifying field parts what is equal in all others.
#[test]
fn cases_match_by_all_fields_that_identify() {
    let differ = |test: &str, key: &str, one: Value, other: Value| {
        let a = file("identity", &format!("{test}.{key}.a"), one);
        let b = file("identity", &format!("{test}.{key}.b"), other);
        let assert = cachewise(&["compare", &a, &b]).assert().code(2).stdout("");
        assert.stderr(contains("no case has a figure in both"));
    };
    for (key, other) in [
        ("variant", json!("movnti")),
        ("size_bytes", json!(128)),
        ("operation", json!("clear")),
        ("temperature", json!("cold")),
        ("pattern", json!("walk")),
        ("align_dst_bytes", json!(1)),
        ("align_src_bytes", json!(1)),
        ("threads", json!(2)),
    ] {
        let mut changed = case("mov", 64, 10.0);
        changed[key] = other;
        differ("bench", key, bench(&[case("mov", 64, 10.0)]), bench(&[changed]));
    }
    let map = |cell: Value| result("map", "cells", &[cell]);
    for (key, other) in [
        ("operation", json!("clear")),
        ("size_bytes", json!(4096)),
        ("use_share", json!(0.5)),
        ("use_kind", json!("write")),
        ("delay_bytes", json!(32768)),
        ("victim_bytes", json!(8192)),
        ("victim_walk", json!("independent")),
        ("victim_core", json!("other")),
        ("retouch", json!(2)),
        ("source", json!("hot")),
        ("page", json!("2MiB")),
        ("threads", json!(2)),
        ("variant", json!("movnti")),
    ] {
        let one = cell("mov", 4096, 0.25, 10.0);
        let mut changed = one.clone();
        assert_ne!(changed[key], other);
        changed[key] = other;
        differ("map", key, map(one), map(changed));
    }
}

#[test]
fn maps_are_compared_by_their_whole() {
    let a = result("map", "cells", &[cell("libc", 0, 0.0, 100.0), cell("libc", 4096, 0.0, 9.0)]);
    let mut quicker = cell("libc", 0, 0.0, 80.0);
    // Of no meaning where no bystander is.
    quicker["victim_walk"] = json!("independent");
    let b = result("map", "cells", &[quicker, cell("libc", 4096, 0.0, 9.0)]);
    let value = compared(&file("maps", "a", a), &file("maps", "b", b));
    let verdicts: Vec<&Value> =
        value["cases"].as_array().unwrap().iter().map(|case| &case["verdict"]).collect();
    assert_eq!(verdicts, ["better", "no difference"]);
    assert_eq!(value["cases"][1]["victim_bytes"], 4096);
}

#[test]
fn lines_are_read_as_the_whole_is_and_standard_input_as_a_file() {
    let cases = [case("libc", 64, 100.0), case("mov", 64, 50.0)];
    let whole = file("lines", "whole", bench(&cases));
    let lines = file("lines", "lines", lines("bench", &cases));
    let value = compared(&whole, &lines);
    assert_eq!(value["summary"]["no_difference"], 2);
    let mut command = cachewise(&["compare", &whole, "-", "--format", "json"]);
    let output = command.write_stdin(bench(&cases).to_string()).assert().success();
    let piped: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(piped["cases"], value["cases"]);
}

#[test]
fn another_machine_and_a_case_twice_are_warned_of() {
    let mut other = bench(&[case("mov", 64, 10.0), case("mov", 64, 10.0)]);
    other["machine"]["brand"] = json!("Difference Engine");
    other["run"] = json!({ "libc": "glibc 2.41" });
    let mut one = bench(&[case("mov", 64, 10.0)]);
    one["run"] = json!({ "libc": "glibc 2.36" });
    let a = file("machines", "a", &one);
    let b = file("machines", "b", other);
    let machines = "warning[different-machines]";
    let said = cachewise(&["compare", &a, &b]).assert().success();
    said.stderr(
        contains(machines).and(contains("and Difference Engine")).and(contains("[case-twice]")),
    )
    .stderr(contains("warning[other-libc]: libc is glibc 2.36 in A and glibc 2.41 in B"));
    let silenced = cachewise(&["compare", &a, &b, "--silence", "different-machines"]).assert();
    silenced.stderr(contains(machines).not());
    cachewise(&["compare", &a, &a]).assert().success().stderr(contains("warning").not());
    // What may change from run to run on one machine.
    one["machine"]["memory_bytes"] = json!(1 << 30);
    one["machine"]["cpus"] = json!(64);
    let b = file("machines", "same", one);
    cachewise(&["compare", &a, &b]).assert().success().stderr(contains("warning").not());
}

#[test]
fn files_that_cannot_be_used_are_errors_that_say_what_to_do() {
    let good = file("broken", "good", bench(&[case("mov", 64, 10.0)]));
    let mut newer = bench(&[case("mov", 64, 10.0)]);
    newer["schema_version"] = json!(2);
    let whole = bench(&[case("mov", 64, 10.0)]).to_string();
    let map = result("map", "cells", &[cell("mov", 0, 0.0, 1.0)]);
    for (name, content, says) in [
        ("newer", newer.to_string(), "schema_version 2"),
        ("cut", whole[..whole.len() / 2].to_owned(), "cut short"),
        ("empty", String::new(), "cachewise map"),
        ("text", "hello\n".to_owned(), "is no JSON"),
        (
            "list",
            json!({"schema_version": 1, "command": "list"}).to_string(),
            "not of bench, map or tune",
        ),
    ] {
        let bad = file("broken", name, content);
        for args in [&["compare", &good, &bad][..], &["report", &bad]] {
            let assert = cachewise(args).assert().code(2).stdout("");
            assert.stderr(contains(says).and(contains(&bad)));
        }
    }
    let map = file("broken", "map", map);
    cachewise(&["compare", &good, &map]).assert().code(2).stderr(contains("the same command"));
    for args in [&["compare", &good, "/nonexistent"][..], &["report", "/nonexistent"]] {
        cachewise(args).assert().code(2).stdout("").stderr(contains("no such file"));
    }
    cachewise(&["report", &good, "-o", "/nonexistent/page"]).assert().code(2);
    let formatted = cachewise(&["report", &good, "--format", "json"]).assert().code(2);
    formatted.stdout("").stderr(contains("leave that out"));
}

#[test]
fn tables_of_compare_fit_80_columns() {
    let (a, b) = two_runs("width");
    let output = cachewise(&["compare", &a, &b]).assert().success();
    let stdout = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    for line in stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// A page of this result, and its text.
fn page(test: &str, result: &impl ToString) -> String {
    let path = file(test, "result.json", result.to_string());
    let output = cachewise(&["report", &path]).assert().success().stderr("");
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

const NASTY: &str = "./a<script>'\"&lib-with-a-long-name.so:my_memcpy";

fn benched() -> Value {
    let mut cases = Vec::new();
    for size in [64, 4096, 1 << 30] {
        for (variant, ns) in [("libc", 100.0), ("mov", 52.125), ("movnti", 2345.5), (NASTY, 91.5)] {
            cases.push(case(variant, size, ns * size as f64));
        }
    }
    let mut failed = case("movntps", 64, 1.0);
    failed["status"] = json!("error");
    failed["because"] = json!("a <reason>");
    cases.push(failed);
    bench(&cases)
}

fn mapped() -> Value {
    let mut cells = Vec::new();
    for victim in [0, 262_144, 2_097_152] {
        for share in [0.0, 0.002, 1.0] {
            for (variant, ns) in [("libc", 1000.0), ("movnti", 700.0 + 600.0 * share)] {
                cells.push(cell(variant, victim, share, ns));
            }
        }
    }
    result("map", "cells", &cells)
}

/// As `tune` writes it: the policy and its regret beside the cells of a map.
fn tuned() -> Value {
    let mut tuned = mapped();
    tuned["command"] = json!("tune");
    tuned["profile"] = json!({ "schema_version": 1, "variants": { "copy": "movnti" } });
    tuned["choices"] = json!([
        { "name": "copy", "part": "variant", "chosen": "sse2_once", "default": "a <default>",
          "verdict": "better", "saving": 0.134, "saving_low": 0.098, "saving_high": 0.157,
          "cells": 36 },
        { "name": "copy_auto", "part": "threshold", "chosen": "64 KiB", "default": "12 MiB",
          "verdict": "default", "saving": null, "saving_low": null, "saving_high": null,
          "cells": 72 },
    ]);
    tuned["regret"] = json!({
        "held_out": 54, "unclear": 17, "cells": 37, "median": 0.0, "p95": 0.0316, "worst": 0.441,
        "worst_cell": "clear of 16 MiB, 100 % write after",
    });
    tuned["rivals"] = json!([
        { "policy": "always libc", "same_as": null, "cells": 37, "median": 0.153, "p95": 0.722,
          "worst": 1.836, "worst_cell": "clear of 1 MiB, unused" },
        { "policy": "always temporal", "same_as": "always libc", "cells": 37, "median": 0.153,
          "p95": 0.722, "worst": 1.836, "worst_cell": "clear of 1 MiB, unused" },
    ]);
    tuned
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).expect("well-formed")
}

fn elements<'a>(document: &'a Document<'_>, name: &str) -> Vec<Node<'a, 'a>> {
    document.root().descendants().filter(|node| node.tag_name().name() == name).collect()
}

fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect()
}

#[test]
fn pages_are_well_formed_and_need_nothing_else() {
    for (test, result) in
        [("page-bench", benched()), ("page-map", mapped()), ("page-tune", tuned())]
    {
        let page = page(test, &result);
        assert!(page.starts_with("<!DOCTYPE html>"));
        let document = parse(&page);
        for node in document.root().descendants().filter(Node::is_element) {
            let name = node.tag_name().name();
            assert!(!["script", "link", "img", "iframe", "object", "b"].contains(&name), "{name}");
            for attribute in node.attributes() {
                let (key, value) = (attribute.name(), attribute.value());
                assert!(!key.starts_with("on") && key != "src", "{key}");
                assert!(key != "href" || value.starts_with('#'), "{value}");
            }
        }
        // The one address is a name: of the language of the pictures.
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        for word in ["http:", "https:", "@import", "//"] {
            assert!(!elsewhere.contains(word), "{word}");
        }
        let ids: Vec<&str> =
            document.root().descendants().filter_map(|node| node.attribute("id")).collect();
        let urls = document.root().descendants().filter_map(|node| node.attribute("fill"));
        let fills = urls.filter_map(|fill| fill.strip_prefix("url(#")?.strip_suffix(')'));
        let links = document.root().descendants().filter_map(|node| node.attribute("href"));
        for id in fills.chain(links.map(|href| &href[1..])) {
            assert_eq!(ids.iter().filter(|other| **other == id).count(), 1, "{id}");
        }
        assert!(elements(&document, "h1").iter().any(|h1| text_of(*h1).contains("A <b>CPU</b> &")));
    }
}

#[test]
fn a_page_holds_every_case_its_reasons_and_its_samples() {
    let result = benched();
    let page = page("every-case", &result);
    let document = parse(&page);
    let rows: Vec<Vec<String>> =
        elements(&document, "tr").iter().map(|row| row.children().map(text_of).collect()).collect();
    for case in result["cases"].as_array().unwrap() {
        let variant = case["variant"].as_str().unwrap().to_owned();
        let wanted = [variant, case["size_bytes"].to_string(), case["median_ns"].to_string()];
        let found = rows.iter().any(|row| wanted.iter().all(|cell| row.contains(cell)));
        assert!(found, "{wanted:?}");
    }
    assert!(rows.iter().flatten().any(|cell| cell.contains(" | ")), "no samples");
    let items: String = elements(&document, "li").into_iter().map(text_of).collect();
    assert!(items.contains("a <reason>") && items.contains("another level"), "{items}");
    // Three sizes and four ways.
    let cells = elements(&document, "rect");
    let shades = cells.iter().filter(|r| r.attribute("class").unwrap_or("").starts_with("cell "));
    assert_eq!(shades.count(), 12);
}

#[test]
fn a_map_has_a_cell_for_each_cell_and_says_who_wins_by_a_shape() {
    let page = page("map-cells", &mapped());
    let document = parse(&page);
    let texts: Vec<String> = elements(&document, "text").into_iter().map(text_of).collect();
    let signed = |sign: char| texts.iter().filter(|text| text.starts_with(sign)).count();
    // Nine cells, and six of them at a glance.
    let signs = ['▲', '▼', '=', '?'].map(signed);
    assert_eq!(signs, [6 + 4, 3 + 2, 0, 0], "{texts:?}");
    let verdict = "copy of 64 KiB, cold source, read: non-temporal wins until ";
    let said = |document: &Document| -> Option<String> {
        let items = elements(document, "li").into_iter().map(text_of);
        items.into_iter().find(|item| item.starts_with(verdict))
    };
    let from_the_whole = said(&document).expect("a verdict");
    let cells = mapped()["cells"].as_array().unwrap().clone();
    let from_lines = file("map-cells", "lines.json", lines("map", &cells));
    let page = cachewise(&["report", &from_lines]).assert().success();
    let page = String::from_utf8(page.get_output().stdout.clone()).unwrap();
    assert_eq!(said(&parse(&page)).as_ref(), Some(&from_the_whole));
    // One picture of parts for each cell and the heat map; at a glance, without and with a bystander.
    assert_eq!(elements(&document, "figure").len(), 9 + 1 + 2);
}

/// What an earlier version did not write down, and does not matter where there is no traffic.
#[test]
fn a_map_of_an_earlier_version_is_drawn_as_well() {
    let keys = ["delay_baseline_ns", "delay_baseline_samples_ns"];
    let mut earlier = mapped();
    let cells = earlier["cells"].as_array_mut().unwrap();
    cells.iter_mut().for_each(|cell| *cell = without(cell.clone(), &keys));
    let drawn = |test, result| {
        let page = page(test, result);
        elements(&parse(&page), "text").into_iter().map(text_of).collect::<Vec<_>>()
    };
    assert_eq!(drawn("earlier", &earlier), drawn("later", &mapped()));
}

#[test]
fn a_page_of_many_scenarios_is_folded_and_links_to_each() {
    let other = |mut cell: Value| {
        cell["size_bytes"] = json!(4096);
        cell
    };
    let mut two = mapped();
    let cells = two["cells"].as_array_mut().unwrap();
    cells.extend(cells.clone().into_iter().map(other));
    let page = page("folded", &two);
    let document = parse(&page);
    let sections = elements(&document, "section");
    let section =
        |id: &str| *sections.iter().find(|node| node.attribute("id") == Some(id)).unwrap();
    let parts: Vec<Node> =
        section("scenarios").children().filter(|n| n.has_tag_name("details")).collect();
    let open: Vec<bool> = parts.iter().map(|part| part.attribute("open").is_some()).collect();
    assert_eq!(open, [true, false]);
    let links = |node: Node| -> Vec<String> {
        let links = node.descendants().filter(|n| n.has_tag_name("a"));
        links.map(|a| format!("{} {}", text_of(a), a.attribute("href").unwrap())).collect()
    };
    let nav = links(elements(&document, "nav")[0]);
    for link in ["copy, 64 KiB #scenarios-0", "copy, 4 KiB #scenarios-1"] {
        assert!(nav.contains(&link.to_owned()), "{nav:?}");
    }
    let glance = section("overview");
    for link in ["64 KiB #scenarios-0", "4 KiB #scenarios-1"] {
        assert!(links(glance).contains(&link.to_owned()), "{:?}", links(glance));
    }
    // The winners' names are there to be read.
    let names = glance.descendants().filter(|node| node.has_tag_name("text")).map(text_of);
    assert_eq!(names.filter(|name| name == "movnti").count(), 2 * 2 * 2);
}

#[test]
fn a_policy_comes_first_with_its_choices_and_its_regret() {
    let page = page("policy", &tuned());
    let document = parse(&page);
    assert!(text_of(elements(&document, "h1")[0]).starts_with("cachewise tune copy on"));
    let first = elements(&document, "section")[0];
    assert_eq!(first.attribute("id"), Some("policy"));
    let rows: Vec<Vec<String>> = first
        .descendants()
        .filter(|node| node.has_tag_name("tr"))
        .map(|row| row.children().filter(Node::is_element).map(text_of).collect())
        .collect();
    for row in [
        ["copy", "variant", "sse2_once", "a <default>", "better", "13.4 % (9.8 % to 15.7 %)", "36"],
        ["copy_auto", "threshold", "64 KiB", "12 MiB", "default", "-", "72"],
    ] {
        assert!(rows.iter().any(|found| *found == row), "{rows:?}");
    }
    let worst = "clear of 16 MiB, 100 % write after";
    for row in [
        ["tuned", "37", "0.0 %", "3.2 %", "44.1 %", worst],
        ["always libc", "37", "15.3 %", "72.2 %", "183.6 %", "clear of 1 MiB, unused"],
        ["always temporal", "37", "15.3 %", "72.2 %", "183.6 %", "as always libc"],
    ] {
        assert!(rows.iter().any(|found| *found == row), "{rows:?}");
    }
    assert!(text_of(first).contains("54 cells") && text_of(first).contains("17 of them"));
}

/// Who measured when and with what is said once, and is no field of a case.
#[test]
fn the_run_stands_with_the_machine_and_parts_no_cases() {
    let with_run = |mut of: Value, date: &str| {
        of["run"] = json!({
            "tool_version": "0.1.0", "date": date, "arguments": ["map", "copy", "<quick>"],
            "libc": "glibc 2.36",
        });
        of
    };
    let cells = mapped()["cells"].as_array().unwrap().clone();
    // In lines it stands in each.
    let cells: Vec<Value> = cells.into_iter().map(|cell| with_run(cell, "2026-12-01")).collect();
    let whole = with_run(mapped(), "2026-11-30").to_string();
    let lines = lines("map", &cells);
    for text in [&whole, &lines] {
        let page = page("run", text);
        let document = parse(&page);
        let sections = elements(&document, "section");
        let machine = sections.iter().find(|node| node.attribute("id") == Some("machine")).unwrap();
        let machine = text_of(*machine);
        for said in ["map copy <quick>", "glibc 2.36", "tool version"] {
            assert!(machine.contains(said), "{machine}");
        }
        let heads: Vec<String> = elements(&document, "th").into_iter().map(text_of).collect();
        assert!(!heads.contains(&"run".to_owned()), "{heads:?}");
    }
    let value = compared(&file("run", "whole", whole), &file("run", "lines", lines));
    assert_eq!(value["summary"]["no_difference"], cells.len());
}

#[test]
fn pictures_have_words_and_no_text_is_cut_at_their_edges() {
    /// As wide as the style's font at most.
    const LETTER: f64 = 7.25;
    /// Of the small letters.
    const SMALL: f64 = 6.05;
    for (test, result) in [("words-bench", benched()), ("words-map", mapped())] {
        let page = page(test, &result);
        let document = parse(&page);
        let pictures = elements(&document, "svg");
        let pictures: Vec<_> =
            pictures.iter().filter(|svg| svg.attribute("role") == Some("img")).collect();
        assert!(pictures.len() >= 4);
        for picture in pictures {
            for name in ["title", "desc"] {
                let words = picture.children().find(|node| node.tag_name().name() == name);
                assert!(!text_of(words.unwrap()).is_empty());
            }
            let frame: Vec<f64> = picture
                .attribute("viewBox")
                .unwrap()
                .split(' ')
                .map(|number| number.parse().unwrap())
                .collect();
            for text in picture.descendants().filter(|node| node.tag_name().name() == "text") {
                let number = |key| text.attribute(key).unwrap().parse::<f64>().unwrap();
                let letter = if text.attribute("class") == Some("small") { SMALL } else { LETTER };
                let letters = text_of(text).chars().count() as f64 * letter;
                let (x, y) = (number("x"), number("y"));
                let left = match text.attribute("text-anchor") {
                    Some("middle") => x - letters / 2.0,
                    _ => x,
                };
                assert!(left >= 0.0 && left + letters <= frame[2], "{} {x}", text_of(text));
                assert!(y >= 10.0 && y <= frame[3], "{}", text_of(text));
            }
        }
    }
}

#[test]
fn a_page_goes_to_a_file_if_one_is_named() {
    let result = file("output", "result.json", benched());
    let path = file("output", "page.html", "");
    cachewise(&["report", &result, "-o", &path]).assert().success().stdout("").stderr("");
    let written = fs::read_to_string(path).unwrap();
    let printed = cachewise(&["report", &result]).assert().success();
    assert_eq!(written.as_bytes(), printed.get_output().stdout);
    let from_lines = file("output", "lines.json", lines("map", &[cell("libc", 0, 0.0, 9.0)]));
    cachewise(&["report", &from_lines]).assert().success().stdout(contains("libc"));
}

#[test]
fn a_reader_who_has_seen_enough_of_a_page_is_no_error() {
    let (a, b) = two_runs("pipe");
    for args in [&["report", &a][..], &["compare", &a, &b, "-q"]] {
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
