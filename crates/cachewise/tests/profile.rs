//! Profiles: what is written reads back, what is wrong is named with its line, another machine's is
//! refused, and an error changes nothing. The environment's side of it is in `switch.rs`.

mod common;

use cachewise::Error;
use cachewise::policy::{self, Gate, Threshold};
use cachewise::profile::{Accept, Fingerprint, Problem, Profile};
use cachewise::switch::{self, DecidedBy, Slot};
use cachewise::variant::{self, Variant};
use common::{candidates, exclusive};

fn empty() -> Profile {
    Profile::new(Fingerprint::detect(), "0.1.0", 7, "2026-11-30")
}

fn last(slot: Slot) -> &'static Variant {
    candidates(slot).last().expect("something can serve")
}

/// Something for every slot and gate.
fn full() -> Profile {
    let mut profile = empty();
    for slot in Slot::ALL {
        profile.set_variant(slot, last(slot)).expect("the slot accepts it");
    }
    let states = [Threshold::Off, Threshold::Always, Threshold::Bytes(4096), Threshold::Bytes(0)];
    for (gate, state) in Gate::ALL.into_iter().zip(states.into_iter().cycle()) {
        profile.set_threshold(gate, state);
    }
    profile
}

fn state() -> (Vec<switch::Why>, Vec<policy::Decided>) {
    (Slot::ALL.map(switch::why).to_vec(), Gate::ALL.map(policy::threshold).to_vec())
}

#[test]
fn what_is_written_reads_back() {
    let _alone = exclusive();
    for profile in [empty(), full()] {
        let text = profile.to_string();
        let read = Profile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, profile);
        assert_eq!(read.to_string(), text);
        assert_eq!((read.tool_version(), read.seed(), read.date()), ("0.1.0", 7, "2026-11-30"));
    }
}

#[test]
fn layout_comments_and_evidence_make_no_difference() {
    let _alone = exclusive();
    let profile = full();
    let text = profile.to_string();
    let spaced: String =
        text.lines().map(|line| format!("\t {} # = \"[\r\n\n", line.replace(" = ", "="))).collect();
    let with_evidence = format!("# first\n{text}[evidence]\nany-Thing_1 = \"µ # \"\nx = 18446\n");
    for text in [spaced, with_evidence, text.trim_end().to_owned()] {
        assert_eq!(Profile::parse(&text), Ok(profile), "{text}");
    }
}

#[test]
fn an_applied_profile_decides_all_that_it_names_and_nothing_else() {
    let _alone = exclusive();
    let before = state();
    empty().apply(Accept::ThisMachine).expect("it is this machine's");
    assert_eq!(state(), before);

    let profile = full();
    profile.apply(Accept::ThisMachine).expect("it is this machine's");
    for slot in Slot::ALL {
        let why = switch::why(slot);
        assert_eq!((why.variant, why.decided_by), (last(slot), DecidedBy::Profile));
        assert!(why.to_string().ends_with("(by profile)"));
    }
    for gate in Gate::ALL {
        let decided = policy::threshold(gate);
        assert_eq!(decided.decided_by, DecidedBy::Profile);
        // No length is below 0, so from 0 bytes on is always.
        let wanted = profile.threshold(gate).filter(|t| *t != Threshold::Bytes(0));
        assert_eq!(decided.threshold, wanted.unwrap_or(Threshold::Always));
    }
    let (src, mut dst) = ([7; 9000], [0; 9000]);
    assert_eq!(cachewise::copy_nontemporal(&mut dst, &src), src);

    empty().apply(Accept::ThisMachine).expect("it is this machine's");
    assert_eq!(state(), before, "what a profile leaves out goes back to the default");
}

