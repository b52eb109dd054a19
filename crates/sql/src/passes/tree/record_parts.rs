//! Parts of rows in a select list: `(f(x)).column`, `(f(x)).*`, `(ROW(a, b)).f2`, `(t).*`.
//!
//! ```text
//!     SELECT (jsonb_each(j)).key FROM t    SELECT unnest(keys of j) AS key FROM t
//!     SELECT (jsonb_each(j)).* FROM t      SELECT unnest(keys of j) AS key, unnest(values of j) ..
//!     (ROW(a, b)).f2                       b
//!     (t).*                                t.*
//! ```
//!
//! Law: functions of rows in a select list run side by side, and the shorter ones end in NULLs; so
//! do the lists that are unnested in their place.

use datafusion_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArguments, Ident, ObjectName, Select, SelectItem,
    SelectItemQualifiedWildcardKind,
};

use super::hooks::Names;
use super::records::populated;
use super::rows::row;
use super::series::{lists, unnested};
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::json::lists_of;
use crate::syntax::names::fold;
use crate::syntax::parse::operands::ALL_FIELDS;
use crate::syntax::parse::parse_expr;
use crate::syntax::relation_calls::called;
use crate::syntax::walk::change_outside_queries;

/// Writes the parts of rows in a select list out.
///
/// # Errors
/// `UnknownName` for a part that is not there.
pub(super) fn spell(select: &mut Select, names: &Names) -> Result<()> {
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match whole(&item) {
            Some(value) => projection.extend(columns_of(value, names)?),
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
        change_outside_queries(expr, &mut |part| spell_part(part, names, PartPlace::Items))?;
        // (What stays a part of a name is a column of its table, and has its name.)
        let is_column = |expr: &Expr| match expr {
            Expr::CompoundFieldAccess { root, .. } => matches!(inner(root), Expr::Identifier(_)),
            _ => false,
        };
        if let (Some(alias), SelectItem::UnnamedExpr(expr)) = (named, &*item)
            && !is_column(expr)
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    if let Some(selection) = &mut select.selection {
        change_outside_queries(selection, &mut |part| spell_part(part, names, PartPlace::Condition))?;
    }
    select.projection = projection;
    Ok(())
}

/// Where a part stands.
#[derive(Clone, Copy, PartialEq)]
enum PartPlace {
    Items,
    Condition,
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
fn columns_of(value: &Expr, names: &Names) -> Result<Vec<SelectItem>> {
    let value = inner(value);
    if let Some(values) = row(value) {
        let alias = |n: usize| Ident::with_quote('"', format!("f{}", n + 1));
        let item = |(n, expr)| SelectItem::ExprWithAlias { expr, alias: alias(n) };
        return Ok(values.into_iter().enumerate().map(item).collect());
    }
    if let Some(columns) = call_of(value, names)? {
        let item = |(column, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', column) };
        return Ok(columns.values.into_iter().map(item).collect());
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
fn spell_part(expr: &mut Expr, names: &Names, place: PartPlace) -> Result<()> {
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
    } else if let Some(columns) = call_of(value, names)? {
        if place == PartPlace::Condition && columns.are_rows {
            let message = "set-returning functions are not allowed in WHERE";
            return Err(SqlError::new(ErrorKind::Unsupported, message)
                .with_hint("Write the call in FROM, as in FROM t, jsonb_each(t.a) AS x(key, value)."));
        }
        let found = columns.values.into_iter().find(|(column, _)| *column == name);
        found.ok_or_else(|| unknown(&name))?.1
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

fn inner(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => self::inner(inner),
        other => other,
    }
}

/// The columns of a call that yields rows.
fn call_of(value: &Expr, names: &Names) -> Result<Option<PartsOfCall>> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, .. }) = value else {
        return Ok(None);
    };
    let name = name.to_string().to_lowercase();
    if let Some((_, args)) = called(value)
        && let Some(values) = populated(&name, &args, names)?
    {
        return Ok(Some(PartsOfCall { values, are_rows: false }));
    }
    let Some(columns) = lists_of(&name).filter(|columns| columns.len() > 1) else { return Ok(None) };
    let Some(lists) = lists(&name, &list.args) else { return Ok(None) };
    let column = |(list, (_, column)): (String, &(_, &str))| Ok(((*column).to_owned(), parse_expr(&unnested(&list))?));
    let values = lists.into_iter().zip(columns).map(column).collect::<Result<Vec<_>>>()?;
    Ok(Some(PartsOfCall { values, are_rows: true }))
}

/// The columns of a call.
struct PartsOfCall {
    /// Their names, and what yields their values.
    values: Vec<(String, Expr)>,
    /// Whether the call has several rows.
    are_rows: bool,
}
