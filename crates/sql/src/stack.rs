//! The stack that planning runs on: shallow for queries of few parts, deep for others.
//!
//! The planner follows the nesting of a query with its own calls: a chain of a thousand operators
//! is a thousand calls deep, and a view on a view on a view likewise. A query of few parts is
//! planned on the caller's stack, any other on a large stack of its own. [`depth_of`] and
//! [`check_plan`] refuse deeper nesting before a call follows the nesting.
//!
//! Law: a query is planned or refused; its depth never ends the process. Cost: none for queries of
//! few parts; some fifty microseconds for others, mostly the system's first touch of the stack.
//! Stacks are reserved, and take memory only as far as they are used.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use datafusion_expr::{Expr, LogicalPlan};

use crate::error::{ErrorKind, Result, SqlError, offset_of};
use crate::syntax::precedence::LONG_CHAIN;
use crate::syntax::size::{Size, size};
use crate::syntax::walk::{Look, Looking, look};

/// Bytes of a deep stack, and what must be left of a stack to count as deep.
const STACK_BYTES: usize = 256 << 20;
const DEEP_BYTES_LEFT: usize = 192 << 20;

/// Levels that are planned on the caller's stack, and the bytes that must be left of it. (Without
/// optimisation a call takes several times as much.)
pub(crate) const SHALLOW_LEVELS_MAX: usize = 64;
const SHALLOW_BYTES: usize = if cfg!(debug_assertions) { 8 << 20 } else { 3 << 19 };

/// Deepest nesting of one statement. Deeper syntax trees could not be dropped on a thread with a
/// usual stack; and the planner crates ask for the type of each part of a chain, which asks for
/// those of its parts: time in the square of the depth, a second or two at this one.
const STATEMENT_DEPTH_MAX: usize = 1000;

/// Conditions that may stand between AND and OR in one place. (Long chains are balanced, so their
/// depth is no matter: planning them takes time in proportion, at least.)
const CONDITIONS_MAX: usize = 20_000;

/// Depth of conditions between AND and OR, at most: a chain of one in a chain of the other, each
/// balanced above [`LONG_CHAIN`].
const CONDITIONS_DEPTH_MAX: usize = 4 * LONG_CHAIN;

/// Parentheses and NOTs in each other: the parser calls itself for these, and would only tell of a
/// syntax error at its own limit.
const PARENTHESES_MAX: usize = 450;

/// Deepest nesting of a statement with its views: some ten times what such a stack is left by.
pub(crate) const DEPTH_MAX: usize = 10_000;

/// Levels that a view counts for beside those of its query: planning it is planning a statement
/// anew.
pub(crate) const VIEW_LEVELS: usize = 16;

/// Levels that a step of a plan counts for, where an operator of an expression is one.
const STEP_LEVELS: usize = 2;

/// Deepest plan. Workers follow it on stacks of a usual size.
const PLAN_DEPTH_MAX: usize = 500;

/// Most steps of a plan before it is rewritten.
const PLAN_STEPS_MAX: usize = 16_384;

/// Most subqueries around one.
const SUBQUERIES_MAX: usize = 16;

/// Runs `f` on a stack for the deepest nesting allowed.
pub(crate) fn with_deep_stack<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(DEEP_BYTES_LEFT, STACK_BYTES, f)
}

/// Runs `f` on a stack for [`SHALLOW_LEVELS_MAX`].
pub(crate) fn with_shallow_stack<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(SHALLOW_BYTES, STACK_BYTES, f)
}

/// The number of parts of a query, if it is at most [`SHALLOW_LEVELS_MAX`]; it is not nested more
/// deeply than that.
pub(crate) fn few_parts(query: &ast::Query) -> Option<usize> {
    let mut parts = Parts(0);
    look(query, &mut parts);
    (parts.0 <= SHALLOW_LEVELS_MAX).then_some(parts.0)
}

/// Counts parts, and stops when there are too many.
struct Parts(usize);

