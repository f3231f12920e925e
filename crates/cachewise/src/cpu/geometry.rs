//! Cache sizes and line lengths, each with the source that claimed it.
//!
//! The one place in the crate that knows a line length or a cache size. Claims are collected from
//! CPUID and from the operating system, checked for plausibility one by one, compared, and only
//! then, where nothing credible is left, replaced by defaults. A default is never silent: it is the
//! value's [`Source`], and there is a [`Doubt`] that says what went wrong and what to do.
//!
//! Rejected: to correct a hypervisor's last-level cache (share of the host's cores, known sizes by
//! model). Nothing visible in a guest tells how much of it strangers use, so the claim is kept, and
//! doubted.

use core::fmt;

use super::{Reader, x86};

/// A cache's place in the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// First level, data (or unified, on CPUs that have it so).
    L1d,
    /// First level, instructions.
    L1i,
    /// Second level.
    L2,
    /// Third level.
    L3,
    /// Fourth level: the embedded DRAM of some Haswells and Broadwells.
    L4,
}

impl Level {
    pub(super) const ALL: [Self; 5] = [Self::L1d, Self::L1i, Self::L2, Self::L3, Self::L4];

    /// 1 to 4.
    pub const fn number(self) -> u8 {
        match self {
            Self::L1d | Self::L1i => 1,
            Self::L2 => 2,
            Self::L3 => 3,
            Self::L4 => 4,
        }
    }

    /// What it holds.
    pub const fn kind(self) -> Kind {
        match self {
            Self::L1d => Kind::Data,
            Self::L1i => Kind::Instruction,
            Self::L2 | Self::L3 | Self::L4 => Kind::Unified,
        }
    }

    /// `L1d`, `L1i`, `L2`, `L3`, `L4`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1d => "L1d",
            Self::L1i => "L1i",
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::L4 => "L4",
        }
    }

    /// What a size must lie in to be believed. The lower ends are half of the smallest cache ever
    /// built at that level or less, the upper ends at least twice the largest so far; 2 GiB also
    /// fits a 32-bit `usize`.
    const fn size_limits_bytes(self) -> (u64, u64) {
        match self {
            Self::L1d | Self::L1i => (1 << 10, 4 << 20),
            Self::L2 => (16 << 10, 256 << 20),
            Self::L3 => (128 << 10, 2 << 30),
            Self::L4 => (1 << 20, 2 << 30),
        }
    }

    /// What to assume when nothing credible is said: per CPU about the least that x86-64
    /// desktop and server CPUs have had since Nehalem. There is no fourth level to
    /// assume.
    const fn default_bytes(self) -> Option<usize> {
        match self {
            Self::L1d | Self::L1i => Some(32 << 10),
            Self::L2 => Some(256 << 10),
            Self::L3 => Some(1 << 20),
            Self::L4 => None,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

impl Kind {
    /// `data`, `instruction`, `unified`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Instruction => "instruction",
            Self::Unified => "unified",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// CPUID leaf 2, descriptor bytes.
    CpuidLeaf2,
    /// CPUID leaf 4, deterministic cache parameters.
    CpuidLeaf4,
    /// CPUID leaves 8000_0005h and 8000_0006h.
    CpuidAmdLegacy,
    /// CPUID leaf 8000_001Dh.
    CpuidAmdTopology,
    /// The CLFLUSH line size in CPUID leaf 1; tells of lines only.
    CpuidClflush,
    /// An Arm CPU's cache type register; tells of lines only.
    Ctr,
    /// Linux, `/sys/devices/system/cpu`.
    Sysfs,
    /// The firmware's device tree, as Linux shows it.
    DeviceTree,
    /// Nobody: this crate's assumption.
    Default,
}

impl Source {
    /// A stable name for output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuidLeaf2 => "cpuid leaf 2",
            Self::CpuidLeaf4 => "cpuid leaf 4",
            Self::CpuidAmdLegacy => "cpuid leaf 0x80000005/6",
            Self::CpuidAmdTopology => "cpuid leaf 0x8000001d",
            Self::CpuidClflush => "cpuid leaf 1, clflush",
            Self::Ctr => "cache type register",
            Self::Sysfs => "sysfs",
            Self::DeviceTree => "device tree",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact<T = usize> {
    /// The value.
    pub value: T,
    /// Who says so.
    pub source: Source,
}

/// One cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 to 4.
    pub level: u8,
    /// What it holds.
    pub kind: Kind,
    /// All of it, however many CPUs share it.
    pub size_bytes: usize,
    /// The unit of transfer and coherence.
    pub line_bytes: usize,
    /// Associativity; 0 where the source does not tell.
    pub ways: u32,
    /// How many CPUs (hardware threads) share it, as claimed; at least 1.
    pub shared_by: u32,
    /// Who says so.
    pub source: Source,
}

/// A field of [`Cache`] that a doubt is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// [`Cache::size_bytes`].
    SizeBytes,
    /// [`Cache::line_bytes`].
    LineBytes,
    /// [`Cache::shared_by`].
    SharedBy,
}

impl Field {
    /// The field's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SizeBytes => "size_bytes",
            Self::LineBytes => "line_bytes",
            Self::SharedBy => "shared_by",
        }
    }
}

