//! Queries over events, as Python builds them: `anabranch/events` writes expressions as SQL, and
//! durations as ticks.
//!
//! Law: an error of building is raised by the verb that makes it.

use std::cell::RefCell;
use std::time::Duration;

use anabranch_engine::frame::arrival::{Completed, Disorder};
use anabranch_engine::frame::{
    AsofOptions, EmitWhen, Events, Expr, FOREVER, Frame as EngineFrame, FrameAggregate, How, Strategy, avg, bool_and,
    bool_or, collect, count, count_rows, custom, custom_invertible, first, last, max, median, min, percentile_cont,
    percentile_disc, product, single, stddev, stddev_population, sum, top_k, variance, variance_population,
};
use arrow::datatypes::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::raised;
use crate::expressions::{columns_of, expressions};
use crate::functions::{Function, Inverse};
use crate::pattern::{Described, detect};
use crate::rows::Rows;

/// A query over events. Immutable.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Frame {
    pub frame: EngineFrame,
}

/// Functions that expressions call, by name.
type Functions<'py> = Vec<(String, PyRef<'py, Function>)>;

/// An aggregate call: output column, function, argument and further ones, filter, whether equal
/// arguments count once, the number that it takes, the function of a user's.
type Call<'py> = (String, String, Vec<String>, Option<String>, bool, Option<f64>, Option<PyRef<'py, Function>>);

#[pymethods]
impl Frame {
    /// The events of an input with the columns of `like`.
    #[staticmethod]
    fn input(py: Python<'_>, name: &str, like: &Rows, options: &Bound<'_, PyDict>) -> PyResult<Frame> {
        Frame::checked(py, described(Events::input(name, like.schema().clone()), options)?.frame())
    }

