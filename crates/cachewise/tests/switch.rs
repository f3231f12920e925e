//! The switch: what is set is what serves, what is refused changes nothing, and the environment's
//! word in processes of their own.

mod common;

use cachewise::Error;
use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, DecidedBy, Slot, Why};
use cachewise::variant::{self, Operation, StoresOnce, Variant};
use common::{available, candidates, exclusive, title};
use std::sync::atomic::{AtomicBool, Ordering};

fn whys() -> [Why; 8] {
    Slot::ALL.map(switch::why)
}

fn thresholds() -> [policy::Decided; 6] {
    Gate::ALL.map(policy::threshold)
}

#[test]
fn what_is_set_serves_until_reset() {
    let _alone = exclusive();
    let defaults = whys();
    for slot in Slot::ALL {
        let mut ran = 0;
        for variant in candidates(slot) {
            switch::set(slot, variant).expect("the slot accepts it");
            let why = switch::why(slot);
            assert_eq!(why, Why { slot, variant, decided_by: DecidedBy::Api });
            assert_eq!(switch::get(slot), variant);
            assert_eq!(why.to_string(), format!("{slot}={} (by api)", variant.name()));
            let others = whys().into_iter().zip(defaults).filter(|(now, _)| now.slot != slot);
            others.for_each(|(now, before)| assert_eq!(now, before, "slots are independent"));

            switch::reset(slot);
            switch::set_by_name(slot, variant.name()).expect("the slot accepts it");
            assert_eq!(switch::get(slot), variant);
            ran += 1;
        }
        assert!(ran > 0, "nothing can serve {slot} here");
        switch::reset(slot);
        assert_eq!(whys(), defaults);
    }
}

#[test]
fn defaults_keep_the_slots_promises() {
    let _alone = exclusive();
    for why in whys() {
        assert_eq!(why.decided_by, DecidedBy::Default);
        assert!(why.slot.accepts(why.variant), "{why}");
        assert_eq!(why.variant.unavailable(), None, "{why}");
    }
}

#[test]
fn slots_and_variants_are_found_by_their_names_only() {
    for slot in Slot::ALL {
        assert_eq!(Slot::from_name(slot.name()), Ok(slot));
        assert_eq!(slot.to_string(), slot.name());
    }
    for variant in variant::all() {
        let same = |v: &&Variant| title(v) == title(variant);
        assert_eq!(variant::all().iter().filter(same).count(), 1, "{}", title(variant));
        assert_eq!(variant::find(variant.operation(), variant.name()), Ok(variant));
        let upper = variant.name().to_uppercase();
        assert!(variant::find(variant.operation(), &upper).is_err());
    }
    let error = Slot::from_name("copypage").expect_err("no such slot");
    let message = error.to_string();
    assert!(message.contains("\"copypage\""), "{message}");
    for slot in Slot::ALL {
        assert!(message.contains(slot.name()), "{message}");
    }
}

/// `error` must list the names that `accepts`, and no other name of the registry. Returns it.
#[track_caller]
fn lists_exactly(error: Error, accepts: impl Fn(&Variant) -> bool) -> String {
    let message = error.to_string();
    let (_, list) = message.split_once("available: ").expect("the message lists names");
    let listed: Vec<&str> = list.split(", ").collect();
    let right: Vec<&str> = available().filter(|v| accepts(v)).map(Variant::name).collect();
    assert_eq!(listed, right, "{message}");
    message
}

#[test]
fn what_is_refused_changes_nothing_and_names_what_is_right() {
    let _alone = exclusive();
    for slot in Slot::ALL {
        let of_this = move |v: &Variant| v.operation() == slot.operation();
        let set = candidates(slot).next().expect("something can serve");
        switch::set(slot, set).expect("the slot accepts it");
        let before = whys();

        for name in ["", "no_such_variant", "MOVNTI ", "portable\0", &"x".repeat(5000)] {
            let error = switch::set_by_name(slot, name).expect_err("no such variant");
            let message = lists_exactly(error, of_this);
            assert!(message.len() < 1000, "a long word is cut: {message}");
            assert!(!message.contains('\0'), "{message}");
            assert_eq!(whys(), before);
        }
        for variant in variant::all() {
            let refused = match switch::set(slot, variant) {
                Ok(()) => {
                    assert!(slot.accepts(variant) && variant.unavailable().is_none());
                    switch::set(slot, set).expect("the slot accepts it");
                    continue;
                }
                Err(error) => error,
            };
            assert_eq!(whys(), before);
            if variant.operation() != slot.operation() {
                assert_eq!(refused, Error::WrongOperation { variant, wanted: slot.operation() });
                lists_exactly(refused, of_this);
            } else if !slot.accepts(variant) {
                assert_ne!(variant.stores_once(), StoresOnce::Always);
                assert_eq!(refused, Error::StoresTwice { variant, slot });
                lists_exactly(refused, |v| slot.accepts(v));
            } else {
                let because = variant.unavailable().expect("nothing else is left");
                assert_eq!(refused, Error::Unavailable { variant, because });
                let message = lists_exactly(refused, of_this);
                assert!(message.contains(&because.to_string()), "{message}");
            }
        }
        switch::reset(slot);
    }
}

