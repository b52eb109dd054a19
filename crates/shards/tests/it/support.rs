//! Random rows, and what comes out of a program as text.

use std::collections::BTreeMap;

use anabranch_batch::{Batch, Time};
use anabranch_engine::frame::Event;
use anabranch_shards::{Carry, Layout, ParaOptions, RunOutcome, Shards, SplitPlan};
use anabranch_testing::rng::Rng;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;

/// Columns of all sources here: a key, another one, a number.
pub fn schema() -> Schema {
    Schema::new(["k", "j", "x"].map(|column| Field::new(column, DataType::Int64, true)).to_vec())
}

/// A source of these columns.
pub fn source(name: &str, layout: Layout) -> Shards {
    Shards::source(name, schema(), layout)
}

/// Layouts of one to eight shards, in one process and in several.
pub fn layouts() -> Vec<Layout> {
    let grids = [(2, 1), (2, 2), (3, 2), (2, 3), (4, 2), (2, 4)];
    (1..=8).map(Layout::flat).chain(grids.map(|(processes, threads)| Layout::grid(processes, threads))).collect()
}

/// A parallel split with random splitters, window and seed.
pub fn para(rng: &mut Rng) -> SplitPlan {
    let options = ParaOptions {
        splitters: Some(*rng.pick(&[1, 2, 3, 7, 32])),
        window: Some(*rng.pick(&[1, 2, 5, 1000])),
        seed: rng.below(1_000_000) as u64,
        ..ParaOptions::CHOSEN
    };
    SplitPlan::Para(options)
}

/// Rows of all kinds: points, intervals, and start edges whose ends come later, in pairs that
/// belong to one shard.
pub fn rows(rng: &mut Rng, count: usize) -> Vec<Vec<Event>> {
    let mut rows = Vec::new();
    for _ in 0..count {
        let (start, ticks) = (rng.between(0, 60), rng.between(1, 25));
        let key = if rng.chance(5) { ScalarValue::Int64(None) } else { rng.between(0, 6).into() };
        let row = vec![key, rng.between(0, 3).into(), rng.between(-4, 9).into()];
        rows.push(match rng.below(4) {
            0 => vec![Event::point(start, row)],
            1 => vec![Event::start(start, row)],
            2 => vec![Event::start(start, row.clone()), Event::end(start + ticks, start, row)],
            _ => vec![Event::interval(start, start + ticks, row)],
        });
    }
    rows
}

/// What comes out when rows are given to random shards in random pieces.
pub fn run(rng: &mut Rng, program: &Shards, shards: usize, inputs: &[(&str, Vec<Vec<Event>>)]) -> RunOutcome {
    let carry = if rng.chance(50) { Carry::Batches } else { Carry::Wire };
    let mut run = program.run_with(carry).unwrap();
    for (source, rows) in inputs {
        let mut parts: Vec<Vec<Event>> = vec![vec![]; shards];
        rows.iter().for_each(|row| parts[rng.below(shards)].extend(row.clone()));
        for (shard, part) in parts.into_iter().enumerate() {
            let cut = rng.below(part.len() + 1);
            let (first, second) = part.split_at(cut);
            run.push(source, shard, first.to_vec()).unwrap();
            run.push(source, shard, second.to_vec()).unwrap();
        }
    }
    run.advance_all(rng.between(-5, 90)).unwrap();
    run.finish().unwrap()
}

/// Updates by row and time.
pub fn updates(batch: &Batch) -> BTreeMap<(Time, Vec<String>), i64> {
    let mut updates = BTreeMap::new();
    for row in 0..batch.len() {
        let cells = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, row).unwrap().to_string());
        *updates.entry((batch.times().get(row), cells.collect())).or_default() += batch.diffs().get(row);
    }
    updates.retain(|_, diff| *diff != 0);
    updates
}

/// Holds a program of each layout against itself of one shard, on random rows.
pub fn same_as_one_shard(name: &str, build: impl Fn(Layout) -> Shards) {
    anabranch_testing::rng::cases(name, 2, |rng| {
        let inputs = [("l", rows(rng, 60)), ("r", rows(rng, 20))];
        let alone = build(Layout::flat(1));
        let given = used_by(&alone, &inputs);
        let expected = updates(&run(rng, &alone, 1, &given).changes());
        same_in_all_layouts(rng, &build, &given, &expected);
    });
}

/// Holds a program of each layout, which must be accepted, against what is expected of these rows.
pub fn same_in_all_layouts(
    rng: &mut Rng,
    build: impl Fn(Layout) -> Shards,
    inputs: &[(&str, Vec<Vec<Event>>)],
    expected: &BTreeMap<(Time, Vec<String>), i64>,
) {
    for layout in layouts() {
        let program = build(layout);
        program.check().unwrap();
        let found = updates(&run(rng, &program, layout.shards(), inputs).changes());
        assert_eq!(found, *expected, "{layout:?}\n{}", program.explain().unwrap());
    }
}

/// The inputs that a program reads.
pub fn used_by<'a>(program: &Shards, inputs: &[(&'a str, Vec<Vec<Event>>)]) -> Vec<(&'a str, Vec<Vec<Event>>)> {
    let plan = program.explain().unwrap();
    inputs.iter().filter(|(name, _)| plan.contains(&format!("source {name} "))).cloned().collect()
}
