//! `SET`, `RESET`, `DISCARD`.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{Result, SqlError};
use crate::syntax::statement::{SettingScope, Statement};

impl Input<'_> {
    /// `SET [SESSION | LOCAL] {name {TO | =} {value, .. | DEFAULT} | TIME ZONE value | NAMES
    /// value | TRANSACTION modes}`.
    pub(super) fn set(&mut self) -> Result<Statement> {
        self.expect("SET")?;
        if self.eat("SESSION CHARACTERISTICS AS TRANSACTION") {
            let access = self.access()?;
            return Ok(Statement::SetTransaction { access, scope: SettingScope::Session });
        }
        if self.eat("CONSTRAINTS") {
            return self.set_constraints();
        }
        for words in ["SESSION AUTHORIZATION", "ROLE"] {
            if self.eat(words) {
                // (What each client has.)
                if self.eat("NONE") || self.eat("DEFAULT") {
                    return Ok(Statement::Set { name: "role".into(), value: None, scope: SettingScope::Session });
                }
                return Err(SqlError::unsupported(format!("SET {words}"), "Connect as that user."));
            }
        }
        let scope = if self.eat("LOCAL") {
            SettingScope::Transaction
        } else {
            self.eat("SESSION");
            SettingScope::Session
        };
        if self.eat("TRANSACTION") {
            if self.eat("SNAPSHOT") {
                return Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT", "Write SELECT .. AS OF time."));
            }
            return Ok(Statement::SetTransaction { access: self.access()?, scope: SettingScope::Transaction });
        }
        if self.eat("TIME ZONE") {
            let value = if self.eat("LOCAL") || self.eat("DEFAULT") { None } else { Some(self.option_value()?) };
            return Ok(Statement::Set { name: "timezone".into(), value, scope });
        }
        if self.eat("NAMES") {
            let value = if self.eat("DEFAULT") { None } else { Some(self.option_value()?) };
            return Ok(Statement::Set { name: "client_encoding".into(), value, scope });
        }
        let name = self.setting_name()?;
        if !self.eat_token(&Token::Eq) {
            self.expect("TO")?;
        }
        if self.eat("DEFAULT") {
            return Ok(Statement::Set { name, value: None, scope });
        }
        let mut value = self.option_value()?;
        while self.eat_token(&Token::Comma) {
            value.push_str(", ");
            value.push_str(&self.option_value()?);
        }
        Ok(Statement::Set { name, value: Some(value), scope })
    }

    /// What follows `SET CONSTRAINTS`: `{ALL | name, ..} {DEFERRED | IMMEDIATE}`.
    fn set_constraints(&mut self) -> Result<Statement> {
        if !self.eat("ALL") {
            self.name()?;
            while self.eat_token(&Token::Comma) {
                self.name()?;
            }
        }
        let is_deferred = self.eat("DEFERRED");
        if !is_deferred {
            self.expect("IMMEDIATE")?;
        }
        let notice = is_deferred.then_some("Foreign keys are checked by each statement.");
        Ok(Statement::Needless { tag: "SET CONSTRAINTS", relations: vec![], notice })
    }

    /// `RESET {name | ALL}`.
    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.expect("RESET")?;
        if self.eat("SESSION AUTHORIZATION") {
            return Ok(Statement::Reset { name: Some("role".into()) });
        }
        if self.eat("ALL") {
            return Ok(Statement::Reset { name: None });
        }
        Ok(Statement::Reset { name: Some(self.setting_name()?) })
    }

    /// `DISCARD {ALL | PLANS | SEQUENCES | TEMP | TEMPORARY}`.
    pub(super) fn discard(&mut self) -> Result<Statement> {
        self.expect("DISCARD")?;
        if self.eat("ALL") {
            return Ok(Statement::Discard { all: true });
        }
        if self.eat("PLANS") || self.eat("SEQUENCES") || self.eat("TEMP") || self.eat("TEMPORARY") {
            return Ok(Statement::Discard { all: false });
        }
        Err(self.unexpected("ALL, PLANS, SEQUENCES or TEMP"))
    }

    /// `UNLISTEN {* | name}`, with which pools give connections back.
    pub(super) fn unlisten(&mut self) -> Result<Statement> {
        self.expect("UNLISTEN")?;
        if !self.eat_token(&Token::Mul) {
            self.setting_name()?;
        }
        // (There is no LISTEN.)
        Ok(Statement::Needless { tag: "UNLISTEN", relations: vec![], notice: None })
    }

    pub(super) fn setting_name(&mut self) -> Result<String> {
        if self.eat("TIME ZONE") {
            return Ok("timezone".into());
        }
        if self.eat("TRANSACTION ISOLATION LEVEL") {
            return Ok("transaction_isolation".into());
        }
        self.option_name()
    }
}
