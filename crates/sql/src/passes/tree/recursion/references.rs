//! Where a query reads a name that WITH gave: the places that PostgreSQL tells apart.
//!
//! A name that an inner WITH gives to another query is another name from there on. PostgreSQL's
//! `checkWellFormedRecursion` is the model.

use datafusion_expr::sqlparser::ast::{
    Expr, JoinOperator, ObjectName, Query, Select, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor,
    TableWithJoins, VisitMut,
};

use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::relation_calls::variable;
use crate::syntax::walk::{Changing, change};

/// A place where a query may stand within another, from the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferencePlace {
    /// FROM, or a branch of UNION.
    From,
    /// The term of a recursive query that gives its first rows.
    FirstTerm,
    /// A subquery in an expression, or the WITH of a recursive query.
    Subquery,
    /// The side of an outer join that is filled up with NULLs.
    OuterJoin,
    /// A side of INTERSECT ALL.
    Intersect,
    /// The right side of EXCEPT, a side of EXCEPT ALL.
    Except,
}

/// A name that was found.
pub(super) struct Reference<'a> {
    /// Position among the names that are looked for.
    pub(super) name: usize,
    pub(super) place: ReferencePlace,
    pub(super) relation: &'a mut ObjectName,
    pub(super) alias: &'a mut Option<TableAlias>,
}

impl Reference<'_> {
    /// Makes the name that of the variable.
    pub(super) fn read_variable(&mut self) {
        let Some(written) = self.relation.0.first().and_then(|part| part.as_ident()).cloned() else { return };
        let mut renamed = written.clone();
        renamed.value = variable(&fold(&written));
        renamed.quote_style = Some('"');
        *self.relation = ObjectName::from(vec![renamed]);
        if self.alias.is_none() {
            *self.alias = Some(TableAlias { explicit: true, name: written, columns: vec![], at: None });
        }
    }
}

/// What is done with each name.
pub(super) type Found<'a> = dyn FnMut(Reference<'_>) -> Result<()> + 'a;

/// What is done with each SELECT whose own FROM, joins included, reads a name.
pub(super) type Reads<'a> = dyn FnMut(&mut Select) -> Result<()> + 'a;

/// Looks for names.
pub(super) struct References<'a> {
    pub(super) names: &'a [String],
    pub(super) found: &'a mut Found<'a>,
    pub(super) reads: &'a mut Reads<'a>,
    place: ReferencePlace,
    /// Names that inner queries have, the innermost last.
    hidden: Vec<String>,
    /// Whether the FROM at hand has read a name.
    is_read: bool,
}

impl<'a> References<'a> {
    pub(super) fn new(names: &'a [String], found: &'a mut Found<'a>, reads: &'a mut Reads<'a>) -> Self {
        Self { names, found, reads, place: ReferencePlace::From, hidden: vec![], is_read: false }
    }

    /// The same, for a query that stands at `place`.
    pub(super) fn at(self, place: ReferencePlace) -> Self {
        Self { place, ..self }
    }

    /// Looks through a query.
    ///
    /// # Errors
    /// The first that `found` or `reads` returns.
    pub(super) fn query(&mut self, query: &mut Query) -> Result<()> {
        let n_hidden = self.hidden.len();
        if let Some(with) = &mut query.with {
            let given = |cte: &datafusion_expr::sqlparser::ast::Cte| fold(&cte.alias.name);
            if with.recursive {
                self.hidden.extend(with.cte_tables.iter().map(given));
            }
            for cte in &mut with.cte_tables {
                self.query(&mut cte.query)?;
                self.hidden.push(given(cte));
            }
        }
        self.set_expr(&mut query.body)?;
        if let Some(order_by) = &mut query.order_by {
            self.expressions(order_by)?;
        }
        if let Some(limit) = &mut query.limit_clause {
            self.expressions(limit)?;
        }
        self.hidden.truncate(n_hidden);
        Ok(())
    }

