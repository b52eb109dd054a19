//! `f(a, VARIADIC array)`: the elements of an array as the last arguments.
//!
//! ```text
//! concat_ws(',', VARIADIC ARRAY[a, b])      concat_ws(',', a, b)
//! concat_ws(',', VARIADIC list)             array_to_string(list, ',')
//! num_nulls(VARIADIC list)                  cardinality(array_positions(list, NULL))
//! ```

use datafusion_expr::sqlparser::ast::{Array, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::input::read_list;
use crate::syntax::parse::operands::VARIADIC;

/// Functions that take any number of arguments.
const VARIADIC_FUNCTIONS: [&str; 11] = [
    "concat",
    "concat_ws",
    "format",
    "num_nulls",
    "num_nonnulls",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "json_extract_path",
    "jsonb_extract_path",
];

/// What a call means whose last argument is an array of arguments; `None` for other calls.
///
/// # Errors
/// `UnknownName` for functions of a fixed number of arguments, `Unsupported` for arrays whose
/// length is not known.
pub(super) fn text(function: &Function) -> Result<Option<String>> {
    let name = function.name.to_string().to_lowercase();
    let Some(name) = name.strip_prefix(VARIADIC) else { return Ok(None) };
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let args: Option<Vec<&Expr>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect();
    let Some((array, before)) = args.as_deref().and_then(<[&Expr]>::split_last) else { return Ok(None) };
    let unknown = || SqlError::new(ErrorKind::UnknownName, format!("function {name}(VARIADIC) does not exist"));
    if !VARIADIC_FUNCTIONS.contains(&name) && !name.ends_with("_text") {
        return Err(unknown().with_hint("Write the arguments one by one."));
    }
    if let Some(elements) = elements(array) {
        let all: Vec<String> = before.iter().map(|arg| arg.to_string()).chain(elements).collect();
        return Ok(Some(format!("{name}({})", all.join(", "))));
    }
    Ok(Some(match (name, before) {
        ("concat", []) => format!("coalesce(array_to_string({array}, ''), '')"),
        ("concat_ws", [separator]) => format!(
            "(CASE WHEN ({separator}) IS NOT NULL THEN coalesce(array_to_string({array}, {separator}), '') END)"
        ),
        ("num_nulls", []) => format!("cardinality(array_positions({array}, NULL))"),
        ("num_nonnulls", []) => format!("(cardinality({array}) - cardinality(array_positions({array}, NULL)))"),
        ("json_build_array" | "jsonb_build_array", []) => {
            format!("{}({array})", if name.starts_with("jsonb") { "to_jsonb" } else { "to_json" })
        }
        ("json_extract_path", [document]) | ("jsonb_extract_path", [document]) => format!("({document} #> {array})"),
        ("json_extract_path_text", [document]) | ("jsonb_extract_path_text", [document]) => {
            format!("({document} #>> {array})")
        }
        _ => {
            let hint = "Write the array out: VARIADIC ARRAY[a, b].";
            return Err(SqlError::unsupported(format!("VARIADIC of an array of unknown length in {name}()"), hint));
        }
    }))
}

/// The elements of an array that is written out, as text.
fn elements(array: &Expr) -> Option<Vec<String>> {
    match array {
        Expr::Nested(inner) => elements(inner),
        Expr::Array(Array { elem, .. }) => Some(elem.iter().map(ToString::to_string).collect()),
        Expr::Cast { expr, data_type, .. } => {
            let element = data_type.to_string();
            let element = element.strip_suffix("[]")?;
            let Expr::Value(value) = expr.as_ref() else { return None };
            let Value::SingleQuotedString(text) = &value.value else { return None };
            let mut elements = Vec::new();
            read_list(text, &mut elements)?;
            let cast = |value: Value| format!("CAST({value} AS {element})");
            let value = |element: Option<String>| element.map_or(Value::Null, Value::SingleQuotedString);
            Some(elements.into_iter().map(value).map(cast).collect())
        }
        _ => None,
    }
}
