//! `SELECT *`, and long select lists, as the rows of FROM, whose columns are listed behind
//! planning.
//!
//! DataFusion's planner compares each item of a select list with all before it, by their names, so
//! that its time goes with the square of the columns. Here it sees one item in place of them:
//!
//! ```text
//! SELECT * FROM t WHERE c ORDER BY k     SELECT NULL AS "__row" FROM t WHERE c ORDER BY k
//! ```
//!
//! The plan that it makes has one column for the row, in a projection, and above that in the
//! projection that drops the keys of the order. Both are replaced here: by nothing where the
//! columns of FROM are all that is wanted, by a list of columns otherwise.
//!
//! Law: the plan is the one that DataFusion makes of `*`, but for a projection of all columns.
//! Cost: linear in the columns, but for what DataFusion looks up by name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, DFSchema, Result as DfResult, TableReference};
use datafusion_expr::Expr;
use datafusion_expr::expr::Alias;
use datafusion_expr::logical_plan::{Distinct as PlanDistinct, Limit, LogicalPlan, Projection, Sort};
use datafusion_expr::sqlparser::ast::{
    Distinct, Expr as SqlExpr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Value, WildcardAdditionalOptions,
};
use datafusion_expr::utils::expand_wildcard;

use crate::syntax::names::fold;

/// What stands for the row.
const ROW: &str = "__row";

/// Names of the values that an UPDATE assigns begin so.
pub(crate) const ASSIGNED: &str = "__new_";

/// Select lists are held back from so many items on; shorter ones cost little.
const ITEMS_MIN: usize = 100;

/// What was taken out of a select list.
pub(crate) enum TakenOut {
    /// A wildcard that stands for all columns of FROM.
    All,
    /// Columns, and what is computed of a row, that are written out.
    Items(Vec<HeldItem>),
}

/// An item of a long list.
pub(crate) struct HeldItem {
    expr: SqlExpr,
    alias: Option<Ident>,
}

/// Puts one item in place of a wildcard of the top select that stands for all columns of FROM, or
/// of a long list.
pub(crate) fn hold_back(query: &mut Query) -> Option<TakenOut> {
    let by_position = match query.order_by.as_ref().map(|order_by| &order_by.kind) {
        Some(OrderByKind::Expressions(keys)) => keys
            .iter()
            .any(|key| matches!(&key.expr, SqlExpr::Value(value) if matches!(value.value, Value::Number(..)))),
        Some(OrderByKind::All(_)) => true,
        None => false,
    };
    let order = query.order_by.clone();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if by_position || !is_plain(select) {
        return None;
    }
    let row = SelectItem::ExprWithAlias { expr: SqlExpr::value(Value::Null), alias: Ident::with_quote('"', ROW) };
    if select.projection.len() >= ITEMS_MIN
        && let Some(items) = select.projection.iter().map(held_item).collect::<Option<Vec<HeldItem>>>()
        && !order.is_some_and(|order| names_item(&order, &items))
    {
        select.projection = vec![row];
        return Some(TakenOut::Items(items));
    }
    let (first, others) = select.projection.split_first_mut()?;
    let is_all = match first {
        SelectItem::Wildcard(options) => is_bare(options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options) => {
            select.from.len() == 1 && select.from.iter().all(|from| from.joins.is_empty()) && is_bare(options)
        }
        _ => false,
    };
    if !is_all || !others.iter().all(is_value) {
        return None;
    }
    *first = row;
    Some(TakenOut::All)
}

/// An item that is one column.
fn held_item(item: &SelectItem) -> Option<HeldItem> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } if !alias.value.starts_with(ASSIGNED) => (expr, Some(alias.clone())),
        _ => return None,
    };
    Some(HeldItem { expr: expr.clone(), alias })
}

/// Whether a key of the order may be the name of an item.
fn names_item(order: &OrderBy, items: &[HeldItem]) -> bool {
    let OrderByKind::Expressions(keys) = &order.kind else { return true };
    let is_column = |item: &HeldItem| matches!(item.expr, SqlExpr::Identifier(_) | SqlExpr::CompoundIdentifier(_));
    // (What is computed has a name all the same.)
    let all_told = items.iter().all(|item| item.alias.is_some() || is_column(item));
    let names: HashSet<String> = items.iter().filter_map(|item| item.alias.as_ref()).map(fold).collect();
    let is_named = |name: &Ident| !all_told || names.contains(&fold(name));
    keys.iter().any(|key| matches!(&key.expr, SqlExpr::Identifier(name) if is_named(name)))
}

/// Whether an item is a value that an UPDATE assigns.
fn is_value(item: &SelectItem) -> bool {
    matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value.starts_with(ASSIGNED))
}

/// Whether nothing but FROM, WHERE and DISTINCT makes the rows.
fn is_plain(select: &Select) -> bool {
    let ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(keys, with) if keys.is_empty() && with.is_empty());
    ungrouped
        && !select.from.is_empty()
        && matches!(select.distinct, None | Some(Distinct::Distinct))
        && select.having.is_none()
        && select.qualify.is_none()
}

fn is_bare(options: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions { opt_ilike, opt_exclude, opt_except, opt_replace, opt_rename, opt_alias, .. } =
        options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none()
}

/// What lists the columns of a row over a plan; `None` where they are computed of several rows, or
/// are several rows.
type ColumnsOver<'a> = &'a dyn Fn(&LogicalPlan) -> DfResult<Option<Vec<Expr>>>;

/// Whether an item is computed of one row alone.
fn is_of_row(item: &Expr) -> bool {
    let is_more = |part: &Expr| {
        matches!(
            part,
            Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Unnest(_)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        )
    };
    !item.exists(|part| Ok(is_more(part))).unwrap_or(true)
}

