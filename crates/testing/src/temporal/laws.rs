//! The laws of verbs on events: what comes out, edges paired, is what a model computes from the
//! lifetimes that went in.
//!
//! A model is a plain function from lifetimes to lifetimes that looks at everything at once. The
//! engine gets the same lifetimes as intervals and as start and end edges, in any order between two
//! advances, cut anywhere, advanced anywhere, with no worker thread, one or two.

use anabranch_engine::frame::{Event, Events, FOREVER, Frame};
use anabranch_engine::{Options, Session};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;

use crate::rng::Rng;

/// A row (a key and a number) in force from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Life {
    /// Inclusive.
    pub start: i64,
    /// Exclusive; [`FOREVER`] for no end.
    pub end: i64,
    /// Column `k`.
    pub k: i64,
    /// Column `x`.
    pub x: i64,
}

/// A result: a lifetime, and the row as text.
pub type Out = (i64, i64, String);

/// The input named `name`, of columns `k` and `x`.
pub fn input(name: &str) -> Frame {
    let fields = ["k", "x"].map(|column| Field::new(column, DataType::Int64, true));
    Events::input(name, Schema::new(fields.to_vec())).frame()
}

/// Some lifetimes near `base`: many at the same time, points, intervals, open ones; touching and
/// nested.
pub fn lives(rng: &mut Rng, base: i64) -> Vec<Life> {
    let count = rng.below(30);
    let open = rng.chance(50);
    (0..count)
        .map(|_| {
            let start = base + rng.between(0, 40);
            let end = match rng.below(6) {
                0 => start + 1,
                1 if open => FOREVER,
                _ => start + rng.between(1, 15),
            };
            Life { start, end, k: rng.between(0, 3), x: rng.between(-3, 3) }
        })
        .collect()
}

/// Checks that the frame's results over random lifetimes are the model's.
///
/// # Panics
/// When they are not.
pub fn hold(rng: &mut Rng, frame: &Frame, base: i64, model: impl Fn(&[Vec<Life>]) -> Vec<Out>) {
    let names = input_names(frame);
    let inputs: Vec<Vec<Life>> = names.iter().map(|_| lives(rng, base)).collect();
    let mut expected = model(&inputs);
    expected.sort();
    for workers in [0, 0, rng.below(3)] {
        let mut actual = run(rng, frame, &names, &inputs, workers);
        actual.sort();
        assert!(
            actual == expected,
            "{workers} workers\n{}\ninputs {inputs:?}\nonly actual   {:?}\nonly expected {:?}",
            frame.explain().expect("the frame is right"),
            only(&actual, &expected),
            only(&expected, &actual),
        );
    }
}

/// What comes out of a frame over random lifetimes.
///
/// # Panics
/// When the frame cannot run.
pub fn come_out(rng: &mut Rng, frame: &Frame) -> Vec<Out> {
    let names = input_names(frame);
    let inputs: Vec<Vec<Life>> = names.iter().map(|_| lives(rng, 0)).collect();
    run(rng, frame, &names, &inputs, 0)
}

fn input_names(frame: &Frame) -> Vec<&'static str> {
    let text = frame.explain().expect("the frame is right");
    ["left", "right"].into_iter().filter(|name| text.contains(&format!("Events {name} "))).collect()
}

fn only(these: &[Out], those: &[Out]) -> Vec<Out> {
    let mut those = those.to_vec();
    let missing = these.iter().filter(|this| match those.iter().position(|that| that == *this) {
        Some(at) => {
            those.swap_remove(at);
            false
        }
        None => true,
    });
    missing.cloned().collect()
}

/// Feeds the lifetimes in some way.
fn run(rng: &mut Rng, frame: &Frame, names: &[&str], inputs: &[Vec<Life>], workers: usize) -> Vec<Out> {
    let mut session = Session::new(Options { workers, ..Options::default() }).expect("a session starts");
    let mut run = session.start(frame).expect("the frame is right");
    // What happens, by sync-time: input, event.
    let mut feed: Vec<(i64, usize, Event)> = Vec::new();
    for (input, lives) in inputs.iter().enumerate() {
        for life in lives {
            let row = || [ScalarValue::Int64(Some(life.k)), ScalarValue::Int64(Some(life.x))];
            if life.end == FOREVER || rng.chance(50) {
                feed.push((life.start, input, Event::start(life.start, row())));
                if life.end != FOREVER {
                    feed.push((life.end, input, Event::end(life.end, life.start, row())));
                }
            } else {
                feed.push((life.start, input, Event::interval(life.start, life.end, row())));
            }
        }
    }
    rng.shuffle(&mut feed);
    feed.sort_by_key(|(time, ..)| *time);
    let mut out = Vec::new();
    let mut at = 0;
    while at < feed.len() {
        // All events up to a time, in any order, in pieces; then that time is complete.
        let next = feed[at].0 + rng.between(1, 12);
        let end = feed.partition_point(|(time, ..)| *time < next);
        let mut turn: Vec<_> = feed[at..end].to_vec();
        rng.shuffle(&mut turn);
        while !turn.is_empty() {
            let cut = 1 + rng.below(turn.len());
            let part: Vec<_> = turn.drain(..cut).collect();
            for (input, name) in names.iter().enumerate() {
                let events: Vec<Event> =
                    part.iter().filter(|(_, of, _)| *of == input).map(|(.., event)| event.clone()).collect();
                run.push(name, events).expect("the events fit");
            }
        }
        for name in names.iter().filter(|_| rng.chance(80)) {
            run.advance(name, next).expect("time moves on");
        }
        if rng.chance(50) {
            out.extend(run.lifetimes().expect("no row is in error"));
        }
        at = end;
    }
    run.finish().expect("inputs end");
    out.extend(run.lifetimes().expect("no row is in error"));
    out.into_iter()
        .map(|life| {
            let row: Vec<String> = life.row.iter().map(ToString::to_string).collect();
            (life.start, life.end, row.join(", "))
        })
        .collect()
}

/// Snapshot aggregation: time cut at every start and end of a group's rows, and `of` the rows in
/// force in each piece.
pub fn snapshots(lives: &[Life], group: impl Fn(&Life) -> Option<i64>, of: impl Fn(&[&Life]) -> String) -> Vec<Out> {
    let mut keys: Vec<Option<i64>> = lives.iter().map(&group).collect();
    keys.sort();
    keys.dedup();
    let mut out = Vec::new();
    for key in keys {
        let rows: Vec<&Life> = lives.iter().filter(|life| group(life) == key).collect();
        let mut cuts: Vec<i64> = rows.iter().flat_map(|life| [life.start, life.end]).collect();
        cuts.sort();
        cuts.dedup();
        if cuts.last() != Some(&FOREVER) {
            cuts.push(FOREVER);
        }
        for piece in cuts.windows(2) {
            let alive: Vec<&Life> =
                rows.iter().copied().filter(|life| life.start <= piece[0] && piece[0] < life.end).collect();
            if !alive.is_empty() {
                let key = key.map(|key| format!("{key}, ")).unwrap_or_default();
                out.push((piece[0], piece[1], format!("{key}{}", of(&alive))));
            }
        }
    }
    out
}
