//! Syntax trees of regular expressions.

/// The most levels of parentheses in a pattern: trees are followed by recursion.
pub(super) const DEPTH_MAX: usize = 100;

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) node: Node,
    /// Which match is preferred; `None` where a part has no say.
    pub(super) prefers: Option<Preference>,
    /// Whether the place of a match inside matters: for a captured group, or a reference to one.
    pub(super) is_dissected: bool,
    /// Whether a reference to a group is inside.
    pub(super) has_reference: bool,
    /// The fragment of the program for this part, by its number.
    pub(super) fragment: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    Longest,
    Shortest,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Empty,
    /// One character of a class.
    One(Class),
    Guard(Guard),
    Concat(Vec<Tree>),
    Alternate(Vec<Tree>),
    /// A part several times; `max` of `None` is any number.
    Repeat {
        body: Box<Tree>,
        min: u32,
        max: Option<u32>,
    },
    /// A captured group, numbered from 1.
    Group {
        index: usize,
        body: Box<Tree>,
    },
    /// The text of a group again.
    Reference {
        index: usize,
        body: Box<Tree>,
    },
}

/// A condition on a place between characters.
#[derive(Clone, Debug)]
pub(super) enum Guard {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordEdge,
    NotWordEdge,
    /// A part that must, or must not, match behind or before the place.
    Look {
        side: RegexSide,
        wanted: bool,
        body: Box<Tree>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegexSide {
    Ahead,
    Behind,
}

/// A set of characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) items: Vec<ClassItem>,
    pub(super) is_negated: bool,
    /// Whether a character stands for its other case too.
    pub(super) ignores_case: bool,
    /// Whether a line break is never in the set.
    pub(super) stops_at_lines: bool,
}

#[derive(Clone, Debug)]
pub(super) enum ClassItem {
    Range(char, char),
    Named(NamedClass),
    Not(NamedClass),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedClass {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Word,
    Xdigit,
}

impl NamedClass {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "alnum" => Self::Alnum,
            "alpha" => Self::Alpha,
            "ascii" => Self::Ascii,
            "blank" => Self::Blank,
            "cntrl" => Self::Cntrl,
            "digit" => Self::Digit,
            "graph" => Self::Graph,
            "lower" => Self::Lower,
            "print" => Self::Print,
            "punct" => Self::Punct,
            "space" => Self::Space,
            "upper" => Self::Upper,
            "word" => Self::Word,
            "xdigit" => Self::Xdigit,
            _ => return None,
        })
    }

    fn has(self, c: char) -> bool {
        let is_print = |c: char| !c.is_control();
        match self {
            Self::Alnum => is_alphanumeric(c),
            Self::Alpha => c.is_alphabetic(),
            Self::Ascii => c.is_ascii(),
            Self::Blank => c == ' ' || c == '\t',
            Self::Cntrl => c.is_control(),
            Self::Digit => c.is_ascii_digit(),
            Self::Graph => is_print(c) && !c.is_whitespace(),
            Self::Lower => c.is_lowercase(),
            Self::Print => is_print(c),
            Self::Punct => is_print(c) && !c.is_whitespace() && !is_alphanumeric(c),
            Self::Space => c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}'),
            Self::Upper => c.is_uppercase(),
            Self::Word => is_word(c),
            Self::Xdigit => c.is_ascii_hexdigit(),
        }
    }
}

/// Letters and digits; of the latter also those of other scripts, but no superscripts, fractions
/// and numbers in circles.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    let is_sign = matches!(c, '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{bc}'..='\u{be}' | '\u{2070}'..='\u{2089}')
        || matches!(c, '\u{2150}'..='\u{215f}' | '\u{2460}'..='\u{249b}' | '\u{24ea}'..='\u{24ff}' | '\u{2776}'..='\u{2793}');
    c.is_alphabetic() || (c.is_numeric() && !is_sign)
}

/// Letters, digits and the underscore.
pub(super) fn is_word(c: char) -> bool {
    c == '_' || is_alphanumeric(c)
}

impl Class {
    pub(super) fn one(c: char, ignores_case: bool) -> Self {
        let range = ClassItem::Range(c, c);
        Self { items: vec![range], ignores_case, ..Self::default() }
    }

