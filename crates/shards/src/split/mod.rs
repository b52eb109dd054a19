//! Splitting: a stream as many *branches*, each worked on by itself, then merged.
//!
//! Branches are data, not channels: a row that is split carries the number of its branch as a
//! column, `branch`, and branch `j` lies in shard `j mod N`. A thousand branches in two shards are
//! two channels. What splitting costs is in [`cost`]; rows for all branches are [`handed`] on.
//!
//! ```text
//!     splitstream   split(width, route, broadcast, plan)    each row to one branch, to all, or to none
//!     mapstream     map(query)                              the query in each branch
//!     mergestream   merge, merge_by, merge_tree             one stream again
//! ```
//!
//! Law: every plan yields the same branches. A row that is broadcast reaches every branch, and its
//! route is not evaluated; of the others a row reaches the branch of its route, or none if that is
//! NULL. A route outside of the width is an error of the row. Source: SCSQ (Zeitler's thesis,
//! Uppsala 2011).

pub mod cost;
pub mod handed;
pub mod local;

use std::sync::Arc;

use anabranch_engine::Error;
use anabranch_engine::frame::{Expr, Frame, FrameAggregate, UserOperator, col, floor_div, lit};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{cast, when};

use crate::layout::{Layout, Move};
use crate::program::{ActionKind, ROUTE, Shards};
use crate::row_alone;

pub use crate::program::BRANCH;
use cost::Shares;
use local::LocalCosts;

/// Rows of a batch, where none is known.
const BATCH: f64 = 8192.0;

/// The column that says whether a row goes to all branches, while its route is computed.
const TO_ALL: &str = "to_all";

/// How rows are split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitPlan {
    /// In one step.
    Flat,
    /// By a tree of fan-outs 2, 4, 8 ..
    Exp,
    /// By the widest tree whose nodes cost no more than its root, for these shares.
    Max(Shares),
    /// Whole batches to splitters chosen at random, each of which splits in one step.
    Para,
    /// A tree if rows are broadcast, else in one step: SCSQ's rule, for a core a node.
    Auto,
    /// What is cheapest in this process, by measured constants and for these shares.
    Local(LocalCosts, Shares),
}

/// A stream that is split; see the [module's page](self).
#[derive(Clone, Debug)]
pub struct Branches {
    /// Keyed by the branch.
    rows: Shards,
    width: u32,
    fan_outs: Vec<u32>,
    plan: SplitPlan,
    /// Whether rows are broadcast.
    broadcasts: bool,
    /// The rows with their routes, before they are split; `None` once something was done with the
    /// branches.
    routed: Option<Shards>,
    /// Names of the stream's columns.
    names: Vec<String>,
}

impl Shards {
    /// Splits into branches `0 .. width`: rows for which `broadcast` is true go to each, others to
    /// that of `route`, a whole number.
    pub fn split(&self, width: u32, route: Expr, broadcast: Option<Expr>, plan: SplitPlan) -> Branches {
        let fan_outs = match plan {
            SplitPlan::Exp => cost::exptree(width),
            SplitPlan::Auto if broadcast.is_some() => cost::exptree(width),
            SplitPlan::Max(shares) => cost::maxtree(width, shares),
            SplitPlan::Local(costs, shares) => costs.fan_outs(width, shares, BATCH),
            SplitPlan::Flat | SplitPlan::Para | SplitPlan::Auto => vec![width],
        };
        let names = self.columns();
        let taken = [BRANCH, ROUTE, TO_ALL].into_iter().find(|taken| names.iter().any(|name| name == taken));
        let exprs = [
            ("the route that a split gives rows", Some(&route)),
            ("the broadcast of rows in a split", broadcast.as_ref()),
        ];
        let are_alone =
            exprs.into_iter().try_for_each(|(what, expr)| expr.map_or(Ok(()), |expr| row_alone::check(what, expr)));
        let refused = match (width, taken) {
            _ if are_alone.is_err() => are_alone.err(),
            (0, _) => Some(Error::invalid("a stream cannot be split into no branches")),
            (_, Some(taken)) => Some(
                Error::invalid(format!("a stream with a column \"{taken}\" cannot be split"))
                    .with_hint("Splitting computes a column of this name: give the other one another name."),
            ),
            _ => None,
        };
        if let Some(error) = refused {
            let rows = Shards::failed(error);
            let broadcasts = broadcast.is_some();
            return Branches { rows, width, fan_outs, plan, broadcasts, routed: None, names };
        }
        let broadcasts = broadcast.is_some();
        let rows = self.rekey([]);
        // (The router opens no batch: routes are computed by the splitters.)
        let rows = if plan == SplitPlan::Para { rows.spread(ActionKind::Spray) } else { rows };
        let routed = rows.query(|rows| routed(rows, &names, route, broadcast));
        let rows = split_by(&routed, &names, width, &fan_outs, None);
        Branches { rows, width, fan_outs, plan, broadcasts, routed: Some(routed), names }
    }
}

