//! Builds the program and the library of `linked/` in a workspace of their own, and runs them.

use crate::say;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// A copy of the crate whose version is another.
fn other_version(to: &Path) {
    copy_folder(&Path::new(CRATE).join("src"), &to.join("src"));
    let manifest = fs::read_to_string(Path::new(CRATE).join("Cargo.toml")).expect("our manifest");
    let mut out = String::new();
    let mut kept = true;
    for line in manifest.lines() {
        if line.starts_with('[') {
            kept = !line.contains("dev-dependencies") && line != "[lints]";
        }
        match line {
            "version.workspace = true" => out.push_str("version = \"7.8.9\"\n"),
            "edition.workspace = true" => out.push_str("edition = \"2024\"\n"),
            inherited if inherited.ends_with(".workspace = true") => {}
            line if kept => {
                out.push_str(line);
                out.push('\n');
            }
            _ => {}
        }
    }
    fs::write(to.join("Cargo.toml"), out).expect("it can be written");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder of ours") {
        let from = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a file can be copied");
        }
    }
}

fn write(path: PathBuf, contents: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    fs::write(path, contents).expect("it can be written");
}

fn succeeded(output: &Output, what: &str) {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{out}\n{err}", output.status);
}

#[test]
fn two_versions_and_two_libraries_recover() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linked");
    let (workspace, other) = (root.join("workspace"), root.join("other"));
    for stale in [&workspace, &other] {
        let _ = fs::remove_dir_all(stale);
    }
    other_version(&other);
    let fill = |text: &str| {
        let other = other.to_str().expect("a path in Unicode");
        text.replace("{crate}", CRATE).replace("{other}", other)
    };
    write(workspace.join("Cargo.toml"), include_str!("linked/Cargo.toml.in"));
    write(workspace.join("program/Cargo.toml"), &fill(include_str!("linked/program.toml.in")));
    write(workspace.join("program/src/main.rs"), include_str!("linked/program.rs"));
    write(workspace.join("library/Cargo.toml"), &fill(include_str!("linked/library.toml.in")));
    write(workspace.join("library/src/lib.rs"), include_str!("linked/library.rs"));
    write(
        workspace.join("library/build.rs"),
        "fn main() {\n    println!(\"cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete\");\n}\n",
    );

    // Kept from run to run: only what has changed is built again.
    let target = root.join("target");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet", "--target-dir"])
        .arg(&target)
        .current_dir(&workspace)
        .output()
        .expect("cargo can be run");
    let err = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() && err.contains("offline") {
        say!("cannot run here: two versions of the crate in one program; cargo says: {err}");
        return;
    }
    succeeded(&built, "cargo build");

    let release = target.join("release");
    let program = Command::new(release.join("program")).arg(release.join("liblibrary.so")).output();
    succeeded(&program.expect("the program can be run"), "two versions and a shared library");

    write(workspace.join("main.c"), include_str!("linked/main.c"));
    let linked = Command::new("cc")
        .args(["-O1", "-Wl,--gc-sections", "-o", "main", "main.c"])
        .arg(release.join("liblibrary.a"))
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s"])
        .current_dir(&workspace)
        .output();
    match linked {
        Ok(linked) => succeeded(&linked, "cc"),
        Err(error) => {
            say!("cannot run here: the static library in a C program; cc: {error}");
            return;
        }
    }
    let main = Command::new(workspace.join("main")).output();
    succeeded(&main.expect("the C program can be run"), "the static library in a C program");
}
