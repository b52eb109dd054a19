//! Windows: their bounds as columns, and when they emit.

use anabranch_engine::frame::{
    Closed, Disorder, EmitWhen, Event, EventPattern, Events, FOREVER, Frame, col, count_rows, lit, sum, window_end,
    window_start,
};
use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::temporal::harness::{changelog, row};
use anabranch_testing::temporal::laws::{Life, Out, hold, input, snapshots};
use arrow::datatypes::{DataType, Field, Schema};

/// The windows that hold a time, as their ends (closed on the right) or starts (on the left).
fn windows_of(time: i64, size: i64, period: i64, offset: i64, closed: Closed) -> Vec<i64> {
    let range = (time - size - 2 * period)..=(time + size + 2 * period);
    let is_boundary = |b: &i64| (b - offset).rem_euclid(period) == 0;
    let holds = |b: &i64| match closed {
        Closed::Right => b - size < time && time <= *b,
        Closed::Left => *b <= time && time < b + size,
    };
    range.filter(is_boundary).filter(holds).collect()
}

fn total(lives: &[&Life]) -> String {
    format!("{}, {}", lives.len(), lives.iter().map(|life| life.x).sum::<i64>())
}

#[test]
fn closed_windows_tell_their_bounds() {
    cases("window bounds", 40, |rng| {
        let period = rng.between(1, 6);
        let size = rng.between(1, 3 * period);
        let offset = rng.between(-3, 3);
        let is_before = rng.chance(50);
        let calls = || [count_rows(), sum(col("x"))];
        let windows = input("left").hopping(size, period, offset);
        let frame = match is_before {
            // The bounds as a key, or of what was aggregated.
            true => windows.group_by([col("k"), window_start(), window_end()]).agg(calls()),
            false => windows.group_by([col("k")]).agg(calls()).select([
                col("k"),
                window_start(),
                window_end(),
                col("count(*)"),
                col("sum(x)"),
            ]),
        };
        hold(rng, &frame, 0, |inputs| {
            let mut out: Vec<Out> = Vec::new();
            for boundary in -20..80 {
                let of = |life: &Life| windows_of(life.start, size, period, offset, Closed::Right).contains(&boundary);
                let rows: Vec<Life> = inputs[0].iter().filter(|life| of(life)).copied().collect();
                for key in 0..=3 {
                    let rows: Vec<&Life> = rows.iter().filter(|life| life.k == key).collect();
                    if !rows.is_empty() {
                        let last = boundary + size.min(period);
                        out.push((boundary, last, format!("{key}, {}, {boundary}, {}", boundary - size, total(&rows))));
                    }
                }
            }
            out
        });
    });
}

/// The windows of the emission cases: size, period, offset, and which end belongs to them.
fn some_windows(rng: &mut Rng) -> (Frame, i64, i64, i64, Closed) {
    let period = rng.between(1, 4) * 2;
    let size = period * rng.between(1, 3);
    let offset = rng.between(-3, 3);
    match rng.chance(50) {
        true => (input("left").hopping(size, period, offset), size, period, offset, Closed::Right),
        false => (input("left").quantize(size, period, offset), size, period, offset, Closed::Left),
    }
}

#[test]
fn windows_emit_when_they_are_told_to() {
    cases("emission", 60, |rng| {
        let (frame, size, period, offset, closed) = some_windows(rng);
        let emit =
            *rng.pick(&[EmitWhen::OnClose, EmitWhen::Early, EmitWhen::Progressive(2), EmitWhen::Progressive(period)]);
        let frame = frame.emit(emit).agg([count_rows(), sum(col("x"))]);
        hold(rng, &frame, 0, |inputs| {
            let lives = inputs[0].iter().map(|life| {
                let boundaries = windows_of(life.start, size, period, offset, closed);
                let (first, last) = (boundaries[0], boundaries[boundaries.len() - 1]);
                // The first tick after the first and the last window.
                let ends = match closed {
                    Closed::Left => (first + size, last + size),
                    Closed::Right => (first + 1, last + 1),
                };
                let progress = match emit {
                    EmitWhen::OnClose => {
                        let late = i64::from(closed == Closed::Right);
                        return Life { start: ends.0 - late, end: ends.1 - late + period, ..*life };
                    }
                    EmitWhen::Early => 1,
                    EmitWhen::Progressive(progress) => progress,
                };
                let start = life.start - (life.start - ends.0).rem_euclid(progress);
                Life { start, end: ends.1, ..*life }
            });
            snapshots(&lives.collect::<Vec<_>>(), |_| None, total)
        });
    });
}

