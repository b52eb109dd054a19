//! `SIMILAR TO` and `substring(text, pattern, escape)`: the SQL pattern as a regular expression.

use std::sync::Arc;

use datafusion_expr::ScalarUDF;

use super::rows::RowCall::Text;
use super::rows::{Out, Patterns, RowAnswer, RowFunction, RowValue, Way};
use crate::regex::{Flags, SearchedText};

const ESCAPE: &[Way] = &[Way { takes: &[Text, Text], required: 1, answer: RowAnswer::Text, compute: escape }];

/// `similar_to_escape(pattern, escape)`.
pub(crate) fn udf() -> Arc<ScalarUDF> {
    RowFunction::udf("similar_to_escape", &["similar_escape"], ESCAPE)
}

fn escape(args: &[RowValue], _: &mut Patterns) -> Result<Out, String> {
    regex(args[0].text(), args.get(1).map_or("\\", |escape| escape.text())).map(Out::Text)
}

pub(super) fn substring(args: &[RowValue], patterns: &mut Patterns) -> Result<Out, String> {
    let regex = regex(args[1].text(), args[2].text())?;
    let regex = patterns.get(&regex, Flags::default())?;
    let text = SearchedText::new(args[0].text());
    let Some(found) = regex.find(&text, 0)? else { return Ok(Out::Null) };
    let part = found.groups[regex.n_groups().min(1)];
    Ok(part.map_or(Out::Null, |(start, end)| Out::Text(text.part(start, end).into_owned())))
}

/// `%` and `_` are any text and any character; `| * + ? { } ( ) [ ]` are what they are in regular
/// expressions. Two escaped quotes mark the part that `substring` gives.
fn regex(pattern: &str, escape: &str) -> Result<String, String> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err("invalid escape string".into());
    }
    let mut regex = String::from("^(?:");
    let (mut is_escaped, mut is_in_class, mut n_quotes) = (false, false, 0);
    for c in pattern.chars() {
        if is_escaped {
            is_escaped = false;
            match (c, n_quotes) {
                ('"', 0) if !is_in_class => regex.push_str("){1,1}?("),
                ('"', 1) if !is_in_class => regex.push_str("){1,1}(?:"),
                ('"', _) if !is_in_class => {
                    return Err(
                        "SQL regular expression may not contain more than two escape-double-quote separators".into()
                    );
                }
                (c, _) => regex.extend(['\\', c]),
            }
            n_quotes += usize::from(c == '"' && !is_in_class);
        } else if Some(c) == escape {
            is_escaped = true;
        } else if is_in_class {
            if c == '\\' {
                regex.push('\\');
            }
            regex.push(c);
            is_in_class = c != ']';
        } else {
            match c {
                '[' => {
                    regex.push('[');
                    is_in_class = true;
                }
                '%' => regex.push_str(".*"),
                '_' => regex.push('.'),
                '(' => regex.push_str("(?:"),
                '\\' | '.' | '^' | '$' => regex.extend(['\\', c]),
                other => regex.push(other),
            }
        }
    }
    Ok(regex + ")$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_anchored() {
        assert_eq!(regex("a%_.", "\\").as_deref(), Ok(r"^(?:a.*.\.)$"));
        assert_eq!(regex(r"(a|b)\%", "\\").as_deref(), Ok(r"^(?:(?:a|b)\%)$"));
        assert_eq!(regex("a#\"b#\"%", "#").as_deref(), Ok("^(?:a){1,1}?(b){1,1}(?:.*)$"));
        assert!(regex("a", "xy").is_err());
    }
}
