//! LIMIT and OFFSET of values that only the rows of other tables tell.
//!
//! ```text
//!     LIMIT (SELECT n FROM u)      QUALIFY row_number() OVER (ORDER BY ..) <= (SELECT n FROM u)
//!     LIMIT 1.5, LIMIT '2'         LIMIT 2
//!     LIMIT 5 / 2.0                LIMIT CAST(5 / 2.0 AS bigint)
//! ```
//!
//! Law: NULL limits nothing. What a subquery without FROM gives is computed while planning.

use datafusion_expr::sqlparser::ast::{CastKind, DataType, Expr, LimitClause, Query, Select, SetExpr, Spanned, Value};

use super::fetch::numbered;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::walk::{Look, Looking, look, names_column};

/// Writes limits that are computed of rows in another way.
///
/// # Errors
/// `Invalid` for a limit that names a column.
pub(super) fn settle(query: &mut Query) -> Result<()> {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else { return Ok(()) };
    if let Some(limit) = limit {
        check(limit, "LIMIT")?;
    }
    if let Some(offset) = offset {
        check(&mut offset.value, "OFFSET")?;
    }
    let (limit, offset) = (limit.clone(), offset.as_ref().map(|offset| offset.value.clone()));
    if !limit.iter().chain(&offset).any(reads_rows) {
        return Ok(());
    }
    let skipped = offset.map_or("0".to_owned(), |offset| format!("coalesce(CAST({offset} AS bigint), 0)"));
    query.limit_clause = None;
    numbered(query, |order| {
        let number = match order {
            "" => "row_number() OVER ()".to_owned(),
            order => format!("row_number() OVER (ORDER BY {order})"),
        };
        let first = format!("{number} > {skipped}");
        match limit {
            Some(limit) => format!("{first} AND coalesce({number} <= {skipped} + CAST({limit} AS bigint), true)"),
            None => first,
        }
    })
}

/// Reads a number in quotes, or with a fraction; columns are refused.
fn check(value: &mut Expr, clause: &str) -> Result<()> {
    if let Expr::Value(literal) = value {
        let digits = match &literal.value {
            Value::Number(digits, _) if digits.contains('.') => digits.clone(),
            Value::SingleQuotedString(text) => text.trim().to_owned(),
            _ => return Ok(()),
        };
        let number = digits.parse().ok().filter(|number: &f64| (0.0..9.0e15).contains(number));
        let whole = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
        if let Some(number) = number.filter(|_| whole) {
            literal.value = Value::Number(format!("{:.0}", number.round()), false);
        }
        return Ok(());
    }
    match names_column(value) {
        true => Err(SqlError::new(ErrorKind::Invalid, format!("argument of {clause} must not contain variables"))
            .with_hint("Write a number, or a query in parentheses.")
            .at(value.span().start)),
        false => {
            if is_computed_number(value) {
                *value = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(value.clone()),
                    data_type: DataType::BigInt(None),
                    array: false,
                    format: None,
                };
            }
            Ok(())
        }
    }
}

/// Whether a value may be a number with a fraction.
fn is_computed_number(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_computed_number(inner),
        Expr::BinaryOp { .. } => true,
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            DataType::Numeric(_)
                | DataType::Decimal(_)
                | DataType::Real
                | DataType::Float(_)
                | DataType::Float4
                | DataType::Float8
                | DataType::Double(_)
                | DataType::DoublePrecision
        ),
        _ => false,
    }
}

/// Whether a value comes of rows.
fn reads_rows(value: &Expr) -> bool {
    let mut reads = ReadsRows(false);
    look(value, &mut reads);
    reads.0
}

struct ReadsRows(bool);

impl Looking for ReadsRows {
    fn query(&mut self, query: &Query) -> Look {
        self.0 |= !matches!(query.body.as_ref(), SetExpr::Select(_));
        Look::Continue(())
    }

    fn select(&mut self, select: &Select) -> Look {
        self.0 |= !select.from.is_empty() || select.selection.is_some();
        Look::Continue(())
    }
}
