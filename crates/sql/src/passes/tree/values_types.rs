//! `VALUES (date '2020-01-01'), ('2020-01-02')`: literals in quotes have the type that another row
//! says.
//!
//! ```text
//!     VALUES (date '2020-01-01'), ('2020-01-02')
//!     VALUES (date '2020-01-01'), (CAST('2020-01-02' AS date))
//! ```
//!
//! DataFusion takes such a literal for a text, and refuses the column.

use datafusion_expr::sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, Value, Values};

use crate::error::Result;

/// Types the literals of a list of rows.
///
/// # Errors
/// None.
pub(super) fn cast_literals(query: &mut Query) -> Result<()> {
    if let SetExpr::Values(values) = query.body.as_mut() {
        cast_columns(values);
    }
    Ok(())
}

fn cast_columns(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..width {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        if !cells().any(is_quoted) {
            continue;
        }
        let Some(data_type) = cells().find_map(said_type) else { continue };
        // (A number of few digits and one of any are two types to DataFusion.)
        let all = matches!(data_type, DataType::Numeric(_));
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(at).filter(|cell| all || is_quoted(cell)) {
                let expr = Box::new(cell.clone());
                let data_type = data_type.clone();
                *cell = Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
            }
        }
    }
}

/// Whether a cell says no type. (NULL has one of its own beside marked types.)
fn is_quoted(cell: &Expr) -> bool {
    matches!(cell, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Null))
}

/// The type without its digits, which say nothing of other rows; `None` for texts.
fn without_length(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => {
            Some(DataType::Numeric(ExactNumberInfo::None))
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Character(_) => None,
        DataType::CharacterVarying(_) | DataType::CharVarying(_) => None,
        other => Some(other.clone()),
    }
}

/// The type that is written at a cell.
fn said_type(cell: &Expr) -> Option<DataType> {
    match cell {
        Expr::TypedString(typed) => without_length(&typed.data_type),
        Expr::Cast { data_type, .. } => without_length(data_type),
        Expr::Interval(_) => Some(DataType::Interval { fields: None, precision: None }),
        Expr::Nested(inner) => said_type(inner),
        _ => None,
    }
}
