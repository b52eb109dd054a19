//! Contents of shards and branches are never below zero: statement A5, of multicasts and splits.

use std::collections::BTreeMap;

use anabranch_engine::frame::{Event, col, lit};
use anabranch_shards::{Layout, RunOutcome, Shards, SplitPlan};
use anabranch_testing::rng::{Rng, cases};
use datafusion_common::ScalarValue;

use crate::support::{layouts, rows, run, source, updates};

/// Contents of each shard, as changes come to be complete: no row is there less than no times.
fn never_below_zero(outcome: &RunOutcome) -> Result<(), String> {
    for shard in 0..outcome.shards.len() {
        let mut present: BTreeMap<Vec<String>, i64> = BTreeMap::new();
        // (By time, all changes of one time together.)
        let mut by_time: BTreeMap<i64, Vec<(Vec<String>, i64)>> = BTreeMap::new();
        for ((time, row), diff) in updates(&outcome.changes_of(shard)) {
            by_time.entry(time).or_default().push((row, diff));
        }
        for (time, changes) in by_time {
            for (row, diff) in changes {
                *present.entry(row).or_default() += diff;
            }
            if present.values().any(|count| *count < 0) {
                return Err(format!("shard {shard} at {time}: {present:?}"));
            }
        }
    }
    Ok(())
}

/// Rows whose starts and ends are given by themselves, each perhaps to another shard.
fn torn(rng: &mut Rng) -> Vec<Vec<Event>> {
    rows(rng, 80).into_iter().flat_map(|row| row.into_iter().map(|event| vec![event])).collect()
}

fn check(rng: &mut Rng, what: &str, build: impl Fn(Layout) -> Shards) {
    let given = [("l", torn(rng))];
    let layout = *rng.pick(&layouts());
    let outcome = run(rng, &build(layout), layout.shards(), &given);
    assert!(!outcome.changes().is_empty());
    never_below_zero(&outcome).unwrap_or_else(|found| panic!("{what}, {layout:?}, {found}"));
}

#[test]
fn copies_are_taken_back_where_they_are() {
    let number = |value: &ScalarValue| match value {
        ScalarValue::Int64(Some(x)) => x.unsigned_abs() as usize,
        _ => 0,
    };
    cases("multicast contents", 12, |rng| {
        check(rng, "multicast", |layout| {
            let shards = layout.shards();
            source("l", layout).multicast(move |row| vec![number(&row[0]) % shards, number(&row[2]) % shards])
        });
    });
}

#[test]
fn rows_of_branches_are_taken_back_where_they_are() {
    cases("split contents", 12, |rng| {
        for plan in [SplitPlan::Flat, SplitPlan::Exp, SplitPlan::PARA] {
            check(rng, "split", |layout| {
                let to_all = Some(col("j").eq(lit(3i64)));
                source("l", layout).split(17, (col("k") + lit(1i64)) % lit(17i64), to_all, plan).merge()
            });
        }
    });
}

/// A movement that goes by the batch breaks the statement: it can be broken.
#[test]
fn movement_by_batches_would_leave_rows_below_zero() {
    let row = || [1i64.into(), 2i64.into(), 3i64.into()];
    // (What a source is given lies where it was given: the end in another shard than the start.)
    let mut run = source("l", Layout::flat(2)).run().unwrap();
    run.push("l", 0, vec![Event::start(0, row())]).unwrap();
    run.push("l", 1, vec![Event::end(5, 0, row())]).unwrap();
    let outcome = run.finish().unwrap();
    never_below_zero(&outcome).unwrap_err();
}
