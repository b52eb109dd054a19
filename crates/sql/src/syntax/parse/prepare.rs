//! `PREPARE`, `EXECUTE`, `DEALLOCATE`.

use anabranch_batch::TextLimit;
use arrow::datatypes::DataType;
use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::{Input, parse};
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::types::{arrow_type, element_limit, text_limit, user_name};
use crate::syntax::statement::{Execute, Parsed, Prepare, Statement};
use crate::syntax::typed_parameters::CastParameters;

/// The type of a parameter, the cast that says it, and the form of its values.
type DeclaredParameter = (Option<DataType>, (Option<String>, Option<TextLimit>));

impl Input<'_> {
    /// `PREPARE name [(type, ..)] AS statement`.
    pub(super) fn prepare(&mut self) -> Result<Statement> {
        self.expect("PREPARE")?;
        let name = self.identifier()?;
        let (types, said): (Vec<_>, Vec<_>) = self.parameter_types()?.into_iter().unzip();
        let (casts, forms) = said.into_iter().unzip();
        self.expect("AS")?;
        let at = self.next_offset();
        let (text, statement) = self.inner_of(casts)?;
        if !is_prepared(&statement.statement) {
            let mut error = SqlError::new(ErrorKind::Syntax, "this statement cannot be prepared")
                .with_detail("PREPARE takes SELECT, VALUES, INSERT, UPDATE and DELETE.");
            error.position = Some(at);
            return Err(error);
        }
        Ok(Statement::Prepare(Prepare { name, types, forms, text, statement }))
    }

    /// `(type, ..)`, each with the cast that says a type that Arrow lacks, or with the form of its
    /// values; `unknown` leaves a type to what the parameter stands beside.
    fn parameter_types(&mut self) -> Result<Vec<DeclaredParameter>> {
        let mut types = Vec::new();
        if !self.eat_token(&Token::LParen) {
            return Ok(types);
        }
        loop {
            types.push(match self.eat("UNKNOWN") {
                true => (None, (None, None)),
                false => {
                    let sql = self.parser.parse_data_type()?;
                    let form = text_limit(&sql)?.or(element_limit(&sql)?);
                    let form = form.filter(|form| *form == TextLimit::Uuid);
                    let is_document = matches!(sql, ast::DataType::JSON | ast::DataType::JSONB)
                        || form.is_none() && element_limit(&sql)?.is_some();
                    let cast = (is_document || user_name(&sql).is_some()).then(|| format!("::{sql}"));
                    match user_name(&sql) {
                        // (Whether there is such a type, the cast tells.)
                        Some(_) => (None, (cast, form)),
                        None => (Some(arrow_type(&sql)?), (cast, form)),
                    }
                }
            });
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)?;
        Ok(types)
    }

    /// `EXECUTE name [(value, ..)]`.
    pub(super) fn execute(&mut self) -> Result<Statement> {
        self.expect("EXECUTE")?;
        let name = self.identifier()?;
        let mut values = Vec::new();
        if self.eat_token(&Token::LParen) && !self.eat_token(&Token::RParen) {
            loop {
                values.push(self.parser.parse_expr()?);
                if !self.eat_token(&Token::Comma) {
                    break;
                }
            }
            self.expect_token(&Token::RParen)?;
        }
        Ok(Statement::Execute(Execute { name, values }))
    }

    /// `DEALLOCATE [PREPARE] {name | ALL}`.
    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        self.expect("DEALLOCATE")?;
        self.eat("PREPARE");
        let name = if self.eat("ALL") { None } else { Some(self.identifier()?) };
        Ok(Statement::Deallocate { name })
    }

    /// The statement that the rest of this one is, and its text.
    pub(super) fn inner(&mut self) -> Result<(String, Box<Parsed>)> {
        self.inner_of(vec![])
    }

    /// The same, with casts behind its parameters.
    fn inner_of(&mut self, casts: Vec<Option<String>>) -> Result<(String, Box<Parsed>)> {
        let start = self.next_offset();
        let text = self.text[start..self.range.end].to_string();
        while self.parser.peek_token_ref().token != Token::EOF {
            self.parser.advance_token();
        }
        // The inner statement has its own.
        self.as_of = None;
        let cast = CastParameters::written(&text, &casts);
        let mut inner = parse(cast.as_ref().map_or(text.as_str(), |cast| &cast.text)).map_err(|mut error| {
            let place = |at: usize| cast.as_ref().map_or(at, |cast| cast.place(at));
            error.position = error.position.map(|position| place(position) + start);
            error
        })?;
        match inner.pop() {
            Some(parsed) => Ok((text, Box::new(parsed))),
            None => Err(self.unexpected("a statement")),
        }
    }
}

/// Whether PREPARE takes a statement.
fn is_prepared(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Select { .. }
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::ChangesInWith(_)
    )
}
