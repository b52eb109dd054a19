//! Splitting: a stream as many *branches*, each worked on by itself, then merged.
//!
//! Branches are data, not channels: a row that is split carries the number of its branch as a
//! column, `branch`, and branch `j` lies in shard `j mod N`. A thousand branches in two shards are
//! two channels. What splitting costs is in [`cost`] and [`local`]; [`para`] has a router of whole
//! windows; rows for all branches are [`handed`] on.
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
pub mod para;

use std::sync::Arc;

use anabranch_engine::Error;
use anabranch_engine::frame::{Expr, Frame, FrameAggregate, UserOperator, col, floor_div, lit};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{cast, when};

use crate::layout::{Layout, Move};
use crate::program::{ActionKind, ROUTE, Shards};
use crate::row_alone;
use anabranch_plan::program::SplitForm;

pub use crate::program::BRANCH;
use cost::Shares;
use local::LocalCosts;
use para::{ParaOptions, ParaPlan};

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
    /// Whole windows to splitters chosen at random, each of which splits in one step.
    Para(ParaOptions),
    /// By the cost model of the layout, for these shares: the cheapest plan in one process, by
    /// measured constants; between processes the fastest of a core a node ([`cost::fastest`]).
    Auto(Shares),
    /// The cheapest plan in one process, by these constants and for these shares.
    Local(LocalCosts, Shares),
}

impl SplitPlan {
    /// The plan of splits that name none.
    pub const AUTO: SplitPlan = SplitPlan::Auto(Shares::broadcast(SplitForm::SHARE));

    /// A parallel split whose options are chosen.
    pub const PARA: SplitPlan = SplitPlan::Para(ParaOptions::CHOSEN);
}

impl From<SplitForm> for SplitPlan {
    fn from(form: SplitForm) -> SplitPlan {
        match form {
            SplitForm::Auto { share } => SplitPlan::Auto(Shares::broadcast(share)),
            SplitForm::Flat => SplitPlan::Flat,
            SplitForm::Exp => SplitPlan::Exp,
            SplitForm::Max { share } => SplitPlan::Max(Shares::broadcast(share)),
            SplitForm::Para(options) => SplitPlan::Para(options),
            SplitForm::Local { share } => SplitPlan::Local(LocalCosts::MEASURED, Shares::broadcast(share)),
        }
    }
}

/// A plan as it was chosen for a stream.
#[derive(Clone, Debug)]
struct ChosenPlan {
    /// What was asked for.
    plan: SplitPlan,
    /// Children of the nodes of each level.
    fan_outs: Vec<u32>,
    /// Of a parallel split.
    para: Option<ParaPlan>,
    /// The rows, as cost models take them.
    shares: Shares,
    /// The stream's shards.
    layout: Layout,
}

impl ChosenPlan {
    /// The plan for so many branches of a stream.
    fn of(plan: SplitPlan, width: u32, broadcasts: bool, rows: &Shards) -> Result<ChosenPlan, Error> {
        let (layout, schema) = rows.step().map(|step| (step.layout, step.schema.clone()))?;
        let shares = match plan {
            SplitPlan::Max(shares) => shares,
            _ if !broadcasts => Shares::broadcast(0.0),
            SplitPlan::Auto(shares) | SplitPlan::Local(_, shares) => shares,
            SplitPlan::Para(options) => Shares::broadcast(options.share),
            SplitPlan::Flat | SplitPlan::Exp => Shares::broadcast(SplitForm::SHARE),
        };
        let fan_outs = match plan {
            SplitPlan::Exp => cost::exptree(width),
            SplitPlan::Max(shares) => cost::maxtree(width, shares),
            SplitPlan::Auto(_) if layout.processes() > 1 => cost::fastest(width, shares),
            SplitPlan::Auto(_) => LocalCosts::MEASURED.fan_outs(width, shares, BATCH),
            SplitPlan::Local(costs, _) => costs.fan_outs(width, shares, BATCH),
            SplitPlan::Flat | SplitPlan::Para(_) => vec![width],
        };
        let para = match plan {
            SplitPlan::Para(options) => Some(ParaPlan::of(options, width, shares, layout, &schema)?),
            _ => None,
        };
        Ok(ChosenPlan { plan, fan_outs, para, shares, layout })
    }

