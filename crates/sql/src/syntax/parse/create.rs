//! `CREATE ..`.

use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use super::columns::Columns;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::index_parts::IndexPart;
use crate::syntax::names::fold;
use crate::syntax::references::foreign_key;
use crate::syntax::span::Span;
use crate::syntax::statement::{
    CreateIndex, CreateSource, CreateTable, CreateTableAs, LifetimeClause, LikeClause, Statement, UniqueClause,
    Watermark,
};
use crate::syntax::table::has_query;

impl Input<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.expect("CREATE")?;
        let or_replace = self.eat("OR REPLACE");
        if self.eat("MATERIALIZED VIEW") {
            return self.create_view(true, LifetimeClause::Lasting, or_replace);
        }
        if let Some((lifetime, is_recursive)) = self.view_ahead() {
            return match is_recursive {
                true => self.create_recursive_view(lifetime, or_replace),
                false => self.create_plain_view(lifetime, or_replace),
            };
        }
        let kind = self.word(0).unwrap_or_default();
        if or_replace {
            return Err(SqlError::unsupported(
                format!("CREATE OR REPLACE {kind}"),
                "Only views can be replaced: DROP the object first.",
            ));
        }
        if let Some(lifetime) = self.table_ahead() {
            return self.create_table(lifetime);
        }
        if self.eat("SCHEMA") {
            return self.create_schema();
        }
        if self.eat("SOURCE") {
            return self.create_source();
        }
        if self.eat("SEQUENCE") {
            return self.create_sequence();
        }
        if self.eat("DOMAIN") {
            return self.create_domain();
        }
        if self.eat("TYPE") {
            return self.create_type();
        }
        if self.eat("INDEX") {
            return self.create_index(false);
        }
        if self.eat("UNIQUE INDEX") {
            return self.create_index(true);
        }
        if self.eat("EXTENSION") {
            return self.create_extension();
        }
        if self.eat("DEFAULT INDEX") {
            return self.create_default_index();
        }
        Err(self.refuse_create(&kind))
    }

    /// Consumes `[LOCAL] [TEMPORARY | UNLOGGED] TABLE`.
    fn table_ahead(&mut self) -> Option<LifetimeClause> {
        for words in ["TEMP", "TEMPORARY", "LOCAL TEMP", "LOCAL TEMPORARY", "GLOBAL TEMP", "GLOBAL TEMPORARY"] {
            if self.eat(&format!("{words} TABLE")) {
                return Some(LifetimeClause::OfClient);
            }
        }
        (self.eat("TABLE") || self.eat("UNLOGGED TABLE")).then_some(LifetimeClause::Lasting)
    }

    fn create_schema(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.identifier()?;
        if self.eat("AUTHORIZATION") {
            self.identifier()?;
        }
        if self.word(0).as_deref() == Some("CREATE") {
            let hint = "Create the schema, then its tables: CREATE TABLE schema.table (..).";
            return Err(SqlError::unsupported("CREATE SCHEMA with statements in it", hint));
        }
        Ok(Statement::CreateSchema { name, if_not_exists })
    }

    fn create_table(&mut self, lifetime: LifetimeClause) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.created_name()?;
        if self.eat("AS") {
            let mut query = self.select_query()?;
            // (`TABLE name` ends with its name: what follows is what WITH NO DATA became.)
            if self.eat("LIMIT") {
                let limit = Some(self.parser.parse_expr()?);
                query.limit_clause = Some(ast::LimitClause::LimitOffset { limit, offset: None, limit_by: vec![] });
            }
            let column_names = vec![];
            return Ok(Statement::CreateTableAs(CreateTableAs { name, lifetime, if_not_exists, column_names, query }));
        }
        self.refuse_partitions()?;
        if self.parser.peek_token_ref().token != Token::LParen {
            return Err(self.unexpected("a list of columns"));
        }
        let names_only = matches!(self.parser.peek_nth_token_ref(1).token, Token::Word(_))
            && matches!(self.parser.peek_nth_token_ref(2).token, Token::Comma | Token::RParen);
        if names_only {
            let column_names = self.name_list()?;
            self.expect("AS")?;
            let query = self.query()?;
            return Ok(Statement::CreateTableAs(CreateTableAs { name, lifetime, if_not_exists, column_names, query }));
        }
        let columns = self.columns()?;
        self.refuse_partitions()?;
        let is_append_only = self.eat("APPEND ONLY");
        self.on_commit(lifetime)?;
        let options = self.with_options()?;
        let rules = columns.rules(&name);
        Ok(Statement::CreateTable(CreateTable {
            like: columns.like,
            uniques: columns.uniques,
            name,
            if_not_exists,
            columns: columns.fields,
            defaults: columns.defaults,
            primary_key: columns.primary_key,
            watermark: columns.watermark,
            is_append_only,
            options,
            rules,
            lifetime,
        }))
    }

    fn refuse_partitions(&self) -> Result<()> {
        if self.word(0).as_deref() == Some("INHERITS") {
            let hint = "Write CREATE TABLE t (LIKE u, ..) for the columns of u, and UNION ALL for the rows of both.";
            return Err(SqlError::unsupported("INHERITS", hint));
        }
        if self.word(0).as_deref() != Some("PARTITION") {
            return Ok(());
        }
        let hint = "Create one table, without partitions: an index or the first columns of its key find its parts.";
        Err(SqlError::unsupported("PARTITION BY and PARTITION OF", hint))
    }

    /// `ON COMMIT PRESERVE ROWS` of a temporary table, which is what tables do.
    fn on_commit(&mut self, lifetime: LifetimeClause) -> Result<()> {
        if lifetime == LifetimeClause::Lasting || self.eat("ON COMMIT PRESERVE ROWS") || !self.eat("ON COMMIT") {
            return Ok(());
        }
        let hint = "Leave it out: the rows stay until the client goes; DELETE or DROP them when done.";
        Err(SqlError::unsupported("ON COMMIT DELETE ROWS and ON COMMIT DROP", hint))
    }

    fn create_source(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.created_name()?;
        let columns = match self.parser.peek_token_ref().token {
            Token::LParen => self.columns()?,
            _ => Columns::default(),
        };
        if let Some(at) = columns.defaults.iter().position(Option::is_some) {
            return Err(SqlError::unsupported(
                format!("DEFAULT on column \"{}\" of a source", columns.fields[at].name()),
                "Apply coalesce() in a view over the source.",
            ));
        }
        if columns.has_rules() {
            let hint = "Declare names and types; check and compute in a view over the source.";
            return Err(SqlError::unsupported("LIKE, CHECK, REFERENCES, GENERATED and serial in a source", hint));
        }
        let options = self.with_options()?;
        if options.is_empty() {
            return Err(self.unexpected("WITH (connector = .., ..)"));
        }
        Ok(Statement::CreateSource(CreateSource {
            name,
            if_not_exists,
            columns: columns.fields,
            primary_key: columns.primary_key,
            watermark: columns.watermark,
            options,
        }))
    }

    fn create_index(&mut self, is_unique: bool) -> Result<Statement> {
        // (No index blocks writers.)
        self.eat("CONCURRENTLY");
        let if_not_exists = self.if_not_exists();
        let name = match self.word(0).as_deref() {
            Some("ON") => None,
            _ => Some(self.created_name()?),
        };
        self.expect("ON")?;
        let relation = self.name()?;
        if self.eat("USING") {
            self.identifier()?;
        }
        let parts = self.index_parts(is_unique)?;
        if self.eat("INCLUDE") {
            // (An index has all columns of its rows.)
            self.name_list()?;
        }
        self.eat("NULLS DISTINCT");
        self.with_options()?;
        if self.eat("WHERE") {
            let offset = self.next_offset();
            self.parser.parse_expr()?;
            if is_unique {
                let hint = "Check the rows with a view that counts them, or keep them in a table of their own.";
                let mut error = SqlError::unsupported("a unique index on some of the rows", hint);
                error.position = Some(offset);
                return Err(error);
            }
            // (An index on all rows serves those that are meant.)
        }
        let columns: Option<Vec<String>> = parts.iter().map(IndexPart::column).collect();
        let parts = if columns.is_some() { vec![] } else { parts };
        let columns = columns.unwrap_or_default();
        Ok(Statement::CreateIndex(CreateIndex { name, if_not_exists, relation, columns, parts, is_unique }))
    }

    /// `CREATE DEFAULT INDEX ON relation`: an index on all columns would serve no query, so the
    /// columns are asked for.
    fn create_default_index(&mut self) -> Result<Statement> {
        Err(SqlError::unsupported(
            "CREATE DEFAULT INDEX",
            "Write CREATE INDEX ON relation (columns), with the columns that queries look up.",
        ))
    }

    /// The columns and expressions of an index.
    fn index_parts(&mut self, is_unique: bool) -> Result<Vec<IndexPart>> {
        self.expect_token(&Token::LParen)?;
        let mut parts = Vec::new();
        loop {
            let offset = self.next_offset();
            let expr = self.parser.parse_expr()?;
            if has_query(&expr) {
                let hint = "An index is on columns of one row, and what is computed of them.";
                let mut error = SqlError::unsupported("a subquery in an index expression", hint);
                error.position = Some(offset);
                return Err(error);
            }
            let part = IndexPart::new(expr);
            if is_unique && part.column().is_none() {
                let mut error = SqlError::unsupported(
                    format!("a unique index on the expression {part}"),
                    "Add a column that is computed of it, GENERATED ALWAYS AS (..) STORED, and make that unique.",
                );
                error.position = Some(offset);
                return Err(error);
            }
            parts.push(part);
            // (An index serves lookups by equality: order and classes of operators say nothing.)
            let is_class = self.word(0).is_some_and(|word| word.ends_with("_OPS"));
            if is_class {
                self.parser.advance_token();
            }
            let _ = self.eat("ASC") || self.eat("DESC");
            let _ = self.eat("NULLS FIRST") || self.eat("NULLS LAST");
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)?;
        Ok(parts)
    }

    pub(super) fn with_options(&mut self) -> Result<Vec<(String, String)>> {
        if self.eat("WITH") { self.options() } else { Ok(vec![]) }
    }

    /// `(name type options, .., constraints)`.
    fn columns(&mut self) -> Result<Columns> {
        let mut columns = Columns::default();
        self.expect_token(&Token::LParen)?;
        if self.parser.peek_token_ref().token == Token::RParen {
            return Err(SqlError::unsupported("a table without columns", "Give it a column, as in (id int)."));
        }
        if self.word(0).as_deref() == Some("LIKE") {
            columns.like = Some(self.like()?);
            if !self.eat_token(&Token::Comma) {
                self.expect_token(&Token::RParen)?;
                return columns.finish();
            }
        }
        loop {
            if self.table_constraint_ahead() {
                self.table_constraint(&mut columns)?;
            } else {
                self.column(&mut columns)?;
            }
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)?;
        columns.finish()
    }

    /// `LIKE table [{INCLUDING | EXCLUDING} option ..]`.
    fn like(&mut self) -> Result<LikeClause> {
        self.expect("LIKE")?;
        let mut like = LikeClause { table: self.name()?, ..LikeClause::default() };
        loop {
            let includes = match self.word(0).as_deref() {
                Some("INCLUDING") => true,
                Some("EXCLUDING") => false,
                _ => return Ok(like),
            };
            self.identifier()?;
            let offset = self.next_offset();
            match self.identifier()?.as_str() {
                "all" => {
                    let table = std::mem::take(&mut like.table);
                    let (defaults, generated, identity, checks, keys) =
                        (includes, includes, includes, includes, includes);
                    like = LikeClause { table, defaults, generated, identity, checks, keys };
                }
                "defaults" => like.defaults = includes,
                "generated" => like.generated = includes,
                "identity" => like.identity = includes,
                "constraints" => like.checks = includes,
                "indexes" => like.keys = includes,
                // (There are none that could be copied.)
                "comments" | "compression" | "statistics" | "storage" => {}
                other => {
                    let mut error = SqlError::new(ErrorKind::Syntax, format!("LIKE has no option {other}"));
                    error.position = Some(offset);
                    return Err(
                        error.with_hint("Write INCLUDING ALL, DEFAULTS, GENERATED, IDENTITY, CONSTRAINTS or INDEXES.")
                    );
                }
            }
        }
    }

    fn table_constraint_ahead(&self) -> bool {
        let next = self.word(1).unwrap_or_default();
        match self.word(0).as_deref() {
            Some("CONSTRAINT") => true,
            Some("PRIMARY") | Some("FOREIGN") => next == "KEY",
            Some("WATERMARK") => next == "FOR",
            Some("UNIQUE") | Some("CHECK") => self.parser.peek_nth_token_ref(1).token == Token::LParen,
            _ => false,
        }
    }

    fn table_constraint(&mut self, columns: &mut Columns) -> Result<()> {
        let offset = self.next_offset();
        let name = if self.eat("CONSTRAINT") { Some(self.identifier()?) } else { None };
        if self.eat("CHECK") {
            columns.checks.push((name, self.condition()?));
            return Ok(());
        }
        if self.eat("PRIMARY KEY") {
            if !columns.key_names.is_empty() {
                return Err(SqlError::new(ErrorKind::Duplicate, "the table has two primary keys"));
            }
            columns.key_names = self.name_list()?;
            return Ok(());
        }
        if self.eat("WATERMARK FOR") {
            if columns.watermark.is_some() {
                return Err(SqlError::new(ErrorKind::Duplicate, "the table has two watermarks"));
            }
            columns.watermark = Some(self.watermark()?);
            return Ok(());
        }
        if self.eat("UNIQUE") {
            columns.uniques.push(UniqueClause { name, columns: self.name_list()? });
            return Ok(());
        }
        if self.word(0).as_deref() != Some("FOREIGN") {
            return Err(self.unexpected("PRIMARY KEY"));
        }
        let Some(ast::TableConstraint::ForeignKey(constraint)) = self.parser.parse_optional_table_constraint()? else {
            return Err(self.unexpected("FOREIGN KEY"));
        };
        let mut reference = foreign_key(constraint, None).map_err(|mut error| {
            error.position = Some(offset);
            error
        })?;
        reference.name = name.unwrap_or_default();
        columns.references.push(reference);
        Ok(())
    }

    /// `(condition)` of a CHECK.
    pub(super) fn condition(&mut self) -> Result<ast::Expr> {
        self.expect_token(&Token::LParen)?;
        let expr = self.parser.parse_expr()?;
        self.expect_token(&Token::RParen)?;
        for words in ["NO INHERIT", "NOT VALID"] {
            self.eat(words);
        }
        Ok(expr)
    }

    /// `column AS column [- delay]`.
    fn watermark(&mut self) -> Result<Watermark> {
        let column = self.identifier()?;
        self.expect("AS")?;
        let offset = self.next_offset();
        let expr = self.parser.parse_expr()?;
        let is_column = |expr: &ast::Expr| matches!(expr, ast::Expr::Identifier(ident) if fold(ident) == column);
        let delay = match &expr {
            ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Minus, right } if is_column(left) => Span::read(right),
            expr if is_column(expr) => Some(Span::Ticks(0)),
            _ => None,
        };
        match delay.filter(|delay| delay.amount() >= 0) {
            Some(delay) => Ok(Watermark { column, delay }),
            None => {
                let mut error = SqlError::unsupported(
                    format!("the watermark {expr}"),
                    format!("Write {column}, or {column} - INTERVAL '5 seconds'; without months."),
                );
                error.position = Some(offset);
                Err(error)
            }
        }
    }

    fn column(&mut self, columns: &mut Columns) -> Result<()> {
        let offset = self.next_offset();
        if self.word(2).as_deref() == Some("AS") && self.parser.peek_nth_token_ref(3).token == Token::LParen {
            let hint = "Write GENERATED ALWAYS AS (expression) STORED behind the type.";
            let mut error = SqlError::new(ErrorKind::Syntax, "syntax error at or near \"AS\"").with_hint(hint);
            error.position = Some(offset);
            return Err(error);
        }
        let definition = self.parser.parse_column_def()?;
        columns.add(definition).map_err(|mut error| {
            error.position = error.position.or(Some(offset));
            error
        })
    }
}
