//! Rewrites on the syntax tree, before DataFusion sees it.
//!
//! - `EXCEPT` and `INTERSECT` become marked joins, which [`set_operations`](crate::passes::plan::set_operations) plans with SQL's multiplicities;
//!   DataFusion would turn them into semijoins, which count wrongly.
//! - Unnamed function calls in the select list of a derived table or CTE get the function's name, as in PostgreSQL.
//! - Repeated select items at the top get names of their own; the plan's root restores what the user sees.
//! - `FETCH FIRST` becomes `LIMIT`; literals in `literal`, calls in `calls`, `series` and `lateral`; subqueries in `subquery`,
//!   `IN` inside conditions in `membership`; comparisons of rows in `rows`.
//! - Tables named like a column get another name, in `names`; shared columns of full and right joins in `merged`.
//! - As-of joins become marked joins, in `asof`; `MATCH_RECOGNIZE` a marked table, in `recognize`.
//! - `TUMBLE`, `HOP`, `CUMULATE` and `SESSION` become the queries they stand for, in `window_table` and `session`.
//! - Constructs that DataFusion would drop in silence are refused.

mod asof;
mod calls;
mod case;
mod compared_list;
mod distinct_from;
mod lateral;
mod literal;
mod membership;
mod merged;
mod names;
pub(crate) mod on_close;
mod recognize;
mod rows;
mod series;
mod session;
mod similar;
mod subquery;
mod window_table;

use std::collections::BTreeSet;

use datafusion_expr::sqlparser::ast::{
    self, Expr, LimitClause, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::parse::fold;
use crate::syntax::template::template;
use crate::syntax::walk::{Changing, Look, Looking, change, look};
pub(crate) use asof::is_marked as is_asof;
pub(crate) use names::output_names;
use names::{hidden_tables, name_derived, name_repeated, rename_reference, rename_table, rename_wildcards};
pub(crate) use recognize::RECOGNIZE_MARK;

/// Alias that marks a join as a set operation; followed by `except`, `except_all`, `intersect` or `intersect_all`.
pub(crate) const SET_MARK: &str = "__anabranch_";

/// Rewrites a whole query. With `name_all`, every computed column of the select list gets a name of its own.
///
/// # Errors
/// `Unsupported` for what DataFusion would ignore.
pub(crate) fn rewrite(query: &Query, catalog: &dyn Catalog, name_all: bool) -> Result<Query> {
    let mut query = query.clone();
    change(&mut query, &mut distinct_from::EndOperands)?;
    change(&mut query, &mut subquery::Tests)?;
    name_repeated(&mut query, name_all);
    let hidden = hidden_tables(&query, catalog);
    let mut rewriter = Rewriter { catalog: Some(catalog), hidden, compared: vec![], known: vec![] };
    change(&mut query, &mut rewriter)?;
    Ok(query)
}

/// Rewrites an expression.
pub(crate) fn rewrite_expr(expr: &Expr) -> Result<Expr> {
    let mut expr = expr.clone();
    change(&mut expr, &mut distinct_from::EndOperands)?;
    change(&mut expr, &mut subquery::Tests)?;
    let mut rewriter = Rewriter { catalog: None, hidden: BTreeSet::new(), compared: vec![], known: vec![] };
    change(&mut expr, &mut rewriter)?;
    Ok(expr)
}

struct Rewriter<'a> {
    /// Where tables' columns are looked up; an expression alone has none.
    catalog: Option<&'a dyn Catalog>,
    /// Tables to be renamed.
    hidden: BTreeSet<String>,
    /// Addresses of the subqueries right of `ANY` and `ALL`, which are not scalar.
    compared: Vec<usize>,
    /// For each open query, the queries named by WITH that it can reach.
    known: Vec<merged::Known>,
}

fn address(expr: &Expr) -> usize {
    std::ptr::from_ref(expr).addr()
}

