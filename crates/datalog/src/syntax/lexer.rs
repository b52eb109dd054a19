//! Text to words. Comments and blanks vanish; preprocessor lines are obeyed on the way.
//!
//! Cost: linear in the text, and in what macros expand to (at most [`EXPANDED_MAX`] words).

use std::collections::HashMap;

use anabranch_engine::Error;

use super::token::{DIRECTIVES, Placed, SIGNS, Token};
use crate::ast::Span;

/// Words that macros may add to those of the text: macros of macros double with each line.
const EXPANDED_MAX: usize = 1_000_000;

/// The words of a text, the last one [`Token::End`].
///
/// # Errors
/// `Invalid`, placed at the character that begins no word.
pub(super) fn words(text: &str) -> Result<Vec<Placed>, Error> {
    let mut lexer = Lexer { text, at: 0, words: vec![], macros: HashMap::new(), skipping: vec![] };
    lexer.run()?;
    let end = Span { start: text.len(), end: text.len() };
    lexer.words.push(Placed { token: Token::End, at: end });
    Ok(lexer.words)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    words: Vec<Placed>,
    /// `#define name words`
    macros: HashMap<String, Vec<Token>>,
    /// One entry an open `#ifdef`: where it stands, and whether its lines are skipped.
    skipping: Vec<(usize, bool)>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Result<(), Error> {
        while let Some(next) = self.peek() {
            match next {
                '#' if self.begins_line() => self.preprocessor_line()?,
                blank if self.is_skipping() && blank.is_whitespace() => self.at += blank.len_utf8(),
                _ if self.is_skipping() => self.skip_line(),
                _ => {
                    if let Some(word) = self.word()? {
                        self.push(word)?;
                    }
                }
            }
        }
        match self.skipping.last() {
            Some((start, _)) => Err(Error::invalid("#ifdef without #endif").at(*start)),
            None => Ok(()),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn begins_line(&self) -> bool {
        let before = &self.text[..self.at];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        before[line..].trim().is_empty()
    }

    fn is_skipping(&self) -> bool {
        self.skipping.iter().any(|(_, skips)| *skips)
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
    }

    /// Keeps the word; the name of a macro becomes the macro's words.
    fn push(&mut self, word: Placed) -> Result<(), Error> {
        let words = match &word.token {
            Token::Name(name) => self.macros.get(name).cloned(),
            _ => None,
        };
        match words {
            Some(words) => self.words.extend(words.into_iter().map(|token| Placed { token, at: word.at })),
            None => self.words.push(word),
        }
        match self.words.len() > self.text.len() + EXPANDED_MAX {
            true => Err(Error::invalid("the macros expand to too many words").at(self.at)),
            false => Ok(()),
        }
    }

    /// The next word, or `None` for a blank or a comment.
    fn word(&mut self) -> Result<Option<Placed>, Error> {
        let start = self.at;
        let rest = self.rest();
        let Some(first) = self.peek() else { return Ok(None) };
        if first.is_whitespace() || first == '\u{feff}' {
            self.at += first.len_utf8();
            return Ok(None);
        }
        if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return Ok(None);
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").ok_or_else(|| Error::invalid("a comment without end").at(start))?;
            self.at += end + 4;
            return Ok(None);
        }
        let token = match first {
            '"' => self.string()?,
            _ if first.is_ascii_digit() => self.number()?,
            _ if is_name_start(first) => self.name(),
            '.' if directive(rest).is_some() => {
                let name = directive(rest).unwrap_or_default();
                self.at += 1 + name.len();
                Token::Directive(name.to_owned())
            }
            _ => self.sign()?,
        };
        Ok(Some(Placed { token, at: Span { start, end: self.at } }))
    }

    fn name(&mut self) -> Token {
        let name = name_at(self.rest());
        self.at += name.len();
        match name {
            "_" => Token::Wildcard,
            _ => Token::Name(name.to_owned()),
        }
    }

    fn sign(&mut self) -> Result<Token, Error> {
        let rest = self.rest();
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            self.at += sign.len();
            return Ok(Token::Sign(sign));
        }
        let shown = rest.chars().next().unwrap_or_default();
        let error = Error::invalid(format!("'{}' is no part of the language", shown.escape_debug())).at(self.at);
        Err(match shown {
            '“' | '”' => error.with_hint("Strings are written in plain double quotes: \"a\"."),
            '\'' => error.with_hint("Strings are written in double quotes: \"a\"."),
            '#' => error.with_hint("Preprocessor lines begin with #, at the start of a line."),
            _ => error,
        })
    }

    fn string(&mut self) -> Result<Token, Error> {
        let start = self.at;
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        let unfinished = || Error::invalid("a string without end").at(start).with_hint("Close it with \".");
        while let Some((offset, next)) = chars.next() {
            match next {
                '"' => {
                    self.at += offset + 1;
                    return Ok(Token::Text(out));
                }
                '\n' => break,
                '\\' => {
                    let (_, escaped) = chars.next().ok_or_else(unfinished)?;
                    out.push(unescaped(escaped).ok_or_else(|| {
                        Error::invalid(format!("'\\{}' is no escape", escaped.escape_debug()))
                            .at(start + offset)
                            .with_hint("Escapes are \\\" \\\\ \\n \\t \\r \\a \\b \\f \\v; write \\\\ for a backslash.")
                    })?);
                }
                other => out.push(other),
            }
        }
        Err(unfinished())
    }

    fn number(&mut self) -> Result<Token, Error> {
        let start = self.at;
        let rest = self.rest();
        let prefixed = |marks: [&str; 2], base: u32| {
            let digits = marks.iter().find_map(|mark| rest.strip_prefix(mark))?;
            let n_digits = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
            (n_digits > 0).then(|| (2 + n_digits, i64::from_str_radix(&digits[..n_digits], base).ok()))
        };
        let based = prefixed(["0x", "0X"], 16).or_else(|| prefixed(["0b", "0B"], 2));
        if based.is_none() {
            let length = float_length(rest);
            if length > 0 {
                self.at += length;
                let value = rest[..length].parse::<f64>().ok();
                let value = value.filter(|value| value.is_finite());
                return value.map(Token::Float).ok_or_else(|| out_of_range(start));
            }
        }
        let n_digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (length, value) = based.unwrap_or_else(|| (n_digits, rest[..n_digits].parse::<i64>().ok()));
        self.at += length;
        let value = value.ok_or_else(|| out_of_range(start))?;
        let after = &rest[length..];
        let suffix = name_at(after);
        match suffix {
            "" => Ok(Token::Integer(value)),
            "u" => {
                self.at += 1;
                Ok(Token::Unsigned(value))
            }
            _ => Err(Error::invalid(format!("'{}{suffix}' is no number", &rest[..length])).at(start)),
        }
    }

    /// `#define`, `#ifdef` and their like.
    fn preprocessor_line(&mut self) -> Result<(), Error> {
        let start = self.at;
        let line = self.rest().lines().next().unwrap_or_default();
        let words = line[1..].trim_start();
        let command = name_at(words);
        let operand = words[command.len()..].trim_start();
        let name = name_at(operand);
        match command {
            "ifdef" | "ifndef" => {
                let skips = self.macros.contains_key(name) == (command == "ifndef");
                self.skipping.push((start, skips));
            }
            "else" | "endif" => {
                let (opened, skips) = self
                    .skipping
                    .pop()
                    .ok_or_else(|| Error::invalid(format!("#{command} without #ifdef")).at(start))?;
                if command == "else" {
                    self.skipping.push((opened, !skips));
                }
            }
            _ if self.is_skipping() => {}
            "define" => return self.define(start, line),
            "undef" => {
                self.macros.remove(name);
            }
            "" => {}
            other => return Err(refused_command(other).at(start)),
        }
        self.at += line.len();
        Ok(())
    }

    fn define(&mut self, start: usize, line: &'a str) -> Result<(), Error> {
        let end = start + line.len();
        let line_start = line.find("define").unwrap_or_default() + "define".len();
        let operand = line[line_start..].trim_start();
        let name = name_at(operand);
        let after = &operand[name.len()..];
        if name.is_empty() || name == "_" {
            return Err(Error::invalid("#define names no macro").at(start).with_hint("Write #define NAME value."));
        }
        if after.starts_with('(') {
            return Err(Error::invalid(format!("the macro {name} takes arguments, which is not supported"))
                .at(start)
                .with_hint("Write the expansion out, or run the C preprocessor over the program first (cpp -P)."));
        }
        if after.trim_end().ends_with('\\') {
            return Err(Error::invalid(format!("the macro {name} continues on the next line"))
                .at(start)
                .with_hint("Write the macro on one line."));
        }
        // The macro's words are read by a lexer of their own that sees this line only.
        let mut inner = Lexer {
            text: &self.text[..end],
            at: end - after.len(),
            words: vec![],
            macros: HashMap::new(),
            skipping: vec![],
        };
        std::mem::swap(&mut inner.macros, &mut self.macros);
        let read = loop {
            match inner.peek() {
                None => break Ok(()),
                Some(_) => match inner.word() {
                    Ok(Some(word)) => {
                        if let Err(error) = inner.push(word) {
                            break Err(error);
                        }
                    }
                    Ok(None) => {}
                    Err(error) => break Err(error),
                },
            }
        };
        std::mem::swap(&mut inner.macros, &mut self.macros);
        read?;
        let words = inner.words.into_iter().map(|placed| placed.token).collect();
        self.macros.insert(name.to_owned(), words);
        self.at = end;
        Ok(())
    }
}

