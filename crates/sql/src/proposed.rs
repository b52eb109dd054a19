//! The rows that `INSERT .. ON CONFLICT DO UPDATE` proposes, as a relation of the planner's own.
//!
//! `excluded` is the proposed row whole: what the statement gives, and the defaults of the columns
//! that it leaves out. The rows are there before the conflict is planned, so the plan scans a
//! relation in whose place the engine puts them.

use std::sync::Arc;

use datafusion_expr::sqlparser::ast;
use datafusion_expr::{AggregateUDF, ScalarUDF};

use crate::resolve::catalog::{Catalog, Relation};
use crate::syntax::statement::{CreateType, Made, ObjectKind};

/// The name of the relation in plans.
pub const PROPOSED: &str = "__proposed";

/// A catalog with the relation, whose columns are those of a table.
pub(crate) struct WithProposed<'a> {
    pub(crate) inner: &'a dyn Catalog,
    pub(crate) table: &'a str,
}

impl Catalog for WithProposed<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        if name != PROPOSED {
            return self.inner.relation(name);
        }
        let schema = self.inner.relation(self.table)?.schema;
        Some(Relation {
            name: PROPOSED.to_string(),
            kind: ObjectKind::Table,
            schema,
            primary_key: vec![],
            watermark: None,
            watermark_relation: None,
            view_query: None,
        })
    }

    fn names(&self) -> Vec<String> {
        self.inner.names()
    }

    fn defaults(&self, table: &str) -> Vec<Option<ast::Expr>> {
        self.inner.defaults(table)
    }

    fn made(&self, table: &str) -> Vec<Made> {
        self.inner.made(table)
    }

    fn unique_keys(&self, table: &str) -> Vec<Vec<usize>> {
        self.inner.unique_keys(table)
    }

    fn own(&self, name: &str) -> Option<String> {
        self.inner.own(name)
    }

    fn clock(&self) -> Option<Relation> {
        self.inner.clock()
    }

    fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.inner.function(name)
    }

    fn is_sequence(&self, name: &str) -> bool {
        self.inner.is_sequence(name)
    }

    fn user_type(&self, name: &str) -> Option<CreateType> {
        self.inner.user_type(name)
    }

    fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.inner.aggregate(name)
    }

    fn never_has_rows(&self, name: &str) -> bool {
        self.inner.never_has_rows(name)
    }

    fn is_indexed(&self, relation: &str, columns: &[usize]) -> bool {
        self.inner.is_indexed(relation, columns)
    }
}
