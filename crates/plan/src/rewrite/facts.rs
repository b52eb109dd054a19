//! What rewrites know beside the plan.

/// Whether a relation is indexed by these columns (positions in its schema), in some order.
pub type Indexes<'a> = &'a dyn Fn(&str, &[usize]) -> bool;

/// What is known beside the plan when it is optimised.
pub struct Facts<'a> {
    /// The indexes that joins may read.
    pub indexes: Indexes<'a>,
    /// Whether no two rows of a relation agree in these columns (positions in its schema).
    pub has_key: &'a dyn Fn(&str, &[usize]) -> bool,
    /// Whether the plan is kept current, and not asked once.
    pub is_standing: bool,
    /// Whether its rows lie in several shards, so that where they lie is told by the steps that its
    /// writer named.
    pub is_spread: bool,
}

impl Default for Facts<'_> {
    /// Nothing is known: no index and no key exists. The plan stands.
    fn default() -> Self {
        Facts { indexes: &|_, _| false, has_key: &|_, _| false, is_standing: true, is_spread: false }
    }
}
