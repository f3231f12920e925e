//! The library's routines in a binary: functions, instructions, exception table, and the walk over
//! all paths.

use cachewise::variant::Variant;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use object::elf::SHF_ALLOC;
#[cfg(target_pointer_width = "32")]
use object::read::elf::ElfFile32 as ElfFile;
#[cfg(target_pointer_width = "64")]
use object::read::elf::ElfFile64 as ElfFile;
use object::read::elf::ProgramHeader as _;
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, SymbolKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

pub(crate) const PREFIX: &str = concat!(
    "cachewise_",
    env!("CARGO_PKG_VERSION_MAJOR"),
    "_",
    env!("CARGO_PKG_VERSION_MINOR"),
    "_",
    env!("CARGO_PKG_VERSION_PATCH"),
    "_"
);

const TABLE: &str = concat!(
    "cachewise_ex_",
    env!("CARGO_PKG_VERSION_MAJOR"),
    "_",
    env!("CARGO_PKG_VERSION_MINOR"),
    "_",
    env!("CARGO_PKG_VERSION_PATCH"),
);

pub(crate) struct Function {
    /// Without the prefix.
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A row of the exception table, made absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) pc: u64,
    pub(crate) fixup: u64,
    pub(crate) done_bytes: u32,
}

#[derive(Default)]
pub(crate) struct Image {
    /// By address.
    pub(crate) functions: Vec<Function>,
    /// Names, without the prefix, of symbols that are not functions, with their addresses.
    pub(crate) labels: Vec<(String, u64)>,
    /// Names of symbols inside our code that are not ours.
    pub(crate) strangers: Vec<String>,
    pub(crate) instructions: BTreeMap<u64, Instruction>,
    /// In the table's order.
    pub(crate) rows: Vec<Row>,
    pub(crate) table_is_loaded: bool,
    pub(crate) exported: Vec<String>,
    /// The flags of `PT_GNU_STACK`.
    pub(crate) stack_flags: Option<u32>,
}

impl Image {
    /// This test's own binary.
    pub(crate) fn own() -> &'static Self {
        static OWN: OnceLock<Image> = OnceLock::new();
        OWN.get_or_init(|| {
            let path = std::env::current_exe().expect("this binary's path");
            let bytes = std::fs::read(path).expect("this binary can be read");
            Self::parse(&bytes)
        })
    }

    fn parse(bytes: &[u8]) -> Self {
        let file = ElfFile::<Endianness>::parse(bytes).expect("an ELF file");
        let mut image = Self::default();
        for symbol in file.symbols() {
            let Some(name) = symbol.name().ok().and_then(|n| n.strip_prefix(PREFIX)) else {
                continue;
            };
            let (name, start) = (name.to_owned(), symbol.address());
            if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
                image.functions.push(Function { name, start, end: start + symbol.size() });
            } else {
                image.labels.push((name, start));
            }
        }
        image.functions.sort_by_key(|f| f.start);

        for function in &image.functions {
            let len = function.end - function.start;
            let code = file
                .sections()
                .find_map(|s| s.data_range(function.start, len).ok().flatten())
                .expect("a function lies in a section");
            let decoder = Decoder::with_ip(usize::BITS, code, function.start, DecoderOptions::NONE);
            image.instructions.extend(decoder.into_iter().map(|i| (i.ip(), i)));
        }

        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or_default();
            let inside = image.function_at(symbol.address()).is_some();
            if inside && symbol.kind() != SymbolKind::Section && !name.starts_with(PREFIX) {
                image.strangers.push(name.to_owned());
            }
        }

        if let Some(table) = file.section_by_name(TABLE) {
            image.table_is_loaded = match table.flags() {
                SectionFlags::Elf { sh_flags, .. } => sh_flags.0 & SHF_ALLOC.0 != 0,
                _ => false,
            };
            let data = table.data().expect("the table has data");
            assert_eq!(data.len() % 12, 0, "rows of 12 bytes");
            for (i, row) in data.chunks_exact(12).enumerate() {
                let at = table.address() + 12 * i as u64;
                let word = |i: usize| [row[i], row[i + 1], row[i + 2], row[i + 3]];
                let relative = |i: usize| {
                    let offset = i64::from(i32::from_le_bytes(word(i)));
                    (at + i as u64).wrapping_add_signed(offset)
                };
                let done_bytes = u32::from_le_bytes(word(8));
                image.rows.push(Row { pc: relative(0), fixup: relative(4), done_bytes });
            }
        }

        let exported = file.dynamic_symbols().filter(|s| !s.is_undefined());
        image.exported = exported.filter_map(|s| s.name().ok().map(str::to_owned)).collect();
        let endian = file.endian();
        let mut headers = file.elf_program_headers().iter();
        image.stack_flags = headers
            .find(|h| h.p_type(endian) == object::elf::PT_GNU_STACK)
            .map(|h| h.p_flags(endian).0);
        image
    }

    pub(crate) fn function_at(&self, address: u64) -> Option<&Function> {
        let after = self.functions.partition_point(|f| f.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address < function.end).then_some(function)
    }

    /// Where in the code, for a message.
    pub(crate) fn place(&self, address: u64) -> String {
        match self.function_at(address) {
            Some(function) => format!("{}+{:#x}", function.name, address - function.start),
            None => format!("{address:#x}, outside all routines"),
        }
    }

    pub(crate) fn named(&self, name: &str) -> &Function {
        let function = self.functions.iter().find(|f| f.name == name);
        function.unwrap_or_else(|| panic!("no function {PREFIX}{name} in the binary"))
    }

    /// The routine that a row of the registry calls.
    pub(crate) fn routine(&self, variant: &Variant) -> &Function {
        self.named(&format!("{}_{}", variant.operation(), variant.name()))
    }

    pub(crate) fn fixup(&self, pc: u64) -> Option<u64> {
        self.rows.iter().find(|row| row.pc == pc).map(|row| row.fixup)
    }
}

