//! Records and branches as text.
//!
//! `[1, ["a", nil]]`, `$Add($Number(1), $None)`: numbers as digits, symbols in quotes with `\"` and
//! `\\` escaped. Law: equal values have equal texts, since there is one way to write each; so
//! equality, hashing and grouping of text are those of values. Cost: linear in the text, for
//! putting together and for taking apart: long lists as records take time in the square of their
//! length.

/// A part of a record.
pub(crate) enum RecordPart<'a> {
    /// A symbol.
    Text(&'a str),
    Number(i64),
    Float(f64),
    /// A record or branch, in its text form.
    Inner(&'a str),
}

/// The empty record.
pub(crate) const NIL: &str = "nil";

/// The text of a record; with a name, of a branch.
pub(crate) fn write<'a>(branch: Option<&str>, parts: impl IntoIterator<Item = RecordPart<'a>>) -> String {
    let mut out = String::new();
    let mut n_parts = 0;
    let (open, close) = match branch {
        None => ("[", "]"),
        Some(name) => {
            out.push('$');
            out.push_str(name);
            ("(", ")")
        }
    };
    for part in parts {
        out.push_str(if n_parts == 0 { open } else { ", " });
        n_parts += 1;
        match part {
            RecordPart::Text(text) => quote(text, &mut out),
            RecordPart::Number(number) => out.push_str(&number.to_string()),
            RecordPart::Float(number) => out.push_str(&number.to_string()),
            RecordPart::Inner(text) => out.push_str(text),
        }
    }
    match n_parts {
        0 if branch.is_some() => {}
        0 => out.push_str("[]"),
        _ => out.push_str(close),
    }
    out
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// Whether the text is of this branch; without a name, whether it is a record, not nil.
pub(crate) fn is_of(text: &str, branch: Option<&str>) -> bool {
    match branch {
        None => text.starts_with('['),
        Some(name) => {
            let rest = text.strip_prefix('$').and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        }
    }
}

/// The text of one part, as it stands; empty if there is none.
pub(crate) fn part(text: &str, wanted: usize) -> &str {
    let Some(open) = text.find(['[', '(']) else { return "" };
    let start = open + 1;
    let (mut depth, mut idx, mut begins) = (0_usize, 0, start);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'(' => depth += 1,
            b',' | b']' | b')' if depth == 0 => {
                if idx == wanted {
                    return &text[begins..at];
                }
                idx += 1;
                begins = at + 2;
            }
            b']' | b')' => depth -= 1,
            _ => {}
        }
    }
    ""
}

/// The symbol that a part in quotes stands for.
pub(crate) fn unquoted(part: &str) -> String {
    let inner = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(part);
    let mut out = String::with_capacity(inner.len());
    let mut escaped = false;
    for c in inner.chars() {
        if c == '\\' && !escaped {
            escaped = true;
            continue;
        }
        escaped = false;
        out.push(c);
    }
    out
}

/// The text as Souffle prints it: symbols without quotes.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => out.extend(chars.next()),
            '"' => quoted = !quoted,
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let inner = write(Some("Cut"), [RecordPart::Text("a, \"b\\\" ]")]);
        let text = write(
            None,
            [RecordPart::Number(-4), RecordPart::Text("(,"), RecordPart::Inner(&inner), RecordPart::Inner(NIL)],
        );
        assert_eq!(part(&text, 0), "-4");
        assert_eq!(unquoted(part(&text, 1)), "(,");
        assert_eq!(part(&text, 2), inner);
        assert_eq!(unquoted(part(part(&text, 2), 0)), "a, \"b\\\" ]");
        assert_eq!(part(&text, 3), NIL);
        assert_eq!(part(&text, 4), "");
        assert_eq!(plain(&inner), "$Cut(a, \"b\\\" ])");
    }

    #[test]
    fn a_branch_is_told_from_one_whose_name_is_longer() {
        assert!(is_of("$Ab(1)", Some("Ab")) && !is_of("$Abc(1)", Some("Ab")) && is_of("$A", Some("A")));
        assert!(is_of("[]", None) && !is_of(NIL, None));
    }
}
