//! Parts of rows in a select list: `(f(x)).column`, `(f(x)).*`, `(ROW(a, b)).f2`, `(t).*`.
//!
//! ```text
//!     SELECT (jsonb_each(j)).key FROM t      SELECT __parts.key FROM t, LATERAL jsonb_each(j) AS __parts
//!     SELECT (jsonb_each(j)).* FROM t        SELECT __parts.key, __parts.value FROM ..
//!     (ROW(a, b)).f2                         b
//!     (t).*                                  t.*
//! ```
//!
//! Law: calls that are spelt alike give the same rows, which stand beside each other.

use datafusion_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArguments, GroupByExpr, Ident, ObjectName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
};

use super::rows::row;
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::json::lists_of;
use crate::syntax::names::fold;
use crate::syntax::parse::operands::ALL_FIELDS;
use crate::syntax::template::template;
use crate::syntax::walk::change_outside_queries;

/// The name of the call in FROM.
const PARTS: &str = "__parts";

/// Writes the parts of rows in a select list out.
///
/// # Errors
/// `UnknownName` for a part that is not there, `Unsupported` for two calls, and for one beside
/// groups.
pub(super) fn spell(select: &mut Select) -> Result<()> {
    let mut call: Option<String> = None;
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match whole(&item) {
            Some(value) => projection.extend(columns_of(value, &mut call)?),
            None => projection.push(item),
        }
    }
    for item in &mut projection {
        let named = match item {
            SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { access_chain, .. }) => match access_chain.as_slice() {
                [AccessExpr::Dot(Expr::Identifier(field))] => Some(Ident::with_quote('"', fold(field))),
                _ => None,
            },
            _ => None,
        };
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        change_outside_queries(expr, &mut |part| spell_part(part, &mut call))?;
        if let (Some(alias), SelectItem::UnnamedExpr(expr)) = (named, &*item) {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    if let Some(selection) = &mut select.selection {
        change_outside_queries(selection, &mut |part| spell_part(part, &mut None))?;
    }
    select.projection = projection;
    match call {
        Some(call) => add_call(select, &call),
        None => Ok(()),
    }
}

/// The value all of whose parts are an item.
fn whole(item: &SelectItem) -> Option<&Expr> {
    let SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { root, access_chain }) = item else { return None };
    match access_chain.as_slice() {
        [AccessExpr::Dot(Expr::Identifier(field))] if field.value == ALL_FIELDS => Some(root),
        _ => None,
    }
}

/// The items that `(value).*` lists.
fn columns_of(value: &Expr, call: &mut Option<String>) -> Result<Vec<SelectItem>> {
    let value = inner(value);
    if let Some(values) = row(value) {
        let alias = |n: usize| Ident::with_quote('"', format!("f{}", n + 1));
        let item = |(n, expr)| SelectItem::ExprWithAlias { expr, alias: alias(n) };
        return Ok(values.into_iter().enumerate().map(item).collect());
    }
    if let Some(columns) = call_of(value, call)? {
        return Ok(columns.iter().map(|column| SelectItem::UnnamedExpr(part(column))).collect());
    }
    match value {
        Expr::Identifier(table) => {
            let name = ObjectName::from(vec![table.clone()]);
            let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
            Ok(vec![SelectItem::QualifiedWildcard(kind, Default::default())])
        }
        Expr::Value(_) | Expr::Array(_) => {
            let message = format!("column notation .* applied to {value}, which is not a composite type");
            Err(SqlError::new(ErrorKind::Type, message))
        }
        _ => Err(SqlError::unsupported(format!("({value}).*"), "Name the parts: (value).part.")),
    }
}

/// Writes one part out, if it is one.
fn spell_part(expr: &mut Expr, call: &mut Option<String>) -> Result<()> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return Ok(()) };
    let (true, Some(AccessExpr::Dot(Expr::Identifier(field)))) =
        (matches!(root.as_ref(), Expr::Nested(_) | Expr::Tuple(_)), access_chain.first())
    else {
        return Ok(());
    };
    let (name, value) = (fold(field), inner(root));
    let found = if let Some(values) = row(value) {
        let place = name.strip_prefix('f').and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1));
        let value = place.and_then(|at| values.get(at).cloned()).ok_or_else(|| unknown(&name))?;
        Expr::Nested(Box::new(value))
    } else if let Some(columns) = call_of(value, call)? {
        part(columns.iter().find(|column| **column == name).ok_or_else(|| unknown(&name))?)
    } else {
        return Ok(());
    };
    let rest = access_chain.split_off(1);
    *expr = match rest.is_empty() {
        true => found,
        false => Expr::CompoundFieldAccess { root: Box::new(found), access_chain: rest },
    };
    Ok(())
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownName, format!("could not identify column \"{name}\" in record data type"))
}

fn part(column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::new(PARTS), Ident::with_quote('"', column)])
}

fn inner(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => self::inner(inner),
        other => other,
    }
}

/// The columns of a function of rows; its call is taken note of.
fn call_of(value: &Expr, call: &mut Option<String>) -> Result<Option<Vec<&'static str>>> {
    let Expr::Function(Function { name, args: FunctionArguments::List(_), over: None, .. }) = value else {
        return Ok(None);
    };
    let Some(columns) = lists_of(&name.to_string().to_lowercase()).filter(|columns| columns.len() > 1) else {
        return Ok(None);
    };
    let text = value.to_string();
    if call.as_ref().is_some_and(|known| *known != text) {
        let hint = "Write each of them in FROM, as in FROM t, jsonb_each(t.a) AS x(key, value).";
        return Err(SqlError::unsupported("parts of two functions of rows in one select list", hint));
    }
    *call = Some(text);
    Ok(Some(columns.iter().map(|(_, column)| *column).collect()))
}

/// Puts the call into FROM.
fn add_call(select: &mut Select, call: &str) -> Result<()> {
    let has_groups = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if has_groups || select.having.is_some() {
        let hint = format!("Write the call in FROM, as in FROM t, {call} AS e(key, value).");
        return Err(SqlError::unsupported("parts of a function of rows beside GROUP BY", hint));
    }
    let is_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    if select.projection.iter().any(is_all) {
        let named = match select.from.as_slice() {
            [from] if from.joins.is_empty() => match &from.relation {
                TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
                    Some(ObjectName::from(vec![alias.name.clone()]))
                }
                TableFactor::Table { name, .. } => Some(name.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some(named) = named else {
            return Err(SqlError::unsupported("* of several tables beside parts of a function of rows", "Write t.*."));
        };
        for item in select.projection.iter_mut().filter(|item| is_all(item)) {
            let kind = SelectItemQualifiedWildcardKind::ObjectName(named.clone());
            *item = SelectItem::QualifiedWildcard(kind, Default::default());
        }
    }
    let template = template(&format!("SELECT 1 FROM {call} AS {PARTS}"))?;
    if let SetExpr::Select(made) = *template.body {
        select.from.extend(made.from);
    }
    Ok(())
}
