//! `SELECT (SELECT sum(q.b)) FROM q`: an aggregate belongs to the query whose columns it is of.
//!
//! Law: a subquery without FROM has no columns of its own, so each aggregate of a column in it is
//! one of a query around it; its value is that of what it selects. Aggregates without columns
//! (`count(*)`) are the subquery's own.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{Expr, Function, GroupByExpr, Query, Select, SelectItem, SetExpr};

use crate::error::Result;
use crate::functions::table::FUNCTIONS;
use crate::syntax::walk::{Look, Looking, look};

/// Writes what such a subquery selects in its place.
///
/// # Errors
/// None.
pub(super) fn lift(expr: &mut Expr) -> Result<()> {
    if let Expr::Subquery(query) = expr
        && let Some(selected) = selected(query)
    {
        let mut aggregates = Aggregates::default();
        look(selected, &mut aggregates);
        if aggregates.of_columns > 0 && aggregates.of_none == 0 {
            *expr = Expr::Nested(Box::new(selected.clone()));
        }
    }
    Ok(())
}

/// What a query selects that does nothing else.
fn selected(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Select { distinct: None, from, selection: None, having: None, group_by, projection, .. } = select.as_ref()
    else {
        return None;
    };
    let has_groups = !matches!(group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let is_more = query.with.is_some() || query.limit_clause.is_some() || query.fetch.is_some() || has_groups;
    if is_more || !from.is_empty() {
        return None;
    }
    match projection.as_slice() {
        [SelectItem::UnnamedExpr(selected) | SelectItem::ExprWithAlias { expr: selected, .. }] => Some(selected),
        _ => None,
    }
}

/// How many aggregates there are outside of queries, of columns and of none.
#[derive(Default)]
struct Aggregates {
    of_columns: usize,
    of_none: usize,
    depth: usize,
}

impl Looking for Aggregates {
    fn query(&mut self, _query: &Query) -> Look {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn after_query(&mut self, _query: &Query) -> Look {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn expr(&mut self, expr: &Expr) -> Look {
        if let Expr::Function(function @ Function { over: None, .. }) = expr
            && self.depth == 0
            && FUNCTIONS.aggregate.contains_key(&function.name.to_string().to_lowercase())
        {
            let mut columns = Columns(false);
            look(&function.args, &mut columns);
            match columns.0 {
                true => self.of_columns += 1,
                false => self.of_none += 1,
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether there is a column.
struct Columns(bool);

impl Looking for Columns {
    fn expr(&mut self, expr: &Expr) -> Look {
        self.0 |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        ControlFlow::Continue(())
    }
}
