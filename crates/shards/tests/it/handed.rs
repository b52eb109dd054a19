//! Rows that go to all branches are handed on, and not copied: statement S11, and that they are the
//! rows that copies would be.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_engine::frame::{col, lit};
use anabranch_shards::split::cost::Shares;
use anabranch_shards::split::handed::ROWS_MIN;
use anabranch_shards::{Carry, Layout, ShardRun, SplitPlan};
use anabranch_testing::rng::cases;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use crate::allocated::asked_bytes;
use crate::support::{layouts, source};

/// Set in the process that measures.
const ALONE: &str = "ANABRANCH_TEST_ALONE";

/// Rows of three columns, of these first and second cells.
fn batch(rows: usize, k: impl Fn(i64) -> Option<i64>, j: impl Fn(i64) -> i64, diff: i64) -> Batch {
    let numbers = 0..rows as i64;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(numbers.clone().map(k).collect::<Int64Array>()),
        Arc::new(numbers.clone().map(j).map(Some).collect::<Int64Array>()),
        Arc::new(numbers.map(Some).collect::<Int64Array>()),
    ];
    Batch::with_len(columns.into(), rows, Times::Constant(3), Diffs::Constant(diff))
}

/// Each row of a batch in each of its branches, as the law of splits says.
fn naive(batches: &[Batch], width: i64) -> BTreeMap<[i64; 3], i64> {
    let mut rows = BTreeMap::new();
    for batch in batches {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
        for row in 0..batch.len() {
            let (k, j, x) = (column(0).iter().nth(row).flatten(), column(1).value(row), column(2).value(row));
            let branches = match (j, k) {
                (3, _) => 0..width,
                (_, Some(k)) => k..k + 1,
                (_, None) => 0..0,
            };
            branches.for_each(|branch| *rows.entry([branch, j, x]).or_default() += batch.diffs().get(row));
        }
    }
    rows.retain(|_, diff| *diff != 0);
    rows
}

/// Batches in which many, few, all or none of the rows go to all branches, and what takes some of
/// them back: all plans, as batches and as bytes.
#[test]
fn rows_that_are_handed_on_are_those_of_copies() {
    const WIDTH: u32 = 5;
    cases("handed rows", 6, |rng| {
        let share = *rng.pick(&[1, 2, 3, 50]);
        let of_all = move |n: i64| if n % share == 0 { 3 } else { n % 3 };
        let route = |n: i64| (n % 7 < 5).then_some(n % 7);
        let rows = *rng.pick(&[ROWS_MIN, 3 * ROWS_MIN, 4 * ROWS_MIN + 100]);
        let batches = [batch(rows, route, of_all, 1), batch(rows / 2, route, of_all, -1), batch(rows, route, |_| 3, 1)];
        let expected = naive(&batches, WIDTH.into());
        let layout = *rng.pick(&layouts());
        for plan in [SplitPlan::Flat, SplitPlan::Exp, SplitPlan::Max(Shares::broadcast(0.3)), SplitPlan::PARA] {
            let branches = source("l", layout).split(WIDTH, col("k"), Some(col("j").eq(lit(3i64))), plan);
            let carry = if rng.chance(50) { Carry::Batches } else { Carry::Wire };
            let mut run = branches.merge().run_with(carry).unwrap();
            for batch in &batches {
                run.push("l", rng.below(layout.shards()), batch.clone()).unwrap();
            }
            let outcome = run.finish().unwrap();
            let mut found = BTreeMap::new();
            for (shard, batch) in
                outcome.shards.iter().enumerate().flat_map(|(at, all)| all.iter().map(move |b| (at, b)))
            {
                let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
                for row in 0..batch.len() {
                    let [branch, j, x] = [0, 2, 3].map(|at| column(at).value(row));
                    assert_eq!(branch as usize % layout.shards(), shard, "a branch in another shard");
                    *found.entry([branch, j, x]).or_default() += batch.diffs().get(row);
                }
            }
            found.retain(|_, diff: &mut i64| *diff != 0);
            assert!(found == expected, "{plan:?} {layout:?} {carry:?}, share {share}, {rows} rows");
        }
    });
}

/// Bytes asked for and CPU time of all steps, of a split of rows that all go to all branches.
fn cost(width: u32) -> (u64, u64) {
    const BATCHES: i64 = 20;
    const ROWS: usize = 16 * ROWS_MIN;
    let to_all = Some(col("x").gt_eq(lit(0i64)));
    let branches = source("l", Layout::flat(1)).split(width, col("k"), to_all, SplitPlan::Flat);
    let mut run = branches.merge().run().unwrap();
    let given = batch(ROWS, Some, |n| n, 1);
    let spent = |run: &ShardRun| run.profile().iter().map(|step| step.counts.cpu_nanos).sum::<u64>();
    let push = |run: &mut ShardRun, times: std::ops::Range<i64>| {
        let batches = times.clone().count();
        for time in times {
            run.push("l", 0, given.clone().with_times(Times::Constant(time))).unwrap();
            run.advance("l", 0, time + 1).unwrap();
        }
        let rows: usize = run.drain().unwrap().shards.iter().flatten().map(Batch::len).sum();
        assert_eq!(rows, batches * ROWS * width as usize);
    };
    // (What comes first gets fresh memory from the system, a page at a time.)
    push(&mut run, 0..BATCHES);
    let before = (asked_bytes(), spent(&run));
    push(&mut run, BATCHES..2 * BATCHES);
    (asked_bytes() - before.0, spent(&run) - before.1)
}

/// Statement S11: where all rows go to 64 branches of one process, bytes and time are less than
/// twice those of one branch. (In batches of 65,536 rows; see docs/shards.md for others.)
#[test]
fn all_rows_in_64_branches_cost_less_than_twice_those_of_one() {
    if std::env::var(ALONE).is_err() {
        // (Bytes are those of the whole process: the test starts itself again, alone.)
        let test = "handed::all_rows_in_64_branches_cost_less_than_twice_those_of_one";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let ended = command.args([test, "--exact", "--nocapture"]).env(ALONE, "").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        return;
    }
    // (Other work of the machine only adds to the time.)
    let least = |width| (0..3).map(|_| cost(width)).reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).unwrap();
    let (one, many) = (least(1), least(64));
    let ratio = |many: u64, one: u64| many as f64 / one as f64;
    let [bytes, time] = [ratio(many.0, one.0), ratio(many.1, one.1)];
    eprintln!("64 branches: {bytes:.2} times the bytes, {time:.2} times the CPU time");
    assert!(bytes < 2.0, "{many:?} and {one:?}");
    assert!(time < 2.0, "{many:?} and {one:?}");
}
