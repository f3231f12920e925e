//! The interrupted context of a signal on Linux: where it was, and how to send it to a fix-up.

use crate::fallible::extable::Fixup;
use libc::ucontext_t;

/// The address of the instruction that was interrupted.
pub(crate) fn pc(context: &ucontext_t) -> usize {
    context.uc_mcontext.pc as usize
}

/// Lets the context go on at the fix-up, told what `recover.S` may be told. The flags stay: they say
/// how a memory-copy instruction keeps its state.
pub(crate) fn resume_at(context: &mut ucontext_t, fixup: Fixup, cause: usize, poisoned: bool) {
    let context = &mut context.uc_mcontext;
    context.pc = fixup.pc as u64;
    context.regs[9] = fixup.done_bytes as u64 | u64::from(poisoned) << 63;
    context.regs[10] = cause as u64;
}

/// For tests: the program counter, the bytes done, and the cause.
#[cfg(test)]
pub(crate) fn told(context: &ucontext_t) -> [usize; 3] {
    let context = &context.uc_mcontext;
    [context.pc, context.regs[9], context.regs[10]].map(|register| register as usize)
}

/// For tests: sets what [`told`] gets.
#[cfg(test)]
pub(crate) fn tell(context: &mut ucontext_t, told: [usize; 3]) {
    let context = &mut context.uc_mcontext;
    [context.pc, context.regs[9], context.regs[10]] = told.map(|register| register as u64);
}
