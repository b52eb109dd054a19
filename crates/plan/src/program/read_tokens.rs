//! The words of a program's Python form.

/// A word, and the line it stands in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramToken {
    pub what: TokenKind,
    pub line: usize,
}

/// What a word is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Name(String),
    Text(String),
    Number(usize),
    Fraction(f64),
    Mark(char),
    /// The end of a statement.
    End,
}

/// The words of a text.
///
/// # Errors
/// A message, with the line, for what is no word.
pub(super) fn tokens(text: &str) -> Result<Vec<ProgramToken>, (usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut at, mut line, mut depth) = (0, 1, 0usize);
    let mut found: Vec<ProgramToken> = Vec::new();
    while let Some(&c) = chars.get(at) {
        let begun = line;
        let what = match c {
            '\n' => {
                line += 1;
                at += 1;
                match depth {
                    0 => TokenKind::End,
                    _ => continue,
                }
            }
            '#' => {
                while chars.get(at).is_some_and(|c| *c != '\n') {
                    at += 1;
                }
                continue;
            }
            '\\' if chars.get(at + 1) == Some(&'\n') => {
                line += 1;
                at += 2;
                continue;
            }
            c if c.is_whitespace() => {
                at += 1;
                continue;
            }
            '"' | '\'' => TokenKind::Text(string(&chars, &mut at, &mut line, false)?),
            'r' if matches!(chars.get(at + 1), Some('"' | '\'')) => {
                at += 1;
                TokenKind::Text(string(&chars, &mut at, &mut line, true)?)
            }
            c if c.is_ascii_digit() => {
                let mut word = word(&chars, &mut at);
                if chars.get(at) == Some(&'.') && chars.get(at + 1).is_some_and(char::is_ascii_digit) {
                    at += 1;
                    word = format!("{word}.{}", self::word(&chars, &mut at));
                    let number = word.parse().map_err(|_| (begun, format!("\"{word}\" is no number")))?;
                    found.push(ProgramToken { what: TokenKind::Fraction(number), line: begun });
                    continue;
                }
                TokenKind::Number(word.parse().map_err(|_| (begun, format!("\"{word}\" is no whole number")))?)
            }
            c if c.is_alphabetic() || c == '_' => TokenKind::Name(word(&chars, &mut at)),
            '(' | ')' | '[' | ']' | '{' | '}' | ':' | ',' | '.' | '=' | '*' | ';' => {
                at += 1;
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if c == ';' { TokenKind::End } else { TokenKind::Mark(c) }
            }
            other => return Err((line, format!("\"{other}\" has no meaning in a program"))),
        };
        found.push(ProgramToken { what, line: begun });
    }
    found.push(ProgramToken { what: TokenKind::End, line });
    Ok(found)
}

fn word(chars: &[char], at: &mut usize) -> String {
    let begun = *at;
    while chars.get(*at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
        *at += 1;
    }
    chars[begun..*at].iter().collect()
}

/// A literal in one or three quotes, from its first quote on.
fn string(chars: &[char], at: &mut usize, line: &mut usize, is_raw: bool) -> Result<String, (usize, String)> {
    let begun = *line;
    let quote = chars[*at];
    let is_long = chars.get(*at + 1) == Some(&quote) && chars.get(*at + 2) == Some(&quote);
    *at += if is_long { 3 } else { 1 };
    let mut text = String::new();
    loop {
        let Some(&c) = chars.get(*at) else { return Err((begun, "a text has no end".to_owned())) };
        let ends =
            c == quote && (!is_long || (chars.get(*at + 1) == Some(&quote) && chars.get(*at + 2) == Some(&quote)));
        if ends {
            *at += if is_long { 3 } else { 1 };
            return Ok(text);
        }
        *line += usize::from(c == '\n');
        *at += 1;
        match (c, is_raw, chars.get(*at)) {
            ('\n', ..) if !is_long => return Err((begun, "a text has no end in its line".to_owned())),
            ('\\', false, Some(&next)) => {
                *at += 1;
                *line += usize::from(next == '\n');
                match next {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '\n' => {}
                    '\\' | '"' | '\'' => text.push(next),
                    // (Python reads more of them, as other characters.)
                    'x' | 'u' | 'U' | 'N' | 'a' | 'b' | 'f' | 'v' | '0'..='7' => {
                        let message = format!("\"\\{next}\" in a text: write the character itself, or r\"..\"");
                        return Err((*line, message));
                    }
                    other => text.extend(['\\', other]),
                }
            }
            _ => text.push(c),
        }
    }
}