    /// Looks through the body of a query.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub(super) fn set_expr(&mut self, body: &mut SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let is_all = matches!(set_quantifier, SetQuantifier::All);
                let (of_left, of_right) = match op {
                    SetOperator::Union => (None, None),
                    SetOperator::Intersect => {
                        (is_all.then_some(ReferencePlace::Intersect), is_all.then_some(ReferencePlace::Intersect))
                    }
                    SetOperator::Except | SetOperator::Minus => {
                        (is_all.then_some(ReferencePlace::Except), Some(ReferencePlace::Except))
                    }
                };
                self.within(of_left, |walk| walk.set_expr(left))?;
                self.within(of_right, |walk| walk.set_expr(right))
            }
            SetExpr::Values(values) => self.expressions(values),
            _ => Ok(()),
        }
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        let mut from = std::mem::take(&mut select.from);
        let is_outer_read = std::mem::take(&mut self.is_read);
        let result = from.iter_mut().try_for_each(|entry| self.entry(entry));
        let is_read = std::mem::replace(&mut self.is_read, is_outer_read);
        let result = result.and_then(|()| self.expressions(select));
        select.from = from;
        result?;
        if is_read { (self.reads)(select) } else { Ok(()) }
    }

    /// An entry of FROM with its joins: an outer join may fill up all that stands left of it.
    fn entry(&mut self, entry: &mut TableWithJoins) -> Result<()> {
        use JoinOperator as J;
        let fills_left = |join: &J| matches!(join, J::Right(_) | J::RightOuter(_) | J::FullOuter(_));
        let fills_right =
            |join: &J| matches!(join, J::Left(_) | J::LeftOuter(_) | J::FullOuter(_) | J::OuterApply | J::AsOf { .. });
        let filled: Vec<bool> = (0..=entry.joins.len())
            .map(|at| {
                let own = at.checked_sub(1).is_some_and(|own| fills_right(&entry.joins[own].join_operator));
                own || entry.joins[at..].iter().any(|join| fills_left(&join.join_operator))
            })
            .collect();
        let factors = std::iter::once(&mut entry.relation).chain(entry.joins.iter_mut().map(|join| &mut join.relation));
        for (factor, filled) in factors.zip(filled) {
            self.within(filled.then_some(ReferencePlace::OuterJoin), |walk| walk.factor(factor))?;
        }
        entry.joins.iter_mut().try_for_each(|join| self.expressions(&mut join.join_operator))
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => self.relation(name, alias),
            TableFactor::Derived { subquery, .. } => {
                let is_read = self.is_read;
                let result = self.query(subquery);
                self.is_read = is_read;
                result
            }
            TableFactor::NestedJoin { table_with_joins, .. } => self.entry(table_with_joins),
            other => self.expressions(other),
        }
    }

    fn relation(&mut self, relation: &mut ObjectName, alias: &mut Option<TableAlias>) -> Result<()> {
        let [part] = relation.0.as_slice() else { return Ok(()) };
        let Some(written) = part.as_ident().map(fold).filter(|written| !self.hidden.contains(written)) else {
            return Ok(());
        };
        let Some(name) = self.names.iter().position(|name| *name == written) else { return Ok(()) };
        self.is_read = true;
        (self.found)(Reference { name, place: self.place, relation, alias })
    }

    /// Looks through the subqueries of expressions.
    fn expressions(&mut self, part: &mut impl VisitMut) -> Result<()> {
        change(part, &mut Subqueries { walk: self, depth: 0 })
    }

    /// Works at another place, unless the present one is refused already.
    fn within(&mut self, place: Option<ReferencePlace>, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let outer = self.place;
        if let (ReferencePlace::From, Some(place)) = (outer, place) {
            self.place = place;
        }
        let result = work(self);
        self.place = outer;
        result
    }
}

/// The outermost queries of expressions.
struct Subqueries<'w, 'a> {
    walk: &'w mut References<'a>,
    /// Queries around what is being walked over.
    depth: usize,
}

impl Changing for Subqueries<'_, '_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        self.depth += 1;
        if self.depth > 1 {
            return Ok(());
        }
        let is_read = self.walk.is_read;
        let result = self.walk.within(Some(ReferencePlace::Subquery), |walk| walk.query(query));
        self.walk.is_read = is_read;
        result
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.depth -= 1;
        Ok(())
    }
}

/// Whether an expression calls an aggregate that is no window function, outside of subqueries.
pub(super) fn calls_aggregate(part: &mut impl VisitMut, is_aggregate: &dyn Fn(&str) -> bool) -> bool {
    struct Calls<'a> {
        is_aggregate: &'a dyn Fn(&str) -> bool,
        depth: usize,
        found: bool,
    }
    impl Changing for Calls<'_> {
        fn query(&mut self, _query: &mut Query) -> Result<()> {
            self.depth += 1;
            Ok(())
        }
        fn after_query(&mut self, _query: &mut Query) -> Result<()> {
            self.depth -= 1;
            Ok(())
        }
        fn expr(&mut self, expr: &mut Expr) -> Result<()> {
            if let Expr::Function(function) = expr
                && self.depth == 0
                && function.over.is_none()
                && let Some(name) = function.name.0.last().and_then(|part| part.as_ident())
            {
                self.found |= (self.is_aggregate)(&fold(name));
            }
            Ok(())
        }
    }
    let mut calls = Calls { is_aggregate, depth: 0, found: false };
    change(part, &mut calls).is_ok() && calls.found
}
