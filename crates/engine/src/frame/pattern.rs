//! Patterns over time, built part by part.
//!
//! ```
//! use anabranch_engine::frame::{Event, EventPattern, Events, col, lit, reg};
//! use anabranch_engine::{Options, Session};
//! use arrow::datatypes::{DataType, Field, Schema};
//!
//! // Three falls in a row, then a rise: how deep was the dip?
//! let schema = Schema::new(vec![Field::new("change", DataType::Int64, true)]);
//! let changes = Events::input("changes", schema).frame();
//! let fall = EventPattern::event(col("change").lt(lit(0))).set("depth", reg("depth") - col("change"));
//! let rise = EventPattern::event(col("change").gt(lit(0)));
//! let dips = changes.detect(&fall.repeat(3, None).then(rise).register("depth", lit(0i64)).within(100));
//!
//! let mut session = Session::new(Options::default())?;
//! let mut run = session.start(&dips)?;
//! let events = [-1, -2, -3, 5].iter().zip(1..).map(|(change, time)| Event::start(time, [i64::into(*change)])).collect::<Vec<_>>();
//! run.push("changes", events)?;
//! run.finish()?;
//! assert_eq!(run.lifetimes()?.iter().map(ToString::to_string).collect::<Vec<_>>(), ["[4, 101) 6"]);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::pattern::{self, Detect, Element, Overlap, Register, Simultaneous, Takes};
use anabranch_plan::temporal::{FOREVER, Verb};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::Expr;

use super::expression::{self, col};
use super::lifetimes::positive;
use super::query::{Frame, FrameState, schema_of, temporal};
use crate::error::Error;
use crate::nearest::nearest;

/// Most occurrences of parts, repetitions written out.
const OCCURRENCES_MAX: usize = anabranch_operators::temporal::detect::pattern::OCCURRENCES_MAX;

/// A part of a pattern, or all of it. Immutable; each method gives a new one.
#[derive(Clone, Debug)]
pub struct EventPattern {
    part: PatternPart,
    registers: Vec<(String, Expr)>,
    within: Option<i64>,
    overlap: Overlap,
    simultaneous: Simultaneous,
}

/// What follows what, with the elements where they stand.
#[derive(Clone, Debug)]
enum PatternPart {
    Element { takes: Takes, condition: Option<Expr>, sets: Vec<(String, Expr)> },
    Sequence(Vec<PatternPart>),
    Alternatives(Vec<PatternPart>),
    Repeat(Box<PatternPart>, usize, Option<usize>),
}

/// A column of the register, in the expressions of a pattern.
pub fn reg(name: &str) -> Expr {
    col(&Detect::register_name(name))
}

impl EventPattern {
    /// One event that meets a condition, which may read the event's columns and the register.
    /// Several events of a group at one time are none.
    pub fn event(condition: Expr) -> EventPattern {
        EventPattern::element(Takes::Event, Some(condition))
    }

    /// One event, whatever it is.
    pub fn any_event() -> EventPattern {
        EventPattern::element(Takes::Event, None)
    }

    /// All events at one time, some of which meets the condition.
    pub fn any_of(condition: Expr) -> EventPattern {
        EventPattern::element(Takes::Some, Some(condition))
    }

    /// All events at one time, each of which meets the condition.
    pub fn all_of(condition: Expr) -> EventPattern {
        EventPattern::element(Takes::All, Some(condition))
    }

    /// All events at one time, none of which meets the condition.
    pub fn none_of(condition: Expr) -> EventPattern {
        EventPattern::element(Takes::None, Some(condition))
    }

    fn element(takes: Takes, condition: Option<Expr>) -> EventPattern {
        EventPattern::of(PatternPart::Element { takes, condition, sets: vec![] })
    }

    fn of(part: PatternPart) -> EventPattern {
        EventPattern {
            part,
            registers: vec![],
            within: None,
            overlap: Overlap::Allowed,
            simultaneous: Simultaneous::Instant,
        }
    }

    /// One part after another. Nothing may lie between them: events to be passed over are a part of
    /// their own.
    pub fn sequence(parts: impl IntoIterator<Item = EventPattern>) -> EventPattern {
        EventPattern::joined(parts, PatternPart::Sequence)
    }

