//! What is kept about each relation and each index.

use std::collections::BTreeSet;

use anabranch_batch::{Batch, Diffs};
use arrow::datatypes::{Schema, SchemaRef};

use anabranch_sql::index_parts::IndexPart;
use anabranch_sql::statement::ObjectKind;
use datafusion_expr::sqlparser::ast;

use super::created::ObjectId;
use super::rules::TableRules;
use super::watermark::{CLOCK, FOLLOWED, Watermark};
use crate::cluster::{ArrangementId, CollectionId, DataflowId};
use crate::coerce::Fitting;
use crate::error::Error;
use anabranch_plan::bounds::Promises;

/// A relation: table, source, view or materialized view.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its number, given by the catalog when it is added.
    pub id: ObjectId,
    /// How often its columns or rules were changed, and other tables came to refer to it: rows that
    /// fitted before may not fit now.
    pub n_altered: u64,
    pub name: String,
    pub kind: ObjectKind,
    /// Columns in planned types.
    pub schema: SchemaRef,
    /// Positions of the enforced primary key; empty without one.
    pub primary_key: Vec<usize>,
    /// `DEFAULT` of each column (tables only; else empty).
    pub defaults: Vec<Option<ast::Expr>>,
    /// The statement that made it, as written.
    pub definition: String,
    /// The query of a view, as written.
    pub query_text: Option<String>,
    /// Relations its query names, plain views included.
    pub reads: BTreeSet<String>,
    /// Its rows in the cluster; `None` for a plain view without an index.
    pub maintained: Option<Maintained>,
    /// `retain = 'none'`: rows are passed on and not kept.
    pub retain: Retain,
    /// Where its time stands, if it has one.
    pub watermark: Option<Watermark>,
    /// What a source was opened with.
    pub source: Option<SourceOptions>,
    /// The schema of rows that came last and fitted as they were.
    pub fitting: Option<Fitting>,
    /// Whether rows are only ever added: of sources, and of tables that are created so.
    pub is_append_only: bool,
    /// Whether the session made it for itself: it is not listed, and no other writer writes to it.
    pub is_hidden: bool,
    /// What its rows obey beside types, NOT NULL and the key.
    pub rules: TableRules,
}

/// Whether a table or source keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    All,
    /// Nothing until a query needs rows that have passed, which are then read again (sources only).
    OnDemand,
    /// Nothing; tells whether rows have been passed on already.
    Nothing {
        passed: bool,
    },
}

/// How a source was opened, for `SHOW SOURCES`.
#[derive(Clone, Debug)]
pub(crate) struct SourceOptions {
    pub connector: String,
}

/// A relation's rows in the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Maintained {
    pub collection: CollectionId,
    /// Whether the collection is an input that the session pushes to.
    pub is_input: bool,
    /// Arrangements of it, the first made first.
    pub arrangements: Vec<Arranged>,
    /// What is known of changes to come of a view's rows.
    pub promises: Promises,
}

/// An arrangement of a relation.
#[derive(Clone, Debug)]
pub(crate) struct Arranged {
    pub arrangement: ArrangementId,
    /// Key columns, positions in the relation's schema.
    pub key: Vec<usize>,
    /// The dataflow that makes it.
    pub dataflow: DataflowId,
    /// Names that own it: the relation itself, and indexes.
    pub owners: BTreeSet<String>,
}

/// A name for an arrangement.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// Its number, given by the catalog when it is added.
    pub id: ObjectId,
    pub name: String,
    pub relation: String,
    /// Key columns, positions in the relation's schema; of expressions, all columns that they name.
    pub key: Vec<usize>,
    /// Columns and expressions, where one is an expression.
    pub parts: Vec<IndexPart>,
    /// `None` of an index on expressions, which serves no look-ups.
    pub arrangement: Option<ArrangementId>,
    /// Whether rows that are equal in the key are refused.
    pub is_unique: bool,
    /// The statement that made it, as written.
    pub definition: String,
}

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexForm {
    /// Look-ups.
    Plain,
    /// `CREATE UNIQUE INDEX`.
    Unique,
    /// `UNIQUE` of a table, which the catalogs tell as a constraint.
    Constraint,
}

impl Index {
    /// What it is for. (The statement that makes a constraint alters its table.)
    pub fn form(&self) -> IndexForm {
        match self.is_unique {
            true if self.definition.starts_with(CONSTRAINT) => IndexForm::Constraint,
            true => IndexForm::Unique,
            false => IndexForm::Plain,
        }
    }

    /// Its expressions, where columns have other names.
    pub fn parts_over(&self, before: &Schema, after: &Schema) -> Vec<IndexPart> {
        let renamed = |name: &str| {
            let at = before.index_of(name).ok().filter(|at| self.key.contains(at))?;
            Some(after.field(at).name()).filter(|new| *new != name).cloned()
        };
        self.parts.iter().map(|part| part.renamed(&renamed)).collect()
    }
}

/// What the statement that makes a constraint begins with.
pub(crate) const CONSTRAINT: &str = "ALTER TABLE ";

impl Object {
    /// A relation that keeps all rows, has no key, no time and no rules, and is read by users.
    pub fn new(name: &str, kind: ObjectKind, schema: SchemaRef, definition: String) -> Object {
        Object {
            id: ObjectId::default(),
            n_altered: 0,
            name: name.to_owned(),
            kind,
            schema,
            primary_key: Vec::new(),
            defaults: Vec::new(),
            definition,
            query_text: None,
            reads: BTreeSet::new(),
            maintained: None,
            retain: Retain::All,
            watermark: None,
            source: None,
            fitting: None,
            is_append_only: false,
            is_hidden: false,
            rules: TableRules::default(),
        }
    }

    /// Whether it is there as long as something reads it: the clock, and system relations that are
    /// followed.
    pub fn comes_with_readers(&self) -> bool {
        self.is_hidden && (self.name == CLOCK || self.name.starts_with(FOLLOWED))
    }

    /// Whether reading it now gives all its rows.
    pub fn is_readable(&self) -> bool {
        match &self.maintained {
            Some(maintained) => !maintained.arrangements.is_empty(),
            None => self.query_text.is_some(),
        }
    }

    /// Whether rows that have passed are to be had only by reading the source again.
    pub fn is_kept_on_demand(&self) -> bool {
        self.retain == Retain::OnDemand && !self.is_readable()
    }

    /// Checks that nothing is taken out of an append-only relation.
    ///
    /// # Errors
    /// `Invalid` when something is.
    pub fn check_added(&self, batch: &Batch) -> Result<(), Error> {
        let takes = match batch.diffs() {
            Diffs::Constant(diff) => *diff < 0 && !batch.is_empty(),
            Diffs::Column(diffs) => diffs.iter().any(|diff| *diff < 0),
        };
        if !self.is_append_only || !takes {
            return Ok(());
        }
        Err(Error::invalid(format!("{} \"{}\" is append-only", kind_name(self.kind), self.name))
            .with_sqlstate("55000")
            .with_detail("Its rows cannot be changed or deleted, so that state of closed windows can be freed.")
            .with_hint("Create the table without APPEND ONLY."))
    }

    /// Names of the columns at these positions, comma separated.
    pub fn column_list(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|c| self.schema.field(*c).name().as_str()).collect();
        names.join(", ")
    }
}

/// The kind's name in messages.
pub(crate) fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "table",
        ObjectKind::Source => "source",
        ObjectKind::View => "view",
        ObjectKind::MaterializedView => "materialized view",
        ObjectKind::Index => "index",
        ObjectKind::Sequence => "sequence",
    }
}
