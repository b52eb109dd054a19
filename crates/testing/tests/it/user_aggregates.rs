//! Aggregates of users': equal to built-in ones, and what becomes of those that fail.

use anabranch_engine::frame::{
    Event, Expr, Frame, FrameAggregate, col, custom, custom_invertible, lit, product, single, start, sum, sum_squares,
};
use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::temporal::aggregates::{Fault, Faulty, Latest, UserSum};
use anabranch_testing::temporal::laws::{Life, Out, hold, input, snapshots};

/// The lifetime that a row is given.
type Lifetime = Box<dyn Fn(&Life) -> (i64, i64)>;

/// What windows make of lifetimes.
type Change = Box<dyn Fn(&[Life]) -> Vec<Life>>;

/// Lifetimes of all kinds: as they come, one duration, windows apart, windows that overlap.
fn windowed(rng: &mut Rng) -> (Frame, Change) {
    let given = input("left");
    let ticks = rng.between(1, 9);
    let with = |change: Lifetime| -> Change {
        Box::new(move |lives| {
            let changed = lives.iter().map(|life| (change(life), life));
            changed.map(|((start, end), life)| Life { start, end, ..*life }).collect()
        })
    };
    let boundary = move |life: &Life| life.start + (-life.start).rem_euclid(ticks);
    match rng.below(4) {
        0 => (given, Box::new(|lives| lives.to_vec())),
        1 => (given.alter_duration(ticks), with(Box::new(move |life| (life.start, life.start + ticks)))),
        2 => (given.tumbling(ticks), with(Box::new(move |life| (boundary(life), boundary(life) + ticks)))),
        _ => (
            given.hopping(3 * ticks, ticks, 0),
            with(Box::new(move |life| (boundary(life), boundary(life) + 3 * ticks))),
        ),
    }
}

fn law(name: &str, calls: impl Fn() -> Vec<FrameAggregate>, of: fn(&[&Life]) -> String) {
    cases(name, 60, |rng| {
        let (frame, change) = windowed(rng);
        let by_key = rng.chance(70);
        let keys: Vec<Expr> = if by_key { vec![col("k")] } else { vec![] };
        let frame = frame.group_by(keys).agg(calls());
        let model =
            |inputs: &[Vec<Life>]| -> Vec<Out> { snapshots(&change(&inputs[0]), |life| by_key.then_some(life.k), of) };
        hold(rng, &frame, 0, model);
    });
}

fn total<'a>(lives: impl IntoIterator<Item = &'a &'a Life>) -> i64 {
    lives.into_iter().map(|life| life.x).sum()
}

#[test]
fn a_sum_of_the_users_own_is_the_built_in_sum() {
    let calls = || vec![sum(col("x")).alias("a"), custom_invertible(UserSum, [col("x")]).alias("b")];
    law("user sum", calls, |lives| format!("{0}, {0}", total(lives)));
}

#[test]
fn aggregates_that_cannot_be_inverted_see_all_rows_in_force() {
    let calls = || vec![custom(UserSum, [col("x")]), custom(Latest, [col("x")]).alias("latest")];
    law("user latest", calls, |lives| {
        let latest = lives.iter().map(|life| (life.start, life.x)).max().map(|(_, x)| x);
        format!("{}, {}", total(lives), latest.expect("a piece has rows"))
    });
}

#[test]
fn products_and_squares() {
    let float = || datafusion_expr::cast(col("x"), arrow::datatypes::DataType::Float64);
    let calls = || vec![product(col("x")), product(float()).alias("f"), sum_squares(col("x")).alias("s")];
    law("product", calls, |lives| {
        let product = lives.iter().map(|life| life.x).product::<i64>();
        let squares = lives.iter().map(|life| life.x * life.x).sum::<i64>();
        // (A product of floats has the sign of zero.)
        let mut factors: Vec<f64> = lives.iter().map(|life| life.x as f64).collect();
        factors.sort_unstable_by(f64::total_cmp);
        let float = factors.into_iter().product::<f64>();
        format!("{product}, {}, {squares}", datafusion_common::ScalarValue::Float64(Some(float)))
    });
}

