//! A measured policy in a file: which variant serves each slot and from what size on calls go
//! around the cache, with the machine it was measured on.
//!
//! A result stored under another machine's name once led to a wrong default that took weeks to be
//! reverted (case 13). So a profile carries a [`Fingerprint`], and elsewhere it is refused, unless
//! the caller insists ([`Accept::AnyMachine`]). Nothing is chosen *by* the fingerprint: it only
//! tells whether what was measured was measured here.
//!
//! The format is a small, strict subset of TOML: comments, tables, and `key = value` where a value
//! is a string without escapes or a whole number. What is not understood is an error with its
//! line, since a misspelt slot that is passed over would look like one that was tuned. Only
//! `[evidence]` may hold anything: it is for people, and for the tool that wrote it
//! ([`evidence`]). Rejected: a TOML crate, which a `no_std`
//! library without dependencies cannot have; and JSON, which has no comments.
//!
//! ```toml
//! schema_version = 1
//! tool_version = "0.1.0"
//! seed = 1
//! date = "2026-11-30"
//!
//! [machine]
//! vendor = "AuthenticAMD"     # and the other keys of a fingerprint, all of them
//!
//! [variants]                  # slots left out keep the library's own choice
//! clear_page = "rep_stosq"
//!
//! [thresholds]                # bytes, "off" or "always"
//! copy_nontemporal = 4096
//! copy_auto = "off"
//!
//! [evidence]                  # decides nothing
//! clear_page = "1.08 times as fast as the default (1.05 to 1.11)"
//! ```
//!
//! Who decides, the later over the earlier: default, profile, environment, call. So
//! [`apply`](Profile::apply) leaves alone what `CACHEWISE_FORCE` or
//! [`switch::set`] has decided.

use crate::available::Disabled;
use crate::cpu::{Cpu, Features, Geometry, Level, Text};
use crate::error::{Error, Unavailable, Word};
use crate::policy::{self, Gate, Threshold, Thresholds};
use crate::switch::{self, Choices, Slot};
use crate::variant::{self, Operation, Variant};
use core::fmt;

/// The version of the format that this library reads and writes.
pub const SCHEMA_VERSION: u64 = 1;

/// Whose profiles are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// This machine's.
    ThisMachine,
    /// Any machine's. What cannot run here is still an error.
    AnyMachine,
}

/// A policy and where, when and by what it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// What it was measured on.
    pub machine: Fingerprint,
    tool_version: Word,
    seed: u64,
    date: Word,
    variants: [Option<Named>; Slot::ALL.len()],
    thresholds: Thresholds,
}

/// A variant as a line names it. Whether it exists here is asked when the profile is applied: a
/// profile of another machine should be refused for that, not for a name.
#[derive(Clone, Copy, Debug)]
struct Named {
    line: u32,
    variant: Result<&'static Variant, Word>,
}

/// Where it stands in the file makes no difference.
impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.variant == other.variant
    }
}

/// A profile whose every word has been found right for this machine.
pub(crate) struct Resolved {
    variants: Choices,
    thresholds: Thresholds,
}

impl Resolved {
    pub(crate) fn apply(&self) {
        switch::set_by_profile(&self.variants);
        policy::set_by_profile(&self.thresholds);
    }
}

impl Profile {
    /// A profile that decides nothing yet. `date` is the day of the measurement, `2026-11-30`.
    pub fn new(machine: Fingerprint, tool_version: &str, seed: u64, date: &str) -> Self {
        Self {
            machine,
            tool_version: Word::new(tool_version),
            seed,
            date: Word::new(date),
            variants: [None; Slot::ALL.len()],
            thresholds: [None; Gate::ALL.len()],
        }
    }

