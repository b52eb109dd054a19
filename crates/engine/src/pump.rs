//! The sources of a session: who reads, how fast, how far, and what went wrong.
//!
//! The pump is plain state; a turn of the session (`session/turn.rs`) polls it and commits what came. A source with a rate is
//! let read what has become due since it started; small amounts wait until a fiftieth of a second's worth is due, so
//! that batches stay batches. A source that fails stops; what was read before stays.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::array::RecordBatch;

use crate::connector::{Poll, SourceReader};
use crate::error::Error;
use crate::session::{SourceState, SourceStatus};

/// Part of a second whose rows are read at once, at least.
const RATE_SLICES: f64 = 50.0;
const MICROS: f64 = 1e6;

/// All sources of a session, by name.
#[derive(Default)]
pub(crate) struct Pump {
    sources: BTreeMap<String, Pumped>,
}

/// One source.
pub(crate) struct Pumped {
    name: String,
    reader: Box<dyn SourceReader>,
    state: SourceState,
    /// Rows a second; `None` is as fast as possible.
    rate: Option<f64>,
    /// When it started, micros of the session's clock.
    started: i64,
    rows: u64,
    /// Not to be polled before this time, micros of the session's clock.
    retry_at: i64,
}

/// What polling a source gave.
pub(crate) enum Pumping {
    /// Rows to commit.
    Rows(RecordBatch),
    /// Nothing now; again at that time of the session's clock.
    Later(i64),
    /// Nothing any more.
    Ended,
}

impl Pump {
    pub fn add(&mut self, source: Pumped) {
        self.sources.insert(source.name.clone(), source);
    }

    pub fn remove(&mut self, name: &str) {
        self.sources.remove(name);
    }

    /// Names of sources that still read.
    pub fn running(&self) -> Vec<String> {
        self.sources.values().filter(|source| source.state == SourceState::Running).map(|s| s.name.clone()).collect()
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Pumped> {
        self.sources.get_mut(name)
    }

    /// Stops every source that still reads.
    pub fn fail_running(&mut self, error: &Error) {
        self.sources.values_mut().filter(|source| source.state == SourceState::Running).for_each(|s| s.fail(error));
    }

    pub fn statuses(&self) -> Vec<SourceStatus> {
        self.sources.values().map(Pumped::status).collect()
    }

    /// Whether a source that satisfies `which` still reads.
    pub fn any_running(&self, mut which: impl FnMut(&SourceStatus) -> bool) -> bool {
        self.statuses().iter().any(|status| status.state == SourceState::Running && which(status))
    }
}

impl Pumped {
    /// A source that starts at `now`.
    pub fn new(name: &str, reader: Box<dyn SourceReader>, rate: Option<f64>, now: i64) -> Pumped {
        Pumped {
            name: name.to_string(),
            reader,
            state: SourceState::Running,
            rate,
            started: now,
            rows: 0,
            retry_at: i64::MIN,
        }
    }

    /// Polls the source, if it is due, for at most `rows_max` rows.
    ///
    /// # Errors
    /// The reader's; the caller then calls [`fail`](Self::fail).
    pub fn poll(&mut self, rows_max: usize, now: i64) -> Result<Pumping, Error> {
        if self.state != SourceState::Running {
            return Ok(Pumping::Ended);
        }
        if now < self.retry_at {
            return Ok(Pumping::Later(self.retry_at));
        }
        let allowed = match self.allowed(now) {
            Ok(allowed) => allowed.min(rows_max).max(1),
            Err(due_at) => return Ok(Pumping::Later(due_at)),
        };
        match self.reader.poll(allowed)? {
            Poll::Rows(batch) => {
                self.rows += batch.num_rows() as u64;
                Ok(Pumping::Rows(batch))
            }
            Poll::Pending { retry_after } => {
                self.retry_at = now.saturating_add(micros(retry_after));
                Ok(Pumping::Later(self.retry_at))
            }
            Poll::Done => {
                self.state = SourceState::Done;
                Ok(Pumping::Ended)
            }
        }
    }

    /// Rows that the rate allows at `now`, or when it allows some.
    fn allowed(&self, now: i64) -> Result<usize, i64> {
        let Some(rate) = self.rate else { return Ok(usize::MAX) };
        let elapsed = now.saturating_sub(self.started).max(0) as f64 / MICROS;
        let due = elapsed * rate - self.rows as f64;
        let slice = (rate / RATE_SLICES).max(1.0);
        if due >= slice {
            return Ok(due as usize);
        }
        Err(now.saturating_add(((slice - due) / rate * MICROS).ceil() as i64))
    }

    /// Stops the source for good.
    pub fn fail(&mut self, error: &Error) {
        let detail = error.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
        self.state = SourceState::Failed(format!("{}{detail}", error.message));
    }

    pub fn status(&self) -> SourceStatus {
        SourceStatus {
            name: self.name.clone(),
            rows: self.rows,
            progress: self.reader.progress(),
            state: self.state.clone(),
            bounded: self.reader.bounded(),
            rate: self.rate,
        }
    }
}

/// `rate = 'N'`: rows per second; `max` is none.
pub(crate) fn parse_rate(text: &str) -> Result<Option<f64>, Error> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(None);
    }
    match text.replace('_', "").parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(Some(rate)),
        _ => Err(Error::invalid(format!("option \"rate\" has the value '{text}'"))
            .with_hint("It takes rows per second, such as '1000', or 'max'.")),
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::SchemaRef;

    use super::*;
    use crate::connector::ReadProgress;

    struct Endless;

    impl SourceReader for Endless {
        fn schema(&self) -> SchemaRef {
            rows(1).schema()
        }
        fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
            Ok(Poll::Rows(rows(rows_max)))
        }
        fn progress(&self) -> ReadProgress {
            ReadProgress::default()
        }
    }

    fn rows(n: usize) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![0; n]));
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    }

    #[test]
    fn a_rate_lets_as_many_rows_through_as_are_due() {
        let mut source = Pumped::new("s", Box::new(Endless), Some(1000.0), 0);
        let Pumping::Later(at) = source.poll(10_000, 0).unwrap() else { panic!("nothing is due yet") };
        assert_eq!(at, 20_000);
        let Pumping::Rows(batch) = source.poll(10_000, 500_000).unwrap() else { panic!("rows are due") };
        assert_eq!(batch.num_rows(), 500);
        assert!(matches!(source.poll(10_000, 500_000).unwrap(), Pumping::Later(520_000)));
    }

    #[test]
    fn rates_parse() {
        assert_eq!(parse_rate("max").unwrap(), None);
        assert_eq!(parse_rate("20_000").unwrap(), Some(20_000.0));
        assert!(parse_rate("fast").is_err());
        assert!(parse_rate("0").is_err());
    }
}