impl Parts {
    fn one_more(&mut self) -> Look {
        self.0 += 1;
        if self.0 > SHALLOW_LEVELS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Looking for Parts {
    fn query(&mut self, _query: &ast::Query) -> Look {
        self.one_more()
    }
    fn table_factor(&mut self, _factor: &ast::TableFactor) -> Look {
        self.one_more()
    }
    fn select(&mut self, _select: &ast::Select) -> Look {
        self.one_more()
    }
    fn expr(&mut self, _expr: &ast::Expr) -> Look {
        self.one_more()
    }
}

/// How deeply a statement is nested, told from its tokens and from above: each operator of a chain,
/// arm of a set operation, join and open parenthesis adds one; the items of a list stand side by
/// side.
///
/// # Errors
/// `Unsupported`, placed where the nesting gets too deep.
pub(crate) fn depth_of(tokens: &[TokenWithSpan], text: &str) -> Result<usize> {
    let mut open: Vec<Level> = vec![Level::default()];
    let (mut below, mut deepest) = (0, 0);
    for token in tokens {
        let has_outer = open.len() > 1;
        let level = open.last_mut().expect("the outermost level is never closed");
        match &token.token {
            Token::LParen | Token::LBracket => {
                below += level.chain + 1;
                open.push(Level::default());
            }
            Token::RParen | Token::RBracket if has_outer => {
                open.pop();
                below -= open.last().map_or(0, |level| level.chain + 1);
            }
            // Tables and named queries may stand on each other.
            Token::Comma if level.is_nesting => level.chain += 1,
            Token::Comma => level.restart(),
            Token::Word(Word { value, quote_style: None, .. }) => level.word(value),
            Token::Word(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::SingleQuotedString(_)
            | Token::Number(..) => {}
            _ => level.chain += 1,
        }
        let depth = below + open.last().map_or(0, |level| level.chain);
        let calls = open.len() + open.last().map_or(0, |level| level.negations);
        if depth > STATEMENT_DEPTH_MAX || calls > PARENTHESES_MAX {
            let start = token.span.start;
            let detail = if depth > STATEMENT_DEPTH_MAX {
                format!("The statement is more than {STATEMENT_DEPTH_MAX} levels deep.")
            } else {
                format!("More than {PARENTHESES_MAX} parentheses are open.")
            };
            return Err(SqlError { position: Some(offset_of(text, start.line, start.column)), ..too_deep(detail) });
        }
        deepest = deepest.max(depth);
    }
    Ok(deepest)
}

/// What is counted between two parentheses.
#[derive(Default)]
struct Level {
    /// Depth of the item being read.
    chain: usize,
    /// Depth that the next item of a list begins with.
    base: usize,
    /// AND and OR of this item: they bind weakest, so what stands between them is no deeper than
    /// one of it.
    conditions: usize,
    /// NOTs of the condition being read.
    negations: usize,
    /// Whether commas separate what may stand on each other: tables, named queries.
    is_nesting: bool,
}

impl Level {
    fn restart(&mut self) {
        self.chain = self.base;
        self.conditions = 0;
        self.negations = 0;
    }

    fn word(&mut self, word: &str) {
        let is = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
        if is(&["UNION", "EXCEPT", "INTERSECT", "JOIN"]) {
            self.base += 1;
            self.restart();
            self.is_nesting = is(&["JOIN"]);
        } else if is(&["WITH", "FROM"]) {
            // (FROM is also a part of IS DISTINCT FROM, so nothing is taken back.)
            self.base = self.chain;
            self.is_nesting = true;
        } else if is(&["SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "ON", "SET", "VALUES", "RETURNING"]) {
            if self.is_nesting {
                self.base = self.chain;
            }
            self.restart();
            self.is_nesting = false;
        } else if is(&["AND", "OR"]) {
            self.conditions += 1;
            self.negations = 0;
            self.chain = self.base
                + match self.conditions {
                    few @ ..=CONDITIONS_DEPTH_MAX => few,
                    many @ CONDITIONS_MAX.. => many,
                    _ => CONDITIONS_DEPTH_MAX,
                };
        } else if is(&["NOT"]) {
            self.chain += 1;
            self.negations += 1;
        } else if is(&["LIKE", "ILIKE", "SIMILAR", "IN", "IS", "BETWEEN", "CASE", "COLLATE", "AT"]) {
            self.chain += 1;
        }
    }
}

/// Refuses a query that the planner would not come to an end with: it looks through a subquery
/// twice for each one around it, and through a named query as often as it is read.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_size(query: &ast::Query) -> Result<()> {
    let Size { steps, subqueries } = size(query);
    match steps > PLAN_STEPS_MAX {
        true => Err(too_many_steps()),
        false => check_subqueries(subqueries),
    }
}

/// As [`check_size`], of a plan in which views stand for their queries.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_planned_size(plan: &LogicalPlan) -> Result<()> {
    let mut left = PLAN_STEPS_MAX;
    check_part(plan, 0, &mut left)
}

fn check_subqueries(n_around: usize) -> Result<()> {
    match n_around > SUBQUERIES_MAX {
        true => Err(too_deep(format!("Subqueries stand within each other; {SUBQUERIES_MAX} levels are allowed."))),
        false => Ok(()),
    }
}

fn too_many_steps() -> SqlError {
    too_deep(format!(
        "Its plan has more than {PLAN_STEPS_MAX} steps, with queries in WITH counted as often as they are read."
    ))
}

fn check_part(plan: &LogicalPlan, n_around: usize, left: &mut usize) -> Result<()> {
    let Some(rest) = left.checked_sub(1) else { return Err(too_many_steps()) };
    *left = rest;
    check_subqueries(n_around)?;
    let mut checked = Ok(());
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            let subquery = match expr {
                Expr::Exists(exists) => Some(&exists.subquery),
                Expr::InSubquery(within) => Some(&within.subquery),
                Expr::SetComparison(compared) => Some(&compared.subquery),
                Expr::ScalarSubquery(subquery) => Some(subquery),
                _ => None,
            };
            if let (Ok(()), Some(subquery)) = (&checked, subquery) {
                checked = check_part(&subquery.subquery, n_around + 1, left);
            }
            Ok(if checked.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })
    })?;
    checked?;
    plan.inputs().into_iter().try_for_each(|input| check_part(input, n_around, left))
}

