//! Two threads and a flag (case 1): whoever sees the flag must see the bytes copied before it.
//!
//! The writer copies around the cache and then sets the flag by an ordinary store; the reader waits
//! for the flag and reads all bytes. Without a fence the flag can overtake the bytes: a control
//! shows that this machine, and this test, can tell. Where the control shows nothing the rest
//! proves nothing, and the test says so.

mod common;

#[cfg(miri)]
#[test]
#[ignore = "needs a memory system"]
fn litmus() {}

#[cfg(not(miri))]
mod native {
    use super::common::memory::Guarded;
    use super::common::{Handle, exclusive, for_each_variant, title};
    use super::say;
    use cachewise::bytes;
    use cachewise::policy::{self, Gate, Threshold};
    use cachewise::variant::{Store, Variant};
    use std::hint::spin_loop;
    use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Offset and length: one whole line; part of one; whole ones with partial ones around them.
    const SHAPES: [(usize, usize); 4] = [(0, 64), (8, 24), (5, 200), (40, 1024)];
    /// For one subject at one shape. Bounded by time, since on a busy machine a round may take a
    /// time slice.
    const TIME: Duration = Duration::from_millis(25);
    /// For the control at one shape, and how often it goes round the shapes: the two threads must
    /// meet on two CPUs, which on a busy machine takes some tries.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    const CONTROL_TIME: Duration = Duration::from_millis(50);
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    const CONTROL_TRIES: usize = 20;

    /// Apart from each other, as from the data: a line of its own for each.
    #[repr(align(256))]
    struct Flag(AtomicU64);

    #[derive(Default)]
    struct Seen {
        rounds: u64,
        stale: u64,
    }

