//! Runs a case and compares what came out.

use std::collections::BTreeMap;

use anabranch_engine::frame::{Disorder, Event, Events, Expr, FOREVER, FrameRun, ResultLifetime, col};
use anabranch_engine::{Options, Session};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use serde_json::Value;

use super::case::Case;
use super::query::{Query, Scope, applied, body, query, ticks};
use super::shape::{Shape, payload, shape_of, values_of};

/// Column of the partition.
const PARTITION: &str = "partition";

/// Runs a case with this many worker threads.
///
/// # Errors
/// What differs from what is expected, or why the case cannot run.
pub fn run(case: &Case, workers: usize) -> Result<(), String> {
    let json = &case.json;
    let partitioned = json["partitioned"] == true;
    let inputs = inputs(json)?;
    let queried = build(json, &inputs, partitioned)?;

    let mut session = Session::new(Options { workers, ..Options::default() }).map_err(say)?;
    let mut run = session.start(&queried.frame).map_err(say)?;
    feed(&mut run, &inputs, partitioned)?;
    let sequence = json["expect"].get("sequence");
    if let (Some(expected), "input", Some((name, input))) = (sequence, operator(json), inputs.iter().next()) {
        let arrived = run.arrivals(name).map_err(say)?;
        super::sequence::compare(expected, arrived, &input.shape, partitioned)?;
    }
    let lifetimes = run.lifetimes().map_err(say)?;
    let columns = queried.frame.schema().map_err(say)?;
    let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    let actual = lifetimes.iter().map(|lifetime| Interval::of(lifetime, &queried.val, &names, partitioned));
    compare(&json["expect"], actual.collect::<Result<_, _>>()?, partitioned)?;
    drop(run);
    // (Several workers have no common sequence before the end.)
    if let (Some(expected), true, Some(input)) =
        (sequence, operator(json) != "input" && workers < 2, inputs.values().next())
    {
        // (What came out was taken as lifetimes; now as it comes.)
        let mut run = session.start(&queried.frame).map_err(say)?;
        feed(&mut run, &inputs, partitioned)?;
        super::sequence::compare_output(expected, run.drain().map_err(say)?, &input.shape, partitioned)?;
    }
    Ok(())
}

/// The outermost operator.
fn operator(json: &Value) -> &str {
    json["query"]["op"].as_str().unwrap_or_default()
}

/// Pushes a case's rows, in order of arrival, to the end.
fn feed(run: &mut FrameRun<'_>, inputs: &BTreeMap<String, Input>, partitioned: bool) -> Result<(), String> {
    for name in inputs.keys() {
        run.record_arrivals(name).map_err(say)?;
    }
    for (name, input) in inputs {
        for row in &input.rows {
            match event(row, input, partitioned)? {
                Row::Event(event) => run.push(name, vec![event]).map_err(say)?,
                Row::Punctuation(time) => match row.get("p") {
                    Some(partition) => {
                        let partition = values_of(partition, &input.partition);
                        run.advance_partition(name, partition, time).map_err(say)?;
                    }
                    None => run.advance(name, time).map_err(say)?,
                },
            }
        }
    }
    run.finish().map_err(say)
}

fn say(error: anabranch_engine::Error) -> String {
    error.render("")
}

/// An input of a case.
struct Input {
    shape: Shape<DataType>,
    partition: Shape<DataType>,
    rows: Vec<Value>,
}

/// The inputs that a case's query reads.
fn inputs(json: &Value) -> Result<BTreeMap<String, Input>, String> {
    let inputs = json["inputs"].as_object().ok_or("a case has inputs")?;
    let mut rows: BTreeMap<&String, &Vec<Value>> = BTreeMap::new();
    for (name, given) in inputs.iter().filter(|(name, _)| is_read(&json["query"], name)) {
        rows.insert(name, given.as_array().ok_or("an input is a list of rows")?);
    }
    let mut asked = serde_json::Map::new();
    fields_asked(&json["query"], &mut asked);
    let asked = if asked.is_empty() { Value::Null } else { Value::Object(asked) };
    let input = |(name, own): (&&String, &&Vec<Value>)| {
        let shape = |field: &str| {
            let others = rows.iter().filter(|(other, _)| *other != name);
            let others = others.flat_map(|(_, rows)| fields(rows, field));
            let others: Vec<&Value> = others.chain((field == "v").then_some(&asked)).collect();
            shape_of(&fields(own, field).collect::<Vec<_>>(), &others)
        };
        ((*name).clone(), Input { shape: shape("v"), partition: shape("p"), rows: (*own).clone() })
    };
    Ok(rows.iter().map(input).collect())
}

