//! Operators of documents, as calls.
//!
//! An operator is one of documents if a side is marked as one, or if texts have no such operator.

use arrow::datatypes::{DataType, Field};
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::expr::Expr;
use datafusion_expr::planner::RawBinaryExpr;
use datafusion_expr::sqlparser::ast::BinaryOperator;

use crate::error::{ErrorKind, SqlError};
use crate::functions::enumerations;
use crate::functions::interval_lists::{INTERVAL_KEY, is_list_of_intervals};
use crate::functions::table::call;
use crate::resolve::documents::{DocumentForm, form_in_list, form_of};
use crate::resolve::operands::{markable, marked_type, operand_name};
use crate::resolve::type_names::{is_text, sql_name};

/// The function whose texts have the order of documents.
const ORDER: &str = "__jsonb_order";

/// The same, of the elements of an array.
pub(crate) const ORDERS: &str = "__jsonb_orders";

/// What a sort by the value compares: of a `jsonb`, the key of its order; of an array, the keys of
/// its elements.
pub(crate) fn sort_key(value: Expr, field: Option<&Field>) -> Expr {
    match field.map(|field| (form_of(field), form_in_list(field))) {
        Some((Some(DocumentForm::Jsonb), _)) => call(ORDER, vec![value]),
        Some((_, Some(DocumentForm::Jsonb))) => call(ORDERS, vec![value]),
        _ if field.is_some_and(|field| is_list_of_intervals(field.data_type())) => call(INTERVAL_KEY, vec![value]),
        _ => enumerations::sort_key(value, field),
    }
}

/// The operator as a call; `None` leaves it to others.
///
/// # Errors
/// `Unsupported` for operators of documents that are not there.
pub(crate) fn plan(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> DfResult<Option<Expr>> {
    use BinaryOperator as Op;
    if let Some(compared) = enumerations::plan(expr, left, right, schema)? {
        return Ok(Some(compared));
    }
    let form = |side: &Expr| form_of_value(side, schema);
    if !takes(expr, (left, form(&expr.left)), (right, form(&expr.right)), schema) {
        let (left, right) = (operand_name(&expr.left, schema), operand_name(&expr.right, schema));
        return plan_err!("operator does not exist: {left} {} {right}", expr.op);
    }
    if !is_text(left) && !is_text(right) {
        return Ok(None);
    }
    let is_text = |is: &DataType| is_text(is) || is.is_null();
    let (left_form, right_form) = (form(&expr.left), form(&expr.right));
    let is_document = left_form.is_some() || right_form.is_some();
    let both = |name: &str| Some(call(name, vec![expr.left.clone(), expr.right.clone()]));
    let swapped = |name: &str| Some(call(name, vec![expr.right.clone(), expr.left.clone()]));
    let is_list = matches!(right, DataType::List(_));
    let of_form = |json: &str, jsonb: &str| both(if left_form == Some(DocumentForm::Jsonb) { jsonb } else { json });
    let is_readable = |form: Option<DocumentForm>, is: &DataType| form.is_some() || is_text(is);
    let is_compared =
        matches!(expr.op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::AtArrow | Op::ArrowAt);
    let is_known = is_readable(left_form, left) && is_readable(right_form, right);
    if is_document && is_compared && !is_known {
        let shown = |form: Option<DocumentForm>, is| match form {
            Some(DocumentForm::Jsonb) => "jsonb".to_owned(),
            Some(_) => "json".to_owned(),
            None => sql_name(is),
        };
        let (left, right) = (shown(left_form, left), shown(right_form, right));
        return plan_err!("operator does not exist: {left} {} {right}", expr.op);
    }
    Ok(match expr.op {
        Op::Arrow => of_form("__json_get", "__jsonb_get"),
        Op::LongArrow => of_form("__json_get_text", "__jsonb_get_text"),
        Op::HashArrow => of_form("__json_path", "__jsonb_path"),
        Op::HashLongArrow => both("__json_path_text"),
        Op::HashMinus => both("__jsonb_delete_path"),
        Op::AtArrow if is_text(left) && is_text(right) => both("__jsonb_contains"),
        Op::ArrowAt if is_text(left) && is_text(right) => swapped("__jsonb_contains"),
        Op::Question => both("__jsonb_exists"),
        Op::QuestionPipe => both("__jsonb_exists_any"),
        Op::QuestionAnd => both("__jsonb_exists_all"),
        Op::AtQuestion => both("__jsonb_path_is_there"),
        Op::AtAt => both("__jsonb_path_holds"),
        _ if !is_document => None,
        Op::Minus if is_list => both("__jsonb_delete_all"),
        Op::Minus => both("__jsonb_delete"),
        Op::StringConcat
            if let (Some(left), Some(right)) = (left_form, right_form)
                && (left, right) != (DocumentForm::Jsonb, DocumentForm::Jsonb) =>
        {
            let message = format!("operator does not exist: {} || {}", left.type_name(), right.type_name());
            let hint = "Cast both to jsonb to join documents, or to text to join their texts.";
            return Err(SqlError::new(ErrorKind::Type, message).with_hint(hint).into());
        }
        Op::StringConcat
            if left_form.or(right_form) == Some(DocumentForm::Jsonb) && joins(expr, left_form, right_form) =>
        {
            both("__jsonb_concat")
        }
        // (The text of the other side, which is a cast or a column of text, is joined with the
        // document's.)
        Op::StringConcat => None,
        Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq
            if left_form.or(right_form) == Some(DocumentForm::Jsonb) =>
        {
            let side = |side: &Expr, form: Option<DocumentForm>| match form {
                Some(_) => side.clone(),
                None => call("jsonb_in", vec![side.clone()]),
            };
            let (left, right) = (side(&expr.left, left_form), side(&expr.right, right_form));
            let key = |document: Expr| call(ORDER, vec![document]);
            Some(match expr.op {
                // (1.0 and 1.00 are equal, and written as they were.)
                Op::Eq => key(left).eq(key(right)),
                Op::NotEq => key(left).not_eq(key(right)),
                Op::Lt => key(left).lt(key(right)),
                Op::LtEq => key(left).lt_eq(key(right)),
                Op::Gt => key(left).gt(key(right)),
                _ => key(left).gt_eq(key(right)),
            })
        }
        _ => {
            let (left, right) = (operand_name(&expr.left, schema), operand_name(&expr.right, schema));
            let message = format!("operator does not exist: {left} {} {right}", expr.op);
            let hint = "Cast the documents to text to compare or join their texts.";
            return Err(SqlError::new(ErrorKind::Type, message).with_hint(hint).into());
        }
    })
}

/// A side of an operator: its type, and its form if it is a document.
type Side<'a> = (&'a DataType, Option<DocumentForm>);

