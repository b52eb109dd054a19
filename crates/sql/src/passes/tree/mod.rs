//! Rewrites of the syntax tree, before DataFusion sees it: a table of walks, and what is done in
//! each.
//!
//! A walk goes through the tree once. At each part it runs its rewrites in the order of the table;
//! the parts that a rewrite puts in are walked through in their turn. `EMIT ON WINDOW CLOSE` is
//! rewritten before, in `on_close`.
//!
//! Law: the tree means what PostgreSQL says that the text means, in words that DataFusion reads
//! alike.

mod array_calls;
mod array_query;
pub(crate) mod asof;
mod calls;
mod case;
mod columns;
mod compared_list;
mod conditions;
mod counts;
mod derived_calls;
pub(crate) mod distinct_from;
mod distinct_on;
mod expression_names;
mod fetch;
mod frame_bounds;
mod grouped_casts;
mod grouping;
mod hooks;
mod hypothetical;
mod inner_order;
mod json_lists;
mod lateral;
mod lifted_aggregates;
mod limits;
mod literal;
mod made_up_rows;
mod membership;
mod merged;
mod named_windows;
mod names;
mod null_treatments;
pub(crate) mod on_close;
mod order_names;
mod outer_aggregates;
mod outer_groups;
mod output_names;
mod parts;
mod positions;
mod record_parts;
mod records;
mod recursion;
mod refuse;
mod reg_types;
mod regression;
mod repeated_columns;
mod rows;
mod series;
mod session;
pub(crate) mod set_operations;
mod shadowed;
mod similar;
mod split_table;
mod star;
mod subquery;
mod symmetric;
mod system;
mod table;
mod type_kinds;
mod unnested_names;
pub(crate) mod values_queries;
mod values_types;
mod variadic;
mod vectors;
mod whole_rows;
mod window_table;

use std::collections::BTreeSet;

use datafusion_expr::sqlparser::ast::{Expr, OrderBy, Query, Select, SetExpr, TableFactor};

use crate::error::Result;
use crate::passes::pass::{Chosen, Pass, PassEntry};
use crate::resolve::catalog::Catalog;
use crate::syntax::relation_calls::called_in_from;
use crate::syntax::walk::{Changing, change};
use hooks::{Hooks, Names, address, query_address};
use names::hidden_tables;
pub(crate) use names::set_output_names;
use table::WALKS;

/// Rewrites a whole query. With `name_all`, every computed column of the select list gets a name of
/// its own.
///
/// # Errors
/// `Unsupported` for what DataFusion would ignore.
pub(crate) fn rewrite(query: &Query, catalog: &dyn Catalog, name_all: bool, chosen: Chosen) -> Result<Query> {
    let mut query = query.clone();
    for passes in WALKS {
        let hidden = BTreeSet::new();
        let mut names = Names { catalog: Some(catalog), hidden, name_all, tables: vec![], with: vec![], named: vec![] };
        for pass in passes.iter().filter(|pass| chosen.runs(pass.name)) {
            pass.run.whole.into_iter().for_each(|run| run(&mut query, &names));
        }
        names.hidden = hidden_tables(&query, catalog);
        change(&mut query, &mut Walk { passes, chosen, names, n_named: vec![] })?;
    }
    Ok(query)
}

/// Rewrites an expression that stands in no query.
pub(crate) fn rewrite_expr(expr: &Expr, catalog: Option<&dyn Catalog>) -> Result<Expr> {
    let mut expr = expr.clone();
    for passes in WALKS {
        let hidden = BTreeSet::new();
        let names = Names { catalog, hidden, name_all: false, tables: vec![], with: vec![], named: vec![] };
        change(&mut expr, &mut Walk { passes, chosen: Chosen::default(), names, n_named: vec![] })?;
    }
    Ok(expr)
}

/// The rewrites, in the order in which they run.
pub(crate) fn described() -> Vec<PassEntry> {
    WALKS.iter().flat_map(|passes| passes.iter()).map(|pass| pass.described(pass.run.takes())).collect()
}

/// One walk over the tree.
struct Walk<'a> {
    passes: &'static [Pass<Hooks>],
    chosen: Chosen,
    names: Names<'a>,
    /// For each open query, how many of `names.named` are of queries around it.
    n_named: Vec<usize>,
}

impl Walk<'_> {
    /// The hooks of one kind, in the order of the table.
    fn hooks<F>(&self, of: fn(&Hooks) -> Option<F>) -> impl Iterator<Item = F> + use<F> {
        let chosen = self.chosen;
        self.passes.iter().filter(move |pass| chosen.runs(pass.name)).filter_map(move |pass| of(&pass.run))
    }

    fn ordered(&self, select: &mut Select, mut order_by: Option<&mut OrderBy>) -> Result<()> {
        let mut hooks = self.hooks(|hooks| hooks.ordered);
        hooks.try_for_each(|run| run(select, order_by.as_deref_mut(), &self.names))
    }
}

impl Changing for Walk<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        let at = query_address(query);
        let named = self.names.named.iter().rev().find(|(named, _)| *named == at).map(|(_, known)| known);
        let around = named.or(self.names.with.last()).cloned().unwrap_or_default();
        let mut with = around.clone();
        self.hooks(|hooks| hooks.with).for_each(|run| run(query, &self.names));
        if let Some(catalog) = self.names.catalog {
            columns::add_with(query, &mut with, catalog);
        }
        self.names.with.push(with);
        self.n_named.push(self.names.named.len());
        self.hooks(|hooks| hooks.query).try_for_each(|run| run(query, &self.names))?;
        if let Some(catalog) = self.names.catalog {
            let reached = columns::reachable_within(query, &around, self.names.reachable(), catalog);
            let bodies = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| query_address(&cte.query));
            self.names.named.extend(bodies.zip(reached));
        }
        let Query { body, order_by, .. } = query;
        match body.as_mut() {
            SetExpr::Select(select) => self.ordered(select, order_by.as_mut()),
            _ => Ok(()),
        }
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.names.with.pop();
        // (Another query may come to stand where one of these stood.)
        self.names.named.truncate(self.n_named.pop().unwrap_or(0));
        Ok(())
    }

    fn table_factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        self.hooks(|hooks| hooks.factor).try_for_each(|run| run(factor, &self.names))?;
        let args = called_in_from(factor).map(|(_, args)| args);
        self.names.tables.extend(args.into_iter().flatten().map(address));
        Ok(())
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        self.ordered(select, None)?;
        self.hooks(|hooks| hooks.select).try_for_each(|run| run(select, &self.names))
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expr {
            self.names.tables.push(address(right));
        }
        self.hooks(|hooks| hooks.expr).try_for_each(|run| run(expr, &self.names))
    }

    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        self.hooks(|hooks| hooks.after_expr).try_for_each(|run| run(expr, &self.names))
    }
}
