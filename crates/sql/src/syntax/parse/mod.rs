//! Text to statements.
//!
//! A small parser stands before `sqlparser`'s: it looks at the first words, handles the statements
//! whose grammar is ours (sources, subscriptions, `SHOW` ..), and calls the public methods of
//! `sqlparser` for everything below: names, column definitions, expressions, queries. Statements
//! that cannot work here are refused by name, with what to write instead.
//!
//! Reading order: this file, `taken`, `asof`, `recognize`, `recursion`, `session`, `create`,
//! `columns`, `alter`, `change` (INSERT, UPDATE, DELETE), `copy`, `transaction`, `ask` (SELECT,
//! SUBSCRIBE, SHOW ..), `prepare`, `cursor`, `settings`, `refuse`.

mod absent;
mod alter;
mod any_values;
mod ask;
mod asof;
mod borrowed;
pub(crate) mod change;
mod column_words;
mod columns;
mod copy;
mod create;
mod cursor;
pub(crate) mod exclude;
mod from_first;
mod literals;
mod merge;
mod needless;
pub(crate) mod operands;
mod prepare;
mod recognize;
mod recursion;
mod refuse;
mod sequence;
mod session;
mod settings;
pub(crate) mod spellings;
mod subscripted;
mod symmetric;
mod taken;
mod transaction;
mod trim;
mod typed_literals;
mod user_types;
mod view;

use std::ops::Range;

use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::keywords::Keyword;
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use crate::error::{ErrorKind, Result, SqlError, no_parameter, offset_of};
use crate::resolve::suggest::nearest;
use crate::stack::{depth_of, with_deep_stack};
use crate::syntax::dialect::Postgres;
use crate::syntax::names::{fold, object_name};
use crate::syntax::split::{split, unterminated};
use crate::syntax::statement::{Overriding, Parsed, Statement};
use taken::{tables_of_windows, take_as_of, take_overriding, take_with_data};

/// Levels that the parser follows on any thread.
const SHALLOW_DEPTH_MAX: usize = 50;

/// Levels that the parser follows on a deep stack.
const PARSER_DEPTH_MAX: usize = 500;

/// The greatest number of a parameter: clients count them in two bytes.
const PARAMETERS_MAX: usize = 65_535;

/// Parses a script: statements separated by `;`.
///
/// # Errors
/// The first error, placed in `text`.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    split(text)
        .statements
        .into_iter()
        .map(|range| {
            let mut parsed = parse_one(text, range.clone()).map_err(|mut error| {
                let unplaced = if error.message.ends_with("end of input") { range.end } else { range.start };
                error.position = Some(error.place(text).unwrap_or(unplaced));
                error
            })?;
            // The parameters of what is prepared are its own.
            if matches!(parsed.statement, Statement::Prepare(_)) {
                parsed.parameters = 0;
            }
            Ok(parsed)
        })
        .collect()
}

/// Parses one query, as in the text of a view.
///
/// # Errors
/// `Syntax`, placed in `text`.
pub fn parse_query(text: &str) -> Result<Box<ast::Query>> {
    match parse(text)?.pop().map(|parsed| parsed.statement) {
        Some(Statement::Select { query, .. }) => Ok(query),
        _ => Err(SqlError::new(ErrorKind::Syntax, "expected a query")),
    }
}

/// How deeply a text is nested; see [`stack`](crate::stack).
pub(crate) fn depth(text: &str) -> Result<usize> {
    depth_of(&tokenize(&Postgres, text, 0..text.len())?, text)
}

/// Parses one expression, as in a column's default.
///
/// # Errors
/// `Syntax`, placed in `text`.
pub(crate) fn parse_expr(text: &str) -> Result<ast::Expr> {
    let dialect = Postgres;
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location()?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let expr = parser.parse_expr()?;
    parser.expect_token(&Token::EOF)?;
    Ok(expr)
}

