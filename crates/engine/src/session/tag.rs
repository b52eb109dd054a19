//! Command tags: the words with which a statement says that it is done.

use anabranch_sql::statement::{ObjectKind, Statement, TransactionStatement, TypeDefinition};

/// The words of a statement's command tag, without counts.
pub fn command_tag(statement: &Statement) -> &'static str {
    match statement {
        Statement::CreateTable(_) => "CREATE TABLE",
        Statement::CreateTableAs(_) | Statement::Select { .. } => "SELECT",
        Statement::CreateSource(_) => "CREATE SOURCE",
        Statement::CreateView(view) if view.materialized => "CREATE MATERIALIZED VIEW",
        Statement::CreateView(_) => "CREATE VIEW",
        Statement::CreateIndex(_) => "CREATE INDEX",
        Statement::Insert(_) => "INSERT",
        Statement::Update(_) => "UPDATE",
        Statement::Delete(_) => "DELETE",
        Statement::Merge(_) => "MERGE",
        Statement::ChangesInWith(with) => command_tag(&with.main),
        Statement::Truncate(_) => "TRUNCATE TABLE",
        Statement::CopyFrom(_) | Statement::CopyTo(_) => "COPY",
        Statement::Subscribe(_) => "SUBSCRIBE",
        Statement::Explain(_) | Statement::ExplainChange(_) => "EXPLAIN",
        Statement::Show(_) | Statement::Describe { .. } => "SHOW",
        Statement::Drop(drop) => match drop.kind {
            ObjectKind::Table => "DROP TABLE",
            ObjectKind::Source => "DROP SOURCE",
            ObjectKind::View => "DROP VIEW",
            ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
            ObjectKind::Index => "DROP INDEX",
            ObjectKind::Sequence => "DROP SEQUENCE",
        },
        Statement::Alter(alter) => match alter.kind {
            ObjectKind::Table => "ALTER TABLE",
            ObjectKind::Source => "ALTER SOURCE",
            ObjectKind::View => "ALTER VIEW",
            ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            ObjectKind::Index => "ALTER INDEX",
            ObjectKind::Sequence => "ALTER SEQUENCE",
        },
        Statement::CreateSequence(_) => "CREATE SEQUENCE",
        Statement::AlterSequence(_) => "ALTER SEQUENCE",
        Statement::CreateType(create) => match create.definition {
            TypeDefinition::Enum(_) => "CREATE TYPE",
            TypeDefinition::Domain(_) => "CREATE DOMAIN",
        },
        Statement::AlterType(_) => "ALTER TYPE",
        Statement::DropType { is_domain: true, .. } => "DROP DOMAIN",
        Statement::DropType { is_domain: false, .. } => "DROP TYPE",
        Statement::CreateSchema { .. } => "CREATE SCHEMA",
        Statement::DropSchema { .. } => "DROP SCHEMA",
        Statement::Set { .. } | Statement::SetTransaction { .. } => "SET",
        Statement::Reset { .. } => "RESET",
        Statement::Needless { tag, .. } => tag,
        Statement::Discard { all: true } => "DISCARD ALL",
        Statement::Discard { all: false } => "DISCARD PLANS",
        Statement::Prepare(_) => "PREPARE",
        Statement::Execute(_) => "EXECUTE",
        Statement::Deallocate { name: Some(_) } => "DEALLOCATE",
        Statement::Deallocate { name: None } => "DEALLOCATE ALL",
        Statement::Declare(_) => "DECLARE CURSOR",
        Statement::Fetch(fetch) if fetch.moves => "MOVE",
        Statement::Fetch(_) => "FETCH",
        Statement::Close { name: Some(_) } => "CLOSE CURSOR",
        Statement::Close { name: None } => "CLOSE CURSOR ALL",
        Statement::Transaction(TransactionStatement::Begin { tag, .. }) => tag,
        Statement::Transaction(TransactionStatement::Commit { .. }) => "COMMIT",
        Statement::Transaction(TransactionStatement::Rollback { .. } | TransactionStatement::RollbackTo { .. }) => {
            "ROLLBACK"
        }
        Statement::Transaction(TransactionStatement::Savepoint { .. }) => "SAVEPOINT",
        Statement::Transaction(TransactionStatement::Release { .. }) => "RELEASE",
        Statement::Lock { .. } => "LOCK TABLE",
        Statement::Flush => "FLUSH",
    }
}
