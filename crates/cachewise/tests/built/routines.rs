//! The checks, each over all routines of the registry, available here or not.

use super::common::title;
use super::image::{
    Effect, Image, Paths, Walk, accesses_memory, destination_register, is_vector, registers, visit,
};
use super::saved;
use super::step::is_nontemporal_store;
use crate::say;
use cachewise::cpu::Features;
use cachewise::variant::{self, Operation, Prefetch, RegisterClass, Store, Variant};
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use std::collections::BTreeSet;

/// The routine without rows: it walks backward over ranges that overlap, so a fault would leave
/// its *end* done, which no fix-up here can express.
const WITHOUT_ROWS: &str = "copy_backward";

/// Where i686 stores an answer of three words to the caller's own memory.
const ANSWERS: Option<&str> = if cfg!(target_arch = "x86") { Some("word_done") } else { None };

/// Entries that are no variant of copying or clearing: they have no row in the registry.
const BESIDE_THE_REGISTRY: [&str; 14] = [
    WITHOUT_ROWS,
    "read_1",
    "read_2",
    "read_4",
    "read_8",
    "write_1",
    "write_2",
    "write_4",
    "write_8",
    "swap_4",
    "swap_8",
    "compare_exchange_4",
    "compare_exchange_8",
    "string_end",
];

/// The rows in assembly. None is a build of plain Rust, which says so.
fn assembly() -> impl Iterator<Item = &'static Variant> {
    variant::all().iter().filter(|v| v.recoverable())
}

/// The image, or `None` after saying why not.
fn image() -> Option<&'static Image> {
    if assembly().next().is_none() {
        say!("cannot run here: this build is plain Rust, there is no code of ours to check");
        return None;
    }
    let image = Image::own();
    assert!(!image.functions.is_empty(), "no routine found in the binary (stripped?)");
    Some(image)
}

fn text(image: &Image, at: u64) -> String {
    let instruction = &image.instructions[&at];
    format!("{} ({:?})", image.place(at), instruction.code())
}

/// Every routine of the registry with all the code it can reach.
fn each_routine(image: &Image, check: impl Fn(&'static Variant, &BTreeSet<u64>)) {
    for variant in assembly() {
        check(variant, &visit(image, image.routine(variant).start, true));
    }
}

fn at_once<'a>(
    image: &'a Image,
    addresses: &'a BTreeSet<u64>,
) -> impl Iterator<Item = (u64, &'a Instruction)> {
    addresses.iter().map(|at| (*at, &image.instructions[at]))
}

// ---- Fences. ----

fn store_or_fence(instruction: &Instruction) -> Option<bool> {
    match instruction.mnemonic() {
        Mnemonic::Sfence => Some(false),
        mnemonic => is_nontemporal_store(mnemonic).then_some(true),
    }
}

#[track_caller]
fn nothing_pending(image: &Image, paths: &Paths, what: &str) {
    for &(at, pending) in &paths.returns {
        assert!(!pending, "{what} at {}", image.place(at));
    }
}

#[test]
fn every_path_from_a_nontemporal_store_to_a_return_is_fenced() {
    let Some(image) = image() else { return };
    let walk = Walk { image, with_faults: true, effect: store_or_fence };
    let stores = image.instructions.values().filter(|i| is_nontemporal_store(i.mnemonic())).count();
    assert!(stores > 0, "no non-temporal store found: the check would be empty");
    for function in &image.functions {
        if function.name.ends_with("_unfenced") {
            continue;
        }
        let paths = walk.from(function.start, false);
        nothing_pending(image, &paths, &format!("{}: returns unfenced", function.name));
    }
    // The way through a fix-up fences by itself: also for the unfenced entries, and whatever was
    // pending when the fault came.
    // (On a CPU that may have no fence, only where there can be something to fence.)
    let fences = |v: &&Variant| cfg!(target_arch = "x86_64") || v.store() == Store::NonTemporal;
    let entries = assembly().filter(fences).map(|variant| image.routine(variant).start);
    let before_faults: BTreeSet<u64> =
        entries.flat_map(|entry| visit(image, entry, false)).collect();
    let rows: Vec<_> = image.rows.iter().filter(|row| before_faults.contains(&row.pc)).collect();
    assert!(!rows.is_empty(), "no access with a row found: the check would be empty");
    for row in rows {
        let paths = walk.from(row.fixup, true);
        let from = format!("fault at {}: returns unfenced", image.place(row.pc));
        nothing_pending(image, &paths, &from);
    }
}

