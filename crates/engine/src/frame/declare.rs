//! What an input promises of its events, so that queries over them cost less: see [`Properties`].
//!
//! Law: rows that break a promise are refused when they are pushed, with the row's time, all but
//! one: that a key is unique is taken on trust. Cost: a pass over the times of a batch for each
//! promise.

use anabranch_batch::{Batch, END, Time, Until};
use anabranch_operators::temporal::ingress::Disorder;
use anabranch_operators::temporal::ticks::{Event, event};
use anabranch_plan::asof::is_instant;
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::FOREVER;
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::events::{Declared, Events};
use crate::error::Error;

/// How far an input has come, as its promises see it.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The time of the last row.
    last: Time,
    /// Of each column that the input is sorted by.
    columns: Vec<Rising>,
}

/// A column whose values rise with the starts of events.
#[derive(Clone, Copy, Debug)]
struct Rising {
    /// The last start.
    start: Time,
    /// The greatest value of events that began before,
    before: i64,
    /// and of all.
    greatest: i64,
}

impl Default for Reached {
    fn default() -> Self {
        Reached { last: Time::MIN, columns: Vec::new() }
    }
}

impl Events {
    /// Every row lasts so many ticks; positive. Rows of a table without an end column are given
    /// this duration.
    #[must_use]
    pub fn constant_duration(mut self, ticks: i64) -> Events {
        self.declared.duration = Some(ticks);
        self
    }

    /// Rows never end, and none is taken back.
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

    /// Rows are pushed in order of time, and one that begins later has no lesser value in these
    /// columns, and no NULL; whole numbers with a sign, dates or times: sequence numbers, times of
    /// writing. Append-only inputs that are joined on such columns forget what the other side has
    /// passed.
    #[must_use]
    pub fn sorted_by<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Events {
        self.declared.sorted_by = columns.into_iter().map(str::to_owned).collect();
        self.sorted()
    }

    /// The input ends.
    #[must_use]
    pub fn bounded(mut self) -> Events {
        self.declared.bounded = true;
        self
    }

    /// At each time, no two rows in force are equal in these columns. Not checked: a promise that
    /// is broken gives wrong results.
    #[must_use]
    pub fn unique_key<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Events {
        self.declared.unique = Some(columns.into_iter().map(str::to_owned).collect());
        self
    }

    /// The promises, for plans.
    ///
    /// # Errors
    /// `Invalid` when one cannot be kept, or names a column that is not there.
    pub fn properties(&self) -> Result<Properties, Error> {
        let Declared { duration, hop, interval_free, sorted, bounded, unique, sorted_by } = self.declared.clone();
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
        let sorted_by = sorted_by.iter().map(|column| self.ordered_place(column)).collect::<Result<Vec<_>, _>>()?;
        // (An ingress puts rows in order.)
        let sorted = sorted || self.arrival.as_ref().is_some_and(|arrival| !arrival.is_partitioned());
        Ok(Properties { duration, hop, interval_free, sorted, bounded, unique, sorted_by })
    }

    /// The place of a column that rows can be sorted by.
    fn ordered_place(&self, column: &str) -> Result<usize, Error> {
        let place = self.schema().index_of(column).map_err(|_| self.no_column(column))?;
        let data_type = &self.types()[place];
        if is_instant(data_type) {
            return Ok(place);
        }
        Err(Error::invalid(format!(
            "input \"{}\" cannot be sorted by column \"{column}\" of type {data_type}",
            self.name()
        ))
        .with_hint("Whole numbers with a sign, dates and times have an order that is looked at."))
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

    /// Checks rows against the promises; returns how far the input has come with them.
    ///
    /// # Errors
    /// `Data` when a row breaks one, with the row's time.
    pub fn check_promises(&self, batch: &Batch, reached: &Reached) -> Result<Reached, Error> {
        let Declared { duration, hop, interval_free, sorted, .. } = &self.declared;
        let columns = self.check_sorted_by(batch, &reached.columns)?;
        let broken = |time: Time, what: String| Err(self.broken(time, &what));
        let mut last = reached.last;
        if duration.is_none() && hop.is_none() && !interval_free && !sorted {
            return Ok(Reached { last: last.max(batch.times().max()), columns });
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
            if *duration == Some(FOREVER) && batch.diffs().get(row) < 0 {
                return broken(time, "takes one back, though rows never end".to_owned());
            }
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
        Ok(Reached { last, columns })
    }

    /// Checks that values rise with starts, in the columns that say so.
    fn check_sorted_by(&self, batch: &Batch, reached: &[Rising]) -> Result<Vec<Rising>, Error> {
        let nothing = Rising { start: Time::MIN, before: i64::MIN, greatest: i64::MIN };
        let mut columns = Vec::new();
        for (at, name) in self.declared.sorted_by.iter().enumerate() {
            let values = cast(batch.column(self.ordered_place(name)?), &DataType::Int64)
                .map_err(|error| Error::internal(format!("column \"{name}\" is no number: {error}")))?;
            let values = values.as_primitive::<Int64Type>();
            let mut rising = reached.get(at).copied().unwrap_or(nothing);
            for row in 0..batch.len() {
                let Event::Start { start, .. } = event(batch, row) else { continue };
                if values.is_null(row) {
                    return Err(self.broken(start, &format!("is NULL in column \"{name}\"")));
                }
                if start > rising.start {
                    rising = Rising { start, before: rising.greatest, ..rising };
                }
                if values.value(row) < rising.before {
                    return Err(self.broken(start, &format!("has a lesser \"{name}\" than one that begins before")));
                }
                rising.greatest = rising.greatest.max(values.value(row));
            }
            columns.push(rising);
        }
        Ok(columns)
    }

    fn broken(&self, time: Time, what: &str) -> Error {
        Error::data(format!("a row of input \"{}\" at {time} {what}", self.name()))
            .with_hint("The input declares otherwise.")
    }
}
