//! What is wrong about queries over events, and about rows: a clear error that names the thing, and
//! a session that lives.

use anabranch_engine::frame::{
    AsofOptions, Disorder, Event, EventPattern, Events, FOREVER, Frame, How, col, count_rows, lit, sum,
};
use anabranch_engine::{Options, Session};
use anabranch_testing::temporal::laws::input;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;

/// The error of building a frame.
fn refused(frame: &Frame) -> String {
    let error = frame.explain().expect_err("the frame is wrong");
    let mut session = Session::new(Options::default()).expect("a session starts");
    assert!(session.start(frame).is_err(), "what cannot be explained cannot be started");
    // The session lives.
    lives(&mut session);
    error.render("")
}

fn lives(session: &mut Session) {
    let frame = input("left").agg([count_rows()]);
    let mut run = session.start(&frame).expect("the session lives");
    run.push("left", vec![Event::point(1, row(1))]).expect("rows fit");
    run.finish().expect("the input ends");
    assert_eq!(run.lifetimes().expect("no row is in error").len(), 1);
}

fn row(x: i64) -> [ScalarValue; 2] {
    [ScalarValue::Int64(Some(0)), ScalarValue::Int64(Some(x))]
}

fn says(frame: &Frame, words: &[&str]) {
    let error = refused(frame);
    words.iter().for_each(|word| assert!(error.contains(word), "no {word:?} in\n{error}"));
}

#[test]
fn durations_that_are_not_positive_are_refused() {
    let left = || input("left");
    for ticks in [0, -3, i64::MIN] {
        let number = ticks.to_string();
        let frames = [
            left().alter_duration(ticks),
            left().clip_duration(ticks),
            left().tumbling(ticks),
            left().hopping(ticks, 5, 0),
            left().hopping(5, ticks, 0),
            left().quantize(5, ticks, 0),
            left().quantize_progressive(6, 6, ticks, 0),
            left().session(ticks, None),
            left().session(5, Some(ticks)),
            left().chop(ticks, 0),
            left().detect(&EventPattern::event(lit(true)).within(ticks)),
        ];
        frames.iter().for_each(|frame| says(frame, &[&number, "positive"]));
    }
    says(&left().join_asof(&input("right"), [], [], AsofOptions::nearest().tolerance(-1)), &["tolerance", "-1"]);
    let events = || Events::input("in", Schema::new(vec![Field::new("x", DataType::Int64, true)]));
    says(&events().constant_duration(-1).frame(), &["duration", "\"in\"", "-1"]);
    says(&events().constant_hop(0).frame(), &["hop", "\"in\"", "0"]);
}

#[test]
fn unknown_columns_are_named_with_the_nearest() {
    let (left, right) = (input("left"), input("right"));
    let other = Events::input("other", Schema::new(vec![Field::new("name", DataType::Utf8View, true)])).frame();
    let frames = [
        left.filter(col("xx").gt(lit(0))),
        left.select([col("xx")]),
        left.agg([sum(col("xx"))]),
        left.group_by([col("xx")]).agg([count_rows()]),
        left.alter_duration_by(col("xx")),
        left.session(5, None).group_apply([col("xx")], |group| group),
        left.join(&right, [col("xx")], [col("x")], How::Inner),
        left.join(&right, [col("x")], [col("xx")], How::Left),
        left.join_asof(&right, [col("xx")], [col("x")], AsofOptions::forward()),
        left.where_not_exists(&right, [col("xx")], [col("x")]),
        left.clip_by(&right, [col("x")], [col("xx")]),
        left.explode("xx"),
        left.detect(&EventPattern::event(col("xx").gt(lit(0))).within(5)),
    ];
    frames.iter().for_each(|frame| says(frame, &["\"xx\""]));
    let named = Events::input("in", Schema::new(vec![Field::new("delay", DataType::Int64, true)])).frame();
    says(&named.filter(col("dealy").gt(lit(0))), &["\"dealy\"", "\"delay\""]);
    says(&left.join(&other, [col("x")], [col("name")], How::Inner), &["Int64", "Utf8View", "Cast"]);
    says(&left.join_asof(&other, [col("x"), col("k")], [col("name")], AsofOptions::backward()), &["2 and 1 keys"]);
}