/// The plan with the columns that its one item stands for; `None` for a plan of another form than
/// is known here, which is to be made of the query as it was. `column` resolves a name.
///
/// # Errors
/// Of names and of making projections.
pub(crate) fn listed(
    plan: LogicalPlan,
    held: &TakenOut,
    column: &dyn Fn(&SqlExpr, &DFSchema) -> DfResult<Expr>,
) -> DfResult<Option<LogicalPlan>> {
    let listing = |below: &LogicalPlan| match held {
        TakenOut::All => Ok(Some(expand_wildcard(below.schema(), below, None)?)),
        TakenOut::Items(items) => {
            let names = by_name(below.schema());
            let resolved = |item: &HeldItem| {
                let expr = match told_once(&item.expr, &names, below.schema()) {
                    Some(found) => found,
                    None => column(&item.expr, below.schema())?,
                };
                Ok(match item.alias.as_ref().map(fold) {
                    Some(name) if !matches!(&expr, Expr::Column(column) if column.name == name) => expr.alias(name),
                    _ => expr,
                })
            };
            let row = items.iter().map(resolved).collect::<DfResult<Vec<Expr>>>()?;
            Ok(row.iter().all(is_of_row).then_some(row))
        }
    };
    Ok(widened(plan, &listing)?.map(|Wide { plan, .. }| plan))
}

/// The places of columns whose names are no other's.
fn by_name(schema: &DFSchema) -> HashMap<&str, Option<usize>> {
    let mut places = HashMap::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        places.entry(field.name().as_str()).and_modify(|place| *place = None).or_insert(Some(at));
    }
    places
}

/// The column of that name, if there is one alone.
fn told_once(name: &SqlExpr, names: &HashMap<&str, Option<usize>>, schema: &DFSchema) -> Option<Expr> {
    let (table, name) = match name {
        SqlExpr::Identifier(name) => (None, name),
        SqlExpr::CompoundIdentifier(path) => match path.as_slice() {
            [table, name] => (Some(fold(table)), name),
            _ => return None,
        },
        _ => return None,
    };
    let (qualifier, field) = schema.qualified_field((*names.get(fold(name).as_str())?)?);
    let is_of_table =
        table.is_none_or(|table| qualifier.is_some_and(|qualifier| *qualifier == TableReference::bare(table)));
    is_of_table.then(|| Expr::Column(Column::from((qualifier, field))))
}

/// A plan with the columns of the row, which are the first that it shows.
struct Wide {
    plan: LogicalPlan,
    row: Vec<Expr>,
}

fn widened(plan: LogicalPlan, listing: ColumnsOver) -> DfResult<Option<Wide>> {
    let within = |input: Arc<LogicalPlan>| widened(Arc::unwrap_or_clone(input), listing);
    match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) if expr.first().is_some_and(is_row) => {
            // (What those nodes add to the rows of FROM is not part of `*`.)
            if matches!(*input, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Unnest(_)) {
                return Ok(None);
            }
            let Some(row) = listing(&input)? else { return Ok(None) };
            Ok(Some(projected(row, expr, input)?))
        }
        LogicalPlan::Projection(Projection { expr, input, .. }) if expr.first().is_some_and(is_column_of_row) => {
            let Some(Wide { plan, row }) = within(input)? else { return Ok(None) };
            Ok(Some(projected(row, expr, Arc::new(plan))?))
        }
        LogicalPlan::Sort(Sort { expr, input, fetch }) => Ok(within(input)?.map(|Wide { plan, row }| {
            let plan = LogicalPlan::Sort(Sort { expr, input: Arc::new(plan), fetch });
            Wide { plan, row }
        })),
        LogicalPlan::Limit(Limit { skip, fetch, input }) => Ok(within(input)?.map(|Wide { plan, row }| {
            let plan = LogicalPlan::Limit(Limit { skip, fetch, input: Arc::new(plan) });
            Wide { plan, row }
        })),
        LogicalPlan::Distinct(PlanDistinct::All(input)) => Ok(within(input)?.map(|Wide { plan, row }| {
            let plan = LogicalPlan::Distinct(PlanDistinct::All(Arc::new(plan)));
            Wide { plan, row }
        })),
        _ => Ok(None),
    }
}

/// The row in place of the first item, beside those of the others that it does not show.
fn projected(row: Vec<Expr>, items: Vec<Expr>, input: Arc<LogicalPlan>) -> DfResult<Wide> {
    let mut others: Vec<Expr> = items.into_iter().skip(1).collect();
    if !others.is_empty() {
        let shown: HashSet<&Expr> = row.iter().collect();
        others.retain(|item| !shown.contains(item));
    }
    if others.is_empty() && is_whole(&row, &input) {
        return Ok(Wide { plan: Arc::unwrap_or_clone(input), row });
    }
    let items = row.iter().cloned().chain(others).collect();
    let plan = LogicalPlan::Projection(Projection::try_new(items, input)?);
    Ok(Wide { plan, row })
}

/// Whether these are all columns of a plan, in their order.
fn is_whole(row: &[Expr], input: &LogicalPlan) -> bool {
    let is_same = |(item, (table, field)): (&Expr, (Option<&TableReference>, &FieldRef))| matches!(item, Expr::Column(column) if column.name == *field.name() && column.relation.as_ref() == table);
    row.len() == input.schema().fields().len() && row.iter().zip(input.schema().iter()).all(is_same)
}

fn is_row(item: &Expr) -> bool {
    matches!(item, Expr::Alias(Alias { name, expr, .. }) if name == ROW && matches!(**expr, Expr::Literal(..)))
}

fn is_column_of_row(item: &Expr) -> bool {
    matches!(item, Expr::Column(Column { name, relation: None, .. }) if name == ROW)
}
