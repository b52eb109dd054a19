//! `CREATE DOMAIN`, `CREATE TYPE .. AS ENUM`, `ALTER TYPE`, `DROP TYPE`, `DROP DOMAIN`.

use datafusion_expr::sqlparser::ast::{self, ColumnOption};
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::types::{arrow_type, user_name};
use crate::syntax::dialect::Postgres;
use crate::syntax::names::fold;
use crate::syntax::statement::{AddLabel, AlterType, CreateType, Domain, LabelChange, Statement, TypeDefinition};

/// The most bytes of a label.
const LABEL_BYTES_MAX: usize = 63;

impl Input<'_> {
    /// `CREATE DOMAIN name [AS] type [DEFAULT e] [[NOT] NULL] [[CONSTRAINT n] CHECK (e)] ..`.
    /// (Behind `DOMAIN`.)
    pub(super) fn create_domain(&mut self) -> Result<Statement> {
        let name = self.type_name()?;
        self.eat("AS");
        // What follows is written as that of a column.
        let text = format!("__domain {}", self.rest());
        let mut parser = Parser::new(&Postgres).try_with_sql(&text)?;
        let column = parser.parse_column_def().map_err(|error| without_place(error.into()))?;
        if parser.peek_token_ref().token != Token::EOF {
            let message = format!("syntax error at or near \"{}\"", parser.peek_token_ref().token);
            return Err(SqlError::new(ErrorKind::Syntax, message));
        }
        self.skip_to_end();
        if user_name(&column.data_type).is_none() {
            arrow_type(&column.data_type)?;
        }
        let mut domain = Domain { base: column.data_type, default: None, is_not_null: false, checks: vec![] };
        for option in column.options {
            match option.option {
                ColumnOption::Null => domain.is_not_null = false,
                ColumnOption::NotNull => domain.is_not_null = true,
                ColumnOption::Default(default) => domain.default = Some(default),
                ColumnOption::Check(check) => {
                    let given = option.name.as_ref().or(check.name.as_ref()).map(fold);
                    domain.checks.push((given, *check.expr));
                }
                ColumnOption::Collation(_) => {}
                other => {
                    let hint = "A domain has a default, NOT NULL and CHECK.";
                    return Err(SqlError::unsupported(format!("{other} of a domain"), hint));
                }
            }
        }
        Ok(Statement::CreateType(Box::new(CreateType { name, definition: TypeDefinition::Domain(Box::new(domain)) })))
    }

    /// `CREATE TYPE name AS ENUM (labels)`. (Behind `TYPE`.)
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        let name = self.type_name()?;
        if !self.eat("AS ENUM") {
            let hint = "CREATE TYPE name AS ENUM ('a', 'b') and CREATE DOMAIN make types; write columns for the parts.";
            return Err(SqlError::unsupported("CREATE TYPE of a composite or a range", hint));
        }
        self.expect_token(&Token::LParen)?;
        let mut labels: Vec<String> = Vec::new();
        while !self.eat_token(&Token::RParen) {
            if !labels.is_empty() {
                self.expect_token(&Token::Comma)?;
            }
            let label = self.label()?;
            if labels.contains(&label) {
                let message = format!("enum label \"{label}\" used more than once");
                return Err(SqlError::new(ErrorKind::Duplicate, message));
            }
            labels.push(label);
        }
        Ok(Statement::CreateType(Box::new(CreateType { name, definition: TypeDefinition::Enum(labels) })))
    }

    fn label(&mut self) -> Result<String> {
        let label = self.parser.parse_literal_string()?;
        if label.len() > LABEL_BYTES_MAX || label.contains('\u{1f}') {
            let message = format!("invalid enum label \"{label}\"");
            return Err(SqlError::new(ErrorKind::Invalid, message).with_hint("Labels have 63 bytes at most."));
        }
        Ok(label)
    }

    /// A type's name. (There are none outside of `public`.)
    fn type_name(&mut self) -> Result<String> {
        let offset = self.next_offset();
        let name = self.parser.parse_object_name(false)?;
        let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident().map(fold)).collect();
        let own = match parts.as_slice() {
            [own] => own.clone(),
            [schema, own] if schema == "public" => own.clone(),
            _ => {
                let mut error = SqlError::unsupported("a type in a schema", "Leave the schema out: types are public.");
                error.position = Some(offset);
                return Err(error);
            }
        };
        let sql = ast::DataType::Custom(ast::ObjectName::from(vec![ast::Ident::new(own.clone())]), vec![]);
        if arrow_type(&sql).is_ok() {
            return Err(SqlError::new(ErrorKind::Duplicate, format!("type \"{own}\" already exists")));
        }
        Ok(own)
    }

    /// `ALTER TYPE name {ADD VALUE .. | RENAME VALUE ..}`. (Behind `TYPE`.)
    pub(super) fn alter_type(&mut self) -> Result<Statement> {
        let name = self.type_name()?;
        if self.eat("RENAME VALUE") {
            let from = self.label()?;
            self.expect("TO")?;
            let change = LabelChange::Rename { from, to: self.label()? };
            return Ok(Statement::AlterType(AlterType { name, change }));
        }
        if !self.eat("ADD VALUE") {
            let hint = "ALTER TYPE name ADD VALUE 'label' and RENAME VALUE 'a' TO 'b' change labels; else make another type, and change the columns.";
            return Err(SqlError::unsupported("this change of a type", hint));
        }
        let is_lenient = self.if_not_exists();
        let label = self.label()?;
        let beside = match (self.eat("BEFORE"), self.eat("AFTER")) {
            (true, _) => Some((true, self.label()?)),
            (_, true) => Some((false, self.label()?)),
            _ => None,
        };
        let change = LabelChange::Add(AddLabel { label, is_lenient, beside });
        Ok(Statement::AlterType(AlterType { name, change }))
    }

    /// `DROP {TYPE | DOMAIN} [IF EXISTS] name, .. [CASCADE]`. (Behind the kind.)
    pub(super) fn drop_type(&mut self, is_domain: bool) -> Result<Statement> {
        let (names, if_exists, cascade) = self.what_goes()?;
        Ok(Statement::DropType { names, is_domain, if_exists, cascade })
    }

    /// Passes over the rest of the statement.
    pub(super) fn skip_to_end(&mut self) {
        while self.parser.peek_token_ref().token != Token::EOF {
            self.parser.advance_token();
        }
    }
}

fn without_place(mut error: SqlError) -> SqlError {
    (error.position, error.line_column) = (None, None);
    error
}