    /// Reads a profile's text.
    ///
    /// ```
    /// use cachewise::profile::Profile;
    ///
    /// let error = Profile::parse("schema_version = 1\nseed = \"one\"").unwrap_err();
    /// assert_eq!(error.to_string(), "profile, line 2: seed is a whole number, as in seed = 1");
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Profile`] with the first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::profile(text)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    ///
    /// [`Error::ProfileUnreadable`], or as [`parse`](Self::parse).
    #[cfg(feature = "std")]
    pub fn from_path(path: &std::path::Path) -> Result<Self, Error> {
        use std::io::Read as _;
        /// Many times what `tune` writes; a device that never ends is no profile.
        const LONGEST_BYTES: u64 = 1 << 20;
        let unreadable =
            |because| Error::ProfileUnreadable { path: Word::of(path.display()), because };
        let mut text = std::string::String::new();
        let file = std::fs::File::open(path).map_err(|error| unreadable(error.kind()))?;
        let read = file.take(LONGEST_BYTES + 1).read_to_string(&mut text);
        match read.map_err(|error| unreadable(error.kind()))? {
            len if len as u64 > LONGEST_BYTES => Err(unreadable(std::io::ErrorKind::InvalidData)),
            _ => Self::parse(&text),
        }
    }

    /// Lets the profile decide every slot and threshold that neither the environment nor a call has
    /// decided, from now on, in all threads. What the profile leaves out goes back to the library's
    /// own choice.
    ///
    /// # Errors
    ///
    /// If it is another machine's ([`Error::AnotherMachine`]) or names a variant that is unknown,
    /// cannot run here, or breaks its slot's promise ([`Error::Profile`]). Then nothing has been
    /// changed.
    pub fn apply(&self, accept: Accept) -> Result<(), Error> {
        self.resolve(accept, Disabled::load()).map(|resolved| resolved.apply())
    }

    pub(crate) fn resolve(&self, accept: Accept, disabled: Disabled) -> Result<Resolved, Error> {
        if accept == Accept::ThisMachine {
            let here = Fingerprint::detect();
            if let Some(difference) = self.machine.difference(&here) {
                return Err(Error::AnotherMachine(difference));
            }
        }
        let mut variants = [None; Slot::ALL.len()];
        for (slot, named) in Slot::ALL.into_iter().zip(self.variants) {
            let Some(Named { line, variant }) = named else { continue };
            let operation = slot.operation();
            let checked = match variant {
                Ok(variant) => switch::check(slot, variant, disabled).map(|()| variant),
                Err(name) => Err(Error::UnknownVariant { operation, name }),
            };
            let variant =
                checked.map_err(|error| Error::Profile { line, because: Problem::of(error) })?;
            variants[slot as usize] = Some(variant);
        }
        Ok(Resolved { variants, thresholds: self.thresholds })
    }

    /// The name of the variant for a slot, or `None` where the library's own choice stands.
    pub fn variant(&self, slot: Slot) -> Option<&str> {
        let named = self.variants[slot as usize].as_ref()?;
        Some(match &named.variant {
            Ok(variant) => variant.name(),
            Err(name) => name.as_str(),
        })
    }

    /// Names a variant for a slot.
    ///
    /// # Errors
    ///
    /// As [`switch::set`].
    pub fn set_variant(&mut self, slot: Slot, variant: &'static Variant) -> Result<(), Error> {
        switch::check(slot, variant, Disabled::load())?;
        self.variants[slot as usize] = Some(Named { line: 0, variant: Ok(variant) });
        Ok(())
    }

    /// The threshold of a gate, or `None` where the library's own choice stands.
    pub fn threshold(&self, gate: Gate) -> Option<Threshold> {
        self.thresholds[gate as usize]
    }

    /// Sets the threshold of a gate.
    pub fn set_threshold(&mut self, gate: Gate, threshold: Threshold) {
        self.thresholds[gate as usize] = Some(threshold);
    }

    /// The version of the tool that measured it.
    pub fn tool_version(&self) -> &str {
        self.tool_version.as_str()
    }

    /// The seed of the measurement.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The day of the measurement.
    pub fn date(&self) -> &str {
        self.date.as_str()
    }
}

/// A text of the `[evidence]` in a profile's text: what whoever measured it wrote down, and nothing
/// that decides anything. `None` if it isn't there, is no text, or comes after a line that is wrong.
///
/// ```
/// let text = "schema_version = 1\n[evidence]\nplan = \"quick\" # fewer of everything";
/// assert_eq!(cachewise::profile::evidence(text, "plan"), Some("quick"));
/// assert_eq!(cachewise::profile::evidence(text, "schema_version"), None);
/// ```
pub fn evidence<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    parse::evidence(text, key)
}

