//! What planning asks of a catalog.

use std::sync::Arc;

use anabranch_plan::bounds::Promises;
use arrow::datatypes::SchemaRef;
use datafusion_expr::sqlparser::ast;
use datafusion_expr::{AggregateUDF, ScalarUDF};

use crate::syntax::statement::{CreateType, Made, ObjectKind, Watermark};

/// The relations that names may refer to. Names are as PostgreSQL folds them: lower case unless
/// quoted.
pub trait Catalog: Sync {
    /// The relation of that name.
    fn relation(&self, name: &str) -> Option<Relation>;

    /// All names, for "did you mean" hints.
    fn names(&self) -> Vec<String>;

    /// `DEFAULT` of each column of a table, as in
    /// [`CreateTable`](crate::syntax::statement::CreateTable). May be shorter than the columns;
    /// what is missing is NULL.
    fn defaults(&self, table: &str) -> Vec<Option<ast::Expr>> {
        let _ = table;
        vec![]
    }

    /// Where the values of each column of a table come from. May be shorter than the columns; what
    /// is missing is given.
    fn made(&self, table: &str) -> Vec<Made> {
        let _ = table;
        vec![]
    }

    /// Columns of a table in which rows differ, beside its primary key.
    fn unique_keys(&self, table: &str) -> Vec<Vec<usize>> {
        let _ = table;
        vec![]
    }

    /// The catalog's name of what a client means by a plain name; `None` is the name itself.
    fn own(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The relation that holds the time of the last commit, one row of one column `watermark`;
    /// asked for by conditions of standing queries that compare with `now()`.
    fn clock(&self) -> Option<Relation> {
        None
    }

    /// A function of a user's, or one that tells of the catalog, as of now.
    fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let _ = name;
        None
    }

    /// Whether a name is that of a sequence.
    fn is_sequence(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// A user's type.
    fn user_type(&self, name: &str) -> Option<CreateType> {
        let _ = name;
        None
    }

    /// An aggregate of a user's, made by [`UserAggregateFunction`](crate::UserAggregateFunction).
    fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let _ = name;
        None
    }

    /// Whether a system relation is there for its name alone.
    fn never_has_rows(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// What watermarks say of changes to come of a relation's rows, UPDATE and DELETE left aside;
    /// `None` for nothing.
    fn promises(&self, relation: &str) -> Option<Promises> {
        let _ = relation;
        None
    }

    /// Whether no two rows of a relation agree in these columns (positions in its schema): they
    /// hold its primary key, or another one.
    fn has_key(&self, relation: &str, columns: &[usize]) -> bool {
        let holds = |key: &[usize]| !key.is_empty() && key.iter().all(|column| columns.contains(column));
        self.relation(relation).is_some_and(|relation| holds(&relation.primary_key))
            || self.unique_keys(relation).iter().any(|key| holds(key))
    }

    /// Whether a relation is indexed by these columns (positions in its schema), in some order, and
    /// plans may rely on the index.
    fn is_indexed(&self, relation: &str, columns: &[usize]) -> bool {
        let _ = (relation, columns);
        false
    }
}

/// A relation as planning sees it.
#[derive(Clone, Debug)]
pub struct Relation {
    /// Its catalog name.
    pub name: String,
    /// Table, Source, View or MaterializedView.
    pub kind: ObjectKind,
    /// Columns, with the types that batches carry.
    pub schema: SchemaRef,
    /// Positions of the primary key's columns; empty without one.
    pub primary_key: Vec<usize>,
    /// When the time of its rows is known to have passed, if that was said.
    pub watermark: Option<Watermark>,
    /// The relation that holds the watermark, one row of one column `watermark`, if it has one.
    pub watermark_relation: Option<String>,
    /// For a plain view: the query to plan in its place, and the names of its columns.
    pub view_query: Option<String>,
}
