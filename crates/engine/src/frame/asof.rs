//! As-of joins of frames: each event with those of the other frame whose start is nearest.
//!
//! ```text
//!     left       a [5, 9)              right   x [3, 4)   y [8, 9)
//!     backward   a, x [5, 6)           forward   a, y [8, 9)           nearest   a, x [7, 8)
//! ```

use anabranch_plan::asof::Strategy;
use anabranch_plan::temporal::Verb;
use datafusion_expr::Expr;

use super::join::{How, paired};
use super::query::Frame;
use crate::error::Error;

/// Which events an as-of join takes, and which rows come out. Names as in Polars' `join_asof`,
/// whose `allow_exact_matches = False` is [`strictly`](AsofOptions::strictly); its `on` is the
/// start of events here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsofOptions {
    strategy: Strategy,
    is_strict: bool,
    tolerance: Option<i64>,
    how: How,
}

impl AsofOptions {
    /// Those that begin on a side of the row's start, nearest to it; pairs only.
    pub fn strategy(strategy: Strategy) -> AsofOptions {
        AsofOptions { strategy, is_strict: false, tolerance: None, how: How::Inner }
    }

    /// The latest that begin no later than the row. Pairs are points at the row's start.
    pub fn backward() -> AsofOptions {
        AsofOptions::strategy(Strategy::Backward)
    }

    /// The earliest that begin no earlier than the row. Pairs are points at the start of the other
    /// event, when they are known.
    pub fn forward() -> AsofOptions {
        AsofOptions::strategy(Strategy::Forward)
    }

    /// Those that begin nearest on either side; of two times as far away the later one. Pairs are
    /// points when they are known: with an event ahead at its start, with one `d` ticks behind `d`
    /// ticks after the row's start.
    pub fn nearest() -> AsofOptions {
        AsofOptions::strategy(Strategy::Nearest)
    }

    /// None that begins with the row.
    #[must_use]
    pub fn strictly(self) -> AsofOptions {
        AsofOptions { is_strict: true, ..self }
    }

    /// None whose start is more than so many ticks away.
    #[must_use]
    pub fn tolerance(self, ticks: i64) -> AsofOptions {
        AsofOptions { tolerance: Some(ticks), ..self }
    }

    /// Rows without a pair too, with NULLs on the right: points when it is known that none comes.
    /// *Backward* that is at the row's start; else as long after it as the tolerance, and without
    /// one at the end of the input: until then the row waits.
    #[must_use]
    pub fn left(self) -> AsofOptions {
        AsofOptions { how: How::Left, ..self }
    }
}

impl Frame {
    /// Each row with the events of `other` that begin nearest to its start, among those with equal
    /// keys: columns of this frame, then of the other, as in [`join`](Frame::join). Of several
    /// events of the other frame that begin at that time, each. NULL keys match nothing.
    ///
    /// ```
    /// # use anabranch_engine::frame::{AsofOptions, Event, Events, col};
    /// # use anabranch_engine::{Options, Session};
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// # let schema = |x: &str| Schema::new(vec![Field::new("sym", DataType::Utf8View, true), Field::new(x, DataType::Int64, true)]);
    /// let trades = Events::input("trades", schema("amount")).frame();
    /// let quotes = Events::input("quotes", schema("price")).frame();
    /// let priced = trades.join_asof(&quotes, [col("sym")], [col("sym")], AsofOptions::nearest().tolerance(60));
    ///
    /// let mut session = Session::new(Options::default())?;
    /// let mut run = session.start(&priced)?;
    /// run.push("trades", vec![Event::point(100, ["A".into(), 7i64.into()])])?;
    /// run.push("quotes", vec![Event::point(90, ["A".into(), 3i64.into()]), Event::point(105, ["A".into(), 4i64.into()])])?;
    /// run.finish()?;
    /// assert_eq!(run.lifetimes()?[0].to_string(), "[105, 106) A, 7, A, 4");
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    #[must_use]
    pub fn join_asof(
        &self,
        other: &Frame,
        left_by: impl IntoIterator<Item = Expr>,
        right_by: impl IntoIterator<Item = Expr>,
        asof: AsofOptions,
    ) -> Frame {
        let (left_by, right_by): (Vec<Expr>, Vec<Expr>) =
            (left_by.into_iter().collect(), right_by.into_iter().collect());
        if let Some(ticks) = asof.tolerance.filter(|ticks| *ticks < 0) {
            return Frame::failed(Error::invalid(format!(
                "the tolerance of an as-of join is a number of ticks, not less than 0, but it is {ticks}"
            )));
        }
        self.then_with(other, |left, right| {
            paired(left, right, &left_by, &right_by, |left_key, right_key| Verb::Asof {
                left_key,
                right_key,
                strategy: asof.strategy,
                exact: !asof.is_strict,
                tolerance: asof.tolerance,
                outer: asof.how == How::Left,
            })
        })
    }
}
