//! The syntax tree of a program, as text or a builder makes it.
//!
//! Names are not resolved and types not known here. Every part knows its place in the text; a part
//! that Rust code has made stands at offset 0.

/// A place in the text, as byte offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

/// A name and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name as written.
    pub text: String,
    /// Where the name stands.
    pub at: Span,
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name { text: text.to_owned(), at: Span::default() }
    }
}

/// A named and typed attribute of a relation, a record or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute's name.
    pub name: Name,
    /// The name of its type.
    pub type_name: Name,
}

/// `.type name ..`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDeclaration {
    /// The new type's name.
    pub name: Name,
    /// What the type is.
    pub kind: TypeKind,
}

/// The right side of a type declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `<: base`: a set of values of its own.
    Subset(Name),
    /// `= a | b`: the values of all these types; a single one is another name for it.
    Union(Vec<Name>),
    /// `= [a: t, ..]`
    Record(Vec<Attribute>),
    /// `= A { .. } | B { .. }`
    Branches(Vec<Branch>),
}

/// One constructor of an algebraic data type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The constructor's name, without `$`.
    pub name: Name,
    /// Its arguments.
    pub attributes: Vec<Attribute>,
}

/// `.decl name(..)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationDeclaration {
    /// The relation's name.
    pub name: Name,
    /// Columns, in order.
    pub attributes: Vec<Attribute>,
    /// Whether the relation is closed under reflexivity, symmetry and transitivity (`eqrel`).
    pub is_equivalence: bool,
}

/// A fact (empty body) or a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// What holds; several heads are several rules with one body.
    pub heads: Vec<Atom>,
    /// When it holds.
    pub body: Formula,
    /// The whole clause.
    pub at: Span,
}

/// `relation(arguments)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// The relation's name.
    pub relation: Name,
    /// One for each attribute.
    pub arguments: Vec<Argument>,
    /// The whole atom.
    pub at: Span,
}

/// What can stand in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// `a, b`; without parts: true.
    And(Vec<Formula>),
    /// `a; b`; without parts: false.
    Or(Vec<Formula>),
    /// `!a`
    Not(Box<Formula>),
    /// A row that must be there.
    Atom(Atom),
    /// A condition on values.
    Constraint(Constraint),
}

/// A condition on two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// How the values are compared.
    pub comparison: Comparison,
    /// The left value, or the pattern.
    pub left: Argument,
    /// The right value, or the text.
    pub right: Argument,
    /// The whole condition.
    pub at: Span,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `match(pattern, text)`: the whole text matches the regular expression.
    Match,
    /// Not [`Match`](Comparison::Match).
    NotMatch,
    /// `contains(part, text)`
    Contains,
    /// Not [`Contains`](Comparison::Contains).
    NotContains,
}

impl Comparison {
    /// The comparison that holds where this one does not.
    pub fn negated(self) -> Comparison {
        use Comparison as C;
        match self {
            C::Equal => C::NotEqual,
            C::NotEqual => C::Equal,
            C::Less => C::GreaterOrEqual,
            C::LessOrEqual => C::Greater,
            C::Greater => C::LessOrEqual,
            C::GreaterOrEqual => C::Less,
            C::Match => C::NotMatch,
            C::NotMatch => C::Match,
            C::Contains => C::NotContains,
            C::NotContains => C::Contains,
        }
    }

    /// How the comparison is written.
    pub fn symbol(self) -> &'static str {
        use Comparison as C;
        match self {
            C::Equal => "=",
            C::NotEqual => "!=",
            C::Less => "<",
            C::LessOrEqual => "<=",
            C::Greater => ">",
            C::GreaterOrEqual => ">=",
            C::Match => "match",
            C::NotMatch => "!match",
            C::Contains => "contains",
            C::NotContains => "!contains",
        }
    }
}

/// A value in a head, an atom or a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What the argument is.
    pub kind: ArgumentKind,
    /// Where the argument stands.
    pub at: Span,
}

/// The forms of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A variable of the rule.
    Variable(String),
    /// `_`: some value that is not looked at.
    Wildcard,
    /// `"text"`
    Text(String),
    /// `12`, `0xff`: a number of the type that its place wants.
    Integer(i64),
    /// `12u`
    Unsigned(i64),
    /// `1.5`, by its bits, so that trees can be compared.
    Float(u64),
    /// `nil`: the empty record.
    Nil,
    /// `[a, b]`
    Record(Vec<Argument>),
    /// `$Branch(a, b)`
    Branch(Name, Vec<Argument>),
    /// A functor or operator, by its name in Souffle: `+`, `band`, `cat`, ..
    Call(String, Vec<Argument>),
    /// `as(a, type)`
    Cast(Box<Argument>, Name),
    /// `sum x : { .. }`
    Aggregate(Box<AggregateTerm>),
}

/// An aggregate and the body whose matches it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateTerm {
    /// What is computed.
    pub function: AggregateKind,
    /// Of which value; none for `count`.
    pub target: Option<Argument>,
    /// Over which matches.
    pub body: Formula,
}

/// The aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// Matches of the body.
    Count,
    /// Sum over the matches; 0 without any.
    Sum,
    /// Least value; nothing without matches.
    Min,
    /// Greatest value; nothing without matches.
    Max,
    /// Mean value, a float; nothing without matches.
    Mean,
}

impl AggregateKind {
    /// The aggregate's name.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Min => "min",
            AggregateKind::Max => "max",
            AggregateKind::Mean => "mean",
        }
    }
}

/// `.input r(..)` and its like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// What is to be done.
    pub kind: DirectiveKind,
    /// With which relations.
    pub relations: Vec<Name>,
    /// `name = value` pairs in parentheses.
    pub parameters: Vec<(Name, String)>,
    /// The whole directive.
    pub at: Span,
}

/// The directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectiveKind {
    /// Facts come from outside.
    Input,
    /// The relation is an answer.
    Output,
    /// The number of rows is an answer.
    PrintSize,
}

/// A program. See [`Program::parse`] for text and [`Program::new`] for programs made in Rust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The text, for messages; empty for a program made in Rust.
    pub(crate) text: String,
    /// Declared types, in order.
    pub types: Vec<TypeDeclaration>,
    /// Declared relations, in order.
    pub relations: Vec<RelationDeclaration>,
    /// Facts and rules, in order.
    pub clauses: Vec<Clause>,
    /// Inputs and outputs, in order.
    pub directives: Vec<Directive>,
}

impl Span {
    /// From the start of this place to the end of the other.
    pub fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end.max(self.end) }
    }
}