#[test]
fn unfenced_entries_are_what_their_fenced_callers_call() {
    let Some(image) = image() else { return };
    let without_faults = Walk { image, with_faults: false, effect: store_or_fence };
    for variant in assembly() {
        let routine = image.routine(variant);
        if variant.store() != Store::NonTemporal {
            continue;
        }
        let unfenced = image.named(&format!("{}_unfenced", routine.name));
        let code = image.instructions.range(routine.start..routine.end).map(|(_, i)| i);
        let steps: Vec<&Instruction> =
            code.filter(|i| !matches!(i.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Nop)).collect();
        let mnemonics: Vec<Mnemonic> = steps.iter().map(|i| i.mnemonic()).collect();
        let (push, call) = match variant.operation() {
            _ if cfg!(target_arch = "x86_64") => (0, &[Mnemonic::Call][..]),
            Operation::Copy => (3, &[Mnemonic::Call, Mnemonic::Add][..]),
            Operation::Clear => (4, &[Mnemonic::Call, Mnemonic::Add][..]),
        };
        let expected = [&vec![Mnemonic::Push; push], call, &[Mnemonic::Sfence, Mnemonic::Ret]];
        assert_eq!(mnemonics, expected.concat(), "{}", routine.name);
        assert_eq!(steps[push].near_branch_target(), unfenced.start, "{}", routine.name);
        // And it is worth its name: one fence for a batch, none per copy. (The control of the test
        // above, too: a path without a fence is found.)
        let paths = without_faults.from(unfenced.start, false);
        let pending = paths.returns.iter().any(|&(_, pending)| pending);
        assert!(pending, "{} fences by itself", unfenced.name);
    }
}

#[test]
fn ordinary_stores_are_not_fenced() {
    let Some(image) = image() else { return };
    // On a CPU that may have no fence, not after a fault either.
    let with_faults = cfg!(target_arch = "x86");
    for variant in assembly().filter(|v| v.store() != Store::NonTemporal) {
        let reached = visit(image, image.routine(variant).start, with_faults);
        for (at, instruction) in at_once(image, &reached) {
            let fence = matches!(
                instruction.mnemonic(),
                Mnemonic::Sfence | Mnemonic::Mfence | Mnemonic::Lfence
            );
            assert!(!fence, "{}: {}", title(variant), text(image, at));
        }
    }
}

// ---- What a row of the registry says is what its routine does. ----

#[test]
fn routines_touch_the_registers_their_rows_say() {
    let Some(image) = image() else { return };
    each_routine(image, |variant, reached| {
        let (mut mmx, mut vector) = (None, None);
        for (at, instruction) in at_once(image, reached) {
            for (register, _) in registers(instruction) {
                mmx = mmx.or((register.is_mm() || register.is_st()).then_some(at));
                vector = vector.or(is_vector(register).then_some(at));
            }
        }
        let (allow_mmx, allow_vector) = match variant.registers() {
            RegisterClass::General => (false, false),
            RegisterClass::Mmx => (true, false),
            RegisterClass::Vector => (false, true),
        };
        for (found, allowed, kind) in [(mmx, allow_mmx, "MMX"), (vector, allow_vector, "vector")] {
            match found {
                Some(at) if !allowed => {
                    panic!("{}: {kind} register at {}", title(variant), text(image, at))
                }
                None if allowed => panic!("{} uses no {kind} register", title(variant)),
                _ => {}
            }
        }
    });
}

#[test]
fn routines_store_and_prefetch_as_their_rows_say() {
    let Some(image) = image() else { return };
    each_routine(image, |variant, reached| {
        let any = |is: fn(&Instruction) -> bool| at_once(image, reached).any(|(_, i)| is(i));
        let around = any(|i| is_nontemporal_store(i.mnemonic()));
        let string = any(|i| i.has_rep_prefix());
        let prefetch = any(|i| i.mnemonic() == Mnemonic::Prefetchnta);
        assert_eq!(around, variant.store() == Store::NonTemporal, "{}: stores", title(variant));
        assert_eq!(string, variant.store() == Store::Implementation, "{}: rep", title(variant));
        assert_eq!(prefetch, variant.prefetch() == Prefetch::Nta, "{}: prefetch", title(variant));
    });
}

