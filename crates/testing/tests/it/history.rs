//! One query over history, a replay of it, and what is pushed by hand; early answers; rows that
//! wait to be batched.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::connector::{Poll, ReadProgress, SourceReader};
use anabranch_engine::frame::{
    Disorder, Event, Events, Frame, How, IntoEvents, Pace, Play, PlayTurn, col, count_rows, lit, sum,
};
use anabranch_engine::{Error, ManualClock, Options, Session};
use anabranch_file::FileConnector;
use anabranch_testing::rng::cases;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

fn schema() -> Schema {
    Schema::new(["t", "k", "x"].map(|name| Field::new(name, DataType::Int64, true)).to_vec())
}

/// Rows of points at `t`.
fn points(name: &str) -> Events {
    Events::input(name, schema()).time_column("t").constant_duration(1)
}

/// A source of rows in memory that gives a few at a time.
struct Rows {
    rows: RecordBatch,
    at: usize,
    step: usize,
}

impl SourceReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        let len = self.step.min(rows_max).min(self.rows.num_rows() - self.at);
        if len == 0 {
            return Ok(Poll::Done);
        }
        self.at += len;
        Ok(Poll::Rows(self.rows.slice(self.at - len, len)))
    }

    fn progress(&self) -> ReadProgress {
        let bytes = |rows: usize| 24 * rows as u64;
        let total = Some(bytes(self.rows.num_rows()));
        ReadProgress { bytes_read: bytes(self.at), bytes_total: total, rows: self.at as u64, ..ReadProgress::default() }
    }
}

fn table(rows: &[(i64, i64, i64)]) -> RecordBatch {
    let column =
        |of: fn(&(i64, i64, i64)) -> i64| Arc::new(rows.iter().map(of).map(Some).collect::<Int64Array>()) as ArrayRef;
    RecordBatch::try_new(Arc::new(schema()), vec![column(|row| row.0), column(|row| row.1), column(|row| row.2)])
        .expect("columns fit")
}

fn reader(rows: &[(i64, i64, i64)], step: usize) -> Box<dyn SourceReader> {
    Box::new(Rows { rows: table(rows), at: 0, step })
}

fn sorted(lifetimes: Vec<anabranch_engine::frame::ResultLifetime>) -> Vec<String> {
    let mut lines: Vec<String> = lifetimes.iter().map(ToString::to_string).collect();
    lines.sort();
    lines
}

#[test]
fn history_a_replay_and_live_input_have_equal_results() {
    cases("history", 20, |rng| {
        let mut rows = |n: usize| -> Vec<(i64, i64, i64)> {
            let mut rows: Vec<_> =
                (0..n).map(|_| (rng.between(0, 200), rng.between(0, 3), rng.between(-5, 5))).collect();
            rows.sort();
            rows
        };
        let (left, right) = (rows(60), rows(40));
        // One query, over inputs that are sorted, or brought in order.
        let sums = points("left").sorted().frame().tumbling(10).group_by([col("k")]).agg([sum(col("x")).alias("sum")]);
        let counts =
            points("right").on_disorder(Disorder::Error).frame().tumbling(10).group_by([col("k")]).agg([count_rows()]);
        let frame = sums.join(&counts, [col("k")], [col("k")], How::Left);
        let steps = [1, 7, 1000];
        let sources = |step: usize| [("left", reader(&left, step)), ("right", reader(&right, step))];

        let clock = Arc::new(ManualClock::new(0));
        let mut session =
            Session::new(Options { clock: clock.clone(), ..Options::default() }).expect("a session starts");
        let mut results = Vec::new();
        for step in steps {
            let mut run = session.start(&frame).expect("the frame is right");
            run.play_to_end(&mut Play::new(sources(step), Pace::Fast)).expect("history plays");
            results.push(sorted(run.lifetimes().expect("no row is in error")));
        }
        // Ten ticks a second, by a clock that we move.
        {
            let mut run = session.start(&frame).expect("the frame is right");
            let mut play = Play::new(sources(*rng.pick(&steps)), Pace::TicksPerSecond(10.0));
            let mut out = Vec::new();
            let mut waited = Duration::ZERO;
            loop {
                match run.play(&mut play).expect("history plays") {
                    PlayTurn::Worked => {}
                    PlayTurn::Later(wait) => {
                        waited += wait.max(Duration::from_micros(1));
                        clock.set(i64::try_from(waited.as_micros()).expect("short"));
                    }
                    PlayTurn::Over => break,
                }
                out.extend(run.lifetimes().expect("no row is in error"));
            }
            out.extend(run.lifetimes().expect("no row is in error"));
            let span = left.iter().chain(&right).map(|row| row.0);
            let ticks = (span.clone().max().unwrap() - span.min().unwrap()) as f64;
            assert!((waited.as_secs_f64() - ticks / 10.0).abs() < 0.5, "{waited:?} for {ticks} ticks");
            clock.set(0);
            results.push(sorted(out));
        }
        // By hand, a row at a time.
        let mut run = session.start(&frame).expect("the frame is right");
        for (name, rows) in [("left", &left), ("right", &right)] {
            for row in rows {
                run.push(name, table(&[*row])).expect("rows fit");
            }
            run.advance(name, rows.last().unwrap().0).expect("time moves on");
        }
        run.finish().expect("inputs end");
        results.push(sorted(run.lifetimes().expect("no row is in error")));
        assert!(!results[0].is_empty());
        for result in &results {
            assert_eq!(*result, results[0]);
        }
    });
}

