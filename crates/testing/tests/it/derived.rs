//! Every rule by which properties of streams are derived, held against what comes out of random
//! plans over inputs that promise something.
//!
//! A frame is grown of random verbs over inputs whose rows keep random promises. What its plan
//! claims (constant duration, constant hop, interval-free, a unique key, columns that it is sorted
//! by, bounded) is checked on the events that come out, before edges are paired where that matters.
//! A list says which claims of which verbs must have been met, so that no rule goes untested. That
//! rows come out in order (`sorted`) is seen where they leave a verb: see
//! [`promises`](super::promises).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_engine::frame::{
    AsofOptions, Event, Events, FOREVER, Frame, How, Item, Strategy, col, count_rows, lit, max, min, start,
};
use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::temporal::laws::Life;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;

/// What an input promises, and rows that keep it.
struct Promised {
    events: Events,
    lives: Vec<Life>,
    is_interval_free: bool,
    is_bounded: bool,
}

fn promised(rng: &mut Rng, name: &str) -> Promised {
    let schema = Schema::new(["k", "x"].map(|column| Field::new(column, DataType::Int64, true)).to_vec());
    let mut events = Events::input(name, schema);
    let duration = rng.chance(60).then(|| *rng.pick(&[1, 4, 7, FOREVER, FOREVER]));
    let hop = rng.chance(40).then(|| rng.between(1, 5));
    let is_interval_free = duration.is_none_or(|ticks| ticks == FOREVER) && rng.chance(40);
    let (is_unique, is_sorted_by, is_bounded) = (rng.chance(40), rng.chance(50), rng.chance(50));
    events = duration.map_or(events.clone(), |ticks| events.constant_duration(ticks));
    events = hop.map_or(events.clone(), |ticks| events.constant_hop(ticks));
    events = if is_interval_free { events.interval_free() } else { events };
    events = if is_unique { events.unique_key(["k"]) } else { events };
    events = if is_sorted_by { events.sorted_by(["x"]) } else { events };
    events = if is_bounded { events.bounded() } else { events };

    let mut starts: Vec<i64> = (0..rng.below(25)).map(|_| rng.between(0, 40) * hop.unwrap_or(1)).collect();
    starts.sort_unstable();
    let mut lives: Vec<Life> = Vec::new();
    let mut x = -3;
    for start in starts {
        let ticks = duration.unwrap_or_else(|| if rng.chance(15) { FOREVER } else { rng.between(1, 15) });
        let end = if ticks == FOREVER { FOREVER } else { start + ticks };
        let k = rng.between(0, 3);
        if is_unique && lives.iter().any(|life| life.k == k && life.end > start) {
            continue;
        }
        x = if is_sorted_by { x + rng.between(0, 1) } else { rng.between(-3, 3) };
        lives.push(Life { start, end, k, x });
    }
    Promised { events, lives, is_interval_free, is_bounded }
}

/// A frame of columns `k` and `x`, one verb further.
fn grown(rng: &mut Rng, frame: &Frame, other: &Frame) -> Frame {
    let by = || [col("k")];
    let as_x = |name: &str| [col("k"), col(name).alias("x")];
    match rng.below(24) {
        0 => frame.filter(col("x").gt(lit(rng.between(-3, 1)))),
        1 => frame.select([col("x"), col("k")]),
        2 => frame.select([col("k"), start().alias("x")]),
        3 => frame.shift(rng.between(-9, 9)),
        4 => frame.alter_duration(*rng.pick(&[1, 3, 8, FOREVER])),
        5 => frame.extend(rng.between(-6, 6)),
        6 => frame.clip_duration(rng.between(1, 12)),
        7 => frame.tumbling(rng.between(1, 8)),
        8 => frame.hopping(rng.between(1, 12), rng.between(1, 6), rng.between(-3, 3)),
        9 => frame.quantize(rng.between(1, 12), rng.between(1, 6), rng.between(-3, 3)),
        10 => {
            let progress = rng.between(1, 3);
            frame.quantize_progressive(rng.between(1, 12), progress * rng.between(1, 3), progress, rng.between(-3, 3))
        }
        11 => frame.session(rng.between(1, 9), rng.chance(50).then(|| rng.between(1, 30))),
        12 => frame.chop(rng.between(1, 9), rng.between(-3, 3)),
        13 => frame.stitch(),
        14 => frame.point_at_end(),
        15 => frame.group_by(by()).agg([count_rows().alias("x")]),
        16 => frame.agg([min(col("k")).alias("k"), max(col("x")).alias("x")]),
        17 => frame.distinct(),
        18 => frame.union(other),
        19 => {
            let keys = [vec![col("k")], vec![col("x")], vec![col("k"), col("x")], vec![]];
            let keys = rng.pick(&keys).clone();
            frame.join(other, keys.clone(), keys, How::Inner).select(as_x(rng.pick::<&str>(&["x", "x_right"])))
        }
        20 => {
            let strategy = *rng.pick(&[Strategy::Backward, Strategy::Forward, Strategy::Nearest]);
            let asof = AsofOptions::strategy(strategy).tolerance(rng.between(0, 20));
            let asof = if rng.chance(50) { asof.left() } else { asof };
            frame.join_asof(other, by(), by(), asof).select(as_x(rng.pick::<&str>(&["x", "x_right"])))
        }
        21 => frame.where_not_exists(other, by(), by()),
        22 => frame.clip_by(other, by(), by()),
        _ => frame.group_apply(by(), |group| group.filter(col("x").gt(lit(-2)))),
    }
}