    /// Names of the columns and their types as SQL names them.
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let schema = self.frame.schema().map_err(|error| raised(py, &error, None))?;
        let told = |field: &arrow::datatypes::FieldRef| (field.name().clone(), anabranch_sql::column_type_name(field));
        Ok(schema.fields().iter().map(told).collect())
    }

    /// An answer without rows that has the columns.
    fn like(&self, py: Python<'_>) -> PyResult<Rows> {
        let schema = self.frame.schema().map_err(|error| raised(py, &error, None))?;
        Ok(Rows::new(schema, vec![], vec![]))
    }

    /// The plan with what is known of its streams.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        self.frame.explain().map_err(|error| raised(py, &error, None))
    }

    /// The type of an expression, which may read the columns of `more`, too.
    #[pyo3(signature = (text, functions, more=None))]
    fn type_of(&self, py: Python<'_>, text: String, functions: Functions<'_>, more: Option<&Rows>) -> PyResult<String> {
        let more = more.map(columns_of).unwrap_or_default();
        let frame = match more.is_empty() {
            true => self.frame.clone(),
            false => self.with_nulls(py, &more)?,
        };
        let exprs = expressions(py, &frame, &[text], &[], &functions)?;
        let made = Frame::checked(py, frame.select([exprs[0].clone().alias("x")]))?;
        let found = made.columns(py)?;
        Ok(found.into_iter().next_back().map(|(_, of)| of).unwrap_or_default())
    }

    /// A verb on lifetimes that takes numbers of ticks.
    fn lifetimes(&self, py: Python<'_>, verb: &str, ticks: Vec<Option<i64>>) -> PyResult<Frame> {
        let frame = &self.frame;
        let made = match (verb, ticks.as_slice()) {
            ("shift", [Some(ticks)]) => frame.shift(*ticks),
            ("alter_duration", [ticks]) => frame.alter_duration(ticks.unwrap_or(FOREVER)),
            ("extend", [Some(ticks)]) => frame.extend(*ticks),
            ("clip_duration", [Some(ticks)]) => frame.clip_duration(*ticks),
            ("point_at_end", []) => frame.point_at_end(),
            ("hopping", [Some(size), Some(period), Some(offset)]) => frame.hopping(*size, *period, *offset),
            ("repetitive_hopping", [Some(size), Some(period), Some(offset)]) => {
                frame.repetitive_hopping(*size, *period, *offset)
            }
            ("quantize", [Some(size), Some(period), Some(offset)]) => frame.quantize(*size, *period, *offset),
            ("quantize_progressive", [Some(size), Some(period), Some(progress), Some(offset)]) => {
                frame.quantize_progressive(*size, *period, *progress, *offset)
            }
            ("session", [Some(timeout), maximum]) => frame.session(*timeout, *maximum),
            ("chop", [Some(period), Some(offset)]) => frame.chop(*period, *offset),
            ("stitch", []) => frame.stitch(),
            ("distinct", []) => frame.distinct(),
            ("consecutive_pairs", []) => frame.consecutive_pairs(),
            ("emit_on_close", []) => frame.emit(EmitWhen::OnClose),
            ("emit_early", []) => frame.emit(EmitWhen::Early),
            ("emit_progressive", [Some(ticks)]) => frame.emit(EmitWhen::Progressive(*ticks)),
            _ => return Err(PyValueError::new_err(format!("there is no verb {verb} of {} numbers", ticks.len()))),
        };
        Frame::checked(py, made)
    }

    /// The rows for which an expression is true.
    fn filter(&self, py: Python<'_>, text: String, functions: Functions<'_>) -> PyResult<Frame> {
        let exprs = expressions(py, &self.frame, &[text], &[], &functions)?;
        Frame::checked(py, self.frame.filter(exprs[0].clone()))
    }

    /// These columns and no others.
    fn select(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        texts: Vec<String>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        Frame::checked(py, self.frame.select(named(py, &self.frame, &names, &texts, &functions)?))
    }

    /// All columns, and these.
    fn with_columns(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        texts: Vec<String>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        Frame::checked(py, self.frame.with_columns(named(py, &self.frame, &names, &texts, &functions)?))
    }

    /// A row for each element of a list.
    fn explode(&self, py: Python<'_>, column: &str) -> PyResult<Frame> {
        Frame::checked(py, self.frame.explode(column))
    }

    /// The events of both.
    fn union(&self, py: Python<'_>, other: &Frame) -> PyResult<Frame> {
        Frame::checked(py, self.frame.union(&other.frame))
    }

    /// Lifetimes of new starts and durations.
    #[pyo3(signature = (start, duration, functions))]
    fn alter_lifetime(
        &self,
        py: Python<'_>,
        start: Option<String>,
        duration: Option<String>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let texts: Vec<String> = start.iter().chain(&duration).cloned().collect();
        let mut exprs = expressions(py, &self.frame, &texts, &[], &functions)?.into_iter();
        let start = start.and_then(|_| exprs.next());
        let duration = duration.and_then(|_| exprs.next());
        Frame::checked(
            py,
            match (start, duration) {
                (Some(start), duration) => self.frame.alter_lifetime(start, duration),
                (None, Some(duration)) => self.frame.alter_duration_by(duration),
                (None, None) => self.frame.clone(),
            },
        )
    }

    /// Snapshot aggregates by keys.
    fn aggregate(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        texts: Vec<String>,
        calls: Vec<Call<'_>>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let keys = named(py, &self.frame, &names, &texts, &functions)?;
        let calls =
            calls.iter().map(|call| self.call(py, call, &functions)).collect::<PyResult<Vec<FrameAggregate>>>()?;
        Frame::checked(py, self.frame.group_by(keys).agg(calls))
    }

    /// A query applied to each group: `body(frame)` gives a frame.
    fn group_apply(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        texts: Vec<String>,
        body: &Bound<'_, PyAny>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let keys = named(py, &self.frame, &names, &texts, &functions)?;
        let failure = RefCell::new(None);
        let made = self.frame.group_apply(keys, |group| {
            let asked = |group: EngineFrame| -> PyResult<EngineFrame> {
                let answer = body.call1((Frame::checked(py, group)?,))?;
                Ok(answer.cast::<Frame>()?.get().frame.clone())
            };
            asked(group.clone()).unwrap_or_else(|error| {
                failure.replace(Some(error));
                group
            })
        });
        match failure.into_inner() {
            Some(error) => Err(error),
            None => Frame::checked(py, made),
        }
    }

    /// A query applied to each pair of groups with equal keys: `body(left, right)` gives a frame.
    fn group_apply_with(
        &self,
        py: Python<'_>,
        other: &Frame,
        names: Vec<String>,
        texts: Vec<String>,
        body: &Bound<'_, PyAny>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let keys = named(py, &self.frame, &names, &texts, &functions)?;
        let failure = RefCell::new(None);
        let made = self.frame.group_apply_with(&other.frame, keys, |left, right| {
            let asked = |left: EngineFrame, right| -> PyResult<EngineFrame> {
                let answer = body.call1((Frame::checked(py, left)?, Frame::checked(py, right)?))?;
                Ok(answer.cast::<Frame>()?.get().frame.clone())
            };
            asked(left.clone(), right).unwrap_or_else(|error| {
                failure.replace(Some(error));
                left
            })
        });
        match failure.into_inner() {
            Some(error) => Err(error),
            None => Frame::checked(py, made),
        }
    }

    /// Pairs with equal keys while both are in force; `predicate` is over the columns of the pairs.
    #[pyo3(signature = (other, left, right, how, predicate, functions))]
    #[expect(clippy::too_many_arguments, reason = "they are those of a join")]
    fn join(
        &self,
        py: Python<'_>,
        other: &Frame,
        left: Vec<String>,
        right: Vec<String>,
        how: &str,
        predicate: Option<String>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let left = expressions(py, &self.frame, &left, &[], &functions)?;
        let right = expressions(py, &other.frame, &right, &[], &functions)?;
        let how = match how {
            "left" => How::Left,
            "full" => How::Full,
            _ => How::Inner,
        };
        let Some(predicate) = predicate else {
            return Frame::checked(py, self.frame.join(&other.frame, left, right, how));
        };
        let pairs = self.frame.join(&other.frame, left.clone(), right.clone(), How::Inner);
        let predicate = expressions(py, &pairs, &[predicate], &[], &functions)?.remove(0);
        Frame::checked(py, self.frame.join_where(&other.frame, left, right, how, predicate))
    }

    /// Rows while the other frame has none with their key, and for which `predicate` is true.
    #[pyo3(signature = (other, left, right, predicate, functions))]
    fn where_not_exists(
        &self,
        py: Python<'_>,
        other: &Frame,
        left: Vec<String>,
        right: Vec<String>,
        predicate: Option<String>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let left = expressions(py, &self.frame, &left, &[], &functions)?;
        let right = expressions(py, &other.frame, &right, &[], &functions)?;
        let Some(predicate) = predicate else {
            return Frame::checked(py, self.frame.where_not_exists(&other.frame, left, right));
        };
        let pairs = self.frame.join(&other.frame, left.clone(), right.clone(), How::Inner);
        let predicate = expressions(py, &pairs, &[predicate], &[], &functions)?.remove(0);
        Frame::checked(py, self.frame.where_not_exists_where(&other.frame, left, right, predicate))
    }

    /// Events that end when one of the other frame begins after them.
    fn clip_by(
        &self,
        py: Python<'_>,
        other: &Frame,
        left: Vec<String>,
        right: Vec<String>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let left = expressions(py, &self.frame, &left, &[], &functions)?;
        let right = expressions(py, &other.frame, &right, &[], &functions)?;
        Frame::checked(py, self.frame.clip_by(&other.frame, left, right))
    }

    /// Each row with the events of the other frame that begin nearest to it.
    #[pyo3(signature = (other, left, right, strategy, tolerance, exact, outer, functions))]
    #[expect(clippy::too_many_arguments, reason = "they are those of Polars' join_asof")]
    fn join_asof(
        &self,
        py: Python<'_>,
        other: &Frame,
        left: Vec<String>,
        right: Vec<String>,
        strategy: &str,
        tolerance: Option<i64>,
        exact: bool,
        outer: bool,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let left = expressions(py, &self.frame, &left, &[], &functions)?;
        let right = expressions(py, &other.frame, &right, &[], &functions)?;
        let mut asof = AsofOptions::strategy(match strategy {
            "forward" => Strategy::Forward,
            "nearest" => Strategy::Nearest,
            _ => Strategy::Backward,
        });
        if let Some(ticks) = tolerance {
            asof = asof.tolerance(ticks);
        }
        if !exact {
            asof = asof.strictly();
        }
        if outer {
            asof = asof.left();
        }
        Frame::checked(py, self.frame.join_asof(&other.frame, left, right, asof))
    }

    /// Pairs of an event with the next one, if both meet conditions.
    fn followed_by_immediate(
        &self,
        py: Python<'_>,
        first: String,
        second: String,
        within: Option<i64>,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let mut exprs = expressions(py, &self.frame, &[first, second], &[], &functions)?;
        let (second, first) = (exprs.remove(1), exprs.remove(0));
        Frame::checked(py, self.frame.followed_by_immediate(first, second, within.unwrap_or(FOREVER)))
    }

    /// Where a pattern is met. `registers` has a column for each register; `initial` are their
    /// values at the start, as SQL.
    #[pyo3(signature = (pattern, registers, initial, within, flags, functions))]
    #[expect(clippy::too_many_arguments, reason = "they are the parts of a pattern")]
    fn detect<'py>(
        &self,
        py: Python<'py>,
        pattern: &Bound<'py, PyTuple>,
        registers: &Rows,
        initial: Vec<String>,
        within: Option<i64>,
        flags: Vec<String>,
        functions: Functions<'py>,
    ) -> PyResult<Frame> {
        let described = Described { pattern, registers, initial, within, flags, functions: &functions };
        Frame::checked(py, detect(py, &self.frame, &described)?)
    }

    /// Pairs of events that open a session of their key with those that close it.
    fn sessionize(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        texts: Vec<String>,
        opens: String,
        closes: String,
        functions: Functions<'_>,
    ) -> PyResult<Frame> {
        let keys = named(py, &self.frame, &names, &texts, &functions)?;
        let mut exprs = expressions(py, &self.frame, &[opens, closes], &[], &functions)?;
        let (closes, opens) = (exprs.remove(1), exprs.remove(0));
        Frame::checked(py, self.frame.sessionize(keys, opens, closes))
    }
}

