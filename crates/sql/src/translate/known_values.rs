//! `lag`, `lead`, `first_value`, `last_value` and `nth_value` with IGNORE NULLS.
//!
//! The rows of a partition whose value is known have places among each other, from 1. The least and
//! the greatest place of a row's frame say which known row is meant, and a join finds its value.
//!
//! ```text
//! x          10  NULL  30  NULL
//! place       1  NULL   2  NULL     count(x) up to the row, where x is known
//! lag: seen   -     1   1     2     the greatest place of the rows before
//! lag(x)      -    10  10    30     x at that place
//! ```
//!
//! Cost: as of three windows' functions; a change moves the places of the known rows behind it.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Plan, Window, WindowCall, WindowFunction as Function};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::expr::{NullTreatment, WindowFunction};
use datafusion_expr::{Expr, lit, when};

use super::expr::{column, resolve, resolve_key};
use super::frames::frame_by_rows;
use super::ranks::{aggregate, looked_up, whole};
use super::schema::{drafts, schema};
use super::stage::{all_columns, filter, stage, with_columns};
use super::window_parts::{order_of, resolved};
use crate::error::{Result, SqlError};

/// Which place is meant: a function of the places in a frame, and how many places further on.
struct WantedPlace {
    frame: WindowFrame,
    of: &'static str,
    further: i64,
    /// Whether the place must be in the frame as well.
    is_bounded: bool,
    default: Option<Expr>,
}

/// Appends the call's result; `None` if it does not ignore NULLs.
pub(super) fn known_value(
    plan: Arc<Plan>,
    call: &WindowFunction,
    from: &DFSchema,
    exclude: Exclude,
) -> Result<Option<Arc<Plan>>> {
    let params = &call.params;
    let (Some(NullTreatment::IgnoreNulls), Some(value)) = (&params.null_treatment, params.args.first()) else {
        return Ok(None);
    };
    let Some(wanted) = wanted(call, exclude)? else { return Ok(None) };
    let width = plan.schema.fields().len();
    let mut exprs = resolved(&params.partition_by, from, &plan)?;
    let n_groups = exprs.len();
    for key in &params.order_by {
        exprs.push(resolve_key(&key.expr, from, &plan.schema)?);
    }
    let n_keys = exprs.len();
    exprs.push(resolve(value, from, &plan.schema)?);
    let (input, at) = with_columns(plan, exprs)?;
    let over = KnownWindow { call, at: &at, n_groups, n_keys };

    let up_to_here = WindowFrame { start: FrameBound::First, end: FrameBound::Rows(0), exclude: Exclude::Nothing };
    let counted = over.append(input, &[("count", at[n_keys], up_to_here)])?;
    let n_counted = counted.schema.fields().len() - 1;
    let mut columns = all_columns(&counted.schema);
    columns[n_counted].0 = when(column(&counted.schema, at[n_keys]).is_not_null(), column(&counted.schema, n_counted))
        .otherwise(lit(datafusion_common::ScalarValue::Int64(None)))?;
    let placed = stage(counted, vec![], columns)?;

    let frame = wanted.frame;
    let seen = over.append(placed.clone(), &[(wanted.of, n_counted, frame), ("max", n_counted, frame)])?;
    let place = column(&seen.schema, n_counted + 1) + lit(wanted.further);
    let place = match wanted.is_bounded {
        true => when(place.clone().lt_eq(column(&seen.schema, n_counted + 2)), place)
            .otherwise(lit(datafusion_common::ScalarValue::Int64(None)))?,
        false => place,
    };
    let (left, place_at) = with_columns(seen, vec![place])?;
    let known = filter(placed.clone(), vec![column(&placed.schema, n_counted).is_not_null()])?;
    let key = |place: usize| at[..n_groups].iter().copied().chain([place]).collect::<Vec<usize>>();
    let found = looked_up((left, key(place_at[0])), (known, key(n_counted)), JoinKind::Left, width, &[at[n_keys]]);
    let Some(default) = wanted.default else { return Ok(Some(found)) };
    let default = resolve(&default, from, &found.schema)?;
    let value = column(&found.schema, width);
    let mut columns = all_columns(&found.schema);
    columns[width].0 = when(value.clone().is_null(), default).otherwise(value)?;
    Ok(Some(stage(found, vec![], columns)?))
}

/// The place that a function means.
fn wanted(call: &WindowFunction, exclude: Exclude) -> Result<Option<WantedPlace>> {
    let args = &call.params.args;
    let name = call.fun.name();
    let number = |otherwise: Option<i64>| match args.get(1) {
        None => otherwise,
        given => whole(given),
    };
    let refused = |hint: &str| SqlError::unsupported(format!("this form of {name}() IGNORE NULLS"), hint);
    let own = |start, end| WindowFrame { start, end, exclude: Exclude::Nothing };
    Ok(Some(match name {
        "lag" | "lead" => {
            let Some(by) = number(Some(1)).filter(|by| *by > 0) else {
                return Err(refused("Write lag(x), lag(x, 2) or lag(x, 2, default), with a whole number above zero."));
            };
            let default = args.get(2).cloned();
            match name {
                "lag" => {
                    let frame = own(FrameBound::First, FrameBound::Rows(-1));
                    WantedPlace { frame, of: "max", further: 1 - by, is_bounded: false, default }
                }
                _ => {
                    let frame = own(FrameBound::Rows(1), FrameBound::Last);
                    WantedPlace { frame, of: "min", further: by - 1, is_bounded: false, default }
                }
            }
        }
        "first_value" | "last_value" | "nth_value" => {
            let Some(nth) = (if name == "nth_value" { number(None) } else { Some(1) }).filter(|nth| *nth > 0) else {
                return Err(refused("Write nth_value(x, n) with a whole number above zero."));
            };
            let Some(frame) = frame_by_rows(call)? else {
                return Err(refused("Write a frame of ROWS or GROUPS in place of RANGE with an offset."));
            };
            if exclude != Exclude::Nothing {
                return Err(refused("Leave EXCLUDE out."));
            }
            let of = if name == "last_value" { "max" } else { "min" };
            WantedPlace { frame, of, further: nth - 1, is_bounded: name == "nth_value", default: None }
        }
        _ => return Ok(None),
    }))
}

/// The window of a call over columns that were computed.
struct KnownWindow<'a> {
    call: &'a WindowFunction,
    /// Partition, order, value.
    at: &'a [usize],
    n_groups: usize,
    n_keys: usize,
}

impl KnownWindow<'_> {
    /// Appends aggregates of columns over frames, whole numbers all.
    fn append(&self, input: Arc<Plan>, calls: &[(&str, usize, WindowFrame)]) -> Result<Arc<Plan>> {
        let mut output = drafts(&input.schema);
        let mut made = Vec::with_capacity(calls.len());
        for (name, of, frame) in calls {
            let wanted = aggregate(name, vec![column(&input.schema, *of)], &DataType::Int64)?;
            output.push((wanted.name(), DataType::Int64, true));
            let function = Function::Aggregate(wanted.into_call(&|_| Ok(*of))?);
            made.push(WindowCall { function, frame: *frame });
        }
        let order = order_of(self.call, &self.at[self.n_groups..self.n_keys]);
        let window = Window { partition: self.at[..self.n_groups].to_vec(), order, calls: made };
        let node = Node::Window { input, window: Box::new(window) };
        Ok(Arc::new(Plan { node, schema: schema(output) }))
    }
}