#[test]
fn a_call_stands_above_the_profile_before_and_after_it() {
    let _alone = exclusive();
    let first = candidates(Slot::Copy).next().expect("something can serve");
    switch::set(Slot::Copy, first).expect("the slot accepts it");
    policy::set_threshold(Gate::CopyAuto, Threshold::Bytes(5));
    full().apply(Accept::ThisMachine).expect("it is this machine's");
    let why = switch::why(Slot::Copy);
    assert_eq!((why.variant, why.decided_by), (first, DecidedBy::Api));
    assert_eq!(policy::threshold(Gate::CopyAuto).threshold, Threshold::Bytes(5));

    let other = candidates(Slot::Clear).next().expect("something can serve");
    switch::set(Slot::Clear, other).expect("the slot accepts it");
    assert_eq!(switch::why(Slot::Clear).decided_by, DecidedBy::Api);
}

#[test]
fn another_machines_profile_is_refused_and_says_why() {
    let _alone = exclusive();
    let text = full().to_string();
    let before = state();
    for (key, value) in Fingerprint::detect().entries() {
        let value = value.to_string();
        let other = match (key, value.starts_with('"')) {
            ("features", _) if value.contains("mmx") => "\"clwb\"",
            ("features", _) => "\"mmx\"",
            (_, true) => "\"other\"",
            (_, false) => "12345",
        };
        let (old, new) = (format!("\n{key} = {value}\n"), format!("\n{key} = {other}\n"));
        let changed = text.replace(&old, &new);
        assert_ne!(changed, text, "{old}");
        let profile = Profile::parse(&changed).expect("it is well formed");
        let error = profile.apply(Accept::ThisMachine).expect_err("it is another machine's");
        let Error::AnotherMachine(difference) = error else { panic!("{error}") };
        assert_eq!(difference.keys().collect::<Vec<_>>(), [key]);
        let message = error.to_string();
        for word in [key, "CACHEWISE_PROFILE=any:", "cachewise tune -o"] {
            assert!(message.contains(word), "{message}");
        }
        assert!(key == "features" || message.contains(other.trim_matches('"')), "{message}");
        assert_eq!(state(), before);

        profile.apply(Accept::AnyMachine).expect("it was insisted upon");
        assert_eq!(switch::why(Slot::Copy).decided_by, DecidedBy::Profile);
        empty().apply(Accept::ThisMachine).expect("it is this machine's");
    }
}

#[test]
fn all_that_differs_is_named() {
    let text = empty()
        .to_string()
        .replace("model = ", "model = 9")
        .replace("line_bytes = ", "line_bytes = 1");
    let profile = Profile::parse(&text).expect("it is well formed");
    let message = profile.apply(Accept::ThisMachine).expect_err("it differs").to_string();
    assert!(message.contains("model is \"9") && message.contains("line_bytes"), "{message}");
}

/// Replaces the one line that begins with `from`, and gives its number.
fn with_line(text: &str, from: &str, to: &str) -> (String, u32) {
    let index = text.lines().position(|line| line.starts_with(from)).expect("there is such a line");
    let lines = text.lines().enumerate().map(|(i, line)| if i == index { to } else { line });
    (lines.collect::<Vec<_>>().join("\n"), index as u32 + 1)
}

