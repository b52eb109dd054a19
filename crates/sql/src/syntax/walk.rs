//! Walks over parsed SQL.
//!
//! The parser's traversals cover the whole grammar and are generic over their visitor, so each
//! visitor compiles the grammar anew. Here they are compiled twice in all, once for looking and
//! once for changing; who walks is a trait object.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{
    Expr, ObjectName, Query, Select, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::error::{Result, SqlError};

/// Whether to walk on.
pub(crate) type Look = ControlFlow<()>;

/// Looks at the parts of a statement, outer parts first.
pub(crate) trait Looking {
    /// A query begins.
    fn query(&mut self, _query: &Query) -> Look {
        Look::Continue(())
    }
    /// A query ends.
    fn after_query(&mut self, _query: &Query) -> Look {
        Look::Continue(())
    }
    /// The name of a table.
    fn relation(&mut self, _relation: &ObjectName) -> Look {
        Look::Continue(())
    }
    /// An entry of FROM.
    fn table_factor(&mut self, _factor: &TableFactor) -> Look {
        Look::Continue(())
    }
    /// A SELECT.
    fn select(&mut self, _select: &Select) -> Look {
        Look::Continue(())
    }
    /// An expression.
    fn expr(&mut self, _expr: &Expr) -> Look {
        Look::Continue(())
    }
}

/// Changes the parts of a statement; an error ends the walk.
pub(crate) trait Changing {
    /// A query begins.
    fn query(&mut self, _query: &mut Query) -> Result<()> {
        Ok(())
    }
    /// A query ends.
    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        Ok(())
    }
    /// An entry of FROM begins.
    fn table_factor(&mut self, _factor: &mut TableFactor) -> Result<()> {
        Ok(())
    }
    /// A SELECT begins.
    fn select(&mut self, _select: &mut Select) -> Result<()> {
        Ok(())
    }
    /// An expression begins.
    fn expr(&mut self, _expr: &mut Expr) -> Result<()> {
        Ok(())
    }
    /// An expression ends: its parts have been changed.
    fn after_expr(&mut self, _expr: &mut Expr) -> Result<()> {
        Ok(())
    }
}

/// Walks over a part of a statement until told to stop.
pub(crate) fn look(part: &impl Visit, looking: &mut dyn Looking) {
    let _ = part.visit(&mut Looker(looking));
}

/// Looks at the expressions of a part of a statement, but not at those of queries within it.
pub(crate) fn look_outside_queries(part: &impl Visit, seen: &mut dyn FnMut(&Expr)) {
    look(part, &mut SeenOutsideQueries { seen, depth: 0 });
}

struct SeenOutsideQueries<'a> {
    seen: &'a mut dyn FnMut(&Expr),
    /// Queries around what is being walked over.
    depth: usize,
}

impl Looking for SeenOutsideQueries<'_> {
    fn query(&mut self, _query: &Query) -> Look {
        self.depth += 1;
        Look::Continue(())
    }

    fn after_query(&mut self, _query: &Query) -> Look {
        self.depth -= 1;
        Look::Continue(())
    }

    fn expr(&mut self, expr: &Expr) -> Look {
        if self.depth == 0 {
            (self.seen)(expr);
        }
        Look::Continue(())
    }
}

/// Whether a part of a statement names a column outside of queries.
pub(crate) fn names_column(part: &impl Visit) -> bool {
    let mut found = false;
    look_outside_queries(part, &mut |expr| {
        found |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    });
    found
}

/// Walks over a part of a statement, changing it.
///
/// # Errors
/// The first that `changing` returns; the part is then half changed.
pub(crate) fn change(part: &mut impl VisitMut, changing: &mut dyn Changing) -> Result<()> {
    match part.visit(&mut Changer(changing)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Changes the expressions of a part of a statement, inner ones first, but not those of queries
/// within it.
///
/// # Errors
/// The first that `changing` returns; the part is then half changed.
pub(crate) fn change_outside_queries(
    part: &mut impl VisitMut,
    changing: &mut dyn FnMut(&mut Expr) -> Result<()>,
) -> Result<()> {
    change(part, &mut OutsideQueries { changing, depth: 0 })
}

struct OutsideQueries<'a> {
    changing: &'a mut dyn FnMut(&mut Expr) -> Result<()>,
    /// Queries around what is being walked over.
    depth: usize,
}

impl Changing for OutsideQueries<'_> {
    fn query(&mut self, _query: &mut Query) -> Result<()> {
        self.depth += 1;
        Ok(())
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.depth -= 1;
        Ok(())
    }

    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        if self.depth == 0 { (self.changing)(expr) } else { Ok(()) }
    }
}

struct Looker<'a>(&'a mut dyn Looking);

impl Visitor for Looker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> Look {
        self.0.query(query)
    }
    fn post_visit_query(&mut self, query: &Query) -> Look {
        self.0.after_query(query)
    }
    fn pre_visit_relation(&mut self, relation: &ObjectName) -> Look {
        self.0.relation(relation)
    }
    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Look {
        self.0.table_factor(factor)
    }
    fn pre_visit_select(&mut self, select: &Select) -> Look {
        self.0.select(select)
    }
    fn pre_visit_expr(&mut self, expr: &Expr) -> Look {
        self.0.expr(expr)
    }
}

struct Changer<'a>(&'a mut dyn Changing);

impl VisitorMut for Changer<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        flow(self.0.query(query))
    }
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        flow(self.0.after_query(query))
    }
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        flow(self.0.table_factor(factor))
    }
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        flow(self.0.select(select))
    }
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        flow(self.0.expr(expr))
    }
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        flow(self.0.after_expr(expr))
    }
}

fn flow(result: Result<()>) -> ControlFlow<SqlError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}
