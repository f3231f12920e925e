//! The CPU's event counters: perf_event_open(2), where this process may.
//!
//! Nothing depends on them: times are times, and misses stand beside them where they can be had.
//! Most virtual machines have no counters at all, and that is said once, with what to do about it.
#![allow(unsafe_code, reason = "rustix has no perf_event_open")]

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// What became of the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counters {
    /// Cycles can be counted.
    Available,
    /// The CPU as this system sees it has none.
    NoHardware,
    /// The system has them and doesn't let us.
    Forbidden {
        /// `/proc/sys/kernel/perf_event_paranoid`, if it can be read.
        paranoid: Option<i32>,
    },
    /// The kernel was built without them, or a sandbox hides the call.
    NoSystemCall,
    /// Something else.
    Other {
        /// The system's word for it.
        because: String,
    },
}

impl Counters {
    /// Tries to count this process's cycles in user mode.
    pub fn probe() -> Self {
        match open(Event::Cycles) {
            Ok(_) => Self::Available,
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => Self::NoHardware,
                Some(libc::EACCES | libc::EPERM) => Self::Forbidden { paranoid: paranoid() },
                Some(libc::ENOSYS) => Self::NoSystemCall,
                _ => Self::Other { because: error.to_string() },
            },
        }
    }

    /// What to do to have them; `None` if they are there.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Available => None,
            Self::NoHardware => {
                Some("run on bare metal, or give the virtual machine a PMU (vPMU) in its settings")
            }
            Self::Forbidden { paranoid: Some(0..=2) } => {
                Some("allow perf_event_open in the sandbox, or run outside it")
            }
            Self::Forbidden { .. } => {
                Some("allow them: sysctl kernel.perf_event_paranoid=2 (as root)")
            }
            Self::NoSystemCall | Self::Other { .. } => {
                Some("use a kernel with CONFIG_PERF_EVENTS, outside a sandbox")
            }
        }
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Available => f.write_str("cycles can be counted"),
            Self::NoHardware => f.write_str("no hardware counters, as in most virtual machines"),
            Self::Forbidden { paranoid: Some(level) } => {
                write!(f, "not permitted (kernel.perf_event_paranoid is {level})")
            }
            Self::Forbidden { paranoid: None } => f.write_str("not permitted"),
            Self::NoSystemCall => f.write_str("perf_event_open is not there"),
            Self::Other { because } => write!(f, "perf_event_open failed: {because}"),
        }
    }
}

fn paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// What can be counted.
#[derive(Clone, Copy, Debug)]
enum Event {
    Cycles,
    /// Misses of the last level, as the CPU's own event of that name has it.
    CacheMisses,
    /// The kernel's own count of the time on the CPU: there without hardware.
    #[cfg(test)]
    TaskClock,
}

impl Event {
    /// `type` and `config` of perf_event_open(2).
    fn numbers(self) -> (u64, u64) {
        const HARDWARE: u64 = 0;
        #[cfg(test)]
        const SOFTWARE: u64 = 1;
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::CacheMisses => (HARDWARE, 3),
            #[cfg(test)]
            Self::TaskClock => (SOFTWARE, 1),
        }
    }
}

/// Counts what the calling thread does in user mode.
pub(crate) struct Counter(File);

impl Counter {
    /// `None` where the machine or the system has none: [`Counters::probe`] says why.
    pub(crate) fn cache_misses() -> Option<Self> {
        open(Event::CacheMisses).ok().map(Self)
    }

    /// How many so far; what cannot be read has counted nothing.
    pub(crate) fn read(&mut self) -> u64 {
        let mut count = [0; 8];
        self.0.read_exact(&mut count).map_or(0, |()| u64::from_ne_bytes(count))
    }
}

/// The first published size of the kernel's `perf_event_attr`, 64 bytes, is all this needs: in the
/// first word the type and its own size, then the event, and in the sixth word the flags
/// `exclude_kernel` and `exclude_hv`.
#[cfg(all(target_os = "linux", target_endian = "little"))]
fn open(event: Event) -> io::Result<File> {
    use std::os::fd::{FromRawFd, OwnedFd};
    const WORDS: usize = 8;
    let size_bytes = size_of::<[u64; WORDS]>() as u64;
    let (kind, config) = event.numbers();
    let exclude_kernel_and_hv = 1 << 5 | 1 << 6;
    let attributes: [u64; WORDS] =
        [size_bytes << 32 | kind, config, 0, 0, 0, exclude_kernel_and_hv, 0, 0];
    let (this_thread, any_cpu, no_group, no_flags) = (0, -1, -1, 0);
    // SAFETY: the attributes are as long as they say, and the call only reads them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            this_thread,
            any_cpu,
            no_group,
            no_flags,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just given it to us, and nobody else knows it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(all(target_os = "linux", target_endian = "little")))]
fn open(_event: Event) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_a_remedy() {
        let probed = Counters::probe();
        assert_eq!(probed.remedy().is_none(), probed == Counters::Available, "{probed:?}");
        let forbidden = Counters::Forbidden { paranoid: Some(4) };
        assert!(forbidden.to_string().contains("is 4"));
        assert!(forbidden.remedy().is_some_and(|remedy| remedy.contains("sysctl")));
    }

    /// The kernel's clock goes the same way as the CPU's counters, so that this way is tested where
    /// there are none.
    #[test]
    fn a_counter_counts_on() {
        match open(Event::TaskClock) {
            Err(error) => eprintln!("SKIPPED a_counter_counts_on: perf_event_open: {error}"),
            Ok(file) => {
                let mut counter = Counter(file);
                let before = counter.read();
                while counter.read() == before {
                    std::hint::spin_loop();
                }
                assert!(counter.read() > before);
            }
        }
        assert!(Counters::probe() == Counters::Available || Counter::cache_misses().is_none());
    }
}
