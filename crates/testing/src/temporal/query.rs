//! Operators of cases, each as a verb of the fluent API.

use std::collections::BTreeMap;

use anabranch_engine::frame::{self, Expr, FOREVER, Frame, FrameAggregate, How, col};
use datafusion_common::ScalarValue;
use datafusion_functions_nested::expr_fn::make_array;
use serde_json::Value;

use super::expression::{Words, expression, scalar};
use super::shape::Shape;

/// A query under construction: a frame, and its payload as expressions over the frame's columns.
#[derive(Clone)]
pub(super) struct Query {
    pub frame: Frame,
    pub val: Shape<Expr>,
}

/// What operators stand in.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// The case's inputs.
    pub inputs: BTreeMap<String, Query>,
    /// The frame of the group, inside `group_apply`.
    pub group: Option<Query>,
    /// How deep groups are nested.
    pub depth: usize,
}

impl Query {
    /// The words of expressions over this query.
    pub(super) fn words(&self) -> Words {
        Words::from([("val".to_owned(), self.val.clone())])
    }

    /// The query of a verb that keeps all columns.
    fn with(&self, frame: Frame) -> Query {
        Query { frame, val: self.val.clone() }
    }

    /// The query whose payload is `result`.
    pub(super) fn select(&self, result: &Shape<Expr>) -> Query {
        let columns: Vec<Expr> = result.leaves().into_iter().map(|(name, expr)| expr.clone().alias(name)).collect();
        let val = result.map(&mut |name, _| col(name));
        Query { frame: self.frame.select(columns), val }
    }
}

/// The query of an operator.
pub(super) fn query(json: &Value, scope: &Scope) -> Result<Query, String> {
    let op = text(json, "op")?;
    match op {
        "input" => {
            let name = text(json, "name")?;
            return scope.inputs.get(name).cloned().ok_or_else(|| format!("there is no input {name}"));
        }
        "group_input" => return scope.group.clone().ok_or_else(|| "group_input outside of a group".to_owned()),
        _ => {}
    }
    if json.get("left").is_some() {
        let left = query(&json["left"], scope)?;
        let right = query(&json["right"], scope)?;
        return binary(op, json, left, right);
    }
    let input = query(&json["in"], scope)?;
    unary(op, json, input, scope)
}

fn unary(op: &str, json: &Value, input: Query, scope: &Scope) -> Result<Query, String> {
    let frame = &input.frame;
    let words = input.words();
    let number = |name: &str| ticks(&json[name]).ok_or_else(|| format!("{op} needs {name}"));
    let offset = json.get("offset").and_then(ticks).unwrap_or(0);
    Ok(match op {
        "set_property" => input,
        "where" => input.with(frame.filter(scalar(&json["pred"], &words)?)),
        "select" => input.select(&expression(&json["expr"], &words)?),
        "select_many" => select_many(&input, expression(&json["expr"], &words)?)?,
        "alter_duration" => input.with(match ticks(&json["duration"]) {
            Some(duration) => frame.alter_duration(duration),
            None => frame.alter_duration_by(scalar(&json["duration"], &words)?),
        }),
        "shift" => input.with(frame.shift(number("amount")?)),
        "alter_lifetime" => {
            let duration = match json.get("duration") {
                None => None,
                Some(Value::String(text)) if text == "inf" => Some(frame::lit(ScalarValue::Int64(None))),
                Some(duration) => Some(scalar(duration, &words)?),
            };
            input.with(frame.alter_lifetime(scalar(&json["start"], &words)?, duration))
        }
        "tumbling" => input.with(frame.tumbling_at(number("size")?, offset)),
        "hopping" => input.with(frame.hopping(number("size")?, number("period")?, offset)),
        "repetitive_hopping" => input.with(frame.repetitive_hopping(number("size")?, number("period")?, offset)),
        "quantize" => input.with(frame.quantize(number("size")?, number("period")?, offset)),
        "progressive_quantize" => {
            let (size, period, progress) = (number("size")?, number("period")?, number("progress")?);
            input.with(frame.quantize_progressive(size, period, progress, offset))
        }
        "point_at_end" => input.with(frame.point_at_end()),
        "extend" => input.with(frame.extend(number("amount")?)),
        "clip_duration" => input.with(frame.clip_duration(number("limit")?)),
        "chop" => input.with(frame.chop(number("period")?, offset)),
        "stitch" => input.with(frame.stitch()),
        "distinct" => input.with(frame.distinct()),
        "session" => {
            let maximum = json.get("max_duration").and_then(ticks).filter(|maximum| *maximum > 0);
            input.with(frame.session(number("timeout")?, maximum))
        }
        "detect" => super::pattern::detect(json, &input)?,
        "followed_by_immediate" => {
            let within = json.get("within").and_then(ticks).unwrap_or(FOREVER);
            let (first, second) = (scalar(&json["first"], &words)?, scalar(&json["second"], &words)?);
            pairs(json, &input, frame.followed_by_immediate(first, second, within), None)?
        }
        "consecutive_pairs" => pairs(json, &input, frame.consecutive_pairs(), None)?,
        "sessionize" => {
            let (opens, closes) = (scalar(&json["start"], &words)?, scalar(&json["end"], &words)?);
            let key = expression(&json["key"], &words)?.map(&mut |name, key| key.clone().alias(format!("key {name}")));
            let keys: Vec<Expr> = key.leaves().into_iter().map(|(_, key)| key.clone()).collect();
            let key = key.map(&mut |name, _| col(&key_name(name)));
            pairs(json, &input, frame.sessionize(keys, opens, closes), Some(key))?
        }
        "aggregate" => aggregate(json, &input, None)?,
        "group_aggregate" => aggregate(json, &input, Some(expression(&json["key"], &words)?))?,
        "group_apply" => group_apply(json, &input, scope)?,
        _ => return Err(format!("unknown operator {op}")),
    })
}

