//! Statements that change rows.

use datafusion_expr::sqlparser::ast;

/// `MERGE INTO table USING ..`: changes of one table that are one.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Name of the table.
    pub table: String,
    /// What becomes of rows: none is changed by two of the parts.
    pub parts: Vec<MergePart>,
}

/// What a WHEN of a MERGE makes of the rows for which it holds.
#[derive(Clone, Debug)]
pub enum MergePart {
    /// `UPDATE SET ..`.
    Update(Update),
    /// `DELETE`.
    Delete(Delete),
    /// `INSERT ..`.
    Insert(Insert),
}

/// `TRUNCATE [TABLE] name, .. [RESTART IDENTITY] [CASCADE]`: all rows of the tables go.
#[derive(Clone, Debug)]
pub struct Truncate {
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Whether columns that number rows begin anew.
    pub restarts: bool,
    /// Whether tables that refer to these go along.
    pub cascade: bool,
}

/// `INSERT INTO table [(columns)] query`.
#[derive(Clone, Debug)]
pub struct Insert {
    /// Table that is changed.
    pub table: String,
    /// Its name in `ON CONFLICT` and `RETURNING`, if it has another there.
    pub alias: Option<String>,
    /// Target columns; empty means all, in order.
    pub columns: Vec<String>,
    /// The rows: `VALUES` or any query.
    pub query: Box<ast::Query>,
    /// `ON CONFLICT`: what becomes of rows whose primary key is there.
    pub conflict: Option<Conflict>,
    /// `RETURNING` items over the new rows.
    pub returning: Option<Vec<ast::SelectItem>>,
    /// `OVERRIDING ..`: whose values count in columns that number rows.
    pub overriding: Overriding,
}

/// Whose values count in columns that number rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overriding {
    /// The user's, unless the column is `GENERATED ALWAYS`.
    #[default]
    Unsaid,
    /// `OVERRIDING SYSTEM VALUE`: the user's.
    System,
    /// `OVERRIDING USER VALUE`: the column's.
    User,
}

/// `ON CONFLICT [(columns)] DO NOTHING | DO UPDATE SET .. [WHERE ..]`.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The columns named; empty means the primary key.
    pub columns: Vec<String>,
    /// `ON CONSTRAINT`: the key by its name, in place of its columns.
    pub constraint: Option<String>,
    /// Column name and new value, over the table's columns and those of `excluded`; `None` for DO
    /// NOTHING.
    pub update: Option<Vec<(String, ast::Expr)>>,
    /// Rows that are changed; `None` takes all.
    pub selection: Option<ast::Expr>,
}

/// `UPDATE table SET .. [WHERE ..]`.
#[derive(Clone, Debug)]
pub struct Update {
    /// Table that is changed.
    pub table: String,
    /// Column name and new value over the table's columns.
    pub assignments: Vec<(String, ast::Expr)>,
    /// Condition on the rows; `None` takes all.
    pub selection: Option<ast::Expr>,
    /// Another name for the table within the statement.
    pub alias: Option<String>,
    /// `FROM`: what the rows are joined with.
    pub from: Vec<ast::TableWithJoins>,
    /// `RETURNING` items over the new rows.
    pub returning: Option<Vec<ast::SelectItem>>,
    /// `WITH` before the statement: queries that its conditions and values may name.
    pub with: Option<ast::With>,
}

/// `DELETE FROM table [WHERE ..]`.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Table that is changed.
    pub table: String,
    /// Condition on the rows; `None` takes all.
    pub selection: Option<ast::Expr>,
    /// Another name for the table within the statement.
    pub alias: Option<String>,
    /// `USING`: what the rows are joined with.
    pub using: Vec<ast::TableWithJoins>,
    /// `RETURNING` items over the rows that are gone.
    pub returning: Option<Vec<ast::SelectItem>>,
    /// `WITH` before the statement: queries that its condition may name.
    pub with: Option<ast::With>,
}
