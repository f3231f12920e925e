//! The signal handlers of a Linux process: faults in our table are recovered, all others go to
//! whoever was there before.
//!
//! A signal is ours only if the program counter is in the exception table *and* the kernel says
//! that the instruction itself caused it (`si_code`, sigaction(2)): a `kill -SEGV` or a late report
//! of poisoned memory that arrives inside a copy is somebody else's. The reported address is not
//! looked at: it is 0 for a pointer that is no address, and rounded for poison.
//!
//! The recovery itself reads a static table and changes three registers of the interrupted context.
//! No lock, no allocation, no thread-local: it is async-signal-safe, works on the alternate stack,
//! inside other handlers, in many threads at once, and after fork.

use super::{Cause, extable};
use crate::arch;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::{sigaction, siginfo_t, sigset_t, ucontext_t};
use std::io;
use std::sync::Mutex;

/// Proof that the handlers were installed. They stay until the process ends or another handler
/// replaces them.
#[derive(Clone, Copy, Debug)]
pub struct Token(());

/// A handler could not be installed.
#[derive(Debug)]
pub struct InstallError {
    signal: c_int,
    error: io::Error,
}

/// Another handler has taken the place of ours. If it chains to the one before it, faults in copies
/// are still recovered; if not, they are its own. That can't be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    signal: c_int,
}

/// This thread blocks a signal that a fault raises: the kernel would end the process instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    signal: c_int,
}

impl Token {
    /// Whether our handlers are still the ones in place.
    ///
    /// # Errors
    ///
    /// The signal whose handler was replaced.
    pub fn check(self) -> Result<(), Replaced> {
        for slot in &PREVIOUS {
            let replaced = Replaced { signal: slot.signal };
            let now = current(slot.signal).map_err(|_| replaced)?;
            if now.sa_sigaction != handler as *const () as usize {
                return Err(replaced);
            }
        }
        Ok(())
    }

    /// Whether a fault in this thread reaches the handlers: neither signal is blocked. A thread
    /// inherits its mask from the one that made it.
    ///
    /// # Errors
    ///
    /// The signal that is blocked.
    pub fn check_thread(self) -> Result<(), Blocked> {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: with no new set, the call only writes the present one.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr()) };
        debug_assert_eq!(failed, 0, "the arguments are right");
        // SAFETY: the call has written the mask.
        let mask = unsafe { mask.assume_init() };
        for slot in &PREVIOUS {
            // SAFETY: the mask is initialised and the signal's number is valid.
            if unsafe { libc::sigismember(&mask, slot.signal) } == 1 {
                return Err(Blocked { signal: slot.signal });
            }
        }
        Ok(())
    }
}

/// What was there before us.
struct Previous {
    signal: c_int,
    known: AtomicBool,
    /// `SA_RESETHAND`: the handler has been called once and is not called again.
    spent: AtomicBool,
    action: UnsafeCell<MaybeUninit<sigaction>>,
}

// SAFETY: `action` is written before `known` is set (release) and only read after it is seen set
// (acquire); writers hold the lock in `install`.
unsafe impl Sync for Previous {}

