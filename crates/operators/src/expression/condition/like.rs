//! LIKE with `%` alone: fixed pieces of text that must come one after the other.
//!
//! Law: a text matches when it is the pieces in their order with anything between them, before the
//! first unless the pattern begins with it, and behind the last unless the pattern ends with it.
//! Taking each piece where it is found first loses no match. Cost: one search a piece
//! ([`memchr::memmem`], vectorised), set up once a query.

use memchr::memmem::Finder;

/// A pattern of LIKE without `_`.
#[derive(Clone, Debug)]
pub struct Like {
    /// What the text must begin with.
    prefix: Vec<u8>,
    /// What must follow somewhere, in this order.
    inner: Vec<Finder<'static>>,
    /// What the text must end with; `None` if it must be over where the prefix ends.
    suffix: Option<Vec<u8>>,
}

impl Like {
    /// The pattern; `None` if it has other signs than `%`.
    pub fn new(pattern: &str) -> Option<Like> {
        if pattern.contains(['_', '\\']) {
            return None;
        }
        let mut pieces: Vec<&str> = pattern.split('%').collect();
        let suffix = if pieces.len() > 1 { pieces.pop().map(|piece| piece.as_bytes().to_vec()) } else { None };
        let prefix = pieces.remove(0).as_bytes().to_vec();
        let inner = pieces.into_iter().filter(|piece| !piece.is_empty());
        let inner = inner.map(|piece| Finder::new(piece.as_bytes()).into_owned()).collect();
        Some(Like { prefix, inner, suffix })
    }

    /// Whether a text matches.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        if !has_at(text, 0, &self.prefix) {
            return false;
        }
        let mut rest = &text[self.prefix.len()..];
        let Some(suffix) = &self.suffix else { return rest.is_empty() };
        for piece in &self.inner {
            let Some(at) = piece.find(rest) else { return false };
            rest = &rest[at + piece.needle().len()..];
        }
        suffix.len() <= rest.len() && has_at(rest, rest.len() - suffix.len(), suffix)
    }
}

/// Whether `text` has `piece` at byte `at`. (To compare with nothing is left out: the C library's
/// comparison of no bytes reads both sides under an empty mask, which the processor is slow at
/// where the address of nothing is no address: a third of TPC-H's query 13.)
#[inline]
fn has_at(text: &[u8], at: usize, piece: &[u8]) -> bool {
    piece.is_empty() || text[at..].starts_with(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_order() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let like = Like::new(pattern).unwrap_or_else(|| panic!("{pattern} has no other signs"));
            assert_eq!(like.matches(text.as_bytes()), expected, "{text} like {pattern}");
        };
        for (pattern, text, expected) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%%", "a", true),
            ("a%", "abc", true),
            ("a%", "ba", false),
            ("%c", "abc", true),
            ("%c", "cb", false),
            ("a%a", "a", false),
            ("a%a", "aa", true),
            ("%ab%ab%", "ab", false),
            ("%ab%ab%", "xabab", true),
            ("%ab%b", "ab", false),
            ("%ab%b", "abb", true),
            ("%special%requests%", "a special of requests", true),
            ("%special%requests%", "requests are special", false),
        ] {
            check(pattern, text, expected);
        }
        assert!(Like::new("a_c").is_none() && Like::new("a\\%").is_none());
    }
}