/// The branches of rows with their routes, level by level.
fn split_by(routed: &Shards, names: &[String], width: u32, fan_outs: &[u32], places: Option<&Arc<[usize]>>) -> Shards {
    let (mut rows, mut nodes) = (routed.clone(), 1u32);
    for &fan_out in fan_outs {
        rows = rows.spread(ActionKind::Split { nodes, fan_out, width, places: places.cloned() });
        nodes = nodes.saturating_mul(fan_out);
    }
    rows.in_branches(names)
}

/// Those of these shards that a layout has, in their order.
fn places(shards: &[usize], layout: Layout) -> Result<Arc<[usize]>, Error> {
    let there = layout.shards();
    let places: Vec<usize> = shards.iter().copied().filter(|shard| *shard < there).collect();
    match places.is_empty() {
        false => Ok(places.into()),
        true => Err(Error::invalid(format!("branches are placed in shards {shards:?}: none of them is there"))
            .with_hint(format!("Shards are numbered 0 to {}.", there - 1))),
    }
}

/// Rows with their route, NULL for all branches, and the node they begin at. Rows for no branch are
/// left out.
fn routed(rows: Frame, names: &[String], route: Expr, broadcast: Option<Expr>) -> Frame {
    let route = cast(route, DataType::Int64);
    let is_routed = col(ROUTE).is_not_null();
    let rows = match broadcast {
        None => rows.with_columns([route.alias(ROUTE)]).filter(is_routed),
        Some(broadcast) => {
            let none = lit(ScalarValue::Int64(None));
            // (Both arms are of one type, so the expression can be built.)
            let number = when(broadcast.clone(), none).otherwise(route.clone()).unwrap_or(route);
            let rows = rows.with_columns([broadcast.alias(TO_ALL), number.alias(ROUTE)]);
            rows.filter(col(TO_ALL).or(is_routed))
        }
    };
    let columns = names.iter().map(|name| col(name)).chain([col(ROUTE), lit(0i64).alias(BRANCH)]);
    rows.select(columns)
}

impl Branches {
    /// The same branches, in shards of a list: branch `j` lies in its `j`-th shard, and from its
    /// beginning again where there are more branches than shards in it. A shard that is named twice
    /// takes twice as many; one that the layout does not have is passed over. The nodes of a tree
    /// lie there too. Say it right after `split`; a list without a shard of the layout is an error.
    #[must_use]
    pub fn placed(&self, shards: &[usize]) -> Branches {
        let rows = match (&self.routed, self.rows.step()) {
            (_, Err(error)) => Err(error),
            (None, _) => Err(Error::invalid("branches are placed after something was done with them")
                .with_hint("Say placed(..) right after split(..).")),
            (Some(routed), Ok(step)) => places(shards, step.layout)
                .map(|places| split_by(routed, &self.names, self.width, &self.fan_outs, Some(&places))),
        };
        Branches { rows: rows.unwrap_or_else(Shards::failed), ..self.clone() }
    }

    /// A query in each branch by itself.
    #[must_use]
    pub fn map(&self, query: impl FnOnce(Frame) -> Frame) -> Branches {
        Branches { rows: self.rows.query(query), routed: None, ..self.clone() }
    }

    /// A user's operator in each branch by itself: see [`Shards::operator`].
    #[must_use]
    pub fn operator(&self, operator: impl UserOperator) -> Branches {
        Branches { rows: self.rows.operator(operator), routed: None, ..self.clone() }
    }

