//! Lists unnested beside the table that has them.
//!
//! ```text
//! SELECT a.k, t.x FROM a, unnest(a.list) AS t(x)      SELECT a.k, a.x FROM (SELECT a.*, unnest(a.list) AS x FROM a) AS a
//! ```
//!
//! A row without elements vanishes on both sides. A call that does not stand directly behind its
//! table, in another join than a cross join, or whose elements are named like a column of the
//! table, becomes a LATERAL subquery.

use datafusion_expr::sqlparser::ast::{
    self, Expr, Ident, Join, JoinConstraint, JoinOperator, OrderBy, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor,
};

use super::columns::{Known, factor_columns};
use super::series::{self, Series};
use crate::error::Result;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::fold;
use crate::syntax::template::template;
use crate::syntax::walk::{Look, Looking, change_outside_queries, look};

/// Rewrites the FROM of a select, and what refers to it there and in the order above.
///
/// # Errors
/// As for [`series::of`].
pub(super) fn write_out(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    known: &Known,
    catalog: &dyn Catalog,
) -> Result<()> {
    attach_to_previous(select);
    let mut renamed = Renamed { tables: vec![], owners: vec![] };
    for from in &mut select.from {
        while let Some(join) = from.joins.first() {
            let crosses =
                matches!(join.join_operator, JoinOperator::CrossJoin(_) | JoinOperator::Join(JoinConstraint::None));
            let (true, Some(series)) = (crosses, correlated(&join.relation)?) else { break };
            let Some(table) = table_name(&from.relation) else { break };
            let columns = factor_columns(&from.relation, known, catalog).unwrap_or_default();
            if series.columns.iter().any(|name| columns.contains(name)) {
                break;
            }
            let text = format!("SELECT 1 FROM (SELECT {table}.*, {} FROM {}) AS {table}", series.items, from.relation);
            if let ast::SetExpr::Select(inner) = *template(&text)?.body
                && let Some(inner) = inner.from.into_iter().next()
            {
                from.relation = inner.relation;
            }
            from.joins.remove(0);
            if !columns.is_empty() && renamed.owners.iter().all(|(owner, _)| fold(owner) != fold(&table)) {
                renamed.owners.push((table.clone(), columns));
            }
            renamed.tables.push((fold(&series.table), table, series.columns));
        }
        from.joins.iter_mut().try_for_each(|join| as_subquery(&mut join.relation))?;
    }
    if renamed.tables.is_empty() {
        return Ok(());
    }
    renamed.expand_wildcards(select);
    change_outside_queries(select, &mut |expr| renamed.rename(expr))?;
    match order_by {
        Some(order_by) => change_outside_queries(order_by, &mut |expr| renamed.rename(expr)),
        None => Ok(()),
    }
}

/// Any other call beside a table: `JOIN unnest(a.list) AS t(x)` is `JOIN LATERAL (SELECT
/// unnest(a.list) AS x) AS t`.
fn as_subquery(factor: &mut TableFactor) -> Result<()> {
    let Some(Series { table, items, .. }) = correlated(factor)? else { return Ok(()) };
    let query = template(&format!("SELECT 1 FROM LATERAL (SELECT {items}) AS {table}"))?;
    if let ast::SetExpr::Select(select) = *query.body
        && let Some(from) = select.from.into_iter().next()
    {
        *factor = from.relation;
    }
    Ok(())
}

/// `FROM a, unnest(a.list)` is `FROM a CROSS JOIN unnest(a.list)`.
fn attach_to_previous(select: &mut Select) {
    let mut at = 1;
    while at < select.from.len() {
        if !matches!(correlated(&select.from[at].relation), Ok(Some(_))) {
            at += 1;
            continue;
        }
        let from = select.from.remove(at);
        let joins = &mut select.from[at - 1].joins;
        joins.push(Join {
            relation: from.relation,
            global: false,
            join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
        });
        joins.extend(from.joins);
    }
}

/// The call, if it refers to columns.
fn correlated(factor: &TableFactor) -> Result<Option<Series>> {
    let mut refers = Refers(false);
    match factor {
        TableFactor::Table { args: Some(args), .. } => look(&args.args, &mut refers),
        TableFactor::Function { args, .. } => look(args, &mut refers),
        TableFactor::UNNEST { array_exprs, .. } => look(array_exprs, &mut refers),
        _ => {}
    }
    if refers.0 { series::of(factor) } else { Ok(None) }
}

/// Whether a column is named.
struct Refers(bool);

impl Looking for Refers {
    fn expr(&mut self, expr: &Expr) -> Look {
        self.0 |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        Look::Continue(())
    }
}

fn table_name(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), args: None, .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, alias: None, args: None, .. } => {
            name.0.last().and_then(|part| part.as_ident()).cloned()
        }
        _ => None,
    }
}

/// References to a call's columns, which are now the table's.
struct Renamed {
    /// The call's name, the table, and the columns.
    tables: Vec<(String, Ident, Vec<String>)>,
    /// The tables, with the columns that they have without elements.
    owners: Vec<(Ident, Vec<String>)>,
}

impl Renamed {
    /// `e.*` lists the elements, and `t.*` what else there is.
    fn expand_wildcards(&self, select: &mut Select) {
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            let table = match &item {
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    name.0.last().and_then(|part| part.as_ident()).map(fold)
                }
                _ => None,
            };
            let series = self.tables.iter().find(|(series, ..)| Some(series) == table.as_ref());
            let owner = || self.owners.iter().find(|(owner, _)| Some(fold(owner)) == table);
            let listed = series
                .map(|(_, table, columns)| (table, columns))
                .or_else(|| owner().map(|(table, columns)| (table, columns)));
            match listed {
                Some((table, columns)) => projection.extend(columns.iter().map(|column| {
                    let column = Ident::with_quote('"', column);
                    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![table.clone(), column]))
                })),
                None => projection.push(item),
            }
        }
        select.projection = projection;
    }

    fn rename(&self, expr: &mut Expr) -> Result<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_mut_slice()
            && let Some((_, owner, _)) = self.tables.iter().find(|(series, ..)| *series == fold(table))
        {
            *table = owner.clone();
        }
        Ok(())
    }
}
