//! Sources of which each shard has a range of a column: queries by it need no movement (statement
//! T2).

use anabranch_engine::frame::{Event, Frame, col, count_rows, lit, max, sum};
use anabranch_shards::{Layout, Move, Shards};
use anabranch_testing::rng::{Rng, cases};
use datafusion_common::ScalarValue;

use crate::support::{layouts, source, updates};

fn sums(frame: Frame) -> Frame {
    frame.hopping(20, 10, 0).agg([sum(col("x")).alias("s"), count_rows().alias("n"), max(col("x")).alias("m")])
}

fn moved(layout: Layout) -> Shards {
    source("l", layout).rekey(["k"]).redistribute(Move::FLAT).query(sums)
}

fn unmoved(layout: Layout) -> Shards {
    source("l", layout).packed_by("k").rekey(["k"]).query(sums)
}

/// Events of a key: points, intervals, and starts whose ends come later.
fn events(rng: &mut Rng, key: Option<i64>) -> Vec<Event> {
    let (start, ticks) = (rng.between(0, 60), rng.between(1, 25));
    let row = vec![ScalarValue::Int64(key), rng.between(0, 3).into(), rng.between(-4, 9).into()];
    match rng.below(3) {
        0 => vec![Event::point(start, row)],
        1 => vec![Event::start(start, row.clone()), Event::end(start + ticks, start, row)],
        _ => vec![Event::interval(start, start + ticks, row)],
    }
}

#[test]
fn packed_rows_need_no_movement() {
    cases("packed", 20, |rng| {
        let layout = *rng.pick(&layouts());
        let (packed, free) = (unmoved(layout), moved(layout));
        packed.check().unwrap();
        let mut ends: Vec<i64> = (1..layout.shards()).map(|_| rng.between(0, 7)).collect();
        ends.sort_unstable();
        let [mut over_ranges, mut over_any] = [&packed, &free].map(|program| program.run().unwrap());
        for _ in 0..80 {
            // (NULL lies behind all values.)
            let key = if rng.chance(5) { None } else { Some(rng.between(0, 6)) };
            let events = events(rng, key);
            let shard = ends.partition_point(|end| key.is_none_or(|key| *end <= key));
            over_ranges.push("l", shard, events.clone()).unwrap();
            over_any.push("l", rng.below(layout.shards()), events).unwrap();
        }
        let found = updates(&over_ranges.finish().unwrap().changes());
        assert_eq!(found, updates(&over_any.finish().unwrap().changes()), "{layout:?}");
        let crossed: u64 = over_ranges.moved().iter().map(|(_, moved)| moved.rows_near + moved.rows_far).sum();
        assert_eq!(crossed, 0);
    });
}

#[test]
fn ranges_are_known_where_they_lie_and_checked_where_rows_come() {
    let layout = Layout::flat(2);
    let plan = unmoved(layout).explain().unwrap();
    assert!(plan.contains("source l in 2 shards: packed by (k)"), "{plan}");
    // By other columns, rows of equal values may lie apart; rows of another source lie elsewhere.
    let other = source("l", layout).packed_by("k").rekey(["j"]).query(sums);
    other.check().unwrap_err();
    let left = source("l", layout).packed_by("k").rekey(["k"]);
    let without = |right: &Shards| left.query_with(right, |l, r| l.where_not_exists(&r, [], [])).check();
    without(&left.query(|q| q.filter(col("x").gt(lit(3i64))))).unwrap();
    without(&source("r", layout).packed_by("k").rekey(["k"])).unwrap_err();

    let program = unmoved(layout);
    let mut run = program.run().unwrap();
    let row = |k: i64| vec![Event::point(1, [k.into(), 0i64.into(), 0i64.into()])];
    run.push("l", 0, row(3)).unwrap();
    run.push("l", 1, row(7)).unwrap();
    run.push("l", 0, row(6)).unwrap();
    let error = run.push("l", 1, row(5)).unwrap_err();
    assert_eq!(
        error.message,
        "source \"l\" is packed by \"k\", but shard 1 has values from 5 to 7, and shard 0 from 3 to 6"
    );
    assert_eq!(source("l", layout).packed_by("q").check().unwrap_err().message, "there is no column \"q\" to be a key");
    let late = source("l", layout).rekey(["k"]).packed_by("k").check().unwrap_err();
    assert_eq!(late.message, "only a source can be packed");
}
