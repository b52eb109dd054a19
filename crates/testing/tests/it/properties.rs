//! What the plan says of streams, held against what comes out.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_engine::frame::{Event, Events, FOREVER, Frame, How, col, count, count_rows, lit, max, min, start, sum};
use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::temporal::laws::{Life, Out, come_out, hold, input, snapshots};
use arrow::datatypes::{DataType, Field, Schema};

/// Constant duration, constant hop, the key, and further words.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    duration: Option<i64>,
    hop: Option<i64>,
    unique: Option<Vec<String>>,
    words: BTreeSet<String>,
}

fn known(duration: Option<i64>, hop: Option<i64>) -> Known {
    Known { duration, hop, ..Known::default() }
}

impl Known {
    fn unique(self, columns: &[&str]) -> Known {
        Known { unique: Some(columns.iter().map(|name| (*name).to_owned()).collect()), ..self }
    }

    fn also(mut self, word: &str) -> Known {
        self.words.insert(word.to_owned());
        self
    }
}

/// What the plan says of the frame's events.
fn said(frame: &Frame) -> Known {
    let text = frame.explain().expect("the frame is right");
    let remark = text.lines().next().expect("a plan has a root").split("  -- ").nth(1).unwrap_or_default().to_owned();
    let mut known = Known::default();
    for part in remark
        .split(", ")
        .filter(|part| !part.is_empty() && !part.starts_with("emits") && !part.starts_with("runs with"))
    {
        let number = |text: &str| text.parse().expect("a number");
        if let Some(ticks) = part.strip_prefix("constant duration ") {
            known.duration = Some(number(ticks));
        } else if let Some(ticks) = part.strip_prefix("constant hop ") {
            known.hop = Some(number(ticks));
        } else if let Some(key) = part.strip_prefix("unique (") {
            known.unique = Some(key.trim_end_matches(')').split(' ').map(str::to_owned).collect());
        } else if part == "least and greatest in one value" || part.starts_with("sorted by (") {
            // (How it runs; what `derived` looks at.)
        } else if part == "at most one row" {
            known.unique = Some(vec![]);
        } else if part == "append-only" {
            known.duration = Some(FOREVER);
        } else {
            known.words.insert(part.to_owned());
        }
    }
    known
}