/// A row for each element of a list.
fn select_many(input: &Query, list: Shape<Expr>) -> Result<Query, String> {
    let (list, fields) = match list {
        Shape::Elements(list, fields) => (list, *fields),
        Shape::List(elements) => {
            let Some(fields) = elements.first().map(Shape::fields) else {
                return Ok(input.with(input.frame.filter(frame::lit(false))));
            };
            let names = |fields: &Shape<String>| fields.leaves().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            if elements.iter().any(|element| names(&element.fields()) != names(&fields)) {
                return Err("the elements of select_many have different forms".into());
            }
            (make_array(elements.iter().map(Shape::packed).collect()), fields)
        }
        _ => return Err("select_many is of a list".into()),
    };
    let exploded = input.frame.select([list.alias("element")]).explode("element");
    let val = fields.parts_of(&col("element"));
    Ok(Query { frame: exploded, val: val.clone() }.select(&val))
}

/// The result over pairs of events: columns of the first, then of the second with a suffix.
fn pairs(json: &Value, input: &Query, frame: Frame, key: Option<Shape<Expr>>) -> Result<Query, String> {
    let second = input.val.map(&mut |_, expr| match expr {
        Expr::Column(column) => col(&format!("{}_right", column.name)),
        other => other.clone(),
    });
    let mut words = Words::from([("left".to_owned(), input.val.clone()), ("right".to_owned(), second)]);
    words.extend(key.map(|key| ("key".to_owned(), key)));
    let result = expression(&json["result"], &words)?;
    Ok(input.with(frame).select(&result))
}

fn binary(op: &str, json: &Value, left: Query, right: Query) -> Result<Query, String> {
    let (ours, theirs) = (keys(json, &left, "left_key")?, keys(json, &right, "right_key")?);
    Ok(match op {
        "clip" => left.with(left.frame.clip_by(&right.frame, ours, theirs)),
        "where_not_exists" if json.get("pred").is_some() => absent_where(json, &left, &right)?,
        "where_not_exists" => left.with(left.frame.where_not_exists(&right.frame, ours, theirs)),
        "union" => left.with(left.frame.union(&right.frame)),
        "join" => join(json, &left, &right, How::Inner)?,
        "left_outer_join" => join(json, &left, &right, How::Left)?,
        "full_outer_join" => join(json, &left, &right, How::Full)?,
        _ => return Err(format!("unknown operator {op}")),
    })
}

/// The expressions of a key, none if there is no key.
fn keys(json: &Value, query: &Query, name: &str) -> Result<Vec<Expr>, String> {
    let Some(key) = json.get(name).filter(|key| !key.is_null()) else { return Ok(vec![]) };
    let key = expression(key, &query.words())?;
    Ok(key.leaves().into_iter().map(|(_, expr)| expr.clone()).collect())
}

