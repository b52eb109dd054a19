//! `COPY .. FROM` and `COPY .. TO`, in the grammar of today and in the one before PostgreSQL 9.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::statement::{Copied, CopyColumns, CopyEnd, CopyFrom, CopyOptions, CopyTo, Statement};

impl Input<'_> {
    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.expect("COPY")?;
        let mut options = CopyOptions::default();
        if self.eat("BINARY") {
            options.plain.push(("format".into(), "binary".into()));
        }
        if self.parser.peek_token_ref().token == Token::LParen {
            let copied = self.copied_query()?;
            self.expect("TO")?;
            let to = self.copy_end("STDOUT")?;
            self.copy_options(&mut options)?;
            return Ok(Statement::CopyTo(CopyTo { copied, to, options }));
        }
        let table = self.name()?;
        let columns = match self.parser.peek_token_ref().token {
            Token::LParen => self.name_list()?,
            _ => vec![],
        };
        if self.eat("TO") {
            let to = self.copy_end("STDOUT")?;
            self.copy_options(&mut options)?;
            let copied = Copied::Table { name: table, columns };
            return Ok(Statement::CopyTo(CopyTo { copied, to, options }));
        }
        if !self.eat("FROM") {
            return Err(self.unexpected("FROM or TO"));
        }
        let from = self.copy_end("STDIN")?;
        self.copy_options(&mut options)?;
        let condition = match self.eat("WHERE") {
            true => Some(Box::new(self.parser.parse_expr()?)),
            false => None,
        };
        Ok(Statement::CopyFrom(CopyFrom { table, columns, from, options, condition }))
    }

    /// `(query)` or `(SUBSCRIBE ..)`.
    fn copied_query(&mut self) -> Result<Copied> {
        self.expect_token(&Token::LParen)?;
        let copied = match self.word(0).as_deref() {
            Some("SUBSCRIBE" | "TAIL") => match self.subscribe()? {
                Statement::Subscribe(subscribe) => Copied::Changes(Box::new(subscribe)),
                _ => return Err(self.unexpected("a query")),
            },
            Some("INSERT" | "UPDATE" | "DELETE") => {
                return Err(SqlError::unsupported(
                    "COPY of a statement that writes",
                    "Run it with RETURNING: the rows are its answer.",
                ));
            }
            _ => Copied::Query(self.select_query()?),
        };
        self.expect_token(&Token::RParen)?;
        Ok(copied)
    }

    /// A path in quotes, or the word for the client.
    fn copy_end(&mut self, client: &str) -> Result<CopyEnd> {
        if self.eat(client) {
            return Ok(CopyEnd::Client);
        }
        if self.word(0).as_deref() == Some("PROGRAM") {
            return Err(SqlError::unsupported("COPY with a program", "Run the program, and pipe its output or input."));
        }
        match self.parser.peek_token_ref().token.clone() {
            Token::SingleQuotedString(path) => {
                self.parser.advance_token();
                Ok(CopyEnd::Path(path))
            }
            _ => Err(self.unexpected(&format!("a path in quotes, or {client}"))),
        }
    }

    fn copy_options(&mut self, options: &mut CopyOptions) -> Result<()> {
        self.eat("WITH");
        match self.parser.peek_token_ref().token {
            Token::LParen => self.copy_listed_options(options),
            _ => self.copy_old_options(options),
        }
    }

    /// `(name value, ..)`.
    fn copy_listed_options(&mut self, options: &mut CopyOptions) -> Result<()> {
        self.expect_token(&Token::LParen)?;
        loop {
            let offset = self.next_offset();
            let name = self.option_name()?;
            self.eat_token(&Token::Eq);
            let is_again = match name.as_str() {
                "force_quote" => options.force_quote.replace(self.copy_columns()?).is_some(),
                "force_not_null" => options.force_not_null.replace(self.copy_columns()?).is_some(),
                "force_null" => options.force_null.replace(self.copy_columns()?).is_some(),
                _ => {
                    let value = match self.parser.peek_token_ref().token {
                        Token::Comma | Token::RParen => "true".to_string(),
                        _ => self.option_value()?,
                    };
                    let is_again = options.plain.iter().any(|(known, _)| *known == name);
                    options.plain.push((name.clone(), value));
                    is_again
                }
            };
            if is_again {
                let mut error =
                    SqlError::new(ErrorKind::Syntax, format!("conflicting or redundant options: \"{name}\""));
                error.position = Some(offset);
                return Err(error);
            }
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)
    }

    /// `*`, or names in parentheses.
    fn copy_columns(&mut self) -> Result<CopyColumns> {
        match self.eat_token(&Token::Mul) {
            true => Ok(CopyColumns::All),
            false => Ok(CopyColumns::Named(self.name_list()?)),
        }
    }

    /// `CSV HEADER DELIMITER ','`: the options before PostgreSQL 9.
    fn copy_old_options(&mut self, options: &mut CopyOptions) -> Result<()> {
        while let Some(word) = self.word(0) {
            if word == "WHERE" {
                return Ok(());
            }
            self.parser.advance_token();
            match word.as_str() {
                "BINARY" | "CSV" | "JSON" | "PARQUET" | "TBL" => {
                    options.plain.push(("format".into(), word.to_lowercase()));
                }
                "HEADER" => options.plain.push(("header".into(), "true".into())),
                "DELIMITER" | "NULL" | "QUOTE" | "ESCAPE" | "ENCODING" => {
                    self.eat("AS");
                    let value = self.option_value()?;
                    options.plain.push((word.to_lowercase(), value));
                }
                "FORCE" if self.eat("QUOTE") => options.force_quote = Some(self.copy_old_columns()?),
                "FORCE" if self.eat("NOT NULL") => options.force_not_null = Some(self.copy_old_columns()?),
                "FORCE" if self.eat("NULL") => options.force_null = Some(self.copy_old_columns()?),
                _ => {
                    return Err(SqlError::new(ErrorKind::Syntax, format!("unknown COPY option {word}"))
                        .with_hint("Write options as WITH (format = csv, header = true)."));
                }
            }
        }
        Ok(())
    }

    fn copy_old_columns(&mut self) -> Result<CopyColumns> {
        if self.eat_token(&Token::Mul) {
            return Ok(CopyColumns::All);
        }
        let mut names = vec![self.identifier()?];
        while self.eat_token(&Token::Comma) {
            names.push(self.identifier()?);
        }
        Ok(CopyColumns::Named(names))
    }
}