/// The file's text, which [`Profile::parse`] reads back. Evidence may be appended.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schema_version = {SCHEMA_VERSION}")?;
        writeln!(f, "tool_version = \"{}\"", self.tool_version())?;
        writeln!(f, "seed = {}", self.seed)?;
        writeln!(f, "date = \"{}\"", self.date())?;
        writeln!(f, "\n[machine]")?;
        for ((key, _), value) in KEYS.iter().zip(&self.machine.values) {
            writeln!(f, "{key} = {value}")?;
        }
        writeln!(f, "\n[variants]")?;
        for slot in Slot::ALL {
            if let Some(name) = self.variant(slot) {
                writeln!(f, "{slot} = \"{name}\"")?;
            }
        }
        writeln!(f, "\n[thresholds]")?;
        for gate in Gate::ALL {
            match self.threshold(gate) {
                Some(Threshold::Bytes(bytes)) => writeln!(f, "{} = {bytes}", gate.name())?,
                Some(state) => writeln!(f, "{} = \"{state}\"", gate.name())?,
                None => {}
            }
        }
        Ok(())
    }
}

/// What tells one machine from another: identity, cache sizes, usable features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    values: [Value; KEYS.len()],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Text(Text<TEXT_BYTES>),
    Number(u64),
    Features(Features),
}

/// The longest text of a fingerprint is CPUID's brand string.
const TEXT_BYTES: usize = 48;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Features,
}

/// The keys of `[machine]`, in the order of a fingerprint's values.
const KEYS: [(&str, Kind); 13] = [
    ("architecture", Kind::Text),
    ("vendor", Kind::Text),
    ("brand", Kind::Text),
    ("family", Kind::Number),
    ("model", Kind::Number),
    ("stepping", Kind::Number),
    ("hypervisor", Kind::Text),
    ("line_bytes", Kind::Number),
    ("l1d_bytes", Kind::Number),
    ("l2_bytes", Kind::Number),
    ("l3_bytes", Kind::Number),
    ("l4_bytes", Kind::Number),
    ("features", Kind::Features),
];

const ARCHITECTURE: &str = if cfg!(target_arch = "x86_64") {
    "x86_64"
} else if cfg!(target_arch = "x86") {
    "x86"
} else if cfg!(target_arch = "aarch64") {
    "aarch64"
} else if cfg!(target_arch = "arm") {
    "arm"
} else {
    "other"
};

impl Fingerprint {
    /// This machine's.
    pub fn detect() -> Self {
        let native = crate::cpu::Native;
        #[cfg(feature = "std")]
        let geometry = Geometry::system();
        #[cfg(not(feature = "std"))]
        let geometry = Geometry::detect(&native);
        Self::new(&Cpu::detect(&native), &geometry)
    }

    /// That of a machine with this CPU and these caches.
    pub fn new(cpu: &Cpu, geometry: &Geometry) -> Self {
        let text = |text: &str| Value::Text(printable(text));
        let cache =
            |level| Value::Number(geometry.cache(level).map_or(0, |cache| cache.size_bytes as u64));
        let values = [
            text(ARCHITECTURE),
            text(cpu.vendor()),
            text(cpu.brand()),
            Value::Number(cpu.family.into()),
            Value::Number(cpu.model.into()),
            Value::Number(cpu.stepping.into()),
            text(if cpu.hypervisor { "yes" } else { "no" }),
            Value::Number(geometry.line_max().value as u64),
            cache(Level::L1d),
            cache(Level::L2),
            cache(Level::L3),
            cache(Level::L4),
            Value::Features(cpu.usable),
        ];
        Self { values }
    }