impl Previous {
    const fn of(signal: c_int) -> Self {
        Self {
            signal,
            known: AtomicBool::new(false),
            spent: AtomicBool::new(false),
            action: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    fn get(&self) -> Option<&sigaction> {
        if !self.known.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: written before `known` was set, and not since.
        Some(unsafe { (*self.action.get()).assume_init_ref() })
    }
}

static PREVIOUS: [Previous; 2] = [Previous::of(libc::SIGSEGV), Previous::of(libc::SIGBUS)];

/// Installs the handlers for SIGSEGV and SIGBUS. Calling it again changes nothing.
///
/// They run on the alternate stack where the thread has one. What was there before keeps
/// getting all signals that are not ours, as its flags and mask ask for.
///
/// A shared library that calls this must not be unloaded: link it with `-z nodelete`.
///
/// # Errors
///
/// sigaction(2) refused.
pub fn install() -> Result<Token, InstallError> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for slot in &PREVIOUS {
        if slot.get().is_none() {
            install_one(slot).map_err(|error| InstallError { signal: slot.signal, error })?;
        }
    }
    Ok(Token(()))
}

fn install_one(slot: &Previous) -> io::Result<()> {
    // First what was there, then ours: a signal may arrive in between.
    let before = current(slot.signal)?;
    // SAFETY: nobody reads before `known` is set, and `install` holds the lock.
    unsafe { (*slot.action.get()).write(before) };
    slot.known.store(true, Ordering::Release);

    // SAFETY: all-zero is a valid `sigaction`.
    let mut ours: sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    ours.sa_sigaction = handler as *const () as usize;
    // No signal comes in between: its handler may fault in a copy of its own, and this signal is
    // blocked while we run.
    // SAFETY: the pointer is valid.
    unsafe { libc::sigfillset(&mut ours.sa_mask) };
    // The previous handler's wish for restarted system calls is kept: the signal may be its own.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (before.sa_flags & libc::SA_RESTART);
    // SAFETY: both point to valid values; the handler has the signature that SA_SIGINFO asks for.
    if unsafe { libc::sigaction(slot.signal, &ours, ptr::null_mut()) } != 0 {
        slot.known.store(false, Ordering::Release);
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn current(signal: c_int) -> io::Result<sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: with no new action, the call only writes the present one.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written the action.
    Ok(unsafe { action.assume_init() })
}

unsafe extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over valid pointers.
    if unsafe { recover(signal, &*info, &mut *context.cast()) } {
        return;
    }
    // SAFETY: as above.
    unsafe { chain(signal, info, context) }
}

/// Sends the interrupted context to the fix-up, if the fault is ours.
fn recover(signal: c_int, info: &siginfo_t, context: &mut ucontext_t) -> bool {
    let Some(cause) = cause(signal, info.si_code) else { return false };
    let Some(fixup) = extable::fixup(arch::context::pc(context)) else { return false };
    arch::context::resume_at(context, fixup, cause.number(), cause == Cause::Poison);
    true
}

/// The cause, or `None` if the instruction did not raise the signal (sigaction(2)).
fn cause(signal: c_int, code: c_int) -> Option<Cause> {
    // Not in the libc crate; the numbers are Linux's on every architecture.
    const SEGV_MAPERR: c_int = 1;
    const SEGV_ACCERR: c_int = 2;
    const SEGV_PKUERR: c_int = 4;
    match (signal, code) {
        (libc::SIGSEGV, SEGV_MAPERR) => Some(Cause::Unmapped),
        (libc::SIGSEGV, SEGV_ACCERR) => Some(Cause::Protection),
        (libc::SIGSEGV, SEGV_PKUERR) => Some(Cause::ProtectionKey),
        // A general protection fault of a load or store: the address is not canonical.
        (libc::SIGSEGV, libc::SI_KERNEL) => Some(Cause::NonCanonical),
        (libc::SIGBUS, libc::BUS_ADRERR) => Some(Cause::BeyondEndOfFile),
        (libc::SIGBUS, libc::BUS_ADRALN) => Some(Cause::Alignment),
        (libc::SIGBUS, libc::BUS_MCEERR_AR) => Some(Cause::Poison),
        // BUS_MCEERR_AO reports poison found elsewhere; codes below 1 come from other processes
        // and threads.
        _ => None,
    }
}

/// Does what would have happened without us.
///
/// # Safety
///
/// The arguments are those the kernel gave the handler.
unsafe fn chain(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(slot) = PREVIOUS.iter().find(|slot| slot.signal == signal) else { return };
    let Some(action) = slot.get() else { return };
    // SAFETY: the kernel's pointer is valid.
    let code = unsafe { (*info).si_code };
    // The kernel's codes are positive and raised by the instruction, but for the late report of
    // poisoned memory.
    let synchronous = code > 0 && (signal, code) != (libc::SIGBUS, libc::BUS_MCEERR_AO);
    let disposition = match action.sa_sigaction {
        _ if slot.spent.load(Ordering::Relaxed) => libc::SIG_DFL,
        // The kernel does not let a fault be ignored.
        libc::SIG_IGN if synchronous => libc::SIG_DFL,
        other => other,
    };
    match disposition {
        libc::SIG_IGN => {}
        // SAFETY: the kernel's pointer is valid.
        libc::SIG_DFL => unsafe { die(signal, info, synchronous) },
        address => {
            if action.sa_flags & libc::SA_RESETHAND != 0 {
                slot.spent.store(true, Ordering::Relaxed);
            }
            // SAFETY: `address` is the handler that was installed for this signal, with the
            // signature its flags say; the pointers are the kernel's.
            unsafe { call_previous(action, address, signal, info, context) };
        }
    }
}

/// Ends the process by the signal, with its original cause: by the same fault again, or by the same
/// signal again if it was sent.
///
/// # Safety
///
/// `info` is what the kernel gave the handler.
unsafe fn die(signal: c_int, info: *mut siginfo_t, synchronous: bool) {
    // SAFETY: all-zero is a valid `sigaction`, and means the default.
    let default: sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the pointer is valid.
    unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
    if !synchronous {
        // SAFETY: sends this thread a signal with the information it came with
        // (rt_tgsigqueueinfo(2)); it is delivered when the handler returns and unblocks it.
        unsafe {
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), libc::gettid(), signal, info);
        }
    }
}