    /// What was chosen, why, and its modelled cost.
    fn explain(&self, width: u32) -> String {
        let chosen = if self.fan_outs.len() > 1 { "exptree" } else { "flat" };
        let name = match self.plan {
            SplitPlan::Flat => "flat".to_owned(),
            SplitPlan::Exp => "exptree".to_owned(),
            SplitPlan::Max(_) => "maxtree".to_owned(),
            SplitPlan::Para(_) => "parasplit".to_owned(),
            SplitPlan::Auto(_) if self.layout.processes() > 1 => {
                format!("{chosen}, the fastest between processes, with a core a node")
            }
            SplitPlan::Auto(_) | SplitPlan::Local(..) => format!("{chosen}, the cheapest in one process"),
        };
        let fan_outs = self.fan_outs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let cost = cost::tree(&self.fan_outs, self.shares);
        let costs = if let SplitPlan::Local(costs, _) = self.plan { costs } else { LocalCosts::MEASURED };
        let here = costs.nanos(&self.fan_outs, self.shares, BATCH);
        let para = self.para.map(|para| format!("\nin parallel: {}", para.explain())).unwrap_or_default();
        format!(
            "split into {width} branches: {name}, fan-outs [{fan_outs}]{para}\nmodelled, {}% broadcast: {:.1}% of the rate and {:.2} of the CPU time of one branch\nmodelled, in one process: {here:.0} ns of CPU time a row",
            self.shares.broadcast * 100.0,
            cost.rate * 100.0,
            cost.cpu,
        )
    }
}

/// A stream that is split; see the [module's page](self).
#[derive(Clone, Debug)]
pub struct Branches {
    /// Keyed by the branch.
    rows: Shards,
    width: u32,
    /// Or the error of the stream, or of the plan's options.
    chosen: Result<ChosenPlan, Error>,
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
        let chosen = ChosenPlan::of(plan, width, broadcast.is_some(), self);
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
        let failed =
            |error, chosen| Branches { rows: Shards::failed(error), width, chosen, routed: None, names: vec![] };
        let plan = match (refused, chosen) {
            (Some(error), chosen) => return failed(error, chosen),
            (None, Err(error)) => return failed(error.clone(), Err(error)),
            (None, Ok(plan)) => plan,
        };
        let rows = self.rekey([]);
        // (The router opens no window: routes are computed by the splitters.)
        let rows = match plan.para {
            Some(para) => rows.spread(ActionKind::Spray(para.spraying)),
            None => rows,
        };
        let routed = rows.query(|rows| routed(rows, &names, route, broadcast));
        let rows = split_by(&routed, &names, width, &plan.fan_outs, None);
        Branches { rows, width, chosen: Ok(plan), routed: Some(routed), names }
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
        let rows = match (&self.routed, self.rows.step(), &self.chosen) {
            (_, Err(error), _) => Err(error),
            (_, _, Err(error)) => Err(error.clone()),
            (None, ..) => Err(Error::invalid("branches are placed after something was done with them")
                .with_hint("Say placed(..) right after split(..).")),
            (Some(routed), Ok(step), Ok(plan)) => places(shards, step.layout)
                .map(|places| split_by(routed, &self.names, self.width, &plan.fan_outs, Some(&places))),
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

    /// The plan that was chosen, its modelled cost ([`explain_plan`](Branches::explain_plan)), and
    /// the steps.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn explain(&self) -> Result<String, Error> {
        Ok(format!("{}\n{}", self.explain_plan()?, self.rows.explain()?))
    }

    /// The plan that was chosen, and its modelled cost: with a core for each node, and in one
    /// process.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn explain_plan(&self) -> Result<String, Error> {
        self.rows.step()?;
        Ok(self.chosen.as_ref().map_err(Error::clone)?.explain(self.width))
    }

    /// Whether the branches depend on the number of shards.
    ///
    /// # Errors
    /// As for [`Shards::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.rows.check()
    }
}