/// The fields that expressions read of payloads: `["f", name, ..]`.
fn fields_asked(json: &Value, asked: &mut serde_json::Map<String, Value>) {
    match json {
        Value::Array(parts) => {
            if let [Value::String(word), Value::String(name), ..] = parts.as_slice()
                && word == "f"
            {
                asked.insert(name.clone(), Value::Null);
            }
            parts.iter().for_each(|part| fields_asked(part, asked));
        }
        Value::Object(fields) => fields.values().for_each(|field| fields_asked(field, asked)),
        _ => {}
    }
}

fn fields<'a>(rows: &'a [Value], field: &'a str) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter_map(move |row| row.get(field))
}

/// Whether an operator, or one below it, is the input of that name.
fn is_read(json: &Value, name: &str) -> bool {
    match json {
        Value::Object(fields) => {
            (json["op"] == "input" && json["name"] == name) || fields.values().any(|field| is_read(field, name))
        }
        Value::Array(elements) => elements.iter().any(|element| is_read(element, name)),
        _ => false,
    }
}

/// The case's query over its inputs.
fn build(json: &Value, inputs: &BTreeMap<String, Input>, partitioned: bool) -> Result<Query, String> {
    let mut frames = Vec::new();
    for (name, input) in inputs {
        let leaves =
            input.shape.leaves().into_iter().map(|(name, data_type)| Field::new(name, data_type.clone(), true));
        let mut fields: Vec<Field> = leaves.collect();
        if let (true, Shape::Leaf(data_type)) = (partitioned, &input.partition) {
            fields.push(Field::new(PARTITION, data_type.clone(), true));
        }
        let frame = arriving(Events::input(name, Schema::new(fields)), json, partitioned)?.frame();
        let val: Shape<Expr> = input.shape.map(&mut |name, _| col(name));
        frames.push((name.clone(), Query { frame, val }));
    }
    let scope = |frames: Vec<(String, Query)>| Scope { inputs: frames.into_iter().collect(), ..Scope::default() };
    if !partitioned {
        return query(&json["query"], &scope(frames));
    }
    let mut outcome = None;
    let frame = match frames.as_slice() {
        [(name, only)] => only.frame.group_apply([col(PARTITION)], |frame| {
            let built = query(&json["query"], &scope(vec![(name.clone(), Query { frame, val: only.val.clone() })]));
            body(built, &only.frame, &mut outcome)
        }),
        [(left, first), (right, second)] => {
            first.frame.group_apply_with(&second.frame, [col(PARTITION)], |one, other| {
                let one = Query { frame: one, val: first.val.clone() };
                let other = Query { frame: other, val: second.val.clone() };
                let built = query(&json["query"], &scope(vec![(left.clone(), one), (right.clone(), other)]));
                body(built, &first.frame, &mut outcome)
            })
        }
        _ => return Err("a partitioned case has one or two inputs".into()),
    };
    applied(frame, outcome)
}

/// An input with the case's ingress policies.
fn arriving(mut events: Events, json: &Value, partitioned: bool) -> Result<Events, String> {
    let policies = &json["ingress"];
    if !policies.is_object() && !partitioned && json["expect"].get("sequence").is_none() {
        return Ok(events);
    }
    if partitioned {
        events = events.partition_by([PARTITION]);
    }
    // (The time of cases begins at 0.)
    events = events.begins_at(0);
    let disorder = &policies["disorder"];
    events = events.on_disorder(match disorder["policy"].as_str() {
        None | Some("throw") => Disorder::Error,
        Some("drop") => Disorder::Drop,
        Some("adjust") => Disorder::Adjust,
        Some(other) => return Err(format!("an unknown policy: {other}")),
    });
    if let Some(latency) = disorder["lag"].as_i64() {
        events = events.reorder_latency(latency);
    }
    if let Some(period) = policies["punctuation_period"].as_i64() {
        events = events.punctuation_period(period);
    }
    let low = &policies["low_watermark"];
    if let (Some(period), Some(lag)) = (low["period"].as_i64(), low["lag"].as_i64()) {
        events = events.low_watermark(period, lag);
    }
    Ok(events)
}

enum Row {
    Event(Event),
    Punctuation(i64),
}

