//! Where the facts come from: the CPUID and XGETBV instructions, or what an Arm CPU has instead,
//! behind a trait.
//!
//! The instructions are in assembly or an intrinsic that needs no target feature: this code runs
//! before anything is known about the CPU. Not handled: an i486 without CPUID, on which the
//! instruction faults; Rust's x86 targets start at the Pentium.

use super::Arm;

/// The four registers that CPUID answers in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

/// Answers for one CPU.
///
/// A reader repeats what the hardware says, rubbish included: a Pentium II answers a leaf beyond
/// its maximum with the data of another one. The decoding checks the maximum leaves first.
pub trait Reader {
    /// The CPUID instruction.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> Registers;

    /// Extended control register 0: which register state the operating system saves. Called only
    /// when CPUID says OSXSAVE.
    fn xcr0(&self) -> u64;

    /// Whether xmm registers may be used at all. User space can take it for granted; a kernel
    /// answers from CR4.OSFXSR, which is still clear while it starts.
    fn os_saves_xmm(&self) -> bool {
        true
    }

    /// What an Arm CPU says; `None` of any other.
    fn arm(&self) -> Option<Arm> {
        None
    }
}

/// The CPU this code runs on.
///
/// On a target without CPUID, and under Miri, which cannot run assembly, every answer is zero: no
/// features. macOS enables the AVX-512 state only on first use, so there it shows as not enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

#[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "sgx"), not(miri)))]
#[allow(unsafe_code)]
impl Reader for Native {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> Registers {
        #[cfg(target_arch = "x86")]
        use core::arch::x86::__cpuid_count;
        #[cfg(target_arch = "x86_64")]
        use core::arch::x86_64::__cpuid_count;

        // SAFETY: every CPU of these targets has CPUID, and the instruction touches no memory.
        // (The intrinsic became a safe function in a later release than the oldest we build with.)
        #[allow(unused_unsafe)]
        let answer = unsafe { __cpuid_count(leaf, subleaf) };
        Registers { eax: answer.eax, ebx: answer.ebx, ecx: answer.ecx, edx: answer.edx }
    }

    fn xcr0(&self) -> u64 {
        const OSXSAVE: u32 = 1 << 27;
        if self.cpuid(0, 0).eax < 1 || self.cpuid(1, 0).ecx & OSXSAVE == 0 {
            return 0;
        }
        let (low, high): (u32, u32);
        // SAFETY:
        // - XGETBV exists and is enabled, as OSXSAVE has just said;
        // - register 0 exists wherever XGETBV does;
        // - it writes EDX:EAX, both declared, and touches neither memory nor flags.
        unsafe {
            core::arch::asm!(
                "xgetbv",
                in("ecx") 0,
                out("eax") low,
                out("edx") high,
                options(nomem, nostack, preserves_flags),
            );
        }
        u64::from(high) << 32 | u64::from(low)
    }
}

#[cfg(not(all(
    any(target_arch = "x86", target_arch = "x86_64"),
    not(target_env = "sgx"),
    not(miri)
)))]
impl Reader for Native {
    fn cpuid(&self, _leaf: u32, _subleaf: u32) -> Registers {
        Registers::default()
    }

    fn xcr0(&self) -> u64 {
        0
    }

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    fn arm(&self) -> Option<Arm> {
        let (ctr, dczid): (u64, u64);
        // SAFETY: these two registers may be read at every exception level (Linux and the BSDs allow
        // it, or answer for the CPU), which touches no memory.
        unsafe {
            core::arch::asm!(
                "mrs {}, ctr_el0",
                "mrs {}, dczid_el0",
                out(reg) ctr,
                out(reg) dczid,
                options(nomem, nostack, preserves_flags),
            );
        }
        // What the build takes for granted needs nobody to announce it.
        let built_in = if cfg!(target_feature = "neon") { Arm::A64_ASIMD } else { 0 };
        let hwcap = auxiliary(AT_HWCAP) | built_in;
        Some(Arm::A64 { hwcap, hwcap2: auxiliary(AT_HWCAP2), ctr, dczid })
    }

    #[cfg(all(target_arch = "arm", not(miri)))]
    fn arm(&self) -> Option<Arm> {
        Some(Arm::A32 { hwcap: auxiliary(AT_HWCAP), ctr: None })
    }
}

#[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), not(miri)))]
const AT_HWCAP: core::ffi::c_ulong = 16;
#[cfg(all(target_arch = "aarch64", not(miri)))]
const AT_HWCAP2: core::ffi::c_ulong = 26;

/// A value of the auxiliary vector; 0 where there is none, which means no features: a kernel answers
/// for itself.
#[cfg(all(any(target_arch = "aarch64", target_arch = "arm"), not(miri)))]
fn auxiliary(kind: core::ffi::c_ulong) -> u64 {
    #[cfg(all(feature = "std", target_os = "linux"))]
    {
        unsafe extern "C" {
            safe fn getauxval(kind: core::ffi::c_ulong) -> core::ffi::c_ulong;
        }
        #[allow(clippy::useless_conversion, reason = "32 bits on a 32-bit system")]
        return getauxval(kind).into();
    }
    #[cfg(not(all(feature = "std", target_os = "linux")))]
    {
        let _ = kind;
        0
    }
}
