//! How much of a query there is once each query in WITH stands wherever it is read, and how many
//! subqueries stand around one: told from the syntax tree, before a step of planning follows both.
//!
//! Law: what is told is at least what the planner will look through, but for views. Cost: one walk.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{Expr, Ident, ObjectName, Query, Select, TableFactor};

use crate::syntax::names::fold;
use crate::syntax::walk::{Look, Looking, look};

/// The size of a query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// SELECTs and entries of FROM, those of queries in WITH counted as often as they are read.
    pub steps: usize,
    /// The most subqueries of expressions around one.
    pub subqueries: usize,
}

/// How large a query is.
pub(crate) fn size(query: &Query) -> Size {
    let mut sizes = Sizes { open: vec![Open::default()], roles: HashMap::new(), n_around: 0, subqueries: 0 };
    look(query, &mut sizes);
    let steps = sizes.open.iter().fold(0_usize, |sum, open| sum.saturating_add(open.steps));
    Size { steps, subqueries: sizes.subqueries }
}

struct Sizes {
    /// Queries that have begun, outer ones first; the first stands for what is around them all.
    open: Vec<Open>,
    /// What is known of queries that are still to come, by their places in memory.
    roles: HashMap<*const Query, Role>,
    /// Subqueries of expressions that have begun.
    n_around: usize,
    subqueries: usize,
}

/// A query that has begun.
#[derive(Default)]
struct Open {
    steps: usize,
    /// Steps of the queries of its WITH that are over.
    named: HashMap<String, usize>,
    role: Option<Role>,
}

#[derive(Clone)]
enum Role {
    /// A query of a WITH, by its name.
    Named(String),
    /// A subquery of an expression.
    Subquery,
}

impl Sizes {
    fn add(&mut self, steps: usize) {
        if let Some(open) = self.open.last_mut() {
            open.steps = open.steps.saturating_add(steps);
        }
    }

    fn steps_of(&self, name: &ObjectName) -> usize {
        let [part] = name.0.as_slice() else { return 0 };
        let Some(name) = part.as_ident().map(|ident: &Ident| fold(ident)) else { return 0 };
        self.open.iter().rev().find_map(|open| open.named.get(&name).copied()).unwrap_or(0)
    }
}

impl Looking for Sizes {
    fn query(&mut self, query: &Query) -> Look {
        let role = self.roles.remove(&std::ptr::from_ref(query));
        if matches!(role, Some(Role::Subquery)) {
            self.n_around += 1;
            self.subqueries = self.subqueries.max(self.n_around);
        }
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.roles.insert(std::ptr::from_ref(&*named.query), Role::Named(fold(&named.alias.name)));
        }
        self.open.push(Open { role, ..Open::default() });
        ControlFlow::Continue(())
    }

    fn after_query(&mut self, _query: &Query) -> Look {
        let Some(ended) = self.open.pop() else { return ControlFlow::Continue(()) };
        match (ended.role, self.open.last_mut()) {
            (Some(Role::Named(name)), Some(around)) => {
                around.named.insert(name, ended.steps);
            }
            (role, _) => {
                self.n_around -= usize::from(matches!(role, Some(Role::Subquery)));
                self.add(ended.steps);
            }
        }
        ControlFlow::Continue(())
    }

    fn table_factor(&mut self, factor: &TableFactor) -> Look {
        let read = if let TableFactor::Table { name, .. } = factor { self.steps_of(name) } else { 0 };
        self.add(read.saturating_add(1));
        ControlFlow::Continue(())
    }

    fn select(&mut self, _select: &Select) -> Look {
        self.add(1);
        ControlFlow::Continue(())
    }

    fn expr(&mut self, expr: &Expr) -> Look {
        let mut subquery = |query: &Query| {
            self.roles.insert(std::ptr::from_ref(query), Role::Subquery);
        };
        match expr {
            Expr::Subquery(query) | Expr::Exists { subquery: query, .. } | Expr::InSubquery { subquery: query, .. } => {
                subquery(query);
            }
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
                if let Expr::Subquery(query) = &**right {
                    subquery(query);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::sqlparser::ast::Statement;
    use datafusion_expr::sqlparser::parser::Parser;

    use super::*;
    use crate::syntax::dialect::Postgres;

    fn sized(text: &str) -> (usize, usize) {
        let statement = Parser::new(&Postgres).try_with_sql(text).unwrap().parse_statement().unwrap();
        let Statement::Query(query) = statement else { panic!("{text}") };
        let Size { steps, subqueries } = size(&query);
        (steps, subqueries)
    }

    #[test]
    fn queries_in_with_count_where_they_are_read() {
        assert_eq!(sized("SELECT a FROM t"), (2, 0));
        assert_eq!(sized("WITH c AS (SELECT a FROM t) SELECT 1"), (1, 0));
        assert_eq!(sized("WITH c AS (SELECT a FROM t) SELECT 1 FROM c, C"), (7, 0));
        assert_eq!(
            sized("WITH c AS (SELECT a FROM t) SELECT 1 FROM (WITH c AS (SELECT 1) SELECT 2 FROM c) x, c"),
            (8, 0)
        );
        assert_eq!(sized("WITH RECURSIVE c AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT 1 FROM c"), (5, 0));
        let doubled: String = (1..200).map(|n| format!(", d{n} AS (SELECT 1 FROM d{0}, d{0})", n - 1)).collect();
        assert_eq!(sized(&format!("WITH d0 AS (SELECT 1){doubled} SELECT 1 FROM d199")), (usize::MAX, 0));
    }

    #[test]
    fn subqueries_of_expressions_are_counted_and_derived_tables_not() {
        assert_eq!(sized("SELECT (SELECT 1) + (SELECT 2 WHERE 1 IN (SELECT 3))").1, 2);
        assert_eq!(sized("SELECT 1 FROM (SELECT 1 FROM (SELECT 2) b) c").1, 0);
        assert_eq!(sized("SELECT 1 = ANY (SELECT 2 WHERE EXISTS (SELECT 3)), ARRAY(SELECT 4)").1, 2);
    }
}
