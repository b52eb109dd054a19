//! Commands behind a statement, in place of its `;`: `SELECT .. \watch 1`, `SELECT .. \gx`.

use std::ops::Range;

/// Commands that may stand there.
const TAILS: [&str; 6] = ["\\watch", "\\gx", "\\g", "\\p", "\\q", "\\r"];

/// Whether the last line of a text ends in such a command.
pub(crate) fn has_tail(text: &str) -> bool {
    let text = text.trim_end();
    find(text).is_some_and(|at| !text[at..].contains('\n'))
}

/// A statement without the command behind it, and where that is: up to the end of its line.
pub(crate) fn without_tail(text: &str, range: Range<usize>) -> (Range<usize>, Option<Range<usize>>) {
    match find(&text[range.clone()]) {
        None => (range, None),
        Some(at) => {
            let start = range.start + at;
            let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
            (range.start..start, Some(start..end))
        }
    }
}

/// Where the first such command stands: behind something, and in no quotes.
fn find(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') if !text[..at].trim().is_empty() => {
                let word = text[at..].split_whitespace().next().unwrap_or_default();
                if TAILS.contains(&word) {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_behind_a_statement_is_found() {
        let text = "SELECT 1 \\watch 2\nSELECT 3;";
        assert_eq!(without_tail(text, 0..text.len()), (0..9, Some(9..17)));
        assert!(has_tail("SELECT 1\n\\gx\n") && has_tail("SELECT 1\\gx") && has_tail("SELECT 1;\\q"));
        for text in ["SELECT ' \\watch '", "\\watch", "SELECT 1 \\wat", "SELECT 1 \\g\n, 2"] {
            assert!(!has_tail(text), "{text}");
        }
    }
}
