//! Statements that ask: prepared ones, cursors, subscriptions, plans; and those of transactions
//! and settings.

use datafusion_expr::sqlparser::ast;

use super::EmitClause;

/// `EXECUTE name [(values)]`.
#[derive(Clone, Debug)]
pub struct Execute {
    /// The prepared statement.
    pub name: String,
    /// Values of its parameters, expressions without columns.
    pub values: Vec<ast::Expr>,
}

/// Whether a cursor goes backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// Nothing was said.
    Unsaid,
    /// `SCROLL`.
    Yes,
    /// `NO SCROLL`.
    No,
}

/// `FETCH` and `MOVE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Whether it only moves.
    pub moves: bool,
    /// Which rows.
    pub direction: Direction,
    /// The cursor.
    pub cursor: String,
    /// How long to wait for changes, as written; without, until there are some.
    pub timeout: Option<String>,
}

/// Which rows a cursor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// So many further rows; a negative number goes backwards, 0 stays.
    Forward(i64),
    /// All further rows.
    All,
    /// All rows before, backwards.
    BackwardAll,
    /// The row of that number, from 1; from the end if negative.
    Absolute(i64),
    /// The row so many further on.
    Relative(i64),
}

/// How long a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// Until it is set again.
    Session,
    /// `LOCAL`: until the open transaction ends.
    Transaction,
}

/// `SUBSCRIBE [TO] name | (query) [ENVELOPE UPSERT (KEY (..))] [WITH (SNAPSHOT [= bool], PROGRESS
/// [= bool])] [AS OF t] [UP TO t]`.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// `SELECT * FROM name` when a name was given.
    pub query: Box<ast::Query>,
    /// Whether the present contents come first.
    pub snapshot: bool,
    /// Whether a row tells each time that is complete.
    pub progress: bool,
    /// `AS OF`: the time at which the changes begin, an expression without columns; the present
    /// without.
    pub as_of: Option<Box<ast::Expr>>,
    /// Stop before this time.
    pub up_to: Option<i64>,
    /// `ENVELOPE UPSERT (KEY (..))`: changes are told as new rows by these columns; empty tells
    /// rows with diffs.
    pub upsert_key: Vec<String>,
}

/// What EXPLAIN shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The plan that would run, and what of the plan exists already.
    Plan,
    /// The plan before and after each rewrite that changes it.
    Rewrites,
    /// The plan, run, and what each node has cost.
    Analyze,
    /// The query as a sharded program, which a person can edit and run.
    Program(ProgramLanguage),
}

/// The language that a sharded program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramLanguage {
    /// `FORMAT python`.
    Python,
    /// `FORMAT rust`.
    Rust,
}

/// `EXPLAIN [ANALYZE | LOGICAL | PHYSICAL | (REWRITES) | (FORMAT python)] statement [EMIT ON WINDOW
/// CLOSE]`.
#[derive(Clone, Debug)]
pub struct Explain {
    /// What is shown.
    pub shows: Shows,
    /// The query.
    pub query: Box<ast::Query>,
    /// The relation that is named alone, in place of a query.
    pub relation: Option<String>,
    /// When rows appear, of a view with that query.
    pub emit: EmitClause,
}

/// `SHOW ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// All tables.
    Tables,
    /// All schemas, those of the system not.
    Schemas,
    /// All databases, of which there is one.
    Databases,
    /// All sources.
    Sources,
    /// All plain views.
    Views,
    /// All materialized views.
    MaterializedViews,
    /// All indexes, or those of a relation.
    Indexes {
        /// The relation.
        on: Option<String>,
    },
    /// Key, rows, bytes, readers, since, upper and the slowest reader of every arrangement.
    Arrangements,
    /// Rows, time, state and its bound of every operator.
    Operators,
    /// The time of the last commit.
    Time,
    /// How long the workers' operators ran without a pause.
    Steps,
    /// Where the time of tables and sources with a watermark stands, and how many rows came too
    /// late.
    Watermarks,
    /// Columns of a relation.
    Columns {
        /// The relation.
        relation: String,
    },
    /// The statement that creates a relation.
    Create {
        /// The relation.
        relation: String,
    },
    /// A setting, or all of them.
    Setting {
        /// The setting.
        name: Option<String>,
    },
}

/// What follows the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// No transaction.
    Nothing,
    /// `AND CHAIN`: a transaction that may do what this one might.
    Another,
}

/// What a LOCK of a table keeps off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// No rows of others: ACCESS SHARE to SHARE UPDATE EXCLUSIVE.
    Definitions,
    /// Rows of others, too: SHARE to ACCESS EXCLUSIVE.
    Rows,
}

/// A statement that begins or ends a transaction, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStatement {
    /// `BEGIN` and `START TRANSACTION`, whatever the level of isolation.
    Begin {
        /// Whether it may write.
        access: Access,
        /// What the client is told: `BEGIN` or `START TRANSACTION`.
        tag: &'static str,
    },
    /// `COMMIT` and `END`.
    Commit {
        /// What follows.
        then: Afterwards,
    },
    /// `ROLLBACK` and `ABORT`.
    Rollback {
        /// What follows.
        then: Afterwards,
    },
    /// `SAVEPOINT name`.
    Savepoint {
        /// Its name; several may have one name.
        name: String,
    },
    /// `RELEASE [SAVEPOINT] name`: it and those after it are forgotten.
    Release {
        /// Its name.
        name: String,
    },
    /// `ROLLBACK TO [SAVEPOINT] name`: what came after it is taken back.
    RollbackTo {
        /// Its name.
        name: String,
    },
}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes.
    ReadWrite,
    /// Reads alone.
    ReadOnly,
}
