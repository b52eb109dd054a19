//! Paths as trees.

use super::value::PathValue;

/// A path.
#[derive(Debug)]
pub(super) struct JsonPath {
    pub is_strict: bool,
    pub root: PathExpr,
}

/// What a path computes.
#[derive(Debug)]
pub(super) enum PathExpr {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`, within subscripts
    Last,
    Variable(String),
    Null,
    Bool(bool),
    Number(String),
    String(String),
    /// A sign.
    Signed {
        is_minus: bool,
        of: Box<PathExpr>,
    },
    /// `+ - * / %`
    Arithmetic {
        op: char,
        left: Box<PathExpr>,
        right: Box<PathExpr>,
    },
    Step {
        of: Box<PathExpr>,
        step: PathStep,
    },
    /// `== != < <= > >=`
    Compare {
        op: &'static str,
        left: Box<PathExpr>,
        right: Box<PathExpr>,
    },
    And(Box<PathExpr>, Box<PathExpr>),
    Or(Box<PathExpr>, Box<PathExpr>),
    Not(Box<PathExpr>),
    IsUnknown(Box<PathExpr>),
    Exists(Box<PathExpr>),
    StartsWith(Box<PathExpr>, Box<PathExpr>),
    LikeRegex {
        of: Box<PathExpr>,
        pattern: String,
        flags: String,
    },
}

impl PathExpr {
    /// Whether it is true, false or unknown, rather than a list of values.
    pub fn is_predicate(&self) -> bool {
        use PathExpr::{And, Compare, Exists, IsUnknown, LikeRegex, Not, Or, StartsWith};
        matches!(
            self,
            Compare { .. } | And(..) | Or(..) | Not(_) | IsUnknown(_) | Exists(_) | StartsWith(..) | LikeRegex { .. }
        )
    }
}

/// A step from values to others.
#[derive(Debug)]
pub(super) enum PathStep {
    Member(String),
    AnyMember,
    /// `.**`, levels from and to.
    AnyLevel(u32, u32),
    AnyElement,
    /// Subscripts: from, and to.
    Elements(Vec<(PathExpr, Option<PathExpr>)>),
    Filter(Box<PathExpr>),
    Method(String),
}

/// Reads a path.
///
/// # Errors
/// When the text is no path.
pub(super) fn read(text: &str) -> Result<JsonPath, String> {
    let mut reader = PathReader { text: text.chars().collect(), at: 0, depth: 0 };
    let is_strict = match reader.word() {
        Some(word) if word == "strict" => true,
        Some(word) if word == "lax" => false,
        _ => {
            reader.at = 0;
            false
        }
    };
    let path = reader.disjunction().map(|root| JsonPath { is_strict, root });
    reader.skip();
    match path {
        Ok(path) if reader.at == reader.text.len() => Ok(path),
        Err(Some(problem)) => Err(problem),
        _ => Err(match reader.text.get(reader.at..).filter(|rest| !rest.is_empty()) {
            Some(rest) => {
                let near: String = rest.iter().take_while(|c| !c.is_whitespace()).collect();
                format!("syntax error at or near \"{near}\" of jsonpath input")
            }
            None => "syntax error at end of jsonpath input".to_owned(),
        }),
    }
}

/// Parts in each other, at most.
const DEPTH_MAX: usize = 200;

/// What went wrong; none for what no path has there.
type Read<T> = Result<T, Option<String>>;

struct PathReader {
    text: Vec<char>,
    at: usize,
    depth: usize,
}

impl PathReader {
    fn skip(&mut self) {
        while let Some(c) = self.text.get(self.at) {
            if c.is_whitespace() {
                self.at += 1;
            } else if self.text[self.at..].starts_with(&['/', '*']) {
                let rest = self.text[self.at + 2..].windows(2).position(|pair| pair == ['*', '/']);
                self.at = rest.map_or(self.text.len(), |length| self.at + length + 4);
            } else {
                return;
            }
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.text.get(self.at).copied()
    }

    /// Takes these characters, if they are next.
    fn eat(&mut self, expected: &str) -> bool {
        self.skip();
        let length = expected.chars().count();
        let is_next = self.text[self.at..].iter().copied().take(length).eq(expected.chars());
        self.at += if is_next { length } else { 0 };
        is_next
    }

    fn need(&mut self, expected: &str) -> Read<()> {
        if self.eat(expected) { Ok(()) } else { Err(None) }
    }

    /// A name without quotes.
    fn word(&mut self) -> Option<String> {
        self.skip();
        let is_part = |c: &&char| c.is_alphanumeric() || **c == '_' || **c > '\u{7f}';
        let word: String = self.text[self.at..].iter().take_while(is_part).collect();
        let begins = word.chars().next().is_some_and(|c| !c.is_ascii_digit());
        self.at += if begins { word.chars().count() } else { 0 };
        begins.then_some(word)
    }

    /// Takes this word, if it is next.
    fn eat_word(&mut self, expected: &str) -> bool {
        let before = self.at;
        let is_next = self.word().is_some_and(|word| word == expected);
        if !is_next {
            self.at = before;
        }
        is_next
    }

    fn disjunction(&mut self) -> Read<PathExpr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Some(format!("a jsonpath has more than {DEPTH_MAX} parts in each other")));
        }
        let mut left = self.conjunction()?;
        while self.eat("||") {
            left = PathExpr::Or(Box::new(predicate(left)?), Box::new(predicate(self.conjunction()?)?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conjunction(&mut self) -> Read<PathExpr> {
        let mut left = self.comparison()?;
        while self.eat("&&") {
            left = PathExpr::And(Box::new(predicate(left)?), Box::new(predicate(self.comparison()?)?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Read<PathExpr> {
        if self.peek() == Some('!') && self.text.get(self.at + 1) != Some(&'=') {
            self.at += 1;
            return Ok(PathExpr::Not(Box::new(predicate(self.comparison()?)?)));
        }
        let left = self.sum()?;
        for (written, op) in
            [("==", "=="), ("!=", "!="), ("<>", "!="), ("<=", "<="), (">=", ">="), ("<", "<"), (">", ">"), ("=", "==")]
        {
            if self.eat(written) {
                return Ok(PathExpr::Compare { op, left: Box::new(left), right: Box::new(self.sum()?) });
            }
        }
        if self.eat_word("starts") {
            if !self.eat_word("with") {
                return Err(None);
            }
            return Ok(PathExpr::StartsWith(Box::new(left), Box::new(self.sum()?)));
        }
        if self.eat_word("like_regex") {
            let pattern = self.string()?;
            let flags = if self.eat_word("flag") { self.string()? } else { String::new() };
            return Ok(PathExpr::LikeRegex { of: Box::new(left), pattern, flags });
        }
        if left.is_predicate() && self.eat_word("is") {
            return if self.eat_word("unknown") { Ok(PathExpr::IsUnknown(Box::new(left))) } else { Err(None) };
        }
        Ok(left)
    }

    fn sum(&mut self) -> Read<PathExpr> {
        let mut left = self.product()?;
        while let Some(op @ ('+' | '-')) = self.peek() {
            self.at += 1;
            left = PathExpr::Arithmetic { op, left: Box::new(left), right: Box::new(self.product()?) };
        }
        Ok(left)
    }

    fn product(&mut self) -> Read<PathExpr> {
        let mut left = self.signed()?;
        while let Some(op @ ('*' | '/' | '%')) = self.peek() {
            self.at += 1;
            left = PathExpr::Arithmetic { op, left: Box::new(left), right: Box::new(self.signed()?) };
        }
        Ok(left)
    }

    fn signed(&mut self) -> Read<PathExpr> {
        match self.peek() {
            Some(sign @ ('+' | '-')) => {
                self.at += 1;
                Ok(PathExpr::Signed { is_minus: sign == '-', of: Box::new(self.signed()?) })
            }
            _ => self.path(),
        }
    }

    /// A value and its steps.
    fn path(&mut self) -> Read<PathExpr> {
        let mut of = self.primary()?;
        while let Some(step) = self.step()? {
            of = PathExpr::Step { of: Box::new(of), step };
        }
        Ok(of)
    }

    fn primary(&mut self) -> Read<PathExpr> {
        Ok(match self.peek().ok_or(None)? {
            '@' => {
                self.at += 1;
                PathExpr::Current
            }
            '$' => {
                self.at += 1;
                // (The name of a variable follows at once.)
                match self.text.get(self.at).copied() {
                    Some('"') => PathExpr::Variable(self.string()?),
                    Some(c) if c.is_alphanumeric() || c == '_' => PathExpr::Variable(self.name_from_digits()),
                    _ => PathExpr::Root,
                }
            }
            '(' => {
                self.at += 1;
                let inner = self.disjunction()?;
                self.need(")")?;
                inner
            }
            '"' => PathExpr::String(self.string()?),
            c if c.is_ascii_digit() || c == '.' => PathExpr::Number(self.number()?),
            _ => match self.word().ok_or(None)?.as_str() {
                "null" => PathExpr::Null,
                "true" => PathExpr::Bool(true),
                "false" => PathExpr::Bool(false),
                "last" => PathExpr::Last,
                "exists" => {
                    self.need("(")?;
                    let of = self.disjunction()?;
                    self.need(")")?;
                    PathExpr::Exists(Box::new(of))
                }
                _ => return Err(None),
            },
        })
    }

    fn name_from_digits(&mut self) -> String {
        let name: String = self.text[self.at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        self.at += name.chars().count();
        name
    }

    fn step(&mut self) -> Read<Option<PathStep>> {
        if self.eat("?") {
            self.need("(")?;
            let filter = predicate(self.disjunction()?)?;
            self.need(")")?;
            return Ok(Some(PathStep::Filter(Box::new(filter))));
        }
        if self.eat("[") {
            return self.subscripts().map(Some);
        }
        if !self.eat(".") {
            return Ok(None);
        }
        if self.eat("**") {
            return self.levels().map(Some);
        }
        if self.eat("*") {
            return Ok(Some(PathStep::AnyMember));
        }
        if self.peek() == Some('"') {
            return Ok(Some(PathStep::Member(self.string()?)));
        }
        let name = self.word().ok_or(None)?;
        if !self.eat("(") {
            return Ok(Some(PathStep::Member(name)));
        }
        if name == "datetime" {
            return Err(Some("the jsonpath method .datetime() is not supported".to_owned()));
        }
        self.need(")")?;
        let is_method = ["type", "size", "double", "ceiling", "floor", "abs", "keyvalue"].contains(&name.as_str());
        if is_method { Ok(Some(PathStep::Method(name))) } else { Err(None) }
    }

    fn levels(&mut self) -> Read<PathStep> {
        if !self.eat("{") {
            return Ok(PathStep::AnyLevel(0, u32::MAX));
        }
        let mut level = || -> Read<u32> {
            if self.eat_word("last") {
                return Ok(u32::MAX);
            }
            self.number()?.parse().map_err(|_| None)
        };
        let from = level()?;
        let to = if self.eat_word("to") {
            if self.eat_word("last") { u32::MAX } else { self.number()?.parse().map_err(|_| None)? }
        } else {
            from
        };
        self.need("}")?;
        Ok(PathStep::AnyLevel(from, to))
    }

    fn subscripts(&mut self) -> Read<PathStep> {
        if self.eat("*") {
            self.need("]")?;
            return Ok(PathStep::AnyElement);
        }
        let mut all = Vec::new();
        loop {
            let from = self.sum()?;
            let to = if self.eat_word("to") { Some(self.sum()?) } else { None };
            all.push((from, to));
            if self.eat("]") {
                return Ok(PathStep::Elements(all));
            }
            self.need(",")?;
        }
    }

    fn number(&mut self) -> Read<String> {
        self.skip();
        let start = self.at;
        let digits = |reader: &mut PathReader| {
            while reader.text.get(reader.at).is_some_and(char::is_ascii_digit) {
                reader.at += 1;
            }
        };
        digits(self);
        if self.text.get(self.at) == Some(&'.') && self.text.get(self.at + 1).is_some_and(char::is_ascii_digit) {
            self.at += 1;
            digits(self);
        }
        if matches!(self.text.get(self.at), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some('+' | '-')) {
                self.at += 1;
            }
            digits(self);
        }
        let text: String = self.text[start..self.at].iter().collect();
        anabranch_batch::numeric::parse(&text).map_err(|_| None)?;
        Ok(text)
    }

    /// A text in quotes, with the escapes of JSON.
    fn string(&mut self) -> Read<String> {
        if self.peek() != Some('"') {
            return Err(None);
        }
        let start = self.at;
        self.at += 1;
        loop {
            match self.text.get(self.at).ok_or(None)? {
                '"' => break,
                '\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let text: String = self.text[start..self.at.min(self.text.len())].iter().collect();
        match PathValue::read(&text) {
            Ok(PathValue::String(text)) => Ok(text),
            _ => Err(Some("invalid escape sequence in jsonpath input".to_owned())),
        }
    }
}

fn predicate(of: PathExpr) -> Read<PathExpr> {
    if of.is_predicate() { Ok(of) } else { Err(None) }
}
