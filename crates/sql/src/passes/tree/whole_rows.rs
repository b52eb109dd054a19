//! `SELECT t FROM t`, `count(t)`, `row_to_json(t)`, `(t).a`: the name of a table is its row.
//!
//! ```text
//!     t            named_struct('a', t.a, 'b', t.b)
//!     (t).a        t.a
//!     t IS NULL    (t.a, t.b) IS NULL
//!     e            e.value              beside jsonb_array_elements(..) e, whose rows are values
//! ```
//!
//! Law: a column of that name is meant before the table. Where an outer join makes up NULLs in
//! place of a table's rows its name stays unknown: such a row is NULL, and one of NULLs is not.

use datafusion_expr::sqlparser::ast::{
    AccessExpr, Expr, Ident, JoinOperator, OrderBy, Select, TableFactor, TableWithJoins, Value,
};

use super::columns::{Known, factor_columns};
use crate::error::Result;
use crate::functions::json::lists_of;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{fold, object_name};
use crate::syntax::relation_calls::call;
use crate::syntax::walk::change_outside_queries;

/// The function of names and values that make a row.
const NAMED_ROW: &str = "named_struct";

/// Writes the rows of a SELECT out.
///
/// # Errors
/// None.
pub(super) fn write_out(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    known: &Known,
    catalog: &dyn Catalog,
) -> Result<()> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let of_values: Vec<String> = factors.clone().filter(|factor| has_values(factor)).filter_map(name_of).collect();
    let tables: Vec<(String, Option<Vec<String>>)> =
        factors.filter_map(|factor| Some((name_of(factor)?, factor_columns(factor, known, catalog)))).collect();
    // (The value of a function that an outer join has made up is NULL, as its row is.)
    let is_outer = select.from.iter().any(is_outer);
    if tables.is_empty() || is_outer && of_values.is_empty() {
        return Ok(());
    }
    let is_column = |name: &str| {
        let has = |columns: &Option<Vec<String>>| {
            columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column == name))
        };
        tables.iter().any(|(_, columns)| has(columns))
    };
    let row = |ident: &Ident| {
        let name = fold(ident);
        let (_, columns) = tables.iter().find(|(table, _)| *table == name)?;
        columns.as_ref().filter(|_| !is_column(&name) && (!is_outer || of_values.contains(&name)))
    };
    let of = |table: &Ident, column: &String| {
        Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', column.clone())])
    };
    let mut write = |expr: &mut Expr| {
        let written = match expr {
            Expr::CompoundFieldAccess { root, access_chain } => match (root.as_ref(), access_chain.as_slice()) {
                // (`t.r[1]` is a column of the table.)
                (Expr::Function(_), [AccessExpr::Dot(_), ..]) => {
                    if let Some(table) = table_of(root) {
                        **root = Expr::Identifier(table);
                    }
                    None
                }
                (Expr::Nested(inner), [AccessExpr::Dot(Expr::Identifier(field)), rest @ ..]) => {
                    let (field, rest) = (fold(field), rest.to_vec());
                    table_of(inner).map(|table| match rest.is_empty() {
                        true => of(&table, &field),
                        false => Expr::CompoundFieldAccess { root: Box::new(of(&table, &field)), access_chain: rest },
                    })
                }
                _ => None,
            },
            Expr::IsNull(value) => values_of(value).map(|values| Expr::IsNull(Box::new(Expr::Tuple(values)))),
            Expr::IsNotNull(value) => values_of(value).map(|values| Expr::IsNotNull(Box::new(Expr::Tuple(values)))),
            Expr::Identifier(table) => row(table).map(|columns| match columns.as_slice() {
                [value] if of_values.contains(&fold(table)) => of(table, value),
                columns => {
                    let text = |name: &String| Expr::value(Value::SingleQuotedString(name.clone()));
                    call(NAMED_ROW, columns.iter().flat_map(|column| [text(column), of(table, column)]).collect())
                }
            }),
            _ => None,
        };
        if let Some(written) = written {
            *expr = written;
        }
        Ok(())
    };
    for item in &mut select.projection {
        change_outside_queries(item, &mut write)?;
    }
    for part in [&mut select.selection, &mut select.having].into_iter().flatten() {
        change_outside_queries(part, &mut write)?;
    }
    change_outside_queries(&mut select.group_by, &mut write)?;
    match order_by {
        Some(order_by) => change_outside_queries(order_by, &mut write),
        None => Ok(()),
    }
}

/// The name by which a query knows an entry of FROM.
fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, args: None, .. } => {
            let name = object_name(name).ok()?;
            Some(name.rsplit_once('.').map_or(name.clone(), |(_, own)| own.to_owned()))
        }
        _ => None,
    }
}

/// Whether a factor is a function of documents whose rows are single values.
fn has_values(factor: &TableFactor) -> bool {
    let (TableFactor::Table { name, args: Some(_), with_ordinality: false, .. }
    | TableFactor::Function { name, with_ordinality: false, .. }) = factor
    else {
        return false;
    };
    lists_of(&name.to_string().to_lowercase()).is_some_and(|lists| lists.len() == 1)
}

fn is_outer(from: &TableWithJoins) -> bool {
    let is_inner = |join: &JoinOperator| {
        matches!(join, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
    };
    from.joins.iter().any(|join| !is_inner(&join.join_operator))
}

/// The values of a row that was written out.
fn values_of(expr: &Expr) -> Option<Vec<Expr>> {
    let (name, args) = crate::syntax::relation_calls::called(expr)?;
    (name == NAMED_ROW).then(|| args.into_iter().skip(1).step_by(2).cloned().collect())
}

/// The table whose row was written out.
fn table_of(expr: &Expr) -> Option<Ident> {
    match values_of(expr)?.first()? {
        Expr::CompoundIdentifier(parts) => parts.first().cloned(),
        _ => None,
    }
}
