//! Parameters that a client declares as documents: `$1` is written as `$1::jsonb`.
//!
//! A parameter is planned by its Arrow type, which is that of a text; the cast says that it is a
//! document. Cost: one look at the tokens, of statements that have such parameters.

use datafusion_expr::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::offset_of;
use crate::resolve::pg_types::oid;
use crate::syntax::dialect::Postgres;

/// A statement's text with casts behind its parameters.
#[derive(Debug, PartialEq, Eq)]
pub struct CastParameters {
    /// The text.
    pub text: String,
    /// Where casts stand in it, and how long they are.
    casts: Vec<(usize, usize)>,
}

impl CastParameters {
    /// The text with a cast behind each parameter of a document's type; `None` where there is none.
    /// `declared` are the types that the client says, 0 for an unknown one.
    pub fn of(text: &str, declared: &[u32]) -> Option<CastParameters> {
        let casts: Vec<Option<String>> = declared.iter().map(|of| cast_of(*of).map(str::to_owned)).collect();
        CastParameters::written(text, &casts)
    }

    /// The same, of casts that are written out: `::jsonb`.
    pub(crate) fn written(text: &str, casts: &[Option<String>]) -> Option<CastParameters> {
        casts.iter().find(|of| of.is_some())?;
        let tokens = Tokenizer::new(&Postgres, text).tokenize_with_location().ok()?;
        let mut cast = CastParameters { text: String::with_capacity(text.len() + 16), casts: Vec::new() };
        let mut copied = 0;
        for token in &tokens {
            let Token::Placeholder(name) = &token.token else { continue };
            let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
            let of = number.and_then(|number| casts.get(number.checked_sub(1)?)).and_then(Option::as_ref);
            let Some(written) = of else { continue };
            let end = offset_of(text, token.span.start.line, token.span.start.column) + name.len();
            cast.text.push_str(&text[copied..end]);
            cast.casts.push((cast.text.len(), written.len()));
            cast.text.push_str(written);
            copied = end;
        }
        cast.text.push_str(&text[copied..]);
        Some(cast)
    }

    /// The place in the client's text of a place in this one.
    pub fn place(&self, at: usize) -> usize {
        let before = self.casts.iter().filter(|(start, _)| *start < at);
        before.fold(at, |place, (start, length)| place - (*length).min(at - start))
    }
}

fn cast_of(of: u32) -> Option<&'static str> {
    match of {
        oid::JSON => Some("::json"),
        oid::JSONB => Some("::jsonb"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_cast_and_places_are_those_of_the_text() {
        let text = "SELECT $2 || $1, '$1', $3 nosuch";
        let cast = CastParameters::of(text, &[oid::JSONB, oid::INT4, oid::JSON]).unwrap();
        assert_eq!(cast.text, "SELECT $2 || $1::jsonb, '$1', $3::json nosuch");
        for word in ["||", "'$1'", "nosuch"] {
            assert_eq!(cast.place(cast.text.find(word).unwrap()), text.find(word).unwrap(), "{word}");
        }
        assert_eq!(CastParameters::of(text, &[oid::INT4]), None);
    }
}
