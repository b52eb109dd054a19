//! The statements a session understands, after parsing and before planning.
//!
//! Queries stay syntax trees here and are planned against the catalog when they run; everything a session needs to
//! act on a statement without SQL knowledge is plain data.

use arrow::datatypes::Field;
use datafusion_expr::sqlparser::ast;

/// One statement of a script.
#[derive(Clone, Debug)]
pub enum Statement {
    CreateTable(CreateTable),
    CreateSource(CreateSource),
    CreateView(CreateView),
    CreateIndex(CreateIndex),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    CopyFrom(CopyFrom),
    /// A query whose answer is wanted once. The text is the statement as written.
    Select { query: Box<ast::Query>, text: String },
    Subscribe(Subscribe),
    Explain(Explain),
    Show(Show),
    /// Columns of a relation.
    Describe { name: String },
    Drop(Drop),
    /// `SET name = value`.
    Set { name: String, value: String },
}

/// `CREATE TABLE [IF NOT EXISTS] name (columns, PRIMARY KEY (..)) [WITH (..)]`.
#[derive(Clone, Debug)]
pub struct CreateTable {
    pub name: String,
    pub if_not_exists: bool,
    /// Columns with resolved Arrow types and nullability.
    pub columns: Vec<Field>,
    /// `DEFAULT` of each column, as SQL expressions without column references.
    pub defaults: Vec<Option<ast::Expr>>,
    /// Positions of the primary key's columns; empty without one.
    pub primary_key: Vec<usize>,
    /// `WITH` options: lower-case name, unquoted value, in order.
    pub options: Vec<(String, String)>,
}

/// `CREATE SOURCE [IF NOT EXISTS] name [(columns)] WITH (connector = .., ..)`.
#[derive(Clone, Debug)]
pub struct CreateSource {
    pub name: String,
    pub if_not_exists: bool,
    /// Declared columns; empty when the connector is to find them.
    pub columns: Vec<Field>,
    pub primary_key: Vec<usize>,
    pub options: Vec<(String, String)>,
}

/// `CREATE [OR REPLACE] [MATERIALIZED] VIEW [IF NOT EXISTS] name [(names)] AS query`.
#[derive(Clone, Debug)]
pub struct CreateView {
    pub name: String,
    pub materialized: bool,
    pub if_not_exists: bool,
    pub or_replace: bool,
    /// Names for the query's columns; empty keeps them.
    pub column_names: Vec<String>,
    pub query: Box<ast::Query>,
    /// The query as written, for `SHOW CREATE` and for planning a plain view where it is used.
    pub query_text: String,
}

/// `CREATE INDEX [IF NOT EXISTS] [name] ON relation (columns)`.
#[derive(Clone, Debug)]
pub struct CreateIndex {
    /// `None` asks the session to make one up: `relation_columns_idx`.
    pub name: Option<String>,
    pub if_not_exists: bool,
    pub relation: String,
    pub columns: Vec<String>,
}

/// `INSERT INTO table [(columns)] query`.
#[derive(Clone, Debug)]
pub struct Insert {
    pub table: String,
    /// Target columns; empty means all, in order.
    pub columns: Vec<String>,
    /// The rows: `VALUES` or any query.
    pub query: Box<ast::Query>,
}

/// `UPDATE table SET .. [WHERE ..]`.
#[derive(Clone, Debug)]
pub struct Update {
    pub table: String,
    /// Column name and new value over the table's columns.
    pub assignments: Vec<(String, ast::Expr)>,
    pub selection: Option<ast::Expr>,
}

/// `DELETE FROM table [WHERE ..]`.
#[derive(Clone, Debug)]
pub struct Delete {
    pub table: String,
    pub selection: Option<ast::Expr>,
}

/// `COPY table [(columns)] FROM 'path' [WITH] (options)`.
#[derive(Clone, Debug)]
pub struct CopyFrom {
    pub table: String,
    pub columns: Vec<String>,
    pub path: String,
    /// Lower-case name, unquoted value: `format`, `header`, `delimiter`, `null`, `on_error` ..
    pub options: Vec<(String, String)>,
}

/// `SUBSCRIBE [TO] name | (query) [WITH (SNAPSHOT [= bool], PROGRESS [= bool])] [AS OF t] [UP TO t]`.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// `SELECT * FROM name` when a name was given.
    pub query: Box<ast::Query>,
    /// Whether the present contents come first.
    pub snapshot: bool,
    /// Whether a row tells each time that is complete.
    pub progress: bool,
    /// Stop before this time.
    pub up_to: Option<i64>,
}

/// `EXPLAIN [LOGICAL | PHYSICAL] statement`.
#[derive(Clone, Debug)]
pub struct Explain {
    pub query: Box<ast::Query>,
}

/// `SHOW ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    Tables,
    Sources,
    Views,
    MaterializedViews,
    /// All indexes, or those of a relation.
    Indexes { on: Option<String> },
    /// Key, rows, bytes, readers, since, upper of every arrangement.
    Arrangements,
    Columns { relation: String },
    Create { relation: String },
    /// A setting, or all of them.
    Setting { name: Option<String> },
}

/// `DROP kind [IF EXISTS] name [, ..] [CASCADE | RESTRICT]`.
#[derive(Clone, Debug)]
pub struct Drop {
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub names: Vec<String>,
    pub cascade: bool,
}

/// The kinds of catalog objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Table,
    Source,
    View,
    MaterializedView,
    Index,
}
