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
        let ast::Statement::AlterTable(alter) = self.parser.parse_statement()? else {
            return Err(self.unexpected("ALTER TABLE"));
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
        AlterTableOperation::OwnerTo { .. } | AlterTableOperation::ValidateConstraint { .. } => AlterAction::Nothing,
        other => {
            let hint = "Columns, defaults, NOT NULL, types, CHECK, the primary key and names can be changed.";
            return Err(SqlError::unsupported(format!("ALTER TABLE .. {other}"), hint));
        }
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
