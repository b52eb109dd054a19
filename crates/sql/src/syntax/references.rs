//! Foreign keys as they are declared.

use datafusion_expr::sqlparser::ast::{self, ConstraintReferenceMatchKind, ReferentialAction};

use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::{fold, object_name, quoted, quoted_path};

/// `FOREIGN KEY (columns) REFERENCES table (to)`: each row has NULL in one of the columns, or
/// equals a row of the other table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name, made up if none was given.
    pub name: String,
    /// Columns of the table that declares it.
    pub columns: Vec<String>,
    /// The table referred to.
    pub table: String,
    /// Columns of that table, as many; none are those of its primary key.
    pub to: Vec<String>,
    /// What becomes of rows that refer to a row that is deleted.
    pub on_delete: OnDelete,
    /// What becomes of rows that refer to a row whose key is changed.
    pub on_update: OnDelete,
}

/// What becomes of rows that refer to a row that is deleted, or whose key is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDelete {
    /// `NO ACTION`, `RESTRICT`: the row is not deleted, or keeps its key.
    #[default]
    Refuse,
    /// `CASCADE`: they are deleted too, or get the new key.
    Cascade,
    /// `SET NULL`: they refer to nothing.
    SetNull,
}

impl ForeignKey {
    /// The text that declares it, without its name: as PostgreSQL shows it.
    pub fn text(&self) -> String {
        let list = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let to = if self.to.is_empty() { String::new() } else { format!("({})", list(&self.to)) };
        let actions = self.actions_text();
        format!("FOREIGN KEY ({}) REFERENCES {}{to}{actions}", list(&self.columns), quoted_path(&self.table))
    }

    /// The actions, as PostgreSQL shows them.
    pub fn actions_text(&self) -> String {
        let text = |when: &str, action| match action {
            OnDelete::Refuse => String::new(),
            OnDelete::Cascade => format!(" ON {when} CASCADE"),
            OnDelete::SetNull => format!(" ON {when} SET NULL"),
        };
        text("UPDATE", self.on_update) + &text("DELETE", self.on_delete)
    }

    /// The statement that adds it to a table.
    pub fn statement(&self, table: &str) -> String {
        format!("ALTER TABLE {} ADD CONSTRAINT {} {}", quoted_path(table), quoted(&self.name), self.text())
    }
}

/// What a constraint declares; its name is empty if none was given. `column` is the one at which it
/// stands.
///
/// # Errors
/// `Unsupported` for actions and moments that there are not.
pub(crate) fn foreign_key(constraint: ast::ForeignKeyConstraint, column: Option<&str>) -> Result<ForeignKey> {
    if let Some(kind @ (ConstraintReferenceMatchKind::Full | ConstraintReferenceMatchKind::Partial)) =
        constraint.match_kind
    {
        let hint = "Leave it out: a row with NULL in one of the columns refers to nothing. A CHECK can ask for more.";
        return Err(SqlError::unsupported(kind.to_string(), hint));
    }
    // (DEFERRABLE INITIALLY DEFERRED, which some tools always write, asks for a later check. Each
    // statement is checked all the same: what would fail at COMMIT fails earlier.)
    let action = |when: &str, action| match action {
        None | Some(ReferentialAction::NoAction | ReferentialAction::Restrict) => Ok(OnDelete::Refuse),
        Some(ReferentialAction::Cascade) => Ok(OnDelete::Cascade),
        Some(ReferentialAction::SetNull) => Ok(OnDelete::SetNull),
        Some(ReferentialAction::SetDefault) => {
            let hint = format!("Write ON {when} SET NULL, or CASCADE.");
            Err(SqlError::unsupported(format!("ON {when} SET DEFAULT"), hint))
        }
    };
    let on_delete = action("DELETE", constraint.on_delete)?;
    let on_update = action("UPDATE", constraint.on_update)?;
    let columns: Vec<String> = match column {
        Some(column) => vec![column.to_owned()],
        None => constraint.columns.iter().map(fold).collect(),
    };
    let to: Vec<String> = constraint.referred_columns.iter().map(fold).collect();
    if !to.is_empty() && to.len() != columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new(ErrorKind::Invalid, message));
    }
    for names in [&columns, &to] {
        if let Some((at, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            let message = format!("column \"{name}\" appears twice in the foreign key, at place {}", at + 1);
            return Err(SqlError::new(ErrorKind::Duplicate, message));
        }
    }
    let name = constraint.name.as_ref().map(fold).unwrap_or_default();
    Ok(ForeignKey { name, columns, table: object_name(&constraint.foreign_table)?, to, on_delete, on_update })
}
