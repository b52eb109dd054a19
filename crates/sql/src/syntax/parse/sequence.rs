//! `CREATE SEQUENCE`, `ALTER SEQUENCE` and their options.

use arrow::datatypes::DataType;
use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::{fold, object_name};
use crate::syntax::sequence::{SequenceOptions, SequenceStatement};
use crate::syntax::statement::Statement;

impl Input<'_> {
    pub(super) fn create_sequence(&mut self) -> Result<Statement> {
        let is_lenient = self.if_not_exists();
        let name = self.created_name()?;
        let options = self.sequence_options(false)?;
        Ok(Statement::CreateSequence(SequenceStatement { name, is_lenient, options }))
    }

    /// (Behind `ALTER SEQUENCE`.)
    pub(super) fn alter_sequence(&mut self, name: String, is_lenient: bool) -> Result<Statement> {
        let options = self.sequence_options(true)?;
        if options == SequenceOptions::default() {
            return Err(self.unexpected("an option of sequences, such as RESTART or INCREMENT"));
        }
        Ok(Statement::AlterSequence(SequenceStatement { name, is_lenient, options }))
    }

    fn sequence_options(&mut self, alters: bool) -> Result<SequenceOptions> {
        let mut options = SequenceOptions::default();
        loop {
            if self.eat("AS") {
                options.data_type = Some(self.sequence_type()?);
            } else if self.eat("INCREMENT") {
                self.eat("BY");
                options.step = Some(self.whole_number()?);
            } else if self.eat("NO MINVALUE") {
                options.min = Some(None);
            } else if self.eat("NO MAXVALUE") {
                options.max = Some(None);
            } else if self.eat("NO CYCLE") {
                options.cycles = Some(false);
            } else if self.eat("MINVALUE") {
                options.min = Some(Some(self.whole_number()?));
            } else if self.eat("MAXVALUE") {
                options.max = Some(Some(self.whole_number()?));
            } else if self.eat("CYCLE") {
                options.cycles = Some(true);
            } else if self.eat("START") {
                self.eat("WITH");
                options.start = Some(self.whole_number()?);
            } else if alters && self.eat("RESTART") {
                let given = self.eat("WITH") || self.number_ahead();
                options.restart = Some(if given { Some(self.whole_number()?) } else { None });
            } else if self.eat("CACHE") {
                // (Numbers are counted in memory, one after the other.)
                self.whole_number()?;
            } else if self.eat("OWNED BY") {
                options.owner = Some(if self.eat("NONE") { None } else { Some(self.owner()?) });
            } else {
                return Ok(options);
            }
        }
    }

    /// `table.column`.
    fn owner(&mut self) -> Result<(String, String)> {
        let mut name = self.parser.parse_object_name(false)?;
        match (name.0.pop().and_then(|column| column.as_ident().map(fold)), name.0.is_empty()) {
            (Some(column), false) => Ok((object_name(&name)?, column)),
            _ => {
                let hint = "Specify OWNED BY table.column or OWNED BY NONE.";
                Err(SqlError::new(ErrorKind::Syntax, "invalid OWNED BY option").with_hint(hint))
            }
        }
    }

    fn number_ahead(&self) -> bool {
        matches!(self.parser.peek_token_ref().token, Token::Number(..) | Token::Minus)
    }

    fn whole_number(&mut self) -> Result<i64> {
        self.eat_token(&Token::Plus);
        let is_number = self.number_ahead();
        let value = if is_number { self.option_value()? } else { String::new() };
        value.parse().map_err(|_| match is_number {
            true => SqlError::new(ErrorKind::Invalid, format!("{value} is out of range for type bigint")),
            false => self.unexpected("a whole number"),
        })
    }

    fn sequence_type(&mut self) -> Result<DataType> {
        match self.parser.parse_data_type()? {
            ast::DataType::SmallInt(None) | ast::DataType::Int2(None) => Ok(DataType::Int16),
            ast::DataType::Int(None) | ast::DataType::Integer(None) | ast::DataType::Int4(None) => Ok(DataType::Int32),
            ast::DataType::BigInt(None) | ast::DataType::Int8(None) => Ok(DataType::Int64),
            _ => Err(SqlError::new(ErrorKind::Invalid, "sequence type must be smallint, integer, or bigint")),
        }
    }
}
