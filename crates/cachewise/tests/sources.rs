//! What the assembler does not check: every macro of an architecture's assembly goes again, since
//! it is visible to whatever link-time optimisation puts behind it (another version of this crate
//! would define it anew).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The first word behind `directive` on each line that begins with it.
fn names(text: &str, directive: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(directive));
    lines.filter_map(|rest| rest.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
#[cfg_attr(miri, ignore = "reads the sources")]
fn every_macro_is_purged() {
    let arch = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/arch");
    let mut folders = 0;
    for entry in fs::read_dir(arch).expect("the sources are there") {
        let folder = entry.expect("it can be read").path();
        let Ok(purge) = fs::read_to_string(folder.join("purge.S")) else { continue };
        let mut defined = BTreeSet::new();
        for file in fs::read_dir(&folder).expect("a folder") {
            let file = file.expect("it can be read").path();
            if file.extension().is_some_and(|extension| extension == "S") {
                let text = fs::read_to_string(&file).expect("it can be read");
                defined.extend(names(&text, ".macro "));
            }
        }
        let purged: BTreeSet<String> = names(&purge, ".purgem ").into_iter().collect();
        assert!(!defined.is_empty(), "no macro found in {}", folder.display());
        assert_eq!(purged, defined, "{}", folder.display());
        folders += 1;
    }
    assert!(folders > 0, "no architecture found");
}