    /// Any one of these parts.
    pub fn any_part(parts: impl IntoIterator<Item = EventPattern>) -> EventPattern {
        EventPattern::joined(parts, PatternPart::Alternatives)
    }

    fn joined(
        parts: impl IntoIterator<Item = EventPattern>,
        join: impl Fn(Vec<PatternPart>) -> PatternPart,
    ) -> EventPattern {
        let mut joined = EventPattern::of(PatternPart::Sequence(vec![]));
        let mut inner = Vec::new();
        for part in parts {
            inner.push(part.part);
            joined.registers.extend(part.registers);
            joined.within = part.within.or(joined.within);
            if part.overlap == Overlap::Forbidden {
                joined.overlap = Overlap::Forbidden;
            }
            if part.simultaneous == Simultaneous::Arrival {
                joined.simultaneous = Simultaneous::Arrival;
            }
        }
        EventPattern { part: join(inner), ..joined }
    }

    /// This, then `next`.
    #[must_use]
    pub fn then(self, next: EventPattern) -> EventPattern {
        EventPattern::sequence([self, next])
    }

    /// This, or `other`.
    #[must_use]
    pub fn or(self, other: EventPattern) -> EventPattern {
        EventPattern::any_part([self, other])
    }

    /// Any number of times, also none.
    #[must_use]
    pub fn star(self) -> EventPattern {
        self.repeat(0, None)
    }

    /// At least once.
    #[must_use]
    pub fn plus(self) -> EventPattern {
        self.repeat(1, None)
    }

    /// Once or not at all.
    #[must_use]
    pub fn optional(self) -> EventPattern {
        self.repeat(0, Some(1))
    }

    /// At least `min` times, and at most `max` times if there is one.
    #[must_use]
    pub fn repeat(self, min: usize, max: Option<usize>) -> EventPattern {
        EventPattern { part: PatternPart::Repeat(Box::new(self.part), min, max), ..self }
    }

    /// Where this part, an event or instant, is met, column `name` of the register becomes `value`,
    /// which may read the event and the register. For instants, once for each event that meets the
    /// condition; their order must not matter.
    #[must_use]
    pub fn set(mut self, name: &str, value: Expr) -> EventPattern {
        set(&mut self.part, name, &value);
        self
    }

    /// A column of the register and its value at the start of a match; a constant. NULL takes the
    /// type of what it is set to.
    #[must_use]
    pub fn register(mut self, name: &str, initial: Expr) -> EventPattern {
        self.registers.push((name.to_owned(), initial));
        self
    }

    /// Matches end `ticks` after their first event, whether they are complete or not. Without, the
    /// constant duration of the input's events is taken.
    #[must_use]
    pub fn within(self, ticks: i64) -> EventPattern {
        EventPattern { within: Some(ticks), ..self }
    }

    /// A match begins only when none is in progress in its group.
    #[must_use]
    pub fn non_overlapping(self) -> EventPattern {
        EventPattern { overlap: Overlap::Forbidden, ..self }
    }

    /// Events at one time are a sequence, in order of arrival: a promise that this order means
    /// something.
    #[must_use]
    pub fn in_order_of_arrival(self) -> EventPattern {
        EventPattern { simultaneous: Simultaneous::Arrival, ..self }
    }
}

impl Frame {
    /// Where a pattern is met: for each match an event from its last event on until its end, with
    /// the columns of the register (and of the group). Events count by their start.
    #[must_use]
    pub fn detect(&self, pattern: &EventPattern) -> Frame {
        self.then(|state| detect(state, pattern))
    }
}

fn set(part: &mut PatternPart, name: &str, value: &Expr) {
    match part {
        PatternPart::Element { sets, .. } => sets.push((name.to_owned(), value.clone())),
        PatternPart::Sequence(parts) | PatternPart::Alternatives(parts) => {
            parts.iter_mut().for_each(|part| set(part, name, value))
        }
        PatternPart::Repeat(part, ..) => set(part, name, value),
    }
}

