//! The statements a session understands, after parsing and before planning.
//!
//! Queries stay syntax trees here and are planned against the catalog when they run; everything a
//! session needs to act on a statement without SQL knowledge is plain data.

mod alter;
mod ask;
mod copy;
mod define;
mod write;

use std::ops::Range;

use anabranch_batch::TextLimit;
use arrow::datatypes::DataType;
use datafusion_expr::sqlparser::ast;

use crate::stack::with_deep_stack;
use crate::syntax::sequence::SequenceStatement;

pub use alter::{Alter, AlterAction, Drop, NewColumn, ObjectKind};
pub use ask::{
    Access, Afterwards, Direction, Execute, Explain, Fetch, LockMode, ProgramLanguage, Scroll, SettingScope, Show,
    Shows, Subscribe, TransactionStatement,
};
pub use copy::{Copied, CopyColumns, CopyEnd, CopyFrom, CopyOptions, CopyTo};
pub use define::{
    AddLabel, AlterType, Check, CreateIndex, CreateSource, CreateTable, CreateTableAs, CreateType, CreateView, Domain,
    EmitClause, LabelChange, LifetimeClause, LikeClause, Made, Numbering, NumberingForm, Rules, TypeDefinition,
    UniqueClause, Watermark,
};
pub use write::{Conflict, Delete, Insert, Merge, MergePart, Overriding, Truncate, Update};

/// A statement and where it stands.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// Its byte range in the text, without the `;`.
    pub range: Range<usize>,
    /// The greatest number of its parameters `$1`, `$2` ..; 0 without any.
    pub parameters: usize,
    /// Schemas in which the statement makes something.
    pub schemas: Vec<String>,
}

