//! `WITH MUTUALLY RECURSIVE`: every named query may read every other, and itself, anywhere.
//!
//! ```text
//! a AS (SELECT * FROM __mutually_recursive('__variable_a', 'none', 0, '__variable_a', (SELECT CAST(NULL AS t) AS c), (query), ..))
//! ```
//!
//! Queries that are the same in every round are loops of their own, which come to nothing but their
//! query.

use datafusion_expr::sqlparser::ast::{Cte, Expr, Query, SelectItem, SetExpr, TableAliasColumnDef, Value};

use super::super::names::name_items;
use super::references::{Reference, References};
use super::{all_of_call, quoted, read_by, string};
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::fold;
use crate::syntax::relation_calls::{MUTUALLY_RECURSIVE, variable};
use crate::syntax::template::template;

/// The named queries that `query` reads, each as the loop of all of them.
///
/// # Errors
/// `Syntax` for a named query without the types of its columns.
pub(super) fn settle(marker: &Cte, bindings: &[Cte], query: &Query) -> Result<Vec<Cte>> {
    let names: Vec<String> = bindings.iter().map(|cte| fold(&cte.alias.name)).collect();
    if let Some(name) = (1..names.len()).find(|n| names[..*n].contains(&names[*n])).map(|n| &names[n]) {
        let message = format!("WITH query name \"{name}\" specified more than once");
        return Err(SqlError::new(ErrorKind::Duplicate, message).with_hint("Give one of them another name."));
    }
    let (outside, inside) = apart(bindings, &names)?;
    let names: Vec<String> = inside.iter().map(|cte| fold(&cte.alias.name)).collect();
    let mut args = limit(marker)?;
    for cte in &inside {
        args.extend(binding(cte, &names)?);
    }
    let reader = Query { with: None, ..query.clone() };
    let read = read_by(&reader, &names)?;
    let alone = outside.iter().map(|cte| {
        let args = [string("none"), Expr::Value(Value::Number("0".into(), false).into())];
        as_loop(cte, args.into_iter().chain(binding(cte, &[])?).collect())
    });
    let read = inside.iter().enumerate().filter(|(n, _)| read.contains(n));
    alone.chain(read.map(|(_, cte)| as_loop(cte, args.clone()))).collect()
}

/// The named queries that are the same in every round, and the others. A query that reads no others
/// but such ones is, unless one before it reads it: that one sees it from the second round on only.
fn apart<'a>(bindings: &'a [Cte], names: &[String]) -> Result<(Vec<&'a Cte>, Vec<&'a Cte>)> {
    let reads = bindings.iter().map(|cte| read_by(&cte.query, names)).collect::<Result<Vec<_>>>()?;
    let mut outside: Vec<usize> = Vec::new();
    for (n, read) in reads.iter().enumerate() {
        let is_steady = read.iter().all(|other| outside.contains(other));
        if is_steady && !reads[..n].iter().any(|earlier| earlier.contains(&n)) {
            outside.push(n);
        }
    }
    let inside = (0..bindings.len()).filter(|n| !outside.contains(n)).map(|n| &bindings[n]).collect();
    Ok((outside.iter().map(|n| &bindings[*n]).collect(), inside))
}

/// The arguments for one variable; what its query reads of `names` are variables.
fn binding(cte: &Cte, names: &[String]) -> Result<[Expr; 3]> {
    let mut query = cte.query.clone();
    let mut found = |mut reference: Reference<'_>| {
        reference.read_variable();
        Ok(())
    };
    References::new(names, &mut found, &mut |_| Ok(())).query(&mut query)?;
    name_items(&mut query, cte.alias.columns.len());
    Ok([string(&variable(&fold(&cte.alias.name))), row_of_types(cte)?, Expr::Subquery(query)])
}

/// The named query as a loop that yields its variable.
fn as_loop(cte: &Cte, args: Vec<Expr>) -> Result<Cte> {
    let mut cte = cte.clone();
    let result = string(&variable(&fold(&cte.alias.name)));
    cte.query = all_of_call(MUTUALLY_RECURSIVE, std::iter::once(result).chain(args).collect())?;
    cte.alias.columns = vec![];
    Ok(cte)
}

/// The kind of limit and its rounds.
fn limit(marker: &Cte) -> Result<Vec<Expr>> {
    let SetExpr::Select(select) = marker.query.body.as_ref() else {
        return Err(SqlError::internal("the limit of WITH MUTUALLY RECURSIVE is a row"));
    };
    let values = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(value) => Some(value.clone()),
        _ => None,
    });
    let mut values: Vec<Expr> = values.collect();
    if values.len() == 1 {
        values.push(Expr::Value(Value::Number("0".into(), false).into()));
    }
    Ok(values)
}

/// `(SELECT CAST(NULL AS type) AS column, ..)`.
fn row_of_types(cte: &Cte) -> Result<Expr> {
    let name = &cte.alias.name;
    let lacking = || {
        SqlError::new(
            ErrorKind::Syntax,
            format!("WITH MUTUALLY RECURSIVE wants the columns of \"{}\" with their types", fold(name)),
        )
        .with_hint(format!("Write {name} (column type, ..) AS (..)."))
        .at(name.span.start)
    };
    let column = |column: &TableAliasColumnDef| {
        let data_type = column.data_type.as_ref().ok_or_else(lacking)?;
        Ok(format!("CAST(NULL AS {data_type}) AS {}", quoted(&fold(&column.name))))
    };
    let columns = cte.alias.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() {
        return Err(lacking());
    }
    Ok(Expr::Subquery(template(&format!("SELECT {}", columns.join(", ")))?))
}
