//! Where statements end: at a `;` outside quotes and comments.
//!
//! Works on unfinished text, so that a shell can tell whether to wait for another line. Cost: one
//! pass.

use std::ops::Range;

/// A text cut into statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Byte ranges of the statements, without their `;` and without surrounding blanks and
    /// comments. Never empty ranges. A comment that does not end belongs to the last one.
    pub statements: Vec<Range<usize>>,
    /// Whether the last statement is finished: nothing but blanks and comments follows the last
    /// `;`.
    pub complete: bool,
}

/// Cuts a text at each `;` outside of quotes, comments and dollar quotes.
pub fn split(text: &str) -> Split {
    let bytes = text.as_bytes();
    let mut statements = Vec::new();
    let mut start: Option<usize> = None;
    let mut end = 0;
    let mut complete = true;
    let mut at = 0;
    while at < bytes.len() {
        let (next, kind) = token(bytes, at);
        match kind {
            PieceKind::Blank => {}
            PieceKind::OpenComment => {
                start.get_or_insert(at);
                end = next;
            }
            PieceKind::Semicolon => {
                if let Some(start) = start.take() {
                    statements.push(start..end);
                }
            }
            PieceKind::Text | PieceKind::Open(_) => {
                start.get_or_insert(at);
                end = next;
            }
        }
        at = next;
    }
    if let Some(start) = start {
        statements.push(start..end);
        complete = false;
    }
    Split { statements, complete }
}

/// Whether the text ends with a finished statement (or holds none).
pub fn is_complete(text: &str) -> bool {
    split(text).complete
}

/// Where a quote or a comment begins that does not end, and what PostgreSQL calls it.
pub(crate) fn unterminated(text: &str) -> Option<(usize, &'static str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (next, kind) = token(bytes, at);
        match kind {
            PieceKind::OpenComment => return Some((at, "/* comment")),
            PieceKind::Open(what) => return Some((at, what)),
            _ => at = next,
        }
    }
    None
}

enum PieceKind {
    Blank,
    /// A block comment that does not end.
    OpenComment,
    /// A quote that does not end.
    Open(&'static str),
    Semicolon,
    Text,
}

/// The token at `at`: where it ends and what it is.
fn token(bytes: &[u8], at: usize) -> (usize, PieceKind) {
    let rest = &bytes[at..];
    match rest[0] {
        b';' => (at + 1, PieceKind::Semicolon),
        byte if byte.is_ascii_whitespace() => (at + 1, PieceKind::Blank),
        b'-' if rest.starts_with(b"--") => (at + find(rest, b"\n").unwrap_or(rest.len()), PieceKind::Blank),
        b'/' if rest.starts_with(b"/*") => block_comment(rest, at),
        b'\'' => text_or_open(bytes, at, quoted(rest, b'\'', escapes(bytes, at)), "quoted string"),
        b'"' => text_or_open(bytes, at, quoted(rest, b'"', false), "quoted identifier"),
        b'$' => text_or_open(bytes, at, dollar_quoted(bytes, at), "dollar-quoted string"),
        _ => (at + 1, PieceKind::Text),
    }
}

/// What is quoted from `at` on; without a length it goes to the end of the text.
fn text_or_open(bytes: &[u8], at: usize, length: Option<usize>, what: &'static str) -> (usize, PieceKind) {
    match length {
        Some(length) => (at + length, PieceKind::Text),
        None => (bytes.len(), PieceKind::Open(what)),
    }
}

/// Whether a string that opens at `at` is `E'..'`, in which a backslash escapes.
fn escapes(bytes: &[u8], at: usize) -> bool {
    let prefixed = at >= 1 && matches!(bytes[at - 1], b'e' | b'E');
    let word = at >= 2 && (bytes[at - 2].is_ascii_alphanumeric() || bytes[at - 2] == b'_');
    prefixed && !word
}

fn quoted(rest: &[u8], quote: u8, escapes: bool) -> Option<usize> {
    let mut at = 1;
    while at < rest.len() {
        if escapes && rest[at] == b'\\' {
            at += 2;
        } else if rest[at] == quote {
            return Some(at + 1);
        } else {
            at += 1;
        }
    }
    None
}

fn dollar_quoted(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let tag_len = rest[1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let opens = rest.get(1 + tag_len) == Some(&b'$') && !rest[1..].first().is_some_and(u8::is_ascii_digit);
    if inside_word || !opens {
        return Some(1);
    }
    let tag = &rest[..tag_len + 2];
    find(&rest[tag.len()..], tag).map(|body| tag.len() + body + tag.len())
}

fn block_comment(rest: &[u8], at: usize) -> (usize, PieceKind) {
    let mut depth = 0;
    let mut inside = 0;
    while inside < rest.len() {
        if rest[inside..].starts_with(b"/*") {
            depth += 1;
            inside += 2;
        } else if rest[inside..].starts_with(b"*/") {
            depth -= 1;
            inside += 2;
            if depth == 0 {
                return (at + inside, PieceKind::Blank);
            }
        } else {
            inside += 1;
        }
    }
    (at + rest.len(), PieceKind::OpenComment)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        split(text).statements.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_end_a_statement() {
        assert_eq!(
            pieces("select ';' -- ; \n, \";\" /* ; /* ; */ ; */; select $a$ ; $a$ ;"),
            ["select ';' -- ; \n, \";\"", "select $a$ ; $a$"]
        );
        assert_eq!(pieces("select 'it''s;', E'\\';' ; ;; "), ["select 'it''s;', E'\\';'"]);
    }

    #[test]
    fn what_does_not_end_is_found() {
        assert_eq!(pieces("select 1 /* abc; select 2"), ["select 1 /* abc; select 2"]);
        assert_eq!(pieces("select 1; /* abc"), ["select 1", "/* abc"]);
        assert_eq!(unterminated("select 'a', $x$ abc"), Some((12, "dollar-quoted string")));
        assert_eq!(unterminated("select \"a"), Some((7, "quoted identifier")));
        assert_eq!(unterminated("select '/*' -- '"), None);
    }

    #[test]
    fn a_statement_is_complete_at_its_semicolon() {
        assert!(is_complete("select 1;"));
        assert!(is_complete("select 1; -- done"));
        assert!(is_complete("  -- nothing\n"));
        assert!(!is_complete("select 1"));
        assert!(!is_complete("select ';"));
        assert!(!is_complete("select $1;  select"));
        assert!(!is_complete("select 1; /* open"));
        assert!(!is_complete("select 'é;"));
    }
}
