//! Splitting, mapping and merging: statements S1, S2, S6, S7, S15 of SCSQ's functions.

use std::collections::BTreeMap;

use anabranch_engine::frame::{Event, col, count_rows, end, lit, max, start, sum};
use anabranch_shards::split::cost::Shares;
use anabranch_shards::split::local::LocalCosts;
use anabranch_shards::{Branches, Layout, ParaOptions, Shards, SplitPlan};
use anabranch_testing::rng::cases;

use crate::support::{layouts, para, rows, run, source, updates};

const PLANS: [SplitPlan; 5] = [
    SplitPlan::Flat,
    SplitPlan::Exp,
    SplitPlan::Max(Shares { broadcast: 0.3, routed: 0.7, consume: 1.0 }),
    SplitPlan::PARA,
    SplitPlan::AUTO,
];

/// Rows with `j = 3` go to all branches, others by `k`, which may be NULL.
fn split(layout: Layout, width: u32, plan: SplitPlan) -> Branches {
    let route = (col("k") * lit(7i64) + col("j")) % lit(i64::from(width));
    source("l", layout).split(width, route, Some(col("j").eq(lit(3i64))), plan)
}

/// The branches as the words of the law say.
fn naive(events: &[Vec<Event>], width: i64) -> BTreeMap<(i64, Vec<String>), i64> {
    let program = source("l", Layout::flat(1));
    let mut run = program.run().unwrap();
    events.iter().for_each(|row| run.push("l", 0, row.clone()).unwrap());
    let rows = updates(&run.finish().unwrap().changes());
    let mut branches = BTreeMap::new();
    for ((time, row), diff) in rows {
        let (k, j) = (row[0].parse::<i64>().ok(), row[1].parse::<i64>().unwrap());
        let targets: Vec<i64> = match (j, k) {
            (3, _) => (0..width).collect(),
            (_, Some(k)) => vec![(k * 7 + j) % width],
            (_, None) => vec![],
        };
        for target in targets {
            let row = std::iter::once(target.to_string()).chain(row.iter().cloned()).collect();
            *branches.entry((time, row)).or_default() += diff;
        }
    }
    branches
}

#[test]
fn every_plan_yields_the_branches_that_routes_say() {
    cases("split", 40, |rng| {
        let events = rows(rng, 40);
        let width = *rng.pick(&[1, 2, 3, 8, 17, 64, 600]);
        let layout = *rng.pick(&layouts());
        let expected = naive(&events, width.into());
        for plan in PLANS.into_iter().chain([para(rng), para(rng)]) {
            let branches = split(layout, width, plan);
            branches.check().unwrap();
            let found = run(rng, &branches.merge(), layout.shards(), &[("l", events.clone())]);
            assert_eq!(updates(&found.changes()), expected, "{width} {plan:?} {layout:?}");
        }
    });
}

/// Counts of each branch, which hold rows of many shards, then their sum over all branches, at once
/// and by trees.
#[test]
fn queries_of_branches_and_trees_of_sums_are_those_of_one_shard() {
    cases("branches", 20, |rng| {
        let events = [("l", rows(rng, 40))];
        let width = *rng.pick(&[1, 5, 16, 40]);
        let sums = || [sum(col("n")).alias("n"), max(col("hi")).alias("hi")];
        let programs = |layout: Layout, plan: SplitPlan| -> [Shards; 4] {
            let counts = split(layout, width, plan)
                .map(|rows| rows.group_by([col("j")]).agg([count_rows().alias("n"), max(col("x")).alias("hi")]));
            [
                counts.merge(),
                counts.merge_by(["j"], sums()),
                counts.merge_tree(["j"], 2, sums()),
                counts.merge_tree(["j"], 5, sums()),
            ]
        };
        let plan = *rng.pick(&PLANS);
        let layout = *rng.pick(&layouts());
        let mut whole = Vec::new();
        for (alone, program) in programs(Layout::flat(1), SplitPlan::Flat).iter().zip(&programs(layout, plan)) {
            program.check().unwrap();
            let expected = updates(&run(rng, alone, 1, &events).changes());
            let found = updates(&run(rng, program, layout.shards(), &events).changes());
            assert_eq!(found, expected, "{width} {plan:?} {layout:?}\n{}", program.explain().unwrap());
            whole.push(found);
        }
        // (Columns of merge_by are in another order than those of trees, whose key has the branch
        // too.)
        if width > 1 {
            let count = |rows: &BTreeMap<(i64, Vec<String>), i64>| rows.values().sum::<i64>();
            assert_eq!(count(&whole[1]), count(&whole[2]));
            assert_eq!(whole[2], whole[3]);
        }
    });
}