impl Rewriter<'_> {
    /// Writes out shared columns of a select, and lists unnested beside their tables.
    fn merge_columns(&self, select: &mut ast::Select, mut order_by: Option<&mut ast::OrderBy>) -> Result<()> {
        let Some(catalog) = self.catalog else { return Ok(()) };
        let nothing = merged::Known::new();
        let known = self.known.last().unwrap_or(&nothing);
        lateral::write_out(select, order_by.as_deref_mut(), known, catalog)?;
        merged::write_out(select, order_by, known, catalog)
    }
}

impl Changing for Rewriter<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        refuse_query(query)?;
        fetch_to_limit(query)?;
        mark_set_operations(&mut query.body)?;
        if let Some(with) = &mut query.with {
            with.cte_tables.iter_mut().for_each(|cte| name_derived(&mut cte.query, Some(&cte.alias)));
        }
        let mut known = self.known.last().cloned().unwrap_or_default();
        if let Some(catalog) = self.catalog {
            merged::add_with(query, &mut known, catalog);
        }
        self.known.push(known);
        let Query { body, order_by, .. } = query;
        match body.as_mut() {
            SetExpr::Select(select) => self.merge_columns(select, order_by.as_mut()),
            _ => Ok(()),
        }
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.known.pop();
        Ok(())
    }

    fn table_factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        recognize::mark(factor)?;
        match factor {
            TableFactor::Derived { subquery, alias, .. } => name_derived(subquery, alias.as_ref()),
            TableFactor::NestedJoin { table_with_joins, alias } if !is_asof(alias.as_ref()) => {
                asof::mark(table_with_joins, self.catalog)?;
            }
            _ => {}
        }
        series::in_from(factor)?;
        rename_table(factor, &self.hidden);
        refuse_factor(factor)?;
        session::rewrite(factor)?;
        window_table::rewrite(factor)
    }

    fn select(&mut self, select: &mut ast::Select) -> Result<()> {
        self.merge_columns(select, None)?;
        select.from.iter_mut().try_for_each(|from| asof::mark(from, self.catalog))?;
        rename_wildcards(select, &self.hidden);
        series::in_select(select)?;
        refuse_select(select)?;
        if let Some(catalog) = self.catalog {
            membership::count_in_conditions(select, catalog)?;
        }
        subquery::count_in_projection(select)
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expr {
            self.compared.push(address(right));
        }
        let is_scalar = !self.compared.contains(&address(expr));
        if is_scalar && matches!(expr, Expr::Subquery(_)) {
            return subquery::exactly_one_row(expr);
        }
        rows::spell(expr)
    }

    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        rename_reference(expr, &self.hidden);
        if let Some(replacement) = calls::rewrite(expr)? {
            *expr = replacement;
        }
        literal::rewrite(expr);
        compared_list::rewrite(expr)?;
        case::rewrite(expr);
        similar::rewrite(expr)
    }
}

fn refuse_query(query: &Query) -> Result<()> {
    if let Some(with) = &query.with
        && with.recursive
        && with.cte_tables.iter().any(refers_to_itself)
    {
        return Err(SqlError::unsupported(
            "WITH RECURSIVE",
            "Recursive queries come with a later version; a fixed number of steps can be written as joins.",
        ));
    }
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported(
            "SELECT .. FOR UPDATE",
            "Leave the clause out: statements are strictly serialisable.",
        ));
    }
    if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
        return Err(SqlError::unsupported("this clause at the end of the query", "Leave it out."));
    }
    if !query.pipe_operators.is_empty() {
        return Err(SqlError::unsupported("|>", "Write nested queries or WITH."));
    }
    Ok(())
}

fn refers_to_itself(cte: &ast::Cte) -> bool {
    let mut mention = Mention { name: fold(&cte.alias.name), found: false };
    look(cte.query.as_ref(), &mut mention);
    mention.found
}

/// Whether a table is named.
struct Mention {
    name: String,
    found: bool,
}

