//! Partial aggregates put together: the plans of Quill, figure 1, equal the aggregate over all rows
//! at every time, for every aggregate that has parts, in all windows (statement A9).

use std::sync::Arc;

use anabranch_engine::frame::{
    AggregateParts, Frame, FrameAggregate, GroupRows, Mergeable, UserAggregate, avg, bool_or, col, count, count_rows,
    custom_mergeable, in_parts, lit, max, median, min, sum, top_k, variance, variance_population,
};
use anabranch_shards::{Layout, Move, Shards};
use anabranch_testing::rng::cases;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type};
use datafusion_expr::cast;

use crate::support::{rows, run, same_as_one_shard, same_in_all_layouts, source, updates};

/// Greatest less least value: its state is both.
struct Spread;

type Bounds = Option<(i64, i64)>;

fn bounds_fields() -> Fields {
    Fields::from(["lo", "hi"].map(|name| Field::new(name, DataType::Int64, true)).to_vec())
}

fn widen(state: &mut Bounds, lo: i64, hi: i64) {
    *state = Some(state.map_or((lo, hi), |(low, high)| (low.min(lo), high.max(hi))));
}

impl UserAggregate for Spread {
    type State = Bounds;

    fn name(&self) -> &str {
        "spread"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments {
            [DataType::Int64] => Ok(DataType::Int64),
            _ => Err("it takes one bigint".to_owned()),
        }
    }

    fn initial(&self) -> Bounds {
        None
    }

    fn accumulate(&self, states: &mut [Bounds], rows: &GroupRows<'_>) -> Result<(), String> {
        let values = rows.column(0).as_primitive::<Int64Type>();
        for (state, row) in rows.iter().filter(|(_, row)| values.is_valid(*row)) {
            widen(&mut states[state], values.value(row), values.value(row));
        }
        Ok(())
    }

    fn compute(&self, states: &[&Bounds]) -> Result<ArrayRef, String> {
        Ok(Arc::new(states.iter().map(|state| state.map(|(lo, hi)| hi - lo)).collect::<Int64Array>()))
    }
}

impl Mergeable for Spread {
    fn stored_type(&self, _arguments: &[DataType]) -> Result<DataType, String> {
        Ok(DataType::Struct(bounds_fields()))
    }

    fn merged_type(&self, _stored: &DataType) -> Result<DataType, String> {
        Ok(DataType::Int64)
    }

    fn store(&self, states: &[&Bounds]) -> Result<ArrayRef, String> {
        let column = |of: fn((i64, i64)) -> i64| {
            Arc::new(states.iter().map(|state| state.map(of)).collect::<Int64Array>()) as ArrayRef
        };
        Ok(Arc::new(StructArray::new(
            bounds_fields(),
            vec![column(|bounds| bounds.0), column(|bounds| bounds.1)],
            None,
        )))
    }

    fn merge(&self, states: &mut [Bounds], stored: &GroupRows<'_>) -> Result<(), String> {
        let bounds = stored.column(0).as_struct();
        let [lo, hi] = [0, 1].map(|at| bounds.column(at).as_primitive::<Int64Type>());
        for (state, row) in stored.iter().filter(|(_, row)| bounds.is_valid(*row) && lo.is_valid(*row)) {
            widen(&mut states[state], lo.value(row), hi.value(row));
        }
        Ok(())
    }
}

/// Every aggregate that has parts.
fn aggregates() -> Vec<FrameAggregate> {
    vec![
        count_rows().alias("n"),
        count(col("x")).filter(col("x").gt(lit(2i64))).alias("c"),
        sum(col("x")).alias("s"),
        avg(col("x")).alias("m"),
        min(col("x")).alias("lo"),
        max(col("x")).alias("hi"),
        bool_or(col("x").gt(lit(7i64))).alias("b"),
        variance(col("x")).alias("v"),
        variance_population(col("x")).filter(col("x").gt(lit(0i64))).alias("p"),
        top_k(col("x"), 3).alias("t"),
        custom_mergeable(Spread, [col("x")]).alias("u"),
    ]
}

