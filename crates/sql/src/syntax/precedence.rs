//! Which operator binds first, as PostgreSQL's grammar has it.
//!
//! The parser's own table differs in the signs, which bind less than `^` there, in the other prefix
//! operators, which bind more than `+` there, in the regular expressions, which stand with the
//! comparisons there, and in `ISNULL`, which is an alias there.
//!
//! Law: a text is read with the parentheses that PostgreSQL puts.
//!
//! A long chain of AND or OR is read as a balanced tree: either is associative, and every step of
//! planning follows a tree with its own calls.
//!
//! Source: the table of operator precedence in PostgreSQL's `gram.y`. Levels that are not named
//! here are the parser's own.

use datafusion_expr::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion_expr::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion_expr::sqlparser::keywords::Keyword;
use datafusion_expr::sqlparser::parser::{Parser, ParserError};
use datafusion_expr::sqlparser::tokenizer::{Token, Word};

use super::relation_calls::call;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Signs bind more than `COLLATE` (120), less than subscripts (130).
const SIGN: u8 = 125;

/// Conditions between AND, or between OR, that make a long chain. Shorter ones are read from the
/// left, as others do.
pub(crate) const LONG_CHAIN: usize = 64;

/// The operator of DuckDB that divides and drops the fraction.
pub(crate) const DIVIDE_WHOLE: &str = "//";

/// Not an operator.
const NONE: u8 = 0;

/// How strongly the operator that comes next binds; `None` leaves the answer to the parser.
pub(crate) fn of_next(parser: &Parser) -> Option<Result<u8, ParserError>> {
    match &parser.peek_token_ref().token {
        Token::Word(Word { keyword: Keyword::OPERATOR, .. })
        | Token::Tilde
        | Token::TildeAsterisk
        | Token::ExclamationMarkTilde
        | Token::ExclamationMarkTildeAsterisk
        | Token::DoubleTilde
        | Token::DoubleTildeAsterisk
        | Token::ExclamationMarkDoubleTilde
        | Token::ExclamationMarkDoubleTildeAsterisk => Some(Ok(BASE.prec_value(Precedence::PgOther))),
        Token::CustomBinaryOperator(operator) if operator == DIVIDE_WHOLE => {
            Some(Ok(BASE.prec_value(Precedence::MulDivModOp)))
        }
        // Operators of other systems are names in PostgreSQL.
        Token::Word(Word {
            keyword: Keyword::XOR | Keyword::DIV | Keyword::RLIKE | Keyword::REGEXP | Keyword::MATCH | Keyword::MEMBER,
            ..
        }) => Some(Ok(NONE)),
        token if is_null_test(token) => Some(Ok(BASE.prec_value(Precedence::Is))),
        _ => BASE.get_next_precedence(parser),
    }
}

fn is_null_test(token: &Token) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("isnull"))
}

/// An expression that begins with a prefix operator.
pub(crate) fn prefixed(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let other = BASE.prec_value(Precedence::PgOther);
    let (op, level) = match parser.peek_token_ref().token {
        Token::Minus => (UnaryOperator::Minus, SIGN),
        Token::Plus => (UnaryOperator::Plus, SIGN),
        Token::Tilde => (UnaryOperator::BitwiseNot, other),
        Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, other),
        Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, other),
        Token::AtSign => (UnaryOperator::PGAbs, other),
        _ => return None,
    };
    parser.advance_token();
    let signed = parser.parse_subexpr(level).map(|operand| match operand {
        // Rewrites read expressions anew from their text, and `--` would begin a comment there.
        Expr::UnaryOp { .. } => Expr::UnaryOp { op, expr: Box::new(Expr::Nested(Box::new(operand))) },
        operand => Expr::UnaryOp { op, expr: Box::new(operand) },
    });
    Some(signed)
}

/// `x COLLATE "C"`. (By itself, so that calls in each other take no more of the stack.)
#[inline(never)]
fn collated(parser: &mut Parser, expr: &Expr) -> Result<Expr, ParserError> {
    let collation = parser.parse_object_name(false)?;
    Ok(Expr::Collate { expr: Box::new(expr.clone()), collation })
}

/// A chain of AND or of OR.
#[inline(never)]
fn chain(
    parser: &mut Parser,
    first: &Expr,
    keyword: Keyword,
    op: &BinaryOperator,
    level: u8,
) -> Result<Expr, ParserError> {
    let mut conditions = vec![first.clone()];
    while parser.parse_keyword(keyword) {
        conditions.push(parser.parse_subexpr(level)?);
    }
    Ok(joined(conditions, op))
}

fn joined(mut conditions: Vec<Expr>, op: &BinaryOperator) -> Expr {
    let both = |left, right| Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    if conditions.len() > LONG_CHAIN {
        let right = conditions.split_off(conditions.len() / 2);
        return both(joined(conditions, op), joined(right, op));
    }
    conditions.into_iter().reduce(both).expect("a chain has its first condition")
}

/// `x ISNULL`, `x // y`, which is `div(x, y)`, and `x::text COLLATE "C"`, which the parser knows
/// behind names and literals alone.
pub(crate) fn suffixed(parser: &mut Parser, expr: &Expr) -> Option<Result<Expr, ParserError>> {
    if parser.parse_keyword(Keyword::COLLATE) {
        return Some(collated(parser, expr));
    }
    if matches!(&parser.peek_token_ref().token, Token::CustomBinaryOperator(operator) if operator == DIVIDE_WHOLE) {
        parser.advance_token();
        let divisor = parser.parse_subexpr(BASE.prec_value(Precedence::MulDivModOp));
        return Some(divisor.map(|divisor| call("div", vec![expr.clone(), divisor])));
    }
    for (keyword, op, level) in
        [(Keyword::AND, BinaryOperator::And, Precedence::And), (Keyword::OR, BinaryOperator::Or, Precedence::Or)]
    {
        if parser.peek_keyword(keyword) {
            return Some(chain(parser, expr, keyword, &op, BASE.prec_value(level)));
        }
    }
    if !is_null_test(&parser.peek_token_ref().token) {
        return None;
    }
    parser.advance_token();
    Some(Ok(Expr::IsNull(Box::new(expr.clone()))))
}
