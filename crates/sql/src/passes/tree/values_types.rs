//! `VALUES (date '2020-01-01'), ('2020-01-02')`: literals in quotes have the type that another row
//! says.
//!
//! ```text
//!     VALUES (date '2020-01-01'), ('2020-01-02')
//!     VALUES (date '2020-01-01'), (CAST('2020-01-02' AS date))
//! ```
//!
//! DataFusion takes such a literal for a text, and refuses the column. It also refuses rows whose
//! marks of types differ (`varchar(3)` beside `text`): columns and casts of texts go without.

use anabranch_batch::TextLimit;
use datafusion_expr::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, FunctionArguments, Query, SetExpr,
    UnaryOperator, Value, Values,
};

use crate::error::Result;
use crate::functions::forms::UNMARKED;
use crate::functions::user_types::ENUM_IN;
use crate::resolve::types::{element_limit, text_limit};
use crate::syntax::parse::parse_expr;

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
        drop_marks(values, at);
        if label_literals(values, at) {
            continue;
        }
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        let Some(data_type) = cells().find_map(said_type) else { continue };
        let is_marked = matches!(data_type, DataType::Uuid | DataType::JSON | DataType::JSONB);
        let is_open = |cell: &Expr| is_quoted(cell) || (is_marked && is_null(cell));
        // (A number of few digits and one of any are two types to DataFusion.)
        let is_digits =
            matches!(element_of(&data_type), DataType::Numeric(_)) && (cells().any(is_open) || cells().all(is_exact));
        // (An array of documents has a mark, which other arrays have not.)
        let is_marked_list = values.rows.len() > 1 && element_limit(&data_type).is_ok_and(|limit| limit.is_some());
        let all = is_digits || is_marked_list;
        if !all && !cells().any(is_open) {
            continue;
        }
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(at).filter(|cell| all || is_open(cell)) {
                let expr = Box::new(cell.clone());
                let data_type = data_type.clone();
                *cell = Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
            }
        }
    }
}

/// Reads the literals of a column as labels, if another cell is one.
fn label_literals(values: &mut Values, at: usize) -> bool {
    let of_label = |cell: &Expr| match cell {
        Expr::Function(call) if call.name.to_string() == ENUM_IN => match &call.args {
            FunctionArguments::List(list) => match list.args.as_slice() {
                [_, name, labels] => Some(format!("{name}, {labels}")),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let Some(labels) = values.rows.iter().filter_map(|row| row.content.get(at)).find_map(of_label) else {
        return false;
    };
    for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)).filter(|cell| is_quoted(cell)) {
        if let Ok(label) = parse_expr(&format!("{ENUM_IN}({cell}, {labels})")) {
            *cell = label;
        }
    }
    true
}

/// Takes the marks from a column whose cells may have different ones.
fn drop_marks(values: &mut Values, at: usize) {
    let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
    let first = cells().next().and_then(text_type);
    if values.rows.len() < 2 || (first.is_some() && cells().all(|cell| text_type(cell) == first)) {
        return;
    }
    for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)).filter(|cell| may_have_mark(cell)) {
        if let Ok(unmarked) = parse_expr(&format!("{UNMARKED}({cell})")) {
            *cell = unmarked;
        }
    }
}

fn may_have_mark(cell: &Expr) -> bool {
    match cell {
        Expr::Nested(inner) => may_have_mark(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => true,
        other => text_type(other).is_some(),
    }
}

/// The type of texts that a cell is cast to.
pub(super) fn text_type(cell: &Expr) -> Option<TextLimit> {
    let limit = match cell {
        Expr::Nested(inner) => return text_type(inner),
        Expr::TypedString(typed) => text_limit(&typed.data_type),
        Expr::Cast { data_type, .. } => text_limit(data_type),
        _ => return None,
    };
    limit.ok()?.filter(|limit| !matches!(limit, TextLimit::Uuid | TextLimit::Json | TextLimit::Jsonb))
}

/// Whether a cell is a literal, or said to be a numeric.
fn is_exact(cell: &Expr) -> bool {
    match cell {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_exact(inner),
        Expr::Value(_) => true,
        other => matches!(said_type(other), Some(DataType::Numeric(_))),
    }
}

fn is_null(cell: &Expr) -> bool {
    matches!(cell, Expr::Value(value) if matches!(value.value, Value::Null))
}

/// Whether a cell says no type. (NULL has one of its own beside marked types.)
pub(super) fn is_quoted(cell: &Expr) -> bool {
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

/// Whether an operator gives a boolean, whatever its operands are.
fn is_test(op: &BinaryOperator) -> bool {
    use BinaryOperator as Op;
    matches!(op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::And | Op::Or)
}

/// The type of the elements of an array that are all literals of one kind.
fn said_element(elements: &[Expr]) -> Option<DataType> {
    let all = |is: fn(&Value) -> bool| {
        !elements.is_empty() && elements.iter().all(|element| matches!(element, Expr::Value(value) if is(&value.value)))
    };
    let is_whole = |value: &Value| matches!(value, Value::Number(digits, _) if digits.parse::<i32>().is_ok());
    match () {
        () if all(is_whole) => Some(DataType::Int(None)),
        () if all(|value| matches!(value, Value::Number(..))) => Some(DataType::Numeric(ExactNumberInfo::None)),
        () if all(|value| matches!(value, Value::SingleQuotedString(_))) => Some(DataType::Text),
        () => None,
    }
}

/// The type of the elements of an array; other types as they are.
fn element_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => element_of(element),
        other => other,
    }
}

/// The type that is written at a cell.
pub(super) fn said_type(cell: &Expr) -> Option<DataType> {
    match cell {
        Expr::TypedString(typed) => without_length(&typed.data_type),
        Expr::Cast { data_type, .. } => without_length(data_type),
        Expr::Interval(_) => Some(DataType::Interval { fields: None, precision: None }),
        Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => Some(DataType::Boolean),
        Expr::BinaryOp { op, .. } if is_test(op) => Some(DataType::Boolean),
        Expr::UnaryOp { op: UnaryOperator::Not, .. } | Expr::IsNull(_) | Expr::IsNotNull(_) => Some(DataType::Boolean),
        Expr::Exists { .. } | Expr::InList { .. } | Expr::Between { .. } => Some(DataType::Boolean),
        Expr::Array(array) => {
            let element = said_element(&array.elem)?;
            Some(DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None)))
        }
        Expr::Nested(inner) => said_type(inner),
        _ => None,
    }
}
