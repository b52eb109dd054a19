//! Growth of the verbs of frames: what each costs, and holds, at n, 2n and 4n events; see
//! [`growth`](super::growth).

use std::sync::Arc;

use anabranch_engine::frame::{
    AsofOptions, EventPattern, Events, FOREVER, Frame, How, col, collect, count_rows, first, last, lit, max,
    percentile_cont, reg, sum, top_k,
};
use anabranch_engine::{Options, Session};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};

use super::growth::{GROWTH_MAX, costs_at, seconds};

type Verb = fn(&Frame, &Frame) -> Frame;

/// Verbs with state, over events `(k, x)` that last three ticks; each begins at a time of its own.
const STATEFUL: &[(&str, Verb)] = &[
    ("sums", |a, _| a.group_by([col("k")]).agg([sum(col("x")), count_rows()])),
    ("greatest of many", |a, _| a.alter_duration(100).group_by([col("k")]).agg([max(col("x"))])),
    ("tumbling windows", |a, _| a.tumbling(50).group_by([col("k")]).agg([sum(col("x"))])),
    ("hopping windows", |a, _| a.hopping(100, 10, 0).group_by([col("k")]).agg([max(col("x"))])),
    ("repetitive windows", |a, _| a.repetitive_hopping(50, 10, 0).group_by([col("k")]).agg([count_rows()])),
    ("quantized windows", |a, _| a.quantize(100, 10, 0).agg([sum(col("x"))])),
    ("percentiles", |a, _| a.tumbling(50).agg([percentile_cont(col("x"), 0.5)])),
    ("lists", |a, _| a.tumbling(50).group_by([col("k")]).agg([collect(col("x"))])),
    ("first values", |a, _| a.tumbling(50).agg([top_k(col("x"), 3), first(col("x")), last(col("x"))])),
    ("distinct rows", |a, _| a.alter_duration(100).select([col("k"), col("x") % lit(5i64)]).distinct()),
    ("unions", |a, b| a.union(b).distinct()),
    ("inner join", |a, b| a.join(b, [col("k")], [col("k")], How::Inner)),
    ("left join", |a, b| a.join(b, [col("k"), col("x")], [col("k"), col("x")], How::Left)),
    ("full join", |a, b| a.join(b, [col("x")], [col("x")], How::Full)),
    ("absent rows", |a, b| a.where_not_exists(&b.filter(col("x").gt(lit(500i64))), [col("x")], [col("x")])),
    ("as-of join", |a, b| a.join_asof(b, [col("k")], [col("k")], AsofOptions::backward())),
    ("as-of join forward", |a, b| a.join_asof(b, [col("k")], [col("k")], AsofOptions::forward().left())),
    ("as-of join to the nearest", |a, b| a.join_asof(b, [col("k")], [col("k")], AsofOptions::nearest().tolerance(20))),
    ("clipping", |a, b| a.alter_duration(FOREVER).clip_by(b, [col("k")], [col("k")])),
    ("extended ends", |a, _| a.extend(7)),
    ("clipped durations", |a, _| a.clip_duration(2)),
    ("pieces", |a, _| a.alter_duration(40).chop(10, 0)),
    ("stitched events", |a, _| a.alter_duration(1).select([col("k")]).stitch()),
    ("points at ends", |a, _| a.point_at_end()),
    // (Of a session, each event is told that it has gone on: it is ended at some length.)
    ("sessions", |a, _| a.session(30, Some(100))),
    ("sessions of keys", |a, _| a.group_apply([col("k")], |group| group.session(30, Some(100)))),
    ("next events", |a, _| a.consecutive_pairs()),
    ("next events within", |a, _| a.followed_by_immediate(col("x").gt(lit(500i64)), col("x").lt(lit(500i64)), 10)),
    ("opened and closed", |a, _| a.sessionize([col("k")], col("x").gt(lit(900i64)), col("x").lt(lit(100i64)))),
    ("patterns", |a, _| {
        let falls = EventPattern::event(col("x").lt(reg("low"))).set("low", col("x")).plus();
        a.group_apply([col("k")], |group| {
            let begins = EventPattern::event(col("x").gt(lit(800i64))).set("low", col("x"));
            group.detect(&begins.register("low", lit(0i64)).then(falls).within(50).non_overlapping())
        })
    }),
];

const LOOPS: &[(&str, Verb)] = &[("loops", |a, b| {
    a.select([col("x")]).iterate(|reached| {
        reached
            .join(&b.select([col("x").alias("y"), col("k")]), [col("x")], [col("y")], How::Inner)
            .select([col("k").alias("x")])
    })
})];

/// How events come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coming {
    /// In one push, all of one key, in order.
    AtOnce,
    /// In four pushes, of fifty keys, shuffled; then time goes on.
    Shuffled,
    /// In pushes of twenty, of five keys, in order; time goes on behind each.
    InSmallPushes,
}