/// The left rows while no right one of their key passes a condition.
fn absent_where(json: &Value, left: &Query, right: &Query) -> Result<Query, String> {
    let (left, right) = (left.named("left"), right.named("right"));
    let (ours, theirs) = (keys(json, &left, "left_key")?, keys(json, &right, "right_key")?);
    let words = Words::from([("left".to_owned(), left.val.clone()), ("right".to_owned(), right.val.clone())]);
    let predicate = scalar(&json["pred"], &words)?;
    Ok(left.with(left.frame.where_not_exists_where(&right.frame, ours, theirs, predicate)))
}

/// A join, its columns named by their side, and its result of them.
fn join(json: &Value, left: &Query, right: &Query, how: How) -> Result<Query, String> {
    let (left, right) = (left.named("left"), right.named("right"));
    let (ours, theirs) = (keys(json, &left, "left_key")?, keys(json, &right, "right_key")?);
    let words = Words::from([("left".to_owned(), left.val.clone()), ("right".to_owned(), right.val.clone())]);
    let frame = match json.get("pred") {
        None => left.frame.join(&right.frame, ours, theirs, how),
        Some(pred) => left.frame.join_where(&right.frame, ours, theirs, how, scalar(pred, &words)?),
    };
    let result = expression(&json["result"], &words)?;
    let outer = |name: &str| json.get(name).map(|outer| expression(outer, &words)).transpose();
    let without_right = outer(if how == How::Left { "outer" } else { "left_outer" })?;
    let without_left = outer("right_outer")?;
    let result = result.choose(&is_missing("right"), without_right.as_ref())?;
    let result = result.choose(&is_missing("left"), without_left.as_ref())?;
    Ok(Query { frame, val: result.clone() }.select(&result))
}

/// Whether a row of a join has no partner on a side.
fn is_missing(side: &str) -> Expr {
    col(&format!("{side} there")).is_null()
}

impl Query {
    /// The query with columns named by its side of a join, and one that is true.
    fn named(&self, side: &str) -> Query {
        let leaves = self.val.leaves().into_iter();
        let columns = leaves.map(|(name, expr)| expr.clone().alias(format!("{side} {name}")));
        let there = frame::lit(true).alias(format!("{side} there"));
        let frame = self.frame.select(columns.chain([there]).collect::<Vec<_>>());
        Query { frame, val: self.val.map(&mut |name, _| col(&format!("{side} {name}"))) }
    }
}

fn aggregate(json: &Value, input: &Query, key: Option<Shape<Expr>>) -> Result<Query, String> {
    let calls = json["aggs"].as_array().ok_or("aggregate needs aggs")?;
    let mut aggregates = Vec::new();
    let mut words = Words::new();
    for (at, call) in calls.iter().enumerate() {
        let name = format!("agg{at}");
        aggregates.push(aggregate_of(call, &input.words())?.alias(&name));
        words.insert(format!("agg {at}"), form_of(call)?.map(&mut |_, ()| col(&name)));
    }
    let keys: Vec<Expr> =
        key.iter().flat_map(Shape::leaves).map(|(name, e)| e.clone().alias(key_name(&name))).collect();
    if let Some(key) = &key {
        words.insert("key".into(), key.map(&mut |name, _| col(&key_name(name))));
    }
    let frame = input.frame.group_by(keys).agg(aggregates);
    let first = words.get("agg 0").cloned().unwrap_or(Shape::List(vec![]));
    let grouped = Query { frame, val: first.clone() };
    let result = match json.get("result") {
        Some(result) => expression(result, &words)?,
        None => first,
    };
    Ok(grouped.select(&result))
}

fn key_name(name: &str) -> String {
    format!("key {name}")
}

/// The form of an aggregate's result.
fn form_of(call: &Value) -> Result<Shape<()>, String> {
    Ok(match text(call, "agg")? {
        "topk" => {
            let pair = ["rank", "value"].map(|name| Shape::Leaf(name.to_owned()));
            Shape::Elements((), Box::new(Shape::List(pair.to_vec())))
        }
        "collect" => Shape::Elements((), Box::new(Shape::Leaf(String::new()))),
        _ => Shape::Leaf(()),
    })
}