fn parse_one(text: &str, range: Range<usize>) -> Result<Parsed> {
    let dialect = Postgres;
    let mut tokens = tokenize(&dialect, text, range.clone())?;
    let depth = depth_of(&tokens, text)?;
    let parameters = greatest_parameter(&tokens, text)?;
    asof::rewrite(&mut tokens, text)?;
    borrowed::rewrite(&mut tokens, text)?;
    from_first::rewrite(&mut tokens);
    literals::join(&mut tokens, text)?;
    recognize::rewrite(&mut tokens, text)?;
    exclude::rewrite(&mut tokens);
    recursion::rewrite(&mut tokens, text)?;
    operands::rewrite(&mut tokens);
    subscripted::rewrite(&mut tokens);
    column_words::rewrite(&mut tokens);
    any_values::rewrite(&mut tokens);
    symmetric::rewrite(&mut tokens);
    trim::rewrite(&mut tokens);
    spellings::rewrite(&mut tokens);
    typed_literals::rewrite(&mut tokens);
    // The parser calls itself for parentheses; it counts its calls, and chains are loops to it.
    let (statement, schemas) = match depth > SHALLOW_DEPTH_MAX {
        true => with_deep_stack(|| parse_tokens(tokens, text, range.clone(), PARSER_DEPTH_MAX)),
        false => parse_tokens(tokens, text, range.clone(), SHALLOW_DEPTH_MAX),
    }?;
    Ok(Parsed { statement, range, parameters, schemas })
}

/// The greatest number of the parameters `$1`, `$2` ..
fn greatest_parameter(tokens: &[TokenWithSpan], text: &str) -> Result<usize> {
    let mut greatest = 0;
    for token in tokens {
        let Token::Placeholder(name) = &token.token else { continue };
        match name.strip_prefix('$').and_then(|number| number.parse().ok()) {
            Some(number @ 1..=PARAMETERS_MAX) => greatest = greatest.max(number),
            Some(_) => return Err(asof::placed(no_parameter(name), token, text)),
            None => {
                let error = SqlError::new(ErrorKind::Syntax, format!("syntax error at or near \"{name}\""))
                    .with_hint("Parameters are written $1, $2 ..");
                return Err(asof::placed(error, token, text));
            }
        }
    }
    Ok(greatest)
}

fn parse_tokens(
    mut tokens: Vec<TokenWithSpan>,
    text: &str,
    range: Range<usize>,
    depth_max: usize,
) -> Result<(Statement, Vec<String>)> {
    let dialect = Postgres;
    let as_of = take_as_of(&mut tokens);
    let overriding = take_overriding(&mut tokens);
    columns::order_options(&mut tokens);
    take_with_data(&mut tokens);
    let parser = Parser::new(&dialect).with_recursion_limit(depth_max).with_tokens_with_locations(tokens);
    let mut input = Input { parser, as_of, text, range, schemas: vec![] };
    let mut statement = input.statement()?;
    if input.parser.peek_token_ref().token != Token::EOF {
        let error = input.unexpected("the end of the statement");
        return Err(match mistyped(&input.parser.get_current_token().token) {
            Some(word) => error.with_hint(format!("Perhaps you meant {word}.")),
            None => error,
        });
    }
    if input.as_of.is_some() {
        return Err(SqlError::unsupported("AS OF here", "It ends a SELECT or a SUBSCRIBE."));
    }
    match (&mut statement, overriding) {
        (_, Overriding::Unsaid) => {}
        (Statement::Insert(insert), said) => insert.overriding = said,
        _ => return Err(SqlError::new(ErrorKind::Syntax, "syntax error at or near \"OVERRIDING\"")),
    }
    Ok((statement, input.schemas))
}

/// The word of a clause that was probably meant by a name behind which a statement goes on.
fn mistyped(token: &Token) -> Option<&'static str> {
    const CLAUSES: [&str; 10] =
        ["FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "JOIN", "UNION", "VALUES"];
    let Token::Word(Word { value, quote_style: None, .. }) = token else { return None };
    nearest(value, CLAUSES.into_iter()).filter(|clause| !clause.eq_ignore_ascii_case(value))
}

/// Tokens of one statement, with places counted in the whole text.
fn tokenize(dialect: &Postgres, text: &str, range: Range<usize>) -> Result<Vec<TokenWithSpan>> {
    let line = text[..range.start].matches('\n').count() as u64;
    let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let column = text[line_start..range.start].chars().count() as u64;
    let shift = |location: Location| Location {
        line: location.line + line,
        column: if location.line == 1 { location.column + column } else { location.column },
    };
    let source = &text[range.clone()];
    let mut tokens = Tokenizer::new(dialect, source).tokenize_with_location().map_err(|mut error| {
        if let Some((at, what)) = unterminated(source) {
            let mut error = SqlError::new(ErrorKind::Syntax, format!("unterminated {what}"));
            error.position = Some(range.start + at);
            return error;
        }
        error.location = shift(error.location);
        error.into()
    })?;
    tables_of_windows(&mut tokens);
    session::rewrite(&mut tokens);
    for token in &mut tokens {
        token.span.start = shift(token.span.start);
        token.span.end = shift(token.span.end);
    }
    Ok(tokens)
}

