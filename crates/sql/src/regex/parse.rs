//! From the text of a pattern to its tree.
//!
//! The grammar is that of PostgreSQL's "advanced" regular expressions (its manual, section 9.7.3).
//! Law: a pattern has the tree that PostgreSQL gives it, or is an error.

use super::Flags;
use super::syntax::{Class, ClassItem, DEPTH_MAX, Guard, NamedClass, Node, Preference, RegexSide, Tree};

/// The most repetitions that braces may ask for.
const REPEATS_MAX: u32 = 255;

pub(super) type Result<T> = std::result::Result<T, String>;

fn invalid<T>(what: &str) -> Result<T> {
    Err(format!("invalid regular expression: {what}"))
}

/// The tree of a pattern, and how many groups it captures.
pub(super) fn parse(pattern: &str, flags: Flags) -> Result<(Tree, usize, Flags)> {
    let mut parser =
        Parser { rest: pattern.chars().collect(), at: 0, flags, groups: vec![], depth: 0, is_inside_look: false };
    parser.read_prefixes()?;
    if parser.flags.is_literal {
        let rest = parser.rest[parser.at..].iter();
        let parts = rest.map(|c| Tree::new(Node::One(Class::one(*c, parser.flags.ignores_case)))).collect();
        return Ok((Tree::new(Node::Concat(parts)), 0, parser.flags));
    }
    let tree = parser.alternatives()?;
    if parser.at < parser.rest.len() {
        return invalid("parentheses () not balanced");
    }
    Ok((tree, parser.groups.len(), parser.flags))
}