/// What is carried along a path: something is pending (a store unfenced, a register state dirty).
pub(crate) type Pending = bool;

/// What an instruction makes pending or settles; `None` leaves it.
pub(crate) type Effect = fn(&Instruction) -> Option<Pending>;

/// All paths from one address to a return.
pub(crate) struct Paths {
    /// Every instruction that can be reached.
    pub(crate) visited: BTreeSet<u64>,
    /// Every return that can be reached, with what is pending there.
    pub(crate) returns: BTreeSet<(u64, Pending)>,
}

pub(crate) struct Walk<'a> {
    pub(crate) image: &'a Image,
    /// Whether any access may fault.
    pub(crate) with_faults: bool,
    pub(crate) effect: Effect,
}

impl Walk<'_> {
    /// # Panics
    ///
    /// If a path leaves our code, or cannot be followed.
    pub(crate) fn from(&self, entry: u64, pending: Pending) -> Paths {
        let image = self.image;
        let mut paths = Paths { visited: BTreeSet::new(), returns: BTreeSet::new() };
        let mut seen = BTreeSet::new();
        let mut open = vec![(entry, pending)];
        while let Some((at, pending)) = open.pop() {
            if !seen.insert((at, pending)) {
                continue;
            }
            let place = || image.place(at);
            let instruction = image.instructions.get(&at).unwrap_or_else(|| {
                panic!("a path leads to {}, where no instruction starts", place())
            });
            paths.visited.insert(at);
            // A store that faults has not been done, and what was pending still is.
            if let (true, Some(fixup)) = (self.with_faults, image.fixup(at)) {
                open.push((fixup, pending));
            }
            let pending = (self.effect)(instruction).unwrap_or(pending);
            match instruction.flow_control() {
                FlowControl::Next => open.push((instruction.next_ip(), pending)),
                FlowControl::UnconditionalBranch => {
                    open.push((instruction.near_branch_target(), pending));
                }
                FlowControl::ConditionalBranch => {
                    open.push((instruction.next_ip(), pending));
                    open.push((instruction.near_branch_target(), pending));
                }
                FlowControl::Call => {
                    let callee = self.from(instruction.near_branch_target(), pending);
                    paths.visited.extend(&callee.visited);
                    let returned = callee.returns.iter().map(|&(_, pending)| pending);
                    open.extend(returned.map(|pending| (instruction.next_ip(), pending)));
                }
                FlowControl::Return => {
                    paths.returns.insert((at, pending));
                }
                other => panic!("{}: {other:?} cannot be followed", place()),
            }
        }
        assert!(!paths.returns.is_empty(), "no path from {} returns", image.place(entry));
        paths
    }
}

/// A walk that only visits.
pub(crate) fn visit(image: &Image, entry: u64, with_faults: bool) -> BTreeSet<u64> {
    Walk { image, with_faults, effect: |_| None }.from(entry, false).visited
}

// ---- What single instructions are. ----

/// Registers named or implied.
pub(crate) fn registers(instruction: &Instruction) -> Vec<(Register, OpAccess)> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    info.used_registers().iter().map(|used| (used.register(), used.access())).collect()
}

pub(crate) fn is_vector(register: Register) -> bool {
    register.is_vector_register() || register.is_k()
}

/// Touches memory that the caller has named: not the stack, not a constant of ours. A prefetch
/// never faults.
pub(crate) fn accesses_memory(instruction: &Instruction) -> bool {
    let prefetch = matches!(
        instruction.mnemonic(),
        Mnemonic::Prefetchnta | Mnemonic::Prefetcht0 | Mnemonic::Prefetcht1 | Mnemonic::Prefetcht2
    );
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let foreign = info.used_memory().iter().any(|memory| {
        memory.access() != OpAccess::NoMemAccess
            && !matches!(memory.base(), Register::RSP | Register::ESP | Register::RIP)
    });
    // The decoder lists no memory for `clzero`, which clears the line that rax points into.
    (foreign || instruction.mnemonic() == Mnemonic::Clzero) && !prefetch
}

/// The register an instruction writes by name; `None` if its first operand is something else.
pub(crate) fn destination_register(instruction: &Instruction) -> Option<Register> {
    (instruction.op_count() > 0 && instruction.op_kind(0) == OpKind::Register)
        .then(|| instruction.op0_register())
}
