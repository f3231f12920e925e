//! Runs a call one instruction at a time and watches the memory it writes.
//!
//! With EFLAGS.TF set the CPU traps after every instruction (Intel SDM volume 3, 19.3.1.4; of a
//! `rep` instruction, after every iteration). The handler compares the watched memory with poison:
//! a byte that differs has been written, is counted, and is poisoned again, so that a second store
//! of the same value shows as well. Poison is the complement of what is stored.
//!
//! The address of each instruction and the registers it found are kept, so that a test can ask what
//! was executed and where it stored. That second way to count serves where poison can't: a call
//! whose source overlaps its destination would copy the poison.

use crate::common::memory::Guarded;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
};
use std::arch::asm;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Mutex, Once, PoisonError};

/// What one call did.
pub struct Steps {
    /// How often each watched byte was written.
    pub stores: Vec<u8>,
    /// The instruction count at each watched byte's last store.
    pub last_store: Vec<u32>,
    /// The instructions, in order; `rep` iterations one by one.
    executed: Vec<Executed>,
}

/// An instruction about to be executed.
#[derive(Clone, Copy)]
struct Executed {
    address: u64,
    /// In the order of [`GENERAL`].
    general: [u64; GENERAL.len()],
}

#[cfg(target_arch = "x86_64")]
const GENERAL: [(libc::c_int, Register); 16] = [
    (libc::REG_RAX, Register::RAX),
    (libc::REG_RBX, Register::RBX),
    (libc::REG_RCX, Register::RCX),
    (libc::REG_RDX, Register::RDX),
    (libc::REG_RSI, Register::RSI),
    (libc::REG_RDI, Register::RDI),
    (libc::REG_RBP, Register::RBP),
    (libc::REG_RSP, Register::RSP),
    (libc::REG_R8, Register::R8),
    (libc::REG_R9, Register::R9),
    (libc::REG_R10, Register::R10),
    (libc::REG_R11, Register::R11),
    (libc::REG_R12, Register::R12),
    (libc::REG_R13, Register::R13),
    (libc::REG_R14, Register::R14),
    (libc::REG_R15, Register::R15),
];

#[cfg(target_arch = "x86_64")]
const PC: libc::c_int = libc::REG_RIP;

#[cfg(target_arch = "x86")]
const GENERAL: [(libc::c_int, Register); 8] = [
    (libc::REG_EAX, Register::EAX),
    (libc::REG_EBX, Register::EBX),
    (libc::REG_ECX, Register::ECX),
    (libc::REG_EDX, Register::EDX),
    (libc::REG_ESI, Register::ESI),
    (libc::REG_EDI, Register::EDI),
    (libc::REG_EBP, Register::EBP),
    (libc::REG_ESP, Register::ESP),
];

#[cfg(target_arch = "x86")]
const PC: libc::c_int = libc::REG_EIP;

/// What the handler works on: plain memory, sized before the first trap.
struct Watch {
    first: *mut u8,
    len: usize,
    poison: *const u8,
    stores: *mut u8,
    last_store: *mut u32,
    executed: *mut Executed,
    capacity: usize,
    steps: usize,
}

/// The watch of the thread that is being stepped: one at a time.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

extern "C" fn on_trap(_signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let watch = WATCH.load(Relaxed);
    if watch.is_null() {
        return;
    }
    // SAFETY: `steps` keeps the watch alive while traps can come, and waits for them.
    let watch = unsafe { &mut *watch };
    // SAFETY: the kernel hands a `ucontext_t` to an `SA_SIGINFO` handler.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize] as usize as u64;
    let general = GENERAL.map(|(number, _)| register(number));
    let executed = Executed { address: register(PC), general };
    if watch.steps < watch.capacity {
        // SAFETY: below the capacity.
        unsafe { watch.executed.add(watch.steps).write(executed) };
    }
    watch.steps += 1;
    let mut i = 0;
    while i < watch.len {
        // SAFETY: `i` is inside the watched bytes, as all the arrays are at least as long, and
        // eight are read only where there are eight. Volatile: written by the stepped code.
        unsafe {
            if i % 8 == 0 && i + 8 <= watch.len {
                let seen = watch.first.add(i).cast::<u64>().read_unaligned();
                if seen == watch.poison.add(i).cast::<u64>().read_unaligned() {
                    i += 8;
                    continue;
                }
            }
            let seen = watch.first.add(i).read_volatile();
            if seen != *watch.poison.add(i) {
                *watch.stores.add(i) = (*watch.stores.add(i)).saturating_add(1);
                *watch.last_store.add(i) = watch.steps as u32;
                watch.first.add(i).write_volatile(*watch.poison.add(i));
            }
        }
        i += 1;
    }
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: all zeroes is a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_trap as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the handler does only what a handler may.
        let result = unsafe { libc::sigaction(libc::SIGTRAP, &action, null_mut()) };
        assert_eq!(result, 0, "sigaction: {}", std::io::Error::last_os_error());
    });
}

