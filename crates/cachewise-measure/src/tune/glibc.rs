//! glibc's own thresholds: is another value a gain on this machine?
//!
//! glibc chooses between loops by length: `rep movsb` or `rep stosb` from one threshold on,
//! non-temporal stores from another. Both are computed from what CPUID says of the caches, which a
//! hypervisor forges, and can be set from outside by GLIBC_TUNABLES (the manual's chapter
//! "Tunables"); the loader lists those of the glibc that is installed. A tunable is read once, when
//! a process starts, so every trial is a process of its own: the caller starts it, and gives its
//! times.
//!
//! Values are tried side by side with the default, in freshly shuffled order. The best one is then
//! run against the default once more, by itself, so that no other tunable's gain is taken for its
//! own; only what is a gain there, clear of noise, stays. The tunables bear on each other (`rep movsb`
//! ends where non-temporal stores begin), so what stays of several is run once more as one line.

use crate::case::{Align, Case, Page, Pattern, Temperature};
use crate::contestant::Contestant;
use crate::map::{self, Cell, Share, UseKind, Victim};
use crate::rng::Rng;
use crate::runner::{Effort, Stop, measure};
use crate::stats::{Estimate, Samples};
use crate::verdict::{geometric_mean, is_a_difference};
use crate::{Error, Machine};
use cachewise::variant::Operation;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One tunable as the loader lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// `glibc.cpu.x86_rep_movsb_threshold`.
    pub name: String,
    /// Its value, which is the default where nobody has set it.
    pub value: u64,
    /// The least and the most that it takes.
    pub range: (u64, u64),
}

/// What is timed for a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// The operation alone, the same buffers again: a matter of the loop.
    Hot,
    /// The whole step of a [map] cell from cold memory, with all of the result used at
    /// once and with nothing of it used: libc cannot know which it is.
    Whole,
}

/// One tunable, the values to try, and at which sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The tunable.
    pub tunable: Tunable,
    /// What it is about.
    pub operation: Operation,
    /// What is timed.
    pub timed: Timed,
    /// The values, without the default.
    pub values: Vec<u64>,
    /// The sizes.
    pub sizes_bytes: Vec<usize>,
}

/// What became of a trial.
#[derive(Clone, Debug)]
pub struct Found {
    /// The trial.
    pub trial: Trial,
    /// The value that looked best, if any looked better than the default.
    pub value: Option<u64>,
    /// How many times faster it is than the default, on times that it wasn't chosen by.
    pub ratio: Option<Estimate>,
}

impl Found {
    /// Whether it is to be set.
    pub fn is_a_gain(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio.median > 1.0 && is_a_difference(&ratio))
    }

    fn setting(&self) -> Option<String> {
        self.value.map(|value| setting(&self.trial.tunable, value))
    }
}

/// Times of a process under a setting, in nanoseconds, one per case; the cases are always the same
/// for the same trial. An empty setting is none.
pub type Child<'a> = dyn FnMut(&str, &Trial) -> Result<Vec<f64>, Error> + 'a;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

struct Known {
    name: &'static str,
    operation: Operation,
    timed: Timed,
    values: &'static [u64],
    sizes_bytes: &'static [usize],
}

/// Sizes lie between the values, so that each value changes who does some of them. The largest
/// value of the `rep` ones means never.
const KNOWN: [Known; 4] = [
    Known {
        name: "glibc.cpu.x86_rep_movsb_threshold",
        operation: Operation::Copy,
        timed: Timed::Hot,
        values: &[512, 8 << 10, 32 << 10, 1 << 40],
        sizes_bytes: &[1536, 5 * KIB, 20 * KIB, 128 * KIB],
    },
    Known {
        name: "glibc.cpu.x86_rep_stosb_threshold",
        operation: Operation::Clear,
        timed: Timed::Hot,
        values: &[512, 8 << 10, 32 << 10, 1 << 40],
        sizes_bytes: &[1536, 5 * KIB, 20 * KIB, 128 * KIB],
    },
    Known {
        name: "glibc.cpu.x86_non_temporal_threshold",
        operation: Operation::Copy,
        timed: Timed::Whole,
        values: &[256 << 10, 2 << 20, 16 << 20],
        sizes_bytes: &[MIB, 8 * MIB, 32 * MIB],
    },
    Known {
        name: "glibc.cpu.x86_memset_non_temporal_threshold",
        operation: Operation::Clear,
        timed: Timed::Whole,
        values: &[256 << 10, 2 << 20, 16 << 20],
        sizes_bytes: &[MIB, 8 * MIB, 32 * MIB],
    },
];