/// A rule that derives what does not hold fails here: every event that comes out is held against
/// what the plan says.
#[test]
fn what_is_known_of_streams_holds() {
    let nothing = || known(None, None);
    let by_key = || input("left").group_by([col("k")]).agg([count_rows().alias("n")]);
    let by_key_right = || input("right").group_by([col("k")]).agg([count_rows().alias("m")]);
    let one = || known(Some(7), None);
    let frames: Vec<(Frame, Known)> = vec![
        (input("left"), nothing()),
        (input("left").alter_duration(7), one()),
        (input("left").alter_duration(FOREVER), known(Some(FOREVER), None)),
        (input("left").alter_duration(7).filter(col("x").gt(lit(0))), one()),
        (input("left").alter_duration(7).select([start().alias("s")]), one()),
        (input("left").alter_duration(7).shift(-3), one()),
        (input("left").alter_duration(7).extend(4), known(Some(11), None)),
        (input("left").alter_duration(7).extend(-4), known(Some(3), None)),
        (input("left").alter_duration(7).clip_duration(5), known(Some(5), None)),
        (input("left").alter_duration(7).clip_duration(9), one()),
        (input("left").clip_duration(9), nothing()),
        (input("left").alter_duration(FOREVER).clip_duration(9), known(Some(9), None)),
        (input("left").alter_duration(FOREVER).clip_duration(9).agg([count_rows()]), nothing().unique(&[])),
        (input("left").tumbling(6), known(Some(6), Some(6))),
        (input("left").hopping(12, 4, 1), known(Some(12), Some(4))),
        (input("left").hopping(10, 4, 1), known(None, Some(4))),
        (input("left").hopping(12, 4, 1).shift(3), known(Some(12), Some(4))),
        (input("left").hopping(12, 4, 1).point_at_end(), known(Some(1), Some(4))),
        (input("left").alter_duration(FOREVER).point_at_end(), known(Some(1), None)),
        (input("left").quantize(10, 5, 2), known(None, Some(5))),
        (input("left").alter_duration(1).quantize(10, 5, 2), known(Some(10), Some(5))),
        (input("left").alter_duration(6).quantize(10, 5, 2), known(Some(10), Some(5))),
        (input("left").alter_duration(7).quantize(10, 5, 2), known(None, Some(5))),
        (input("left").alter_duration(2).quantize(10, 10, 0), known(None, Some(10))),
        (input("left").alter_duration(1).quantize(7, 5, 2), known(None, Some(5))),
        (input("left").alter_duration(1).quantize_progressive(10, 6, 3, 2), known(None, Some(3))),
        (input("left").quantize_progressive(10, 6, 3, 2), known(None, Some(3))),
        (input("left").tumbling(6).union(&input("left").tumbling(6)), known(Some(6), None)),
        (input("left").tumbling(6).union(&input("left").tumbling(3)), nothing()),
        (input("left").alter_duration(7).agg([count_rows()]), nothing().unique(&[])),
        (input("left").tumbling(6).agg([count_rows()]), known(None, Some(6)).unique(&[])),
        (input("left").hopping(12, 4, 1).agg([count_rows()]), known(None, Some(4)).unique(&[])),
        (input("left").hopping(6, 4, 1).agg([count_rows()]), nothing().unique(&[])),
        (by_key(), nothing().unique(&["k"])),
        (by_key().select([col("n"), col("k")]), nothing().unique(&["k"])),
        (by_key().select([col("n")]), nothing()),
        (by_key().filter(col("n").gt(lit(1))), nothing().unique(&["k"])),
        (by_key().alter_duration(3), known(Some(3), None)),
        (by_key().shift(3), nothing().unique(&["k"])),
        (by_key().extend(3), nothing()),
        (by_key().extend(-3), nothing().unique(&["k"])),
        (by_key().clip_duration(3), nothing().unique(&["k"])),
        (by_key().chop(3, 0), nothing().unique(&["k"])),
        (by_key().stitch(), nothing().unique(&["k"])),
        (by_key().session(3, None), nothing()),
        (by_key().clip_by(&input("right"), [col("k")], [col("k")]), nothing().unique(&["k"])),
        (by_key().where_not_exists(&input("right"), [col("k")], [col("k")]), nothing().unique(&["k"])),
        (by_key().join(&by_key_right(), [col("k")], [col("k")], How::Inner), nothing().unique(&["k"])),
        (by_key().join(&input("right"), [col("k")], [col("k")], How::Inner), nothing()),
        (by_key().join(&by_key_right(), [], [], How::Inner), nothing().unique(&["k", "k_right"])),
        (by_key().union(&by_key_right()), nothing()),
        (
            input("left").alter_duration(FOREVER).join(&input("right").alter_duration(FOREVER), [], [], How::Inner),
            known(Some(FOREVER), None),
        ),
        (input("left").alter_duration(7).join(&input("right").alter_duration(7), [], [], How::Inner), nothing()),
        (input("left").alter_duration(7).chop(3, 0), nothing()),
        (input("left").alter_duration(7).session(3, None), nothing()),
        (input("left").tumbling(6).session(3, None), known(None, Some(6))),
    ];
    cases("properties", 5, |rng| {
        for (frame, expected) in &frames {
            assert_eq!(said(frame), *expected, "{}", frame.explain().unwrap());
            let out = come_out(rng, frame);
            holds(frame, expected, &out);
        }
    });
}

/// Checks events against what is known of them.
fn holds(frame: &Frame, known: &Known, out: &[Out]) {
    let text = frame.explain().expect("the frame is right");
    let grid = out.first().map_or(0, |(start, ..)| *start);
    for (start, end, row) in out {
        let lasts = if *end == FOREVER { FOREVER } else { end - start };
        assert!(known.duration.is_none_or(|duration| duration == lasts), "[{start}, {end}) {row}\n{text}");
        assert!(known.hop.is_none_or(|hop| (start - grid) % hop == 0), "[{start}, {end}) {row}\n{text}");
    }
    let Some(unique) = &known.unique else { return };
    let schema = frame.schema().expect("the frame is right");
    let places: Vec<usize> = unique.iter().map(|name| schema.index_of(name).expect("a column")).collect();
    let mut by_key: BTreeMap<Vec<&str>, Vec<(i64, i64)>> = BTreeMap::new();
    for (start, end, row) in out {
        let cells: Vec<&str> = row.split(", ").collect();
        by_key.entry(places.iter().map(|&at| cells[at]).collect()).or_default().push((*start, *end));
    }
    for (key, mut lifetimes) in by_key {
        lifetimes.sort();
        let apart = lifetimes.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        assert!(apart, "{key:?} is in force twice: {lifetimes:?}\n{text}");
    }
}

