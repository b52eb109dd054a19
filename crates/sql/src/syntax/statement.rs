//! The statements a session understands, after parsing and before planning.
//!
//! Queries stay syntax trees here and are planned against the catalog when they run; everything a
//! session needs to act on a statement without SQL knowledge is plain data.

use std::ops::Range;

use arrow::datatypes::{DataType, Field};
use datafusion_expr::sqlparser::ast;

use crate::stack::with_deep_stack;
use crate::syntax::references::ForeignKey;
use crate::syntax::sequence::SequenceStatement;
use crate::syntax::span::Span;

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
    /// `ALTER TYPE .. ADD VALUE`.
    AddLabel(AddLabel),
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

/// A statement whose WITH changes tables.
#[derive(Clone, Debug)]
pub struct ChangesInWith {
    /// Names of WITH, and the INSERT, UPDATE or DELETE of each.
    pub parts: Vec<(String, Statement)>,
    /// What the parts are for: a query, or another INSERT, UPDATE or DELETE.
    pub main: Statement,
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

/// `ALTER TYPE name ADD VALUE [IF NOT EXISTS] label [{BEFORE | AFTER} other]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddLabel {
    /// The enumeration.
    pub name: String,
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

/// `ALTER TABLE [IF EXISTS] name action, ..`.
#[derive(Clone, Debug)]
pub struct Alter {
    /// What the statement says that it changes.
    pub kind: ObjectKind,
    /// The object.
    pub name: String,
    /// Whether a missing object is passed over.
    pub if_exists: bool,
    /// What is changed, one after the other.
    pub actions: Vec<AlterAction>,
}

/// One change of a table.
#[derive(Clone, Debug)]
pub enum AlterAction {
    /// `ADD COLUMN`.
    AddColumn {
        /// The column.
        column: Box<NewColumn>,
        /// Whether a column of that name is left as it is.
        if_not_exists: bool,
    },
    /// `DROP COLUMN`.
    DropColumn {
        /// The column.
        name: String,
        /// Whether a missing column is passed over.
        if_exists: bool,
    },
    /// `RENAME COLUMN`.
    RenameColumn {
        /// Its name before.
        from: String,
        /// Its name afterwards.
        to: String,
    },
    /// `STOP` of a source: it reads no more, its rows stay.
    Stop,
    /// `RENAME TO`.
    Rename {
        /// The name afterwards.
        to: String,
    },
    /// `ALTER COLUMN .. SET DEFAULT` and `DROP DEFAULT`.
    SetDefault {
        /// The column.
        column: String,
        /// The new default, if there is to be one.
        default: Option<ast::Expr>,
    },
    /// `ALTER COLUMN .. SET NOT NULL` and `DROP NOT NULL`.
    SetNullable {
        /// The column.
        column: String,
        /// Whether it may be NULL.
        nullable: bool,
    },
    /// `ALTER COLUMN .. TYPE`.
    SetType {
        /// The column.
        column: String,
        /// Its type and limits; the name means nothing.
        field: Field,
        /// The type as written.
        type_text: String,
        /// What becomes of each value; without, a cast of it.
        using: Option<ast::Expr>,
    },
    /// `ALTER COLUMN .. RESTART WITH`.
    Restart {
        /// The column.
        column: String,
        /// The next number; the first without.
        with: Option<i64>,
    },
    /// `ADD [CONSTRAINT name] CHECK`.
    AddCheck {
        /// Its name, if one was given.
        name: Option<String>,
        /// The condition.
        expr: ast::Expr,
    },
    /// `ADD [CONSTRAINT name] UNIQUE`: it stands alone in a statement.
    AddUnique(UniqueClause),
    /// `ADD FOREIGN KEY`; the name is empty if none was given.
    AddReference(ForeignKey),
    /// `ADD PRIMARY KEY`.
    AddPrimaryKey {
        /// Columns, in order.
        columns: Vec<String>,
    },
    /// `DROP CONSTRAINT`.
    DropConstraint {
        /// The constraint.
        name: String,
        /// Whether a missing constraint is passed over.
        if_exists: bool,
    },
    /// `OWNER TO`, which means nothing here.
    Nothing,
}

/// A column to be added.
#[derive(Clone, Debug)]
pub struct NewColumn {
    /// Name, type, nullability and limits.
    pub field: Field,
    /// `DEFAULT`.
    pub default: Option<ast::Expr>,
    /// Where its values come from.
    pub made: Made,
    /// `CHECK`; a name is the user's.
    pub checks: Vec<(Option<String>, ast::Expr)>,
    /// `PRIMARY KEY`.
    pub is_key: bool,
    /// `UNIQUE`.
    pub uniques: Vec<UniqueClause>,
    /// `REFERENCES`.
    pub references: Vec<ForeignKey>,
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
    /// Columns, in order.
    pub columns: Vec<String>,
    /// `UNIQUE`: rows of a table that are equal in them are refused.
    pub is_unique: bool,
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

/// `COPY table [(columns)] FROM {'path' | STDIN} [WITH] (options)`.
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

/// `PREPARE name [(types)] AS statement`.
#[derive(Clone, Debug)]
pub struct Prepare {
    /// Its name.
    pub name: String,
    /// Types of `$1`, `$2` .. as far as they are said.
    pub types: Vec<Option<DataType>>,
    /// The statement as written.
    pub text: String,
    /// The statement.
    pub statement: Box<Parsed>,
}

/// `EXECUTE name [(values)]`.
#[derive(Clone, Debug)]
pub struct Execute {
    /// The prepared statement.
    pub name: String,
    /// Values of its parameters, expressions without columns.
    pub values: Vec<ast::Expr>,
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

/// `EXPLAIN [ANALYZE | LOGICAL | PHYSICAL | (REWRITES) | (FORMAT python)] statement`.
#[derive(Clone, Debug)]
pub struct Explain {
    /// What is shown.
    pub shows: Shows,
    /// The query.
    pub query: Box<ast::Query>,
}

/// `SHOW ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// All tables.
    Tables,
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

/// `DROP kind [IF EXISTS] name [, ..] [CASCADE | RESTRICT]`.
#[derive(Clone, Debug)]
pub struct Drop {
    /// Kind of the objects.
    pub kind: ObjectKind,
    /// Whether missing objects are passed over.
    pub if_exists: bool,
    /// Names of the objects.
    pub names: Vec<String>,
    /// Whether objects that depend on these go too.
    pub cascade: bool,
}

/// A statement that begins or ends a transaction, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStatement {
    /// `BEGIN` and `START TRANSACTION`, whatever the level of isolation.
    Begin {
        /// Whether it may write.
        access: Access,
    },
    /// `COMMIT` and `END`.
    Commit,
    /// `ROLLBACK` and `ABORT`.
    Rollback,
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

/// The kinds of catalog objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Rows written by `INSERT`.
    Table,
    /// Rows read by a connector.
    Source,
    /// A named query, planned where it is used.
    View,
    /// A query whose answer is kept current.
    MaterializedView,
    /// A shared arrangement.
    Index,
    /// A counter.
    Sequence,
}