/// Whether the operator of documents takes such sides; true for other operators. (A text may be a
/// document that has lost its mark.)
fn takes(expr: &RawBinaryExpr, left: Side<'_>, right: Side<'_>, schema: &DFSchema) -> bool {
    use BinaryOperator as Op;
    let is_readable = |is: &DataType| is_text(is) || is.is_null();
    let is_uuid = |side: &Expr| marked_type(side, schema).is_some_and(|name| name == "uuid");
    let is_document = is_readable(left.0) && !is_uuid(&expr.left);
    let is_jsonb = is_document && left.1 != Some(DocumentForm::Json);
    let is_word = is_readable(right.0) && right.1.is_none();
    let is_place = right.0.is_integer();
    let is_list = matches!(right.0, DataType::List(_)) || is_word;
    match expr.op {
        Op::Arrow | Op::LongArrow => is_document && (is_word || is_place),
        Op::HashArrow | Op::HashLongArrow => is_document && is_list,
        Op::HashMinus => is_jsonb && is_list,
        Op::Question | Op::AtQuestion | Op::AtAt => is_jsonb && is_word,
        Op::QuestionPipe | Op::QuestionAnd => is_jsonb && is_list,
        Op::AtArrow | Op::ArrowAt => {
            let is_json = [left, right].iter().any(|side| side.1 == Some(DocumentForm::Json));
            let is_contained = |side: &Side<'_>| is_readable(side.0) || matches!(side.0, DataType::List(_));
            !is_json && is_contained(&left) && is_contained(&right)
        }
        Op::StringConcat if left.1.is_some() || right.1.is_some() => {
            let is_joined = |side: &Side<'_>| is_readable(side.0) || matches!(side.0, DataType::List(_));
            is_joined(&left) && is_joined(&right)
        }
        Op::Minus if left.1.is_some() => is_jsonb && (is_word || is_place || is_list),
        _ => true,
    }
}

/// The form of the documents that a value is one of.
fn form_of_value(value: &Expr, schema: &DFSchema) -> Option<DocumentForm> {
    let marked = markable(value, schema).and_then(|field| form_of(&field));
    let of_chosen = || match value {
        Expr::Case(case) => {
            let mut chosen = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            chosen.find_map(|value| form_of_value(value, schema))
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "coalesce" | "nullif") => {
            call.args.iter().find_map(|value| form_of_value(value, schema))
        }
        _ => None,
    };
    marked.or_else(of_chosen)
}

/// Whether both sides are documents: a literal in quotes is one beside one.
fn joins(expr: &RawBinaryExpr, left: Option<DocumentForm>, right: Option<DocumentForm>) -> bool {
    let is_one = |side: &Expr, form: Option<DocumentForm>| form.is_some() || matches!(side, Expr::Literal(..));
    is_one(&expr.left, left) && is_one(&expr.right, right)
}
