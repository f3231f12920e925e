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