fn detect(state: &FrameState, pattern: &EventPattern) -> Result<Arc<Plan>, Error> {
    let duration = match (pattern.within, constant_duration(&state.plan)) {
        (Some(within), _) => within,
        (None, Some(duration)) => duration,
        (None, None) => {
            return Err(Error::invalid("the pattern has no duration")
                .with_detail(
                    "Matches in progress are kept until they end, and events of the input have no constant duration.",
                )
                .with_hint("Say how long a match may take with .within(ticks)."));
        }
    };
    positive("the duration of a pattern", duration)?;
    let registers = registers(state.schema(), pattern)?;
    let columns: Vec<(String, DataType)> =
        registers.iter().map(|register| (register.name.clone(), register.initial.data_type())).collect();
    let schema = schema_with(state.schema(), &columns)?;
    let mut elements = Vec::new();
    let numbered = number(&pattern.part, &schema, &columns, &mut elements)?;
    let automaton = check(&numbered)?;
    if duration == FOREVER && automaton.is_unbounded && pattern.overlap == Overlap::Allowed {
        return Err(Error::invalid("the pattern may never finish")
            .with_detail(
                "It repeats without a limit, its matches overlap and have no end, so ever more would be in progress.",
            )
            .with_hint("Say how long a match may take with .within(ticks), or forbid overlaps."));
    }
    let group = state.group.iter().map(|name| state.position(name)).collect::<Result<Vec<_>, _>>()?;
    let keys = group.iter().map(|&at| state.schema().field(at));
    let output: Vec<(String, DataType)> =
        keys.map(|key| (key.name().clone(), key.data_type().clone())).chain(columns).collect();
    let verb = Verb::Detect(Box::new(Detect {
        pattern: numbered,
        elements,
        group,
        registers,
        duration,
        overlap: pattern.overlap,
        simultaneous: pattern.simultaneous,
    }));
    Ok(temporal(verb, vec![state.plan.clone()], schema_of(&output)?))
}

/// How long all events of a plan last, if that is one number.
fn constant_duration(plan: &Plan) -> Option<i64> {
    use anabranch_plan::Node;
    match &plan.node {
        Node::Temporal { verb: Verb::Duration { ticks }, .. } => Some(*ticks),
        Node::Temporal { verb: Verb::PointAtEnd, .. } => Some(1),
        Node::Temporal { verb: Verb::Hopping(windows), .. } => windows.reported_ticks(),
        Node::Temporal { verb: Verb::Shift { .. }, inputs } => constant_duration(&inputs[0]),
        Node::Stage { input, .. } | Node::Unnest { input, .. } => constant_duration(input),
        Node::Union { inputs } => {
            let mut durations = inputs.iter().map(|input| constant_duration(input));
            let first = durations.next().flatten()?;
            durations.all(|duration| duration == Some(first)).then_some(first)
        }
        _ => None,
    }
}

fn schema_with(input: &DFSchema, registers: &[(String, DataType)]) -> Result<DFSchema, Error> {
    Detect::schema(input, registers).map_err(|error| Error::invalid(error.strip_backtrace()))
}

/// The columns of the register with their values at the start.
fn registers(input: &DFSchema, pattern: &EventPattern) -> Result<Vec<Register>, Error> {
    let mut registers: Vec<Register> = Vec::new();
    for (name, initial) in &pattern.registers {
        if registers.iter().any(|register| register.name == *name) {
            return Err(Error::invalid(format!("register \"{name}\" is declared twice")));
        }
        let resolved = expression::resolve(initial, &DFSchema::empty())?;
        let Expr::Literal(initial, _) = resolved.expr else {
            return Err(Error::invalid(format!(
                "register \"{name}\" starts as {}, which is no constant",
                resolved.name
            )));
        };
        registers.push(Register { name: name.clone(), initial });
    }
    // A NULL takes the type of what it is set to; that may depend on other registers, so as often
    // as there are any.
    for _ in 0..registers.len() {
        let columns: Vec<(String, DataType)> =
            registers.iter().map(|register| (register.name.clone(), register.initial.data_type())).collect();
        let schema = schema_with(input, &columns)?;
        for register in registers.iter_mut().filter(|register| register.initial.data_type() == DataType::Null) {
            if let Some(data_type) = type_set(&pattern.part, &register.name, &schema)? {
                register.initial =
                    ScalarValue::try_from(&data_type).map_err(|error| Error::invalid(error.strip_backtrace()))?;
            }
        }
    }
    Ok(registers)
}

