//! The interrupted context of a signal on Linux: where it was, and how to send it to a fix-up.

use crate::fallible::extable::Fixup;
use libc::{REG_R10, REG_RAX, REG_RIP, ucontext_t};

/// The address of the instruction that was interrupted.
pub(crate) fn pc(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[REG_RIP as usize] as usize
}

/// Lets the context go on at the fix-up, told what `recover.S` may be told.
pub(crate) fn resume_at(context: &mut ucontext_t, fixup: Fixup, cause: usize, poisoned: bool) {
    let registers = &mut context.uc_mcontext.gregs;
    registers[REG_RIP as usize] = fixup.pc as i64;
    registers[REG_RAX as usize] = fixup.done_bytes as i64 | i64::from(poisoned) << 63;
    registers[REG_R10 as usize] = cause as i64;
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
