//! `ANALYZE`, `VACUUM`, `REINDEX`, `CHECKPOINT`, `REFRESH MATERIALIZED VIEW`, `COMMENT` and some of
//! `CREATE EXTENSION`, for which nothing is to be done.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{Result, SqlError};
use crate::syntax::statement::Statement;

impl Input<'_> {
    /// `ANALYZE` and `VACUUM` of all, or of some relations.
    pub(super) fn upkeep(&mut self, tag: &'static str) -> Result<Statement> {
        self.expect(tag)?;
        if self.parser.peek_token_ref().token == Token::LParen {
            self.options()?;
        }
        while ["FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE"].iter().any(|word| self.eat(word)) {}
        let mut relations = Vec::new();
        while matches!(self.parser.peek_token_ref().token, Token::Word(_)) {
            relations.push(self.name()?);
            if self.parser.peek_token_ref().token == Token::LParen {
                self.name_list()?;
            }
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        Ok(Statement::Needless { tag, relations, notice: None })
    }

    /// `CHECKPOINT`.
    pub(super) fn checkpoint(&mut self) -> Result<Statement> {
        self.expect("CHECKPOINT")?;
        let notice = Some("Commits are durable as the setting \"durability\" says.");
        Ok(Statement::Needless { tag: "CHECKPOINT", relations: vec![], notice })
    }

    /// `REINDEX [(options)] {INDEX | TABLE | SCHEMA | DATABASE | SYSTEM} [CONCURRENTLY] name`.
    pub(super) fn reindex(&mut self) -> Result<Statement> {
        self.expect("REINDEX")?;
        if self.parser.peek_token_ref().token == Token::LParen {
            self.options()?;
        }
        let is_table = self.eat("TABLE");
        if !is_table && !["INDEX", "SCHEMA", "DATABASE", "SYSTEM"].iter().any(|kind| self.eat(kind)) {
            return Err(self.unexpected("INDEX, TABLE, SCHEMA, DATABASE or SYSTEM"));
        }
        self.eat("CONCURRENTLY");
        let name = self.name()?;
        let notice = Some("Arrangements are compacted as they grow.");
        Ok(Statement::Needless { tag: "REINDEX", relations: if is_table { vec![name] } else { vec![] }, notice })
    }

    /// `REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]`.
    pub(super) fn refresh(&mut self) -> Result<Statement> {
        self.expect("REFRESH MATERIALIZED VIEW")?;
        self.eat("CONCURRENTLY");
        let relations = vec![self.name()?];
        let _ = self.eat("WITH DATA") || self.eat("WITH NO DATA");
        let notice = Some("A materialized view is always current.");
        Ok(Statement::Needless { tag: "REFRESH MATERIALIZED VIEW", relations, notice })
    }

    /// `COMMENT ON kind name IS text`.
    pub(super) fn comment(&mut self) -> Result<Statement> {
        self.expect("COMMENT ON")?;
        while self.word(0).as_deref() != Some("IS") {
            if self.parser.peek_token_ref().token == Token::EOF {
                return Err(self.unexpected("IS"));
            }
            self.parser.advance_token();
        }
        self.expect("IS")?;
        if !self.eat("NULL") {
            self.parser.parse_literal_string()?;
        }
        let notice = Some("Comments are not kept.");
        Ok(Statement::Needless { tag: "COMMENT", relations: vec![], notice })
    }

    /// What follows `CREATE EXTENSION`. Those whose best known function is built in are taken; a
    /// query that calls another of their functions is refused.
    pub(super) fn create_extension(&mut self) -> Result<Statement> {
        self.eat("IF NOT EXISTS");
        let name = self.name()?;
        self.eat("WITH");
        if self.eat("SCHEMA") {
            self.name()?;
        }
        self.eat("CASCADE");
        let notice = match name.as_str() {
            "pgcrypto" | "uuid-ossp" => {
                "gen_random_uuid() is built in; other functions of the extension are not there."
            }
            "plpgsql" => "There are no functions in plpgsql.",
            _ => return Err(SqlError::unsupported(format!("the extension \"{name}\""), "Leave it out.")),
        };
        Ok(Statement::Needless { tag: "CREATE EXTENSION", relations: vec![], notice: Some(notice) })
    }
}