impl Coming {
    /// The events of each push.
    fn pushes(self, n: i64) -> Vec<RecordBatch> {
        let (size, n_keys) = match self {
            Coming::AtOnce => (n, 1),
            Coming::Shuffled => (n / 4, 50),
            Coming::InSmallPushes => (20, 5),
        };
        // (A prime beyond all events, so that no two of them have one time.)
        let time = |i: i64| if self == Coming::Shuffled { i * 7919 % 100_003 } else { i };
        let push = |begin: i64| {
            let column = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
                Arc::new(Int64Array::from_iter_values((begin..begin + size).map(of)))
            };
            let columns = [
                ("k", column(&|i| i % n_keys)),
                ("x", column(&|i| i * 7919 % 1000)),
                ("t", column(&time)),
                ("e", column(&|i| time(i) + 3)),
            ];
            RecordBatch::try_from_iter(columns).expect("the columns are equally long")
        };
        (0..n / size).map(|at| push(at * size)).collect()
    }
}

fn schema() -> Schema {
    Schema::new(["k", "x", "t", "e"].map(|name| Field::new(name, DataType::Int64, true)).to_vec())
}

fn session() -> Session {
    Session::new(Options { workers: 0, ..Options::default() }).expect("a session without threads begins")
}

/// The CPU time of a run.
fn cost(verb: Verb, coming: Coming, n: i64) -> f64 {
    let input = |name: &str| Events::input(name, schema()).time_column("t").end_column("e").frame();
    let frame = verb(&input("a"), &input("b"));
    let pushes = coming.pushes(n);
    let mut session = session();
    let mut run = session.start(&frame).expect("the frame is right");
    // (Time can go on of those inputs alone that the frame has.)
    let inputs: Vec<&str> = ["a", "b"].into_iter().filter(|name| run.advance(name, 0).is_ok()).collect();
    let before = seconds();
    for rows in &pushes {
        for input in &inputs {
            run.push(input, rows.clone()).expect("the rows fit");
        }
        if coming == Coming::InSmallPushes {
            let times = rows["t"].clone();
            let last = arrow::compute::max(times.as_any().downcast_ref::<Int64Array>().expect("times are numbers"));
            run.advance_all(last.expect("there are rows") + 1).expect("time goes on");
            run.drain().expect("no row is in error");
        }
    }
    run.finish().expect("all events end");
    run.drain().expect("no row is in error");
    seconds() - before
}

#[test]
fn verbs_of_frames_grow_with_their_events() {
    grow_with_their_events(STATEFUL, 2_000);
}

#[test]
fn loops_of_frames_grow_with_their_events() {
    grow_with_their_events(LOOPS, 1_000);
}

fn grow_with_their_events(verbs: &[(&str, Verb)], n: i64) {
    for (name, verb) in verbs {
        for coming in [Coming::AtOnce, Coming::Shuffled, Coming::InSmallPushes] {
            let costs = costs_at([n, 2 * n, 4 * n], GROWTH_MAX, |n| cost(*verb, coming, n));
            println!("{name}, {coming:?}: {n} events and twice and four times as many: {costs:.3?} CPU s");
            assert!(
                costs[2] <= GROWTH_MAX * costs[0],
                "{name}, {coming:?} grows faster than its events: {costs:?} CPU s"
            );
        }
    }
}

/// The control: a test that finds no growth in this finds none in anything.
#[test]
#[should_panic(expected = "grows with the square")]
fn pairs_of_all_events_grow_with_their_square() {
    let all: Verb =
        |a, b| a.alter_duration(FOREVER).join(&b.alter_duration(FOREVER), [col("k")], [col("k")], How::Inner);
    let costs = costs_at([1_000, 4_000], GROWTH_MAX, |n| cost(all, Coming::AtOnce, n));
    assert!(costs[1] <= GROWTH_MAX * costs[0], "pairs grows with the square: {costs:?}");
}

/// Bytes that the dataflow of a view of the frame holds, with its result.
fn state_bytes(verb: Verb, n: i64) -> i64 {
    let mut session = session();
    for relation in ["a", "b"] {
        let sql = format!(
            "CREATE TABLE {relation} (k bigint, x bigint, t bigint, e bigint, WATERMARK FOR t AS t) APPEND ONLY
             WITH (retain = 'none')"
        );
        session.execute(&sql).expect("the table is made");
    }
    let input = |name: &str| session.events(name).expect("it is a table").time_column("t").end_column("e").frame();
    let frame = verb(&input("a"), &input("b"));
    session.create_view("v", &frame).expect("the frame is right");
    for rows in Coming::InSmallPushes.pushes(n) {
        for relation in ["a", "b"] {
            session.insert(relation, &rows).expect("the rows fit");
        }
    }
    let answer = session.query("SELECT sum(bytes)::bigint AS bytes FROM anabranch_memory").expect("it is answered");
    let bytes = answer.batches[0].column(0).clone();
    bytes.as_any().downcast_ref::<Int64Array>().expect("bytes are whole").value(0)
}

/// Time goes on, so what is behind it leaves: a frame holds what the last events need.
#[test]
fn state_of_frames_does_not_grow_with_time() {
    const N: i64 = 4_000;
    // (Buffers double; runs of the result and of watermarks wait to be merged. The rows of one
    // input alone, if they were kept, would be more than 300,000 bytes more.)
    const SLACK: f64 = 100_000.0;
    for (name, verb) in STATEFUL.iter().chain(LOOPS) {
        let bytes = [N, 4 * N].map(|n| state_bytes(*verb, n) as f64);
        println!("{name}: {bytes:?} bytes");
        assert!(bytes[1] <= 2.0 * bytes[0] + SLACK, "the state of {name} grows with time: {bytes:?}");
    }
}
