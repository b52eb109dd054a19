//! Functions over frames: one node for all calls of a window.
//!
//! ROWS and GROUPS count rows and groups of peers; RANGE without offsets reaches whole groups.
//! RANGE with an offset compares the order's key with a column computed below: the key less or plus
//! the offset, of a type in which neither leaves its range.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use anabranch_plan::{Node, Plan};
use anabranch_plan::{Place, Window, WindowCall, WindowFunction as Function};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{
    Expr, ExprSchemable, Operator, WindowFrameBound, WindowFrameUnits, binary_expr, cast, lit, when,
};

use super::aggregate::WantedAggregate;
use super::expr::{column, resolve, resolve_key};
use super::ranks::{aggregate, whole};
use super::schema::{drafts, schema};
use super::stage::with_columns;
use super::window_parts::{aggregate_of, order_of, resolved};
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::range_key::{key_within, moved};

/// Digits of a decimal in which keys are compared with bounds.
const KEY_DIGITS: u8 = 38;

/// The plan's columns, perhaps some that are computed, then one column for each call: they share
/// partitions and order. The calls' columns are the last.
pub(super) fn over_frames(
    plan: Arc<Plan>,
    calls: &[(&WindowFunction, &DataType, Exclude)],
    from: &DFSchema,
) -> Result<Arc<Plan>> {
    let width = plan.schema.fields().len();
    let params = &calls[0].0.params;
    let mut exprs = resolved(&params.partition_by, from, &plan)?;
    let n_groups = exprs.len();
    for key in &params.order_by {
        exprs.push(resolve_key(&key.expr, from, &plan.schema)?);
    }
    let n_keys = exprs.len();
    if calls.iter().any(|(call, ..)| has_offsets(call)) {
        let key = key_within(&exprs[n_groups]).unwrap_or(&exprs[n_groups]);
        exprs[n_groups] = bounded_key(key.clone(), &plan.schema)?;
    }
    let mut wanted = Vec::with_capacity(calls.len());
    let mut shown = Vec::with_capacity(calls.len());
    for (call, output, exclude) in calls {
        let (asked, how) = match placed(call, from, &plan)? {
            Some(placed) => placed,
            None => {
                check(call)?;
                let ends = ends(call, exprs.get(n_groups))?;
                (vec![(ends, Wants::of(call, output, from, &plan)?, *exclude)], Shown::AsItIs)
            }
        };
        shown.push((wanted.len(), how));
        for (ends, what, _) in &asked {
            exprs.extend(ends.iter().filter_map(|end| end.column().cloned()));
            exprs.extend(what.parts());
        }
        wanted.extend(asked);
    }
    let (input, columns) = with_columns(plan, exprs.clone())?;
    let at = |expr: &Expr| {
        let found = exprs.iter().position(|known| known == expr);
        found.map(|n| columns[n]).ok_or_else(|| SqlError::internal("a window's column was not computed"))
    };
    let mut output = drafts(&input.schema);
    let mut made = Vec::with_capacity(wanted.len());
    for ([start, end], what, exclude) in wanted {
        let frame = WindowFrame { start: start.bound(&at)?, end: end.bound(&at)?, exclude };
        let (function, name, data_type, nullable) = what.made(&at, &input)?;
        output.push((name, data_type, nullable));
        made.push(WindowCall { function, frame });
    }
    let order = order_of(calls[0].0, &columns[n_groups..n_keys]);
    let window = Window { partition: columns[..n_groups].to_vec(), order, calls: made };
    let first = input.schema.fields().len();
    let node = Node::Window { input, window: Box::new(window) };
    let plan = Arc::new(Plan { node, schema: schema(output) });
    let mut columns: Vec<_> = super::stage::all_columns(&plan.schema)[..width].to_vec();
    for (at, how) in shown {
        columns.push((how.of(&plan, first + at)?, None));
    }
    super::stage::stage(plan, vec![], columns)
}

/// A call over a frame: the ends of its frame, what it computes, what it leaves out.
type Asked = ([End; 2], Wants, Exclude);

/// The result of a call, from the columns that were computed for it.
enum Shown {
    AsItIs,
    /// One more than the count.
    OneMore,
    /// This value where the second column counts no row.
    OrElse(Expr),
}

impl Shown {
    /// `at` is the first of its columns.
    fn of(self, plan: &Plan, at: usize) -> Result<Expr> {
        let result = column(&plan.schema, at);
        Ok(match self {
            Shown::AsItIs => result,
            Shown::OneMore => result + lit(1i64),
            Shown::OrElse(default) => {
                let default = cast(default, plan.schema.field(at).data_type().clone());
                when(column(&plan.schema, at + 1).eq(lit(0i64)), default).otherwise(result)?
            }
        })
    }
}