#[test]
fn early_results_name_their_window() {
    let frame = input("in").tumbling(10).emit(EmitWhen::Early).agg([sum(col("x"))]);
    let frame = frame.with_columns([window_start(), window_end()]);
    let point = |time: i64, x: i64| row("in", Event::point(time, [0i64.into(), x.into()]));
    let log = changelog(&frame, [point(3, 5), point(10, 6), point(11, 7)]).expect("the frame is right");
    let expected = ["@3 +1 5, 0, 10", "@10 -1 5, 0, 10", "@10 +1 11, 0, 10", "@11 -1 11, 0, 10", "@11 +1 7, 10, 20"];
    assert_eq!(log[..5], expected);
    assert_eq!(log[5..], ["@21 -1 7, 10, 20"]);
}

#[test]
fn explain_says_when_windows_emit() {
    let says =
        |frame: Frame| frame.explain().expect("the frame is right").lines().next().unwrap_or_default().to_owned();
    let events = || input("in");
    assert_eq!(says(events().tumbling(10)), "Tumbling 10  -- constant duration 10, constant hop 10, emits on close");
    assert_eq!(says(events().quantize(10, 10, 0)), "Quantize 10  -- constant hop 10, emits as of the window's start");
    let early = says(events().tumbling(10).emit(EmitWhen::Early));
    assert_eq!(early, "Quantize 10 offset 1 progress 1  -- constant hop 1, emits every change");
    assert!(says(events().tumbling(10).emit(EmitWhen::Progressive(5))).ends_with("emits every 5 ticks"));
    assert!(says(events().session(5, None)).ends_with("emits every change"));
}

#[test]
fn what_is_wrong_with_windows_is_said() {
    let error = |frame: Frame| {
        let mut session = Session::new(Options::default()).expect("a session starts");
        session.start(&frame).map(|_| ()).expect_err("it is refused").message
    };
    let events = || input("in");
    assert_eq!(error(events().tumbling(-5)), "the size of a window is a positive number of ticks, but it is -5");
    assert_eq!(error(events().alter_duration(0)), "a duration is a positive number of ticks, but it is 0");
    assert_eq!(error(events().session(0, None)), "a timeout is a positive number of ticks, but it is 0");
    assert_eq!(error(events().emit(EmitWhen::Early)), "emit is about no windows");
    assert_eq!(
        error(events().tumbling(5).filter(col("x").gt(lit(1))).emit(EmitWhen::Early)),
        "emit is about no windows"
    );
    assert_eq!(
        error(events().tumbling(5).emit(EmitWhen::Progressive(2))),
        "the period of a window, 5, is no multiple of its progress, 2"
    );
    let unwindowed = "window_start and window_end are asked for where there are no windows";
    assert_eq!(error(events().select([window_end()])), unwindowed);
    assert_eq!(error(events().tumbling(5).alter_duration(FOREVER).select([window_end()])), unwindowed);
}

#[test]
fn what_is_wrong_with_frames_and_rows_is_said() {
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut refused = |frame: Frame| {
        let error = session.start(&frame).map(|_| ()).expect_err("it is refused");
        format!("{} | {}", error.message, error.hint.unwrap_or_default())
    };
    let events = || input("in");
    let speeds = events().select([col("x").alias("speed")]);
    let unknown = refused(speeds.filter(col("sped").gt(lit(1))));
    assert!(unknown.starts_with("there is no column \"sped\" | Did you mean \"speed\"?"), "{unknown}");
    assert!(
        refused(events().tumbling(5).group_by([col("k")]).agg([sum(col("y"))])).starts_with("there is no column \"y\"")
    );
    assert!(refused(events().filter(col("x"))).starts_with("a filter is true or false, but x is of type Int64"));
    // It repeats without limit, may overlap, and has no end.
    let endless = EventPattern::event(col("x").gt(lit(0))).plus().within(FOREVER);
    assert!(refused(events().detect(&endless)).starts_with("the pattern may never finish"));
    assert!(
        refused(events().alter_duration(FOREVER).detect(&EventPattern::event(col("x").gt(lit(0))).plus()))
            .starts_with("the pattern")
    );

    // Rows out of order under the error policy: the row is refused, the run goes on.
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let ordered = Events::input("in", schema).on_disorder(Disorder::Error);
    let mut run = session.start(&ordered.frame()).expect("the frame is right");
    let point = |time: i64| Event::point(time, [time.into()]);
    run.push("in", vec![point(10)]).expect("the row is in order");
    let error = run.push("in", vec![point(12), point(11), point(13)]).expect_err("a row is late");
    assert_eq!(error.message, "a row of input \"in\" at 11 comes too late: time has gone to 12");
    run.push("in", vec![point(14)]).expect("the run goes on");
    assert!(run.push("out", vec![point(15)]).expect_err("there is none").message.contains("has no input \"out\""));
    run.finish().expect("the input ends");
    let starts: Vec<i64> = run.lifetimes().expect("no row is in error").iter().map(|life| life.start).collect();
    assert_eq!(starts, [10, 12, 14]);
}
