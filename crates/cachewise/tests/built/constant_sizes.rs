//! Copies of a constant size are single moves: the example, compiled as a release is, decoded.
//!
//! This test binary may be compiled with debug assertions, which put checks between the moves. So
//! the compiler is run on the library, which has no dependencies without `std`, and on the example.

use crate::say;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use std::path::Path;
use std::process::Command;

/// `None` if there is no compiler here.
fn compile(arguments: &[&str], out: &Path) -> Option<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut command = Command::new(rustc);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).arg("-o").arg(out);
    command.args(["--edition=2024", "-Copt-level=3", "-Ccodegen-units=1", "--cap-lints=allow"]);
    for part in ["MAJOR", "MINOR", "PATCH"] {
        let (name, value) = match part {
            "MAJOR" => ("CARGO_PKG_VERSION_MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
            "MINOR" => ("CARGO_PKG_VERSION_MINOR", env!("CARGO_PKG_VERSION_MINOR")),
            _ => ("CARGO_PKG_VERSION_PATCH", env!("CARGO_PKG_VERSION_PATCH")),
        };
        command.env(name, value);
    }
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn decode(object: &object::File<'_>, name: &str) -> Vec<Instruction> {
    let symbol = object.symbol_by_name(name).unwrap_or_else(|| panic!("no function {name}"));
    let index = symbol.section_index().expect("the function lies in a section");
    let section = object.section_by_index(index).expect("the section exists");
    let code = section.data_range(symbol.address(), symbol.size()).ok().flatten();
    let code = code.expect("the function has code");
    let all = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
    all.filter(|i| !matches!(i.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Nop)).collect()
}

#[test]
fn constant_sizes_are_one_load_and_one_store() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("constant_sizes");
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    let (library, example) =
        (directory.join("libcachewise.rlib"), directory.join("constant_sizes.o"));
    let compiled =
        compile(&["src/lib.rs", "--crate-name=cachewise", "--crate-type=rlib"], &library).and_then(
            |()| {
                let library = format!("--extern=cachewise={}", library.display());
                compile(&["examples/constant_sizes.rs", &library, "--emit=obj"], &example)
            },
        );
    if compiled.is_none() {
        say!("cannot run here: constant sizes, as there is no `rustc` to start");
        return;
    }
    let bytes = std::fs::read(&example).expect("the compiler has written it");
    let object = object::File::parse(&*bytes).expect("an object file");
    for size in [1, 2, 4, 8] {
        let name = format!("copy_{size}");
        let code = decode(&object, &name);
        let memory = |i: &Instruction, at: u32| i.op_kind(at) == OpKind::Memory;
        let shape: Vec<&str> = code
            .iter()
            .map(|i| match i.mnemonic() {
                Mnemonic::Mov | Mnemonic::Movzx if memory(i, 1) => "load",
                Mnemonic::Mov if memory(i, 0) => "store",
                Mnemonic::Ret => "return",
                _ => "something else",
            })
            .collect();
        assert_eq!(shape, ["load", "store", "return"], "{name}: {code:?}");
        for instruction in &code[..2] {
            assert_eq!(instruction.memory_size().size(), size, "{name}");
        }
    }
}
