//! Patterns of cases.

use anabranch_engine::frame::{EventPattern, Expr, col, lit, reg};
use datafusion_common::ScalarValue;
use serde_json::Value;

use super::expression::{Words, expression, scalar};
use super::query::{Query, ticks};
use super::shape::Shape;

/// `detect` as a verb of the fluent API.
pub(super) fn detect(json: &Value, input: &Query) -> Result<Query, String> {
    let form = register_form(&json["pattern"], &input.words())?;
    let mut words = input.words();
    words.insert("reg".into(), form.map(&mut |name, ()| reg(name)));
    let mut pattern = part(&json["pattern"], &words)?;
    let is_used = sets_register(&json["pattern"]);
    let initial = match &json["register"] {
        Value::Null => lit(ScalarValue::Null),
        literal => expression(literal, &Words::new())?.scalar()?,
    };
    if is_used || !json["register"].is_null() {
        for (name, ()) in form.leaves() {
            pattern = pattern.register(&name, initial.clone());
        }
    }
    if let Some(duration) = json.get("max_duration").and_then(ticks).or_else(|| constant_duration(&json["in"])) {
        pattern = pattern.within(duration);
    }
    if json["overlapping"] == false {
        pattern = pattern.non_overlapping();
    }
    if json["simultaneity_free"] == true {
        pattern = pattern.in_order_of_arrival();
    }
    let frame = input.frame.detect(&pattern);
    if is_used || !json["register"].is_null() {
        return Ok(Query { frame, val: form.map(&mut |name, ()| col(name)) });
    }
    let nothing = Query { frame, val: Shape::List(vec![]) };
    Ok(nothing.select(&Shape::Leaf(lit(ScalarValue::Utf8View(None)))))
}

/// The duration that a case promises for its input.
fn constant_duration(input: &Value) -> Option<i64> {
    input.get("constant_duration").and_then(ticks)
}

/// The form of the register: that of the first value it is set to.
fn register_form(pattern: &Value, words: &Words) -> Result<Shape<()>, String> {
    let mut words = words.clone();
    words.insert("reg".into(), Shape::Leaf(lit(ScalarValue::Null)));
    match set_values(pattern).first() {
        Some(value) => Ok(expression(value, &words)?.map(&mut |_, _| ())),
        None => Ok(Shape::Leaf(())),
    }
}

fn sets_register(pattern: &Value) -> bool {
    !set_values(pattern).is_empty()
}

/// What events set the register to.
fn set_values(pattern: &Value) -> Vec<&Value> {
    match pattern.as_array().map(Vec::as_slice) {
        Some([head, _, value]) if head == "ev" => vec![value],
        Some([head, parts @ ..]) if head != "ev" => parts.iter().flat_map(set_values).collect(),
        _ => vec![],
    }
}

fn part(json: &Value, words: &Words) -> Result<EventPattern, String> {
    let parts = json.as_array().ok_or_else(|| format!("no pattern: {json}"))?;
    let (head, args) = parts.split_first().ok_or("an empty pattern")?;
    let inner = || part(args.first().ok_or("a part is missing")?, words);
    let all = || args.iter().map(|arg| part(arg, words)).collect::<Result<Vec<_>, _>>();
    let condition = || scalar(args.first().ok_or("a condition is missing")?, words);
    Ok(match head.as_str() {
        Some("ev") => {
            let event = EventPattern::event(condition()?);
            match args.get(1) {
                None => event,
                Some(value) => set(event, &expression(value, words)?),
            }
        }
        Some("any_of") => EventPattern::any_of(condition()?),
        Some("all_of") => EventPattern::all_of(condition()?),
        Some("none_of") => EventPattern::none_of(condition()?),
        Some("seq") => EventPattern::sequence(all()?),
        Some("or") => EventPattern::any_part(all()?),
        Some("star") => inner()?.star(),
        Some("plus") => inner()?.plus(),
        Some("opt") => inner()?.optional(),
        _ => return Err(format!("an unknown pattern: {head}")),
    })
}

fn set(event: EventPattern, value: &Shape<Expr>) -> EventPattern {
    value.leaves().into_iter().fold(event, |event, (name, expr)| event.set(&name, expr.clone()))
}