/// # Safety
///
/// `address` is a handler with the signature that `action.sa_flags` says, and the rest are the
/// kernel's arguments.
unsafe fn call_previous(
    action: &sigaction,
    address: usize,
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: the kernel's pointer is valid.
    let mask = unsafe { mask_for(action, signal, &*context.cast()) };
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are valid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, before.as_mut_ptr()) };
    // SAFETY: written by the call.
    let before = unsafe { before.assume_init() };
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        type WithInfo = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: the flags say that this is its signature.
        let previous = unsafe { core::mem::transmute::<usize, WithInfo>(address) };
        // SAFETY: the kernel's arguments.
        unsafe { previous(signal, info, context) };
    } else {
        type Plain = unsafe extern "C" fn(c_int);
        // SAFETY: the flags say that this is its signature.
        let previous = unsafe { core::mem::transmute::<usize, Plain>(address) };
        // SAFETY: the kernel's argument.
        unsafe { previous(signal) };
    }
    // SAFETY: the set is the one that was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
}

/// The mask that the kernel would have set for a handler: the interrupted one, its own, and the
/// signal itself unless SA_NODEFER.
fn mask_for(action: &sigaction, signal: c_int, context: &ucontext_t) -> sigset_t {
    // The kernel's set: 64 signals. What follows in the library's type is not the kernel's.
    const KERNEL_BYTES: usize = 8;
    let mut mask = MaybeUninit::<sigset_t>::zeroed();
    let interrupted = (&raw const context.uc_sigmask).cast::<u8>();
    // SAFETY: both sets are at least as long.
    unsafe { ptr::copy_nonoverlapping(interrupted, mask.as_mut_ptr().cast(), KERNEL_BYTES) };
    // SAFETY: no signal beyond the kernel's is set.
    let mut mask = unsafe { mask.assume_init() };
    for other in 1..=libc::SIGRTMAX() {
        // SAFETY: an initialised set.
        let its_own = unsafe { libc::sigismember(&action.sa_mask, other) } == 1;
        let itself = other == signal && action.sa_flags & libc::SA_NODEFER == 0;
        if its_own || itself {
            // SAFETY: an initialised set.
            unsafe { libc::sigaddset(&mut mask, other) };
        }
    }
    mask
}

fn name(signal: c_int) -> &'static str {
    if signal == libc::SIGBUS { "SIGBUS" } else { "SIGSEGV" }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handler for {} cannot be installed: {}", name(self.signal), self.error)
    }
}

impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "another handler for {} has been installed; unless it calls the one before it, faults \
             in copies are not recovered",
            name(self.signal)
        )
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this thread blocks {}; unblock it before a copy that may fault", name(self.signal))
    }
}

impl core::error::Error for InstallError {}
impl core::error::Error for Replaced {}
impl core::error::Error for Blocked {}

#[cfg(test)]
mod tests {
    //! Made-up signals: what a machine cannot be asked for, such as broken memory.

    use super::*;
    use crate::arch;

