//! Windows: which rows lie together, when their results come, and the bounds of windows as columns.
//!
//! A window is a stretch of time on a grid: `size` ticks, one every `period`. It is closed on the
//! right, `(b - size, b]`, or on the left, `[b, b + size)`: what a row at the boundary belongs to.
//! Independent of that is when results come ([`Emit`]):
//!
//! ```text
//!     rows                      3    7           14           windows of 10, closed on the left
//!     on close        0         .    .     10 |-- 3, 7 --| 20 |-- 14 --| 30      the final answer of [0, 10) in [10, 20)
//!     early           0         |-3--|-3, 7| 10  |----14-----| 20                every change, while the window fills
//!     progressive 5   0 |--3----|- 3, 7 ---| 10 |---14------| 20                 what each stretch of 5 ticks adds, as of its beginning
//! ```
//!
//! Law: a window's last early result is its final answer. On close, and early, a row counts where
//! it begins, whatever its end; [`quantize`](Frame::quantize) alone keeps rows for as long as they
//! last, rounded to windows.
//!
//! Source: Trill, `HoppingWindowLifetime`, `QuantizeLifetime`, `ProgressiveQuantizeLifetime`;
//! emission as in Flink and RisingWave (`EMIT ON WINDOW CLOSE`).

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::{Verb, Windows};
use arrow::datatypes::DataType;
use datafusion_expr::{Expr, lit};

use super::expression::{self, Resolved, START, WINDOW_END, WINDOW_START, col};
use super::lifetimes::positive;
use super::query::{Frame, FrameState, columns_of, temporal};
use super::rows::{computed, with_bounds};
use super::windowed::{Closed, EmitWhen, Windowed};
use crate::error::Error;

impl Frame {
    /// Windows of `size` ticks, `(b - size, b]`, each reported from its end `b` until the next one:
    /// final answers. The grid goes through 0; for another see [`tumbling_at`](Frame::tumbling_at).
    #[must_use]
    pub fn tumbling(&self, size: i64) -> Frame {
        self.tumbling_at(size, 0)
    }

    /// As [`tumbling`](Frame::tumbling), with boundaries at every `offset + k * size`.
    #[must_use]
    pub fn tumbling_at(&self, size: i64, offset: i64) -> Frame {
        self.hopping(size, size, offset)
    }

    /// Windows of `size` ticks at every `period`, `(b - size, b]`, each reported from its end `b`
    /// on: final answers. Boundaries lie at every `offset + k * period`.
    ///
    /// An event is reported for `size` ticks, while one window after the other holds the event.
    /// Where the period is larger than the size, an event in no window is left out.
    #[must_use]
    pub fn hopping(&self, size: i64, period: i64, offset: i64) -> Frame {
        let verb = Verb::Hopping(Windows { size, period, offset });
        self.windowed(windows(size, period, offset), Closed::Right, EmitWhen::OnClose, verb)
    }

    /// The windows of [`hopping`](Frame::hopping), with an event for every window that an event
    /// lies in: in force from the window's end `b` until the next one.
    #[must_use]
    pub fn repetitive_hopping(&self, size: i64, period: i64, offset: i64) -> Frame {
        self.then_windowed(|state| {
            let windows = windows(size, period, offset)?;
            let hopping = state.verb(Verb::Hopping(windows));
            let plan = match size > period {
                true => temporal(Verb::Chop { period, offset }, vec![hopping], state.plan.schema.clone()),
                // (Windows apart: an event lies in one window at most.)
                false => hopping,
            };
            let (closed, emit) = (Closed::Right, EmitWhen::OnClose);
            Ok((plan, Windowed { windows, closed, emit, is_single: true, before: None }))
        })
    }

    /// Windows of `size` ticks at every `period`, `[b, b + size)`, reported from their start while
    /// they fill. `offset` is some window's start.
    #[must_use]
    pub fn quantize(&self, size: i64, period: i64, offset: i64) -> Frame {
        self.quantize_progressive(size, period, period, offset)
    }

    /// As [`quantize`](Frame::quantize), but a row counts from the last multiple of `progress` on:
    /// results every `progress` ticks inside a window.
    #[must_use]
    pub fn quantize_progressive(&self, size: i64, period: i64, progress: i64, offset: i64) -> Frame {
        let verb = Verb::Quantize { windows: Windows { size, period, offset }, progress };
        let windows = windows(size, period, offset).and_then(|windows| {
            check_progress(period, progress)?;
            Ok(windows)
        });
        self.windowed(windows, Closed::Left, EmitWhen::Progressive(progress), verb)
    }

    /// The same windows, with results at other times; said right after the windows. See the [module
    /// page](super::windows).
    #[must_use]
    pub fn emit(&self, emit: EmitWhen) -> Frame {
        self.then_windowed(|state| {
            let place = || {
                Error::invalid("emit is about no windows")
                    .with_hint("Say it right after the windows: frame.tumbling(10).emit(Emit::Early).")
            };
            let windowed = state.windowed.as_ref().ok_or_else(place)?;
            let before = windowed.before.as_ref().ok_or_else(place)?;
            let Windows { size, period, .. } = windowed.windows;
            // (Early results count rows as points.)
            let is_single = if emit == EmitWhen::OnClose { size <= period } else { size == period };
            let windowed = Windowed { emit, is_single, ..windowed.clone() };
            Ok((windowed.plan(before)?, windowed))
        })
    }