fn aggregate_of(call: &Value, words: &Words) -> Result<FrameAggregate, String> {
    let name = text(call, "agg")?;
    // (What rows are counted by is of no account.)
    let mut of = if name == "count" { frame::lit(0) } else { scalar(&call["of"], words)? };
    if call["type"] == "float" {
        of = datafusion_expr::cast(of, arrow::datatypes::DataType::Float64);
    }
    let aggregate = match name {
        "count" => frame::count_rows(),
        "count_not_null" => frame::count(of),
        "sum" => frame::sum(of),
        "avg" => frame::avg(of),
        "sum_squares" => frame::sum_squares(of),
        "avg_squares" => frame::avg_squares(of),
        "product" => frame::product(of),
        "single" | "single_or_default" => frame::single(of),
        "min" => frame::min(of),
        "max" => frame::max(of),
        "and" => frame::bool_and(of),
        "or" => frame::bool_or(of),
        "first" => frame::first(of),
        "last" => frame::last(of),
        "collect" => frame::collect(of),
        "distinct_count" => frame::count(of).distinct(),
        "percentile_cont" => frame::percentile_cont(of, call["p"].as_f64().ok_or("a percentile needs p")?),
        "percentile_disc" => frame::percentile_disc(of, call["p"].as_f64().ok_or("a percentile needs p")?),
        "var" => frame::variance(of),
        "pvar" => frame::variance_population(of),
        "stdev" => frame::stddev(of),
        "pstdev" => frame::stddev_population(of),
        "topk" => frame::top_k(of, call["k"].as_u64().ok_or("topk needs k")? as usize),
        _ => return Err(format!("unknown aggregate {name}")),
    };
    // A filter is one condition, or a list of conditions.
    let conditions = match call.get("where") {
        None => vec![],
        Some(Value::Array(parts)) if parts.first().is_some_and(Value::is_array) => parts.clone(),
        Some(condition) => vec![condition.clone()],
    };
    conditions.iter().try_fold(aggregate, |aggregate, condition| Ok(aggregate.filter(scalar(condition, words)?)))
}

/// The frame of a body, or any frame if it could not be built; keeps what became of it.
pub(super) fn body(built: Result<Query, String>, any: &Frame, outcome: &mut Option<Result<Query, String>>) -> Frame {
    let frame = built.as_ref().map_or_else(|_| any.clone(), |query| query.frame.clone());
    *outcome = Some(built);
    frame
}

/// A query applied to groups, from the frame of it and what became of the body: `None` where the
/// groups themselves are wrong.
pub(super) fn applied(frame: Frame, outcome: Option<Result<Query, String>>) -> Result<Query, String> {
    match (frame.schema(), outcome) {
        (_, Some(Err(message))) => Err(message),
        (Err(error), _) => Err(error.render("")),
        (Ok(_), Some(Ok(query))) => Ok(Query { frame, val: query.val }),
        (Ok(_), None) => Err("the groups have no body".into()),
    }
}

fn group_apply(json: &Value, input: &Query, scope: &Scope) -> Result<Query, String> {
    let key = expression(&json["key"], &input.words())?;
    let depth = scope.depth;
    let name_of = |leaf: &str| format!("group {depth} {leaf}");
    let keys: Vec<Expr> =
        key.leaves().into_iter().map(|(leaf, expr)| expr.clone().alias(name_of(leaf.as_str()))).collect();
    let mut outcome = None;
    let frame = input.frame.group_apply(keys, |group| {
        let inner = Scope { inputs: scope.inputs.clone(), group: Some(input.with(group.clone())), depth: depth + 1 };
        body(query(&json["body"], &inner), &group, &mut outcome)
    });
    let applied = applied(frame, outcome)?;
    let mut words = applied.words();
    words.insert("key".into(), key.map(&mut |leaf, _| col(&name_of(leaf))));
    match json.get("result") {
        Some(result) => Ok(applied.select(&expression(result, &words)?)),
        None => Ok(applied),
    }
}

fn text<'a>(json: &'a Value, name: &str) -> Result<&'a str, String> {
    json[name].as_str().ok_or_else(|| format!("{name} is missing in {json}"))
}

/// A number of ticks, or "inf".
pub(super) fn ticks(json: &Value) -> Option<i64> {
    if json == "inf" { Some(FOREVER) } else { json.as_i64() }
}
