//! Row patterns (`MATCH_RECOGNIZE`), as data: what follows what, what a row must meet, and what a
//! match yields.
//!
//! Conditions are expressions over [`Recognize::schema`]: cells, values that depend on the match so
//! far. A match yields cells too; what is computed from them is a stage above. What it all means is
//! on the page of the operator.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::Expr;

pub use anabranch_spec::recognize::{At, Cell, CellValue, End, Fold, RowPattern, Skip};

use anabranch_spec::order::SortKey;

/// A row pattern. Columns are positions in the input, variables are numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recognize {
    /// Columns whose values have matches of their own.
    pub partition: Vec<usize>,
    /// The order of a partition's rows; ties are broken by the remaining columns, ascending.
    pub order: Vec<SortKey>,
    /// What follows what.
    pub pattern: RowPattern,
    /// What the pattern's numbers stand for.
    pub variables: Vec<Variable>,
    /// What conditions read.
    pub cells: Vec<Cell>,
    /// What a match yields after the partition's columns.
    pub output: Vec<Cell>,
    /// Where the search goes on.
    pub skip: Skip,
    /// The first and the last row of a match are less than so many units of the first order column
    /// apart.
    pub within: Option<u64>,
}

/// A variable of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What a row must meet to be taken for it; `None` is met by all.
    pub condition: Option<Expr>,
}

impl Recognize {
    /// What conditions are written against.
    ///
    /// # Errors
    /// When two cells have the same name.
    pub fn schema(&self) -> DfResult<DFSchema> {
        let fields =
            self.cells.iter().map(|cell| (None, Arc::new(Field::new(&cell.name, cell.data_type.clone(), true))));
        DFSchema::new_with_metadata(fields.collect(), Default::default())
    }

    /// The pattern as it is written.
    pub fn pattern_text(&self) -> String {
        self.text(&self.pattern, false)
    }

    fn text(&self, pattern: &RowPattern, is_part: bool) -> String {
        let all = |parts: &[RowPattern], between: &str, is_part| {
            parts.iter().map(|part| self.text(part, is_part)).collect::<Vec<_>>().join(between)
        };
        let (text, is_one) = match pattern {
            RowPattern::Variable(variable) => (self.variables[*variable].name.clone(), true),
            RowPattern::Sequence(parts) => (all(parts, " ", parts.len() > 1), parts.len() == 1),
            RowPattern::Alternatives(parts) => (all(parts, " | ", true), parts.len() == 1),
            RowPattern::Repeat { part, min, max, is_reluctant } => {
                let times = match (min, max) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) if min == max => format!("{{{min}}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                };
                let reluctant = if *is_reluctant { "?" } else { "" };
                (format!("{}{times}{reluctant}", self.text(part, true)), true)
            }
        };
        if is_part && !is_one { format!("({text})") } else { text }
    }
}
