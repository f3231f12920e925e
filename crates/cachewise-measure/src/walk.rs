//! The read-only walk: how fast bytes come in when nothing is done with them. It is the limit that
//! a copy is held against.
//!
//! Several independent loads are in flight, of the widest registers there are, and their values
//! are folded so that none can be left out. A walk in one stream is what the hardware prefetcher
//! knows best; several pages in step keep more of its streams busy. Which is faster depends on the
//! machine, so both are tried and the faster one is the limit.
#![allow(unsafe_code, reason = "reads raw memory by vector loads")]

use crate::contestant::Routine;
use std::hint::black_box;

/// Reads the destination: that is the side every operation has.
#[derive(Clone, Copy)]
pub(crate) struct ReadWalk {
    streams: usize,
    read: unsafe fn(*const u8, usize),
}

impl ReadWalk {
    /// The walks to try on this CPU.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let read = widest();
        [1, 4].into_iter().map(move |streams| Self { streams, read })
    }
}

fn widest() -> unsafe fn(*const u8, usize) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return x86::avx512;
        }
        if is_x86_feature_detected!("avx2") {
            return x86::avx2;
        }
    }
    plain
}

/// How far apart streams in step are.
const STREAM_BYTES: usize = 4096;
/// How much of a stream is read before the next one's turn: enough for the loads' own loop.
const TURN_BYTES: usize = 1024;

impl Routine for ReadWalk {
    unsafe fn run(&self, dst: *mut u8, _src: *const u8, len: usize) {
        let group = self.streams * STREAM_BYTES;
        let whole = if self.streams == 1 { 0 } else { len - len % group };
        for start in (0..whole).step_by(group) {
            for turn in (0..STREAM_BYTES).step_by(TURN_BYTES) {
                for stream in 0..self.streams {
                    let at = start + stream * STREAM_BYTES + turn;
                    // SAFETY: within `whole`; writable memory of ours is readable, and the CPU was
                    // asked for what `read` needs.
                    unsafe { (self.read)(dst.wrapping_add(at), TURN_BYTES) }
                }
            }
        }
        // SAFETY: the rest of the range, as above.
        unsafe { (self.read)(dst.wrapping_add(whole), len - whole) }
    }
}

/// # Safety
///
/// `start` is valid for reads of `len` bytes.
unsafe fn plain(start: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(start, len) };
    let (blocks, rest) = bytes.as_chunks::<64>();
    let mut folded = [0_u64; 8];
    for block in blocks {
        for (word, into) in block.as_chunks::<8>().0.iter().zip(&mut folded) {
            *into |= u64::from_ne_bytes(*word);
        }
    }
    black_box((folded, rest.iter().fold(0, |all, &byte| all | byte)));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::plain;
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256,
        _mm512_loadu_si512, _mm512_or_si512, _mm512_setzero_si512,
    };
    use std::hint::black_box;

    /// One instance per register width.
    macro_rules! walk {
        ($name:ident, $feature:literal, $vector:ty, $zero:ident, $load:ident, $or:ident) => {
            /// # Safety
            ///
            /// `start` is valid for reads of `len` bytes, and the CPU has the feature.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(start: *const u8, len: usize) {
                const LOADS: usize = 8;
                let step = LOADS * size_of::<$vector>();
                let mut folded = [$zero(); LOADS];
                let whole = len - len % step;
                for at in (0..whole).step_by(step) {
                    // SAFETY: `at + step <= len`.
                    let block = unsafe { start.add(at) }.cast::<$vector>();
                    for (index, into) in folded.iter_mut().enumerate() {
                        // SAFETY: the load is within the step.
                        *into = $or(*into, unsafe { $load(block.add(index)) });
                    }
                }
                black_box(folded);
                // SAFETY: the rest of the range.
                unsafe { plain(start.add(whole), len - whole) }
            }
        };
    }

    walk!(avx2, "avx2", __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_or_si256);
    walk!(avx512, "avx512f", __m512i, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_or_si512);
}
