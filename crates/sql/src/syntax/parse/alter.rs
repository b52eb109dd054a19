//! `ALTER TABLE`, `ALTER SOURCE .. STOP`, and `ALTER .. RENAME TO` of other objects.

use datafusion_expr::sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation};
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use super::columns::{Columns, typed_field, unsupported_constraint};
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::{fold, object_name};
use crate::syntax::references::foreign_key;
use crate::syntax::statement::{Alter, AlterAction, NewColumn, ObjectKind, Statement, UniqueClause};

impl Input<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        if self.word(1).as_deref() == Some("TABLE") {
            return self.alter_table();
        }
        self.expect("ALTER")?;
        if self.eat("TYPE") {
            return self.alter_type();
        }
        let kind = if self.eat("MATERIALIZED VIEW") {
            ObjectKind::MaterializedView
        } else if self.eat("VIEW") {
            ObjectKind::View
        } else if self.eat("INDEX") {
            ObjectKind::Index
        } else if self.eat("SOURCE") {
            ObjectKind::Source
        } else if self.eat("SEQUENCE") {
            ObjectKind::Sequence
        } else {
            let kind = self.word(0).unwrap_or_default();
            return Err(SqlError::unsupported(
                format!("ALTER {kind}"),
                "Tables and sequences can be altered; other objects are dropped and made anew.",
            ));
        };
        let if_exists = self.eat("IF EXISTS");
        let name = self.name()?;
        if kind == ObjectKind::Source && self.eat("STOP") {
            return Ok(Statement::Alter(Alter { kind, name, if_exists, actions: vec![AlterAction::Stop] }));
        }
        if self.eat("OWNER TO") {
            self.identifier()?;
            return Ok(Statement::Alter(Alter { kind, name, if_exists, actions: vec![AlterAction::Nothing] }));
        }
        if kind == ObjectKind::Sequence && self.word(0).as_deref() != Some("RENAME") {
            return self.alter_sequence(name, if_exists);
        }
        if !self.eat("RENAME TO") {
            return Err(SqlError::unsupported(
                "this change of an object that is no table",
                "Objects can be renamed, ALTER VIEW name RENAME TO other, and sources stopped, ALTER SOURCE name STOP. \
                 DROP and CREATE change the rest.",
            ));
        }
        let actions = vec![AlterAction::Rename { to: self.identifier()? }];
        Ok(Statement::Alter(Alter { kind, name, if_exists, actions }))
    }

    fn alter_table(&mut self) -> Result<Statement> {
        if let Some(restart) = self.restart()? {
            return Ok(restart);
        }
        if let Some(idle) = self.stored_otherwise()? {
            return Ok(idle);
        }
        let alter = match self.parser.parse_statement() {
            Ok(ast::Statement::AlterTable(alter)) => alter,
            Ok(_) => return Err(self.unexpected("ALTER TABLE")),
            Err(error) => return Err(of_unknown_change(error.into())),
        };
        let mut actions = alter.operations.into_iter().map(action).collect::<Result<Vec<_>>>()?;
        // UNIQUE of a column that is added is a constraint beside it.
        let of_added: Vec<UniqueClause> = actions
            .iter_mut()
            .filter_map(|action| match action {
                AlterAction::AddColumn { column, .. } => Some(std::mem::take(&mut column.uniques)),
                _ => None,
            })
            .flatten()
            .collect();
        actions.extend(of_added.into_iter().map(AlterAction::AddUnique));
        let name = object_name(&alter.name)?;
        Ok(Statement::Alter(Alter { kind: ObjectKind::Table, name, if_exists: alter.if_exists, actions }))
    }

    /// Changes of how PostgreSQL stores a table, which change nothing here: `CLUSTER ON index`,
    /// `SET WITHOUT CLUSTER`, `ALTER [COLUMN] c SET {STATISTICS | STORAGE | COMPRESSION} x`.
    fn stored_otherwise(&mut self) -> Result<Option<Statement>> {
        let word = |n: usize| self.word(n).unwrap_or_default();
        let words: Vec<String> = (2..14).map(word).collect();
        let name_at = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["IF", "EXISTS", "ONLY", ..] => 3,
            ["IF", "EXISTS", ..] => 2,
            ["ONLY", ..] => 1,
            _ => 0,
        };
        let is_within_schema = self.parser.peek_nth_token_ref(3 + name_at).token == Token::Period;
        let n_of_name = if is_within_schema { 3 } else { 1 };
        let behind: Vec<&str> = words[name_at..].iter().skip(n_of_name).map(String::as_str).collect();
        let is_idle = match behind.as_slice() {
            ["CLUSTER", "ON", ..] | ["SET", "WITHOUT", "CLUSTER", ..] => true,
            ["SET", "SCHEMA", ..] => {
                let hint = "Make it anew in the schema: CREATE TABLE schema.name AS TABLE name.";
                return Err(SqlError::unsupported("ALTER TABLE .. SET SCHEMA", hint));
            }
            ["ALTER", "COLUMN", _, "SET", what, ..] | ["ALTER", _, "SET", what, ..] => {
                matches!(*what, "STATISTICS" | "STORAGE" | "COMPRESSION")
            }
            _ => false,
        };
        if !is_idle {
            return Ok(None);
        }
        self.expect("ALTER TABLE")?;
        let if_exists = self.eat("IF EXISTS");
        self.eat("ONLY");
        let name = self.name()?;
        self.skip_to_end();
        let actions = vec![AlterAction::Nothing];
        Ok(Some(Statement::Alter(Alter { kind: ObjectKind::Table, name, if_exists, actions })))
    }

    /// `ALTER TABLE name ALTER [COLUMN] column RESTART [WITH n]`, which `sqlparser` does not know.
    fn restart(&mut self) -> Result<Option<Statement>> {
        let is_restart = (0..12).any(|n| self.word(n).as_deref() == Some("RESTART"));
        if !is_restart {
            return Ok(None);
        }
        self.expect("ALTER TABLE")?;
        let if_exists = self.eat("IF EXISTS");
        let name = self.name()?;
        self.expect("ALTER")?;
        self.eat("COLUMN");
        let column = self.identifier()?;
        self.expect("RESTART")?;
        let is_said = self.eat("WITH") || matches!(self.parser.peek_token_ref().token, Token::Number(..));
        let with = match is_said {
            true => Some(self.option_value()?.parse().map_err(|_| self.unexpected("a whole number"))?),
            false => None,
        };
        let actions = vec![AlterAction::Restart { column, with }];
        Ok(Some(Statement::Alter(Alter { kind: ObjectKind::Table, name, if_exists, actions })))
    }
}

