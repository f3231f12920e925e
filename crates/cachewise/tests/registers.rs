//! What a call must leave as it is: the registers the calling convention gives to the caller, the
//! modes (on x86 the direction flag, MXCSR, the x87 control word and an empty x87 stack); and for
//! variants that say "general registers", every vector and mask register (seeds rows M3, Y6).
//!
//! A trampoline loads sentinels, calls, and stores what it finds. It calls the handle's
//! raw call, so the way to the routine is under test as well as the routine.

mod common;

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", cachewise_armv7),
    unix,
    not(miri)
))]
#[cfg_attr(target_arch = "x86_64", path = "common/probe.rs")]
#[cfg_attr(target_arch = "x86", path = "common/probe_x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "common/probe_aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "common/probe_arm.rs")]
mod probe;

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", cachewise_armv7),
    unix,
    not(miri)
)))]
#[test]
#[ignore = "needs an architecture with assembly, and native code"]
fn registers() {}

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", cachewise_armv7),
    unix,
    not(miri)
))]
mod native {
    use super::common::memory::Guarded;
    use super::common::{Handle, exclusive, for_each_variant, title};
    use super::probe::{Called, Probe, vector_bytes};
    use super::say;
    use cachewise::policy::{self, Gate, Threshold};
    use cachewise::variant::{RegisterClass, Variant};

    /// # Safety
    ///
    /// As `Copier::copy_raw`; the handle copies.
    unsafe extern "C" fn copy(handle: *const Handle, dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        if let Handle::Copy(copier) = unsafe { &*handle } {
            // SAFETY: the caller's promise.
            unsafe { copier.copy_raw(dst, src, len) }
        }
    }

    /// # Safety
    ///
    /// As `Clearer::fill_raw`; the value is the address of `value`.
    unsafe extern "C" fn fill(handle: *const Handle, dst: *mut u8, value: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        if let Handle::Clear(clearer) = unsafe { &*handle } {
            // SAFETY: the caller's promise.
            unsafe { clearer.fill_raw(dst, value.addr() as u8, len) }
        }
    }

    /// # Safety
    ///
    /// As `copy_nontemporal_raw`.
    unsafe extern "C" fn copy_public(_: *const Handle, dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { cachewise::bytes::copy_nontemporal_raw(dst, src, len) }
    }

    const LENGTHS: [usize; 17] =
        [0, 1, 7, 8, 16, 31, 33, 63, 64, 65, 100, 129, 257, 511, 1000, 4099, 20_000];
    const ALIGNMENTS: [(usize, usize); 4] = [(0, 0), (1, 0), (0, 1), (37, 58)];

    fn each_call(test: impl Fn(*mut u8, *const u8, usize)) {
        let (mut dst, src) = (Guarded::new(40_000), Guarded::new(40_000));
        for len in LENGTHS {
            for (to, from) in ALIGNMENTS {
                test(dst[to..].as_mut_ptr(), src[from..].as_ptr(), len);
            }
        }
    }

    fn probe_variant(variant: &'static Variant, check: impl Fn(&Probe, &str)) {
        let handle = Handle::of(variant);
        let called: Called = match handle {
            Handle::Copy(_) => copy,
            Handle::Clear(_) => fill,
        };
        each_call(|dst, src, len| {
            let values = match handle {
                Handle::Copy(_) => vec![src],
                Handle::Clear(_) => vec![std::ptr::null(), std::ptr::without_provenance(0xa5)],
            };
            for second in values {
                let mut probe = Probe::new(called, &handle, dst, second, len);
                probe.run();
                check(&probe, &format!("{}, {len} bytes", title(variant)));
            }
        });
    }

    #[test]
    fn callee_saved_registers_and_modes() {
        for_each_variant(|_| true, |variant| probe_variant(variant, Probe::check_convention));
    }

    /// Plain Rust is the exception: which registers the platform's `memcpy` uses is not ours to say
    /// outside a kernel, where the compiler has been told.
    #[test]
    fn vector_registers_of_variants_without_vectors() {
        let without_vectors = |v: &Variant| v.registers() != RegisterClass::Vector;
        say!("vector registers compared: {} bytes wide", vector_bytes());
        for_each_variant(
            |v| without_vectors(v) && !v.recoverable(),
            |v| say!("not checked for vector registers: {} (plain Rust)", title(v)),
        );
        if !super::common::available().any(|v| without_vectors(v) && v.recoverable()) {
            say!("cannot run here: only plain Rust is in this build");
            return;
        }
        for_each_variant(
            |v| without_vectors(v) && v.recoverable(),
            |variant| probe_variant(variant, Probe::check_vectors),
        );
    }

    /// The test can fail: a variant with vector registers must be seen to use them.
    #[test]
    fn the_trampoline_sees_vector_registers_change() {
        let with_vectors = |v: &Variant| v.registers() == RegisterClass::Vector;
        if !super::common::available().any(with_vectors) {
            say!("cannot run here: no variant with vector registers");
            return;
        }
        for_each_variant(with_vectors, |variant| {
            let handle = Handle::of(variant);
            let (mut dst, src) = (Guarded::new(40_000), Guarded::new(40_000));
            let called: Called = match handle {
                Handle::Copy(_) => copy,
                Handle::Clear(_) => fill,
            };
            let mut probe = Probe::new(called, &handle, dst.as_mut_ptr(), src.as_ptr(), 20_000);
            probe.run();
            assert_ne!(probe.vectors[0], probe.vectors[1], "{}", title(variant));
        });
    }

    /// The public calls too. Vector registers are not compared there: the Rust around a routine uses
    /// what the compiler has been allowed, which outside a kernel is all of them.
    #[test]
    fn callee_saved_registers_and_modes_over_a_public_call() {
        use cachewise::switch::{self, Slot};
        let _alone = exclusive();
        let slot = Slot::CopyNontemporal;
        policy::set_threshold(Gate::CopyNontemporal, Threshold::Always);
        for_each_variant(
            |v| slot.accepts(v),
            |variant| {
                switch::set(slot, variant).expect("the slot accepts it");
                let handle = Handle::of(variant);
                each_call(|dst, src, len| {
                    let mut probe = Probe::new(copy_public, &handle, dst, src, len);
                    probe.run();
                    let by = format!("copy_nontemporal by {}, {len} bytes", variant.name());
                    probe.check_convention(&by);
                });
            },
        );
    }
}
