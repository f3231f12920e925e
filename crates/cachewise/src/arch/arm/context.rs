//! The interrupted context of a signal on Linux: where it was, and how to send it to a fix-up.

use crate::fallible::extable::Fixup;
use libc::ucontext_t;

/// The address of the instruction that was interrupted.
pub(crate) fn pc(context: &ucontext_t) -> usize {
    context.uc_mcontext.arm_pc as usize
}

/// CPSR: the progress of a Thumb IT block, bits 26 to 25 and 15 to 10. It belongs to the place that
/// is left.
const IT: u32 = 0x0600_fc00;

/// Lets the context go on at the fix-up, told what `recover.S` may be told.
pub(crate) fn resume_at(context: &mut ucontext_t, fixup: Fixup, cause: usize, poisoned: bool) {
    let context = &mut context.uc_mcontext;
    context.arm_pc = fixup.pc as u32;
    context.arm_cpsr &= !IT;
    context.arm_ip = fixup.done_bytes as u32 | u32::from(poisoned) << 31;
    context.arm_lr = cause as u32;
}

/// For tests: the program counter, the bytes done, and the cause.
#[cfg(test)]
pub(crate) fn told(context: &ucontext_t) -> [usize; 3] {
    let context = &context.uc_mcontext;
    [context.arm_pc, context.arm_ip, context.arm_lr].map(|register| register as usize)
}

/// For tests: sets what [`told`] gets.
#[cfg(test)]
pub(crate) fn tell(context: &mut ucontext_t, told: [usize; 3]) {
    let context = &mut context.uc_mcontext;
    [context.arm_pc, context.arm_ip, context.arm_lr] = told.map(|register| register as u32);
}