/// The four plans of figure 1 over rows with a key, each shard's in some windows.
fn figure_1(rows: &Shards, steps: &AggregateParts, windows: fn(Frame) -> Frame) -> [Shards; 4] {
    let parts = |frame| steps.parts(&windows(frame));
    let merged = |frame: Frame| steps.merged(&frame);
    let results = |frame: Frame| steps.results(&frame);
    [
        rows.redistribute(Move::FLAT).query(|frame| windows(frame).agg(aggregates())),
        rows.query(parts).redistribute(Move::FLAT).query(results),
        rows.query(parts).redistribute(Move::LOCAL).query(merged).redistribute(Move::FLAT).query(results),
        rows.redistribute(Move::LOCAL).query(parts).redistribute(Move::FLAT).query(results),
    ]
}

/// Holds the four plans, over what `place` makes of rows, against the plain query of one shard.
fn a9(name: &str, windows: fn(Frame) -> Frame, place: fn(Shards) -> Shards, within: fn(Frame) -> Frame) {
    cases(name, 2, |rng| {
        let inputs = [("l", rows(rng, 60))];
        let plain = source("l", Layout::flat(1))
            .query(|frame| frame.group_apply([col("k")], |of_key| windows(within(of_key)).agg(aggregates())));
        let expected = updates(&run(rng, &plain, 1, &inputs).changes());
        assert!(!expected.is_empty());
        let steps = in_parts(aggregates());
        for plan in 0..4 {
            let build = |layout| figure_1(&place(source("l", layout).rekey(["k"])), &steps, windows)[plan].clone();
            same_in_all_layouts(rng, build, &inputs, &expected);
        }
    });
}

#[test]
fn a9_plans_of_figure_1_are_equal_at_every_time() {
    a9("no windows", |frame| frame, |rows| rows, |frame| frame);
}

#[test]
fn a9_plans_of_figure_1_are_equal_in_tumbling_windows() {
    a9("tumbling", |frame| frame.tumbling(10), |rows| rows, |frame| frame);
}

#[test]
fn a9_plans_of_figure_1_are_equal_in_hopping_windows() {
    a9("hopping", |frame| frame.hopping(20, 5, 0), |rows| rows, |frame| frame);
}

/// Sessions need all rows of a key. Once rows have them, they may lie anywhere.
#[test]
fn a9_plans_of_figure_1_are_equal_in_sessions() {
    let sessions = |frame: Frame| frame.session(6, Some(25));
    let place = |rows: Shards| {
        let sessions = |frame: Frame| frame.session(6, Some(25));
        rows.redistribute(Move::FLAT).query(sessions).reshard(Move::FLAT)
    };
    a9("sessions", |frame| frame, place, sessions);
}

#[test]
fn sessions_of_each_shard_are_refused() {
    let count = |layout: Layout| {
        let steps = in_parts([count_rows().alias("n")]);
        let parts = source("l", layout).rekey(["k"]).query(|frame| steps.parts(&frame.session(6, None)));
        parts.redistribute(Move::FLAT).query(|frame| steps.results(&frame))
    };
    let error = count(Layout::flat(3)).check().unwrap_err();
    assert!(error.message.starts_with("the program depends on the number of shards: "), "{}", error.message);
    assert!(error.hint.unwrap().starts_with("Move rows that belong together into one shard before"));
    let mut rng = anabranch_testing::rng::Rng::new(3);
    let inputs = [("l", rows(&mut rng, 60))];
    let mut found = |shards| updates(&run(&mut rng, &count(Layout::flat(shards)), shards, &inputs).changes());
    assert_ne!(found(3), found(1), "sessions of each shard are other sessions");
}

/// Without a key, the whole is put together in one shard.
#[test]
fn aggregates_of_all_rows_are_put_together_in_one_shard() {
    let steps = in_parts(aggregates());
    same_as_one_shard("no key", |layout| {
        let parts = source("l", layout).query(|frame| steps.parts(&frame.tumbling(10)));
        parts.reshard(Move::to_shards(1)).query(|frame| steps.results(&frame))
    });
}