#[test]
fn a_route_out_of_range_is_an_error_of_its_row() {
    let program = source("l", Layout::flat(2)).split(4, col("x"), None, SplitPlan::Flat).merge();
    let mut run = program.run().unwrap();
    let row = |x: i64| Event::start(0, [0i64.into(), 0i64.into(), x.into()]);
    run.push("l", 0, vec![row(1), row(4), row(-1), row(i64::MAX), row(3)]).unwrap();
    assert_eq!(run.finish().unwrap_err().message, "a row is routed to branch 4 of 4 (where k = 0, j = 0, x = 4)");
    assert_eq!(run.drain().unwrap().changes().len(), 2);
}

/// Whether a row comes with its end or before it is not to be seen, so routes do not see it.
#[test]
fn routes_are_of_columns_alone() {
    let rows = || source("l", Layout::flat(2));
    let refused = |program: &Shards| program.run().err().unwrap();
    for bound in [start(), end(), col("@end")] {
        let of_bound = || bound.clone() % lit(4i64);
        let is_late = bound.clone().gt(lit(7i64));
        let error = refused(&rows().split(4, of_bound(), None, SplitPlan::AUTO).merge());
        assert_eq!(
            error.message,
            "the route that a split gives rows reads their lifetimes: the end of a row would not follow its start"
        );
        let error = refused(&rows().split(4, col("k"), Some(is_late), SplitPlan::Flat).merge());
        assert!(error.message.starts_with("the broadcast of rows in a split reads their lifetimes"), "{error}");
        let error = refused(&rows().multicast_to(of_bound()));
        assert!(error.message.starts_with("the expression that names the shards of rows reads"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("Say where rows go by their columns alone."));
    }
}

/// Statement S6 for the model that it is stated for: between processes, with a core a node.
#[test]
fn trees_are_chosen_between_processes_where_rows_are_broadcast() {
    let s = source("l", Layout::grid(2, 1));
    let with = s.split(64, col("k"), Some(col("j").eq(lit(3i64))), SplitPlan::AUTO).explain_plan().unwrap();
    let told =
        "split into 64 branches: exptree, the fastest between processes, with a core a node, fan-outs [2, 4, 8]\n";
    assert!(with.starts_with(told), "{with}");
    assert!(with.contains("modelled, 1% broadcast: 99.5% of the rate and 3.40 of the CPU time"), "{with}");
    let without = s.split(64, col("k"), None, SplitPlan::AUTO).explain_plan().unwrap();
    assert!(without.contains("flat, the fastest between processes, with a core a node, fan-outs [64]\n"), "{without}");
}

/// In one process the measured constants choose: one step, with and without rows for all branches.
#[test]
fn one_step_is_chosen_in_one_process() {
    let s = source("l", Layout::flat(2));
    for width in [64, 512] {
        for share in [0.005, 0.5] {
            let to_all = Some(col("j").eq(lit(3i64)));
            let shares = Shares::broadcast(share);
            let auto = s.split(width, col("k"), to_all.clone(), SplitPlan::Auto(shares)).explain().unwrap();
            let local = SplitPlan::Local(LocalCosts::MEASURED, shares);
            assert_eq!(auto, s.split(width, col("k"), to_all, local).explain().unwrap());
            let here = LocalCosts::MEASURED.nanos(&[width], shares, 8192.0);
            assert!(auto.contains("flat, the cheapest in one process"), "{auto}");
            assert!(auto.contains(&format!("in one process: {here:.0} ns of CPU time a row\n")), "{auto}");
        }
    }
    let without = s.split(64, col("k"), None, SplitPlan::AUTO).explain().unwrap();
    let here = LocalCosts::MEASURED.nanos(&[64], Shares::broadcast(0.0), 8192.0);
    let expected = format!(
        "\
split into 64 branches: flat, the cheapest in one process, fan-outs [64]
modelled, 0% broadcast: 100.0% of the rate and 1.00 of the CPU time of one branch
modelled, in one process: {here:.0} ns of CPU time a row
branches (branch): by number (branch)
  split 1 x 64: by number (branch)
    query: arbitrary
      rekey (): arbitrary
        source l in 2 shards: arbitrary
"
    );
    assert_eq!(without, expected);
}

/// Where batches are dear to take, a local model may choose the tree: the choice is the model's.
#[test]
fn the_choice_in_one_process_is_that_of_the_constants() {
    // (Copies that cost less than nothing: no machine has them.)
    let odd = LocalCosts { batch: 0.0, row: 1.0, copy: -10.0 };
    let branches = source("l", Layout::flat(2)).split(
        8,
        col("k"),
        Some(col("j").eq(lit(3i64))),
        SplitPlan::Local(odd, Shares::broadcast(0.5)),
    );
    let told = branches.explain_plan().unwrap();
    assert!(
        told.starts_with("split into 8 branches: exptree, the cheapest in one process, fan-outs [2, 4]\n"),
        "{told}"
    );
}

/// What is chosen for a parallel split, and why.
#[test]
fn options_of_a_parallel_split_are_told() {
    let s = source("l", Layout::flat(4));
    let told = |options| {
        let to_all = Some(col("j").eq(lit(3i64)));
        s.split(512, col("k"), to_all, SplitPlan::Para(options)).explain_plan().unwrap()
    };
    let chosen = told(ParaOptions::CHOSEN);
    assert!(chosen.starts_with("split into 512 branches: parasplit, fan-outs [512]\nin parallel: 4 splitters (one in each shard), windows of 32768 rows (doubled from 64), seed 0; modelled: "), "{chosen}");
    let wanted = ParaOptions { rate: Some(20e6), rate_of_one: Some(50e6), ..ParaOptions::CHOSEN };
    assert!(told(wanted).contains("3 splitters (for the wanted rate)"), "{}", told(wanted));
    let more = ParaOptions { rate: Some(200e6), rate_of_one: Some(50e6), ..ParaOptions::CHOSEN };
    assert!(told(more).contains("4 splitters (one in each shard; the wanted rate needs 25)"), "{}", told(more));
    let given = ParaOptions { splitters: Some(2), window: Some(100), seed: 9, ..ParaOptions::CHOSEN };
    assert!(told(given).contains("2 splitters (given), windows of 100 rows (given), seed 9;"), "{}", told(given));
    let wrong = ParaOptions { window: Some(0), ..ParaOptions::CHOSEN };
    let error = s.split(8, col("k"), None, SplitPlan::Para(wrong)).check().unwrap_err();
    assert_eq!(error.message, "window of a split is 0: it is a number from 1");
}

#[test]
fn names_of_splits_are_refused_where_they_are_taken() {
    let s = source("l", Layout::flat(2));
    let branches = s.split(4, col("k"), None, SplitPlan::Flat);
    let again = branches.merge().split(4, col("k"), None, SplitPlan::Flat);
    assert_eq!(again.check().unwrap_err().message, "a stream with a column \"branch\" cannot be split");
    let none = s.split(0, col("k"), None, SplitPlan::Flat);
    assert_eq!(none.check().unwrap_err().message, "a stream cannot be split into no branches");
    let endless = branches.merge_tree(["k"], 1, [sum(col("x")).alias("x")]);
    assert_eq!(endless.check().unwrap_err().message, "a tree of fan-in 1 does not end");
}

/// Statements S7 and S15: branches that are merged by time come out in order, whatever the plan and
/// the shards, all rows of them.
#[test]
fn branches_merge_in_order_of_time() {
    cases("merge by time", 12, |rng| {
        let layout = *rng.pick(&layouts());
        let plan = if rng.chance(50) { para(rng) } else { *rng.pick(&PLANS) };
        let branches = source("l", layout).split(5, col("k"), Some(col("j").eq(lit(3i64))), plan);
        let [any, by_time] = [branches.merge(), branches.merge_by_time()];
        let mut ordered = by_time.run().unwrap();
        let mut pushed = Vec::new();
        let mut times = Vec::new();
        for until in [20, 40, 90] {
            for _ in 0..rng.below(30) {
                let start = rng.between(until - 20, until - 1);
                let row = vec![rng.between(0, 4).into(), rng.between(0, 3).into(), rng.between(-4, 9).into()];
                let shard = rng.below(layout.shards());
                pushed.push((shard, Event::point(start, row.clone())));
                ordered.push("l", shard, vec![Event::point(start, row)]).unwrap();
            }
            ordered.advance_all(until).unwrap();
            times.push(ordered.drain().unwrap());
        }
        times.push(ordered.finish().unwrap());
        let all: Vec<_> = times.iter().flat_map(|outcome| outcome.shards.iter().flatten()).collect();
        let starts: Vec<i64> =
            all.iter().flat_map(|batch| (0..batch.len()).map(|row| batch.times().get(row))).collect();
        assert!(starts.is_sorted(), "{starts:?}");
        assert!(times.iter().all(|outcome| outcome.shards[1..].iter().all(Vec::is_empty)), "all in the first shard");

        let mut unordered = any.run().unwrap();
        pushed.into_iter().for_each(|(shard, event)| unordered.push("l", shard, vec![event]).unwrap());
        let expected = updates(&unordered.finish().unwrap().changes());
        let mut found = std::collections::BTreeMap::new();
        for outcome in &times {
            for (update, diff) in updates(&outcome.changes()) {
                *found.entry(update).or_insert(0) += diff;
            }
        }
        found.retain(|_, diff| *diff != 0);
        assert_eq!(found, expected);
    });
}