#[test]
fn handles_are_made_for_the_right_operation_only() {
    for variant in variant::all() {
        let (copier, clearer) = (variant.copier().err(), variant.clearer().err());
        let unavailable =
            variant.unavailable().map(|because| Error::Unavailable { variant, because });
        let wrong = |wanted| Some(Error::WrongOperation { variant, wanted });
        match variant.operation() {
            Operation::Copy => {
                assert_eq!((copier, clearer), (unavailable, wrong(Operation::Clear)))
            }
            Operation::Clear => {
                assert_eq!((copier, clearer), (wrong(Operation::Copy), unavailable))
            }
        }
    }
}

#[test]
fn thresholds_are_set_one_by_one_and_reset() {
    let _alone = exclusive();
    let defaults = thresholds();
    for (i, gate) in Gate::ALL.into_iter().enumerate() {
        let states =
            [Threshold::Off, Threshold::Always, Threshold::Bytes(1), Threshold::Bytes(4096)];
        for threshold in states {
            policy::set_threshold(gate, threshold);
            let mut expected = defaults;
            expected[i] = policy::Decided { threshold, decided_by: DecidedBy::Api };
            assert_eq!(thresholds(), expected, "{}", gate.name());
        }
        policy::reset_threshold(gate);
        assert_eq!(thresholds(), defaults);
    }
}

/// States stay states: no number becomes one.
#[test]
fn large_thresholds_are_not_off() {
    let _alone = exclusive();
    for bytes in [usize::MAX, usize::MAX - 1, isize::MAX as usize, isize::MAX as usize + 1] {
        policy::set_threshold(Gate::CopyAuto, Threshold::Bytes(bytes));
        let set = policy::threshold(Gate::CopyAuto).threshold;
        assert_eq!(set, Threshold::Bytes(isize::MAX as usize));
    }
}

#[test]
fn thresholds_are_read_from_words() {
    let right = [
        ("0", Threshold::Bytes(0)),
        ("512", Threshold::Bytes(512)),
        ("512B", Threshold::Bytes(512)),
        ("4K", Threshold::Bytes(4096)),
        ("4KiB", Threshold::Bytes(4096)),
        ("3 MiB", Threshold::Bytes(3 << 20)),
        ("1G", Threshold::Bytes(1 << 30)),
        ("off", Threshold::Off),
        ("Always", Threshold::Always),
    ];
    for (text, threshold) in right {
        assert_eq!(text.parse(), Ok(threshold), "{text}");
    }
    for text in ["", "x", "-1", "1.5M", "K", "10T", "4KiBs", "99999999999999999999", "17179869184G"]
    {
        let error = text.parse::<Threshold>().expect_err(text);
        let message = error.to_string();
        assert!(message.contains(&format!("\"{text}\"")) && message.contains("off"), "{message}");
    }
}