impl Looking for Mention {
    fn relation(&mut self, relation: &ast::ObjectName) -> Look {
        self.found |=
            matches!(relation.0.as_slice(), [part] if part.as_ident().is_some_and(|part| fold(part) == self.name));
        if self.found { Look::Break(()) } else { Look::Continue(()) }
    }
}

fn refuse_select(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO", "Write CREATE TABLE, then INSERT INTO .. SELECT."));
    }
    if select.top.is_some() {
        return Err(SqlError::unsupported("SELECT TOP", "Write LIMIT at the end of the query."));
    }
    if !select.cluster_by.is_empty() || !select.distribute_by.is_empty() || !select.sort_by.is_empty() {
        return Err(SqlError::unsupported("SORT BY, CLUSTER BY and DISTRIBUTE BY", "Write ORDER BY."));
    }
    Ok(())
}

fn refuse_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table { version: Some(_), .. } => Err(SqlError::unsupported(
            "FOR SYSTEM_TIME AS OF",
            "Reads see the present; keep history in a table with a time column.",
        )),
        TableFactor::Table { sample: Some(_), .. } => {
            Err(SqlError::unsupported("TABLESAMPLE", "Filter by a condition on the key."))
        }
        TableFactor::TableFunction { .. } => {
            Err(SqlError::unsupported("TABLE(..) in FROM", "Name a table or a view, or write TUMBLE, HOP or CUMULATE."))
        }
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => {
            Err(SqlError::unsupported("PIVOT", "Write one aggregate with FILTER (WHERE ..) for each column."))
        }
        _ => Ok(()),
    }
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
fn fetch_to_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else {
        return Ok(());
    };
    if fetch.with_ties || fetch.percent {
        return Err(SqlError::unsupported("FETCH .. WITH TIES or PERCENT", "Write FETCH FIRST n ROWS ONLY."));
    }
    let count = fetch.quantity.unwrap_or_else(|| Expr::value(ast::Value::Number("1".into(), false)));
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(count),
        other => {
            *other = Some(LimitClause::LimitOffset { limit: Some(count), offset: None, limit_by: vec![] });
        }
    }
    Ok(())
}

fn mark_set_operations(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
        return Ok(());
    };
    let all = match set_quantifier {
        SetQuantifier::All => "_all",
        SetQuantifier::None | SetQuantifier::Distinct => "",
        _ => return Err(SqlError::unsupported("BY NAME", "List the columns in the same order on both sides.")),
    };
    let name = match op {
        SetOperator::Union => {
            if let (Some(n), Some(m)) = (width(left), width(right))
                && n != m
            {
                let message = "each UNION query must have the same number of columns";
                return Err(SqlError::new(ErrorKind::Invalid, message)
                    .with_detail(format!("The left one has {n}, the right one {m}.")));
            }
            mark_set_operations(left)?;
            return mark_set_operations(right);
        }
        SetOperator::Except | SetOperator::Minus => "except",
        SetOperator::Intersect => "intersect",
    };
    let mut template = template(&format!("SELECT * FROM (a CROSS JOIN b) AS \"{SET_MARK}{name}{all}\""))?;
    if let SetExpr::Select(select) = template.body.as_mut()
        && let Some(TableFactor::NestedJoin { table_with_joins, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
        && let Some(join) = table_with_joins.joins.first_mut()
    {
        join.relation = derived(right)?;
        table_with_joins.relation = derived(left)?;
    }
    *body = *template.body;
    Ok(())
}

/// The number of columns, where it can be read off the text.
fn width(side: &SetExpr) -> Option<usize> {
    match side {
        SetExpr::Select(select) => {
            let plain =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            select.projection.iter().all(plain).then_some(select.projection.len())
        }
        SetExpr::SetOperation { left, .. } => width(left),
        SetExpr::Query(query) => width(&query.body),
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}

fn derived(side: &SetExpr) -> Result<TableFactor> {
    let subquery = match side {
        SetExpr::Query(query) => query.clone(),
        other => {
            let mut query = template("SELECT 1")?;
            query.body = Box::new(other.clone());
            query
        }
    };
    Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })
}