/// What the decoder says an instruction needs, in our terms. It knows one feature less: `movnti` came
/// with SSE2, the fence, the prefetch and `movntq` with SSE or with AMD's extensions to MMX.
fn needs(instruction: &Instruction) -> Features {
    match instruction.mnemonic() {
        Mnemonic::Movnti => Features::MOVNTI,
        Mnemonic::Sfence | Mnemonic::Prefetchnta | Mnemonic::Movntq => Features::MMXEXT,
        _ => {
            // The decoder's names are Linux's in capitals; those of old are unknown here.
            let names = instruction.cpuid_features().iter();
            let names = names.map(|feature| format!("{feature:?}").to_lowercase());
            let features = names.filter_map(|name| Features::from_name(&name));
            features.fold(Features::empty(), Features::union)
        }
    }
}

/// Beyond what every CPU of the architecture has, a routine uses what its row says it needs, and
/// what no CPU has that without.
#[test]
fn routines_need_the_features_their_rows_say() {
    let every_x86_64 = [Features::SSE2, Features::MOVNTI];
    let implied = [
        (Features::AVX, Features::SSE2),
        (Features::SSE2, Features::SSE),
        (Features::MOVNTI, Features::MMXEXT),
        (Features::SSE, Features::MMX.union(Features::MMXEXT)),
    ];
    let Some(image) = image() else { return };
    each_routine(image, |variant, reached| {
        let used = at_once(image, reached).map(|(_, i)| needs(i));
        let used = used.fold(Features::empty(), Features::union);
        let mut declared = variant.required_features();
        if cfg!(target_arch = "x86_64") {
            declared = every_x86_64.into_iter().fold(declared, Features::union);
        }
        for (feature, with) in implied {
            if declared.contains(feature) {
                declared = declared.union(with);
            }
        }
        let undeclared = used.without(declared);
        assert!(undeclared.is_empty(), "{} uses {undeclared} and doesn't need it", title(variant));
    });
    for name in BESIDE_THE_REGISTRY {
        let reached = visit(image, image.named(name).start, false);
        for (at, instruction) in at_once(image, &reached) {
            assert!(needs(instruction).is_empty(), "{name}: {}", text(image, at));
        }
    }
}

/// `vzeroupper` is about the upper halves of the first sixteen: left dirty they slow the SSE code
/// that follows.
fn upper_halves(instruction: &Instruction) -> Option<bool> {
    if matches!(instruction.mnemonic(), Mnemonic::Vzeroupper | Mnemonic::Vzeroall) {
        return Some(false);
    }
    let wide = |r: &Register| (r.is_ymm() || r.is_zmm()) && r.number() < 16;
    destination_register(instruction).filter(wide).map(|_| true)
}

fn mmx_state(instruction: &Instruction) -> Option<bool> {
    if instruction.mnemonic() == Mnemonic::Emms {
        return Some(false);
    }
    registers(instruction).iter().any(|(register, _)| register.is_mm()).then_some(true)
}

#[test]
fn every_path_leaves_clean_register_states() {
    let Some(image) = image() else { return };
    let checks: [(&str, Effect); 2] =
        [("without vzeroupper", upper_halves), ("without emms", mmx_state)];
    for (what, effect) in checks {
        let dirty = image.instructions.values().filter(|i| effect(i) == Some(true)).count();
        assert!(dirty > 0, "nothing to clean found: the check would be empty");
        let walk = Walk { image, with_faults: true, effect };
        for function in &image.functions {
            let paths = walk.from(function.start, false);
            nothing_pending(image, &paths, &format!("{}: returns {what}", function.name));
        }
    }
}

#[test]
fn callee_saved_registers_the_stack_and_the_direction_flag_are_as_before() {
    let Some(image) = image() else { return };
    for (&at, instruction) in &image.instructions {
        assert_ne!(instruction.mnemonic(), Mnemonic::Std, "{}", text(image, at));
    }
    let unfenced = |name: &str| image.named(&format!("{name}_unfenced")).start;
    for variant in assembly() {
        let routine = image.routine(variant);
        assert!(saved::check(image, routine.start) > 0);
        if variant.store() == Store::NonTemporal {
            assert!(saved::check(image, unfenced(&routine.name)) > 0);
        }
    }
    for name in BESIDE_THE_REGISTRY {
        assert!(saved::check(image, image.named(name).start) > 0);
    }
}

// ---- The exception table. ----