/// A reason not to trust the geometry, with a cause and a remedy: `{cause}; {remedy}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// No source tells of this cache, and a default stands in for it.
    NotReported {
        /// Which cache.
        level: Level,
    },
    /// A source made a claim that cannot be true, and it was not believed.
    Implausible {
        /// Which cache.
        level: Level,
        /// Which of its fields.
        field: Field,
        /// The claim.
        value: u64,
        /// Who made it.
        source: Source,
    },
    /// CPUID and the operating system differ. CPUID was believed.
    Disagreement {
        /// Which cache.
        level: Level,
        /// The first of its fields that differs.
        field: Field,
        /// What CPUID says.
        cpuid: usize,
        /// What the operating system says.
        system: usize,
    },
    /// The CPUs of this machine have different caches. The smallest was taken.
    CpusDiffer {
        /// Which cache.
        level: Level,
    },
    /// The last level is a hypervisor's claim; strangers may share it.
    Hypervisor {
        /// Which cache.
        level: Level,
    },
}

impl Doubt {
    /// A stable name to recognise, filter or silence it by.
    pub const fn id(self) -> &'static str {
        match self {
            Self::NotReported { .. } => "cache-not-reported",
            Self::Implausible { .. } => "cache-implausible",
            Self::Disagreement { .. } => "cache-disagreement",
            Self::CpusDiffer { .. } => "cache-cpus-differ",
            Self::Hypervisor { .. } => "cache-hypervisor",
        }
    }

    /// What is wrong.
    pub const fn cause(self) -> Cause {
        Cause(self)
    }

    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NotReported { .. } | Self::Implausible { .. } => {
                "set the thresholds from a measured profile instead"
            }
            Self::Disagreement { .. } => {
                "compare with the measured latency of each level, and measure a profile"
            }
            Self::CpusDiffer { .. } => "pin the program to CPUs of one kind, and measure there",
            Self::Hypervisor { .. } => {
                "measure under the load of the place, and do not count on the claimed size"
            }
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause(), self.remedy())
    }
}

/// The first half of a [`Doubt`]: what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause(Doubt);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Doubt::NotReported { level } => {
                write!(f, "no source tells of the {level} cache, a default stands in for it")
            }
            Doubt::Implausible { level, field, value, source } => {
                let field = field.name();
                write!(f, "{source} says {field} {value} of the {level} cache, which cannot be")
            }
            Doubt::Disagreement { level, field, cpuid, system } => {
                let field = field.name();
                write!(f, "{field} of the {level} cache is {cpuid} in cpuid but {system} in sysfs")
            }
            Doubt::CpusDiffer { level } => {
                write!(f, "the CPUs of this machine differ in their {level} cache")
            }
            Doubt::Hypervisor { level } => {
                write!(f, "the {level} cache is as a hypervisor claims it, and others may use it")
            }
        }
    }
}

/// The caches of a machine.
///
/// ```
/// use cachewise::cpu::{Geometry, Native};
///
/// let geometry = Geometry::detect(&Native);
/// assert!(geometry.line_max().value.is_power_of_two());
/// for doubt in geometry.doubts() {
///     assert!(!doubt.id().is_empty());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    caches: [Option<Cache>; Level::ALL.len()],
    line_min: Fact,
    line_max: Fact,
    doubts: Doubts,
}

