//! Caches as the firmware describes them, `cpus/cpu@N` in `/proc/device-tree`.
//!
//! Where 32-bit Arm kernels show no caches in sysfs, this is all there is. Numbers are big-endian
//! 32-bit words. A cache has a size and a block or line length; the line counts as the block where
//! it is not given apart. (Format: Devicetree Specification, 3.8.) Beyond the first level,
//! caches are nodes of their own, which are left out: they tell of sizes, and the sizes that matter
//! are better measured.

use std::path::Path;

use super::super::geometry::{Claims, Unchecked};
use super::super::{Level, Source};

pub(in super::super) const ROOT: &str = "/proc/device-tree";

pub(in super::super) fn claims(root: &Path) -> Claims {
    let mut claims = Claims::default();
    let Ok(cpus) = std::fs::read_dir(root.join("cpus")) else { return claims };
    for cpu in cpus.flatten() {
        if !cpu.file_name().as_encoded_bytes().starts_with(b"cpu@") {
            continue;
        }
        for (level, prefix) in [(Level::L1d, "d"), (Level::L1i, "i")] {
            let word = |what: &str| word(&cpu.path().join(std::format!("{prefix}-cache-{what}")));
            let Some(line_bytes) = word("line-size").or_else(|| word("block-size")) else {
                continue;
            };
            match word("size") {
                Some(size_bytes) => claims.tell(Unchecked {
                    level,
                    size_bytes: size_bytes.into(),
                    line_bytes: line_bytes.into(),
                    ways: 0,
                    shared_by: 1,
                    source: Source::DeviceTree,
                }),
                None => claims.tell_line(line_bytes, Source::DeviceTree),
            }
        }
    }
    claims
}

fn word(file: &Path) -> Option<u32> {
    let bytes = std::fs::read(file).ok()?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