/// What can be changed of a table.
const CHANGES: &str =
    "Columns, defaults, NOT NULL, types, CHECK, UNIQUE, foreign keys, the primary key and names can be changed.";

/// The error of a change that the parser does not know: it lists those of other systems.
fn of_unknown_change(mut error: SqlError) -> SqlError {
    if error.detail.as_ref().is_some_and(|detail| detail.contains("after ALTER")) {
        error.detail = None;
        error.hint = Some(CHANGES.to_owned());
    }
    error
}

/// One change, as the parser has read it.
fn action(operation: AlterTableOperation) -> Result<AlterAction> {
    Ok(match operation {
        AlterTableOperation::AddColumn { column_def, if_not_exists, .. } => {
            AlterAction::AddColumn { column: Box::new(new_column(column_def)?), if_not_exists }
        }
        // (With CASCADE, too, a column that views use stays: it is refused, by the views' names.)
        AlterTableOperation::DropColumn { column_names, if_exists, .. } => match column_names.as_slice() {
            [name] => AlterAction::DropColumn { name: fold(name), if_exists },
            _ => return Err(SqlError::new(ErrorKind::Syntax, "DROP COLUMN takes one column")),
        },
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            AlterAction::RenameColumn { from: fold(&old_column_name), to: fold(&new_column_name) }
        }
        AlterTableOperation::RenameTable { table_name } => {
            let (ast::RenameTableNameKind::To(to) | ast::RenameTableNameKind::As(to)) = table_name;
            AlterAction::Rename { to: object_name(&to)? }
        }
        AlterTableOperation::AlterColumn { column_name, op } => column_action(fold(&column_name), op)?,
        AlterTableOperation::AddConstraint { constraint, .. } => constraint_action(constraint)?,
        AlterTableOperation::DropConstraint { if_exists, name, .. } => {
            AlterAction::DropConstraint { name: fold(&name), if_exists }
        }
        // (Of these PostgreSQL knows, too, who owns a table, and how it is stored.)
        AlterTableOperation::OwnerTo { .. }
        | AlterTableOperation::ValidateConstraint { .. }
        | AlterTableOperation::SetOptionsParens { .. }
        | AlterTableOperation::ReplicaIdentity { .. } => AlterAction::Nothing,
        other => return Err(SqlError::unsupported(format!("ALTER TABLE .. {other}"), CHANGES)),
    })
}