/// One statement of a script.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `CREATE TABLE`.
    CreateTable(CreateTable),
    /// `CREATE TABLE .. AS query`.
    CreateTableAs(CreateTableAs),
    /// `CREATE SOURCE`.
    CreateSource(CreateSource),
    /// `CREATE VIEW` and `CREATE MATERIALIZED VIEW`.
    CreateView(CreateView),
    /// `CREATE INDEX`.
    CreateIndex(CreateIndex),
    /// `INSERT`.
    Insert(Insert),
    /// `UPDATE`.
    Update(Update),
    /// `DELETE`.
    Delete(Delete),
    /// `MERGE`.
    Merge(Merge),
    /// A statement whose WITH changes tables.
    ChangesInWith(Box<ChangesInWith>),
    /// `TRUNCATE`.
    Truncate(Truncate),
    /// `COPY .. FROM`.
    CopyFrom(CopyFrom),
    /// `COPY .. TO`.
    CopyTo(CopyTo),
    /// A query whose answer is wanted once. The text is the statement as written.
    Select {
        /// The query.
        query: Box<ast::Query>,
        /// `AS OF`: the time of the contents wanted, an expression without columns; the present
        /// without.
        as_of: Option<Box<ast::Expr>>,
        /// The statement as written.
        text: String,
    },
    /// `SUBSCRIBE`.
    Subscribe(Subscribe),
    /// `EXPLAIN`.
    Explain(Explain),
    /// `EXPLAIN` of an INSERT, UPDATE or DELETE.
    ExplainChange(Box<Statement>),
    /// `SHOW`.
    Show(Show),
    /// Columns of a relation.
    Describe {
        /// The relation.
        name: String,
    },
    /// `DROP`.
    Drop(Drop),
    /// `ALTER TABLE`, and `ALTER .. RENAME` of other objects.
    Alter(Alter),
    /// `CREATE SEQUENCE`.
    CreateSequence(SequenceStatement),
    /// `ALTER SEQUENCE`, but for another name.
    AlterSequence(SequenceStatement),
    /// `CREATE TYPE .. AS ENUM` and `CREATE DOMAIN`.
    CreateType(Box<CreateType>),
    /// `ALTER TYPE .. ADD VALUE` and `.. RENAME VALUE`.
    AlterType(AlterType),
    /// `DROP TYPE` and `DROP DOMAIN`.
    DropType {
        /// Their names.
        names: Vec<String>,
        /// Whether DOMAIN was said.
        is_domain: bool,
        /// Whether missing types are passed over.
        if_exists: bool,
        /// Whether columns of the types go too.
        cascade: bool,
    },
    /// `CREATE SCHEMA`.
    CreateSchema {
        /// Its name.
        name: String,
        /// Whether a schema of that name is left as it is.
        if_not_exists: bool,
    },
    /// `DROP SCHEMA`.
    DropSchema {
        /// Their names.
        names: Vec<String>,
        /// Whether missing schemas are passed over.
        if_exists: bool,
        /// Whether the objects in them go too.
        cascade: bool,
    },
    /// `SET name = value`.
    Set {
        /// The setting, in lower case.
        name: String,
        /// Its value, without quotes; values of a list are joined by `, `. `None` is DEFAULT.
        value: Option<String>,
        /// How long the value holds.
        scope: SettingScope,
    },
    /// `RESET`.
    Reset {
        /// The setting; `None` is ALL.
        name: Option<String>,
    },
    /// `UNLISTEN`, `ANALYZE`, `VACUUM`, `REFRESH` and `COMMENT`: there is nothing to do.
    Needless {
        /// What clients are answered.
        tag: &'static str,
        /// Relations that must be there.
        relations: Vec<String>,
        /// Why there is nothing to do.
        notice: Option<&'static str>,
    },
    /// `DISCARD`.
    Discard {
        /// Whether statements, cursors and settings go too.
        all: bool,
    },
    /// `SET TRANSACTION` and `SET SESSION CHARACTERISTICS AS TRANSACTION`.
    SetTransaction {
        /// What the transactions may do.
        access: Access,
        /// The open transaction, or those that follow.
        scope: SettingScope,
    },
    /// `PREPARE`.
    Prepare(Prepare),
    /// `EXECUTE`.
    Execute(Execute),
    /// `DEALLOCATE`.
    Deallocate {
        /// The prepared statement; `None` is ALL.
        name: Option<String>,
    },
    /// `DECLARE .. CURSOR`.
    Declare(Declare),
    /// `FETCH` and `MOVE`.
    Fetch(Fetch),
    /// `CLOSE`.
    Close {
        /// The cursor; `None` is ALL.
        name: Option<String>,
    },
    /// `BEGIN`, `COMMIT`, `ROLLBACK`.
    Transaction(TransactionStatement),
    /// `LOCK TABLE`.
    Lock {
        /// Tables and views.
        relations: Vec<String>,
        /// What it keeps off.
        mode: LockMode,
    },
    /// `FLUSH`: waits until all that was written and all that bounded sources have is in every
    /// view.
    Flush,
}

impl Statement {
    /// A copy, made on a stack that is deep enough for every statement.
    pub fn copied(&self) -> Statement {
        with_deep_stack(|| self.clone())
    }
}

/// `PREPARE name [(types)] AS statement`.
#[derive(Clone, Debug)]
pub struct Prepare {
    /// Its name.
    pub name: String,
    /// Types of `$1`, `$2` .. as far as they are said.
    pub types: Vec<Option<DataType>>,
    /// Forms of their values, of those that are uuids or arrays of them.
    pub forms: Vec<Option<TextLimit>>,
    /// The statement as written.
    pub text: String,
    /// The statement.
    pub statement: Box<Parsed>,
}

/// A statement whose WITH changes tables.
#[derive(Clone, Debug)]
pub struct ChangesInWith {
    /// Names of WITH, and the INSERT, UPDATE or DELETE of each.
    pub parts: Vec<(String, Statement)>,
    /// What the parts are for: a query, or another INSERT, UPDATE or DELETE.
    pub main: Statement,
}

/// `DECLARE name CURSOR FOR statement`.
#[derive(Clone, Debug)]
pub struct Declare {
    /// Its name.
    pub name: String,
    /// Whether the cursor goes backwards.
    pub scroll: Scroll,
    /// `WITH HOLD`: whether the cursor outlives the transaction.
    pub hold: bool,
    /// The query or SUBSCRIBE as written.
    pub text: String,
    /// The query or SUBSCRIBE.
    pub statement: Box<Parsed>,
}
