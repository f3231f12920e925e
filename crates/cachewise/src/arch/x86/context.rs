//! The interrupted context of a signal on Linux: where it was, and how to send it to a fix-up.

use crate::fallible::extable::Fixup;
use libc::{REG_EAX, REG_EBP, REG_EIP, REG_ERR, REG_TRAPNO, ucontext_t};

/// The address of the instruction that was interrupted.
pub(crate) fn pc(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[REG_EIP as usize] as usize
}

/// Lets the context go on at the fix-up, told what `recover.S` may be told.
pub(crate) fn resume_at(context: &mut ucontext_t, fixup: Fixup, cause: usize, poisoned: bool) {
    let registers = &mut context.uc_mcontext.gregs;
    let done = fixup.done_bytes as i32;
    registers[REG_EAX as usize] = match poisoned {
        false => done,
        true if was_to_be_written(registers) => done | 1 << 31 | 1 << 30,
        true => done | 1 << 31,
    };
    registers[REG_EIP as usize] = fixup.pc as i32;
    registers[REG_EBP as usize] = cause as i32;
}

/// Whether the access was a store: a page fault's error code says so (Intel SDM volume 3, 4.7). A
/// page that is known to be poisoned raises one; a machine check is raised by loads.
fn was_to_be_written(registers: &[i32]) -> bool {
    const PAGE_FAULT: i32 = 14;
    const WRITE: i32 = 1 << 1;
    registers[REG_TRAPNO as usize] == PAGE_FAULT && registers[REG_ERR as usize] & WRITE != 0
}

/// For tests: the program counter, the bytes done, and the cause.
#[cfg(test)]
pub(crate) fn told(context: &ucontext_t) -> [usize; 3] {
    let context = &context.uc_mcontext;
    [context.gregs[REG_EIP as usize], context.gregs[REG_EAX as usize], context.gregs[REG_EBP as usize]].map(|register| register as usize)
}

/// For tests: sets what [`told`] gets.
#[cfg(test)]
pub(crate) fn tell(context: &mut ucontext_t, told: [usize; 3]) {
    let context = &mut context.uc_mcontext;
    [context.gregs[REG_EIP as usize], context.gregs[REG_EAX as usize], context.gregs[REG_EBP as usize]] = told.map(|register| register as i32);
}
