//! What an operand is, as PostgreSQL names its type in messages.

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{Expr, ExprSchemable};

use crate::resolve::documents::{DocumentForm, form_of, shown_form_of};
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_text, sql_name};

/// The type of a value: `jsonb`, `uuid`, a user's type, `unknown` of a literal in quotes.
pub(crate) fn operand_name(value: &Expr, schema: &DFSchema) -> String {
    match value.to_field(schema) {
        Ok((_, field)) => named(value, &field),
        Err(_) => "unknown".into(),
    }
}

fn named(value: &Expr, field: &Field) -> String {
    if let Some(marked) = marked_name(field) {
        return marked;
    }
    match (value, field.data_type()) {
        (Expr::Literal(ScalarValue::Null, _), _) => "unknown".into(),
        (Expr::Literal(..), is) if is_text(is) => "unknown".into(),
        (Expr::Literal(ScalarValue::Int64(Some(n)), _), _) if i32::try_from(*n).is_ok() => "integer".into(),
        (_, DataType::Null) => "unknown".into(),
        (_, DataType::Decimal128(..) | DataType::Decimal256(..)) => "numeric".into(),
        (_, DataType::Timestamp(_, None)) => "timestamp without time zone".into(),
        (_, DataType::Timestamp(_, Some(_))) => "timestamp with time zone".into(),
        (_, DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond)) => "time without time zone".into(),
        (_, is) => sql_name(is),
    }
}

/// The name of a type beside those of Arrow: a document's, `uuid`, that of an enumeration.
pub(crate) fn marked_name(field: &Field) -> Option<String> {
    let document = form_of(field).map(|form| form.type_name().to_owned());
    let uuid = || shown_form_of(field).filter(|form| form.type_name() == "uuid").map(|_| "uuid".to_owned());
    document.or_else(|| EnumMark::of(field).map(|mark| mark.name)).or_else(uuid)
}

/// The field of a value that may have a mark. What an operator yields has none. (The planner names
/// a field by all of its expression: asking at each level of a chain takes the cube of its length.)
pub(crate) fn markable(value: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    match value {
        Expr::BinaryExpr(_) | Expr::Negative(_) | Expr::Not(_) => None,
        _ => value.to_field(schema).ok().map(|(_, field)| field),
    }
}

/// The same, of a value.
pub(crate) fn marked_type(value: &Expr, schema: &DFSchema) -> Option<String> {
    markable(value, schema).and_then(|field| marked_name(&field))
}

/// Whether a value is of type `json`, which has neither an equality nor an order.
pub(crate) fn is_json(value: &Expr, schema: &DFSchema) -> bool {
    markable(value, schema).is_some_and(|field| form_of(&field) == Some(DocumentForm::Json))
}