    /// The fingerprint's keys and their values as the file writes them.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, impl fmt::Display + '_)> {
        KEYS.iter().zip(&self.values).map(|((key, _), value)| (*key, value))
    }

    /// In what a machine with this fingerprint differs from the one `here`, if it does.
    pub fn difference(&self, here: &Self) -> Option<Difference> {
        let pairs = || self.values.iter().zip(&here.values).enumerate();
        let (first, (ours, theirs)) = pairs().find(|(_, (there, here))| there != here)?;
        let (there, here) = match (*ours, *theirs) {
            // All of them would not fit, and only some of them differ.
            (Value::Features(there), Value::Features(here)) => {
                (Word::of(there.without(here)), Word::of(here.without(there)))
            }
            (there, here) => (Word::of(Bare(there)), Word::of(Bare(here))),
        };
        let differing = pairs().filter(|(_, (there, here))| there != here);
        let keys = differing.fold(0, |keys, (index, _)| keys | 1 << index);
        Some(Difference { first, there, here, keys })
    }
}

/// As a string of the format can hold it: printable ASCII without what would need an escape.
fn printable(text: &str) -> Text<TEXT_BYTES> {
    let mut raw = [0; TEXT_BYTES];
    for (to, from) in raw.iter_mut().zip(text.bytes()) {
        *to = if matches!(from, b'"' | b'\\') { b'?' } else { from };
    }
    Text::new(raw)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            quoted => write!(f, "\"{}\"", Bare(*quoted)),
        }
    }
}

/// A value without quotes.
struct Bare(Value);

impl fmt::Display for Bare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Text(text) => f.write_str(text.as_str()),
            Value::Number(number) => number.fmt(f),
            Value::Features(features) => {
                for (index, one) in features.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { " " } else { "" }, one.name())?;
                }
                Ok(())
            }
        }
    }
}

/// In what two machines differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    first: usize,
    there: Word,
    here: Word,
    /// One bit per key.
    keys: u32,
}

impl Difference {
    /// The keys whose values differ.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = self.keys;
        let named = KEYS.iter().map(|(key, _)| *key).enumerate();
        named.filter(move |(index, _)| keys & 1 << index != 0).map(|(_, key)| key)
    }
}

/// `l2_bytes is "2097152" there and "1048576" here; l3_bytes differs too`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, there, here, .. } = self;
        match KEYS.get(*first) {
            Some((key, Kind::Features)) => {
                write!(f, "{key}: only there \"{there}\", only here \"{here}\"")?;
            }
            Some((key, _)) => write!(f, "{key} is \"{there}\" there and \"{here}\" here")?,
            None => {}
        }
        for (index, key) in self.keys().skip(1).enumerate() {
            write!(f, "{}{key}", if index == 0 { "; also different: " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Difference({self})")
    }
}

/// What is wrong with a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The first line with content is not the version of the format.
    NoSchemaVersion,
    /// Another version of the format.
    SchemaVersion {
        /// The one that was found.
        found: u64,
    },
    /// Neither a comment nor a table nor a key with a value.
    NotALine {
        /// The line.
        text: Word,
    },
    /// A value is neither a string nor a whole number.
    NotAValue {
        /// The value.
        text: Word,
    },
    /// No table has this name.
    UnknownTable {
        /// The name.
        name: Word,
    },
    /// Nothing has this name here.
    UnknownKey {
        /// The key.
        key: Word,
    },
    /// A key or table that stood there before.
    Twice {
        /// Its name.
        name: Word,
    },
    /// A number where a text belongs.
    WantsText {
        /// The key.
        key: Word,
    },
    /// A text where a number belongs.
    WantsNumber {
        /// The key.
        key: Word,
    },
    /// A text that is longer than any of its kind.
    TooLong {
        /// The key.
        key: Word,
    },
    /// A feature of the CPU that this version does not know.
    UnknownFeature {
        /// Its name.
        name: Word,
    },
    /// A key that every profile has is missing.
    Missing {
        /// The key.
        key: &'static str,
    },
    /// No slot has this name.
    UnknownSlot {
        /// The name.
        name: Word,
    },
    /// No gate has this name.
    UnknownGate {
        /// The name.
        name: Word,
    },
    /// Neither a number of bytes nor `off` nor `always`.
    BadThreshold {
        /// What was found.
        text: Word,
    },
    /// No variant of the slot's operation has this name.
    UnknownVariant {
        /// The slot's operation.
        operation: Operation,
        /// The name.
        name: Word,
    },
    /// The variant cannot run here.
    Unavailable {
        /// The variant.
        variant: &'static Variant,
        /// What it lacks.
        because: Unavailable,
    },
    /// The slot promises to write each byte once, and this variant may write some twice.
    StoresTwice {
        /// The variant.
        variant: &'static Variant,
        /// The slot.
        slot: Slot,
    },
}