fn column_action(column: String, op: AlterColumnOperation) -> Result<AlterAction> {
    Ok(match op {
        AlterColumnOperation::SetNotNull => AlterAction::SetNullable { column, nullable: false },
        AlterColumnOperation::DropNotNull => AlterAction::SetNullable { column, nullable: true },
        AlterColumnOperation::SetDefault { value } => AlterAction::SetDefault { column, default: Some(value) },
        AlterColumnOperation::DropDefault => AlterAction::SetDefault { column, default: None },
        AlterColumnOperation::SetDataType { data_type, using, .. } => {
            let field = typed_field(&column, &data_type)?;
            AlterAction::SetType { column, field, type_text: data_type.to_string(), using }
        }
        AlterColumnOperation::AddGenerated { .. } => {
            let hint = "Add a column: ALTER TABLE t ADD COLUMN n bigint GENERATED BY DEFAULT AS IDENTITY.";
            return Err(SqlError::unsupported("ADD GENERATED of a column that is there", hint));
        }
    })
}

fn constraint_action(constraint: ast::TableConstraint) -> Result<AlterAction> {
    match constraint {
        ast::TableConstraint::Check(check) => {
            Ok(AlterAction::AddCheck { name: check.name.as_ref().map(fold), expr: *check.expr })
        }
        ast::TableConstraint::PrimaryKey(key) => Ok(AlterAction::AddPrimaryKey { columns: key_columns(&key.columns)? }),
        ast::TableConstraint::Unique(unique) => {
            let (name, columns) = (unique.name.as_ref().map(fold), key_columns(&unique.columns)?);
            Ok(AlterAction::AddUnique(UniqueClause { name, columns }))
        }
        ast::TableConstraint::ForeignKey(constraint) => Ok(AlterAction::AddReference(foreign_key(constraint, None)?)),
        _ => Err(unsupported_constraint("this constraint")),
    }
}

fn key_columns(columns: &[ast::IndexColumn]) -> Result<Vec<String>> {
    let name = |column: &ast::IndexColumn| match &column.column.expr {
        ast::Expr::Identifier(name) => Ok(fold(name)),
        other => Err(SqlError::new(ErrorKind::Syntax, format!("{other} is no column of a key"))),
    };
    columns.iter().map(name).collect()
}

fn new_column(definition: ast::ColumnDef) -> Result<NewColumn> {
    let mut columns = Columns::default();
    columns.add(definition)?;
    let is_key = !columns.key_names.is_empty();
    let missing = || SqlError::internal("a definition makes a column");
    Ok(NewColumn {
        field: columns.fields.pop().ok_or_else(missing)?,
        default: columns.defaults.pop().flatten(),
        made: columns.made.pop().ok_or_else(missing)?,
        checks: columns.checks,
        is_key,
        uniques: columns.uniques,
        references: columns.references,
    })
}
