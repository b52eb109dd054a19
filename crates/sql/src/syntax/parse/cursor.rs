//! `DECLARE .. CURSOR`, `FETCH`, `MOVE`, `CLOSE`.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::statement::{Declare, Direction, Fetch, Scroll, Statement};

impl Input<'_> {
    /// `DECLARE name [BINARY] [INSENSITIVE] [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR
    /// statement`.
    pub(super) fn declare(&mut self) -> Result<Statement> {
        self.expect("DECLARE")?;
        let name = self.identifier()?;
        let mut scroll = Scroll::Unsaid;
        loop {
            if self.eat("NO SCROLL") {
                scroll = Scroll::No;
            } else if self.eat("SCROLL") {
                scroll = Scroll::Yes;
            } else if !self.eat("BINARY") && !self.eat("INSENSITIVE") && !self.eat("ASENSITIVE") {
                break;
            }
        }
        self.expect("CURSOR")?;
        let hold = self.eat("WITH HOLD");
        if !hold {
            self.eat("WITHOUT HOLD");
        }
        self.expect("FOR")?;
        let at = self.next_offset();
        let (text, statement) = self.inner()?;
        if !matches!(statement.statement, Statement::Select { .. } | Statement::Subscribe(_)) {
            let mut error = SqlError::new(ErrorKind::Syntax, "a cursor is declared for a query or SUBSCRIBE");
            error.position = Some(at);
            return Err(error);
        }
        Ok(Statement::Declare(Declare { name, scroll, hold, text, statement }))
    }

    /// `{FETCH | MOVE} [direction] [FROM | IN] name [WITH (timeout = ..)]`.
    pub(super) fn fetch(&mut self) -> Result<Statement> {
        let moves = self.eat("MOVE");
        if !moves {
            self.expect("FETCH")?;
        }
        let direction = self.direction()?;
        if !self.eat("FROM") {
            self.eat("IN");
        }
        let cursor = self.identifier()?;
        let mut timeout = None;
        if self.eat("WITH") {
            for (name, value) in self.options()? {
                if name != "timeout" {
                    return Err(SqlError::new(ErrorKind::UnknownName, format!("unknown FETCH option \"{name}\""))
                        .with_hint("The option is timeout."));
                }
                timeout = Some(value);
            }
        }
        Ok(Statement::Fetch(Fetch { moves, direction, cursor, timeout }))
    }

    fn direction(&mut self) -> Result<Direction> {
        let count = |count: Option<i64>| count.unwrap_or(1);
        Ok(if self.eat("NEXT") {
            Direction::Forward(1)
        } else if self.eat("PRIOR") {
            Direction::Forward(-1)
        } else if self.eat("FIRST") {
            Direction::Absolute(1)
        } else if self.eat("LAST") {
            Direction::Absolute(-1)
        } else if self.eat("ABSOLUTE") {
            Direction::Absolute(self.needed_count()?)
        } else if self.eat("RELATIVE") {
            Direction::Relative(self.needed_count()?)
        } else if self.eat("ALL") || self.eat("FORWARD ALL") {
            Direction::All
        } else if self.eat("BACKWARD ALL") {
            Direction::BackwardAll
        } else if self.eat("FORWARD") {
            Direction::Forward(count(self.count()?))
        } else if self.eat("BACKWARD") {
            Direction::Forward(count(self.count()?).saturating_neg())
        } else {
            Direction::Forward(count(self.count()?))
        })
    }

    fn needed_count(&mut self) -> Result<i64> {
        self.count()?.ok_or_else(|| self.unexpected("a number of rows"))
    }

    /// A number, if one comes next.
    fn count(&mut self) -> Result<Option<i64>> {
        let is_negative = self.eat_token(&Token::Minus);
        let Token::Number(digits, _) = self.parser.peek_token_ref().token.clone() else {
            return if is_negative { Err(self.unexpected("a number of rows")) } else { Ok(None) };
        };
        let Ok(count) = digits.parse::<i64>() else { return Err(self.unexpected("a number of rows")) };
        self.parser.advance_token();
        Ok(Some(if is_negative { -count } else { count }))
    }

    /// `CLOSE {name | ALL}`.
    pub(super) fn close(&mut self) -> Result<Statement> {
        self.expect("CLOSE")?;
        let name = if self.eat("ALL") { None } else { Some(self.identifier()?) };
        Ok(Statement::Close { name })
    }
}