/// The trials for the glibc that this process runs with; empty where there is none, or one that
/// cannot list its tunables (before 2.33). A value that the loader doesn't take it passes over in
/// silence, so each is tried out.
pub fn installed() -> Vec<Trial> {
    let Some(loader) = loader() else { return Vec::new() };
    let mut trials = trials(&list(&loader, ""));
    for Trial { tunable, values, .. } in &mut trials {
        let is_taken = |value: &u64| {
            let taken = list(&loader, &setting(tunable, *value));
            taken.iter().any(|other| other.name == tunable.name && other.value == *value)
        };
        values.retain(is_taken);
    }
    trials
}

/// The dynamic loader is mapped into every process that it has loaded.
fn loader() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let is_loader = |path: &&str| {
        path.rsplit('/').next().is_some_and(|name| name.starts_with("ld") && name.contains(".so"))
    };
    paths.find(is_loader).map(PathBuf::from)
}

fn list(loader: &PathBuf, setting: &str) -> Vec<Tunable> {
    let output =
        Command::new(loader).arg("--list-tunables").env("GLIBC_TUNABLES", setting).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    parse(&String::from_utf8_lossy(&text))
}

/// Lines of the form `name: 0x1 (min: 0x0, max: 0xff)`; others are no thresholds.
fn parse(list: &str) -> Vec<Tunable> {
    let number = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
    let tunable = |line: &str| {
        let (name, rest) = line.split_once(": ")?;
        let (value, range) = rest.split_once(" (min: ")?;
        let (min, max) = range.strip_suffix(')')?.split_once(", max: ")?;
        let range = (number(min)?, number(max)?);
        Some(Tunable { name: name.to_owned(), value: number(value)?, range })
    };
    list.lines().filter_map(tunable).collect()
}

/// The trials for the tunables there are.
fn trials(tunables: &[Tunable]) -> Vec<Trial> {
    let trial = |known: &Known| {
        let tunable = tunables.iter().find(|tunable| tunable.name == known.name)?.clone();
        let (min, max) = tunable.range;
        let values = known.values.iter().copied();
        let values = values.filter(|v| (min..=max).contains(v) && *v != tunable.value).collect();
        let (operation, timed) = (known.operation, known.timed);
        Some(Trial { tunable, operation, timed, values, sizes_bytes: known.sizes_bytes.to_vec() })
    };
    KNOWN.iter().filter_map(trial).collect()
}

fn setting(tunable: &Tunable, value: u64) -> String {
    format!("{}={value:#x}", tunable.name)
}

/// The content of GLIBC_TUNABLES with all that is a gain; `None` if nothing is.
pub fn line(found: &[Found]) -> Option<String> {
    let settings: Vec<String> =
        found.iter().filter(|f| f.is_a_gain()).filter_map(Found::setting).collect();
    (!settings.is_empty()).then(|| settings.join(":"))
}

/// Tries the values, then runs what looked best against the default once more, and what are gains
/// all together. Says what comes.
///
/// # Errors
///
/// The child's, or stopped.
pub fn find(
    trials: &[Trial],
    rounds: usize,
    seed: u64,
    child: &mut Child<'_>,
    stop: &Stop,
    tell: &mut dyn FnMut(&Trial, bool),
) -> Result<Vec<Found>, Error> {
    let mut rng = Rng::new(seed);
    let mut found = Vec::new();
    for trial in trials {
        tell(trial, false);
        let values = trial.values.iter().map(|&value| setting(&trial.tunable, value));
        let settings: Vec<String> = [String::new()].into_iter().chain(values).collect();
        let times = run_all(&settings, trial, rounds, &mut rng, child, stop)?;
        let (default, others) = times.split_first().ok_or(Error::Stopped)?;
        let gains = others.iter().map(|other| mean_log(&ratios(default, other)));
        let scored = trial.values.iter().zip(gains).filter_map(|(v, gain)| Some((*v, gain?)));
        let best = scored.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let value = best.filter(|(_, gain)| *gain > 0.0).map(|(value, _)| value);
        found.push(Found { trial: trial.clone(), value, ratio: None });
    }
    let mut against_default = |found: &mut Found, setting: &str| -> Result<(), Error> {
        tell(&found.trial, true);
        let settings = [String::new(), setting.to_owned()];
        let times = run_all(&settings, &found.trial, rounds, &mut rng, child, stop)?;
        let [default, set] = &times[..] else { return Ok(()) };
        let ratios = ratios(default, set);
        // Each round has one sample: an interval of fewer is narrow by chance.
        if ratios.iter().all(|ratio| ratio.count() >= ROUNDS_MIN) {
            found.ratio = geometric_mean(&ratios, seed);
        }
        Ok(())
    };
    for found in &mut found {
        if let Some(setting) = found.setting() {
            against_default(found, &setting)?;
        }
    }
    // Each time round one of them at least has been dropped.
    loop {
        let gains = found.iter().filter(|found| found.is_a_gain()).count();
        let Some(line) = line(&found).filter(|_| gains > 1) else { return Ok(found) };
        for found in found.iter_mut().filter(|found| found.is_a_gain()) {
            against_default(found, &line)?;
        }
        if found.iter().filter(|found| found.is_a_gain()).count() == gains {
            return Ok(found);
        }
    }
}

