//! Statements that came together, and what each is to a transaction that holds them all.

use anabranch_sql::statement::Statement;

/// What a statement is to a transaction that the client did not open: that of several statements
/// which it sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// It changes something that can be taken back, so that others with it need a transaction.
    Begins,
    /// It can be part of a transaction, and needs none.
    Joins,
    /// It takes effect by itself, or opens and ends transactions.
    Alone,
}

/// What a statement is to a transaction of several that came together. COPY joins one: its rows
/// come between others' messages, so that its text does not tell whether something follows.
pub fn together(statement: &Statement) -> Together {
    match statement {
        changed if changes_rows(changed) => Together::Begins,
        Statement::Execute(_)
        | Statement::CreateTable(_)
        | Statement::CreateTableAs(_)
        | Statement::CreateView(_)
        | Statement::CreateIndex(_)
        | Statement::CreateSequence(_)
        | Statement::CreateType(_)
        | Statement::CreateSchema { .. } => Together::Begins,
        Statement::Subscribe(_)
        | Statement::Flush
        | Statement::CreateSource(_)
        | Statement::Alter(_)
        | Statement::AlterSequence(_)
        | Statement::AlterType(_)
        | Statement::Drop(_)
        | Statement::DropType { .. }
        | Statement::DropSchema { .. }
        | Statement::Discard { .. }
        | Statement::Transaction(_)
        | Statement::Select { as_of: Some(_), .. } => Together::Alone,
        _ => Together::Joins,
    }
}

/// Whether a statement changes rows that it names or computes.
pub(super) fn changes_rows(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::ChangesInWith(_)
            | Statement::Truncate(_)
    )
}