impl Problem {
    /// What a choice was refused for, as a line's problem.
    fn of(error: Error) -> Self {
        match error {
            Error::UnknownSlot { name } => Self::UnknownSlot { name },
            Error::UnknownGate { name } => Self::UnknownGate { name },
            Error::UnknownVariant { operation, name } => Self::UnknownVariant { operation, name },
            Error::Unavailable { variant, because } => Self::Unavailable { variant, because },
            Error::StoresTwice { variant, slot } => Self::StoresTwice { variant, slot },
            other => Self::NotAValue { text: Word::of(other) },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoSchemaVersion => {
                write!(f, "a profile begins with schema_version = {SCHEMA_VERSION}")
            }
            Self::SchemaVersion { found } => write!(
                f,
                "schema_version is {found}, and this version reads {SCHEMA_VERSION}; measure again \
                 with `cachewise tune -o FILE`"
            ),
            Self::NotALine { text } => {
                write!(f, "\"{text}\" is neither a # comment nor [table] nor key = value")
            }
            Self::NotAValue { text } => write!(
                f,
                "\"{text}\" is no value; write a whole number, or text in double quotes without \
                 backslashes"
            ),
            Self::UnknownTable { name } => {
                write!(f, "no table is named \"{name}\"; tables: ")?;
                crate::error::list(f, parse::TABLES.iter().map(|(name, _)| *name))
            }
            Self::UnknownKey { key } => write!(
                f,
                "nothing is named \"{key}\" here; put what is for people into [evidence] or a \
                 comment"
            ),
            Self::Twice { name } => write!(f, "\"{name}\" stands here twice; remove one"),
            Self::WantsText { key } => {
                write!(f, "{key} is a text, as in {key} = \"word\"")
            }
            Self::WantsNumber { key } => write!(f, "{key} is a whole number, as in {key} = 1"),
            Self::TooLong { key } => write!(f, "{key} is longer than {TEXT_BYTES} bytes"),
            Self::UnknownFeature { name } => write!(
                f,
                "no CPU feature is named \"{name}\" in this version; measure again with `cachewise \
                 tune -o FILE`"
            ),
            Self::Missing { key } => {
                write!(f, "{key} is missing; measure again with `cachewise tune -o FILE`")
            }
            Self::UnknownSlot { name } => Error::UnknownSlot { name }.fmt(f),
            Self::UnknownGate { name } => Error::UnknownGate { name }.fmt(f),
            Self::BadThreshold { text } => write!(
                f,
                "threshold \"{text}\" is not right; write a number of bytes, \"off\" or \"always\""
            ),
            Self::UnknownVariant { operation, name } => {
                Error::UnknownVariant { operation, name }.fmt(f)
            }
            Self::Unavailable { variant, because } => {
                Error::Unavailable { variant, because }.fmt(f)
            }
            Self::StoresTwice { variant, slot } => Error::StoresTwice { variant, slot }.fmt(f),
        }
    }
}

/// Text to profile.
mod parse {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Table {
        /// What stands before the first table.
        Head,
        Machine,
        Variants,
        Thresholds,
        Evidence,
    }

    pub(super) const TABLES: [(&str, Table); 4] = [
        ("machine", Table::Machine),
        ("variants", Table::Variants),
        ("thresholds", Table::Thresholds),
        ("evidence", Table::Evidence),
    ];

    enum Line<'a> {
        Blank,
        Table(&'a str),
        Pair(&'a str, Given<'a>),
    }

