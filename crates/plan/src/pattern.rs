//! Patterns over time, as data: what follows what, what each part accepts, and what it makes of the
//! register.
//!
//! Expressions of elements are resolved against [`Detect::schema`]: the columns of the event, then
//! those of the register.

use std::sync::Arc;

pub use anabranch_spec::pattern::{Overlap, Pattern, Simultaneous, Takes};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::Expr;

use arrow::datatypes::{DataType, Field};

/// A pattern to be looked for; what it means is on the page of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Detect {
    /// What follows what.
    pub pattern: Pattern,
    /// What the pattern's numbers stand for.
    pub elements: Vec<Element>,
    /// Columns that matches keep to.
    pub group: Vec<usize>,
    /// The columns of the register.
    pub registers: Vec<Register>,
    /// Ticks from the first event of a match to its end; [`FOREVER`](crate::temporal::FOREVER) for
    /// no end.
    pub duration: i64,
    /// Whether a match may begin while another is in progress.
    pub overlap: Overlap,
    /// What several events of a group at one time are.
    pub simultaneous: Simultaneous,
}

/// A part of a pattern that looks at events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// How many events it looks at.
    pub takes: Takes,
    /// What an event must meet.
    pub condition: Option<Expr>,
    /// The new register, one expression a column; `None` leaves it.
    pub registers: Option<Vec<Expr>>,
}

/// A column of the register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// Its name, as a column of the result.
    pub name: String,
    /// Its value at the start of a match.
    pub initial: ScalarValue,
}

impl Detect {
    /// The name by which expressions call a column of the register.
    pub fn register_name(name: &str) -> String {
        format!("@register {name}")
    }

    /// What expressions of elements are resolved against.
    ///
    /// # Errors
    /// When two columns have the same name.
    pub fn schema(input: &DFSchema, registers: &[(String, DataType)]) -> DfResult<DFSchema> {
        let columns = input.fields().iter().map(|field| (None, Arc::clone(field)));
        let registers = registers.iter().map(|(name, data_type)| {
            (None, Arc::new(Field::new(Detect::register_name(name), data_type.clone(), true)))
        });
        DFSchema::new_with_metadata(columns.chain(registers).collect(), Default::default())
    }

    /// Names and types of the register's columns.
    pub fn register_columns(&self) -> Vec<(String, DataType)> {
        self.registers.iter().map(|register| (register.name.clone(), register.initial.data_type())).collect()
    }
}