impl Geometry {
    /// What CPUID or an Arm CPU's registers say, on the CPU that answers.
    pub fn detect(reader: &impl Reader) -> Self {
        cpu_claims(reader).into_geometry()
    }

    /// What the operating system says. `root` is the folder with `cpu0`, `cpu1` and so on,
    /// `/sys/devices/system/cpu` on Linux. Where CPUs differ, the smallest cache counts. A missing
    /// folder is no error: all is default then, and doubted.
    #[cfg(feature = "std")]
    pub fn from_sysfs(root: &std::path::Path) -> Self {
        super::sysfs::claims(root).into_geometry()
    }

    /// This machine: what the CPU says, and sysfs for what it does not tell; where both tell, they
    /// are compared. Where neither tells of a cache, the device tree. Off Linux, the same as
    /// [`detect`](Self::detect).
    #[cfg(feature = "std")]
    pub fn system() -> Self {
        use std::path::Path;
        let devicetree = Path::new(super::arm::devicetree::ROOT);
        Self::from_all(&super::Native, Path::new(super::sysfs::ROOT), devicetree)
    }

    /// As [`system`](Self::system), but from given sources: `root` as in
    /// [`from_sysfs`](Self::from_sysfs).
    #[cfg(feature = "std")]
    pub fn from_both(reader: &impl Reader, root: &std::path::Path) -> Self {
        cpu_claims(reader).or(super::sysfs::claims(root)).into_geometry()
    }

    /// As [`from_both`](Self::from_both), and from a third source for what the first two do not
    /// tell: a folder with a device tree, `/proc/device-tree` on Linux.
    #[cfg(feature = "std")]
    pub fn from_all(
        reader: &impl Reader,
        sysfs: &std::path::Path,
        devicetree: &std::path::Path,
    ) -> Self {
        let claims = cpu_claims(reader).or(super::sysfs::claims(sysfs));
        let silent = claims.caches.iter().all(|claim| matches!(claim, Claim::Silent));
        if silent {
            return claims.or(super::arm::devicetree::claims(devicetree)).into_geometry();
        }
        claims.into_geometry()
    }

    /// The cache at this place, if the machine has one.
    pub fn cache(&self, level: Level) -> Option<&Cache> {
        self.caches[level.index()].as_ref()
    }

    /// The caches, from the nearest.
    pub fn caches(&self) -> impl Iterator<Item = &Cache> {
        self.caches.iter().flatten()
    }

    /// The shortest line of any cache of any CPU: what a loop that touches or prefetches every line
    /// steps by.
    pub fn line_min(&self) -> Fact {
        self.line_min
    }

    /// The longest line of any cache of any CPU: what buffers, for DMA above all, are aligned to.
    pub fn line_max(&self) -> Fact {
        self.line_max
    }

    /// What memory shared with a device is aligned to, so that no line of any CPU, and no unit that
    /// a cache writes back, holds anything else: [`line_max`](Self::line_max).
    pub fn dma_alignment(&self) -> Fact {
        self.line_max
    }

    /// Size of the first-level data cache.
    pub fn l1d_bytes(&self) -> Fact {
        self.at_or_below(Level::L1d)
    }

    /// Size of the second-level cache; on a CPU without one (the first Celeron), of the first.
    pub fn l2_bytes(&self) -> Fact {
        self.at_or_below(Level::L2)
    }

    /// Size of the last cache before memory, divided by the CPUs that share it, as claimed.
    pub fn last_level_bytes_per_cpu(&self) -> Fact {
        match last_level(&self.caches) {
            Some(cache) => Fact {
                value: cache.size_bytes / (cache.shared_by as usize).max(1),
                source: cache.source,
            },
            None => self.l1d_bytes(),
        }
    }

    /// Why not to trust it all.
    pub fn doubts(&self) -> impl Iterator<Item = Doubt> {
        self.doubts.iter()
    }

    fn at_or_below(&self, level: Level) -> Fact {
        let known = [level, Level::L1d].into_iter().find_map(|level| self.cache(level));
        match known {
            Some(cache) => Fact { value: cache.size_bytes, source: cache.source },
            None => {
                Fact { value: level.default_bytes().unwrap_or_default(), source: Source::Default }
            }
        }
    }
}