    fn wait_until(mut ready: impl FnMut() -> bool) {
        let mut spins = 0_u32;
        while !ready() {
            spins += 1;
            if spins % 4096 == 0 {
                // Perhaps the other thread waits for this CPU.
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
    }

    /// Any round's value differs from those of the rounds before.
    fn value_of(round: u64) -> u8 {
        (round % 251) as u8 + 1
    }

    /// Lets `write(dst, value, len)` and a reader alternate until the time is over, or, with
    /// `stop_at_stale`, a stale byte was seen.
    fn alternate(
        (offset, len): (usize, usize),
        time: Duration,
        stop_at_stale: bool,
        write: impl Fn(*mut u8, u8, usize),
    ) -> Seen {
        const STOP: u64 = u64::MAX;
        let mut memory = Guarded::new(4096);
        let (ready, done) = (Flag(AtomicU64::new(0)), Flag(AtomicU64::new(0)));
        let stale = AtomicU64::new(0);
        // The two threads take turns by the flags.
        let place = AtomicPtr::new(memory[offset..offset + len].as_mut_ptr());
        let rounds = thread::scope(|scope| {
            scope.spawn(|| {
                let first = place.load(Ordering::Relaxed);
                for round in 1.. {
                    wait_until(|| ready.0.load(Ordering::Acquire) >= round);
                    if ready.0.load(Ordering::Relaxed) == STOP {
                        break;
                    }
                    // Backward: the last byte stored is the likeliest to be late. Volatile: the
                    // control's stores are not ordered, and must be read all the same.
                    // SAFETY: inside the memory, which lives until both threads have ended.
                    let fresh =
                        |i: usize| unsafe { first.add(i).read_volatile() } == value_of(round);
                    if !(0..len).rev().all(fresh) {
                        stale.fetch_add(1, Ordering::Relaxed);
                    }
                    done.0.store(round, Ordering::Release);
                }
            });
            let first = place.load(Ordering::Relaxed);
            let end = Instant::now() + time;
            let mut round = 0;
            while Instant::now() < end && !(stop_at_stale && stale.load(Ordering::Relaxed) > 0) {
                round += 1;
                write(first, value_of(round), len);
                ready.0.store(round, Ordering::Release);
                wait_until(|| done.0.load(Ordering::Acquire) == round);
            }
            ready.0.store(STOP, Ordering::Release);
            round
        });
        Seen { rounds, stale: stale.into_inner() }
    }

    #[track_caller]
    fn must_be_fresh(subject: &str, write: impl Fn(*mut u8, u8, usize)) -> u64 {
        let mut rounds = 0;
        for shape in SHAPES {
            let seen = alternate(shape, TIME, false, &write);
            assert!(seen.rounds > 0, "{subject}: no round");
            assert_eq!(seen.stale, 0, "{subject} {shape:?}: stale in {} rounds", seen.rounds);
            rounds += seen.rounds;
        }
        rounds
    }

    fn source(value: u8, len: usize) -> [u8; 1024] {
        let mut source = [0; 1024];
        source[..len].fill(value);
        source
    }

    /// A word at a time around the cache, without a fence. What the safe functions prevent.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fn unfenced(dst: *mut u8, value: u8, len: usize) {
        const WORD: usize = size_of::<usize>();
        for i in (0..len / WORD * WORD).step_by(WORD) {
            // SAFETY: inside the range that the litmus hands out.
            unsafe {
                std::arch::asm!(
                    "movnti [{to}], {word}",
                    to = in(reg) dst.add(i),
                    word = in(reg) usize::from_ne_bytes([value; WORD]),
                    options(nostack, preserves_flags),
                );
            }
        }
    }

    /// Whether this machine lets a flag overtake unfenced bytes, for the record.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fn demonstrate() {
        if !std::arch::is_x86_feature_detected!("sse2") {
            say!("litmus: not demonstrated here: this CPU has no movnti");
            return;
        }
        let mut rounds = 0;
        for shape in [(8, 24), (40, 1024), (0, 64)].into_iter().cycle().take(3 * CONTROL_TRIES) {
            let seen = alternate(shape, CONTROL_TIME, true, unfenced);
            rounds += seen.rounds;
            if seen.stale > 0 {
                say!("litmus: without a fence, a stale byte in round {rounds}");
                return;
            }
        }
        say!("litmus: not demonstrated here: no stale byte in {rounds} rounds without a fence");
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    fn demonstrate() {
        say!("litmus: not demonstrated here: no control for this architecture");
    }

    #[test]
    fn whoever_sees_the_flag_sees_the_bytes() {
        let _alone = exclusive();
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            say!("litmus: not demonstrated here: one CPU");
        } else {
            demonstrate();
        }
        let mut rounds = 0;
        let mut handle = |variant: &'static Variant| {
            rounds += match Handle::of(variant) {
                Handle::Copy(copier) => must_be_fresh(&title(variant), |dst, value, len| {
                    // SAFETY: the litmus hands out a range of its own memory.
                    unsafe { copier.copy_raw(dst, source(value, len).as_ptr(), len) }
                }),
                Handle::Clear(clearer) => must_be_fresh(&title(variant), |dst, value, len| {
                    // SAFETY: as above.
                    unsafe { clearer.fill_raw(dst, value, len) }
                }),
            };
        };
        if super::common::available().any(|v| v.store() == Store::NonTemporal) {
            for_each_variant(|v| v.store() == Store::NonTemporal, &mut handle);
        } else {
            say!("cannot run here: no variant goes around the cache");
        }

        for threshold in [Threshold::Always, Threshold::Off] {
            Gate::ALL.into_iter().for_each(|gate| policy::set_threshold(gate, threshold));
            rounds += must_be_fresh("copy_nontemporal", |dst, value, len| {
                // SAFETY: as above.
                unsafe { bytes::copy_nontemporal_raw(dst, source(value, len).as_ptr(), len) }
            });
            rounds += must_be_fresh("fill_nontemporal", |dst, value, len| {
                // SAFETY: as above.
                unsafe { bytes::fill_nontemporal_raw(dst, value, len) }
            });
            rounds += must_be_fresh("batch", |dst, value, len| {
                let source = source(value, len);
                let half = len / 2;
                cachewise::batch(|batch| {
                    // SAFETY: as above; nothing looks at it before the batch has ended.
                    unsafe { batch.copy_raw(dst, source.as_ptr(), half) };
                    // SAFETY: as above.
                    unsafe { batch.copy_raw(dst.add(half), source.as_ptr(), len - half) };
                });
            });
            rounds += must_be_fresh("copy_vectored_nontemporal", |dst, value, len| {
                let source = source(value, len);
                // SAFETY: as above; the reader waits for its turn.
                let dst = unsafe { std::slice::from_raw_parts_mut(dst, len) };
                cachewise::copy_vectored_nontemporal(&mut [(dst, &source[..len])]);
            });
        }
        say!("litmus: with a fence, no stale byte in {rounds} rounds");
    }
}