impl Frame {
    /// The frame, or the error of its last verb.
    pub fn checked(py: Python<'_>, frame: EngineFrame) -> PyResult<Frame> {
        match frame.schema() {
            Ok(_) => Ok(Frame { frame }),
            Err(error) => Err(raised(py, &error, None)),
        }
    }

    /// The frame with further columns, NULL in every row: for the types of expressions.
    fn with_nulls(&self, py: Python<'_>, more: &[(String, DataType)]) -> PyResult<EngineFrame> {
        let names = more.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let nulls: Vec<String> = more.iter().map(|_| "NULL".to_owned()).collect();
        let exprs = expressions(py, &self.frame, &nulls, &[], &[])?;
        let typed = exprs.into_iter().zip(more).zip(&names);
        let exprs: Vec<Expr> = typed
            .map(|((expr, (_, data_type)), name)| anabranch_engine::frame::cast(expr, data_type.clone()).alias(name))
            .collect();
        Ok(self.frame.with_columns(exprs))
    }

    fn call(&self, py: Python<'_>, call: &Call<'_>, functions: &Functions<'_>) -> PyResult<FrameAggregate> {
        let (name, function, arguments, filter, distinct, number, user) = call;
        let texts: Vec<String> = arguments.iter().chain(filter).cloned().collect();
        let mut exprs = expressions(py, &self.frame, &texts, &[], functions)?;
        let filter = filter.as_ref().and_then(|_| exprs.pop());
        let aggregate = match user.as_ref().and_then(|function| function.as_aggregate()) {
            Some((aggregate, Inverse::None)) => custom(aggregate, exprs),
            Some((aggregate, _)) => custom_invertible(aggregate, exprs),
            None => built_in(function, exprs.into_iter().next(), *number)
                .ok_or_else(|| PyValueError::new_err(format!("there is no aggregate {function} of events")))?,
        };
        let aggregate = if *distinct { aggregate.distinct() } else { aggregate };
        let aggregate = match filter {
            Some(filter) => aggregate.filter(filter),
            None => aggregate,
        };
        Ok(aggregate.alias(name))
    }
}

