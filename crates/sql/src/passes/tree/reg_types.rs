//! Numbers that are written as names: casts to `regclass`, `regtype` and their like.
//!
//! ```text
//! 't'::regclass                      regclass_in('t')                a number, to be compared
//! SELECT 't'::regclass               regclass_out(regclass_in('t'))  a name, to be shown
//! SELECT to_regclass('t')            regclass_out(to_regclass('t'))
//! c.oid::regclass                    regclass_out(c.oid)
//! c.oid::regclass = 't'::regclass    c.oid::oid = regclass_in('t')
//! pg_typeof(x) = 'int4'::regtype     pg_typeof(x) = regtype_out(regtype_in('int4'))
//! ```
//!
//! PostgreSQL has types for them. Here a value is a number or a text, so its place decides.

use datafusion_expr::sqlparser::ast::{BinaryOperator, DataType, Expr, Select, SelectItem, Value};

use super::hooks::Names;
use crate::resolve::types::is_reg;
use crate::syntax::parse::parse_expr;

/// Shows the names of a query's columns: those of the outermost SELECT.
pub(super) fn show_names(select: &mut Select, names: &Names) {
    if names.with.len() > 1 {
        return;
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            show(expr);
        }
    }
}

/// Rewrites an expression whose parts are not done yet.
pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { expr: inner, data_type: DataType::Text | DataType::Varchar(_), .. } => show(inner),
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            let is_name = is_text(left) || is_text(right);
            let (is_left_type, is_right_type) = (is_type_of(left), is_type_of(right));
            for (side, is_beside_type) in [(left, is_right_type), (right, is_left_type)] {
                match is_beside_type {
                    true => show(side),
                    false if is_name => {}
                    false => as_number(side),
                }
            }
        }
        Expr::InList { expr: tested, list, .. } if list.iter().any(|item| reg_of(item).is_some()) => {
            match is_type_of(tested) {
                true => list.iter_mut().for_each(show),
                false => as_number(tested),
            }
        }
        Expr::Cast { expr: inner, data_type: data_type @ (DataType::Custom(..) | DataType::Regclass), .. } => {
            if let Some(of) = is_reg(&data_type.to_string()) {
                let way = if is_text(inner) { "in" } else { "out" };
                replace(expr_text(of, way, inner), expr);
            }
        }
        _ => {}
    }
}

fn expr_text(of: &str, way: &str, inner: &Expr) -> String {
    format!("{of}_{way}({inner})")
}

fn replace(text: String, expr: &mut Expr) {
    if let Ok(call) = parse_expr(&text) {
        *expr = call;
    }
}

/// The type and the value, if an expression is a cast to one of the types.
fn reg_of(expr: &Expr) -> Option<(&'static str, &Expr)> {
    match expr {
        Expr::Nested(inner) => reg_of(inner),
        Expr::Cast { expr: inner, data_type: data_type @ (DataType::Custom(..) | DataType::Regclass), .. } => {
            Some((is_reg(&data_type.to_string())?, inner))
        }
        _ => None,
    }
}

/// Which of the functions it is that look a name up.
fn function_name(expr: &Expr) -> Option<&'static str> {
    let Expr::Function(function) = expr else { return None };
    let name = function.name.to_string().to_lowercase();
    ["to_regclass", "to_regtype", "to_regnamespace"].into_iter().find(|known| *known == name)
}

/// The name of a number that a cast looks up.
fn show(expr: &mut Expr) {
    let text = match reg_of(expr) {
        Some((of @ ("regclass" | "regtype" | "regnamespace"), inner)) if is_text(inner) => {
            format!("{of}_out({of}_in({inner}))")
        }
        None => match (expr.to_string(), function_name(expr)) {
            (call, Some("to_regclass")) => format!("regclass_out({call})"),
            (call, Some("to_regtype")) => format!("regtype_out({call})"),
            (call, Some("to_regnamespace")) => format!("regnamespace_out({call})"),
            _ => return,
        },
        _ => return,
    };
    replace(text, expr);
}

/// The number of a value that is a number already.
fn as_number(expr: &mut Expr) {
    let text = match reg_of(expr) {
        Some((_, inner)) if !is_text(inner) => format!("CAST({inner} AS oid)"),
        _ => return,
    };
    replace(text, expr);
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn is_type_of(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_type_of(inner),
        Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("pg_typeof"),
        _ => false,
    }
}

/// Whether an expression is a text, and not a number.
fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => {
            matches!(value.value, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::Placeholder(_))
        }
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::Char(_)
        ),
        Expr::BinaryOp { op: BinaryOperator::StringConcat, .. } => true,
        Expr::Function(function) => {
            matches!(function.name.to_string().to_lowercase().as_str(), "quote_ident" | "concat" | "format" | "lower")
        }
        _ => false,
    }
}