/// What a child measures: this process's libc, a figure per size, or two where the whole is timed.
///
/// # Errors
///
/// If there is no figure.
pub fn times(
    machine: &Machine,
    operation: Operation,
    timed: Timed,
    sizes_bytes: &[usize],
    seed: u64,
    stop: &Stop,
) -> Result<Vec<f64>, Error> {
    let libc = Contestant::libc(operation);
    let mut times = Vec::new();
    for &size_bytes in sizes_bytes {
        match timed {
            Timed::Hot => times.push(hot_ns(machine, &libc, size_bytes, seed, stop)?),
            Timed::Whole => times.extend(whole_ns(machine, &libc, size_bytes, seed, stop)?),
        }
    }
    Ok(times)
}

fn hot_ns(
    machine: &Machine,
    libc: &Contestant,
    size_bytes: usize,
    seed: u64,
    stop: &Stop,
) -> Result<f64, Error> {
    let case = Case {
        operation: libc.operation(),
        size_bytes,
        temperature: Temperature::Hot,
        pattern: Pattern::Walk,
        align: Align::default(),
        threads: 1,
    };
    let effort = Effort { samples: 12, time: Duration::from_millis(20), rounds_min: 1, seed };
    let measured = measure(machine, &case, std::slice::from_ref(libc), &effort, stop)?;
    let samples = measured.results.into_iter().next().ok_or(Error::Thread)??;
    samples.median().ok_or(Error::Thread)
}

/// Nothing used, and all of it.
fn whole_ns(
    machine: &Machine,
    libc: &Contestant,
    size_bytes: usize,
    seed: u64,
    stop: &Stop,
) -> Result<Vec<f64>, Error> {
    let cell = |used| Cell {
        operation: libc.operation(),
        size_bytes,
        source: Temperature::Cold,
        page: Page::Base,
        threads: 1,
        used,
        use_kind: UseKind::Read,
        delay_bytes: 0,
        victim: Victim::NONE,
    };
    let effort = Effort { samples: 1, time: Duration::ZERO, rounds_min: 2, seed };
    let cells = [cell(Share::NONE), cell(Share::ALL)];
    let measured = map::measure(machine, &cells, &[libc], &effort, stop)?;
    let whole = |m: &map::Measured| m.ok().next().and_then(|o| o.times.whole.median());
    measured.iter().map(|m| whole(m).ok_or(Error::Thread)).collect()
}

/// Fewer rounds than this confirm nothing.
pub const ROUNDS_MIN: usize = 5;

/// By setting and case. Each round is a batch, as each process has memory of its own.
fn run_all(
    settings: &[String],
    trial: &Trial,
    rounds: usize,
    rng: &mut Rng,
    child: &mut Child<'_>,
    stop: &Stop,
) -> Result<Vec<Vec<Samples>>, Error> {
    let mut times: Vec<Vec<Samples>> = vec![Vec::new(); settings.len()];
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..settings.len()).collect();
        rng.shuffle(&mut order);
        for index in order {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let cases = child(&settings[index], trial)?;
            times[index].resize(cases.len(), Samples::default());
            for (samples, ns) in times[index].iter_mut().zip(cases) {
                samples.push_batch(vec![ns]);
            }
        }
    }
    Ok(times)
}

/// The default's times over another's, by case.
fn ratios(default: &[Samples], other: &[Samples]) -> Vec<Samples> {
    default.iter().zip(other).map(|(default, other)| default.ratio(other)).collect()
}

