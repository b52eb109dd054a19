//! What promises of inputs are good for, and what becomes of those that are broken: order is kept
//! where it is claimed, joins that go by it are joins, and a row that breaks a promise is refused.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_engine::frame::{Event, Events, FOREVER, How, col};
use anabranch_engine::{Options, Session};
use anabranch_flow::tactic::Output;
use anabranch_operators::temporal::{bounds, duration, extend, hopping, point_at_end, quantize, shift};
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::{LifetimeEnds, Verb, Windows};
use anabranch_plan::{Node, Plan};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::temporal::laws::Life;
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::{DFSchema, ScalarValue};

/// Where a plan says that rows come in order, they leave the verb in order of time, if they came
/// so.
#[test]
fn order_is_kept() {
    let windows = |size, period| Windows { size, period, offset: 1 };
    let verbs = [
        Verb::Bounds { ends: LifetimeEnds::Dropped },
        Verb::Shift { ticks: -7 },
        Verb::Shift { ticks: 7 },
        Verb::Duration { ticks: 4 },
        Verb::Duration { ticks: FOREVER },
        Verb::Hopping(windows(6, 6)),
        Verb::Hopping(windows(10, 4)),
        Verb::Hopping(windows(4, 10)),
        Verb::Quantize { windows: windows(6, 6), progress: 6 },
        Verb::Quantize { windows: windows(10, 4), progress: 2 },
        Verb::PointAtEnd,
        Verb::Extend { ticks: 5 },
    ];
    let claims: RefCell<BTreeSet<String>> = RefCell::default();
    cases("order", 200, |rng| {
        let duration = *rng.pick(&[None, Some(1), Some(7), Some(FOREVER)]);
        let declared = Properties { sorted: true, duration, ..Properties::default() };
        let input = plan(Verb::Events { input: "in".to_owned(), declared }, vec![]);
        let batch = sorted_events(rng, duration);
        for verb in &verbs {
            let plan = plan(verb.clone(), vec![input.clone()]);
            let mut out = Output::default();
            apply(verb, batch.clone(), &mut out);
            let times: Vec<i64> = out
                .rows
                .iter()
                .flat_map(|batch| (0..batch.len()).map(|at| batch.times().get(at)).collect::<Vec<_>>())
                .collect();
            if Properties::of(&plan).sorted {
                assert!(times.is_sorted(), "{verb:?} of duration {duration:?}: {times:?}");
                claims.borrow_mut().insert(format!("{verb:?}"));
            }
        }
    });
    assert_eq!(claims.borrow().len(), verbs.len(), "each verb keeps some order: {:?}", claims.borrow());
}

fn plan(verb: Verb, inputs: Vec<Arc<Plan>>) -> Arc<Plan> {
    let fields = ["x", "start", "end"].map(|name| Field::new(name, DataType::Int64, true));
    let schema = DFSchema::try_from(Schema::new(fields.to_vec())).expect("names differ");
    Arc::new(Plan { node: Node::Temporal { verb, inputs }, schema: Arc::new(schema) })
}

/// Events in order of sync time that last so long, or as they like: then with end edges.
fn sorted_events(rng: &mut Rng, duration: Option<i64>) -> Batch {
    let mut rows: Vec<(i64, i64)> = Vec::new();
    for _ in 0..30 {
        let start = rng.between(0, 60);
        match duration {
            Some(FOREVER) => rows.push((start, FOREVER)),
            Some(ticks) => rows.push((start, start + ticks)),
            None if rng.chance(50) => rows.push((start, start + rng.between(1, 20))),
            None => {
                rows.push((start, FOREVER));
                rows.push((start + rng.between(1, 20), start));
            }
        }
    }
    rows.sort_by_key(|(time, _)| *time);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![0; rows.len()]));
    let times = Times::Column(rows.iter().map(|row| row.0).collect());
    Batch::new(vec![values], times, Diffs::Constant(1))
        .with_until(Until::Column(rows.iter().map(|row| row.1).collect()))
}

fn apply(verb: &Verb, batch: Batch, out: &mut Output) {
    match verb {
        Verb::Bounds { .. } => bounds::apply(batch, LifetimeEnds::Dropped, out),
        Verb::Shift { ticks } => shift::apply(batch, *ticks, out),
        Verb::Duration { ticks } => duration::apply(batch, *ticks, out),
        Verb::Hopping(Windows { size, period, offset }) => {
            hopping::Hopping { size: *size, period: *period, offset: *offset }.apply(batch, out);
        }
        Verb::Quantize { windows: Windows { size, period, offset }, progress } => {
            let windows = quantize::Quantize { size: *size, period: *period, progress: *progress, offset: *offset };
            windows.apply(batch, out);
        }
        Verb::PointAtEnd => point_at_end::apply(batch, out),
        Verb::Extend { ticks } => extend::lengthen(batch, *ticks, out),
        other => panic!("{other:?} does more than look at each row"),
    }
}

