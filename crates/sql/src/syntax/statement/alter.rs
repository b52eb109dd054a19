//! Statements that change or drop what is defined.

use arrow::datatypes::Field;
use datafusion_expr::sqlparser::ast;

use super::define::{Made, UniqueClause};
use crate::syntax::references::ForeignKey;

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