/// Refuses a plan whose steps and expressions are nested more deeply than workers can follow.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_plan(plan: &Arc<Plan>) -> Result<()> {
    match depth_of_plan(plan, &mut HashMap::new()) {
        depth if depth > PLAN_DEPTH_MAX => {
            Err(too_deep(format!("Its plan is {depth} levels deep; {PLAN_DEPTH_MAX} are allowed.")))
        }
        _ => Ok(()),
    }
}

fn depth_of_plan(plan: &Arc<Plan>, known: &mut HashMap<*const Plan, usize>) -> usize {
    if let Some(depth) = known.get(&Arc::as_ptr(plan)) {
        return *depth;
    }
    let below = plan.inputs().into_iter().map(|input| depth_of_plan(input, known)).max().unwrap_or(0);
    let own = match &plan.node {
        Node::Stage { filter, project, .. } => filter.iter().chain(project).map(depth_of_expr).max(),
        Node::Join { residual, .. } => residual.iter().map(depth_of_expr).max(),
        _ => None,
    };
    let depth = (below + STEP_LEVELS).max(own.unwrap_or(0));
    known.insert(Arc::as_ptr(plan), depth);
    depth
}

fn depth_of_expr(expr: &Expr) -> usize {
    let mut deepest = 0;
    let _ = expr.apply_children(|child| {
        deepest = deepest.max(depth_of_expr(child));
        Ok(TreeNodeRecursion::Continue)
    });
    deepest + 1
}

/// The error for a query that is nested too deeply.
pub(crate) fn too_deep(detail: impl Into<String>) -> SqlError {
    SqlError::new(ErrorKind::Unsupported, "the query is nested too deeply")
        .with_detail(detail)
        .with_hint("Keep parts of it in materialized views; write long chains of OR as IN lists.")
}

/// All in one, joined in pairs: a tree that is no deeper than need be.
pub(crate) fn balanced<T: Clone>(parts: &[T], join: &impl Fn(T, T) -> T) -> Option<T> {
    match parts {
        [] => None,
        [part] => Some(part.clone()),
        _ => {
            let (left, right) = parts.split_at(parts.len() / 2);
            Some(join(balanced(left, join)?, balanced(right, join)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::syntax::dialect::Postgres;

    fn depth(text: &str) -> usize {
        let tokens = Tokenizer::new(&Postgres, text).tokenize_with_location().unwrap();
        depth_of(&tokens, text).unwrap_or(usize::MAX)
    }

    #[test]
    fn chains_and_parentheses_nest_and_lists_do_not() {
        assert_eq!(depth("SELECT 1 + 1 + 1"), 2);
        assert_eq!(depth("SELECT a, b::int::text, c FROM t"), 2);
        assert_eq!(depth("SELECT ((a + 1) * 2)"), 3);
        assert_eq!(depth("SELECT a FROM t WHERE a = 1 OR a = 2 OR a = 3"), 3);
        assert_eq!(depth("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3"), 2);
        assert!(depth(&format!("INSERT INTO t VALUES {}(1)", "(-1, 'a'), ".repeat(10_000))) < 5);
        assert!(depth(&format!("SELECT a IN ({}1)", "1, ".repeat(10_000))) < 5);
        assert!(depth(&format!("WITH a AS (SELECT 1){} SELECT 1", ", b AS (SELECT 1 FROM a)".repeat(100))) > 100);
        assert_eq!(depth(&format!("SELECT 1{}", "::int".repeat(STATEMENT_DEPTH_MAX + 1))), usize::MAX);
    }
}
