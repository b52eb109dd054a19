//! Statements that define relations and types, and rules of their rows.

use arrow::datatypes::Field;
use datafusion_expr::sqlparser::ast;

use crate::syntax::index_parts::IndexPart;
use crate::syntax::references::ForeignKey;
use crate::syntax::span::Span;

/// `CREATE TABLE [IF NOT EXISTS] name (columns, PRIMARY KEY (..)) [APPEND ONLY] [WITH (..)]`.
#[derive(Clone, Debug)]
pub struct CreateTable {
    /// Name of the object.
    pub name: String,
    /// Whether an object of that name is left as it is.
    pub if_not_exists: bool,
    /// `LIKE`: the table whose columns come before.
    pub like: Option<LikeClause>,
    /// Columns with resolved Arrow types and nullability.
    pub columns: Vec<Field>,
    /// `DEFAULT` of each column, as SQL expressions without column references.
    pub defaults: Vec<Option<ast::Expr>>,
    /// Positions of the primary key's columns; empty without one.
    pub primary_key: Vec<usize>,
    /// `UNIQUE`, which are indexes of their own once the table is there.
    pub uniques: Vec<UniqueClause>,
    /// `WATERMARK FOR`.
    pub watermark: Option<Watermark>,
    /// `APPEND ONLY`: rows are never changed or deleted.
    pub is_append_only: bool,
    /// `WITH` options: lower-case name, unquoted value, in order.
    pub options: Vec<(String, String)>,
    /// What its rows obey beside types, NOT NULL and the key.
    pub rules: Rules,
    /// How long it is there.
    pub lifetime: LifetimeClause,
}

/// `LIKE table [INCLUDING ..]`: columns with the names, types and NOT NULL of another table's.
#[derive(Clone, Debug, Default)]
pub struct LikeClause {
    /// The table.
    pub table: String,
    /// `INCLUDING DEFAULTS`.
    pub defaults: bool,
    /// `INCLUDING GENERATED`: how columns are computed.
    pub generated: bool,
    /// `INCLUDING IDENTITY`: how columns number rows.
    pub identity: bool,
    /// `INCLUDING CONSTRAINTS`: CHECK.
    pub checks: bool,
    /// `INCLUDING INDEXES`: the primary key and UNIQUE.
    pub keys: bool,
}

/// `[CONSTRAINT name] UNIQUE (columns)`: no two rows are equal in all of them. NULL equals nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueClause {
    /// `None` asks the session to make one up: `table_columns_key`.
    pub name: Option<String>,
    /// Names of columns.
    pub columns: Vec<String>,
}

/// How long a table is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifetimeClause {
    /// Until it is dropped.
    #[default]
    Lasting,
    /// `TEMPORARY`: until its client goes, and for no other client.
    OfClient,
}

/// What the rows of a table obey beside types, NOT NULL and the key.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `CHECK`.
    pub checks: Vec<Check>,
    /// Where the values of each column come from; columns beyond the end are given.
    pub made: Vec<Made>,
    /// `FOREIGN KEY` and `REFERENCES`.
    pub references: Vec<ForeignKey>,
}

impl Rules {
    /// Where the values of a column come from.
    pub fn made(&self, column: usize) -> &Made {
        self.made.get(column).unwrap_or(&Made::Given)
    }
}

/// `CREATE TYPE .. AS ENUM` and `CREATE DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateType {
    /// The type.
    pub name: String,
    /// What it is.
    pub definition: TypeDefinition,
}

/// What a user's type is.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeDefinition {
    /// The labels in their order.
    Enum(Vec<String>),
    /// A type with conditions.
    Domain(Box<Domain>),
}

/// `CREATE DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// The type of its values.
    pub base: ast::DataType,
    /// The default of columns.
    pub default: Option<ast::Expr>,
    /// Whether NULL is no value.
    pub is_not_null: bool,
    /// Conditions over `VALUE`, with the names that were given.
    pub checks: Vec<(Option<String>, ast::Expr)>,
}

impl Domain {
    /// The conditions with their names, made up where none was given.
    pub fn named_checks(&self, domain: &str) -> Vec<(String, ast::Expr)> {
        let mut named: Vec<(String, ast::Expr)> = Vec::with_capacity(self.checks.len());
        for (name, expr) in &self.checks {
            let is_free = |name: &String| named.iter().all(|(known, _)| known != name);
            let base = format!("{domain}_check");
            let mut tried = std::iter::once(base.clone()).chain((1..).map(|n| format!("{base}{n}")));
            let name = name.clone().or_else(|| tried.find(is_free)).unwrap_or(base);
            named.push((name, expr.clone()));
        }
        named
    }
}

/// `ALTER TYPE name ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterType {
    /// The enumeration.
    pub name: String,
    /// What becomes of its labels.
    pub change: LabelChange,
}