struct Parser {
    rest: Vec<char>,
    at: usize,
    flags: Flags,
    /// The groups so far, by number; `None` while one is open.
    groups: Vec<Option<Tree>>,
    depth: usize,
    is_inside_look: bool,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.peek_nth(0)
    }

    fn peek_nth(&self, n: usize) -> Option<char> {
        self.rest.get(self.at + n).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn follows(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(n, c)| self.peek_nth(n) == Some(c))
    }

    fn eat(&mut self, text: &str) -> bool {
        let follows = self.follows(text);
        if follows {
            self.at += text.chars().count();
        }
        follows
    }

    /// `***:`, `***=` and `(?flags)` at the start.
    fn read_prefixes(&mut self) -> Result<()> {
        if self.eat("***=") {
            self.flags.is_literal = true;
            return Ok(());
        }
        if !self.eat("***:") && self.rest.starts_with(&['*', '*', '*']) {
            return invalid("quantifier operand invalid");
        }
        let is_embedded = self.peek() == Some('(')
            && self.peek_nth(1) == Some('?')
            && self.peek_nth(2).is_some_and(|c| c.is_ascii_alphabetic());
        if self.flags.is_literal || !is_embedded {
            return Ok(());
        }
        self.at += 2;
        loop {
            match self.next() {
                Some(')') => return Ok(()),
                Some(letter) if self.flags.set(letter) => {}
                _ => return invalid("invalid embedded option"),
            }
        }
    }

    /// Skips blanks and remarks of the expanded syntax, and remarks of any.
    fn skip(&mut self) -> Result<()> {
        loop {
            if self.flags.is_expanded && self.peek().is_some_and(char::is_whitespace) {
                self.at += 1;
            } else if self.flags.is_expanded && self.peek() == Some('#') {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            } else if self.eat("(?#") {
                while self.next().is_some_and(|c| c != ')') {}
            } else {
                return Ok(());
            }
        }
    }

    fn alternatives(&mut self) -> Result<Tree> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return invalid("regular expression is too complex");
        }
        let mut branches = vec![self.branch()?];
        while self.eat("|") {
            branches.push(self.branch()?);
        }
        self.depth -= 1;
        Ok(match branches.len() {
            1 => branches.remove(0),
            _ => Tree::new(Node::Alternate(branches)),
        })
    }

    fn branch(&mut self) -> Result<Tree> {
        let mut parts = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                None | Some('|' | ')') => break,
                Some(_) => parts.push(self.quantified()?),
            }
        }
        Ok(match parts.len() {
            0 => Tree::new(Node::Empty),
            1 => parts.remove(0),
            _ => Tree::new(Node::Concat(parts)),
        })
    }

    fn quantified(&mut self) -> Result<Tree> {
        let is_group = self.peek() == Some('(') && !["(?=", "(?!", "(?<"].iter().any(|mark| self.follows(mark));
        let atom = self.atom()?;
        if matches!(atom.node, Node::Guard(_)) && !is_group {
            return Ok(atom);
        }
        self.skip()?;
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.peek_nth(1).is_some_and(|c| c.is_ascii_digit()) => return self.counted(atom),
            Some('{') => return invalid("invalid repetition count(s)"),
            _ => return Ok(atom),
        };
        self.at += 1;
        let prefers = self.preference();
        self.refuse_second_quantifier()?;
        Ok(repeat(atom, min, max, Some(prefers)))
    }

    fn preference(&mut self) -> Preference {
        if self.eat("?") { Preference::Shortest } else { Preference::Longest }
    }

    fn refuse_second_quantifier(&mut self) -> Result<()> {
        self.skip()?;
        match self.peek() {
            Some('*' | '+' | '?') => invalid("quantifier operand invalid"),
            Some('{') if self.peek_nth(1).is_some_and(|c| c.is_ascii_digit()) => invalid("quantifier operand invalid"),
            _ => Ok(()),
        }
    }

    /// `{m}`, `{m,}` and `{m,n}`.
    fn counted(&mut self, atom: Tree) -> Result<Tree> {
        self.at += 1;
        let min = self.count()?;
        let mut is_fixed = true;
        let mut max = Some(min);
        if self.eat(",") {
            is_fixed = false;
            max = if self.peek() == Some('}') { None } else { Some(self.count()?) };
        }
        if !self.eat("}") || max.is_some_and(|max| max < min) {
            return invalid("invalid repetition count(s)");
        }
        let prefers = self.preference();
        self.refuse_second_quantifier()?;
        Ok(repeat(atom, min, max, (!is_fixed).then_some(prefers)))
    }

    fn count(&mut self) -> Result<u32> {
        let mut n = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            n = Some(n.unwrap_or(0u32) * 10 + digit).filter(|n| *n <= REPEATS_MAX);
            if n.is_none() {
                break;
            }
        }
        n.map_or_else(|| invalid("invalid repetition count(s)"), Ok)
    }

    fn atom(&mut self) -> Result<Tree> {
        let Some(c) = self.next() else { return Ok(Tree::new(Node::Empty)) };
        let is_by_line = self.flags.anchors_at_lines;
        Ok(Tree::new(match c {
            '(' => return self.parenthesis(),
            '[' => self.bracket()?,
            '.' => Node::One(Class { is_negated: true, stops_at_lines: self.flags.stops_at_lines, ..Class::default() }),
            '^' => Node::Guard(if is_by_line { Guard::LineStart } else { Guard::TextStart }),
            '$' => Node::Guard(if is_by_line { Guard::LineEnd } else { Guard::TextEnd }),
            '\\' => self.escape()?,
            '*' | '+' | '?' => return invalid("quantifier operand invalid"),
            '{' if self.peek().is_some_and(|c| c.is_ascii_digit()) => return invalid("quantifier operand invalid"),
            other => self.one(other),
        }))
    }

    fn one(&self, c: char) -> Node {
        Node::One(Class::one(c, self.flags.ignores_case))
    }

    fn parenthesis(&mut self) -> Result<Tree> {
        let look = [
            ("?=", RegexSide::Ahead, true),
            ("?!", RegexSide::Ahead, false),
            ("?<=", RegexSide::Behind, true),
            ("?<!", RegexSide::Behind, false),
        ];
        if let Some((_, side, wanted)) = look.into_iter().find(|(mark, ..)| self.eat(mark)) {
            let outer = std::mem::replace(&mut self.is_inside_look, true);
            let body = Box::new(self.closed()?);
            self.is_inside_look = outer;
            return Ok(Tree::new(Node::Guard(Guard::Look { side, wanted, body })));
        }
        if self.eat("?:") {
            return self.closed();
        }
        if self.peek() == Some('?') {
            return invalid("quantifier operand invalid");
        }
        if self.is_inside_look {
            return self.closed();
        }
        self.groups.push(None);
        let index = self.groups.len();
        let body = self.closed()?;
        self.groups[index - 1] = Some(body.clone());
        Ok(Tree::new(Node::Group { index, body: Box::new(body) }))
    }

    fn closed(&mut self) -> Result<Tree> {
        let body = self.alternatives()?;
        if self.eat(")") { Ok(body) } else { invalid("parentheses () not balanced") }
    }

    /// What follows a backslash outside brackets.
    fn escape(&mut self) -> Result<Node> {
        let Some(c) = self.next() else { return invalid("invalid escape \\ sequence") };
        let class = |named, is_negated| {
            let items = vec![ClassItem::Named(named)];
            Node::One(Class { items, is_negated, ..Class::default() })
        };
        Ok(match c {
            'A' => Node::Guard(Guard::TextStart),
            'Z' => Node::Guard(Guard::TextEnd),
            'm' => Node::Guard(Guard::WordStart),
            'M' => Node::Guard(Guard::WordEnd),
            'y' => Node::Guard(Guard::WordEdge),
            'Y' => Node::Guard(Guard::NotWordEdge),
            'd' => class(NamedClass::Digit, false),
            'D' => class(NamedClass::Digit, true),
            's' => class(NamedClass::Space, false),
            'S' => class(NamedClass::Space, true),
            'w' => class(NamedClass::Word, false),
            'W' => class(NamedClass::Word, true),
            '1'..='9' => return self.reference(c),
            other => {
                let c = self.character_escape(other)?;
                self.one(c)
            }
        })
    }

    /// `\1`, or `\123` as an octal number where there are not so many groups.
    fn reference(&mut self, first: char) -> Result<Node> {
        let start = self.at;
        let mut index = first.to_digit(10).unwrap_or_default() as usize;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            index = index.saturating_mul(10).saturating_add(digit as usize);
        }
        let is_reference = self.at == start || index <= self.groups.len();
        if !is_reference {
            self.at = start - 1;
            let c = self.octal()?;
            return Ok(self.one(c));
        }
        match self.groups.get(index - 1) {
            Some(Some(body)) if !self.is_inside_look => {
                let body = Box::new(body.unguarded());
                Ok(Node::Reference { index, body })
            }
            _ => invalid("invalid backreference number"),
        }
    }

    fn octal(&mut self) -> Result<char> {
        let mut code = 0;
        let mut n = 0;
        while let (true, Some(digit)) = (n < 3, self.peek().and_then(|c| c.to_digit(8))) {
            self.at += 1;
            code = code * 8 + digit;
            n += 1;
        }
        if n == 0 {
            return invalid("invalid escape \\ sequence");
        }
        code_point(code)
    }

    /// A character written by an escape, after its backslash and first letter.
    fn character_escape(&mut self, letter: char) -> Result<char> {
        Ok(match letter {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'c' => match self.next() {
                Some(c) => code_point(c as u32 & 0o37)?,
                None => return invalid("invalid escape \\ sequence"),
            },
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => self.hexadecimal(4, 4)?,
            'U' => self.hexadecimal(8, 8)?,
            'x' => self.hexadecimal(1, usize::MAX)?,
            '0' => {
                self.at -= 1;
                self.octal()?
            }
            other if other.is_ascii_alphanumeric() => return invalid("invalid escape \\ sequence"),
            other => other,
        })
    }

    fn hexadecimal(&mut self, min: usize, max: usize) -> Result<char> {
        let mut code = 0u32;
        let mut n = 0;
        while let (true, Some(digit)) = (n < max, self.peek().and_then(|c| c.to_digit(16))) {
            self.at += 1;
            code = code.saturating_mul(16).saturating_add(digit);
            n += 1;
        }
        if n < min {
            return invalid("invalid escape \\ sequence");
        }
        code_point(code)
    }

    /// `[..]` after its first bracket.
    fn bracket(&mut self) -> Result<Node> {
        for (text, guard) in [("[:<:]]", Guard::WordStart), ("[:>:]]", Guard::WordEnd)] {
            if self.eat(text) {
                return Ok(Node::Guard(guard));
            }
        }
        let is_negated = self.eat("^");
        let mut items = Vec::new();
        let mut is_first = true;
        loop {
            match self.peek() {
                None => return invalid("brackets [] not balanced"),
                Some(']') if !is_first => break,
                _ => self.bracket_item(&mut items, is_first)?,
            }
            is_first = false;
        }
        self.at += 1;
        let stops_at_lines = is_negated && self.flags.stops_at_lines;
        Ok(Node::One(Class { items, is_negated, ignores_case: self.flags.ignores_case, stops_at_lines }))
    }

    fn bracket_item(&mut self, items: &mut Vec<ClassItem>, is_first: bool) -> Result<()> {
        if self.eat("[:") {
            let name = self.until(":]")?;
            let Some(named) = NamedClass::by_name(&name) else { return invalid("invalid character class") };
            let is_case = matches!(named, NamedClass::Lower | NamedClass::Upper);
            items.push(ClassItem::Named(if is_case && self.flags.ignores_case { NamedClass::Alpha } else { named }));
            return Ok(());
        }
        if self.peek() == Some('\\') {
            let named = match self.peek_nth(1) {
                Some('d') => Some(ClassItem::Named(NamedClass::Digit)),
                Some('s') => Some(ClassItem::Named(NamedClass::Space)),
                Some('w') => Some(ClassItem::Named(NamedClass::Word)),
                Some('D') => Some(ClassItem::Not(NamedClass::Digit)),
                Some('S') => Some(ClassItem::Not(NamedClass::Space)),
                Some('W') => Some(ClassItem::Not(NamedClass::Word)),
                _ => None,
            };
            if let Some(named) = named {
                self.at += 2;
                items.push(named);
                return Ok(());
            }
        }
        if self.peek() == Some('-') && !is_first && self.peek_nth(1) != Some(']') {
            return invalid("invalid character range");
        }
        let Some(first) = self.bracket_character()? else { return invalid("brackets [] not balanced") };
        if self.peek() != Some('-') || self.peek_nth(1) == Some(']') {
            items.push(ClassItem::Range(first, first));
            return Ok(());
        }
        self.at += 1;
        if self.peek() == Some('[') && self.peek_nth(1) == Some(':') {
            return invalid("invalid character range");
        }
        match self.bracket_character()? {
            Some(last) if last >= first => items.push(ClassItem::Range(first, last)),
            _ => return invalid("invalid character range"),
        }
        Ok(())
    }

    fn bracket_character(&mut self) -> Result<Option<char>> {
        for (open, close) in [("[.", ".]"), ("[=", "=]")] {
            if self.eat(open) {
                let name = self.until(close)?;
                let mut characters = name.chars();
                return match (characters.next(), characters.next()) {
                    (Some(c), None) => Ok(Some(c)),
                    _ => invalid("invalid collating element"),
                };
            }
        }
        match self.next() {
            Some('\\') => {
                let Some(letter) = self.next() else { return invalid("invalid escape \\ sequence") };
                match letter {
                    '1'..='9' => {
                        self.at -= 1;
                        self.octal().map(Some)
                    }
                    other => self.character_escape(other).map(Some),
                }
            }
            other => Ok(other),
        }
    }

    fn until(&mut self, close: &str) -> Result<String> {
        let mut name = String::new();
        while !self.eat(close) {
            match self.next() {
                Some(c) => name.push(c),
                None => return invalid("brackets [] not balanced"),
            }
        }
        Ok(name)
    }
}

fn code_point(code: u32) -> Result<char> {
    match char::from_u32(code) {
        Some(c) if c != '\0' => Ok(c),
        _ => invalid("invalid escape \\ sequence"),
    }
}

/// A part repeated. Of a captured group only the last round is kept, so all others are one part
/// without captures, as in PostgreSQL: this decides where the last round begins.
fn repeat(atom: Tree, min: u32, max: Option<u32>, prefers: Option<Preference>) -> Tree {
    let prefers = prefers.or(atom.prefers);
    if max == Some(0) {
        return Tree::new(Node::Empty);
    }
    if (min, max) == (1, Some(1)) {
        return Tree { prefers, ..atom };
    }
    let repeated =
        |body: Tree, min, max| Tree { prefers, ..Tree::new(Node::Repeat { body: Box::new(body), min, max }) };
    if min == 0 || !atom.is_dissected || atom.has_reference {
        return repeated(atom, min, max);
    }
    let before = repeated(atom.uncaptured(), min - 1, max.map(|max| max - 1));
    Tree { prefers, ..Tree::new(Node::Concat(vec![before, atom])) }
}