    /// A context that no kernel made: 1 in every byte, but for the program counter.
    fn context_at(pc: usize) -> ucontext_t {
        let mut context = MaybeUninit::<ucontext_t>::uninit();
        // SAFETY: all of it is integers, floats and raw pointers, of which any bytes are a value.
        let mut context = unsafe {
            context.as_mut_ptr().write_bytes(1, 1);
            context.assume_init()
        };
        let [_, done, cause] = arch::context::told(&context);
        arch::context::tell(&mut context, [pc, done, cause]);
        context
    }

    fn bytes(context: &ucontext_t) -> &[u8] {
        // SAFETY: its memory, all of it written by `context_at`.
        unsafe { std::slice::from_raw_parts(ptr::from_ref(context).cast(), size_of_val(context)) }
    }

    /// A signal of this code, raised or received at `pc`: what the context is then told, if it is
    /// ours. Nothing else of the context may change.
    fn recovered(signal: c_int, code: c_int, pc: usize) -> Option<[usize; 3]> {
        // SAFETY: all-zero is a valid value.
        let mut info: siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
        (info.si_signo, info.si_code) = (signal, code);
        let mut context = context_at(pc);
        let ours = recover(signal, &info, &mut context);
        let told = arch::context::told(&context);
        if ours {
            arch::context::tell(&mut context, arch::context::told(&context_at(pc)));
        }
        assert!(bytes(&context) == bytes(&context_at(pc)), "something else has changed");
        ours.then_some(told)
    }

    fn check(signal: c_int, code: c_int, cause: Cause) {
        let poisoned = usize::from(cause == Cause::Poison) << (usize::BITS - 1);
        for row in arch::exception_table() {
            let told = recovered(signal, code, row.pc()).expect("the table has it");
            let fixup = extable::fixup(row.pc()).expect("the table has it");
            let expected = [fixup.pc, fixup.done_bytes | poisoned, cause.number()];
            assert_eq!(told, expected, "{cause:?}: program counter, bytes done, cause");
        }
    }

    #[test]
    fn each_cause_at_each_row() {
        assert!(!arch::exception_table().is_empty());
        check(libc::SIGSEGV, 1, Cause::Unmapped);
        check(libc::SIGSEGV, 2, Cause::Protection);
        check(libc::SIGSEGV, 4, Cause::ProtectionKey);
        check(libc::SIGSEGV, libc::SI_KERNEL, Cause::NonCanonical);
        check(libc::SIGBUS, libc::BUS_ADRERR, Cause::BeyondEndOfFile);
        check(libc::SIGBUS, libc::BUS_ADRALN, Cause::Alignment);
        check(libc::SIGBUS, libc::BUS_MCEERR_AR, Cause::Poison);
    }

    #[test]
    fn what_the_instruction_did_not_raise_is_not_ours() {
        let sent = [
            libc::SI_USER,
            libc::SI_QUEUE,
            libc::SI_TKILL,
            libc::SI_TIMER,
            libc::SI_MESGQ,
            libc::SI_ASYNCIO,
        ];
        for row in arch::exception_table() {
            for signal in [libc::SIGSEGV, libc::SIGBUS] {
                for code in sent {
                    assert!(recovered(signal, code, row.pc()).is_none(), "code {code}");
                }
            }
            let late = recovered(libc::SIGBUS, libc::BUS_MCEERR_AO, row.pc());
            assert!(late.is_none(), "poison found elsewhere");
            assert!(recovered(libc::SIGTRAP, 1, row.pc()).is_none(), "another signal");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_not_ours() {
        let rows = arch::exception_table();
        let known = |pc| rows.iter().any(|row| row.pc() == pc);
        let beside = rows.iter().flat_map(|row| [row.pc() - 1, row.pc() + 1]);
        let elsewhere = [0, 1, usize::MAX, recovered as *const () as usize];
        for pc in beside.chain(elsewhere).filter(|&pc| !known(pc)) {
            assert!(recovered(libc::SIGSEGV, 1, pc).is_none(), "{pc:#x}");
            assert!(extable::fixup(pc).is_none(), "{pc:#x}");
        }
    }

    #[test]
    fn the_table_is_sorted() {
        let rows = arch::exception_table();
        assert!(rows.windows(2).all(|pair| pair[0].pc() < pair[1].pc()));
    }
}