    #[derive(Clone, Copy)]
    enum Given<'a> {
        Text(&'a str),
        Number(u64),
    }

    #[derive(Default)]
    struct Draft {
        schema_version: Option<u64>,
        tool_version: Option<Word>,
        seed: Option<u64>,
        date: Option<Word>,
        machine: [Option<Value>; KEYS.len()],
        variants: [Option<Named>; Slot::ALL.len()],
        thresholds: Thresholds,
    }

    pub(super) fn profile(text: &str) -> Result<Profile, Error> {
        let mut draft = Draft::default();
        let mut table = Table::Head;
        let mut tables_seen = [false; TABLES.len()];
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = |because| Error::Profile { line, because };
            match read(text).map_err(wrong)? {
                Line::Blank => {}
                Line::Table(name) => {
                    let index = TABLES.iter().position(|(known, _)| *known == name);
                    let unknown = Problem::UnknownTable { name: Word::new(name) };
                    let index = index.ok_or(unknown).map_err(wrong)?;
                    if core::mem::replace(&mut tables_seen[index], true) {
                        return Err(wrong(Problem::Twice { name: Word::new(name) }));
                    }
                    table = TABLES[index].1;
                }
                Line::Pair(key, value) => draft.take(line, table, key, value).map_err(wrong)?,
            }
        }
        draft.finish().map_err(|because| Error::Profile { line: 0, because })
    }

    pub(super) fn evidence<'a>(text: &'a str, key: &str) -> Option<&'a str> {
        let mut is_evidence = false;
        for line in text.lines() {
            match read(line).ok()? {
                Line::Blank => {}
                Line::Table(name) => is_evidence = TABLES.contains(&(name, Table::Evidence)),
                Line::Pair(known, Given::Text(text)) if is_evidence && known == key => {
                    return Some(text);
                }
                Line::Pair(..) => {}
            }
        }
        None
    }

    impl Draft {
        fn take(
            &mut self,
            line: u32,
            table: Table,
            key: &str,
            value: Given<'_>,
        ) -> Result<(), Problem> {
            let word = Word::new(key);
            if self.schema_version.is_none() && key != "schema_version" {
                return Err(Problem::NoSchemaVersion);
            }
            match table {
                Table::Evidence => Ok(()),
                Table::Head => match key {
                    "schema_version" => match value.number(word)? {
                        SCHEMA_VERSION => put(&mut self.schema_version, SCHEMA_VERSION, word),
                        found => Err(Problem::SchemaVersion { found }),
                    },
                    "tool_version" => put(&mut self.tool_version, value.word(word)?, word),
                    "seed" => put(&mut self.seed, value.number(word)?, word),
                    "date" => put(&mut self.date, value.word(word)?, word),
                    _ => Err(Problem::UnknownKey { key: word }),
                },
                Table::Machine => {
                    let index = KEYS.iter().position(|(known, _)| *known == key);
                    let index = index.ok_or(Problem::UnknownKey { key: word })?;
                    let value = match KEYS[index].1 {
                        Kind::Number => Value::Number(value.number(word)?),
                        Kind::Features => Value::Features(features(value.text(word)?)?),
                        Kind::Text => match value.text(word)? {
                            text if text.len() > TEXT_BYTES => {
                                return Err(Problem::TooLong { key: word });
                            }
                            text => Value::Text(printable(text)),
                        },
                    };
                    put(&mut self.machine[index], value, word)
                }
                Table::Variants => {
                    let slot = Slot::from_name(key).map_err(Problem::of)?;
                    let name = value.text(word)?;
                    let variant =
                        variant::find(slot.operation(), name).map_err(|_| Word::new(name));
                    put(&mut self.variants[slot as usize], Named { line, variant }, word)
                }
                Table::Thresholds => {
                    let gate = Gate::from_name(key).map_err(Problem::of)?;
                    let threshold = match value {
                        // Sizes beyond any object mean the same as the largest one.
                        Given::Number(bytes) => {
                            Threshold::Bytes(usize::try_from(bytes).unwrap_or(usize::MAX))
                        }
                        Given::Text("off") => Threshold::Off,
                        Given::Text("always") => Threshold::Always,
                        Given::Text(text) => {
                            return Err(Problem::BadThreshold { text: Word::new(text) });
                        }
                    };
                    put(&mut self.thresholds[gate as usize], threshold, word)
                }
            }
        }

        fn finish(self) -> Result<Profile, Problem> {
            self.schema_version.ok_or(Problem::NoSchemaVersion)?;
            let mut values = [Value::Number(0); KEYS.len()];
            for ((to, from), (key, _)) in values.iter_mut().zip(self.machine).zip(KEYS) {
                *to = from.ok_or(Problem::Missing { key })?;
            }
            Ok(Profile {
                machine: Fingerprint { values },
                tool_version: self.tool_version.ok_or(Problem::Missing { key: "tool_version" })?,
                seed: self.seed.ok_or(Problem::Missing { key: "seed" })?,
                date: self.date.ok_or(Problem::Missing { key: "date" })?,
                variants: self.variants,
                thresholds: self.thresholds,
            })
        }
    }

    fn put<T>(place: &mut Option<T>, value: T, name: Word) -> Result<(), Problem> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(Problem::Twice { name }),
        }
    }

    fn features(text: &str) -> Result<Features, Problem> {
        text.split_ascii_whitespace().try_fold(Features::empty(), |all, name| {
            let unknown = Problem::UnknownFeature { name: Word::new(name) };
            Ok(all.union(Features::from_name(name).ok_or(unknown)?))
        })
    }

    impl<'a> Given<'a> {
        fn text(self, key: Word) -> Result<&'a str, Problem> {
            match self {
                Self::Text(text) => Ok(text),
                Self::Number(_) => Err(Problem::WantsText { key }),
            }
        }

        fn word(self, key: Word) -> Result<Word, Problem> {
            self.text(key).map(Word::new)
        }

        fn number(self, key: Word) -> Result<u64, Problem> {
            match self {
                Self::Number(number) => Ok(number),
                Self::Text(_) => Err(Problem::WantsNumber { key }),
            }
        }
    }

    const SPACE: [char; 2] = [' ', '\t'];

    fn read(line: &str) -> Result<Line<'_>, Problem> {
        let line = line.trim_matches(SPACE);
        let wrong = || Problem::NotALine { text: Word::new(line) };
        if is_rest(line) {
            return Ok(Line::Blank);
        }
        if let Some(table) = line.strip_prefix('[') {
            let (name, rest) = table.split_once(']').ok_or_else(wrong)?;
            let name = name.trim_matches(SPACE);
            return if is_key(name) && is_rest(rest) {
                Ok(Line::Table(name))
            } else {
                Err(wrong())
            };
        }
        let (key, value) = line.split_once('=').ok_or_else(wrong)?;
        let key = key.trim_end_matches(SPACE);
        if is_key(key) { Ok(Line::Pair(key, read_value(value)?)) } else { Err(wrong()) }
    }

    fn read_value(text: &str) -> Result<Given<'_>, Problem> {
        let text = text.trim_start_matches(SPACE);
        let wrong = || Problem::NotAValue { text: Word::new(text) };
        if let Some(quoted) = text.strip_prefix('"') {
            let (inside, rest) = quoted.split_once('"').ok_or_else(wrong)?;
            let is_plain = !inside.contains(|c: char| c == '\\' || c.is_control());
            return if is_plain && is_rest(rest) { Ok(Given::Text(inside)) } else { Err(wrong()) };
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at(digits);
        let padded = number.len() > 1 && number.starts_with('0');
        match number.parse() {
            Ok(number) if is_rest(rest) && !padded => Ok(Given::Number(number)),
            _ => Err(wrong()),
        }
    }

    fn is_key(text: &str) -> bool {
        let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        !text.is_empty() && text.chars().all(may)
    }

    /// Nothing more but perhaps a comment.
    fn is_rest(text: &str) -> bool {
        let text = text.trim_start_matches(SPACE);
        text.is_empty() || text.starts_with('#')
    }
}