#[test]
fn declared_properties_are_derived() {
    let schema = || Schema::new(["k", "x"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    let events = || Events::input("in", schema());
    let two = |of: Events| of.frame().union(&Events::input("other", schema()).frame());
    let nothing = || known(None, None);
    let cases: Vec<(Frame, Known)> = vec![
        (events().append_only().frame(), known(Some(FOREVER), None)),
        (events().constant_duration(3).constant_hop(2).frame(), known(Some(3), Some(2))),
        (events().interval_free().frame(), nothing().also("interval-free")),
        (events().interval_free().frame().alter_duration(3), known(Some(3), None)),
        (events().interval_free().frame().clip_duration(3), nothing()),
        (events().interval_free().frame().session(3, None), nothing()),
        (two(events().interval_free()), nothing()),
        (events().sorted().frame(), nothing().also("sorted")),
        (events().sorted().frame().alter_duration(3), known(Some(3), None).also("sorted")),
        (events().sorted().frame().extend(3), nothing()),
        (two(events().sorted()), nothing()),
        (events().bounded().frame().tumbling(3).agg([count_rows()]), known(None, Some(3)).unique(&[]).also("bounded")),
        (two(events().bounded()), nothing()),
        (events().unique_key(["k"]).frame().shift(1), nothing().unique(&["k"])),
        (events().unique_key(["k"]).frame().alter_duration(9), known(Some(9), None)),
        (
            events().unique_key(["k"]).constant_duration(9).frame().alter_duration(9),
            known(Some(9), None).unique(&["k"]),
        ),
    ];
    for (frame, expected) in cases {
        assert_eq!(said(&frame), expected, "{}", frame.explain().unwrap());
    }
    // Of rows with a key, all are distinct already.
    let explained = events().unique_key(["k"]).frame().distinct().explain().expect("the frame is right");
    assert!(!explained.contains("Snapshots"), "{explained}");
}

/// The lifetime that a row is given.
type Lifetime = Box<dyn Fn(&Life) -> (i64, i64)>;

/// Over windows that do not overlap, and over rows that never end, least and greatest are one
/// value.
#[test]
fn extremes_of_what_is_not_taken_out_are_right() {
    let of = |lives: &[&Life]| {
        let values = || lives.iter().map(|life| life.x);
        format!("{}, {}, {}", values().min().unwrap(), values().max().unwrap(), lives.len())
    };
    let calls = || [min(col("x")), max(col("x")).alias("max"), count(col("x"))];
    let law = |name: &str, build: fn(&mut Rng) -> (Frame, Lifetime)| {
        cases(name, 20, |rng| {
            let (frame, lifetime) = build(rng);
            let frame = frame.group_by([col("k")]).agg(calls());
            hold(rng, &frame, *rng.clone().pick(&[0, -500]), |inputs| {
                let lives = inputs[0].iter().map(|life| (lifetime(life), life));
                let lives: Vec<Life> = lives.map(|((start, end), life)| Life { start, end, ..*life }).collect();
                snapshots(&lives, |life| Some(life.k), of)
            });
        });
    };
    law("forever", |_| (input("left").alter_duration(FOREVER), Box::new(|life| (life.start, FOREVER))));
    law("tumbling", |rng| {
        let ticks = rng.between(1, 9);
        let boundary = move |life: &Life| life.start + (-life.start).rem_euclid(ticks);
        (input("left").tumbling(ticks), Box::new(move |life| (boundary(life), boundary(life) + ticks)))
    });
}

/// Sums over rows that never end keep nothing of them.
#[test]
fn rows_that_never_end_need_no_memory() {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let frame = Events::input("in", schema).append_only().frame().agg([sum(col("x")), max(col("x"))]);
    let mut session = Session::new(Options::default()).expect("a session starts");
    let mut run = session.start(&frame).expect("the frame is right");
    for time in 0..1000 {
        run.push("in", vec![Event::start(time, [time.into()])]).expect("rows fit");
        run.advance("in", time + 1).expect("time moves on");
    }
    run.finish().expect("the input ends");
    let last = run.lifetimes().expect("no row is in error").into_iter().find(|life| life.end == FOREVER);
    assert_eq!(last.map(|life| life.to_string()), Some("[999, ∞) 499500, 999".to_owned()));
}