    pub(super) fn has(&self, c: char) -> bool {
        if self.stops_at_lines && c == '\n' {
            return false;
        }
        let listed = self.lists(c) || (self.ignores_case && variants(c).into_iter().flatten().any(|c| self.lists(c)));
        listed != self.is_negated
    }

    fn lists(&self, c: char) -> bool {
        self.items.iter().any(|item| match item {
            ClassItem::Range(first, last) => (*first..=*last).contains(&c),
            ClassItem::Named(named) => named.has(c),
            ClassItem::Not(named) => !named.has(c),
        })
    }
}

/// A character in lower and in upper case, if these are single characters.
pub(super) fn variants(c: char) -> [Option<char>; 2] {
    let (mut lower, mut upper) = (c.to_lowercase(), c.to_uppercase());
    let single = |first: Option<char>, second: Option<char>| if second.is_none() { first } else { None };
    [single(lower.next(), lower.next()), single(upper.next(), upper.next())]
}

impl Tree {
    pub(super) fn new(node: Node) -> Self {
        let (prefers, is_dissected, has_reference) = match &node {
            Node::Empty | Node::One(_) | Node::Guard(_) => (None, false, false),
            Node::Concat(parts) => {
                (parts.iter().find_map(|part| part.prefers), any(parts, Of::Dissected), any(parts, Of::References))
            }
            Node::Alternate(parts) => {
                (Some(Preference::Longest), any(parts, Of::Dissected), any(parts, Of::References))
            }
            Node::Repeat { body, .. } => (body.prefers, body.is_dissected, body.has_reference),
            Node::Group { body, .. } => (body.prefers, true, body.has_reference),
            Node::Reference { .. } => (None, true, true),
        };
        Self { node, prefers, is_dissected, has_reference, fragment: usize::MAX }
    }

    /// Adds the characters that every match of the part begins with. Returns whether they are all
    /// of the match.
    pub(super) fn begins_with(&self, prefix: &mut Vec<char>) -> bool {
        match &self.node {
            Node::Empty => true,
            Node::One(class) => match class.items[..] {
                [ClassItem::Range(c, last)] if c == last && !class.is_negated && !class.ignores_case => {
                    prefix.push(c);
                    true
                }
                _ => false,
            },
            Node::Concat(parts) => parts.iter().all(|part| part.begins_with(prefix)),
            Node::Group { body, .. } => body.begins_with(prefix),
            Node::Repeat { body, min, .. } if *min > 0 => {
                body.begins_with(prefix);
                false
            }
            Node::Repeat { .. } | Node::Guard(_) | Node::Alternate(_) | Node::Reference { .. } => false,
        }
    }

    /// The part without captures.
    pub(super) fn uncaptured(&self) -> Self {
        self.without(|_| false)
    }

    /// What a text of the part is made of: the part without captures, and without conditions on
    /// places, for the text stands at another place when it is met again.
    pub(super) fn unguarded(&self) -> Self {
        self.without(|node| matches!(node, Node::Guard(_)))
    }

    /// The part without captures, with nothing in place of what is left out.
    fn without(&self, is_left_out: fn(&Node) -> bool) -> Self {
        let inner = |body: &Self| Box::new(body.without(is_left_out));
        let all = |parts: &[Self]| parts.iter().map(|part| part.without(is_left_out)).collect();
        let node = match &self.node {
            Node::Group { body, .. } => return body.without(is_left_out),
            Node::Concat(parts) => Node::Concat(all(parts)),
            Node::Alternate(parts) => Node::Alternate(all(parts)),
            Node::Repeat { body, min, max } => Node::Repeat { body: inner(body), min: *min, max: *max },
            other if is_left_out(other) => Node::Empty,
            other => other.clone(),
        };
        Self { prefers: self.prefers, ..Self::new(node) }
    }
}

#[derive(Clone, Copy)]
enum Of {
    Dissected,
    References,
}

fn any(parts: &[Tree], of: Of) -> bool {
    parts.iter().any(|part| match of {
        Of::Dissected => part.is_dissected,
        Of::References => part.has_reference,
    })
}