#[test]
fn wrong_lines_are_errors_with_their_number() {
    let _alone = exclusive();
    let text = full().to_string();
    for (from, to, says) in [
        ("seed", "seed", "neither a # comment"),
        ("seed", "= 7", "neither a # comment"),
        ("seed", "se ed = 7", "neither a # comment"),
        ("seed", "seed = ", "no value"),
        ("seed", "seed = -1", "\"-1\""),
        ("seed", "seed = 07", "\"07\""),
        ("seed", "seed = 1.5", "\"1.5\""),
        ("seed", "seed = 7 8", "\"7 8\""),
        ("seed", "seed = true", "\"true\""),
        ("seed", "seed = 99999999999999999999", "no value"),
        ("seed", "seed = \"7\"", "whole number"),
        ("seed", "colour = \"red\"", "[evidence]"),
        ("date", "date = 2026", "date = \"word\""),
        ("date", "date = \"a\\\"b\"", "without backslashes"),
        ("date", "date = \"2026", "no value"),
        ("date", "date = '2026'", "no value"),
        ("date", "seed = 7", "twice"),
        ("tool_version", "tool_version = \"\u{7}\"", "no value"),
        ("schema_version", "schema_version = 2", "this version reads 1"),
        ("[machine]", "[machine", "neither"),
        ("[machine]", "[[machine]]", "neither"),
        ("[machine]", "[engine]", "tables: machine, variants, thresholds, evidence"),
        ("[thresholds]", "[variants]", "twice"),
        ("brand", &format!("brand = \"{}\"", "x".repeat(49)), "longer than 48"),
        ("features", "features = \"sse9\"", "no CPU feature is named \"sse9\""),
        ("family", "family = \"25\"", "whole number"),
        ("copy = ", "copies = \"x\"", "copy_page_nontemporal"),
        ("copy = ", "copy = 1", "as in copy = \"word\""),
        ("copy_auto", "copy = 4096", "thresholds: clear_page_nontemporal"),
        ("copy_auto", "copy_auto = \"never\"", "\"off\" or \"always\""),
        ("copy_auto", "clear_auto = 1", "twice"),
    ] {
        let (text, line) = with_line(&text, from, to);
        let error = Profile::parse(&text).expect_err(to);
        assert!(matches!(error, Error::Profile { line: l, .. } if l == line), "{to}: {error:?}");
        let message = error.to_string();
        assert!(message.starts_with(&format!("profile, line {line}: ")), "{to}: {message}");
        assert!(message.contains(says), "{to}: {message}");
    }
}

#[test]
fn what_every_profile_has_must_be_there() {
    let text = empty().to_string();
    assert!(Profile::parse("").is_err());
    let needed = text.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    for key in needed {
        let (text, _) = with_line(&text, &format!("{key} = "), "");
        let message = Profile::parse(&text).expect_err("a key is missing").to_string();
        assert!(message.contains(key), "{message}");
    }
    let late = "seed = 1\nschema_version = 1";
    let error = Profile::parse(late).expect_err("the version comes first");
    assert_eq!(error, Error::Profile { line: 1, because: Problem::NoSchemaVersion });
}

/// The last of many slots is wrong: none of them may have been set.
#[test]
fn variants_that_are_wrong_here_are_refused_with_the_right_ones() {
    let _alone = exclusive();
    let text = full().to_string();
    let before = state();
    let slot = Slot::CopyNontemporal;
    let refused = |name: &str, says: &str| {
        let line = format!("{slot} = \"{name}\"");
        let (text, line) = with_line(&text, &format!("{slot} = \""), &line);
        let profile = Profile::parse(&text).expect("whether it exists here is asked later");
        let error = profile.apply(Accept::AnyMachine).expect_err(name);
        assert!(matches!(error, Error::Profile { line: l, .. } if l == line), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(says) && message.contains("available: "), "{message}");
        assert!(message.contains(last(slot).name()), "{message}");
        assert_eq!(state(), before);
    };
    refused("no_such_variant", "\"no_such_variant\"");
    refused(&"x".repeat(60), "xxx…");
    let copies = || variant::all().iter().filter(|v| v.operation() == slot.operation());
    match copies().find(|v| !slot.accepts(v)) {
        Some(variant) => refused(variant.name(), "twice"),
        None => say!("cannot run here: every variant may serve {slot}"),
    }
    match copies().find(|v| slot.accepts(v) && v.unavailable().is_some()) {
        Some(variant) => refused(variant.name(), "needs"),
        None => say!("cannot run here: no variant is unavailable"),
    }
}

/// Whatever the text, an answer.
#[test]
fn no_text_makes_it_panic() {
    let _alone = exclusive();
    let text = full().to_string();
    for end in 0..text.len() {
        let _ = Profile::parse(&text[..end]);
        let _ = Profile::parse(&text[end..]);
    }
    let mut rng = common::Rng::new(1);
    for _ in 0..2000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..3 {
            let at = rng.below(bytes.len());
            let wild = b"\"=[]#\n\\ 9x\x80";
            bytes[at] = wild[rng.below(wild.len())];
        }
        let _ = Profile::parse(&String::from_utf8_lossy(&bytes));
    }
}
