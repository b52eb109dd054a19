//! A rewrite as an entry of a table: what is run, and why.

/// A rewrite between text and plan. `F` says what the rewrite takes.
pub(crate) struct Pass<F> {
    /// Unique among all tables.
    pub(crate) name: &'static str,
    /// The rewrite.
    pub(crate) run: F,
    /// What the rewrite leaves behind; all else means what it meant before.
    pub(crate) gives: &'static str,
    /// The rule of DataFusion or of its parser that is replaced, or the difference of dialects.
    pub(crate) reason: &'static str,
    /// A query over [`TABLES`](super::TABLES) that fails without the rewrite.
    pub(crate) example: &'static str,
    /// How the example fails.
    pub(crate) without: Loss,
}

/// What is lost without a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The answer has other rows, or other types.
    WrongAnswer,
    /// The query is refused, or fails when it runs.
    Failure,
    /// A query that means nothing here is answered, or its error names another cause.
    Refusal,
    /// The answer is the same, and its plan is another: keeps more state, or does more at each
    /// change.
    Cost,
}

/// A rewrite, described.
#[derive(Clone, Copy, Debug)]
pub struct PassEntry {
    /// Unique among all rewrites.
    pub name: &'static str,
    /// What the rewrite takes.
    pub takes: &'static str,
    /// What the rewrite leaves behind.
    pub gives: &'static str,
    /// Why the rewrite is there.
    pub reason: &'static str,
    /// A query over [`TABLES`](super::TABLES) that fails without the rewrite.
    pub example: &'static str,
    /// How the example fails.
    pub without: Loss,
}

impl<F> Pass<F> {
    pub(crate) fn described(&self, takes: &'static str) -> PassEntry {
        let Pass { name, gives, reason, example, without, .. } = *self;
        PassEntry { name, takes, gives, reason, example, without }
    }
}

/// The rewrites that a planner runs: all, or all but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Chosen {
    pub(crate) without: Option<&'static str>,
}

impl Chosen {
    /// Whether a rewrite is run.
    pub(crate) fn runs(self, name: &str) -> bool {
        self.without != Some(name)
    }
}
