//! BEGIN, COMMIT and ROLLBACK, with all their spellings, and savepoints.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::Result;
use crate::syntax::statement::{Access, Afterwards, LockMode, Statement, TransactionStatement};

impl Input<'_> {
    /// `BEGIN | START TRANSACTION | COMMIT | END | ROLLBACK | ABORT ..`; `first` is the word that
    /// comes next.
    pub(super) fn transaction(&mut self, first: &str) -> Result<Statement> {
        self.parser.advance_token();
        if first == "START" {
            self.expect("TRANSACTION")?;
        } else if !self.eat("TRANSACTION") {
            self.eat("WORK");
        }
        let statement = match first {
            "BEGIN" => TransactionStatement::Begin { access: self.access()?, tag: "BEGIN" },
            "START" => TransactionStatement::Begin { access: self.access()?, tag: "START TRANSACTION" },
            "COMMIT" | "END" => TransactionStatement::Commit { then: self.afterwards() },
            _ if self.eat("TO") => {
                self.eat("SAVEPOINT");
                TransactionStatement::RollbackTo { name: self.identifier()? }
            }
            _ => TransactionStatement::Rollback { then: self.afterwards() },
        };
        Ok(Statement::Transaction(statement))
    }

    /// `[AND [NO] CHAIN]`.
    fn afterwards(&mut self) -> Afterwards {
        match self.eat("AND CHAIN") {
            true => Afterwards::Another,
            false => {
                self.eat("AND NO CHAIN");
                Afterwards::Nothing
            }
        }
    }

    /// `SAVEPOINT name | RELEASE [SAVEPOINT] name`; `first` is the word that comes next.
    pub(super) fn savepoint(&mut self, first: &str) -> Result<Statement> {
        self.parser.advance_token();
        let statement = match first {
            "SAVEPOINT" => TransactionStatement::Savepoint { name: self.identifier()? },
            _ => {
                self.eat("SAVEPOINT");
                TransactionStatement::Release { name: self.identifier()? }
            }
        };
        Ok(Statement::Transaction(statement))
    }

    /// `LOCK [TABLE] [ONLY] name [*], .. [IN mode MODE] [NOWAIT]`.
    pub(super) fn lock(&mut self) -> Result<Statement> {
        self.expect("LOCK")?;
        self.eat("TABLE");
        let mut relations = Vec::new();
        loop {
            self.eat("ONLY");
            relations.push(self.name()?);
            self.eat_token(&Token::Mul);
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        let mode = if self.eat("IN") { self.lock_mode()? } else { LockMode::Rows };
        self.eat("NOWAIT");
        Ok(Statement::Lock { relations, mode })
    }

    /// `mode MODE`.
    fn lock_mode(&mut self) -> Result<LockMode> {
        let of_definitions = ["ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE"];
        let of_rows = ["SHARE ROW EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE"];
        let mode = match of_definitions.iter().any(|words| self.eat(words)) {
            true => LockMode::Definitions,
            false if of_rows.iter().any(|words| self.eat(words)) => LockMode::Rows,
            false => return Err(self.unexpected("a mode, as in SHARE MODE")),
        };
        self.expect("MODE")?;
        Ok(mode)
    }

    /// The modes of BEGIN. All levels of isolation are taken, and give the highest.
    pub(super) fn access(&mut self) -> Result<Access> {
        let mut access = Access::ReadWrite;
        loop {
            let is_level = self.eat("ISOLATION LEVEL SERIALIZABLE")
                || self.eat("ISOLATION LEVEL REPEATABLE READ")
                || self.eat("ISOLATION LEVEL READ COMMITTED")
                || self.eat("ISOLATION LEVEL READ UNCOMMITTED");
            if self.eat("READ ONLY") {
                access = Access::ReadOnly;
            } else if self.eat("READ WRITE") {
                access = Access::ReadWrite;
            } else if !is_level && !self.eat("DEFERRABLE") && !self.eat("NOT DEFERRABLE") {
                return Ok(access);
            }
            self.eat_token(&datafusion_expr::sqlparser::tokenizer::Token::Comma);
        }
    }
}
