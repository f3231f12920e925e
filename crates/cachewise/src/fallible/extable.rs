//! The exception table: which instructions of this crate may fault, and where to go on.
//!
//! Each load and store of each routine has a row, emitted next to it into a section of its own and
//! in the order of addresses, so that the table comes out sorted. A fault handler (a kernel's, or
//! the one [`install`](super::install) sets up) asks [`fixup`] with the program counter of a fault
//! and does what it says.

use crate::arch;

/// One row. All three are relative or absolute numbers that need no relocation.
#[repr(C)]
pub(crate) struct Row {
    /// The instruction, relative to this field.
    pc: i32,
    /// Where to go on, relative to this field.
    fixup: i32,
    /// Bytes done at the routine's cursors when the instruction faults.
    done_bytes: u32,
}

impl Row {
    pub(super) fn pc(&self) -> usize {
        (&raw const self.pc).addr().wrapping_add_signed(self.pc as isize)
    }

    fn fixup(&self) -> usize {
        (&raw const self.fixup).addr().wrapping_add_signed(self.fixup as isize)
    }
}

/// What a fault handler has to do: set the program counter to `pc` and the result register (x86-64:
/// `rax`; i686: `eax`; aarch64: `x9`; armv7: `r12`, and the IT bits of the CPSR to zero) to `done_bytes`, leave
/// everything else as it was, and return from the exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixup {
    /// The address to go on at.
    pub pc: usize,
    /// The value of the result register there.
    pub done_bytes: usize,
}

/// What to do about a fault at `pc`, or `None` if it isn't ours. Takes no lock, allocates nothing.
pub fn fixup(pc: usize) -> Option<Fixup> {
    let table = arch::exception_table();
    let row = &table[table.binary_search_by_key(&pc, Row::pc).ok()?];
    Some(Fixup { pc: row.fixup(), done_bytes: row.done_bytes as usize })
}
