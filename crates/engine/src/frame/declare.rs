//! What an input promises of its events, so that queries over them cost less: see [`Properties`].
//!
//! Law: rows that break a promise are refused when they are pushed, with the row's time, all but one: that a key is unique is taken on trust.
//! Cost: a pass over the times of a batch for each promise.

use anabranch_batch::{Batch, END, Time, Until};
use anabranch_operators::temporal::ingress::Disorder;
use anabranch_operators::temporal::ticks::{Event, event};
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::FOREVER;

use super::input::Events;
use crate::error::Error;

/// Promises, by the names of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    duration: Option<i64>,
    hop: Option<i64>,
    interval_free: bool,
    sorted: bool,
    bounded: bool,
    unique: Option<Vec<String>>,
}

impl Events {
    /// Every row lasts so many ticks; positive. Rows of a table without an end column are given this duration.
    #[must_use]
    pub fn constant_duration(mut self, ticks: i64) -> Events {
        self.declared.duration = Some(ticks);
        self
    }

    /// Rows never end.
    #[must_use]
    pub fn append_only(self) -> Events {
        self.constant_duration(FOREVER)
    }

    /// All rows begin at multiples of so many ticks; positive.
    #[must_use]
    pub fn constant_hop(mut self, ticks: i64) -> Events {
        self.declared.hop = Some(ticks);
        self
    }

    /// No row's end is known as it begins: rows are start edges and end edges.
    #[must_use]
    pub fn interval_free(mut self) -> Events {
        self.declared.interval_free = true;
        self
    }

    /// Rows are pushed in order of time, so reading history moves time along.
    #[must_use]
    pub fn sorted(mut self) -> Events {
        self.declared.sorted = true;
        self
    }

    /// The input ends.
    #[must_use]
    pub fn bounded(mut self) -> Events {
        self.declared.bounded = true;
        self
    }

    /// At each time, no two rows in force are equal in these columns. Not checked: a promise that is broken gives wrong results.
    #[must_use]
    pub fn unique_key<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Events {
        self.declared.unique = Some(columns.into_iter().map(str::to_owned).collect());
        self
    }

    /// The promises, for plans.
    pub(super) fn properties(&self) -> Result<Properties, Error> {
        let Declared { duration, hop, interval_free, sorted, bounded, unique } = self.declared.clone();
        let wrong = |what: &str, ticks: i64| {
            Error::invalid(format!("{what} of input \"{}\" cannot be {ticks} ticks", self.name()))
        };
        match (duration, hop) {
            (Some(ticks), _) if ticks <= 0 => return Err(wrong("the duration", ticks)),
            (_, Some(ticks)) if ticks <= 0 => return Err(wrong("the hop", ticks)),
            _ => {}
        }
        let moves = self.arrival.as_ref().is_some_and(|arrival| arrival.disorder() == Disorder::Adjust);
        if moves && (duration.is_some() || hop.is_some()) {
            return Err(Error::invalid(format!(
                "input \"{}\" adjusts late rows, which changes their lifetimes",
                self.name()
            ))
            .with_hint("Declare no duration and no hop, or drop late rows."));
        }
        let place = |column: &String| self.schema().index_of(column).map_err(|_| self.no_column(column));
        let unique = unique.map(|columns| columns.iter().map(place).collect::<Result<Vec<_>, _>>()).transpose()?;
        // (An ingress puts rows in order.)
        let sorted = sorted || self.arrival.as_ref().is_some_and(|arrival| !arrival.is_partitioned());
        Ok(Properties { duration, hop, interval_free, sorted, bounded, unique })
    }

    /// What rows of a table without an end column last.
    pub(super) fn default_until(&self) -> Until {
        match self.declared.duration {
            Some(FOREVER) | None => Until::Forever,
            Some(ticks) => Until::Duration(ticks),
        }
    }

    /// Whether rows come in order of time.
    pub(super) fn is_sorted(&self) -> bool {
        self.declared.sorted
    }

    /// Checks rows against the promises; `last` is the time of the last row so far.
    pub(super) fn check_promises(&self, batch: &Batch, last: Time) -> Result<(), Error> {
        let Declared { duration, hop, interval_free, sorted, .. } = &self.declared;
        let broken = |time: Time, what: String| {
            Err(Error::data(format!("a row of input \"{}\" at {time} {what}", self.name()))
                .with_hint("The input declares otherwise."))
        };
        let mut last = last;
        if duration.is_none() && hop.is_none() && !interval_free && !sorted {
            return Ok(());
        }
        for row in 0..batch.len() {
            let (time, event) = (batch.times().get(row), event(batch, row));
            let lasts = |ticks: i64| match event {
                Event::Start { end: END, start } => {
                    ticks == FOREVER || start.checked_add(ticks).is_none_or(|end| end == END)
                }
                Event::Start { start, end } => start.checked_add(ticks) == Some(end),
                Event::End { .. } | Event::Nothing => false,
            };
            if let Some(ticks) = duration.filter(|ticks| !lasts(*ticks)) {
                let ticks = if ticks == FOREVER { "for ever".to_owned() } else { format!("{ticks} ticks") };
                return broken(time, format!("does not last {ticks}"));
            }
            if let (Some(hop), Event::Start { start, .. }) = (hop, event)
                && start % hop != 0
            {
                return broken(time, format!("does not begin at a multiple of {hop}"));
            }
            if *interval_free && matches!(event, Event::Start { end, .. } if end != END) {
                return broken(time, "has an end that is known as it begins".to_owned());
            }
            if *sorted && time < last {
                return broken(time, format!("comes after one at {last}"));
            }
            last = time;
        }
        Ok(())
    }
}