/// A person writes both steps: sums and counts, and the mean of them.
#[test]
fn means_are_computed_of_sums_and_counts() {
    let totals = |frame: Frame| frame.agg(["s", "c"].map(|name| sum(col(name)).alias(name)));
    let mean = |frame: Frame| {
        let double = |name: &str| cast(col(name), DataType::Float64);
        frame.agg(["s", "c"].map(|name| sum(col(name)).alias(name))).select([(double("s") / double("c")).alias("m")])
    };
    let parts = |frame: Frame| frame.tumbling(10).agg([sum(col("x")).alias("s"), count(col("x")).alias("c")]);
    let plans: [&dyn Fn(Shards) -> Shards; 3] = [
        &|rows| rows.query(parts).redistribute(Move::FLAT).query(mean),
        &|rows| rows.query(parts).redistribute(Move::LOCAL).query(totals).redistribute(Move::FLAT).query(mean),
        &|rows| rows.redistribute(Move::LOCAL).query(parts).redistribute(Move::FLAT).query(mean),
    ];
    for plan in plans {
        cases("means by hand", 2, |rng| {
            let inputs = [("l", rows(rng, 60))];
            let keyed = |layout| source("l", layout).rekey(["k"]);
            let plain = keyed(Layout::flat(1)).query(|frame| frame.tumbling(10).agg([avg(col("x")).alias("m")]));
            let expected = updates(&run(rng, &plain, 1, &inputs).changes());
            same_in_all_layouts(rng, |layout| plan(keyed(layout)), &inputs, &expected);
        });
    }
    // The mean of some of the sums is no sum.
    let early = |rows: Shards| rows.query(parts).redistribute(Move::LOCAL).query(mean).redistribute(Move::FLAT);
    let error = early(source("l", Layout::grid(2, 2)).rekey(["k"])).check().unwrap_err();
    assert!(error.message.contains("partial results are computed with"), "{}", error.message);
}

#[test]
fn aggregates_without_parts_are_refused_by_name() {
    let refused = |aggregate: FrameAggregate| {
        let steps = in_parts([aggregate]);
        let error = source("l", Layout::flat(2)).query(|frame| steps.parts(&frame)).check().unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("Move rows of a group into one shard first, and aggregate them there."));
        error.message
    };
    assert_eq!(refused(median(col("x"))), "median(x) cannot be computed in parts");
    assert_eq!(refused(count(col("x")).distinct()), "count(distinct x) cannot be computed in parts");
    assert_eq!(refused(top_k(col("x"), 2).distinct().alias("t")), "t cannot be computed in parts");
}

/// States are put together by the aggregate that stored them, and by no other.
#[test]
fn states_of_another_aggregate_are_not_put_together() {
    let of = |aggregate: FrameAggregate| in_parts([aggregate.alias("a")]);
    let spread = || custom_mergeable(Spread, [col("x")]);
    let pairs = [
        (of(spread()), of(spread())),
        (of(top_k(col("x"), 2)), of(top_k(col("x"), 3))),
        (of(top_k(col("x"), 3)), of(top_k(col("x"), 2))),
    ];
    for (first, second) in pairs {
        let parts = source("l", Layout::flat(2)).rekey(["k"]).query(|frame| first.parts(&frame));
        let results = parts.redistribute(Move::FLAT).query(|frame| second.results(&frame));
        let error = results.check().unwrap_err();
        assert!(error.message.ends_with("not put together by a plain aggregate of theirs"), "{}", error.message);
    }
    // What comes out of the last step is no state.
    let steps = of(spread());
    let grid = source("l", Layout::grid(2, 2)).rekey(["k"]).query(|frame| steps.parts(&frame));
    let error = grid.redistribute(Move::LOCAL).query(|frame| steps.results(&frame)).check().unwrap_err();
    assert!(error.message.contains("partial results are computed with"), "{}", error.message);
}