fn mean_log(ratios: &[Samples]) -> Option<f64> {
    let logs: Vec<f64> =
        ratios.iter().map(|ratio| Some(ratio.median()?.ln())).collect::<Option<_>>()?;
    (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)
glibc.cpu.x86_rep_movsb_threshold: 0x2000 (min: 0x200, max: 0xffffffffffffffff)
glibc.cpu.x86_non_temporal_threshold: 0xf000000 (min: 0x4040, max: 0xfffffffffffffff)
glibc.cpu.x86_shstk:
glibc.malloc.perturb: 0 (min: 0, max: 255)
";

    #[test]
    fn tunables_are_read_as_the_loader_lists_them() {
        let tunables = parse(LIST);
        assert_eq!(tunables.len(), 3, "{tunables:?}");
        assert_eq!(tunables[2].name, "glibc.cpu.x86_non_temporal_threshold");
        assert_eq!((tunables[2].value, tunables[2].range.0), (0xf00_0000, 0x4040));
    }

    #[test]
    fn only_what_is_installed_is_tried_within_its_range_and_not_the_default() {
        let trials = trials(&parse(LIST));
        let names: Vec<&str> = trials.iter().map(|trial| trial.tunable.name.as_str()).collect();
        assert_eq!(
            names,
            ["glibc.cpu.x86_rep_movsb_threshold", "glibc.cpu.x86_non_temporal_threshold"]
        );
        assert!(!trials[0].values.contains(&0x2000) && trials[0].values.contains(&512));
        assert!(super::trials(&[]).is_empty());
    }

    /// One setting is better, the rest is noise.
    fn child(better: &'static str, by: f64) -> impl FnMut(&str, &Trial) -> Result<Vec<f64>, Error> {
        let mut rng = Rng::new(3);
        move |setting, trial| {
            let factor =
                if !better.is_empty() && setting.contains(better) { 1.0 / by } else { 1.0 };
            let mut noise = || 0.98 + rng.below(41) as f64 / 1000.0;
            Ok(trial.sizes_bytes.iter().map(|&size| size as f64 * factor * noise()).collect())
        }
    }

    fn found(better: &'static str, by: f64, rounds: usize) -> Vec<Found> {
        let trials = trials(&parse(LIST));
        let mut child = child(better, by);
        find(&trials, rounds, 1, &mut child, &Stop::new(false), &mut |_, _| {}).unwrap()
    }

    #[test]
    fn a_better_value_is_found_and_no_other() {
        let found = found("x86_rep_movsb_threshold=0x200", 1.3, 12);
        assert_eq!(line(&found).as_deref(), Some("glibc.cpu.x86_rep_movsb_threshold=0x200"));
        let ratio = found[0].ratio.unwrap();
        assert!((ratio.median - 1.3).abs() < 0.05, "{ratio:?}");
    }

    /// Each is a gain by itself, and together one of them is not.
    #[test]
    fn gains_that_are_none_together_are_dropped() {
        let trials = trials(&parse(LIST));
        let mut lines = Vec::new();
        let mut child = |setting: &str, trial: &Trial| {
            lines.push(setting.to_owned());
            let both = setting.contains(':');
            let has = |name: &str| setting.contains(name);
            let factor = match trial.operation {
                _ if trial.timed == Timed::Whole && has("non_temporal_threshold") => 0.5,
                _ if trial.timed == Timed::Hot && has("rep_movsb") && !both => 0.5,
                _ => 1.0,
            };
            Ok(trial.sizes_bytes.iter().map(|&size| size as f64 * factor).collect())
        };
        let found = find(&trials, 6, 1, &mut child, &Stop::new(false), &mut |_, _| {}).unwrap();
        let line = line(&found).unwrap();
        assert!(line.starts_with("glibc.cpu.x86_non_temporal_threshold="), "{line}");
        assert!(!line.contains(':'), "{line}");
        assert!(lines.iter().any(|setting| setting.contains(':')), "run as one line");
    }

    #[test]
    fn noise_is_no_gain_and_few_rounds_show_none() {
        assert_eq!(line(&found("", 1.0, 12)), None);
        assert_eq!(line(&found("x86_rep_movsb_threshold=0x200", 1.3, 3)), None);
    }

    #[test]
    fn stopping_is_an_error() {
        let trials = trials(&parse(LIST));
        let mut child = child("", 1.0);
        let found = find(&trials, 5, 1, &mut child, &Stop::new(true), &mut |_, _| {});
        assert!(matches!(found, Err(Error::Stopped)));
    }
}
