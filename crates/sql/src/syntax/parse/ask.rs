//! `SELECT`, `SUBSCRIBE`, `EXPLAIN`, `SHOW`, `DESCRIBE` and `DROP`.

use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use super::change::behind_with;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::changes_in_with;
use crate::syntax::dialect::Postgres;
use crate::syntax::names::object_name;
use crate::syntax::statement::{
    ChangesInWith, CreateTableAs, Drop, EmitClause, Explain, LifetimeClause, ObjectKind, ProgramLanguage, Show, Shows,
    Statement, Subscribe,
};

impl Input<'_> {
    pub(super) fn select(&mut self) -> Result<Statement> {
        let text = self.rest().to_string();
        let mut query = *self.select_query()?;
        let parts = changes_in_with::take(&mut query, &|query| match behind_with(query) {
            Ok(change) => change,
            Err(_) => Err(SqlError::internal("a statement that changes a table is one")),
        })?;
        let query = match behind_with(query) {
            Ok(change) if parts.is_empty() => return change,
            Ok(change) => {
                return Ok(Statement::ChangesInWith(Box::new(ChangesInWith { parts, main: change? })));
            }
            Err(query) => query,
        };
        if !parts.is_empty() {
            let main = Statement::Select { query, as_of: None, text };
            return Ok(Statement::ChangesInWith(Box::new(ChangesInWith { parts, main })));
        }
        if let Some(table) = select_into(&query)? {
            return Ok(Statement::CreateTableAs(table));
        }
        let as_of = self.as_of()?;
        Ok(Statement::Select { query, as_of, text })
    }

    /// A query, or `TABLE name`.
    pub(super) fn select_query(&mut self) -> Result<Box<ast::Query>> {
        if self.eat("TABLE") {
            let name = self.name()?;
            return all_of(&name);
        }
        self.query()
    }

    pub(super) fn subscribe(&mut self) -> Result<Statement> {
        self.parser.advance_token();
        self.eat("TO");
        let query = match self.parser.peek_token_ref().token {
            Token::LParen => {
                self.expect_token(&Token::LParen)?;
                let query = self.select_query()?;
                self.expect_token(&Token::RParen)?;
                query
            }
            _ if matches!(self.word(0).as_deref(), Some("SELECT" | "VALUES")) => self.query()?,
            _ => {
                let name = self.name()?;
                all_of(&name)?
            }
        };
        let mut subscribe =
            Subscribe { query, snapshot: true, progress: false, as_of: self.as_of()?, up_to: None, upsert_key: vec![] };
        loop {
            if self.eat("WITH") {
                self.subscribe_options(&mut subscribe)?;
            } else if self.eat("UP TO") {
                subscribe.up_to = Some(self.time()?);
            } else if self.eat("ENVELOPE UPSERT") {
                subscribe.upsert_key = self.upsert_key()?;
            } else if self.word(0).as_deref() == Some("ENVELOPE") {
                return Err(SqlError::unsupported(
                    "this ENVELOPE of SUBSCRIBE",
                    "Write ENVELOPE UPSERT (KEY (columns)), or leave it out: rows come with a diff.",
                ));
            } else {
                return Ok(Statement::Subscribe(subscribe));
            }
        }
    }

    /// `(KEY (columns))`.
    fn upsert_key(&mut self) -> Result<Vec<String>> {
        self.expect_token(&Token::LParen)?;
        self.expect("KEY")?;
        let key = self.name_list()?;
        self.expect_token(&Token::RParen)?;
        Ok(key)
    }

    fn subscribe_options(&mut self, subscribe: &mut Subscribe) -> Result<()> {
        for (name, value) in self.options()? {
            let on = match value.to_lowercase().as_str() {
                "true" | "on" | "1" | "yes" => true,
                "false" | "off" | "0" | "no" => false,
                _ => {
                    return Err(SqlError::new(
                        ErrorKind::Invalid,
                        format!("option \"{name}\" is true or false, not \"{value}\""),
                    ));
                }
            };
            match name.as_str() {
                "snapshot" => subscribe.snapshot = on,
                "progress" => subscribe.progress = on,
                _ => {
                    return Err(SqlError::new(ErrorKind::UnknownName, format!("unknown SUBSCRIBE option \"{name}\""))
                        .with_hint("The options are SNAPSHOT and PROGRESS."));
                }
            }
        }
        Ok(())
    }

    fn time(&mut self) -> Result<i64> {
        let negative = self.eat_token(&Token::Minus);
        match self.parser.peek_token_ref().token.clone() {
            Token::Number(digits, _) => {
                let value: i64 = digits
                    .parse()
                    .map_err(|_| SqlError::new(ErrorKind::Invalid, format!("time {digits} is not a whole number")))?;
                self.parser.advance_token();
                Ok(if negative { -value } else { value })
            }
            _ => Err(self.unexpected("a time, as a whole number")),
        }
    }

    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.expect("EXPLAIN")?;
        let mut shows = if self.eat("ANALYZE") { Shows::Analyze } else { Shows::Plan };
        if self.parser.peek_token_ref().token == Token::LParen
            && !matches!(self.word(1).as_deref(), Some("SELECT" | "WITH" | "VALUES" | "TABLE"))
        {
            shows = explained(&self.options()?, shows)?;
        }
        for words in ["LOGICAL", "PHYSICAL", "OPTIMIZED", "VERBOSE", "PLAN FOR", "PLAN"] {
            self.eat(words);
        }
        let mut emit = EmitClause::Changes;
        let mut relation = None;
        let query = match self.word(0).as_deref() {
            Some("SELECT" | "WITH" | "VALUES" | "TABLE") => self.select_query()?,
            Some("CREATE") => match self.create()? {
                Statement::CreateView(view) => {
                    emit = view.emit;
                    view.query
                }
                _ => return Err(explain_what()),
            },
            Some("SUBSCRIBE") => match self.subscribe()? {
                Statement::Subscribe(subscribe) => subscribe.query,
                _ => return Err(explain_what()),
            },
            Some("INSERT" | "UPDATE" | "DELETE") => return self.explain_change(shows),
            Some("COPY") => return Err(explain_what()),
            None if self.parser.peek_token_ref().token == Token::LParen => self.select_query()?,
            _ => {
                let _ = self.eat("MATERIALIZED VIEW") || self.eat("VIEW");
                let name = self.name()?;
                let query = all_of(&name)?;
                relation = Some(name);
                query
            }
        };
        if let EmitClause::Changes = emit {
            emit = self.emit();
        }
        Ok(Statement::Explain(Explain { shows, query, relation, emit }))
    }

    fn explain_change(&mut self, shows: Shows) -> Result<Statement> {
        if shows != Shows::Plan {
            let hint = "The change would be made. Write EXPLAIN alone: it shows how its rows are found.";
            return Err(SqlError::unsupported("EXPLAIN of a change with options", hint));
        }
        let change = match self.word(0).as_deref() {
            Some("INSERT") => self.insert()?,
            Some("UPDATE") => self.update()?,
            _ => self.delete()?,
        };
        Ok(Statement::ExplainChange(Box::new(change)))
    }

    pub(super) fn show(&mut self) -> Result<Statement> {
        self.expect("SHOW")?;
        let show = if self.eat("TABLES") {
            Show::Tables
        } else if self.eat("SOURCES") {
            Show::Sources
        } else if self.eat("VIEWS") {
            Show::Views
        } else if self.eat("MATERIALIZED VIEWS") {
            Show::MaterializedViews
        } else if self.eat("INDEXES") || self.eat("INDEX") || self.eat("INDICES") {
            let on = (self.eat("ON") || self.eat("FROM")).then(|| self.name()).transpose()?;
            Show::Indexes { on }
        } else if self.eat("WATERMARKS") {
            Show::Watermarks
        } else if self.eat("ARRANGEMENTS") {
            Show::Arrangements
        } else if self.word(1).as_deref() != Some("ZONE") && self.eat("TIME") {
            Show::Time
        } else if self.eat("SCHEMAS") {
            Show::Schemas
        } else if self.eat("DATABASES") {
            Show::Databases
        } else if self.eat("OPERATORS") {
            Show::Operators
        } else if self.eat("STEPS") {
            Show::Steps
        } else if self.eat("COLUMNS") {
            if !self.eat("FROM") && !self.eat("IN") {
                return Err(self.unexpected("FROM relation"));
            }
            Show::Columns { relation: self.name()? }
        } else if self.eat("CREATE") {
            for words in ["TABLE", "SOURCE", "MATERIALIZED VIEW", "VIEW", "INDEX"] {
                if self.eat(words) {
                    break;
                }
            }
            Show::Create { relation: self.name()? }
        } else if self.eat("ALL") {
            Show::Setting { name: None }
        } else {
            Show::Setting { name: Some(self.setting_name()?) }
        };
        Ok(Statement::Show(show))
    }

    pub(super) fn describe(&mut self) -> Result<Statement> {
        self.parser.advance_token();
        for words in ["TABLE", "SOURCE", "MATERIALIZED VIEW", "VIEW"] {
            if self.eat(words) {
                break;
            }
        }
        let offset = self.next_offset();
        if matches!(self.word(0).as_deref(), Some("SELECT" | "WITH" | "VALUES")) {
            let hint = "Write CREATE VIEW v AS SELECT .., then DESCRIBE v; EXPLAIN shows the plan of a query.";
            let mut error = SqlError::unsupported("DESCRIBE of a query", hint);
            error.position = Some(offset);
            return Err(error);
        }
        Ok(Statement::Describe { name: self.name()? })
    }

    /// `[IF EXISTS] name, .. [CASCADE]`: names, whether they may be missing, whether others go too.
    pub(super) fn what_goes(&mut self) -> Result<(Vec<String>, bool, bool)> {
        let if_exists = self.eat("IF EXISTS");
        let mut names = vec![self.identifier()?];
        while self.eat_token(&Token::Comma) {
            names.push(self.identifier()?);
        }
        let cascade = self.eat("CASCADE");
        if !cascade {
            self.eat("RESTRICT");
        }
        Ok((names, if_exists, cascade))
    }

    pub(super) fn drop(&mut self) -> Result<Statement> {
        self.expect("DROP")?;
        if self.eat("SCHEMA") {
            let (names, if_exists, cascade) = self.what_goes()?;
            return Ok(Statement::DropSchema { names, if_exists, cascade });
        }
        if self.eat("TYPE") {
            return self.drop_type(false);
        }
        if self.eat("DOMAIN") {
            return self.drop_type(true);
        }
        let kind = if self.eat("TABLE") {
            ObjectKind::Table
        } else if self.eat("SOURCE") {
            ObjectKind::Source
        } else if self.eat("MATERIALIZED VIEW") {
            ObjectKind::MaterializedView
        } else if self.eat("VIEW") {
            ObjectKind::View
        } else if self.eat("INDEX") {
            ObjectKind::Index
        } else if self.eat("SEQUENCE") {
            ObjectKind::Sequence
        } else {
            return match self.drop_absent()? {
                Some(statement) => Ok(statement),
                None => Err(self.unexpected("TABLE, SOURCE, VIEW, MATERIALIZED VIEW, INDEX, SEQUENCE or SCHEMA")),
            };
        };
        let if_exists = self.eat("IF EXISTS");
        let mut names = vec![self.name()?];
        while self.eat_token(&Token::Comma) {
            names.push(self.name()?);
        }
        let cascade = self.eat("CASCADE");
        if !cascade {
            self.eat("RESTRICT");
        }
        Ok(Statement::Drop(Drop { kind, if_exists, names, cascade }))
    }
}

