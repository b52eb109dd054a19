//! `WITH RECURSIVE` and `WITH MUTUALLY RECURSIVE` as calls in FROM, which
//! [`recursion`](crate::passes::plan::recursion) plans as loops.
//!
//! ```text
//! WITH RECURSIVE r(n) AS (a UNION b) ..    WITH r(n) AS (SELECT * FROM __recursive('__variable_r', 'distinct', (a), (b), 'n')) ..
//! ```
//!
//! Where `b` reads `r`, it reads the relation `__variable_r` under the name `r`. Named queries that
//! do not read themselves stay as they are, in an order in which each reads earlier ones only.
//!
//! Reading order: this file, [`references`], [`clauses`] (SEARCH and CYCLE), [`mutual`].

mod clauses;
mod mutual;
mod references;

use datafusion_expr::sqlparser::ast::{
    Cte, Expr, FunctionArg, FunctionArgExpr, Ident, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier,
    TableFactor, Value, With,
};

use super::names::name_items;
use super::set_operations::side_query;
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::syntax::names::fold;
use crate::syntax::relation_calls::{CYCLE, MUTUALLY, RECURSIVE, SEARCH, variable};
use crate::syntax::template::template;
use clauses::Clauses;
use references::{Reference, ReferencePlace, References, calls_aggregate};

/// Makes calls of the recursive queries that the WITH of `query` names.
///
/// # Errors
/// `Invalid`, `Unsupported` and `Syntax`, as PostgreSQL refuses them.
pub(super) fn settle(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return Ok(()) };
    with.recursive = false;
    let ctes = std::mem::take(&mut with.cte_tables);
    if let [marker, bindings @ ..] = ctes.as_slice()
        && fold(&marker.alias.name) == MUTUALLY
    {
        let settled = mutual::settle(marker, bindings, query)?;
        query.with = query.with.take().map(|with| With { cte_tables: settled, ..with });
        return Ok(());
    }
    let settled = ordered(with_clauses(ctes)?)?.into_iter().map(|(cte, clauses)| settle_cte(cte, &clauses));
    with.cte_tables = settled.collect::<Result<_>>()?;
    Ok(())
}

/// A named query and its clauses SEARCH and CYCLE.
type Named = (Cte, Clauses);

fn with_clauses(ctes: Vec<Cte>) -> Result<Vec<Named>> {
    let mut named: Vec<Named> = Vec::with_capacity(ctes.len());
    for cte in ctes {
        match (fold(&cte.alias.name).as_str(), named.last_mut()) {
            (SEARCH, Some((_, clauses))) => clauses.add_search(&cte.query)?,
            (CYCLE, Some((_, clauses))) => clauses.add_cycle(&cte.query)?,
            _ => named.push((cte, Clauses::default())),
        }
    }
    Ok(named)
}

/// The named queries in an order in which each reads itself and earlier ones only.
fn ordered(named: Vec<Named>) -> Result<Vec<Named>> {
    let names: Vec<String> = named.iter().map(|(cte, _)| fold(&cte.alias.name)).collect();
    let mut waiting: Vec<(usize, Named, Vec<usize>)> = Vec::with_capacity(named.len());
    for (n, (cte, clauses)) in named.into_iter().enumerate() {
        let read = read_by(&cte.query, &names)?.into_iter().filter(|other| *other != n).collect();
        waiting.push((n, (cte, clauses), read));
    }
    let mut done: Vec<usize> = Vec::new();
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let Some(at) = waiting.iter().position(|(_, _, read)| read.iter().all(|other| done.contains(other))) else {
            return Err(SqlError::new(
                ErrorKind::Unsupported,
                "mutual recursion between WITH items is not implemented",
            )
            .with_hint("Write WITH MUTUALLY RECURSIVE, with the types of columns: a (n integer) AS (..), b (n integer) AS (..)."));
        };
        let (n, named, _) = waiting.remove(at);
        done.push(n);
        ordered.push(named);
    }
    Ok(ordered)
}

/// The names that a query reads, as positions.
fn read_by(query: &Query, names: &[String]) -> Result<Vec<usize>> {
    let mut read = Vec::new();
    let mut found = |reference: Reference<'_>| {
        read.push(reference.name);
        Ok(())
    };
    References::new(names, &mut found, &mut |_| Ok(())).query(&mut query.clone())?;
    Ok(read)
}

fn settle_cte(mut cte: Cte, clauses: &Clauses) -> Result<Cte> {
    let name = fold(&cte.alias.name);
    if read_by(&cte.query, std::slice::from_ref(&name))?.is_empty() {
        return match clauses.is_empty() {
            true => Ok(cte),
            false => Err(SqlError::new(ErrorKind::Syntax, "WITH query is not recursive")
                .with_hint(format!("SEARCH and CYCLE need a term of \"{name}\" that reads \"{name}\"."))),
        };
    }
    let mut terms = Terms::of(&name, *cte.query)?;
    terms.check()?;
    if !clauses.is_empty() {
        clauses.add_to(&terms.name, &mut terms.first, &mut terms.step, &mut cte.alias.columns)?;
    }
    let names: Vec<String> = cte.alias.columns.iter().map(|column| fold(&column.name)).collect();
    cte.query = terms.call(&names)?;
    Ok(cte)
}

/// The two terms of a recursive query.
struct Terms {
    name: String,
    with: Option<With>,
    first: SetExpr,
    step: SetExpr,
    is_all: bool,
}