/// Steps through `call(destination)`. It writes into `memory[at..at + expected.len()]`, where it
/// stores `expected`; all of `memory[watched]` is watched.
pub fn steps(
    memory: &mut Guarded,
    watched: std::ops::Range<usize>,
    at: usize,
    expected: &[u8],
    call: impl FnOnce(*mut u8),
) -> Steps {
    const CAPACITY: usize = 1 << 20;
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    install();

    let len = watched.len();
    let mut poison = vec![0x5a; len];
    let offset = at - watched.start;
    for (poison, stored) in poison[offset..].iter_mut().zip(expected) {
        *poison = !stored;
    }
    memory[watched.clone()].copy_from_slice(&poison);

    let mut steps = Steps {
        stores: vec![0; len],
        last_store: vec![0; len],
        executed: Vec::with_capacity(CAPACITY),
    };
    let first = memory.as_mut_ptr();
    let mut watch = Watch {
        // SAFETY: inside the memory.
        first: unsafe { first.add(watched.start) },
        len,
        poison: poison.as_ptr(),
        stores: steps.stores.as_mut_ptr(),
        last_store: steps.last_store.as_mut_ptr(),
        executed: steps.executed.as_mut_ptr(),
        capacity: CAPACITY,
        steps: 0,
    };
    // SAFETY: inside the memory.
    let destination = unsafe { first.add(at) };
    WATCH.store(ptr::from_mut(&mut watch), Relaxed);
    // SAFETY: TF makes each instruction trap to our handler, which is installed.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq");
    }
    // SAFETY: as above.
    #[cfg(target_arch = "x86")]
    unsafe {
        asm!("pushfd", "or dword ptr [esp], 0x100", "popfd");
    }
    call(destination);
    // SAFETY: clears TF again.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("pushfq", "and dword ptr [rsp], ~0x100", "popfq");
    }
    // SAFETY: as above.
    #[cfg(target_arch = "x86")]
    unsafe {
        asm!("pushfd", "and dword ptr [esp], ~0x100", "popfd");
    }
    WATCH.store(null_mut(), Relaxed);

    assert!(watch.steps <= CAPACITY, "the call took too many instructions to keep");
    assert!(watch.steps > 0, "single stepping doesn't work here");
    // SAFETY: as many have been written.
    unsafe { steps.executed.set_len(watch.steps) };
    steps
}

impl Steps {
    /// The executed instructions, decoded; the first, which only sets the flag, is missing.
    pub fn instructions(&self) -> impl Iterator<Item = Instruction> + '_ {
        self.executed.iter().map(|executed| {
            let address = executed.address;
            // SAFETY: the CPU has just executed code there. 15 bytes is the longest instruction;
            // code is followed by more of the program's image.
            let bytes = unsafe { std::slice::from_raw_parts(address as usize as *const u8, 15) };
            Decoder::with_ip(usize::BITS, bytes, address, DecoderOptions::NONE).decode()
        })
    }

    /// How often each byte of `range` was stored to, whatever the value, by the operands of the
    /// instructions.
    pub fn stores_by_operands(&self, range: &[u8]) -> Vec<u32> {
        let first = range.as_ptr().addr();
        let mut counts = vec![0; range.len()];
        let mut factory = InstructionInfoFactory::new();
        for (instruction, executed) in self.instructions().zip(&self.executed) {
            let value = |register: Register| {
                let at = GENERAL.iter().position(|(_, known)| *known == register)?;
                Some(executed.general[at])
            };
            let memory = factory.info(&instruction).used_memory().to_vec();
            for memory in memory.iter().filter(|memory| writes(memory.access())) {
                let address = memory.virtual_address(0, |register, _, _| match register {
                    Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
                    // Thread-local memory isn't what we watch.
                    Register::FS | Register::GS => None,
                    register => value(register),
                });
                let Some(address) = address else { continue };
                let len = memory.memory_size().size();
                for at in (address as usize..).take(len) {
                    if let Some(count) = at.checked_sub(first).and_then(|i| counts.get_mut(i)) {
                        *count += 1;
                    }
                }
            }
        }
        counts
    }

    /// Whether a store that goes around the cache was executed.
    pub fn has_nontemporal_store(&self) -> bool {
        self.instructions().any(|instruction| is_nontemporal_store(instruction.mnemonic()))
    }

    pub fn has_fence(&self) -> bool {
        self.instructions().any(|instruction| instruction.mnemonic() == Mnemonic::Sfence)
    }

    /// Whether a non-temporal store was left without a fence after it.
    pub fn has_pending_store(&self) -> bool {
        let mut pending = false;
        for instruction in self.instructions() {
            match instruction.mnemonic() {
                Mnemonic::Sfence => pending = false,
                mnemonic if is_nontemporal_store(mnemonic) => pending = true,
                _ => {}
            }
        }
        pending
    }
}

pub fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// The x86 stores that are weakly ordered: the `movnt` family, and `movdir64b`, `movdiri` and
/// `clzero`, which are ordered as weakly.
pub fn is_nontemporal_store(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Clzero, Maskmovdqu, Maskmovq, Movdir64b, Movdiri, Movntdq, Movnti, Movntpd, Movntps,
        Movntq, Movntsd, Movntss, Vmaskmovdqu, Vmovntdq, Vmovntpd, Vmovntps,
    };
    [
        Clzero,
        Maskmovdqu,
        Maskmovq,
        Movdir64b,
        Movdiri,
        Movntdq,
        Movnti,
        Movntpd,
        Movntps,
        Movntq,
        Movntsd,
        Movntss,
        Vmaskmovdqu,
        Vmovntdq,
        Vmovntpd,
        Vmovntps,
    ]
    .contains(&mnemonic)
}
