//! The set itself: names, bits and sentences.

use std::string::ToString;
use std::vec::Vec;

use crate::cpu::Features;

#[test]
fn names_and_bits_are_unique_and_round_trip() {
    let mut union = Features::empty();
    for feature in Features::all() {
        assert!(!union.intersects(feature), "{feature}");
        union = union.union(feature);
        assert_eq!(Features::from_name(feature.name()), Some(feature));
        assert_eq!(Features::from_bits(feature.bits()), feature);
        assert_eq!(feature.name(), feature.name().to_lowercase());
    }
    assert_eq!(union.iter().collect::<Vec<_>>(), Features::all().collect::<Vec<_>>());
    for unknown in ["", "none", "AVX", "avx5", "unknown"] {
        assert_eq!(Features::from_name(unknown), None, "{unknown}");
    }
}

#[test]
fn set_operations() {
    let both = Features::SSE.union(Features::AVX);
    assert!(both.contains(Features::SSE) && both.contains(Features::empty()));
    assert!(!Features::SSE.contains(both) && both.intersects(Features::SSE));
    assert!(!both.intersects(Features::empty()));
    assert_eq!(both.without(Features::SSE), Features::AVX);
    assert_eq!(both.intersection(Features::AVX), Features::AVX);
}

#[test]
fn sentences() {
    assert_eq!(Features::empty().to_string(), "none");
    assert_eq!(Features::AVX512F.to_string(), "avx512f");
    let three = Features::MMX.union(Features::SSE).union(Features::SSE2);
    assert_eq!(three.to_string(), "mmx, sse and sse2");
    assert_eq!(Features::from_bits(1 << 63).to_string(), "unknown");
}