impl Terms {
    fn of(name: &str, mut query: Query) -> Result<Terms> {
        while let SetExpr::Query(inner) = query.body.as_mut()
            && query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
        {
            query = std::mem::replace(inner, *template("SELECT 1")?);
        }
        refuse_order(name, &query)?;
        match *query.body {
            SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } => Ok(Terms {
                name: name.to_string(),
                with: query.with,
                first: *left,
                step: *right,
                is_all: set_quantifier == SetQuantifier::All,
            }),
            _ => Err(invalid(format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            ))
            .with_hint(format!("Write SELECT .. UNION SELECT .. FROM {name} ..: the first part without \"{name}\"."))),
        }
    }

    /// Refuses what PostgreSQL refuses, and makes the name that of the variable.
    fn check(&mut self) -> Result<()> {
        let names = [self.name.clone()];
        let name = &names[0];
        let mut refused = |reference: Reference<'_>| Err(misplaced(name, reference.place));
        References::new(&names, &mut refused, &mut |_| Ok(()))
            .at(ReferencePlace::FirstTerm)
            .set_expr(&mut self.first)?;
        let mut n_found = 0;
        let mut found = |mut reference: Reference<'_>| {
            if reference.place != ReferencePlace::From {
                return Err(misplaced(name, reference.place));
            }
            n_found += 1;
            if n_found > 1 {
                return Err(invalid(format!("recursive reference to query \"{name}\" must not appear more than once"))
                    .with_hint("Write WITH MUTUALLY RECURSIVE, in which a query reads itself as often as it likes."));
            }
            reference.read_variable();
            Ok(())
        };
        References::new(&names, &mut found, &mut refuse_aggregates).set_expr(&mut self.step)?;
        if let Some(with) = &mut self.with {
            let mut refused = |reference: Reference<'_>| Err(misplaced(name, reference.place));
            let mut reads = |_: &mut Select| Ok(());
            let mut references = References::new(&names, &mut refused, &mut reads).at(ReferencePlace::Subquery);
            with.cte_tables.iter_mut().try_for_each(|cte| references.query(&mut cte.query))?;
        }
        Ok(())
    }

    /// The call of the loop, as a query. The first columns have the names given.
    fn call(self, columns: &[String]) -> Result<Box<Query>> {
        let quantifier = if self.is_all { "all" } else { "distinct" };
        let term = |term: &SetExpr, n_names: usize| -> Result<Expr> {
            let mut query = side_query(term)?;
            name_items(&mut query, n_names);
            query.with = match (self.with.clone(), query.with.take()) {
                (Some(outer), None) => Some(outer),
                (None, inner) => inner,
                (Some(outer), inner) => {
                    query.with = inner;
                    let mut around = template("SELECT 1")?;
                    around.body = Box::new(SetExpr::Query(query));
                    query = around;
                    Some(outer)
                }
            };
            Ok(Expr::Subquery(query))
        };
        let n_items = match &self.step {
            SetExpr::Select(select) => select.projection.len(),
            _ => 0,
        };
        let mut args = vec![string(&variable(&self.name)), string(quantifier)];
        args.extend([term(&self.first, columns.len())?, term(&self.step, n_items)?]);
        args.extend(columns.iter().map(|column| string(column)));
        all_of_call(RECURSIVE, args)
    }
}

/// `SELECT * FROM function(args)`.
fn all_of_call(function: &str, args: Vec<Expr>) -> Result<Box<Query>> {
    let mut query = template(&format!("SELECT * FROM {function}(1)"))?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(TableFactor::Table { args: Some(list), .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        list.args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    }
    Ok(query)
}

fn string(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_string()).into())
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn refuse_order(name: &str, query: &Query) -> Result<()> {
    let clause = match query {
        Query { order_by: Some(_), .. } => "ORDER BY",
        Query { limit_clause: Some(_), .. } | Query { fetch: Some(_), .. } => "LIMIT",
        Query { locks, .. } if !locks.is_empty() => "FOR UPDATE/SHARE",
        _ => return Ok(()),
    };
    Err(SqlError::new(ErrorKind::Unsupported, format!("{clause} in a recursive query is not implemented"))
        .with_hint(format!("Write {clause} in the query that reads \"{name}\".")))
}

/// Refuses aggregates beside the variable.
fn refuse_aggregates(select: &mut Select) -> Result<()> {
    let is_aggregate = |name: &str| FUNCTIONS.aggregate.contains_key(name);
    let mut parts = (std::mem::take(&mut select.projection), select.having.take());
    let is_found = parts.0.iter_mut().any(|item: &mut SelectItem| calls_aggregate(item, &is_aggregate))
        || parts.1.as_mut().is_some_and(|having| calls_aggregate(having, &is_aggregate));
    (select.projection, select.having) = parts;
    match is_found {
        false => Ok(()),
        true => Err(invalid("aggregate functions are not allowed in a recursive query's recursive term")
            .with_hint("Aggregate in the query outside, or write WITH MUTUALLY RECURSIVE, in which a query aggregates what it reads.")),
    }
}

fn misplaced(name: &str, place: ReferencePlace) -> SqlError {
    let (within, hint) = match place {
        ReferencePlace::FirstTerm | ReferencePlace::From => {
            ("its non-recursive term", "Write the rows to begin with before UNION; what reads the query comes after.")
        }
        ReferencePlace::Subquery => ("a subquery", "Name the query in FROM, and join with it."),
        ReferencePlace::OuterJoin => {
            ("an outer join", "Write JOIN, or put the query on the side that keeps all its rows.")
        }
        ReferencePlace::Intersect => ("INTERSECT", "Write INTERSECT without ALL, or a join."),
        ReferencePlace::Except => {
            ("EXCEPT", "Write a condition, or WITH MUTUALLY RECURSIVE, in which a query may read itself anywhere.")
        }
    };
    invalid(format!("recursive reference to query \"{name}\" must not appear within {within}")).with_hint(hint)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(ErrorKind::Invalid, message)
}