fn refused_command(command: &str) -> Error {
    let error = Error::invalid(format!("the preprocessor line #{command} is not supported"));
    match command {
        "include" => error.with_hint("Put the text of the included file here, or join the files before (cat)."),
        _ => error.with_hint("#define NAME value, #undef, #ifdef, #ifndef, #else and #endif are."),
    }
}

fn out_of_range(start: usize) -> Error {
    Error::invalid("the number is out of range").at(start).with_hint("Numbers have 64 bits; 2^63 - 1 is the greatest.")
}

fn is_name_start(first: char) -> bool {
    first.is_ascii_alphabetic() || first == '_' || first == '?'
}

/// The name that the text begins with, perhaps empty.
fn name_at(text: &str) -> &str {
    if !text.chars().next().is_some_and(is_name_start) {
        return "";
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '?')).unwrap_or(text.len());
    &text[..end]
}

/// The directive that the text begins with, without its dot.
fn directive(text: &str) -> Option<&str> {
    let name = name_at(text.strip_prefix('.')?);
    DIRECTIVES.contains(&name).then_some(name)
}

/// Bytes of the float that the text begins with; 0 if there is none.
fn float_length(text: &str) -> usize {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(text);
    let mut length = whole;
    if let Some(after) = text[whole..].strip_prefix('.') {
        let fraction = digits(after);
        if fraction == 0 {
            return 0;
        }
        length += 1 + fraction;
    }
    let exponent = text[length..].strip_prefix(['e', 'E']).map(|after| {
        let sign = usize::from(after.starts_with(['+', '-']));
        (1 + sign, digits(&after[sign..]))
    });
    match exponent {
        Some((mark, digits)) if digits > 0 => length + mark + digits,
        _ if length > whole => length,
        _ => 0,
    }
}

fn unescaped(escaped: char) -> Option<char> {
    Some(match escaped {
        '"' => '"',
        '\\' => '\\',
        '\'' => '\'',
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        _ => return None,
    })
}