    fn windowed(&self, windows: Result<Windows, Error>, closed: Closed, emit: EmitWhen, verb: Verb) -> Frame {
        self.then_windowed(|state| {
            let (windows, before) = (windows?, Some(state.plan.clone()));
            let plan = state.verb(verb);
            let is_single = match emit {
                EmitWhen::OnClose => windows.size <= windows.period,
                _ => windows.size == windows.period && Properties::of(&plan).duration == Some(windows.size),
            };
            Ok((plan, Windowed { windows, closed, emit, is_single, before }))
        })
    }
}

fn windows(size: i64, period: i64, offset: i64) -> Result<Windows, Error> {
    positive("the size of a window", size)?;
    positive("the period of a window", period)?;
    Ok(Windows { size, period, offset })
}

impl Windowed {
    /// Rows of `before` in these windows, so emitted.
    fn plan(&self, before: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
        let Windowed { windows, closed, .. } = self;
        let verb = |verb: Verb, input: Arc<Plan>| {
            let schema = input.schema.clone();
            temporal(verb, vec![input], schema)
        };
        // Windows closed on the right are those closed on the left a tick later.
        let tick = |offset: i64, ticks: i64| {
            let moved = offset.checked_add(ticks);
            moved.ok_or_else(|| Error::invalid(format!("the offset of a window, {offset}, lies outside of time")))
        };
        let progress = match (self.emit, closed) {
            (EmitWhen::OnClose, Closed::Right) => return Ok(verb(Verb::Hopping(*windows), before.clone())),
            (EmitWhen::OnClose, Closed::Left) => {
                let shifted = verb(Verb::Shift { ticks: 1 }, before.clone());
                return Ok(verb(Verb::Hopping(*windows), shifted));
            }
            (EmitWhen::Early, _) => 1,
            (EmitWhen::Progressive(progress), _) => progress,
        };
        check_progress(windows.period, progress)?;
        let offset = if *closed == Closed::Left { windows.offset } else { tick(windows.offset, 1)? };
        let points = verb(Verb::Duration { ticks: 1 }, before.clone());
        Ok(verb(Verb::Quantize { windows: Windows { offset, ..*windows }, progress }, points))
    }

    /// Starts and ends of windows as columns, of events each of which lies in the results of one
    /// window.
    fn bounds(&self, plan: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
        let Windows { size, period, offset } = self.windows;
        let on_close = self.emit == EmitWhen::OnClose;
        if !on_close && size % period != 0 {
            return Err(Error::invalid(format!(
                "windows of {size} ticks at every {period} have no bounds while they fill: their size is no multiple of their period"
            ))
            .with_hint("Use windows that emit on close."));
        }
        // Results change from one window to the next on this grid: where the windows end, or begin.
        let grid = match (self.closed, on_close) {
            (Closed::Right, false) => offset.saturating_add(1),
            _ => offset,
        };
        let pieces = match self.is_single {
            true => plan.clone(),
            false => temporal(Verb::Chop { period, offset: grid }, vec![plan.clone()], plan.schema.clone()),
        };
        let input = with_bounds(&pieces)?;
        let mut columns = columns_of(&plan.schema)
            .iter()
            .map(|(name, _)| expression::resolve(&col(name), &input.schema))
            .collect::<Result<Vec<Resolved>, _>>()?;
        columns.push(expression::resolve(&col(START), &input.schema)?);
        columns.push(expression::resolve(&col(expression::END), &input.schema)?);
        // The boundary at or before the event's start.
        let boundary = match on_close {
            true => col(START),
            false => {
                let past = (col(START) - lit(grid)) % lit(period);
                col(START) - (past + lit(period)) % lit(period)
            }
        };
        // Closed on the right, (b - size, b]: the first tick inside is b - size + 1.
        let end = match (on_close, self.closed) {
            (true, _) => boundary,
            (false, Closed::Left) => boundary + lit(period),
            (false, Closed::Right) => boundary + lit(period - 1),
        };
        for (name, bound) in [(WINDOW_START, end.clone() - lit(size)), (WINDOW_END, end)] {
            let resolved = expression::resolve(&bound, &input.schema)?;
            columns.push(Resolved { name: name.to_owned(), data_type: DataType::Int64, ..resolved });
        }
        computed(&input, columns)
    }
}

/// The query's plan with the bounds of windows, and of lifetimes, as columns.
pub(super) fn with_window_bounds(state: &FrameState) -> Result<Arc<Plan>, Error> {
    let windowed = state.windowed.as_ref().ok_or_else(|| {
        Error::invalid("window_start and window_end are asked for where there are no windows").with_hint(
            "Put the rows in windows first (tumbling, hopping, quantize); verbs that change lifetimes forget them.",
        )
    })?;
    windowed.bounds(&state.plan)
}

/// Start of the window that an event's results are about, in ticks: exclusive when windows are
/// closed on the right.
pub fn window_start() -> Expr {
    col(WINDOW_START)
}

/// End of the window that an event's results are about, in ticks: exclusive when windows are closed
/// on the left.
pub fn window_end() -> Expr {
    col(WINDOW_END)
}

fn check_progress(period: i64, progress: i64) -> Result<(), Error> {
    positive("the progress of a window", progress)?;
    if period % progress != 0 {
        return Err(Error::invalid(format!(
            "the period of a window, {period}, is no multiple of its progress, {progress}"
        )));
    }
    Ok(())
}
