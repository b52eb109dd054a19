//! Patterns of events: a tree of tuples from Python as the engine's.
//!
//! A part is `("event" | "any_event" | "any_of" | "all_of" | "none_of", condition, [(register,
//! value), ..])`, `("sequence" | "any_part", [part, ..])` or `("repeat", part, min, max)`.
//! Expressions are SQL over the frame's columns and the registers.

use anabranch_engine::frame::{EventPattern, Expr, Frame as EngineFrame, reg};
use arrow::datatypes::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::expressions::{columns_of, expressions};
use crate::functions::Function;
use crate::rows::Rows;

/// A pattern as a user described it.
pub struct Described<'a, 'py> {
    /// The tree of parts.
    pub pattern: &'a Bound<'py, PyTuple>,
    /// A column for each register.
    pub registers: &'a Rows,
    /// Values of the registers at the start, as SQL.
    pub initial: Vec<String>,
    /// How long a match may take, in ticks.
    pub within: Option<i64>,
    /// `non_overlapping`, `in_order_of_arrival`.
    pub flags: Vec<String>,
    /// Functions that expressions call, by name.
    pub functions: &'a [(String, PyRef<'py, Function>)],
}

/// Where a pattern is met.
pub fn detect<'py>(py: Python<'py>, frame: &EngineFrame, described: &Described<'_, 'py>) -> PyResult<EngineFrame> {
    let registers = columns_of(described.registers);
    let more = registers.iter().map(|(name, is)| (register_column(name), is.clone())).collect();
    let reader = Reader { py, frame, more, functions: described.functions };
    let mut made = reader.part(described.pattern)?;
    let values = expressions(py, frame, &described.initial, &[], described.functions)?;
    for ((name, _), value) in registers.iter().zip(values) {
        made = made.register(name, value);
    }
    if let Some(ticks) = described.within {
        made = made.within(ticks);
    }
    for flag in &described.flags {
        made = match flag.as_str() {
            "non_overlapping" => made.non_overlapping(),
            _ => made.in_order_of_arrival(),
        };
    }
    Ok(frame.detect(&made))
}

/// The name that expressions have for a register.
fn register_column(name: &str) -> String {
    match reg(name) {
        Expr::Column(column) => column.name,
        _ => name.to_owned(),
    }
}

struct Reader<'a, 'py> {
    py: Python<'py>,
    frame: &'a EngineFrame,
    more: Vec<(String, DataType)>,
    functions: &'a [(String, PyRef<'py, Function>)],
}

impl Reader<'_, '_> {
    fn part(&self, part: &Bound<'_, PyTuple>) -> PyResult<EventPattern> {
        let kind: String = part.get_item(0)?.extract()?;
        match kind.as_str() {
            "sequence" | "any_part" => {
                let parts: Vec<Bound<'_, PyTuple>> = part.get_item(1)?.extract()?;
                let parts = parts.iter().map(|part| self.part(part)).collect::<PyResult<Vec<_>>>()?;
                Ok(if kind == "sequence" { EventPattern::sequence(parts) } else { EventPattern::any_part(parts) })
            }
            "repeat" => {
                let inner = self.part(part.get_item(1)?.cast::<PyTuple>()?)?;
                Ok(inner.repeat(part.get_item(2)?.extract()?, part.get_item(3)?.extract()?))
            }
            _ => self.element(&kind, part),
        }
    }

    fn element(&self, kind: &str, part: &Bound<'_, PyTuple>) -> PyResult<EventPattern> {
        let condition: Option<String> = part.get_item(1)?.extract()?;
        let condition = condition.map(|text| self.expression(text)).transpose()?;
        let mut made = match (kind, condition) {
            ("any_event", _) => EventPattern::any_event(),
            ("event", Some(condition)) => EventPattern::event(condition),
            ("any_of", Some(condition)) => EventPattern::any_of(condition),
            ("all_of", Some(condition)) => EventPattern::all_of(condition),
            ("none_of", Some(condition)) => EventPattern::none_of(condition),
            _ => return Err(PyValueError::new_err(format!("there is no part {kind} of a pattern"))),
        };
        let sets: Vec<(String, String)> = part.get_item(2)?.extract()?;
        for (register, value) in sets {
            made = made.set(&register, self.expression(value)?);
        }
        Ok(made)
    }

    fn expression(&self, text: String) -> PyResult<Expr> {
        let exprs = expressions(self.py, self.frame, &[text], &self.more, self.functions)?;
        exprs.into_iter().next().ok_or_else(|| PyValueError::new_err("an expression was expected"))
    }
}
