//! Temporal map-reduce: queries of groups equal those of one shard, and move rows only where they
//! have to.

use anabranch_engine::frame::{Frame, col, count_rows, lit, max, sum};
use anabranch_shards::{Layout, Shards};
use anabranch_testing::rng::{Rng, cases};

use crate::support::{layouts, rows, run, source, updates};

fn windowed(frame: Frame) -> Frame {
    frame.hopping(20, 10, 0).agg([sum(col("x")).alias("s"), count_rows().alias("n"), max(col("x")).alias("m")])
}

/// Filters before, two queries of groups behind each other, the second by a part of the key.
fn map_reduce(layout: Layout) -> Shards {
    let mapped = source("l", layout).query(|rows| rows.filter(col("x").gt(lit(-2i64))));
    mapped.group_apply(["k", "j"], windowed).group_apply(["k", "j"], |rows| rows.filter(col("n").gt(lit(0i64))))
}

fn explained(program: &Shards) -> usize {
    program.explain().unwrap().matches("redistribute").count()
}

#[test]
fn queries_of_groups_are_those_of_one_shard() {
    cases("grouped", 20, |rng: &mut Rng| {
        let inputs = [("l", rows(rng, 60))];
        let expected = updates(&run(rng, &map_reduce(Layout::flat(1)), 1, &inputs).changes());
        for layout in layouts() {
            let program = map_reduce(layout);
            program.check().unwrap();
            let found = updates(&run(rng, &program, layout.shards(), &inputs).changes());
            assert_eq!(found, expected, "{layout:?}");
        }
    });
}

#[test]
fn rows_that_lie_by_their_group_stay_where_they_are() {
    let layout = Layout::flat(3);
    let s = source("l", layout);
    assert_eq!(explained(&map_reduce(layout)), 1);
    // Wrong derivations would show as one movement too few or too many.
    assert_eq!(explained(&s.group_apply(["k"], windowed).group_apply(["k", "n"], windowed_again)), 1);
    assert_eq!(explained(&s.group_apply(["k", "j"], windowed).group_apply(["k"], windowed_again)), 2);
    assert_eq!(explained(&s.packed_by("k").group_apply(["k"], windowed)), 0);
    assert_eq!(explained(&s.packed_by("k").group_apply(["j"], windowed)), 1);
    assert_eq!(explained(&s.group_apply(["k"], |rows| rows.filter(col("x").gt(lit(0i64))))), 0);
}

fn windowed_again(frame: Frame) -> Frame {
    frame.agg([count_rows().alias("groups"), sum(col("s")).alias("s")])
}

#[test]
fn columns_that_are_not_there_are_named() {
    let error = source("l", Layout::flat(2)).group_apply(["nothing"], windowed).check().unwrap_err();
    assert!(error.message.contains("nothing"), "{error}");
}
