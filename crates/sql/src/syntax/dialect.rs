//! PostgreSQL's dialect, with `* EXCLUDE`, `* EXCEPT`, `* REPLACE`, `ORDER BY ALL` and `lag(x
//! IGNORE NULLS)` of DuckDB, and but for three things: the names of arguments (`f(name => value)`)
//! are words, `EMIT ON WINDOW CLOSE` is no alias, and operators bind as in `precedence`.
//!
//! The parser's own takes any expression for a name, and so reads every argument twice: first for a
//! name, then as a value. Calls in each other took twice the time with every level, seconds at
//! twenty. Cost: parsing is linear in the text.

use std::any::TypeId;

use datafusion_expr::sqlparser::ast::Expr;
use datafusion_expr::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion_expr::sqlparser::keywords::Keyword;
use datafusion_expr::sqlparser::parser::{Parser, ParserError};
use datafusion_expr::sqlparser::tokenizer::{Token, Word};

use crate::syntax::precedence;

/// What all our text is parsed as.
#[derive(Debug)]
pub(crate) struct Postgres;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

impl Dialect for Postgres {
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(_identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        BASE.supports_unicode_string_literal()
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        BASE.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        precedence::of_next(parser)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        precedence::prefixed(parser)
    }

    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, _level: u8) -> Option<Result<Expr, ParserError>> {
        precedence::suffixed(parser, expr)
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        BASE.supports_filter_during_aggregation()
    }

    fn supports_group_by_expr(&self) -> bool {
        BASE.supports_group_by_expr()
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        BASE.prec_value(prec)
    }

    fn allow_extract_custom(&self) -> bool {
        BASE.allow_extract_custom()
    }

    fn allow_extract_single_quotes(&self) -> bool {
        BASE.allow_extract_single_quotes()
    }

    fn supports_create_index_with_clause(&self) -> bool {
        BASE.supports_create_index_with_clause()
    }

    fn supports_explain_with_utility_options(&self) -> bool {
        BASE.supports_explain_with_utility_options()
    }

    fn supports_listen_notify(&self) -> bool {
        BASE.supports_listen_notify()
    }

    fn supports_factorial_operator(&self) -> bool {
        BASE.supports_factorial_operator()
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        BASE.supports_bitwise_shift_operators()
    }

    fn supports_comment_on(&self) -> bool {
        BASE.supports_comment_on()
    }

    fn supports_load_extension(&self) -> bool {
        BASE.supports_load_extension()
    }

    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        BASE.supports_named_fn_args_with_colon_operator()
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn is_column_alias(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        // (INSERT .. SELECT 1 ON CONFLICT.)
        *kw != Keyword::ON
            && !is_emit(parser)
            && (is_free_word(kw, parser) || is_free_label(kw) || BASE.is_column_alias(kw, parser))
    }

    fn is_table_alias(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        !is_emit(parser) && (is_free_word(kw, parser) || is_free_name(kw) || BASE.is_table_alias(kw, parser))
    }

    fn supports_empty_projections(&self) -> bool {
        BASE.supports_empty_projections()
    }

    fn supports_nested_comments(&self) -> bool {
        BASE.supports_nested_comments()
    }

    fn supports_string_escape_constant(&self) -> bool {
        BASE.supports_string_escape_constant()
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        BASE.supports_numeric_literal_underscores()
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        BASE.supports_array_typedef_with_brackets()
    }

    fn supports_geometric_types(&self) -> bool {
        BASE.supports_geometric_types()
    }

    fn supports_set_names(&self) -> bool {
        BASE.supports_set_names()
    }

    fn supports_alter_column_type_using(&self) -> bool {
        BASE.supports_alter_column_type_using()
    }

    fn supports_notnull_operator(&self) -> bool {
        BASE.supports_notnull_operator()
    }

    fn supports_interval_options(&self) -> bool {
        BASE.supports_interval_options()
    }

    fn supports_insert_table_alias(&self) -> bool {
        BASE.supports_insert_table_alias()
    }

    fn supports_create_table_like_parenthesized(&self) -> bool {
        BASE.supports_create_table_like_parenthesized()
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_select_wildcard_with_alias(&self) -> bool {
        BASE.supports_select_wildcard_with_alias()
    }

    fn supports_comma_separated_trim(&self) -> bool {
        BASE.supports_comma_separated_trim()
    }

    fn supports_xml_expressions(&self) -> bool {
        BASE.supports_xml_expressions()
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        BASE.supports_comment_optimizer_hint()
    }
}

/// Words that the parser reserves and PostgreSQL does not.
fn is_free_word(word: &Keyword, parser: &Parser) -> bool {
    match word {
        Keyword::TOP | Keyword::VIEW | Keyword::EXPLAIN | Keyword::CLUSTER | Keyword::SORT | Keyword::DISTRIBUTE => {
            true
        }
        // (Oracle's EXCEPT is refused with a hint.)
        Keyword::MINUS => !begins_query(&parser.peek_token_ref().token),
        _ => false,
    }
}

/// Words that name columns in PostgreSQL without AS, though no tables.
fn is_free_label(word: &Keyword) -> bool {
    matches!(word, Keyword::ANALYZE | Keyword::VALUES | Keyword::END)
}

/// Words that begin clauses behind a table elsewhere.
fn is_free_name(word: &Keyword) -> bool {
    use Keyword as K;
    matches!(word, K::FORMAT | K::SETTINGS | K::PREWHERE | K::START | K::CONNECT | K::OUTPUT | K::GLOBAL | K::OPEN)
}

fn begins_query(token: &Token) -> bool {
    match token {
        Token::LParen => true,
        Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::VALUES | Keyword::ALL | Keyword::TABLE),
        _ => false,
    }
}

/// Whether the word just read begins `EMIT ON WINDOW CLOSE` or `EMIT AFTER WATERMARK`.
fn is_emit(parser: &Parser) -> bool {
    let is = |token: &Token, word: &str| match token {
        Token::Word(Word { value, quote_style: None, .. }) => value.eq_ignore_ascii_case(word),
        _ => false,
    };
    let follows =
        |words: &[&str]| words.iter().enumerate().all(|(n, word)| is(&parser.peek_nth_token_ref(n).token, word));
    is(&parser.get_current_token().token, "EMIT")
        && (follows(&["ON", "WINDOW", "CLOSE"]) || follows(&["AFTER", "WATERMARK"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_each_other_are_parsed_in_linear_time() {
        let text = format!("SELECT {}a{}", "replace(".repeat(40), ", 'x', y => 1 + 2)".repeat(40));
        assert!(Parser::new(&Postgres).try_with_sql(&text).unwrap().parse_query().is_ok());
    }
}
