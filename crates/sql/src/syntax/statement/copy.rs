//! COPY: rows between a relation and a file or the client.

use datafusion_expr::sqlparser::ast;

use super::ask::Subscribe;

/// `COPY table [(columns)] FROM {'path' | STDIN} [WITH] (options) [WHERE condition]`.
#[derive(Clone, Debug)]
pub struct CopyFrom {
    /// Table that is changed.
    pub table: String,
    /// Columns, in order; empty means all.
    pub columns: Vec<String>,
    /// Where the rows come from.
    pub from: CopyEnd,
    /// What they look like.
    pub options: CopyOptions,
    /// What the rows must fulfil that are copied.
    pub condition: Option<Box<ast::Expr>>,
}

/// `COPY {table [(columns)] | (query)} TO {'path' | STDOUT} [WITH] (options)`.
#[derive(Clone, Debug)]
pub struct CopyTo {
    /// What is copied.
    pub copied: Copied,
    /// Where the rows go.
    pub to: CopyEnd,
    /// What they look like.
    pub options: CopyOptions,
}

/// What `COPY .. TO` copies.
#[derive(Clone, Debug)]
pub enum Copied {
    /// A relation's rows.
    Table {
        /// The relation.
        name: String,
        /// Columns, in order; empty means all.
        columns: Vec<String>,
    },
    /// A query's answer.
    Query(Box<ast::Query>),
    /// A query's changes.
    Changes(Box<Subscribe>),
}

/// The other end of a COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyEnd {
    /// A file where the engine runs.
    Path(String),
    /// STDIN or STDOUT: the client.
    Client,
}

/// Options of COPY.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// Lower-case name, unquoted value: `format`, `header`, `delimiter`, `null`, `on_error` ..
    pub plain: Vec<(String, String)>,
    /// Columns whose values are quoted always.
    pub force_quote: Option<CopyColumns>,
    /// Columns whose values are never NULL.
    pub force_not_null: Option<CopyColumns>,
    /// Columns in which a quoted value may be NULL.
    pub force_null: Option<CopyColumns>,
}

/// Columns that an option of COPY names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyColumns {
    /// `*`.
    All,
    /// Those.
    Named(Vec<String>),
}
