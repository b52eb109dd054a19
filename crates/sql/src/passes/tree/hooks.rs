//! What a rewrite of the syntax tree is given, and where in the walk it is called.

use std::collections::BTreeSet;

use datafusion_expr::sqlparser::ast::{Expr, OrderBy, Query, Select, TableFactor};

use super::columns::Known;
use crate::error::Result;
use crate::resolve::catalog::Catalog;

/// A rewrite of a SELECT with the order above it.
pub(super) type Ordered = fn(&mut Select, Option<&mut OrderBy>, &Names) -> Result<()>;

/// What a rewrite does at the parts of a query. Outer parts come before inner ones, but for
/// `after_expr`.
#[derive(Clone, Copy)]
pub(super) struct Hooks {
    /// Once, before the walk.
    pub(super) whole: Option<fn(&mut Query, &Names)>,
    /// A query whose WITH is not known yet.
    pub(super) with: Option<fn(&mut Query, &Names)>,
    pub(super) query: Option<fn(&mut Query, &Names) -> Result<()>>,
    /// The body of a query with the order above it, and each SELECT.
    pub(super) ordered: Option<Ordered>,
    pub(super) factor: Option<fn(&mut TableFactor, &Names) -> Result<()>>,
    pub(super) select: Option<fn(&mut Select, &Names) -> Result<()>>,
    pub(super) expr: Option<fn(&mut Expr, &Names) -> Result<()>>,
    pub(super) after_expr: Option<fn(&mut Expr, &Names) -> Result<()>>,
}

/// A rewrite that does nothing, to be filled in.
pub(super) const NONE: Hooks = Hooks {
    whole: None,
    with: None,
    query: None,
    ordered: None,
    factor: None,
    select: None,
    expr: None,
    after_expr: None,
};

/// What names mean at the place of a walk.
pub(super) struct Names<'a> {
    /// Where tables' columns are looked up; an expression alone has none.
    pub(super) catalog: Option<&'a dyn Catalog>,
    /// Tables to be renamed.
    pub(super) hidden: BTreeSet<String>,
    /// Whether every computed column of the select list gets a name of its own.
    pub(super) name_all: bool,
    /// Addresses of the subqueries that are tables: right of `ANY` and `ALL`, and arguments in
    /// FROM.
    pub(super) tables: Vec<usize>,
    /// For each open query, the queries named by WITH that it can reach.
    pub(super) with: Vec<Known>,
    /// Addresses of the queries of WITH clauses, and the queries that each can reach.
    pub(super) named: Vec<(usize, Known)>,
}

static NOTHING: Known = Known::new();

impl Names<'_> {
    /// The queries named by WITH that the innermost open query can reach.
    pub(super) fn reachable(&self) -> &Known {
        self.with.last().unwrap_or(&NOTHING)
    }

    /// The queries named by WITH that can be reached from outside the innermost open query.
    pub(super) fn reachable_outside(&self) -> &Known {
        self.with.iter().nth_back(1).unwrap_or(&NOTHING)
    }

    /// Whether a subquery stands for a value.
    pub(super) fn is_scalar(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Subquery(_)) && !self.tables.contains(&address(expr))
    }
}

/// Where an expression stands, which tells it from equal ones.
pub(super) fn address(expr: &Expr) -> usize {
    std::ptr::from_ref(expr).addr()
}

/// Where a query stands.
pub(super) fn query_address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl Hooks {
    /// In words, the part that the rewrite takes.
    pub(super) fn takes(&self) -> &'static str {
        match self {
            Hooks { whole: Some(_), .. } => "a whole query",
            Hooks { with: Some(_), .. } | Hooks { query: Some(_), .. } => "a query at any depth",
            Hooks { ordered: Some(_), .. } => "a SELECT with the order above it",
            Hooks { factor: Some(_), .. } => "an entry of FROM",
            Hooks { select: Some(_), .. } => "a SELECT",
            Hooks { expr: Some(_), .. } => "an expression, before its parts",
            _ => "an expression, after its parts",
        }
    }
}
