//! Splits of many branches: statements S2, S12, S14 and S15, with widths up to 600.

use std::collections::BTreeMap;

use anabranch_engine::frame::{Event, col, count_rows, lit, sum};
use anabranch_shards::split::cost::Shares;
use anabranch_shards::{Branches, Layout, ShardRun, Shards, SplitPlan};
use anabranch_testing::rng::{Rng, cases};

use crate::support::{layouts, para, rows, source, updates};

const PLANS: [SplitPlan; 4] = [
    SplitPlan::Flat,
    SplitPlan::Exp,
    SplitPlan::Max(Shares { broadcast: 0.3, routed: 0.7, consume: 1.0 }),
    SplitPlan::PARA,
];

/// Rows in windows of random lengths: batches that end anywhere, between promises.
fn in_windows(
    rng: &mut Rng,
    program: &Shards,
    shards: usize,
    given: &[Vec<Event>],
) -> BTreeMap<(i64, Vec<String>), i64> {
    let mut run = program.run().unwrap();
    let mut rest = given;
    while !rest.is_empty() {
        let length = *rng.pick(&[1, 2, 7, 30]);
        let (window, after) = rest.split_at(length.min(rest.len()));
        run.push("l", rng.below(shards), window.concat()).unwrap();
        rest = after;
    }
    updates(&run.finish().unwrap().changes())
}

/// Statement S2: all plans yield the same branches, of any width, with random routes, rows for all
/// branches, batches and shards, and random splitters, windows and seeds of parallel splits.
#[test]
fn plans_agree_on_any_width_and_windows() {
    cases("any width", 16, |rng| {
        let width = rng.between(1, 600);
        let (times, plus, to_all) = (rng.between(1, 97), rng.between(0, 50), rng.between(0, 12));
        let given = rows(rng, 60);
        let build = |layout: Layout, plan: SplitPlan| {
            let route = ((col("k") * lit(times) + col("x")) * lit(3i64) + lit(plus + 600)) % lit(width);
            source("l", layout).split(width as u32, route, Some(col("x").eq(lit(to_all))), plan)
        };
        let expected = in_windows(rng, &build(Layout::flat(1), SplitPlan::Flat).merge(), 1, &given);
        for plan in PLANS.into_iter().chain([para(rng), para(rng)]) {
            let layout = *rng.pick(&layouts());
            let branches = build(layout, plan);
            branches.check().unwrap();
            let found = in_windows(rng, &branches.merge(), layout.shards(), &given);
            assert_eq!(found, expected, "{width} branches, {plan:?}, {layout:?}");
        }
    });
}

/// Pushes rows of 512 branches in one batch a shard.
fn filled(run: &mut ShardRun, shards: usize) {
    for shard in 0..shards {
        let row = |at: i64| Event::start(0, [at.into(), (at % 3).into(), 1i64.into()]);
        run.push("l", shard, (0..2048).map(row).collect::<Vec<_>>()).unwrap();
    }
    run.advance_all(1).unwrap();
}

fn split(layout: Layout, width: u32) -> Branches {
    source("l", layout).split(width, col("k") % lit(i64::from(width)), None, SplitPlan::Flat)
}

/// Statement S12: a split of 512 branches has the steps of one of two, and sends as many batches:
/// one to each shard, for each batch.
#[test]
fn channels_are_as_many_as_shards_not_as_branches() {
    let batches = |width: u32, shards: usize| -> (usize, u64, u64) {
        let mut run = split(Layout::flat(shards), width).merge().run().unwrap();
        filled(&mut run, shards);
        run.finish().unwrap();
        let profile = run.profile();
        let of_split = profile.iter().filter(|step| step.action == "split").map(|step| step.counts);
        let (taken, given) =
            of_split.fold((0, 0), |sum, counts| (sum.0 + counts.batches_in, sum.1 + counts.batches_out));
        (profile.len() / shards, taken, given)
    };
    for shards in [2, 3] {
        let (steps, taken, given) = batches(512, shards);
        assert_eq!(given, taken * shards as u64, "batches sent by {shards} shards");
        assert_eq!((steps, taken, given), batches(8, shards), "as many as for few branches");
    }
}

/// Statements S14 and S15: the sum over 512 branches, joined at once and by a tree of nodes that
/// take in no more than the root of their number, is the sum.
#[test]
fn sums_over_512_branches_are_the_sum() {
    const FAN_IN: u32 = 23;
    let layout = Layout::flat(2);
    let counts = split(layout, 512).map(|rows| rows.group_by([col("j")]).agg([count_rows().alias("n")]));
    let sums = || [sum(col("n")).alias("n")];
    let answer = |program: Shards| {
        program.check().unwrap();
        let mut run = program.run().unwrap();
        filled(&mut run, 2);
        let changes = run.finish().unwrap();
        let names: Vec<&str> = changes.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let place = |name: &str| names.iter().position(|found| *found == name).unwrap();
        let (j, n) = (place("j"), place("n"));
        let rows = updates(&changes.changes()).into_iter();
        let rows: Vec<_> = rows.map(|((time, row), diff)| (time, row[j].clone(), row[n].clone(), diff)).collect();
        (rows, run)
    };
    let (flat, _) = answer(counts.merge_by(["j"], sums()));
    let (tree, run) = answer(counts.merge_tree(["j"], FAN_IN, sums()));
    // Of numbers 0 to 2047, in each of two shards: 683, 683 and 682 by their rest.
    let expected = [("0", 1366), ("1", 1366), ("2", 1364)];
    assert_eq!(flat, expected.map(|(j, n)| (0, j.to_owned(), n.to_string(), 1)));
    assert_eq!(tree, flat);
    // Partials that a node takes in at a time step, of each j: those of the root, and of the rest.
    let profile = run.profile();
    let queries: Vec<usize> =
        profile.iter().filter(|s| s.shard == 0 && s.action == "to branches").map(|s| s.step).collect();
    assert_eq!(queries.len(), 2, "levels of a tree of fan-in {FAN_IN}");
    let moved = |step: usize| -> u64 { profile.iter().filter(|s| s.step == step).map(|s| s.counts.rows_out).sum() };
    assert_eq!([moved(queries[0]), moved(queries[1])], [512 * 3, 512u64.div_ceil(FAN_IN.into()) * 3]);
    assert!(moved(queries[1]) <= u64::from(FAN_IN) * 3);
}

/// Statement S15: branches that are merged in any order end with the last of the shards.
#[test]
fn merged_branches_end_with_their_last_input() {
    let mut run = split(Layout::flat(3), 512).merge().run().unwrap();
    for shard in 0..3 {
        assert!(run.drain().unwrap().frontiers.iter().all(|frontier| *frontier < i64::MAX));
        run.advance("l", shard, i64::MAX).unwrap();
    }
    assert_eq!(run.drain().unwrap().frontiers, [i64::MAX; 3]);
}