/// Functions whose frames are their own: `lag` and `lead` look at one row, `rank` counts the rows
/// before the peers.
fn placed(call: &WindowFunction, from: &DFSchema, plan: &Plan) -> Result<Option<(Vec<Asked>, Shown)>> {
    let sign = match call.fun.name() {
        "lag" => -1,
        "lead" => 1,
        "rank" => {
            let ends = [End::Known(FrameBound::First), End::Known(FrameBound::Peers(-1))];
            return Ok(Some((vec![(ends, rows()?, Exclude::Nothing)], Shown::OneMore)));
        }
        _ => return Ok(None),
    };
    let args = &call.params.args;
    let by = if args.len() < 2 { Some(1) } else { whole(args.get(1)) };
    let (Some(value), Some(by), None) = (args.first(), by, &call.params.null_treatment) else {
        let hint = "Write lag(x), lag(x, 2) or lag(x, 2, default), with a whole number.";
        return Err(SqlError::unsupported(format!("this form of {}()", call.fun.name()), hint));
    };
    let ends = || [(); 2].map(|()| End::Known(FrameBound::Rows(by.saturating_mul(sign))));
    let value = Wants::Value { of: resolve(value, from, &plan.schema)?, place: Place::First };
    let mut asked = vec![(ends(), value, Exclude::Nothing)];
    let how = match args.get(2) {
        None => Shown::AsItIs,
        Some(default) => {
            asked.push((ends(), rows()?, Exclude::Nothing));
            Shown::OrElse(resolve(default, from, &plan.schema)?)
        }
    };
    Ok(Some((asked, how)))
}

/// The number of rows.
fn rows() -> Result<Wants> {
    Ok(Wants::Aggregate(Box::new(aggregate("count", vec![], &DataType::Int64)?)))
}

/// What a call computes, with its expressions over the input's plan.
enum Wants {
    Aggregate(Box<WantedAggregate>),
    Value { of: Expr, place: Place },
    PercentRank,
    CumeDist,
}

impl Wants {
    fn of(call: &WindowFunction, output: &DataType, from: &DFSchema, plan: &Plan) -> Result<Wants> {
        let resolve = |e: &Expr| resolve(e, from, &plan.schema);
        let place = match call.fun.name() {
            "percent_rank" => return Ok(Wants::PercentRank),
            "cume_dist" => return Ok(Wants::CumeDist),
            "first_value" => Place::First,
            "last_value" => Place::Last,
            "nth_value" => match whole(call.params.args.get(1)) {
                Some(n) if n > 0 => Place::Nth(n as usize),
                Some(_) => {
                    let message = "argument of nth_value must be greater than zero";
                    return Err(SqlError::new(ErrorKind::Invalid, message));
                }
                _ => return Err(form(call, "Write nth_value(x, n) OVER (..) with a whole number above zero.")),
            },
            _ => return Ok(Wants::Aggregate(Box::new(aggregate_of(call, output, &resolve)?))),
        };
        let (Some(value), None) = (call.params.args.first(), &call.params.null_treatment) else {
            return Err(form(call, "Write first_value(x) OVER (..), without IGNORE NULLS."));
        };
        Ok(Wants::Value { of: resolve(value)?, place })
    }

    fn parts(&self) -> Vec<Expr> {
        match self {
            Wants::Aggregate(wanted) => wanted.parts().cloned().collect(),
            Wants::Value { of, .. } => vec![of.clone()],
            Wants::PercentRank | Wants::CumeDist => vec![],
        }
    }

    /// The function, and its column: name, type, and whether it may be NULL.
    fn made(self, at: &dyn Fn(&Expr) -> Result<usize>, input: &Plan) -> Result<(Function, String, DataType, bool)> {
        Ok(match self {
            Wants::Aggregate(wanted) => {
                let (name, nullable) = (wanted.name(), !wanted.never_null());
                let call = wanted.into_call(at)?;
                let data_type = call.output_type.clone();
                (Function::Aggregate(call), name, data_type, nullable)
            }
            Wants::Value { of, place } => {
                let column = at(&of)?;
                let name = match place {
                    Place::First => "first_value",
                    Place::Last => "last_value",
                    Place::Nth(_) => "nth_value",
                };
                let data_type = input.schema.field(column).data_type().clone();
                (Function::Value { column, place }, name.to_owned(), data_type, true)
            }
            Wants::PercentRank => (Function::PercentRank, "percent_rank".to_owned(), DataType::Float64, false),
            Wants::CumeDist => (Function::CumeDist, "cume_dist".to_owned(), DataType::Float64, false),
        })
    }
}

/// An end of a frame: known, or a column that the key is compared with.
enum End {
    Known(FrameBound),
    Column(Expr),
}

impl End {
    fn column(&self) -> Option<&Expr> {
        match self {
            End::Known(_) => None,
            End::Column(expr) => Some(expr),
        }
    }

    fn bound(&self, at: &dyn Fn(&Expr) -> Result<usize>) -> Result<FrameBound> {
        match self {
            End::Known(bound) => Ok(*bound),
            End::Column(expr) => Ok(FrameBound::Key(at(expr)?)),
        }
    }
}

