//! Memory over streams that do not end: every verb that forgets, over as many events as wanted, and
//! what is held on the way.
//!
//! The events are those of the other cases (points, 1,000 a tick, 1,000 keys, batches of 65,536),
//! without an end in sight; batches are made as they are pushed. What is held is counted by the
//! allocator, apart from what was held before the run; resident memory is the process's. A verb
//! passes if what is held in the last quarter is no more than in the second, give or take a tenth
//! and a megabyte.

use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_engine::frame::{
    AsofOptions, EmitWhen, EventPattern, Events, FOREVER, Frame, How, avg, col, count_rows, lit, max, median, start,
    sum,
};
use anabranch_engine::{Error, Options, Session};
use arrow::array::ArrayRef;
use serde_json::{Value, json};

use super::cases::{BATCH_ROWS, BLOCKS, EVENTS_PER_TICK, columns, rows, schema};
use crate::measure::resident_mb;
use crate::{allocator, report};

/// How often memory is looked at.
const LOOKS: usize = 20;

const VERBS: &[&str] = &[
    "filter",
    "tumbling",
    "hopping",
    "hopping max",
    "hopping median",
    "quantize",
    "early",
    "sliding",
    "session",
    "extend back",
    "clip duration",
    "chop and stitch",
    "point at end",
    "distinct",
    "join",
    "left join",
    "where not exists",
    "clip by",
    "as-of join",
    "nearest as-of join",
    "merge join",
    "detect",
];

/// Those of two inputs.
const TWO: &[&str] =
    &["join", "left join", "where not exists", "clip by", "as-of join", "nearest as-of join", "merge join"];

fn frame(verb: &str) -> Frame {
    let input = |name: &str| Events::input(name, schema()).frame();
    let events = input("in");
    let keys = || [col("key")];
    let total = || [sum(col("value")).alias("total"), avg(col("value")).alias("mean")];
    let grouped = |frame: Frame| frame.group_by(keys()).agg(total());
    let (left, right) = (input("left").alter_duration(3), input("right").alter_duration(2));
    match verb {
        "filter" => events.filter(col("key").lt(lit(500))),
        "tumbling" => grouped(events.tumbling(10)),
        "hopping" => grouped(events.hopping(20, 5, 0)),
        "hopping max" => events.hopping(20, 5, 0).group_by(keys()).agg([max(col("value"))]),
        "hopping median" => events.hopping(20, 5, 0).group_by(keys()).agg([median(col("value"))]),
        "quantize" => grouped(events.quantize(10, 10, 0)),
        "early" => grouped(events.tumbling(10).emit(EmitWhen::Early)),
        "sliding" => grouped(events.alter_duration(10)),
        "session" => {
            let sessions = |group: Frame| group.session(2, Some(50)).agg([count_rows()]);
            events.filter(col("value").lt(lit(300_000))).group_apply(keys(), sessions)
        }
        "extend back" => events.alter_duration(20).extend(-5),
        "clip duration" => events.alter_duration(20).clip_duration(5),
        "chop and stitch" => events.filter(col("key").lt(lit(50))).alter_duration(20).chop(5, 0).stitch(),
        "point at end" => events.alter_duration(7).point_at_end(),
        "distinct" => events.select(keys()).alter_duration(5).distinct(),
        "join" => left.join(&right, keys(), keys(), How::Inner),
        "left join" => left.join(&right, keys(), keys(), How::Left),
        "where not exists" => left.where_not_exists(&right, keys(), keys()),
        "as-of join" => left.join_asof(&right, keys(), keys(), AsofOptions::backward().left()),
        "nearest as-of join" => left.join_asof(&right, keys(), keys(), AsofOptions::nearest().tolerance(50).left()),
        // Of rows that never end, by their times: what the other side has passed is forgotten.
        "merge join" => {
            let dated = |name: &str| input(name).select([col("key"), start().alias("t")]).alter_duration(FOREVER);
            let both = || [col("key"), col("t")];
            dated("left").join(&dated("right"), both(), both(), How::Inner)
        }
        "clip by" => left.clip_by(&right, keys(), keys()),
        "detect" => {
            let high = EventPattern::event(col("value").gt(lit(900_000)));
            let low = EventPattern::event(col("value").lt(lit(100_000)));
            let pattern = EventPattern::sequence([high, low]).within(20);
            events.group_apply(keys(), |group| group.detect(&pattern))
        }
        other => panic!("there is no verb {other}"),
    }
}