/// Claims that have been held against at least two events, by the verb at the plan's root.
type Met = RefCell<BTreeMap<(String, &'static str), usize>>;

/// Rules that must have been tested. (What `select` and `filter` make, and the last step of a join,
/// is a stage: its claims are also those of the verb below.)
const RULES: &[(&str, &[&str])] = &[
    ("Events", &["duration", "hop", "unique", "sorted by", "bounded"]),
    ("Stage", &["duration", "hop", "interval-free", "unique", "sorted by", "bounded"]),
    ("Union", &["duration", "interval-free", "bounded"]),
    ("Shift", &["duration", "hop", "interval-free", "unique", "sorted by", "bounded"]),
    ("Duration", &["duration", "hop", "unique", "sorted by", "bounded"]),
    ("Tumbling", &["duration", "hop", "sorted by", "bounded"]),
    ("Hopping", &["duration", "hop", "sorted by", "bounded"]),
    ("Quantize", &["duration", "hop", "interval-free", "sorted by", "bounded"]),
    ("Snapshots", &["hop", "unique", "bounded"]),
    ("PointAtEnd", &["duration", "hop", "bounded"]),
    ("Extend", &["duration", "hop", "interval-free", "unique", "sorted by", "bounded"]),
    ("ClipDuration", &["duration", "hop", "unique", "sorted by", "bounded"]),
    ("Chop", &["unique", "bounded"]),
    ("Stitch", &["unique", "bounded"]),
    ("Session", &["hop", "sorted by", "bounded"]),
    ("Clip", &["hop", "unique", "sorted by", "bounded"]),
    ("WhereNotExists", &["unique", "bounded"]),
    ("TemporalJoin", &["duration", "unique", "interval-free", "bounded"]),
    ("TemporalAsof", &["duration", "hop", "unique", "sorted by", "bounded"]),
];

#[test]
fn what_is_derived_holds_of_random_plans() {
    let (met, faults) = (Met::default(), RefCell::<BTreeMap<(String, String), String>>::default());
    cases("derived properties", 2500, |rng| {
        let inputs = [promised(rng, "left"), promised(rng, "right")];
        let [left, right] = [0, 1].map(|at| inputs[at].events.clone().frame());
        let mut frame = left;
        for _ in 0..*rng.pick(&[0, 1, 1, 1, 2, 3]) {
            let other = if rng.chance(30) { grown(rng, &right, &right) } else { right.clone() };
            let next = grown(rng, &frame, &other);
            // (A verb that does not fit, such as `chop` of what has no columns by that name, is
            // left out.)
            frame = if next.explain().is_ok() { next } else { frame };
        }
        // (All rules are tried, so that all wrong ones are named.)
        let held = catch_unwind(AssertUnwindSafe(|| check(rng, &frame, &inputs, &met)));
        if let Err(message) = held {
            let message = message.downcast_ref::<String>().cloned().unwrap_or_default();
            let what = message.split([':', '\n']).next().unwrap_or_default().to_owned();
            let lives = inputs.each_ref().map(|input| &input.lives);
            faults
                .borrow_mut()
                .entry((claimed(&frame).0.join(" over "), what))
                .or_insert_with(|| format!("{message}inputs {lives:?}\n"));
        }
    });
    let faults = faults.into_inner();
    assert!(
        faults.is_empty(),
        "what is derived does not hold of {:?}\n{}",
        faults.keys(),
        faults.values().cloned().collect::<String>()
    );
    let met = met.into_inner();
    if std::env::var_os("SEED").is_some() {
        return;
    }
    let missing: Vec<String> = RULES
        .iter()
        .flat_map(|(verb, claims)| claims.iter().map(move |claim| (*verb, *claim)))
        .filter(|(verb, claim)| !met.contains_key(&((*verb).to_owned(), *claim)))
        .map(|(verb, claim)| format!("{verb} {claim}"))
        .collect();
    assert!(missing.is_empty(), "rules that no plan has tested: {missing:?}\n{met:?}");
}

/// The verb at a plan's root (of a stage, also the one below), and what is claimed of it.
fn claimed(frame: &Frame) -> (Vec<String>, Known) {
    let text = frame.explain().expect("the frame is right");
    let line = text.lines().next().expect("a plan has a root").to_owned();
    let (verb, remark) = line.split_once("  -- ").unwrap_or((&line, ""));
    let first_word = |line: &str| line.trim_start().split([' ', '[']).next().unwrap_or_default().to_owned();
    let below = text.lines().map(first_word).find(|word| word != "Stage").filter(|_| first_word(verb) == "Stage");
    let words = std::iter::once(first_word(verb)).chain(below).collect();
    let mut known = Known::default();
    for part in remark.split(", ") {
        let names = |list: &str| list.trim_end_matches(')').split(' ').map(str::to_owned).collect::<Vec<_>>();
        match part {
            "append-only" => known.duration = Some(FOREVER),
            "at most one row" => known.unique = Some(vec![]),
            "interval-free" => known.interval_free = true,
            "bounded" => known.bounded = true,
            _ => {}
        }
        if let Some(ticks) = part.strip_prefix("constant duration ") {
            known.duration = ticks.parse().ok();
        } else if let Some(ticks) = part.strip_prefix("constant hop ") {
            known.hop = ticks.parse().ok();
        } else if let Some(key) = part.strip_prefix("unique (") {
            known.unique = Some(names(key));
        } else if let Some(columns) = part.strip_prefix("sorted by (") {
            known.sorted_by = names(columns);
        }
    }
    (words, known)
}

#[derive(Debug, Default)]
struct Known {
    duration: Option<i64>,
    hop: Option<i64>,
    unique: Option<Vec<String>>,
    sorted_by: Vec<String>,
    interval_free: bool,
    bounded: bool,
}

/// An event as it came out: an edge or an interval.
struct Raw {
    time: i64,
    until: i64,
    row: Vec<ScalarValue>,
}

/// Runs the frame and holds what comes out against what its plan claims.
fn check(rng: &mut Rng, frame: &Frame, inputs: &[Promised; 2], met: &Met) {
    let (verbs, known) = claimed(frame);
    let (raw, is_over_with_bounded) = come_out(rng, frame, inputs);
    let text = frame.explain().expect("the frame is right");
    let fail = |what: &str, raw: &Raw| panic!("not {what}: [{}, {}) {:?}\n{text}", raw.time, raw.until, raw.row);
    let note = |claim: &'static str| {
        verbs.iter().for_each(|verb| *met.borrow_mut().entry((verb.clone(), claim)).or_default() += 1);
    };
    let is_telling = raw.len() > 1;

    if let Some(ticks) = known.duration {
        let lasts = |event: &Raw| match ticks {
            FOREVER => event.until == FOREVER,
            ticks => event.until == event.time + ticks,
        };
        raw.iter().filter(|event| !lasts(event)).for_each(|event| fail("of the duration", event));
        if is_telling {
            note("duration");
        }
    }
    if let Some(hop) = known.hop {
        let starts: Vec<&Raw> = raw.iter().filter(|event| event.until > event.time).collect();
        let first = starts.first().map_or(0, |event| event.time);
        let off = |event: &&&Raw| (event.time - first).rem_euclid(hop) != 0;
        starts.iter().filter(off).for_each(|event| fail("on the grid", event));
        if is_telling {
            note("hop");
        }
    }
    if known.interval_free {
        let is_interval = |event: &&Raw| event.until > event.time && event.until != FOREVER;
        raw.iter().filter(is_interval).for_each(|event| fail("interval-free", event));
        if is_telling {
            note("interval-free");
        }
    }
    if known.bounded {
        assert!(is_over_with_bounded, "bounded inputs have ended, but not this:\n{text}");
        note("bounded");
    }
    let schema = frame.schema().expect("the frame is right");
    let place = |name: &String| schema.index_of(name).expect("a column");
    for column in known.sorted_by.iter().map(place) {
        let mut starts: Vec<(i64, &ScalarValue)> =
            raw.iter().filter(|event| event.until > event.time).map(|event| (event.time, &event.row[column])).collect();
        starts.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.partial_cmp(b.1).expect("values of one type")));
        let falls = starts.windows(2).find(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1);
        let highest = starts.iter().map(|(_, value)| *value);
        assert!(falls.is_none() && !highest.clone().any(ScalarValue::is_null), "not sorted: {falls:?}\n{text}");
        if is_telling {
            note("sorted by");
        }
    }
    if let Some(unique) = &known.unique {
        check_unique(&unique.iter().map(place).collect::<Vec<_>>(), &raw, &text);
        if is_telling {
            note("unique");
        }
    }
}

