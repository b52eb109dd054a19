//! Cost models of splits, as a caller that plans asks them.

use anabranch_shards::split::cost::{Shares, maxtree, parasplit_efficiency, parasplit_splitters};

/// Statement S4, of parasplit: megabits a second, of one splitter 123.7.
#[test]
fn splitters_are_as_published() {
    let of = |wanted, branches| parasplit_splitters(wanted, 123.7, 0.01, branches);
    assert_eq!(of(500.0, 512), 25);
    assert_eq!([512, 256, 128, 64, 8].map(|branches| of(1000.0, branches)), [50, 29, 19, 14, 9]);
}

#[test]
fn mergers_take_from_the_efficiency_of_a_parallel_split() {
    let few = parasplit_efficiency(0.1, (10, 1.0), (64, 0.01));
    let many = parasplit_efficiency(0.1, (10, 1.0), (64, 0.1));
    assert!(many < few && few < 1.0);
}

#[test]
fn a_maxtree_has_a_leaf_for_each_branch() {
    let fan_outs = maxtree(512, Shares::broadcast(0.01));
    assert!(fan_outs.iter().product::<u32>() >= 512);
}
