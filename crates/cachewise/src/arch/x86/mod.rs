use super::portable; use super::{CopyRoutine, ClearRoutine, Outcome};
use crate::variant::Variant;
pub(crate) static ROWS: &[Variant] = &[portable::COPY, portable::CLEAR];
pub(crate) const BLOCK_BYTES: usize = 64;
#[inline(always)]
pub(crate) fn fence() { unsafe { core::arch::x86_64::_mm_sfence() } }
pub(crate) unsafe fn walk(dst: *mut u8, src: *const u8, len: usize) { unsafe { core::ptr::copy(src, dst, len) } }