/// Joins of streams that never end, by a key that rises and by another.
#[test]
fn merged_joins_are_joins() {
    cases("merge joins", 60, |rng| {
        let schema = || Schema::new(["k", "x"].map(|column| Field::new(column, DataType::Int64, true)).to_vec());
        let is_sorted = rng.chance(70);
        let events = |name: &str| {
            let events = Events::input(name, schema());
            if is_sorted { events.sorted_by(["x"]) } else { events }
        };
        let keys = [vec![col("x")], vec![col("k"), col("x")], vec![col("k")], vec![]];
        let keys = rng.pick(&keys).clone();
        // The same rows with and without the promise that they never end.
        let joined =
            |left: Events, right: Events| left.frame().join(&right.frame(), keys.clone(), keys.clone(), How::Inner);
        let merged = joined(events("left").append_only(), events("right").append_only());
        let general = joined(events("left"), events("right"));
        let text = merged.explain().expect("the frame is right");
        let rises = is_sorted && keys.contains(&col("x"));
        assert!(text.contains(if rises { "runs with merge join on x" } else { "runs with no pair is kept" }), "{text}");

        let mut lives = [0, 1].map(|_| {
            let mut starts: Vec<i64> = (0..rng.below(30)).map(|_| rng.between(0, 40)).collect();
            starts.sort_unstable();
            let mut x = 0;
            let life = |start| {
                x += rng.between(0, 1);
                Life { start, end: FOREVER, k: rng.between(0, 2), x }
            };
            starts.into_iter().map(life).collect::<Vec<_>>()
        });
        let workers = rng.below(3);
        let seed = rng.bits();
        let mut outs = [&merged, &general].map(|frame| {
            // (The same cuts for both.)
            let mut rng = Rng::new(seed);
            let mut session = Session::new(Options { workers, ..Options::default() }).expect("a session starts");
            let mut run = session.start(frame).expect("the frame is right");
            let mut time = 0;
            while time < 50 {
                let next = time + rng.between(1, 9);
                for (name, lives) in ["left", "right"].into_iter().zip(&mut lives) {
                    let due = lives.iter().filter(|life| (time..next).contains(&life.start));
                    let row = |life: &Life| Event::start(life.start, [life.k.into(), life.x.into()]);
                    run.push(name, due.map(row).collect::<Vec<_>>()).expect("promises are kept");
                    run.advance(name, next).expect("time moves on");
                }
                time = next;
            }
            run.finish().expect("inputs end");
            run.lifetimes().expect("no row is in error").iter().map(ToString::to_string).collect::<Vec<_>>()
        });
        outs.iter_mut().for_each(|out| out.sort());
        assert_eq!(outs[0], outs[1], "{workers} workers\n{text}");
    });
}

/// A row that breaks a promise is refused, with its time and what it breaks.
#[test]
fn broken_promises_are_refused() {
    let schema = Schema::new(["k", "x"].map(|column| Field::new(column, DataType::Int64, true)).to_vec());
    let input = || Events::input("in", schema.clone());
    let row = |x: Option<i64>| [ScalarValue::Int64(Some(0)), ScalarValue::Int64(x)];
    let good = || Event::start(5, row(Some(7)));
    let cases = [
        (
            input().sorted_by(["x"]),
            vec![good(), Event::start(6, row(Some(3)))],
            "at 6 has a lesser \"x\" than one that begins before",
        ),
        (input().sorted_by(["x"]), vec![good(), Event::start(6, row(None))], "at 6 is NULL in column \"x\""),
        (input().sorted_by(["x"]), vec![good(), Event::start(4, row(Some(9)))], "at 4 comes after one at 5"),
        (input().sorted(), vec![good(), Event::start(4, row(Some(9)))], "at 4 comes after one at 5"),
        (input().append_only(), vec![good(), Event::interval(6, 9, row(Some(9)))], "at 6 does not last for ever"),
        (input().constant_duration(3), vec![Event::interval(5, 9, row(Some(9)))], "at 5 does not last 3 ticks"),
        (
            input().constant_hop(5),
            vec![good(), Event::start(6, row(Some(9)))],
            "at 6 does not begin at a multiple of 5",
        ),
        (
            input().interval_free(),
            vec![good(), Event::interval(6, 9, row(None))],
            "at 6 has an end that is known as it begins",
        ),
    ];
    for (events, rows, message) in cases {
        let frame = events.frame();
        let mut session = Session::new(Options::default()).expect("a session starts");
        let mut run = session.start(&frame).expect("the frame is right");
        // One push, and one push a row.
        let error = run.push("in", rows.clone()).expect_err("the promise is broken").to_string();
        assert!(error.contains(message), "{error}");
        let (last, before) = rows.split_last().expect("there are rows");
        before.iter().for_each(|row| run.push("in", vec![row.clone()]).expect("the promise is kept"));
        let error = run.push("in", vec![last.clone()]).expect_err("the promise is broken").to_string();
        assert!(error.contains(message), "{error}");
    }
    let text = Schema::new(vec![Field::new("t", DataType::Utf8View, true)]);
    let error = Events::input("in", text).sorted_by(["t"]).frame().explain().expect_err("text is no time");
    assert!(error.to_string().contains("cannot be sorted by column \"t\""), "{error}");
}