/// Copies stay right while another thread changes what serves them.
#[test]
fn switching_under_running_copies() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 4000 };
    const COPYING_THREADS: usize = 3;
    let _alone = exclusive();
    let done = AtomicBool::new(false);
    let copied = std::thread::scope(|scope| {
        let copiers: Vec<_> = (0..COPYING_THREADS)
            .map(|thread| {
                let done = &done;
                scope.spawn(move || {
                    let src: Vec<u8> = (0..9000_usize).map(|i| (i * 7 + thread) as u8).collect();
                    let mut rounds = 0_usize;
                    while rounds == 0 || !done.load(Ordering::Relaxed) {
                        let len = (rounds * 37) % src.len();
                        let mut dst = vec![0; len];
                        cachewise::copy(&mut dst[..], &src[..len]);
                        assert!(dst == src[..len], "copy of {len}");
                        cachewise::clear_nontemporal(&mut dst[..]);
                        assert!(dst.iter().all(|&b| b == 0), "clear_nontemporal of {len}");
                        cachewise::copy_nontemporal(&mut dst[..], &src[..len]);
                        assert!(dst == src[..len], "copy_nontemporal of {len}");
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        let choices = Slot::ALL.map(|slot| candidates(slot).collect::<Vec<_>>());
        for round in 0..ROUNDS {
            for (slot, choices) in Slot::ALL.into_iter().zip(&choices) {
                switch::set(slot, choices[round % choices.len()]).expect("the slot accepts it");
            }
            let states = [Threshold::Off, Threshold::Always, Threshold::Bytes(1000)];
            policy::set_threshold(Gate::CopyNontemporal, states[round % 3]);
            policy::set_threshold(Gate::ClearNontemporal, states[(round + 1) % 3]);
            if round % 16 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        copiers.into_iter().map(|c| c.join().expect("its copies were right")).sum::<usize>()
    });
    assert!(copied >= COPYING_THREADS, "each thread has copied while slots changed");
}

#[cfg(not(all(feature = "std", not(miri))))]
#[test]
#[ignore = "needs feature `std` and processes"]
fn environment() {}

/// The environment, each time in a new process: this very test binary, told to run `child` alone.
#[cfg(all(feature = "std", not(miri)))]
mod environment {
    use super::common::this_binary;
    use super::*;
    use cachewise::profile::{Fingerprint, Profile};
    use std::ffi::OsStr;
    use std::sync::atomic::AtomicUsize;

    /// Set for the child: it prints what holds after `init`.
    const CHILD: &str = "CACHEWISE_TEST_CHILD";

    /// What a child has printed: `init`'s error if any, then slots and thresholds.
    struct Report {
        error: Option<String>,
        lines: Vec<String>,
    }

    #[test]
    #[ignore = "the child of the tests beside it"]
    fn child() {
        if std::env::var_os(CHILD).is_none() {
            say!("not run: `child` is started by the tests beside it, with an environment");
            return;
        }
        let before = (whys(), thresholds());
        if let Err(error) = cachewise::init() {
            println!("child: error: {error}");
            assert_eq!((whys(), thresholds()), before, "an error changes nothing");
        }
        whys().iter().for_each(|why| println!("child: {why}"));
        for gate in Gate::ALL {
            let decided = policy::threshold(gate);
            println!("child: {} {} ({})", gate.name(), decided.threshold, decided.decided_by);
        }
        for variant in variant::all() {
            if let Some(because) = variant.unavailable() {
                println!("child: {} {because}", title(variant));
            }
        }
        let (src, mut dst) = ([7; 5000], [0; 5000]);
        assert_eq!(cachewise::copy_nontemporal(&mut dst, &src), src);
        assert_eq!(cachewise::clear(&mut dst), [0; 5000]);
    }

    fn run<V: AsRef<OsStr>>(variables: &[(&str, V)]) -> Report {
        let mut command = this_binary();
        command.args(["--exact", "environment::child", "--ignored", "--nocapture"]);
        for inherited in ["FORCE", "DISABLE", "NT_THRESHOLD", "PROFILE"] {
            command.env_remove(format!("CACHEWISE_{inherited}"));
        }
        command.env(CHILD, "1").envs(variables.iter().map(|(name, value)| (name, value.as_ref())));
        let output = command.output().expect("this binary can be started");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stdout}{stderr}");
        let lines = stdout.lines().filter_map(|line| line.split_once("child: "));
        let mut lines: Vec<String> = lines.map(|(_, line)| line.to_owned()).collect();
        assert!(!lines.is_empty(), "the child didn't run: {stdout}{stderr}");
        let error = lines[0].strip_prefix("error: ").map(str::to_owned);
        if error.is_some() {
            lines.remove(0);
        }
        Report { error, lines }
    }

    impl Report {
        #[track_caller]
        fn has(&self, line: &str) {
            assert!(self.lines.iter().any(|l| l == line), "no {line:?} in {:#?}", self.lines);
        }

        #[track_caller]
        fn accepted(self) -> Self {
            assert_eq!(self.error, None);
            self
        }
    }

    #[test]
    fn without_variables_nothing_changes() {
        let report = run::<&str>(&[]).accepted();
        assert!(report.lines.iter().all(|line| !line.contains("environment")));
    }

    #[test]
    fn force_serves_each_slot_by_what_it_names() {
        let choice = |slot: Slot| candidates(slot).last().expect("something can serve");
        let items = Slot::ALL.map(|slot| format!("{slot} = {}", choice(slot).name()));
        let report = run(&[("CACHEWISE_FORCE", format!("{},,", items.join(" ,")))]).accepted();
        for slot in Slot::ALL {
            report.has(&format!("{slot}={} (by environment)", choice(slot).name()));
        }
    }

    #[test]
    fn wrong_force_is_an_error_and_changes_nothing() {
        let unchanged = run::<&str>(&[]).lines;
        let right = format!("clear={}", candidates(Slot::Clear).next().expect("one").name());
        let twice = available().find(|v| !Slot::CopyNontemporal.accepts(v) && v.copier().is_ok());
        let mut wrong = vec![
            ("copy".to_owned(), "slot=variant"),
            ("copy=no_such_variant".to_owned(), "available: "),
            ("copy=".to_owned(), "available: "),
            ("no_such_slot=portable".to_owned(), "clear_page_nontemporal"),
        ];
        match twice {
            Some(v) => wrong.push((format!("copy_nontemporal={}", v.name()), "twice")),
            None => say!("cannot run here: every variant may serve copy_nontemporal"),
        }
        match variant::all().iter().find(|v| v.unavailable().is_some()) {
            Some(v) => {
                wrong.push((format!("{}={}", v.operation(), v.name()), "available: "));
            }
            None => say!("cannot run here: no variant is unavailable"),
        }
        for (item, hint) in wrong {
            let report = run(&[("CACHEWISE_FORCE", format!("{right},{item}"))]);
            let error = report.error.expect("it must be refused");
            assert!(error.contains(hint), "{item}: {error}");
            assert_eq!(report.lines, unchanged, "{item}");
        }
    }

    #[test]
    fn disable_takes_variants_away() {
        for variant in available().filter(|v| v.recoverable()) {
            let report = run(&[("CACHEWISE_DISABLE", variant.name())]).accepted();
            report.has(&format!("{} is disabled by CACHEWISE_DISABLE", title(variant)));
            let slots = Slot::ALL.iter().filter(|slot| slot.operation() == variant.operation());
            for slot in slots {
                let served = format!("{slot}={} (", variant.name());
                assert!(report.lines.iter().all(|line| !line.starts_with(&served)));
            }
        }
    }

    #[test]
    fn disable_takes_features_away() {
        let mut ran = 0;
        for feature in cachewise::cpu::Features::all() {
            let needing: Vec<_> =
                available().filter(|v| v.required_features().contains(feature)).collect();
            if needing.is_empty() {
                continue;
            }
            let report = run(&[("CACHEWISE_DISABLE", format!(" {} ,", feature.name()))]).accepted();
            for variant in needing {
                report.has(&format!("{} is disabled by CACHEWISE_DISABLE", title(variant)));
            }
            ran += 1;
        }
        if ran == 0 {
            say!("cannot run here: no available variant needs a CPU feature");
        }
    }

    #[test]
    fn all_disabled_leaves_something_that_serves() {
        let mut names: Vec<_> =
            available().filter(|v| v.recoverable()).map(Variant::name).collect();
        names.dedup();
        run(&[("CACHEWISE_DISABLE", names.join(","))]).accepted();
    }

    #[test]
    fn disabled_variants_cannot_be_forced() {
        let variant = candidates(Slot::Clear).next().expect("one");
        let force = format!("clear={}", variant.name());
        let variables = [("CACHEWISE_DISABLE", variant.name()), ("CACHEWISE_FORCE", &force)];
        let error = run(&variables).error.expect("it must be refused");
        assert!(error.contains("disabled"), "{error}");
    }

    #[test]
    fn wrong_disable_is_an_error_and_changes_nothing() {
        let unchanged = run::<&str>(&[]).lines;
        let report = run(&[("CACHEWISE_DISABLE", "no_such_thing")]);
        assert!(report.error.is_some_and(|error| error.contains("\"no_such_thing\"")));
        assert_eq!(report.lines, unchanged);
    }

    #[test]
    fn nt_threshold_sets_every_gate() {
        for (text, shown) in [("off", "off"), ("always", "always"), ("64KiB", "65536 B")] {
            let report = run(&[("CACHEWISE_NT_THRESHOLD", text)]).accepted();
            for gate in Gate::ALL {
                report.has(&format!("{} {shown} (environment)", gate.name()));
            }
        }
    }

    #[test]
    fn wrong_nt_threshold_is_an_error_and_changes_nothing() {
        let unchanged = run::<&str>(&[]).lines;
        let force = format!("copy={}", candidates(Slot::Copy).last().expect("one").name());
        for text in ["never", "-5", "1e6"] {
            let report = run(&[("CACHEWISE_FORCE", &*force), ("CACHEWISE_NT_THRESHOLD", text)]);
            let error = report.error.expect("it must be refused");
            assert!(error.contains(text) && error.contains("always"), "{error}");
            assert_eq!(report.lines, unchanged, "{text}");
        }
    }

    /// A profile that names the last candidate for every slot and a threshold of its own for every
    /// gate, in a file that goes when this is dropped.
    struct ProfileFile(std::path::PathBuf);

    impl ProfileFile {
        fn new(change: impl Fn(String) -> String) -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let mut profile = Profile::new(Fingerprint::detect(), "test", 1, "2026-11-30");
            for slot in Slot::ALL {
                profile.set_variant(slot, last(slot)).expect("the slot accepts it");
            }
            for gate in Gate::ALL {
                profile.set_threshold(gate, Threshold::Bytes(1000 + gate as usize));
            }
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("cachewise-test-{}-{count}.toml", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, change(profile.to_string())).expect("the file can be written");
            Self(path)
        }

        fn path(&self) -> &str {
            self.0.to_str().expect("a path in UTF-8")
        }
    }

    impl Drop for ProfileFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn last(slot: Slot) -> &'static Variant {
        candidates(slot).last().expect("something can serve")
    }

    #[test]
    fn a_profile_serves_each_slot_and_gate() {
        let file = ProfileFile::new(|text| text);
        let report = run(&[("CACHEWISE_PROFILE", file.path())]).accepted();
        for slot in Slot::ALL {
            report.has(&format!("{slot}={} (by profile)", last(slot).name()));
        }
        for gate in Gate::ALL {
            report.has(&format!("{} {} B (profile)", gate.name(), 1000 + gate as usize));
        }
    }

    #[test]
    fn what_is_forced_stands_above_the_profile() {
        let file = ProfileFile::new(|text| text);
        let first = candidates(Slot::Copy).next().expect("something can serve");
        let force = format!("copy={}", first.name());
        let report = run(&[
            ("CACHEWISE_PROFILE", file.path()),
            ("CACHEWISE_FORCE", &force),
            ("CACHEWISE_NT_THRESHOLD", "off"),
        ]);
        let report = report.accepted();
        report.has(&format!("copy={} (by environment)", first.name()));
        report.has(&format!("clear={} (by profile)", last(Slot::Clear).name()));
        for gate in Gate::ALL {
            report.has(&format!("{} off (environment)", gate.name()));
        }
    }

    #[test]
    fn another_machines_profile_is_refused_unless_told() {
        let file = ProfileFile::new(|text| text.replace("family = ", "family = 9"));
        let report = run(&[("CACHEWISE_PROFILE", file.path())]);
        let error = report.error.expect("it must be refused");
        for word in ["another machine", "family is \"9", "CACHEWISE_PROFILE=any:", "tune -o"] {
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(report.lines, run::<&str>(&[]).lines);

        let report = run(&[("CACHEWISE_PROFILE", format!("any:{}", file.path()))]).accepted();
        report.has(&format!("clear={} (by profile)", last(Slot::Clear).name()));
    }

    #[test]
    fn a_wrong_profile_is_an_error_and_changes_nothing() {
        let unchanged = run::<&str>(&[]).lines;
        let file = ProfileFile::new(|text| format!("{text}[evidence]\nx = 1.5\n"));
        let last_line = std::fs::read_to_string(&file.0).expect("it is there").lines().count();
        for (path, says) in [
            (file.path(), &*format!("line {last_line}: \"1.5\"")),
            ("/no/such/profile", "\"/no/such/profile\": entity not found"),
            ("any:/no/such/profile", "\"/no/such/profile\""),
            ("/dev/null", "schema_version = 1"),
            ("/dev/zero", "invalid data"),
        ] {
            let report = run(&[("CACHEWISE_PROFILE", path)]);
            let error = report.error.expect("it must be refused");
            assert!(error.contains(says), "{path}: {error}");
            assert_eq!(report.lines, unchanged, "{path}");
        }
    }

    #[test]
    fn a_profile_cannot_name_what_is_disabled() {
        let file = ProfileFile::new(|text| text);
        let disabled = candidates(Slot::Clear).find(|v| v.recoverable() && *v == last(Slot::Clear));
        let Some(variant) = disabled else {
            say!("cannot run here: the last candidate for clear cannot be disabled alone");
            return;
        };
        let variables = [("CACHEWISE_PROFILE", file.path()), ("CACHEWISE_DISABLE", variant.name())];
        let error = run(&variables).error.expect("it must be refused");
        assert!(error.contains("disabled") && error.contains("line "), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_not_text_is_refused() {
        use std::os::unix::ffi::OsStrExt as _;
        let report = run(&[("CACHEWISE_FORCE", OsStr::from_bytes(b"copy=\xff"))]);
        assert!(report.error.is_some_and(|error| error.contains("CACHEWISE_FORCE")));
    }
}