fn cpu_claims(reader: &impl Reader) -> Claims {
    match reader.arm() {
        Some(arm) => arm.claims(),
        None => x86::claims(reader),
    }
}

fn last_level(caches: &[Option<Cache>; Level::ALL.len()]) -> Option<&Cache> {
    caches.iter().rev().flatten().find(|cache| cache.kind != Kind::Instruction)
}

/// A claim about one cache as a source makes it, before anything is checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unchecked {
    pub(super) level: Level,
    pub(super) size_bytes: u64,
    pub(super) line_bytes: u64,
    pub(super) ways: u32,
    pub(super) shared_by: u32,
    pub(super) source: Source,
}

#[derive(Clone, Copy, Debug, Default)]
enum Claim {
    /// The source does not tell of this cache: where it tells of others, there is none.
    #[default]
    Silent,
    Believed(Cache),
    /// The source tells of it, but what cannot be.
    Refused,
}

/// What one source, or several, say about all caches.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    caches: [Claim; Level::ALL.len()],
    /// The smallest cache was taken from among CPUs that differ.
    cpus_differ: [bool; Level::ALL.len()],
    line_min: Option<Fact>,
    line_max: Option<Fact>,
    pub(super) hypervisor: bool,
    doubts: Doubts,
}

impl Claims {
    /// Checks a claim and keeps it if it can be true. A second claim about the same cache comes
    /// from another CPU; the smaller one stays.
    pub(super) fn tell(&mut self, claim: Unchecked) {
        let Unchecked { level, size_bytes, line_bytes, ways, mut shared_by, source } = claim;
        let (size_min, size_max) = level.size_limits_bytes();
        let refused = if !(size_min..=size_max).contains(&size_bytes) {
            Some((Field::SizeBytes, size_bytes))
        } else if !line_is_plausible(line_bytes) {
            Some((Field::LineBytes, line_bytes))
        } else {
            None
        };
        let slot = level.index();
        if let Some((field, value)) = refused {
            self.doubt(Doubt::Implausible { level, field, value, source });
            if matches!(self.caches[slot], Claim::Silent) {
                self.caches[slot] = Claim::Refused;
            }
            return;
        }
        // The widest field for it, in leaf 4, has 12 bits.
        if !(1..=4096).contains(&shared_by) {
            let value = u64::from(shared_by);
            self.doubt(Doubt::Implausible { level, field: Field::SharedBy, value, source });
            shared_by = 1;
        }
        let cache = Cache {
            level: level.number(),
            kind: level.kind(),
            // Within the limits just checked, which fit a 32-bit `usize`.
            size_bytes: size_bytes as usize,
            line_bytes: line_bytes as usize,
            ways,
            shared_by,
            source,
        };
        self.line(Fact { value: cache.line_bytes, source });
        match self.caches[slot] {
            Claim::Believed(known)
                if (known.size_bytes, known.line_bytes) == (cache.size_bytes, cache.line_bytes) => {
            }
            Claim::Believed(known) => {
                self.cpus_differ[slot] = true;
                self.doubt(Doubt::CpusDiffer { level });
                if cache.size_bytes < known.size_bytes {
                    self.caches[slot] = Claim::Believed(cache);
                }
            }
            Claim::Silent | Claim::Refused => self.caches[slot] = Claim::Believed(cache),
        }
    }

    fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
    }

    /// A line length told apart from any cache.
    pub(super) fn tell_line(&mut self, line_bytes: u32, source: Source) {
        if line_is_plausible(u64::from(line_bytes)) {
            self.line(Fact { value: line_bytes as usize, source });
        }
    }

    /// A line length to use when no cache tells one.
    pub(super) fn fallback_line(&mut self, line_bytes: u32, source: Source) {
        if self.line_min.is_none() && line_is_plausible(u64::from(line_bytes)) {
            self.line(Fact { value: line_bytes as usize, source });
        }
    }

    /// Fills what these claims lack from another source, and compares the rest.
    #[cfg(feature = "std")]
    pub(super) fn or(mut self, system: Self) -> Self {
        for level in Level::ALL {
            let slot = level.index();
            match (self.caches[slot], system.caches[slot]) {
                (Claim::Believed(ours), Claim::Believed(theirs)) if system.cpus_differ[slot] => {
                    // CPUID spoke for whichever CPU this thread was on.
                    if theirs.size_bytes < ours.size_bytes {
                        self.caches[slot] = Claim::Believed(theirs);
                    }
                }
                (Claim::Believed(ours), Claim::Believed(theirs)) => {
                    let fields = [
                        (Field::SizeBytes, ours.size_bytes, theirs.size_bytes),
                        (Field::LineBytes, ours.line_bytes, theirs.line_bytes),
                        (Field::SharedBy, ours.shared_by as usize, theirs.shared_by as usize),
                    ];
                    let differing = fields.into_iter().find(|(_, cpuid, system)| cpuid != system);
                    if let Some((field, cpuid, system)) = differing {
                        self.doubt(Doubt::Disagreement { level, field, cpuid, system });
                    }
                }
                (Claim::Believed(_), _) | (_, Claim::Silent) => {}
                (_, theirs) => self.caches[slot] = theirs,
            }
        }
        for fact in [system.line_min, system.line_max].into_iter().flatten() {
            self.line(fact);
        }
        for doubt in system.doubts.iter() {
            self.doubt(doubt);
        }
        self
    }

    pub(super) fn into_geometry(mut self) -> Geometry {
        let anything = self.caches.iter().any(|claim| matches!(claim, Claim::Believed(_)));
        let line = Fact { value: DEFAULT_LINE_BYTES, source: Source::Default };
        let line_min = self.line_min.unwrap_or(line);
        let line_max = self.line_max.unwrap_or(line);
        let mut caches = [None; Level::ALL.len()];
        for level in Level::ALL {
            let assumed = level.default_bytes().map(|size_bytes| Cache {
                level: level.number(),
                kind: level.kind(),
                size_bytes,
                line_bytes: line_max.value,
                ways: 0,
                shared_by: 1,
                source: Source::Default,
            });
            caches[level.index()] = match self.caches[level.index()] {
                Claim::Believed(cache) => Some(cache),
                Claim::Refused => assumed,
                Claim::Silent if anything && level != Level::L1d => None,
                Claim::Silent => {
                    if assumed.is_some() {
                        self.doubt(Doubt::NotReported { level });
                    }
                    assumed
                }
            };
        }
        if self.hypervisor {
            // The first level goes with the core and is never shared with strangers.
            let believed = |level: &Level| matches!(self.caches[level.index()], Claim::Believed(_));
            if let Some(level) = [Level::L4, Level::L3, Level::L2].into_iter().find(believed) {
                self.doubt(Doubt::Hypervisor { level });
            }
        }
        Geometry { caches, line_min, line_max, doubts: self.doubts }
    }

    fn line(&mut self, fact: Fact) {
        if self.line_min.is_none_or(|known| fact.value < known.value) {
            self.line_min = Some(fact);
        }
        if self.line_max.is_none_or(|known| fact.value > known.value) {
            self.line_max = Some(fact);
        }
    }
}

/// Every x86-64 CPU so far, and nearly every 64-bit Arm.
pub(crate) const DEFAULT_LINE_BYTES: usize = 64;

/// 16 bytes was the i486's; no cache in use has more than 256, and no Arm register can say more
/// than 2048 for a writeback granule that it does not know.
fn line_is_plausible(line_bytes: u64) -> bool {
    (16..=1024).contains(&line_bytes) && line_bytes.is_power_of_two()
}

/// The doubts, each once. With two sources and five levels there are at most 10 implausible
/// caches, 10 implausible shares, 10 differences and a few more; a forged list that repeats itself
/// cannot get beyond the end, it only is not written down.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Doubts {
    list: [Option<Doubt>; 32],
}

impl Doubts {
    fn push(&mut self, doubt: Doubt) {
        if self.iter().any(|known| known == doubt) {
            return;
        }
        if let Some(free) = self.list.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(doubt);
        }
    }

    fn iter(&self) -> impl Iterator<Item = Doubt> {
        self.list.iter().map_while(|doubt| *doubt)
    }
}

impl fmt::Debug for Doubts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