#[test]
fn a_single_row_is_its_value_and_several_are_an_error() {
    let frame = input("in")
        .group_by([col("k")])
        .agg([single(col("x")), single(col("x")).filter(col("x").lt(lit(0))).alias("negative")]);
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&frame).expect("the frame is right");
    let event = |start: i64, end: i64, k: i64, x: i64| Event::interval(start, end, [k.into(), x.into()]);
    run.push("in", vec![event(1, 9, 1, 5), event(2, 4, 2, -7), event(6, 8, 1, 6)]).expect("rows fit");
    run.finish().expect("the run ends");
    let error = run.lifetimes().expect_err("two rows are in force from 6 to 8");
    assert!(error.to_string().contains("aggregate \"single\" failed: there are 2 rows"), "{error}");
    let mut rest: Vec<String> =
        run.lifetimes().expect("what is not in error comes out").iter().map(ToString::to_string).collect();
    rest.sort();
    assert_eq!(rest, ["[1, 6) 1, 5, NULL", "[2, 4) 2, -7, -7", "[8, 9) 1, 5, NULL"]);
}

#[test]
fn a_users_aggregate_can_be_filtered() {
    let is_positive = || col("x").gt(lit(0));
    let calls = || {
        let (inverted, kept) = (custom_invertible(UserSum, [col("x")]), custom(UserSum, [col("x")]));
        vec![inverted.filter(is_positive()).alias("a"), kept.filter(is_positive()).alias("b")]
    };
    law("user filter", calls, |lives| {
        let positive: Vec<&Life> = lives.iter().copied().filter(|life| life.x > 0).collect();
        match positive.is_empty() {
            true => "NULL, NULL".to_owned(),
            false => format!("{0}, {0}", total(&positive)),
        }
    });
}

/// What comes out, or the error, of `n` rows a key for two keys, windowed as said; then of a second
/// frame in the same session.
fn outcome(window: impl Fn(Frame) -> Frame, fault: Fault) -> Result<Vec<String>, String> {
    let frame = window(input("in")).group_by([col("k")]).agg([custom_invertible(Faulty(fault), [col("x")])]);
    let mut session = Session::new(Options::default()).expect("a session starts");
    let outcome = {
        let mut run = session.start(&frame).expect("the frame is right");
        let rows =
            [(1, 1), (1, 2), (1, 3), (2, 4)].map(|(k, x): (i64, i64)| Event::interval(x, 20, [k.into(), x.into()]));
        run.push("in", rows.to_vec()).expect("rows fit");
        run.finish().expect("the run goes on");
        let first = run.lifetimes();
        // (The error has been said; the rest is there.)
        let rest = run.lifetimes().expect("what is not in error comes out");
        match first {
            Ok(lifetimes) => Ok(lifetimes.iter().map(ToString::to_string).collect()),
            Err(error) => Err(format!("{} / {} left", error.message, rest.len())),
        }
    };
    let mut run = session.start(&input("in").agg([sum(start())])).expect("the session lives");
    run.push("in", vec![Event::point(1, [1i64.into(), 1i64.into()])]).expect("rows fit");
    run.finish().expect("the run ends");
    assert_eq!(run.lifetimes().expect("nothing fails").len(), 1);
    outcome
}

#[test]
fn a_users_aggregate_that_fails_is_an_error_of_its_rows_and_the_session_lives() {
    for window in [|frame: Frame| frame, |frame: Frame| frame.tumbling(10), |frame: Frame| frame.alter_duration(5)] {
        let error = |fault| outcome(window, fault).expect_err("it fails");
        assert!(error(Fault::Compute).contains("aggregate \"faulty\" failed: more than two rows"));
        assert!(error(Fault::Accumulate).contains("aggregate \"faulty\" failed: no row is good enough"));
        assert!(error(Fault::Panic).contains("aggregate \"faulty\" failed: it panicked: a bug of the user's"));
        assert!(error(Fault::Type).contains("aggregate \"faulty\" failed: it computed Utf8"), "{}", error(Fault::Type));
    }
}

#[test]
fn a_users_aggregate_is_refused_where_it_has_no_meaning() {
    let refused = |aggregate: FrameAggregate| {
        let frame = input("in").agg([aggregate]);
        let mut session = Session::new(Options::default()).expect("a session starts");
        session.start(&frame).map(|_| ()).expect_err("it is refused").message
    };
    assert_eq!(refused(custom(UserSum, [lit("a")])), "aggregate \"user_sum\" is refused: it takes one bigint");
    assert_eq!(
        refused(custom(UserSum, [col("x")]).distinct()),
        "user_sum(DISTINCT ..) is not supported: make the rows distinct first"
    );
    let explained = input("in").agg([custom(Latest, [col("x")])]).explain().expect("the frame is right");
    assert!(explained.contains("latest(x, @start)"), "{explained}");
}