#[test]
fn a_file_is_history_too() {
    let file = std::env::temp_dir().join(format!("history-{}.csv", std::process::id()));
    std::fs::write(&file, "t,k,x\n1,1,5\n4,1,6\n12,1,7\n").expect("a file is written");
    let mut session = Session::new(Options::default()).expect("a session starts");
    session.register_connector("file", Arc::new(FileConnector));
    let source = session.open("file", [("path", file.to_str().expect("a path"))]).expect("the file is there");
    let events = Events::input("in", source.schema()).time_column("t").constant_duration(1).sorted().bounded();
    let mut run = session.start(&events.frame().tumbling(10).agg([sum(col("x"))])).expect("the frame is right");
    let mut play = Play::new([("in", source)], Pace::Fast);
    assert!(play.share().is_some_and(|share| share < 1.0));
    run.play_to_end(&mut play).expect("the file is read");
    assert_eq!(play.share(), Some(1.0));
    assert_eq!(sorted(run.lifetimes().expect("no row is in error")), ["[10, 20) 11", "[20, 30) 7"]);
    drop(run);
    std::fs::remove_file(&file).expect("the file is there");
    let error = session.open("files", []).map(|_| ()).expect_err("there is none");
    assert_eq!(error.message, "connector \"files\" does not exist");
}

#[test]
fn early_answers_are_refined_to_the_exact_one() {
    let rows: Vec<(i64, i64, i64)> = (0..1000).map(|row| (row * 37 % 1000, row % 4, row)).collect();
    let frame = points("in").frame().group_by([col("k")]).agg([count_rows().alias("n"), sum(col("x")).alias("sum")]);
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut progressive =
        session.progressive(&frame, [("in", reader(&rows, 50))], 10).expect("the frame looks at no time");
    let mut shares = Vec::new();
    while let Some(early) = progressive.step().expect("no row is in error") {
        let rows_seen = (early.share * 1000.0).round() as usize;
        shares.push(early.share);
        let mut expected: Vec<(i64, i64, i64)> = (0..4)
            .map(|k| {
                let seen = rows[..rows_seen].iter().filter(|row| row.1 == k);
                (k, seen.clone().count() as i64, seen.map(|row| row.2).sum())
            })
            .collect();
        expected.retain(|(_, n, _)| *n > 0);
        let value = |column: usize, row: usize| {
            let column = early.rows.column(column).as_any().downcast_ref::<Int64Array>().expect("integers");
            column.value(row)
        };
        let mut actual: Vec<(i64, i64, i64)> =
            (0..early.rows.num_rows()).map(|row| (value(0, row), value(1, row), value(2, row))).collect();
        actual.sort();
        assert_eq!(actual, expected, "at {}", early.share);
    }
    assert_eq!(shares, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0].map(|share: f64| share));
    drop(progressive);
    let windows = points("in").frame().tumbling(10).agg([count_rows()]);
    let refused = session.progressive(&windows, [("in", reader(&rows, 50))], 10).map(|_| ());
    assert_eq!(
        refused.expect_err("windows are about time").message,
        "progressive results are of all rows read so far, but the frame looks at time"
    );
}

