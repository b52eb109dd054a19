//! Values of parameters written into the query, where a place takes a constant only:
//! `lag(x, $1)`, `ROWS $1 PRECEDING`, `date_part($1, t)`.
//!
//! Law: the query means what it means with the values in its text. So a text is read as what it
//! stands beside, as a literal in quotes is. Only what cannot be planned otherwise is planned so.

use datafusion_common::ScalarValue;
use datafusion_expr::sqlparser::ast;

use crate::error::Result;
use crate::functions::output::printer;
use crate::resolve::type_names::{is_number, is_text, sql_name};
use crate::syntax::parse::parse_expr;
use crate::syntax::walk::{Changing, change};

/// The query with the values in place of the parameters.
///
/// # Errors
/// `Unsupported` for a value that has no text.
pub(crate) fn write(query: &ast::Query, values: &[ScalarValue]) -> Result<ast::Query> {
    let mut query = query.clone();
    change(&mut query, &mut Writing { values })?;
    Ok(query)
}

struct Writing<'a> {
    values: &'a [ScalarValue],
}

impl Changing for Writing<'_> {
    fn after_expr(&mut self, expr: &mut ast::Expr) -> Result<()> {
        if let ast::Expr::Function(call) = expr {
            take_casts_off(call);
            return Ok(());
        }
        let ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(name), .. }) = expr else {
            return Ok(());
        };
        let at = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
        if let Some(value) = at.and_then(|at| self.values.get(at)) {
            *expr = written(value)?;
        }
        Ok(())
    }
}

/// Functions that take a constant somewhere, which clients write with a cast: `date_part($1::text,
/// t)`.
const OF_CONSTANTS: [&str; 8] =
    ["date_part", "date_trunc", "lag", "lead", "nth_value", "ntile", "percentile_cont", "percentile_disc"];

/// Constants without casts, in arguments of such functions and in frames.
fn take_casts_off(call: &mut ast::Function) {
    let name = call.name.to_string().to_lowercase();
    if OF_CONSTANTS.contains(&name.as_str())
        && let ast::FunctionArguments::List(list) = &mut call.args
    {
        for argument in &mut list.args {
            if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) = argument {
                plain(value);
            }
        }
    }
    let Some(ast::WindowType::WindowSpec(ast::WindowSpec { window_frame: Some(frame), .. })) = &mut call.over else {
        return;
    };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let ast::WindowFrameBound::Preceding(Some(value)) | ast::WindowFrameBound::Following(Some(value)) = bound {
            plain(value);
        }
    }
}

/// A constant in a cast, without the cast.
fn plain(value: &mut ast::Expr) {
    if let ast::Expr::Cast { expr: inner, .. } = value
        && matches!(inner.as_ref(), ast::Expr::Value(_))
    {
        *value = std::mem::replace(inner.as_mut(), ast::Expr::value(ast::Value::Null));
    }
}

fn written(value: &ScalarValue) -> Result<ast::Expr> {
    let is = value.data_type();
    if value.is_null() {
        return parse_expr("NULL");
    }
    if let Some(text) = value.try_as_str().flatten().filter(|_| is_text(&is)) {
        return Ok(ast::Expr::value(ast::Value::SingleQuotedString(text.to_owned())));
    }
    if let ScalarValue::Boolean(Some(truth)) = value {
        return Ok(ast::Expr::value(ast::Value::Boolean(*truth)));
    }
    let mut text = String::new();
    printer(&value.to_array()?)(0, &mut text);
    let is_plain =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    match (is_number(&is) || is == anabranch_batch::numeric::TYPE) && is_plain {
        true => parse_expr(&text),
        false => parse_expr(&format!("CAST('{}' AS {})", text.replace('\'', "''"), sql_name(&is))),
    }
}