#[test]
fn a_pattern_that_may_never_finish_is_refused() {
    let endless = EventPattern::sequence([
        EventPattern::event(col("x").gt(lit(0))).plus(),
        EventPattern::event(col("x").lt(lit(0))),
    ]);
    says(&input("left").detect(&endless), &["no duration", ".within(ticks)"]);
    says(
        &input("left").alter_duration(FOREVER).detect(&endless),
        &["may never finish", "without a limit", ".within(ticks)"],
    );
}

#[test]
fn rows_out_of_order_are_refused_and_the_run_goes_on() {
    let frame = input("left").tumbling(10).agg([sum(col("x"))]);
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&frame).expect("the frame is right");
    run.push("left", vec![Event::point(3, row(1))]).expect("rows fit");
    run.advance("left", 6).expect("time moves on");
    // None of the rows of a refused push is taken.
    let late = run.push("left", vec![Event::point(7, row(100)), Event::point(5, row(100))]).expect_err("a row is late");
    assert!(late.to_string().contains("at 5 comes after the input was complete before 6"), "{late}");
    let outside = run.push("left", vec![Event::start(i64::MAX, row(100))]).expect_err("a row is outside of time");
    assert!(outside.to_string().contains("outside of time"), "{outside}");
    let unknown = run.push("lift", vec![Event::point(7, row(100))]).expect_err("there is no such input");
    assert!(unknown.render("").contains("\"left\""), "{unknown}");
    run.push("left", vec![Event::point(7, [ScalarValue::Utf8(Some("a".into())), 1i64.into()])])
        .expect_err("a value is of another type");
    run.push("left", vec![Event::point(8, row(2))]).expect("the run goes on");
    run.finish().expect("the input ends");
    let out: Vec<String> = run.lifetimes().expect("no row is in error").iter().map(ToString::to_string).collect();
    assert_eq!(out, ["[10, 20) 3"]);
    drop(run);
    lives(&mut session);
}

#[test]
fn a_row_out_of_order_is_an_error_where_the_policy_says_so() {
    let schema = Schema::new(["k", "x"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    let events = Events::input("in", schema).on_disorder(Disorder::Error).frame();
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&events).expect("the frame is right");
    let late = run.push("in", vec![Event::point(5, row(1)), Event::point(3, row(2))]).expect_err("a row is late");
    assert!(late.to_string().contains("at 3"), "{late}");
    run.push("in", vec![Event::point(6, row(3))]).expect("the run goes on");
    run.finish().expect("the input ends");
    let out: Vec<String> = run.lifetimes().expect("no row is in error").iter().map(ToString::to_string).collect();
    assert_eq!(out, ["[5, 6) 0, 1", "[6, 7) 0, 3"]);
}

/// A lifetime that ends before it begins.
#[test]
fn a_row_that_ends_before_it_begins_is_refused() {
    let frame = input("left");
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&frame).expect("the frame is right");
    let wrong = run.push("left", vec![Event::interval(5, 3, row(1))]).expect_err("an event ends after it begins");
    assert!(wrong.to_string().contains('5') && wrong.to_string().contains('3'), "{wrong}");
    run.finish().expect("the input ends");
    assert!(run.lifetimes().expect("no row is in error").is_empty());
}