/// A change of the labels of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelChange {
    /// A label more.
    Add(AddLabel),
    /// `RENAME VALUE from TO to`.
    Rename {
        /// The label as it is.
        from: String,
        /// The label as it shall be.
        to: String,
    },
}

/// `ADD VALUE [IF NOT EXISTS] label [{BEFORE | AFTER} other]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddLabel {
    /// The new label.
    pub label: String,
    /// Whether a label that is there is left as it is.
    pub is_lenient: bool,
    /// Whether the label stands before another, and that one.
    pub beside: Option<(bool, String)>,
}

/// `[CONSTRAINT name] CHECK (expr)`: no row for which the condition is false.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, made up if none was given.
    pub name: String,
    /// The condition, over the table's columns.
    pub expr: ast::Expr,
    /// The user's type whose check it is, and the column of that type.
    pub of_type: Option<(CreateType, String)>,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, Default)]
pub enum Made {
    /// The statement that writes the row, or the column's default.
    #[default]
    Given,
    /// `GENERATED ALWAYS AS (expr) STORED`: the row's other columns.
    Computed(Box<ast::Expr>),
    /// `serial` and `AS IDENTITY`: a counter.
    Numbered(Numbering),
}

/// The counter of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// How it was declared.
    pub form: NumberingForm,
    /// The first number.
    pub start: i64,
    /// From a number to the next.
    pub step: i64,
}

/// How a counter was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberingForm {
    /// `serial` and its like: a number where none is given.
    Serial,
    /// `GENERATED BY DEFAULT AS IDENTITY`: likewise.
    ByDefault,
    /// `GENERATED ALWAYS AS IDENTITY`: none may be given.
    Always,
}

/// `CREATE TABLE [IF NOT EXISTS] name [(names)] AS query`: a table with the answer of today.
#[derive(Clone, Debug)]
pub struct CreateTableAs {
    /// Name of the object.
    pub name: String,
    /// How long it is there.
    pub lifetime: LifetimeClause,
    /// Whether an object of that name is left as it is.
    pub if_not_exists: bool,
    /// Names for the query's columns; empty keeps them.
    pub column_names: Vec<String>,
    /// The query.
    pub query: Box<ast::Query>,
}

/// `CREATE SOURCE [IF NOT EXISTS] name [(columns)] WITH (connector = .., ..)`.
#[derive(Clone, Debug)]
pub struct CreateSource {
    /// Name of the object.
    pub name: String,
    /// Whether an object of that name is left as it is.
    pub if_not_exists: bool,
    /// Declared columns; empty when the connector is to find them.
    pub columns: Vec<Field>,
    /// Positions of the primary key's columns; empty without one.
    pub primary_key: Vec<usize>,
    /// `WATERMARK FOR`.
    pub watermark: Option<Watermark>,
    /// `WITH` options: lower-case name, unquoted value, in order.
    pub options: Vec<(String, String)>,
}

/// `CREATE [OR REPLACE] [MATERIALIZED] VIEW [IF NOT EXISTS] name [(names)] AS query`.
#[derive(Clone, Debug)]
pub struct CreateView {
    /// Name of the object.
    pub name: String,
    /// Whether the rows are kept.
    pub materialized: bool,
    /// How long it is there.
    pub lifetime: LifetimeClause,
    /// Whether an object of that name is left as it is.
    pub if_not_exists: bool,
    /// Whether a view of that name gives way.
    pub or_replace: bool,
    /// Names for the query's columns; empty keeps them.
    pub column_names: Vec<String>,
    /// The query.
    pub query: Box<ast::Query>,
    /// The query as written, for `SHOW CREATE` and for planning a plain view where it is used.
    pub query_text: String,
    /// When its rows appear.
    pub emit: EmitClause,
}

/// When the rows of a view appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitClause {
    /// At once, and they change with the view's inputs.
    Changes,
    /// `EMIT ON WINDOW CLOSE`: once the watermark has passed the end of their window.
    OnWindowClose,
}

/// `WATERMARK FOR column AS column [- delay]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// The column of times.
    pub column: String,
    /// How far time stays behind the latest row.
    pub delay: Span,
}

/// `CREATE INDEX [IF NOT EXISTS] [name] ON relation (columns)`.
#[derive(Clone, Debug)]
pub struct CreateIndex {
    /// `None` asks the session to make one up: `relation_columns_idx`.
    pub name: Option<String>,
    /// Whether an object of that name is left as it is.
    pub if_not_exists: bool,
    /// Relation that is indexed.
    pub relation: String,
    /// Columns, in order; none where one of them is an expression.
    pub columns: Vec<String>,
    /// Columns and expressions, where one is an expression.
    pub parts: Vec<IndexPart>,
    /// `UNIQUE`: rows of a table that are equal in them are refused.
    pub is_unique: bool,
}
