//! The words of a date, a time or an interval in text, in lower case.
//!
//! A word is told by its first character, as PostgreSQL does it; commas and other punctuation stand
//! between words.

/// What a word looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// `12`, `1.5`, `.5`.
    Number,
    /// `2024-01-02`, `1-2`, `02-Jan-2024`, `America/New_York`.
    Date,
    /// `10:00`, `10:00:00.5`.
    Time,
    /// A sign, and digits with colons, points and hyphens.
    Signed,
    /// Letters.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) kind: TokenKind,
    pub(crate) text: String,
}

/// More words than any date or interval has.
const WORDS_MAX: usize = 25;

/// Words of dates that stand alone also before a digit or a plus: `jan12`, `t10:00`.
const KEYWORDS: &[&str] = &[
    "ad",
    "allballs",
    "am",
    "apr",
    "april",
    "at",
    "aug",
    "august",
    "bc",
    "d",
    "dec",
    "december",
    "dow",
    "doy",
    "dst",
    "epoch",
    "feb",
    "february",
    "fri",
    "friday",
    "h",
    "infinity",
    "isodow",
    "isoyear",
    "j",
    "jan",
    "january",
    "jd",
    "jul",
    "julian",
    "july",
    "jun",
    "june",
    "m",
    "mar",
    "march",
    "may",
    "mm",
    "mon",
    "monday",
    "nov",
    "november",
    "now",
    "oct",
    "october",
    "on",
    "pm",
    "s",
    "sat",
    "saturday",
    "sep",
    "sept",
    "september",
    "sun",
    "sunday",
    "t",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "today",
    "tomorrow",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "wednesday",
    "weds",
    "y",
    "yesterday",
];

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// The words of a text; `None` where a character begins none.
pub(crate) fn words(text: &str) -> Option<Vec<Word>> {
    let mut reader = TokenReader { rest: text };
    let mut words = Vec::new();
    while let Some(first) = reader.first() {
        if is_space(first) {
            reader.skip();
            continue;
        }
        if words.len() >= WORDS_MAX {
            return None;
        }
        let mut text = String::new();
        let kind = match first {
            '0'..='9' => number(&mut reader, &mut text),
            '.' => {
                reader.take(&mut text);
                reader.take_while(&mut text, |c| c.is_ascii_digit());
                TokenKind::Number
            }
            c if c.is_ascii_alphabetic() => letters(&mut reader, &mut text),
            '+' | '-' => {
                reader.take(&mut text);
                reader.rest = reader.rest.trim_start_matches(is_space);
                if !reader.first()?.is_ascii_digit() {
                    return None;
                }
                reader.take_while(&mut text, |c| c.is_ascii_digit() || ":.-".contains(c));
                TokenKind::Signed
            }
            c if c.is_ascii_punctuation() => {
                reader.skip();
                continue;
            }
            _ => return None,
        };
        words.push(Word { kind, text });
    }
    Some(words)
}

fn number(reader: &mut TokenReader<'_>, text: &mut String) -> TokenKind {
    let is_digit = |c: char| c.is_ascii_digit();
    reader.take_while(text, is_digit);
    match reader.first() {
        Some(':') => {
            reader.take_while(text, |c| is_digit(c) || c == ':' || c == '.');
            TokenKind::Time
        }
        Some(mark @ ('-' | '/' | '.')) => {
            reader.take(text);
            if !reader.first().is_some_and(is_digit) {
                reader.take_while(text, |c| c.is_ascii_alphanumeric() || c == mark);
                return TokenKind::Date;
            }
            reader.take_while(text, is_digit);
            if reader.first() == Some(mark) {
                reader.take_while(text, |c| is_digit(c) || c == mark);
                return TokenKind::Date;
            }
            if mark == '.' { TokenKind::Number } else { TokenKind::Date }
        }
        _ => TokenKind::Number,
    }
}

fn letters(reader: &mut TokenReader<'_>, text: &mut String) -> TokenKind {
    reader.take_while(text, |c| c.is_ascii_alphabetic());
    let goes_on = match reader.first() {
        Some('-' | '/' | '.') => true,
        Some(c) if c == '+' || c.is_ascii_digit() => !is_keyword(text),
        _ => false,
    };
    if !goes_on {
        return TokenKind::Text;
    }
    reader.take_while(text, |c| c.is_ascii_alphanumeric() || "+-/_.:".contains(c));
    TokenKind::Date
}

/// Blanks of the C locale.
pub(crate) fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

struct TokenReader<'t> {
    rest: &'t str,
}

impl TokenReader<'_> {
    fn first(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn take(&mut self, out: &mut String) {
        out.extend(self.first().map(|c| c.to_ascii_lowercase()));
        self.skip();
    }

    fn take_while(&mut self, out: &mut String, goes_on: impl Fn(char) -> bool) {
        while self.first().is_some_and(&goes_on) {
            self.take(out);
        }
    }
}
