//! The interrupted context of a signal on Linux: where it was, and how to send it to a fix-up.

use crate::fallible::extable::Fixup;
use libc::{REG_ERR, REG_R10, REG_RAX, REG_RIP, REG_TRAPNO, ucontext_t};

/// The address of the instruction that was interrupted.
pub(crate) fn pc(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[REG_RIP as usize] as usize
}

/// Lets the context go on at the fix-up, told what `recover.S` may be told.
pub(crate) fn resume_at(context: &mut ucontext_t, fixup: Fixup, cause: usize, poisoned: bool) {
    let registers = &mut context.uc_mcontext.gregs;
    let done = fixup.done_bytes as i64;
    registers[REG_RAX as usize] = match poisoned {
        false => done,
        true if was_to_be_written(registers) => done | 1 << 63 | 1 << 62,
        true => done | 1 << 63,
    };
    registers[REG_RIP as usize] = fixup.pc as i64;
    registers[REG_R10 as usize] = cause as i64;
}

/// Whether the access was a store: a page fault's error code says so (Intel SDM volume 3, 4.7). A
/// page that is known to be poisoned raises one; a machine check is raised by loads.
fn was_to_be_written(registers: &[i64]) -> bool {
    const PAGE_FAULT: i64 = 14;
    const WRITE: i64 = 1 << 1;
    registers[REG_TRAPNO as usize] == PAGE_FAULT && registers[REG_ERR as usize] & WRITE != 0
}

/// For tests: the program counter, the bytes done, and the cause.
#[cfg(test)]
pub(crate) fn told(context: &ucontext_t) -> [usize; 3] {
    let context = &context.uc_mcontext;
    [context.gregs[REG_RIP as usize], context.gregs[REG_RAX as usize], context.gregs[REG_R10 as usize]].map(|register| register as usize)
}

/// For tests: sets what [`told`] gets.
#[cfg(test)]
pub(crate) fn tell(context: &mut ucontext_t, told: [usize; 3]) {
    let context = &mut context.uc_mcontext;
    [context.gregs[REG_RIP as usize], context.gregs[REG_RAX as usize], context.gregs[REG_R10 as usize]] = told.map(|register| register as i64);
}
