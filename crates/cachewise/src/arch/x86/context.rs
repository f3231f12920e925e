//! The interrupted context of a signal on Linux: where it was, and how to send it to a fix-up.

use crate::fallible::extable::Fixup;
use libc::{REG_EAX, REG_EBP, REG_EIP, ucontext_t};

/// The address of the instruction that was interrupted.
pub(crate) fn pc(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[REG_EIP as usize] as usize
}

/// Lets the context go on at the fix-up, told what `recover.S` may be told.
pub(crate) fn resume_at(context: &mut ucontext_t, fixup: Fixup, cause: usize, poisoned: bool) {
    let registers = &mut context.uc_mcontext.gregs;
    registers[REG_EIP as usize] = fixup.pc as i32;
    registers[REG_EAX as usize] = fixup.done_bytes as i32 | i32::from(poisoned) << 31;
    registers[REG_EBP as usize] = cause as i32;
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
