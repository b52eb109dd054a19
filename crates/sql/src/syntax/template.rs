//! Queries written as text, to be filled in.

use datafusion_expr::sqlparser::ast::Query;
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::sqlparser::tokenizer::Tokenizer;

use crate::error::Result;
use crate::syntax::dialect::Postgres;

/// A syntax tree to fill in. Its names have no places: those in the template would say nothing to
/// who wrote the query.
pub(crate) fn template(text: &str) -> Result<Box<Query>> {
    let tokens = Tokenizer::new(&Postgres, text).tokenize()?;
    Ok(Parser::new(&Postgres).with_tokens(tokens).parse_query()?)
}
