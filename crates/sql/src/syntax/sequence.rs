//! Sequences as they are declared and changed.
//!
//! Law: [`SequenceShape::changed`] gives what PostgreSQL's CREATE SEQUENCE and ALTER SEQUENCE give
//! for the same options, or its error.

use arrow::datatypes::DataType;

use super::names::{quoted, quoted_path};
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::type_names::sql_name;

/// `CREATE SEQUENCE` and `ALTER SEQUENCE`.
#[derive(Clone, Debug)]
pub struct SequenceStatement {
    /// The sequence.
    pub name: String,
    /// `IF NOT EXISTS` of CREATE, `IF EXISTS` of ALTER.
    pub is_lenient: bool,
    /// What is said of it.
    pub options: SequenceOptions,
}

/// Options as they are written; what is not said is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceOptions {
    /// `AS smallint`, `integer` or `bigint`.
    pub data_type: Option<DataType>,
    /// `START WITH`.
    pub start: Option<i64>,
    /// `INCREMENT BY`.
    pub step: Option<i64>,
    /// `MINVALUE n`; NO MINVALUE is `Some(None)`.
    pub min: Option<Option<i64>>,
    /// `MAXVALUE n`; NO MAXVALUE is `Some(None)`.
    pub max: Option<Option<i64>>,
    /// `CYCLE`, NO CYCLE.
    pub cycles: Option<bool>,
    /// `RESTART`, alone or `WITH n` (ALTER only).
    pub restart: Option<Option<i64>>,
    /// `OWNED BY table.column`; NONE is `Some(None)`.
    pub owner: Option<Option<(String, String)>>,
}

/// What a sequence does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceShape {
    /// Type of the numbers: a limit of them.
    pub data_type: DataType,
    /// The first number.
    pub start: i64,
    /// From a number to the next.
    pub step: i64,
    /// The least number.
    pub min: i64,
    /// The greatest number.
    pub max: i64,
    /// Whether it begins anew after the last number.
    pub cycles: bool,
}

impl Default for SequenceShape {
    fn default() -> Self {
        SequenceShape { data_type: DataType::Int64, start: 1, step: 1, min: 1, max: i64::MAX, cycles: false }
    }
}

impl SequenceOptions {
    /// The shape of a new sequence.
    ///
    /// # Errors
    /// Where limits, steps and starts contradict each other.
    pub fn shape(&self) -> Result<SequenceShape> {
        let (min, max) = (self.min.or(Some(None)), self.max.or(Some(None)));
        let all = SequenceOptions { min, max, ..self.clone() };
        let shape = all.changed(&SequenceShape::default(), self.start.is_none())?;
        shape.checked()
    }

    /// The shape after ALTER SEQUENCE.
    ///
    /// # Errors
    /// As [`shape`](Self::shape).
    pub fn of_altered(&self, before: &SequenceShape) -> Result<SequenceShape> {
        // (Limits that were those of the type are those of the new one.)
        let (low, high) = limits(&before.data_type);
        let retyped = self.data_type.is_some();
        let min = self.min.or((retyped && before.min == low).then_some(None));
        let max = self.max.or((retyped && before.max == high).then_some(None));
        SequenceOptions { min, max, ..self.clone() }.changed(before, false)?.checked()
    }

    fn changed(&self, before: &SequenceShape, starts_at_limit: bool) -> Result<SequenceShape> {
        let data_type = self.data_type.clone().unwrap_or_else(|| before.data_type.clone());
        let step = self.step.unwrap_or(before.step);
        if step == 0 {
            return Err(SqlError::new(ErrorKind::Invalid, "INCREMENT must not be zero"));
        }
        let (low, high) = limits(&data_type);
        let min = self.min.map_or(before.min, |min| min.unwrap_or(if step > 0 { 1 } else { low }));
        let max = self.max.map_or(before.max, |max| max.unwrap_or(if step > 0 { high } else { -1 }));
        let start = match starts_at_limit {
            true => {
                if step > 0 {
                    min
                } else {
                    max
                }
            }
            false => self.start.unwrap_or(before.start),
        };
        Ok(SequenceShape { data_type, start, step, min, max, cycles: self.cycles.unwrap_or(before.cycles) })
    }
}

impl SequenceShape {
    fn checked(self) -> Result<SequenceShape> {
        let invalid = |message: String| Err(SqlError::new(ErrorKind::Invalid, message));
        let Self { data_type, start, step, min, max, .. } = &self;
        let (low, high) = limits(data_type);
        for (word, value) in [("MINVALUE", min), ("MAXVALUE", max)] {
            if *value < low || *value > high {
                let of = sql_name(data_type);
                return invalid(format!("{word} ({value}) is out of range for sequence data type {of}"));
            }
        }
        if min >= max {
            return invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
        }
        if start < min {
            return invalid(format!("START value ({start}) cannot be less than MINVALUE ({min})"));
        }
        if start > max {
            return invalid(format!("START value ({start}) cannot be greater than MAXVALUE ({max})"));
        }
        if step.unsigned_abs() > high.abs_diff(low) {
            return invalid(format!(
                "INCREMENT ({step}) is out of range for sequence data type {}",
                sql_name(data_type)
            ));
        }
        Ok(self)
    }

    /// The statement that makes it.
    pub fn definition(&self, name: &str) -> String {
        let Self { data_type, start, step, min, max, cycles } = self;
        let cycle = if *cycles { "CYCLE" } else { "NO CYCLE" };
        format!(
            "CREATE SEQUENCE {} AS {} START WITH {start} INCREMENT BY {step} MINVALUE {min} MAXVALUE {max} {cycle}",
            quoted_path(name),
            sql_name(data_type)
        )
    }

    /// The statement that makes the sequence for an owner.
    pub fn owned_definition(&self, name: &str, owner: Option<&(String, String)>) -> String {
        let text = self.definition(name);
        match owner {
            Some((table, column)) => format!("{text} OWNED BY {}.{}", quoted_path(table), quoted(column)),
            None => text,
        }
    }
}

fn limits(data_type: &DataType) -> (i64, i64) {
    match data_type {
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}