/// Walks changes in order of time, ends before starts: no two rows of a key are in force at once.
fn check_unique(places: &[usize], raw: &[Raw], text: &str) {
    let mut changes: BTreeMap<Vec<String>, Vec<(i64, i64)>> = BTreeMap::new();
    for event in raw {
        let key = places.iter().map(|&at| event.row[at].to_string()).collect();
        let of_key = changes.entry(key).or_default();
        if event.until > event.time {
            of_key.push((event.time, 1));
            if event.until != FOREVER {
                of_key.push((event.until, -1));
            }
        } else if event.until < event.time {
            of_key.push((event.time, -1));
        }
    }
    for (key, mut changes) in changes {
        changes.sort_unstable();
        let mut in_force = 0;
        for (time, change) in changes {
            in_force += change;
            assert!(in_force <= 1, "{in_force} rows of {key:?} are in force at {time}\n{text}");
        }
    }
}

/// What comes out, and whether the output was complete when the bounded inputs had ended.
fn come_out(rng: &mut Rng, frame: &Frame, inputs: &[Promised; 2]) -> (Vec<Raw>, bool) {
    let text = frame.explain().expect("the frame is right");
    let used = |input: &&Promised| text.contains(&format!("Events {} ", input.events.name()));
    let inputs: Vec<&Promised> = inputs.iter().filter(used).collect();
    let mut session = Session::new(Options { workers: 0, ..Options::default() }).expect("a session starts");
    let mut run = session.start(frame).expect("the frame is right");
    let mut feed: Vec<(i64, usize, Event)> = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        for life in &input.lives {
            let row = || [ScalarValue::Int64(Some(life.k)), ScalarValue::Int64(Some(life.x))];
            if life.end == FOREVER || input.is_interval_free {
                feed.push((life.start, at, Event::start(life.start, row())));
                if life.end != FOREVER {
                    feed.push((life.end, at, Event::end(life.end, life.start, row())));
                }
            } else {
                feed.push((life.start, at, Event::interval(life.start, life.end, row())));
            }
        }
    }
    feed.sort_by_key(|(time, ..)| *time);
    let mut raw = Vec::new();
    let mut from = 0;
    while from < feed.len() {
        let next = feed[from].0 + rng.between(1, 12);
        let to = feed.partition_point(|(time, ..)| *time < next);
        for (at, input) in inputs.iter().enumerate() {
            let events = feed[from..to].iter().filter(|(_, of, _)| *of == at).map(|(.., event)| event.clone());
            run.push(input.events.name(), events.collect::<Vec<_>>()).expect("promises are kept");
            if rng.chance(80) {
                run.advance(input.events.name(), next).expect("time moves on");
            }
        }
        raw.extend(rows(run.drain().expect("no worker fails")));
        from = to;
    }
    for input in inputs.iter().filter(|input| input.is_bounded) {
        run.advance(input.events.name(), FOREVER).expect("the input ends");
    }
    raw.extend(rows(run.drain().expect("no worker fails")));
    let is_over = run.frontier() == FOREVER;
    run.finish().expect("inputs end");
    raw.extend(rows(run.drain().expect("no worker fails")));
    (raw, is_over)
}

fn rows(items: Vec<Item>) -> Vec<Raw> {
    let mut raw = Vec::new();
    for item in items {
        let Item::Rows(batch) = item else { continue };
        for at in 0..batch.len() {
            let time = batch.times().get(at);
            let cell = |column: &ArrayRef| ScalarValue::try_from_array(column, at).expect("a cell has a value");
            for _ in 0..batch.diffs().get(at) {
                let row = batch.columns().iter().map(cell).collect();
                raw.push(Raw { time, until: batch.until().get(at, time), row });
            }
        }
    }
    raw
}