fn event(row: &Value, input: &Input, partitioned: bool) -> Result<Row, String> {
    let time = |name: &str| ticks(&row[name]).ok_or_else(|| format!("{name} is missing in {row}"));
    let mut values: Vec<ScalarValue> = values_of(&row["v"], &input.shape);
    if partitioned {
        values.extend(values_of(&row["p"], &input.partition));
    }
    Ok(match row["k"].as_str() {
        Some("start") => Row::Event(Event::start(time("s")?, values)),
        Some("interval") => Row::Event(Event::interval(time("s")?, time("e")?, values)),
        Some("end") => Row::Event(Event::end(time("e")?, time("s")?, values)),
        Some("punct" | "lwm") => Row::Punctuation(time("t")?),
        _ => return Err(format!("an unknown kind of row: {row}")),
    })
}

/// A result: start, end, payload and partition as text that is equal when the values are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    start: i64,
    end: i64,
    row: String,
}

impl Interval {
    fn of(lifetime: &ResultLifetime, val: &Shape<Expr>, names: &[&str], partitioned: bool) -> Result<Interval, String> {
        let value = |name: &str| {
            let at = names.iter().position(|other| *other == name);
            at.map(|at| lifetime.row[at].clone()).ok_or_else(|| format!("the result has no column {name}"))
        };
        let leaves = val.leaves();
        let values = leaves.iter().map(|(_, expr)| match expr {
            Expr::Column(column) => value(&column.name),
            other => Err(format!("the payload is no column: {other}")),
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let payload = payload(val, &mut values.into_iter());
        let partition = if partitioned {
            format!(" of {}", canonical(&super::shape::payload(&Shape::Leaf(()), &mut [value(PARTITION)?].into_iter())))
        } else {
            String::new()
        };
        let row = format!("{}{partition}", canonical(&payload));
        Ok(Interval { start: lifetime.start, end: lifetime.end, row })
    }
}

fn compare(expect: &Value, mut actual: Vec<Interval>, partitioned: bool) -> Result<(), String> {
    let row = |payload: &Value, partition: &Value| match partitioned {
        true => format!("{} of {}", canonical(payload), canonical(partition)),
        false => canonical(payload),
    };
    let mut expected_deltas: BTreeMap<(i64, String), i64> = BTreeMap::new();
    for delta in expect["deltas"].as_array().ok_or("a case expects deltas")? {
        let time = delta[0].as_i64().ok_or("a delta has a time")?;
        *expected_deltas.entry((time, row(&delta[1], &delta[3]))).or_default() += delta[2].as_i64().unwrap_or(0);
    }
    let mut deltas: BTreeMap<(i64, String), i64> = BTreeMap::new();
    for Interval { start, end, row } in &actual {
        *deltas.entry((*start, row.clone())).or_default() += 1;
        if *end != FOREVER {
            *deltas.entry((*end, row.clone())).or_default() -= 1;
        }
    }
    deltas.retain(|_, diff| *diff != 0);
    if deltas != expected_deltas {
        return Err(format!("deltas differ: {}", difference(&deltas, &expected_deltas)));
    }
    if expect["exact_split"] == true {
        let mut expected = Vec::new();
        for interval in expect["intervals"].as_array().ok_or("a case expects intervals")? {
            let start = interval[0].as_i64().ok_or("an interval has a start")?;
            let end = ticks(&interval[1]).ok_or("an interval has an end")?;
            expected.push(Interval { start, end, row: row(&interval[2], &interval[3]) });
        }
        expected.sort();
        actual.sort();
        if actual != expected {
            return Err(format!("intervals differ: got {actual:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

fn difference(actual: &BTreeMap<(i64, String), i64>, expected: &BTreeMap<(i64, String), i64>) -> String {
    let only = |these: &BTreeMap<(i64, String), i64>, those: &BTreeMap<(i64, String), i64>| {
        let differ = these.iter().filter(|(key, diff)| those.get(*key) != Some(*diff));
        differ.map(|((time, row), diff)| format!("{row} @{time} {diff:+}")).collect::<Vec<_>>().join("; ")
    };
    format!("got [{}], expected [{}]", only(actual, expected), only(expected, actual))
}

/// A payload as text that is equal for equal values: numbers by value, fields in order of their
/// names.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |value| format!("{value:.10}")),
        Value::Array(elements) => format!("[{}]", elements.iter().map(canonical).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let mut fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name}: {}", canonical(field))).collect();
            fields.sort();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