/// Pushes `events` events through every verb whose name contains `only`.
pub(super) fn run(events: usize, only: Option<&str>) -> Result<(), String> {
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for verb in VERBS.iter().filter(|verb| only.is_none_or(|only| verb.contains(only))) {
        let line = measure(verb, events).map_err(|error| error.to_string())?;
        println!(
            "{verb:18} held {:8.1} MB in the second quarter, {:8.1} in the last; resident {:6.0} to {:6.0} MB; {:.0} s{}",
            line["second_quarter_mb"].as_f64().unwrap_or_default(),
            line["last_quarter_mb"].as_f64().unwrap_or_default(),
            line["resident_mb"][0].as_f64().unwrap_or_default(),
            line["resident_mb"].as_array().and_then(|all| all.last()).and_then(Value::as_f64).unwrap_or_default(),
            line["seconds"].as_f64().unwrap_or_default(),
            if line["bounded"] == true { "" } else { "  GROWS" },
        );
        if line["bounded"] != true {
            failed.push((*verb).to_owned());
        }
        lines.push(line);
    }
    println!("kept in {}", report::keep("temporal-endless", &lines)?.display());
    if failed.is_empty() { Ok(()) } else { Err(format!("memory grows: {}", failed.join(", "))) }
}

fn measure(verb: &str, events: usize) -> Result<Value, Error> {
    let frame = frame(verb);
    let names: &[&str] = if TWO.contains(&verb) { &["left", "right"] } else { &["in"] };
    let blocks: Vec<Vec<Vec<ArrayRef>>> = (0..names.len())
        .map(|input| (0..BLOCKS as u64).map(|block| columns(1_000 * input as u64 + block + 1)).collect())
        .collect();
    allocator::count();
    let base = allocator::live_bytes();
    let mut session = Session::new(Options { workers: 0, ..Options::default() })?;
    let mut run = session.start(&frame)?;
    let n_batches = events.div_ceil(BATCH_ROWS * names.len()).max(LOOKS);
    let (mut held, mut resident, mut outputs) = (Vec::new(), Vec::new(), 0);
    let began = std::time::Instant::now();
    for at in 0..n_batches {
        let first = at * BATCH_ROWS;
        let times: Vec<i64> = (first..first + BATCH_ROWS).map(|event| 1 + (event / EVENTS_PER_TICK) as i64).collect();
        let upto = times[BATCH_ROWS - 1];
        for (name, blocks) in names.iter().zip(&blocks) {
            let batch =
                Batch::new(blocks[at % BLOCKS].clone(), Times::Column(times.clone().into()), Diffs::Constant(1));
            run.push(name, batch.with_until(Until::Duration(1)))?;
        }
        run.advance_all(upto)?;
        outputs += rows(run.drain()?);
        if (at + 1) % (n_batches / LOOKS) == 0 {
            held.push((allocator::live_bytes() - base) / 1e6);
            resident.push(resident_mb());
        }
    }
    let quarter = |from: usize| held[from..from + held.len() / 4].iter().copied().fold(0.0, f64::max);
    let (second, last) = (quarter(held.len() / 4), quarter(held.len() - held.len() / 4));
    Ok(json!({
        "bench": "temporal-endless", "verb": verb, "events": n_batches * BATCH_ROWS * names.len(), "outputs": outputs,
        "held_mb": held, "resident_mb": resident, "second_quarter_mb": second, "last_quarter_mb": last,
        "seconds": began.elapsed().as_secs_f64(), "bounded": last <= 1.1 * second + 1.0,
    }))
}