/// `SELECT * FROM name`.
fn all_of(name: &str) -> Result<Box<ast::Query>> {
    let text = format!("SELECT * FROM \"{}\"", name.replace('"', "\"\""));
    Ok(Parser::new(&Postgres).try_with_sql(&text)?.parse_query()?)
}

/// `SELECT .. INTO table`: a table with the answer.
fn select_into(query: &ast::Query) -> Result<Option<CreateTableAs>> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
    let Some(into) = &select.into else { return Ok(None) };
    let mut query = query.clone();
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.into = None;
    }
    let lifetime = if into.temporary { LifetimeClause::OfClient } else { LifetimeClause::Lasting };
    let (name, query) = (object_name(&into.name)?, Box::new(query));
    Ok(Some(CreateTableAs { name, lifetime, if_not_exists: false, column_names: vec![], query }))
}

/// The options of EXPLAIN: ours, and those of PostgreSQL, of which the others change nothing here.
const EXPLAIN_OPTIONS: [&str; 10] =
    ["analyze", "format", "rewrites", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary"];

/// What the options of EXPLAIN ask for, behind words that ask for `shows`.
fn explained(options: &[(String, String)], shows: Shows) -> Result<Shows> {
    if let Some((unknown, _)) = options.iter().find(|(name, _)| !EXPLAIN_OPTIONS.contains(&name.as_str())) {
        let error = SqlError::new(ErrorKind::Syntax, format!("unrecognized EXPLAIN option \"{unknown}\""));
        return Err(error.with_hint("Options are analyze, rewrites and format."));
    }
    let mut on = Vec::new();
    for (name, value) in options.iter().filter(|(name, _)| name != "format") {
        on.extend(switch(name, value)?.then_some(name.as_str()));
    }
    let is_on = |wanted: &str| on.contains(&wanted);
    let format = options.iter().find(|(name, _)| name == "format").map(|(_, value)| value.to_lowercase());
    Ok(match format.as_deref() {
        Some(language @ ("python" | "rust")) if is_on("analyze") || shows == Shows::Analyze => {
            let message = format!("EXPLAIN ANALYZE in the format {language}");
            let hint = "A program is written, not run: leave ANALYZE out, and run what is written by \
                        anabranch plan FILE --profile.";
            return Err(SqlError::new(ErrorKind::Unsupported, message).with_hint(hint));
        }
        Some("python") => Shows::Program(ProgramLanguage::Python),
        Some("rust") => Shows::Program(ProgramLanguage::Rust),
        Some(other) if !["text", "xml", "json", "yaml"].contains(&other) => {
            let message = format!("unrecognized value for EXPLAIN option \"format\": \"{other}\"");
            let error = SqlError::new(ErrorKind::Invalid, message);
            return Err(error.with_hint("The formats are text, and python and rust, which are sharded programs."));
        }
        Some(other) if other != "text" => {
            let error = SqlError::new(ErrorKind::Unsupported, format!("EXPLAIN in the format {other}"));
            return Err(error.with_hint("The formats are text, and python and rust, which are sharded programs."));
        }
        _ if is_on("rewrites") => Shows::Rewrites,
        _ if is_on("analyze") => Shows::Analyze,
        _ => shows,
    })
}

/// Whether an option is on.
fn switch(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(SqlError::new(ErrorKind::Syntax, format!("{name} requires a Boolean value"))
            .with_hint("The values are on and off.")),
    }
}

fn explain_what() -> SqlError {
    SqlError::unsupported(
        "EXPLAIN of this statement",
        "EXPLAIN takes a query, a view's name, CREATE VIEW, CREATE MATERIALIZED VIEW, INSERT, UPDATE or DELETE.",
    )
}