/// The type that a register is set to, if any of its values has one.
fn type_set(part: &PatternPart, name: &str, schema: &DFSchema) -> Result<Option<DataType>, Error> {
    match part {
        PatternPart::Element { sets, .. } => {
            for (_, value) in sets.iter().filter(|(register, _)| register == name) {
                let data_type = expression::resolve(value, schema)?.data_type;
                if data_type != DataType::Null {
                    return Ok(Some(data_type));
                }
            }
            Ok(None)
        }
        PatternPart::Sequence(parts) | PatternPart::Alternatives(parts) => {
            for part in parts {
                if let Some(data_type) = type_set(part, name, schema)? {
                    return Ok(Some(data_type));
                }
            }
            Ok(None)
        }
        PatternPart::Repeat(part, ..) => type_set(part, name, schema),
    }
}

/// The pattern with its elements by number.
fn number(
    part: &PatternPart,
    schema: &DFSchema,
    registers: &[(String, DataType)],
    elements: &mut Vec<Element>,
) -> Result<pattern::Pattern, Error> {
    let mut all = |parts: &[PatternPart]| {
        parts.iter().map(|part| number(part, schema, registers, elements)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match part {
        PatternPart::Sequence(parts) => pattern::Pattern::Sequence(all(parts)?),
        PatternPart::Alternatives(parts) => pattern::Pattern::Alternatives(all(parts)?),
        PatternPart::Repeat(part, min, max) => {
            if max.is_some_and(|max| max < *min) {
                return Err(Error::invalid(format!(
                    "a part is repeated at least {min} and at most {} times",
                    max.unwrap_or(0)
                )));
            }
            pattern::Pattern::Repeat(Box::new(number(part, schema, registers, elements)?), *min, *max)
        }
        PatternPart::Element { takes, condition, sets } => {
            let condition = condition.as_ref().map(|condition| condition_of(condition, schema)).transpose()?;
            elements.push(Element { takes: *takes, condition, registers: register_exprs(sets, schema, registers)? });
            pattern::Pattern::Element(elements.len() - 1)
        }
    })
}

fn condition_of(condition: &Expr, schema: &DFSchema) -> Result<Expr, Error> {
    let resolved = expression::resolve(condition, schema)?;
    match resolved.data_type {
        DataType::Boolean => Ok(resolved.expr),
        other => Err(Error::invalid(format!("a condition is true or false, but {} is of type {other}", resolved.name))),
    }
}

/// The whole register after an element.
fn register_exprs(
    sets: &[(String, Expr)],
    schema: &DFSchema,
    registers: &[(String, DataType)],
) -> Result<Option<Vec<Expr>>, Error> {
    if let Some((name, _)) = sets.iter().find(|(name, _)| registers.iter().all(|(known, _)| known != name)) {
        let error = Error::invalid(format!("the pattern has no register \"{name}\""));
        return Err(match nearest(name, registers.iter().map(|(known, _)| known.as_str())) {
            Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
            None => error.with_hint(format!("Declare it with .register(\"{name}\", initial value).")),
        });
    }
    if sets.is_empty() {
        return Ok(None);
    }
    let value = |(name, data_type): &(String, DataType)| {
        let set = sets.iter().rev().find(|(register, _)| register == name);
        let resolved = expression::resolve(&set.map_or_else(|| reg(name), |(_, value)| value.clone()), schema)?;
        Ok(match resolved.data_type == *data_type {
            true => resolved.expr,
            false => datafusion_expr::cast(resolved.expr, data_type.clone()),
        })
    };
    registers.iter().map(value).collect::<Result<Vec<_>, _>>().map(Some)
}

/// The automaton, if the pattern makes sense.
fn check(numbered: &pattern::Pattern) -> Result<anabranch_operators::temporal::detect::Automaton, Error> {
    let occurrences = numbered.n_occurrences();
    if occurrences > OCCURRENCES_MAX {
        return Err(Error::invalid(format!(
            "the pattern has {occurrences} parts when its repetitions are written out; at most {OCCURRENCES_MAX} are possible"
        )));
    }
    let automaton = anabranch_operators::temporal::detect::Automaton::new(numbered);
    if automaton.first.is_empty() {
        return Err(Error::invalid("the pattern matches nothing").with_hint("Give it at least one event."));
    }
    Ok(automaton)
}
