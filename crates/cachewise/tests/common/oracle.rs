//! The one oracle: what a copy or clear must leave behind, byte by byte, computed naively.
//!
//! Before each call the destination, and a margin around it, holds the complement of what a right
//! (or overrunning) call would store there. So a byte that is missed and a byte too many both
//! show, whatever the data.

use super::memory::Guarded;
use super::{Handle, Rng, title};
use cachewise::variant::Variant;
use std::cell::Cell;
use std::fmt;

/// Two cache lines of the largest kind.
pub const MARGIN_BYTES: usize = 256;

/// A case: offsets into the arena's two buffers, and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub dst: usize,
    pub src: usize,
    pub len: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dst, src, len } = self;
        write!(f, "{len} bytes, dst offset {dst}, src offset {src}")
    }
}

/// The first byte that is not as it must be; the offset counts from the destination's first byte.
#[derive(Debug)]
pub struct Wrong {
    pub shape: Shape,
    pub at: isize,
    pub expected: u8,
    pub found: u8,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, at, expected, found } = self;
        write!(f, "{shape}: byte {at} is {found:#04x}, must be {expected:#04x}")
    }
}

/// A destination and a source between guard pages, and what the destination must hold.
pub struct Arena {
    dst: Guarded,
    src: Guarded,
    expected: Vec<u8>,
}

impl Arena {
    pub fn new(len_bytes: usize) -> Self {
        name_the_case_on_a_fault();
        let (dst, mut src) = (Guarded::new(len_bytes), Guarded::new(len_bytes));
        Rng::new(0xcac4e).fill(&mut src);
        src.make_read_only();
        let expected = vec![0; dst.len()];
        Self { dst, src, expected }
    }

    pub fn len_bytes(&self) -> usize {
        self.dst.len()
    }

    /// Runs `call(dst, src)` and compares.
    pub fn copy(&mut self, shape: Shape, call: impl FnOnce(&mut [u8], &[u8])) -> Result<(), Wrong> {
        let src = &self.src;
        let would_be = |i: usize| {
            let at = (i + shape.src).checked_sub(shape.dst);
            at.and_then(|at| src.get(at)).copied().unwrap_or(0x3c)
        };
        let window = prepare(&mut self.dst, &mut self.expected, shape, would_be);
        let from = &self.src[shape.src..shape.src + shape.len];
        call(&mut self.dst[shape.dst..shape.dst + shape.len], from);
        for (expected, byte) in self.expected[shape.dst..].iter_mut().zip(from) {
            *expected = *byte;
        }
        self.compare(shape, window)
    }

    /// Runs `call(dst)`, which fills with `value`, and compares.
    pub fn clear(
        &mut self,
        shape: Shape,
        value: u8,
        call: impl FnOnce(&mut [u8]),
    ) -> Result<(), Wrong> {
        let window = prepare(&mut self.dst, &mut self.expected, shape, |_| value);
        call(&mut self.dst[shape.dst..shape.dst + shape.len]);
        for expected in &mut self.expected[shape.dst..][..shape.len] {
            *expected = value;
        }
        self.compare(shape, window)
    }

    /// Runs `call(dst)`, which must leave everything as it is (it panics), and compares.
    pub fn untouched(&mut self, shape: Shape, call: impl FnOnce(&mut [u8])) -> Result<(), Wrong> {
        let window = prepare(&mut self.dst, &mut self.expected, shape, |i| i as u8);
        call(&mut self.dst[shape.dst..shape.dst + shape.len]);
        self.compare(shape, window)
    }

    /// One variant, one shape; `value` matters to clears only.
    pub fn try_variant(
        &mut self,
        v: &'static Variant,
        shape: Shape,
        value: u8,
    ) -> Result<(), Wrong> {
        CASE.set(Some((v.name(), shape)));
        let result = match Handle::of(v) {
            Handle::Copy(copier) => self.copy(shape, |dst, src| {
                let expected_at = dst.as_ptr();
                let copied = copier.copy(dst, src);
                assert_eq!((copied.as_ptr(), copied.len()), (expected_at, src.len()));
            }),
            Handle::Clear(clearer) => self.clear(shape, value, |dst| {
                let (expected_at, len) = (dst.as_ptr(), dst.len());
                let filled = if value == 0 { clearer.clear(dst) } else { clearer.fill(dst, value) };
                assert_eq!((filled.as_ptr(), filled.len()), (expected_at, len));
            }),
        };
        CASE.set(None);
        result
    }

    /// [`Self::try_variant`] that panics.
    #[track_caller]
    pub fn check_variant(&mut self, v: &'static Variant, shape: Shape, value: u8) {
        if let Err(wrong) = self.try_variant(v, shape, value) {
            panic!("{} (value {value:#04x}): {wrong}", title(v));
        }
    }

    /// Compares all of the destination: strays far from every shape.
    #[track_caller]
    pub fn check_everywhere(&self, subject: impl fmt::Display) {
        if let Some(at) = (0..self.dst.len()).find(|&i| self.dst[i] != self.expected[i]) {
            panic!("{subject} has touched offset {at}, far from what it was given");
        }
    }

    fn compare(&self, shape: Shape, (start, end): (usize, usize)) -> Result<(), Wrong> {
        if self.dst[start..end] == self.expected[start..end] {
            return Ok(());
        }
        let at = (start..end).find(|&i| self.dst[i] != self.expected[i]).unwrap_or(start);
        let (expected, found) = (self.expected[at], self.dst[at]);
        Err(Wrong { shape, at: at as isize - shape.dst as isize, expected, found })
    }
}

fn prepare(
    dst: &mut [u8],
    expected: &mut [u8],
    shape: Shape,
    would_be: impl Fn(usize) -> u8,
) -> (usize, usize) {
    let start = shape.dst.saturating_sub(MARGIN_BYTES);
    let end = (shape.dst + shape.len + MARGIN_BYTES).min(dst.len());
    for (i, expected) in (start..end).zip(&mut expected[start..end]) {
        *expected = !would_be(i);
    }
    dst[start..end].copy_from_slice(&expected[start..end]);
    (start, end)
}

thread_local! {
    static CASE: Cell<Option<(&'static str, Shape)>> = const { Cell::new(None) };
}

/// A fault at a guard page kills the process; let it say in which case, then die of the fault.
#[cfg(all(unix, not(miri)))]
fn name_the_case_on_a_fault() {
    extern "C" fn on_fault(signal: i32) {
        if let Some((name, shape)) = CASE.get() {
            // Formatting to a fixed buffer: no allocation in a handler.
            let mut line = [0_u8; 200];
            let mut rest = &mut line[..];
            let _ = std::io::Write::write_fmt(
                &mut rest,
                format_args!("fault outside the range: {name}, {shape}\n"),
            );
            let unused = rest.len();
            // SAFETY: the pointer and the length are those of `line`'s written part.
            unsafe { libc::write(2, line.as_ptr().cast(), line.len() - unused) };
        }
        // SAFETY: the default action; the faulting instruction runs again and ends the process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handler does only what a handler may.
        unsafe { libc::signal(libc::SIGSEGV, on_fault as *const () as libc::sighandler_t) };
    });
}

#[cfg(not(all(unix, not(miri))))]
fn name_the_case_on_a_fault() {}