/// Both ends of a call's frame; `key` is the order's first key.
fn ends(call: &WindowFunction, key: Option<&Expr>) -> Result<[End; 2]> {
    let frame = &call.params.window_frame;
    let end = |bound: &WindowFrameBound| {
        let (offset, sign) = match bound {
            WindowFrameBound::Preceding(offset) if offset.is_null() => return Ok(End::Known(FrameBound::First)),
            WindowFrameBound::Following(offset) if offset.is_null() => return Ok(End::Known(FrameBound::Last)),
            WindowFrameBound::CurrentRow if frame.units == WindowFrameUnits::Rows => {
                return Ok(End::Known(FrameBound::Rows(0)));
            }
            WindowFrameBound::CurrentRow => return Ok(End::Known(FrameBound::Peers(0))),
            WindowFrameBound::Preceding(offset) => (offset, -1),
            WindowFrameBound::Following(offset) => (offset, 1),
        };
        Ok(match (frame.units, key) {
            (WindowFrameUnits::Rows, _) => End::Known(FrameBound::Rows(sign * count(call, offset)?)),
            (WindowFrameUnits::Groups, _) => End::Known(FrameBound::Peers(sign * count(call, offset)?)),
            (WindowFrameUnits::Range, None) => {
                return Err(SqlError::internal("a RANGE frame with an offset has no order"));
            }
            (WindowFrameUnits::Range, Some(key)) => {
                let is_back = (sign < 0) == call.params.order_by[0].asc;
                let operator = if is_back { Operator::Minus } else { Operator::Plus };
                End::Column(match offset {
                    ScalarValue::Utf8View(Some(offset)) => {
                        moved(key, operator, offset).ok_or_else(|| misplaced(call))?
                    }
                    _ => binary_expr(key.clone(), operator, Expr::Literal(key_offset(call, key, offset)?, None)),
                })
            }
        })
    };
    Ok([end(&frame.start_bound)?, end(&frame.end_bound)?])
}

/// The frame of a call, unless its ends are compared with the key.
pub(super) fn frame_by_rows(call: &WindowFunction) -> Result<Option<WindowFrame>> {
    check(call)?;
    if has_offsets(call) {
        return Ok(None);
    }
    let [start, end] = ends(call, None)?;
    let (End::Known(start), End::Known(end)) = (start, end) else { return Ok(None) };
    Ok(Some(WindowFrame { start, end, exclude: Exclude::Nothing }))
}

/// A number of rows or groups.
fn count(call: &WindowFunction, offset: &ScalarValue) -> Result<i64> {
    let count = match offset.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(count))) if count >= 0 => count,
        _ => return Err(form(call, "Offsets of ROWS and GROUPS are whole numbers from zero on.")),
    };
    Ok(count)
}

fn has_offsets(call: &WindowFunction) -> bool {
    let frame = &call.params.window_frame;
    let is_offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => !offset.is_null(),
    };
    frame.units == WindowFrameUnits::Range && (is_offset(&frame.start_bound) || is_offset(&frame.end_bound))
}

/// The key of a RANGE frame with offsets, of a type in which the key less or plus an offset stays
/// in range.
fn bounded_key(key: Expr, schema: &DFSchema) -> Result<Expr> {
    let data_type = key.get_type(schema)?;
    Ok(match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 => cast(key, DataType::Int64),
        DataType::Int64 => cast(key, DataType::Decimal128(KEY_DIGITS, 0)),
        DataType::Decimal128(_, scale) => cast(key, DataType::Decimal128(KEY_DIGITS, scale)),
        DataType::Date32 => cast(key, DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Float32 => cast(key, DataType::Float64),
        DataType::Float64 | DataType::Timestamp(..) | TYPE => key,
        _ => {
            return Err(SqlError::unsupported(
                "RANGE with an offset over this type",
                "The order's key is a whole number, a numeric(p, s), a double, a date or a timestamp; cast it to one of these.",
            ));
        }
    })
}

/// The offset, of the type that is added to the key.
fn key_offset(call: &WindowFunction, key: &Expr, offset: &ScalarValue) -> Result<ScalarValue> {
    let wanted = match key {
        Expr::Cast(cast) => Some(cast.field.data_type().clone()),
        _ => None,
    };
    let refused = || misplaced(call);
    match (wanted, offset) {
        (_, ScalarValue::IntervalMonthDayNano(Some(_))) => Ok(offset.clone()),
        (Some(DataType::Timestamp(..)), _) => Err(refused()),
        (Some(wanted), _) => offset.cast_to(&wanted).map_err(|_| refused()),
        (None, _) => offset.cast_to(&DataType::Float64).map_err(|_| refused()),
    }
}

fn misplaced(call: &WindowFunction) -> SqlError {
    form(call, "The offset is a number from zero on, or an interval where the key is a date or a timestamp.")
}

/// Refuses what no frame answers.
fn check(call: &WindowFunction) -> Result<()> {
    if has_offsets(call) && call.params.order_by.len() != 1 {
        let hint = "RANGE with an offset needs exactly one ORDER BY column; ROWS and GROUPS take any number.";
        return Err(form(call, hint));
    }
    Ok(())
}

fn form(call: &WindowFunction, hint: &str) -> SqlError {
    SqlError::unsupported(format!("this form of window function {}()", call.fun.name()), hint)
}