#[test]
fn an_end_is_read_in_the_unit_of_the_time() {
    use arrow::array::{ArrayRef, RecordBatch, TimestampMillisecondArray, TimestampSecondArray};
    use arrow::datatypes::TimeUnit::{Millisecond, Second};
    use std::sync::Arc;
    let fields = [("t", DataType::Timestamp(Second, None)), ("e", DataType::Timestamp(Millisecond, None))];
    let schema = Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, false)).to_vec()));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(TimestampSecondArray::from(vec![1])), Arc::new(TimestampMillisecondArray::from(vec![5000]))];
    let batch = RecordBatch::try_new(schema.clone(), columns).expect("columns fit");
    let input = Events::input("in", schema.as_ref().clone()).time_column("t").end_column("e");
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&input.frame().agg([count_rows()])).expect("the frame is right");
    run.push("in", batch).expect("rows fit");
    run.finish().expect("the input ends");
    let out: Vec<String> = run.lifetimes().expect("no row is in error").iter().map(ToString::to_string).collect();
    assert_eq!(out, ["[1, 5) 1"]);
    drop(run);
    let fields = [("t", DataType::Int64), ("e", DataType::Timestamp(Second, None))];
    let schema = Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, false)).to_vec());
    says(&Events::input("in", schema).time_column("t").end_column("e").frame(), &["timestamp", "integer"]);
}

#[test]
fn events_at_the_ends_of_time_are_errors_where_a_duration_does_not_fit() {
    let schema = Schema::new(["k", "x"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    let input = |duration| Events::input("in", schema.clone()).constant_duration(duration).frame();
    let outcome = |frame: &Frame, start: i64, end: i64| {
        let mut session = Session::new(Options::default()).expect("a session starts");
        let mut run = session.start(&frame.agg([count_rows()])).expect("the frame is right");
        run.push("in", vec![Event::interval(start, end, row(1))]).map_err(|error| error.to_string())?;
        run.finish().expect("the run goes on");
        let out = run.lifetimes().map_err(|error| error.to_string());
        drop(run);
        lives(&mut session);
        out.map(|lifetimes| lifetimes.iter().map(|life| (life.start, life.end)).collect::<Vec<_>>())
    };
    // A window that would begin before all time is shorter than the plan says.
    let early = outcome(&input(1).quantize(10, 10, 0), i64::MIN + 3, i64::MIN + 4);
    assert!(early.as_ref().is_err_and(|error| error.contains("too near the ends of time")), "{early:?}");
    // An event that would end after all time does not last as promised.
    let late = outcome(&input(4).extend(-2), i64::MAX - 3, i64::MAX);
    assert!(late.is_err(), "{late:?}");
    let clipped = outcome(&input(4).clip_duration(2), i64::MAX - 3, i64::MAX);
    assert_eq!(clipped, Ok(vec![(i64::MAX - 3, i64::MAX - 1)]));
}

#[test]
fn lifetimes_beside_an_end_without_a_start_are_not_lost() {
    let frame = input("left");
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&frame).expect("the frame is right");
    let events = [Event::point(1, row(1)), Event::end(7, 2, row(9)), Event::point(8, row(2))];
    run.push("left", events.to_vec()).expect("rows fit");
    run.finish().expect("the input ends");
    let error = run.lifetimes().expect_err("an end has no start");
    assert!(error.to_string().contains("began at 2 ends without a start"), "{error}");
    let rest: Vec<String> = run.lifetimes().expect("the rest").iter().map(ToString::to_string).collect();
    assert_eq!(rest, ["[1, 2) 0, 1", "[8, 9) 0, 2"]);
}

#[test]
fn an_end_edge_finds_its_start_by_equality() {
    let schema = Schema::new(vec![Field::new("x", DataType::Float64, true)]);
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&Events::input("in", schema).frame()).expect("the frame is right");
    let x = |value: f64| [ScalarValue::Float64(Some(value))];
    run.push("in", vec![Event::start(1, x(0.0)), Event::end(4, 1, x(-0.0))]).expect("rows fit");
    run.finish().expect("the input ends");
    let out: Vec<String> = run.lifetimes().expect("zero is zero").iter().map(ToString::to_string).collect();
    assert_eq!(out.len(), 1, "{out:?}");
}

#[test]
fn a_body_that_ignores_its_group_is_refused() {
    let (left, other) = (input("left"), input("left"));
    says(&left.group_apply([col("k")], |_| other.clone()), &["group's frame", "group_apply"]);
}