/// One statement being parsed.
pub(crate) struct Input<'a> {
    parser: Parser<'a>,
    /// What follows `AS OF`, until a statement takes it.
    as_of: Option<Vec<TokenWithSpan>>,
    /// The whole text.
    text: &'a str,
    /// The statement in it.
    range: Range<usize>,
    /// Schemas in which it makes something.
    schemas: Vec<String>,
}

impl Input<'_> {
    fn statement(&mut self) -> Result<Statement> {
        let first = self.word(0).unwrap_or_default();
        match first.as_str() {
            "SELECT" | "WITH" | "VALUES" | "TABLE" => self.select(),
            "" if self.parser.peek_token_ref().token == Token::LParen => self.select(),
            "CREATE" => self.create(),
            "INSERT" => self.insert(),
            "UPDATE" => self.update(),
            "DELETE" => self.delete(),
            "COPY" => self.copy(),
            "TRUNCATE" => self.truncate(),
            "MERGE" => self.merge(),
            "SUBSCRIBE" | "TAIL" => self.subscribe(),
            "EXPLAIN" => self.explain(),
            "SHOW" => self.show(),
            "DESCRIBE" | "DESC" => self.describe(),
            "DROP" => self.drop(),
            "ALTER" => self.alter(),
            "SET" => self.set(),
            "RESET" => self.reset(),
            "DISCARD" => self.discard(),
            "UNLISTEN" => self.unlisten(),
            "ANALYZE" => self.upkeep("ANALYZE"),
            "VACUUM" => self.upkeep("VACUUM"),
            "REFRESH" => self.refresh(),
            "CHECKPOINT" => self.checkpoint(),
            "REINDEX" => self.reindex(),
            "COMMENT" => self.comment(),
            "PREPARE" => self.prepare(),
            "EXECUTE" => self.execute(),
            "DEALLOCATE" => self.deallocate(),
            "DECLARE" => self.declare(),
            "FETCH" | "MOVE" => self.fetch(),
            "CLOSE" => self.close(),
            "FLUSH" => {
                self.parser.advance_token();
                Ok(Statement::Flush)
            }
            "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" => self.transaction(&first),
            "LOCK" => self.lock(),
            "SAVEPOINT" | "RELEASE" => self.savepoint(&first),
            _ => Err(self.refuse(&first)),
        }
    }

    /// The word `n` tokens ahead in upper case, or `None` if that token is not an unquoted word.
    fn word(&self, n: usize) -> Option<String> {
        match self.parser.peek_nth_token_ref(n).token {
            Token::Word(Word { ref value, quote_style: None, .. }) => Some(value.to_uppercase()),
            _ => None,
        }
    }

    /// Consumes these words if they come next.
    fn eat(&mut self, words: &str) -> bool {
        let words: Vec<&str> = words.split(' ').collect();
        let matches = words.iter().enumerate().all(|(n, word)| self.word(n).as_deref() == Some(word));
        if matches {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        matches
    }

    fn expect(&mut self, words: &str) -> Result<()> {
        if self.eat(words) {
            return Ok(());
        }
        Err(self.unexpected(words))
    }

    fn eat_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.eat_token(token) {
            return Ok(());
        }
        Err(self.unexpected(&token.to_string()))
    }

    /// A syntax error at the next token.
    fn unexpected(&self, expected: &str) -> SqlError {
        let token = self.parser.peek_token_ref();
        let message = match &token.token {
            Token::EOF => "syntax error at end of input".to_string(),
            other => format!("syntax error at or near \"{other}\""),
        };
        let mut error = SqlError::new(ErrorKind::Syntax, message).with_detail(format!("Expected {expected}."));
        error.position = Some(self.next_offset());
        error
    }

    /// Byte offset of the next token; the end of the statement after the last.
    fn next_offset(&self) -> usize {
        let token = self.parser.peek_token_ref();
        match token.token {
            Token::EOF => self.range.end,
            _ => offset_of(self.text, token.span.start.line, token.span.start.column),
        }
    }

    fn identifier(&mut self) -> Result<String> {
        Ok(fold(&self.parser.parse_identifier()?))
    }

    /// The name of what is made: its schema must be there.
    fn created_name(&mut self) -> Result<String> {
        let offset = self.next_offset();
        let name = self.parser.parse_object_name(false)?;
        let full = object_name(&name).map_err(|mut error| {
            error.position = Some(offset);
            error
        })?;
        if let [.., schema, _] = name.0.as_slice()
            && let Some(schema) = schema.as_ident().map(fold)
            && schema != "public"
        {
            self.schemas.push(schema);
        }
        Ok(full)
    }

    /// A relation's name. `public.` and a database before it are accepted and dropped.
    fn name(&mut self) -> Result<String> {
        let offset = self.next_offset();
        let name = self.parser.parse_object_name(false)?;
        object_name(&name).map_err(|mut error| {
            error.position = Some(offset);
            error
        })
    }

    fn name_list(&mut self) -> Result<Vec<String>> {
        self.expect_token(&Token::LParen)?;
        let mut names = vec![self.identifier()?];
        while self.eat_token(&Token::Comma) {
            names.push(self.identifier()?);
        }
        self.expect_token(&Token::RParen)?;
        Ok(names)
    }

    fn if_not_exists(&mut self) -> bool {
        self.eat("IF NOT EXISTS")
    }

    /// The rest of the statement from the next token on, as written.
    fn rest(&self) -> &str {
        &self.text[self.next_offset()..self.range.end]
    }

    /// The time after `AS OF`, if there is one.
    fn as_of(&mut self) -> Result<Option<Box<ast::Expr>>> {
        let Some(tokens) = self.as_of.take() else { return Ok(None) };
        let dialect = Postgres;
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
        let expr = parser.parse_expr()?;
        let rest = parser.peek_token_ref();
        if rest.token != Token::EOF {
            let error = SqlError::new(ErrorKind::Syntax, format!("syntax error at or near \"{}\"", rest.token))
                .with_detail("AS OF comes last in a query: its time is that of all tables.")
                .with_hint("Write SELECT .. FROM .. WHERE .. AS OF time.");
            return Err(asof::placed(error, rest, self.text));
        }
        Ok(Some(Box::new(expr)))
    }

    fn query(&mut self) -> Result<Box<ast::Query>> {
        Ok(self.parser.parse_query()?)
    }

    /// `(name = value, ..)`, with or without `=`; a name may be quoted or dotted, and a value left
    /// out means true.
    fn options(&mut self) -> Result<Vec<(String, String)>> {
        self.expect_token(&Token::LParen)?;
        let mut options: Vec<(String, String)> = Vec::new();
        if self.eat_token(&Token::RParen) {
            return Ok(options);
        }
        loop {
            let offset = self.next_offset();
            let name = self.option_name()?;
            if options.iter().any(|(known, _)| *known == name) {
                let mut error = SqlError::new(ErrorKind::Duplicate, format!("option \"{name}\" is given twice"));
                error.position = Some(offset);
                return Err(error);
            }
            self.eat_token(&Token::Eq);
            let value = match self.parser.peek_token_ref().token {
                Token::Comma | Token::RParen => "true".to_string(),
                _ => self.option_value()?,
            };
            options.push((name, value));
            if !self.eat_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)?;
        Ok(options)
    }

    fn option_name(&mut self) -> Result<String> {
        let mut name = String::new();
        loop {
            match self.parser.peek_token_ref().token.clone() {
                Token::Word(word) => name.push_str(&word.value.to_lowercase()),
                Token::SingleQuotedString(text) => name.push_str(&text.to_lowercase()),
                _ => return Err(self.unexpected("an option's name")),
            }
            self.parser.advance_token();
            if !self.eat_token(&Token::Period) {
                return Ok(name);
            }
            name.push('.');
        }
    }

    /// A word, a string, or a number, unquoted.
    fn option_value(&mut self) -> Result<String> {
        let sign = if self.eat_token(&Token::Minus) { "-" } else { "" };
        let value = match self.parser.peek_token_ref().token.clone() {
            Token::Word(word) if word.keyword == Keyword::INTERVAL => return self.option_interval(),
            Token::Word(word) => word.value,
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
            Token::Number(number, _) => format!("{sign}{number}"),
            _ => return Err(self.unexpected("an option's value")),
        };
        self.parser.advance_token();
        Ok(value)
    }

    fn option_interval(&mut self) -> Result<String> {
        self.parser.advance_token();
        let amount = self.option_value()?;
        match self.parser.peek_token_ref().token.clone() {
            Token::Word(unit) => {
                self.parser.advance_token();
                Ok(format!("{amount} {}", unit.value.to_lowercase()))
            }
            _ => Ok(amount),
        }
    }
}