/// An aggregate by its name.
fn built_in(function: &str, argument: Option<Expr>, number: Option<f64>) -> Option<FrameAggregate> {
    let Some(argument) = argument else { return (function == "count").then(count_rows) };
    Some(match (function, number) {
        ("count", _) => count(argument),
        ("sum", _) => sum(argument),
        ("avg", _) => avg(argument),
        ("min", _) => min(argument),
        ("max", _) => max(argument),
        ("bool_and", _) => bool_and(argument),
        ("bool_or", _) => bool_or(argument),
        ("first_value", _) => first(argument),
        ("last_value", _) => last(argument),
        ("array_agg", _) => collect(argument),
        ("median", _) => median(argument),
        ("percentile_cont", Some(part)) => percentile_cont(argument, part),
        ("percentile_disc", Some(part)) => percentile_disc(argument, part),
        ("top_k", Some(k)) => top_k(argument, k as usize),
        ("var_samp", _) => variance(argument),
        ("var_pop", _) => variance_population(argument),
        ("stddev_samp", _) => stddev(argument),
        ("stddev_pop", _) => stddev_population(argument),
        ("product", _) => product(argument),
        ("single", _) => single(argument),
        _ => return None,
    })
}

/// An input with what was said of it.
pub fn described(mut events: Events, options: &Bound<'_, PyDict>) -> PyResult<Events> {
    for (key, value) in options.iter() {
        let (key, value) = (key.extract::<String>()?, &value);
        events = match key.as_str() {
            "time" => events.time_column(&value.extract::<String>()?),
            "end" => events.end_column(&value.extract::<String>()?),
            "constant_duration" => events.constant_duration(value.extract()?),
            "append_only" => events.append_only(),
            "constant_hop" => events.constant_hop(value.extract()?),
            "interval_free" => events.interval_free(),
            "sorted" => events.sorted(),
            "sorted_by" => {
                let columns: Vec<String> = value.extract()?;
                events.sorted_by(columns.iter().map(String::as_str))
            }
            "bounded" => events.bounded(),
            "unique_key" => {
                let columns: Vec<String> = value.extract()?;
                events.unique_key(columns.iter().map(String::as_str))
            }
            "on_disorder" => events.on_disorder(match value.extract::<String>()?.as_str() {
                "drop" => Disorder::Drop,
                "adjust" => Disorder::Adjust,
                _ => Disorder::Error,
            }),
            "begins_at" => events.begins_at(value.extract()?),
            "reorder_latency" => events.reorder_latency(value.extract()?),
            "punctuation_period" => events.punctuation_period(value.extract()?),
            "partition_by" => {
                let columns: Vec<String> = value.extract()?;
                events.partition_by(columns.iter().map(String::as_str))
            }
            "low_watermark" => {
                let (period, lag) = value.extract()?;
                events.low_watermark(period, lag)
            }
            "on_completed" => events.on_completed(match value.extract::<String>()?.as_str() {
                "flush" => Completed::Flush,
                "nothing" => Completed::Nothing,
                _ => Completed::Close,
            }),
            "without_end_edges" => events.without_end_edges(),
            "report_late" => events.report_late(),
            "latency" => events.latency(Duration::from_secs_f64(value.extract::<f64>()?.clamp(0.0, 1e9))),
            _ => return Err(PyValueError::new_err(format!("an input has no property {key}"))),
        };
    }
    Ok(events)
}

/// Texts as named columns over the frame.
fn named(
    py: Python<'_>,
    frame: &EngineFrame,
    names: &[String],
    texts: &[String],
    functions: &Functions<'_>,
) -> PyResult<Vec<Expr>> {
    let exprs = expressions(py, frame, texts, &[], functions)?;
    Ok(exprs.into_iter().zip(names).map(|(expr, name)| expr.alias(name)).collect())
}