#[test]
fn rows_that_wait_to_be_batched_change_no_result() {
    cases("latency", 30, |rng| {
        let latency = Duration::from_millis(*rng.pick(&[0, 1, 50, 10_000]));
        let frame = |events: Events| -> Frame {
            events
                .latency(latency)
                .frame()
                .filter(col("x").gt(lit(-4)))
                .tumbling(10)
                .group_by([col("k")])
                .agg([count_rows()])
        };
        let events = points("in");
        let clock = Arc::new(ManualClock::new(0));
        let mut session =
            Session::new(Options { clock: clock.clone(), ..Options::default() }).expect("a session starts");
        let mut rows: Vec<(i64, i64, i64)> =
            (0..50).map(|_| (rng.between(0, 100), rng.between(0, 3), rng.between(-5, 5))).collect();
        rows.sort();
        let (mut out, mut now) = (Vec::new(), 0);
        {
            let mut run = session.start(&frame(events.clone())).expect("the frame is right");
            for row in &rows {
                now += 1000 * rng.between(0, 3);
                clock.set(now);
                run.push("in", table(&[*row])).expect("rows fit");
                run.advance("in", row.0).expect("time moves on");
                // (A promise holds at once, even if the workers have not heard of it.)
                let late = table(&[(row.0 - 1, 0, 0)]);
                run.push("in", late).expect_err("the row is late");
                match rng.below(4) {
                    0 => run.flush().expect("a flush"),
                    1 => out.extend(run.lifetimes().expect("no row is in error")),
                    2 => assert!(run.tick().expect("a tick").is_none_or(|wait| wait <= latency)),
                    _ => {}
                }
            }
            run.finish().expect("the input ends");
            out.extend(run.lifetimes().expect("no row is in error"));
        }
        let mut run = session.start(&frame(points("in"))).expect("the frame is right");
        let all = table(&rows).into_events(&events).expect("rows fit");
        run.push("in", all).expect("rows fit");
        run.finish().expect("the input ends");
        assert_eq!(sorted(out), sorted(run.lifetimes().expect("no row is in error")));
    });
}

#[test]
fn promises_are_checked() {
    let wrong = |events: Events, event: Event| {
        let mut session = Session::new(Options::default()).expect("a session starts");
        let mut run = session.start(&events.frame()).expect("the frame is right");
        run.push("in", vec![Event::interval(10, 15, [1i64.into()])]).expect("the row is as promised");
        let error = run.push("in", vec![event]).expect_err("a promise is broken");
        run.finish().expect("the run goes on");
        assert_eq!(run.lifetimes().expect("no row is in error").len(), 1);
        error.message
    };
    let events = || Events::input("in", Schema::new(vec![Field::new("x", DataType::Int64, true)]));
    let row = || [1i64.into()];
    assert_eq!(
        wrong(events().constant_duration(5), Event::point(11, row())),
        "a row of input \"in\" at 11 does not last 5 ticks"
    );
    assert_eq!(
        wrong(events().constant_hop(5), Event::interval(12, 14, row())),
        "a row of input \"in\" at 12 does not begin at a multiple of 5"
    );
    assert_eq!(wrong(events().sorted(), Event::point(9, row())), "a row of input \"in\" at 9 comes after one at 10");
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut refused = |events: Events| session.start(&events.frame()).map(|_| ()).expect_err("it is refused").message;
    assert_eq!(refused(events().constant_duration(-1)), "the duration of input \"in\" cannot be -1 ticks");
    assert_eq!(refused(events().unique_key(["y"])), "input \"in\" has no column \"y\"");
    assert_eq!(
        refused(events().constant_duration(1).on_disorder(Disorder::Adjust)),
        "input \"in\" adjusts late rows, which changes their lifetimes"
    );
}