    /// Names of the columns of the branches, in order.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn column_names(&self) -> Result<Vec<String>, Error> {
        self.rows.step()?;
        Ok(self.rows.columns())
    }

    /// All rows of all branches, with their branch as a column; in any order between two frontiers.
    pub fn merge(&self) -> Shards {
        self.rows.rekey([])
    }

    /// All rows of all branches, with their branch as a column, in one shard and in order of time;
    /// rows of one time in any order.
    pub fn merge_by_time(&self) -> Shards {
        self.rows.rekey([]).reshard(Move::to_shards(1)).in_time_order()
    }

    /// Rows of all branches that are equal in `on`, as one: in any branch, then put together in the
    /// shard of `on`.
    pub fn merge_by<'a>(
        &self,
        on: impl IntoIterator<Item = &'a str>,
        combine: impl IntoIterator<Item = FrameAggregate>,
    ) -> Shards {
        let combine: Vec<FrameAggregate> = combine.into_iter().collect();
        self.rows.rekey(on).redistribute(Move::FLAT).query(|rows| rows.agg(combine))
    }

    /// As [`merge_by`](Branches::merge_by), by a tree of nodes that take in `fan_in` branches each;
    /// the aggregates have the names of the columns that they put together.
    pub fn merge_tree<'a>(
        &self,
        on: impl IntoIterator<Item = &'a str>,
        fan_in: u32,
        combine: impl IntoIterator<Item = FrameAggregate>,
    ) -> Shards {
        let combine: Vec<FrameAggregate> = combine.into_iter().collect();
        self.merge_tree_with(on, fan_in, |rows| rows.agg(combine.clone()))
    }

    /// As [`merge_tree`](Branches::merge_tree), where a query over the rows of equal `on` puts them
    /// together in each node: what it gives must be what it takes.
    pub fn merge_tree_with<'a>(
        &self,
        on: impl IntoIterator<Item = &'a str>,
        fan_in: u32,
        mut combine: impl FnMut(Frame) -> Frame,
    ) -> Shards {
        let on: Vec<&str> = on.into_iter().collect();
        if fan_in < 2 {
            return Shards::failed(Error::invalid(format!("a tree of fan-in {fan_in} does not end")));
        }
        let (mut rows, mut nodes) = (self.rows.clone(), self.width);
        while nodes > 1 {
            let node = floor_div(col(BRANCH), lit(i64::from(fan_in)));
            let keyed = rows.rekey([]).query(|rows| rows.with_columns([node.alias(BRANCH)]));
            let key: Vec<&str> = on.iter().copied().chain([BRANCH]).collect();
            rows = keyed.spread(ActionKind::ToBranch).rekey(key).query(&mut combine);
            nodes = nodes.div_ceil(fan_in);
        }
        rows.rekey(on)
    }

    /// The tree that was chosen, what it would cost with a core for each node (modelled), and the
    /// steps.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn explain(&self) -> Result<String, Error> {
        let plan = match self.plan {
            SplitPlan::Flat => "flat",
            SplitPlan::Exp => "exptree",
            SplitPlan::Max(_) => "maxtree",
            SplitPlan::Local(..) => "the cheapest in one process",
            SplitPlan::Para => "parasplit",
            SplitPlan::Auto if self.broadcasts => "exptree, chosen since rows are broadcast",
            SplitPlan::Auto => "flat, chosen since no rows are broadcast",
        };
        let shares = match self.plan {
            SplitPlan::Max(shares) | SplitPlan::Local(_, shares) => shares,
            _ => Shares::broadcast(if self.broadcasts { 0.01 } else { 0.0 }),
        };
        let fan_outs = self.fan_outs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let cost = cost::tree(&self.fan_outs, shares);
        let here = LocalCosts::MEASURED.nanos(&self.fan_outs, shares, BATCH);
        Ok(format!(
            "split into {} branches: {plan}, fan-outs [{fan_outs}]\nmodelled, {}% broadcast: {:.1}% of the rate and {:.2} of the CPU time of one branch\nmodelled, in one process: {here:.0} ns of CPU time a row\n{}",
            self.width,
            shares.broadcast * 100.0,
            cost.rate * 100.0,
            cost.cpu,
            self.rows.explain()?
        ))
    }

    /// Whether the branches depend on the number of shards.
    ///
    /// # Errors
    /// As for [`Shards::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.rows.check()
    }
}
