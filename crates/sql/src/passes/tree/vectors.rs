//! Vectors of system relations: `int2vector` and `oidvector`, which count from 0; the function that
//! takes them apart, and fields of the records that it makes.
//!
//! ```text
//! i.indkey[0]                                      (i.indkey)[(0) + 1]
//! generate_subscripts(i.indkey, 1)                 unnest(generate_series(0, cardinality(i.indkey) - 1))
//! (information_schema._pg_expandarray(i.indkey)).n unnest(generate_series(1, cardinality(i.indkey)))
//! (information_schema._pg_expandarray(i.indkey)).x unnest(i.indkey)
//! information_schema._pg_expandarray(i.indkey)     unnest(__expanded(i.indkey))
//! (r.keys).x                                       get_field((r.keys), 'x')
//! ```

use datafusion_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Select, SelectItem, Subscript,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::expanded::EXPANDED;
use crate::syntax::names::fold;
use crate::syntax::parse::parse_expr;

/// Columns that are vectors.
const VECTORS: [&str; 5] = ["indkey", "indclass", "indoption", "indcollation", "proargtypes"];

/// Rewrites an expression whose parts are not done yet.
///
/// # Errors
/// None that a user can cause.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let text = match expr {
        Expr::CompoundFieldAccess { root, access_chain } => match access_chain.as_mut_slice() {
            [AccessExpr::Dot(Expr::Identifier(field))] => Some(match expanded(root) {
                Some(list) => part(&list, &fold(field))?,
                None => format!("get_field({root}, '{}')", fold(field).replace('\'', "''")),
            }),
            // (Parentheses mark what is done: a query may be rewritten more than once.)
            [AccessExpr::Subscript(Subscript::Index { index }), ..] if is_vector(root) => {
                *index = parse_expr(&format!("({index}) + 1"))?;
                **root = Expr::Nested(root.clone());
                None
            }
            [AccessExpr::Dot(Expr::Identifier(column)), AccessExpr::Subscript(Subscript::Index { index }), ..]
                if is_vector(&Expr::Identifier(column.clone())) =>
            {
                *index = parse_expr(&format!("({index}) + 1"))?;
                **root = parse_expr(&format!("({root}.{column})"))?;
                access_chain.remove(0);
                None
            }
            _ => None,
        },
        Expr::Function(_) => expanded(expr).map(|list| format!("unnest({EXPANDED}({list}))")).or_else(|| places(expr)),
        _ => None,
    };
    if let Some(text) = text {
        *expr = parse_expr(&text)?;
    }
    Ok(())
}

/// A field of a record in the select list has the field's name.
pub(super) fn name_fields(select: &mut Select) {
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { root, access_chain }) = item else { continue };
        // (A column of a table has its name already.)
        if matches!(root.as_ref(), Expr::Nested(of) if matches!(of.as_ref(), Expr::Identifier(_))) {
            continue;
        }
        let [AccessExpr::Dot(Expr::Identifier(field))] = access_chain.as_slice() else { continue };
        let alias = Ident::with_quote('"', fold(field));
        if let SelectItem::UnnamedExpr(expr) = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// One part of the records.
fn part(list: &Expr, field: &str) -> Result<String> {
    match field {
        "x" => Ok(format!("unnest({list})")),
        "n" => Ok(format!("unnest(generate_series(1, cardinality({list})))")),
        _ => {
            let message = format!("column \"{field}\" not found in data type record");
            Err(SqlError::new(ErrorKind::UnknownName, message).with_hint("The record has x and n."))
        }
    }
}

/// The list that a call takes apart.
fn expanded(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(inner) => expanded(inner),
        Expr::Function(function) => match (name(function).as_str(), arguments(function)?.as_slice()) {
            ("_pg_expandarray" | "information_schema._pg_expandarray", [list]) => Some((*list).clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The places of a vector.
fn places(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    match (name(function).as_str(), arguments(function)?.as_slice()) {
        ("generate_subscripts", [list, _]) if is_vector(list) => {
            Some(format!("unnest(generate_series(0, cardinality({list}) - 1))"))
        }
        _ => None,
    }
}

fn name(function: &Function) -> String {
    let name = function.name.to_string().to_lowercase();
    name.strip_prefix("pg_catalog.").map_or(name.clone(), str::to_owned)
}

fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument =
        |argument: &'_ FunctionArg| -> bool { matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(_))) };
    if !list.args.iter().all(argument) {
        return None;
    }
    let exprs = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some(exprs.collect())
}

fn is_vector(expr: &Expr) -> bool {
    let column = match expr {
        Expr::Identifier(column) => column,
        Expr::CompoundIdentifier(parts) => match parts.last() {
            Some(column) => column,
            None => return false,
        },
        _ => return false,
    };
    VECTORS.contains(&fold(column).as_str())
}