#[test]
fn every_access_has_its_row_and_every_row_its_access() {
    let Some(image) = image() else { return };
    assert!(!image.rows.is_empty(), "no exception table in the binary");
    assert!(image.table_is_loaded, "the table is not loaded with the program");
    let without_rows = [Some(WITHOUT_ROWS), ANSWERS].into_iter().flatten();
    let without_rows: Vec<_> = without_rows.map(|name| image.named(name)).collect();
    let rows: BTreeSet<u64> = image.rows.iter().map(|row| row.pc).collect();
    for (&at, instruction) in &image.instructions {
        let without = without_rows.iter().any(|f| (f.start..f.end).contains(&at));
        let expected = accesses_memory(instruction) && !without;
        assert_eq!(rows.contains(&at), expected, "row for {}", text(image, at));
    }
    for row in &image.rows {
        let place = image.place(row.pc);
        assert!(image.instructions.contains_key(&row.pc), "a row for {place}: no instruction");
        let fixup = image.place(row.fixup);
        assert!(image.instructions.contains_key(&row.fixup), "{place}: fix-up {fixup}");
        let is_start = image.functions.iter().any(|f| f.start == row.fixup)
            || image.labels.iter().any(|&(_, at)| at == row.fixup);
        assert!(is_start, "{place}: the fix-up {fixup} has no name");
        // The largest block is a group of pages in step; a row counts within one of them.
        assert!(row.done_bytes <= 4096, "{place}: {} bytes done", row.done_bytes);
    }
}

#[test]
fn the_table_is_sorted() {
    let Some(image) = image() else { return };
    for pair in image.rows.windows(2) {
        let (before, after) = (image.place(pair[0].pc), image.place(pair[1].pc));
        assert!(pair[0].pc < pair[1].pc, "{before} comes before {after}");
    }
}

// ---- Layout. ----

/// Seeds row F5: a misaligned loop can cost a factor of two. The innermost loops count: what is
/// around them runs once for many of their rounds.
#[test]
fn innermost_loops_begin_at_32_byte_boundaries() {
    let Some(image) = image() else { return };
    let mut loops = Vec::new();
    for (&at, instruction) in &image.instructions {
        let branch = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        let Some(function) = image.function_at(at) else { continue };
        let target = if branch { instruction.near_branch_target() } else { continue };
        if target <= at && (function.start..function.end).contains(&target) {
            loops.push((target, at));
        }
    }
    assert!(!loops.is_empty(), "no loop found: the check would be empty");
    for &(target, at) in &loops {
        let inside = |&(start, end): &(u64, u64)| target < start && end < at;
        if !loops.iter().any(inside) {
            let place = image.place(target);
            assert_eq!(target % 32, 0, "the loop at {place}, closed at {}", text(image, at));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn entries_are_branch_targets_for_cet() {
    let Some(image) = image() else { return };
    for function in &image.functions {
        let first = image.instructions[&function.start].mnemonic();
        assert_eq!(first, Mnemonic::Endbr64, "{}", function.name);
    }
}

#[test]
fn every_function_is_reached_from_an_entry() {
    let Some(image) = image() else { return };
    let mut reached = BTreeSet::new();
    for variant in assembly() {
        reached.extend(visit(image, image.routine(variant).start, true));
    }
    for entry in BESIDE_THE_REGISTRY.map(|name| image.named(name)) {
        assert!(!reached.contains(&entry.start), "{} is the registry's", entry.name);
    }
    for entry in BESIDE_THE_REGISTRY.map(|name| image.named(name)) {
        reached.extend(visit(image, entry.start, true));
    }
    for function in &image.functions {
        assert!(reached.contains(&function.start), "nothing leads to {}", function.name);
    }
    assert_eq!(
        image.strangers,
        [""; 0],
        "symbols inside our code that lack {}",
        super::image::PREFIX
    );
    for (label, at) in &image.labels {
        assert!(image.function_at(*at).is_some(), "{label} is not inside a function");
    }
}

#[test]
fn no_symbol_is_exported_and_the_stack_is_not_executable() {
    let image = Image::own();
    let exported: Vec<_> = image.exported.iter().filter(|n| n.starts_with("cachewise_")).collect();
    assert!(exported.is_empty(), "exported: {exported:?}");
    let flags = image.stack_flags.expect("the binary says what its stack may do");
    assert_eq!(flags & object::elf::PF_X.0, 0, "the stack is executable");
}
