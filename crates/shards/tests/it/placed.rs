//! Branches in shards of a list: statement S17.

use anabranch_engine::frame::{col, count_rows, lit, sum};
use anabranch_shards::split::cost::Shares;
use anabranch_shards::{Branches, Layout, SplitPlan};
use anabranch_testing::rng::cases;
use datafusion_common::ScalarValue;

use crate::support::{rows, run, same_as_one_shard, source, updates};

const PLANS: [SplitPlan; 4] = [
    SplitPlan::Flat,
    SplitPlan::Exp,
    SplitPlan::Max(Shares { broadcast: 0.3, routed: 0.7, consume: 1.0 }),
    SplitPlan::PARA,
];

fn split(name: &str, layout: Layout, plan: SplitPlan) -> Branches {
    source(name, layout).split(9, (col("k") + lit(2i64)) % lit(9i64), Some(col("j").eq(lit(3i64))), plan)
}

/// Branches lie in the shards of the list by turns, whatever the plan, and are those of all shards.
#[test]
fn branches_lie_where_the_list_says() {
    cases("placed", 12, |rng| {
        let given = [("l", rows(rng, 60))];
        let layout = *rng.pick(&[Layout::flat(4), Layout::grid(2, 2)]);
        let expected = updates(&run(rng, &split("l", layout, SplitPlan::Flat).merge(), 4, &given).changes());
        for plan in PLANS {
            // (A shard that is named twice has twice as many; the fifth is passed over.)
            let branches = split("l", layout, plan).placed(&[3, 7, 1, 3]);
            branches.check().unwrap();
            let outcome = run(rng, &branches.merge(), 4, &given);
            assert_eq!(updates(&outcome.changes()), expected, "{plan:?}");
            for shard in 0..4 {
                let found = outcome.changes_of(shard);
                for row in 0..found.len() {
                    let ScalarValue::Int64(Some(branch)) = ScalarValue::try_from_array(found.column(0), row).unwrap()
                    else {
                        panic!("a row without a branch");
                    };
                    assert_eq!(shard, [3, 1, 3][branch as usize % 3], "branch {branch}");
                }
            }
        }
    });
}

#[test]
fn a_list_without_a_shard_of_the_layout_is_named() {
    let branches = split("l", Layout::flat(2), SplitPlan::Flat);
    let error = branches.placed(&[2, 5]).merge().check().unwrap_err();
    assert_eq!(error.message, "branches are placed in shards [2, 5]: none of them is there");
    assert_eq!(error.hint.as_deref(), Some("Shards are numbered 0 to 1."));
    let error = branches.placed(&[]).check().unwrap_err();
    assert_eq!(error.message, "branches are placed in shards []: none of them is there");
    branches.placed(&[5, 1]).check().unwrap();
    let error = branches.map(|rows| rows).placed(&[1]).check().unwrap_err();
    assert_eq!(error.message, "branches are placed after something was done with them");
}

#[test]
fn queries_of_placed_branches_are_those_of_one_shard() {
    let counts = |layout: Layout| {
        let placed = split("l", layout, SplitPlan::Exp).placed(&[1, 2, 0]);
        placed.map(|rows| rows.group_by([col("j")]).agg([count_rows().alias("n")]))
    };
    same_as_one_shard("placed", |layout| counts(layout).merge());
    same_as_one_shard("placed and merged", |layout| counts(layout).merge_by(["j"], [sum(col("n")).alias("n")]));
    same_as_one_shard("placed and merged by a tree", |layout| {
        counts(layout).merge_tree(["j"], 2, [sum(col("n")).alias("n")])
    });
}

#[test]
fn plans_show_where_branches_lie() {
    let text = split("l", Layout::flat(3), SplitPlan::Flat).placed(&[2, 0]).explain().unwrap();
    assert!(text.contains("\n  split 1 x 9: by number (branch) in shards 2, 0\n"), "{text}");
}
