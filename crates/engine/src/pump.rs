//! The sources of a session: who reads, how fast, how far, and what went wrong.
//!
//! The pump is plain state; a turn of the session (`session/turn.rs`) polls it and commits what
//! came. A source with a rate is let read what has become due since it started; small amounts wait
//! until a fiftieth of a second's worth is due, so that batches stay batches. A source that fails
//! stops; what was read before stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;

use crate::connector::{Connector, Poll, SourceReader, SourceSpec};
use crate::error::Error;
use crate::session::outcome::{SourceState, SourceStatus};

/// Part of a second whose rows are read at once, at least.
const RATE_SLICES: f64 = 50.0;
const MICROS: f64 = 1e6;

/// From the last of a source's first readers to its first row: the statements of a script come more
/// quickly, and a reader that comes behind the first row has the source read again.
const FIRST_READ_AFTER: Duration = Duration::from_millis(250);

/// All sources of a session, by name.
#[derive(Default)]
pub(crate) struct Pump {
    sources: BTreeMap<String, Pumped>,
}

/// One source.
pub(crate) struct Pumped {
    name: String,
    reader: Option<Box<dyn SourceReader>>,
    /// How it is read from its beginning once more, if rows that have passed can be.
    again: Option<Again>,
    /// Columns that are read; `None` is all.
    wanted: Option<BTreeSet<usize>>,
    /// Whether it was polled: a reader of the future alone comes too late.
    has_begun: bool,
    /// What a source without a reader waits for.
    waiting: Option<WaitingRows>,
    state: SourceState,
    /// Rows a second; `None` is as fast as possible.
    rate: Option<f64>,
    /// When it started, micros of the session's clock.
    started: i64,
    /// Rows taken in since it was created.
    rows: u64,
    /// Those of them that were taken in before it started.
    rows_before: u64,
    /// Not to be polled before this time, micros of the session's clock.
    retry_at: i64,
    /// When a source begins whose first reader has come.
    begins_at: Option<i64>,
}

/// How a source is read from its beginning once more.
pub(crate) struct Again {
    pub connector: Arc<dyn Connector>,
    pub spec: SourceSpec,
    /// What the source held when it was created.
    pub edition: String,
}

/// A source whose connector is not known yet.
#[derive(Debug)]
pub(crate) struct WaitingRows {
    pub connector: String,
    pub spec: SourceSpec,
    pub stand: Stand,
}

/// Where a source stands, as it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stand {
    /// Whether it was read to its end.
    pub is_done: bool,
    /// Rows taken in.
    pub rows: u64,
    /// Where its reader goes on, in the connector's words; `None` when it cannot tell.
    pub position: Option<String>,
}

impl Stand {
    /// `running 12`, and the position on the lines behind.
    pub fn to_bytes(&self) -> Vec<u8> {
        let state = if self.is_done { "done" } else { "running" };
        let position = self.position.as_ref().map(|position| format!("\n{position}")).unwrap_or_default();
        format!("{state} {}{position}", self.rows).into_bytes()
    }

    /// What [`to_bytes`](Self::to_bytes) wrote; `None` for other bytes.
    pub fn read(bytes: &[u8]) -> Option<Stand> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (line, position) = match text.split_once('\n') {
            Some((line, position)) => (line, Some(position.to_string())),
            None => (text, None),
        };
        let (state, rows) = line.split_once(' ')?;
        let is_done = match state {
            "done" => true,
            "running" => false,
            _ => return None,
        };
        Some(Stand { is_done, rows: rows.parse().ok()?, position })
    }
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

    /// Lets sources that wait for the connector of that name go on where they were.
    pub fn resume(&mut self, name: &str, connector: &dyn Connector, now: i64) {
        let waits = |source: &&mut Pumped| source.waiting.as_ref().is_some_and(|waiting| waiting.connector == name);
        self.sources.values_mut().filter(waits).for_each(|source| source.resume(connector, now));
    }

    /// Stops every source that still reads.
    pub fn fail_running(&mut self, error: &Error) {
        self.sources.values_mut().filter(|source| source.state == SourceState::Running).for_each(|s| s.fail(error));
    }

    pub fn statuses(&self) -> Vec<SourceStatus> {
        self.sources.values().map(Pumped::status).collect()
    }

    /// Lets sources that satisfy `which` begin at `now`, if they are about to.
    pub fn hurry(&mut self, which: impl Fn(&SourceStatus) -> bool, now: i64) {
        self.sources.values_mut().filter(|source| which(&source.status())).for_each(|source| source.hurry(now));
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
            reader: Some(reader),
            again: None,
            wanted: None,
            has_begun: false,
            waiting: None,
            state: SourceState::Running,
            rate,
            started: now,
            rows: 0,
            rows_before: 0,
            retry_at: i64::MIN,
            begins_at: None,
        }
    }

    /// As it is, but reading begins with the first query that reads the source.
    pub fn unread(mut self) -> Pumped {
        self.state = SourceState::Unread;
        self
    }

    /// As [`unread`](Self::unread), with a way to read rows that have passed again. Columns that no
    /// query reads are not read.
    pub fn on_demand(mut self, again: Again) -> Pumped {
        (self.again, self.wanted) = (Some(again), Some(BTreeSet::new()));
        self.unread()
    }

    /// A query reads these columns of what comes; `None` is all. The first one lets reading begin:
    /// a little later, so that the views of a script that come behind it read the same rows.
    pub fn begin(&mut self, columns: Option<&BTreeSet<usize>>, now: i64) {
        if !self.has_begun {
            match (&mut self.wanted, columns) {
                (Some(wanted), Some(columns)) => wanted.extend(columns),
                (wanted, None) => *wanted = None,
                (None, Some(_)) => {}
            }
        }
        let is_about_to = self.state == SourceState::Running && self.begins_at.is_some();
        if self.state == SourceState::Unread || is_about_to {
            self.state = SourceState::Running;
            self.begin_at(now.saturating_add(micros(FIRST_READ_AFTER)));
        }
    }

    /// Lets a source that is about to begin do so at `now`: its rows are waited for.
    fn hurry(&mut self, now: i64) {
        if self.begins_at.is_some() {
            self.begin_at(now);
        }
    }

    fn begin_at(&mut self, time: i64) {
        (self.begins_at, self.started) = (Some(time), time);
    }

    /// Whether rows may have passed.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Rows taken in so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether rows that have passed can be read again.
    pub fn can_reopen(&self) -> bool {
        self.again.is_some()
    }

    /// The columns that a reader must give who takes the place of the present one, for a query of
    /// these columns; `None` is all.
    pub fn wanted_with(&self, columns: &BTreeSet<usize>) -> Option<BTreeSet<usize>> {
        match (&self.wanted, &self.state) {
            (Some(wanted), SourceState::Running) => Some(wanted | columns),
            (None, SourceState::Running) => None,
            _ => Some(columns.clone()),
        }
    }

    /// A reader of all columns at the source's beginning.
    ///
    /// # Errors
    /// The connector's, and `Unavailable` when the source holds something else than before.
    pub fn reopen(&self) -> Result<Box<dyn SourceReader>, Error> {
        let again = self.again.as_ref();
        let Again { connector, spec, edition } =
            again.ok_or_else(|| Error::internal(format!("source \"{}\" is read only once", self.name)))?;
        if connector.edition(spec)?.as_ref() != Some(edition) {
            return Err(self.changed());
        }
        connector.open(spec)
    }

    /// The error for a source that cannot be read again as it was.
    pub fn changed(&self) -> Error {
        Error::unavailable(format!("source \"{}\" has changed since it was created", self.name))
            .with_detail("The query needs rows that have passed, which are not kept and would be read again.")
            .with_hint("DROP the source and create it again; retain = 'all' keeps every row as it comes.")
    }

    /// Goes on with a reader of these columns (`None` is all) that has given the same rows.
    pub fn replace_reader(&mut self, reader: Box<dyn SourceReader>, wanted: Option<BTreeSet<usize>>) {
        if self.state == SourceState::Running {
            (self.reader, self.wanted) = (Some(reader), wanted);
        }
    }

    /// A source of a database that was opened. One that was read to its end needs no reader.
    pub fn waiting(waiting: WaitingRows, rate: Option<f64>) -> Pumped {
        let WaitingRows { connector, spec, stand } = &waiting;
        let state = match stand.is_done {
            true => SourceState::Done,
            false => SourceState::Failed(format!("connector \"{connector}\" is not registered")),
        };
        let (name, rows) = (spec.name.clone(), stand.rows);
        let waiting = (!stand.is_done).then_some(waiting);
        Pumped {
            name,
            reader: None,
            again: None,
            wanted: None,
            has_begun: rows > 0,
            waiting,
            state,
            rate,
            started: 0,
            rows,
            rows_before: rows,
            retry_at: i64::MIN,
            begins_at: None,
        }
    }

    /// Goes on where it was, or fails with the reason why it cannot.
    fn resume(&mut self, connector: &dyn Connector, now: i64) {
        let Some(WaitingRows { spec, stand, .. }) = self.waiting.take() else { return };
        let reader = match &stand.position {
            Some(position) => connector.resume(&spec, position),
            None if stand.rows == 0 => connector.open(&spec),
            None => Err(Error::invalid("its reader does not tell where it is")),
        };
        self.started = now;
        match reader {
            Ok(reader) => (self.reader, self.state) = (Some(reader), SourceState::Running),
            Err(error) => {
                self.fail(&error);
                if let SourceState::Failed(why) = &mut self.state {
                    *why = format!("it cannot go on where it was: {why}");
                }
            }
        }
    }

    /// Where it stands once it is stopped; `None` when it has come to its end already.
    pub fn stopped_stand(&self) -> Option<Stand> {
        let stand = || self.stand().unwrap_or(Stand { rows: self.rows, ..Stand::default() });
        (self.state != SourceState::Done).then(|| Stand { is_done: true, ..stand() })
    }

    /// Reads no more, as at its end. A source that has failed still tells why.
    pub fn stop(&mut self) {
        let is_waiting = self.waiting.take().is_some();
        if is_waiting || !matches!(self.state, SourceState::Failed(_)) {
            self.state = SourceState::Done;
        }
        self.reader = None;
    }

    /// Where it stands, if its reader is open.
    pub fn stand(&self) -> Option<Stand> {
        let position = self.reader.as_ref()?.position();
        Some(Stand { is_done: self.state == SourceState::Done, rows: self.rows, position })
    }

    /// Polls the source, if it is due, for at most `rows_max` rows.
    ///
    /// # Errors
    /// The reader's; the caller then calls [`fail`](Self::fail).
    pub fn poll(&mut self, rows_max: usize, now: i64) -> Result<Pumping, Error> {
        if self.state != SourceState::Running {
            return Ok(Pumping::Ended);
        }
        if let Some(due_at) = self.begins_at.max(Some(self.retry_at)).filter(|at| now < *at) {
            return Ok(Pumping::Later(due_at));
        }
        self.begins_at = None;
        let allowed = match self.allowed(now) {
            Ok(allowed) => allowed.min(rows_max).max(1),
            Err(due_at) => return Ok(Pumping::Later(due_at)),
        };
        let Some(reader) = &mut self.reader else { return Ok(Pumping::Ended) };
        if !self.has_begun {
            self.has_begun = true;
            self.wanted.as_ref().map_or(Ok(()), |wanted| reader.narrow(wanted))?;
        }
        match reader.poll(allowed)? {
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
        let due = elapsed * rate - (self.rows - self.rows_before) as f64;
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
            progress: self.reader.as_ref().map(|reader| reader.progress()).unwrap_or_default(),
            state: self.state.clone(),
            bounded: self.reader.as_ref().is_none_or(|reader| reader.bounded()),
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
    fn a_source_begins_a_little_behind_its_readers_or_when_it_is_waited_for() {
        let after = micros(FIRST_READ_AFTER);
        let unread = || Pumped::new("s", Box::new(Endless), None, 0).unread();
        let mut source = unread();
        assert!(matches!(source.poll(1, 0), Ok(Pumping::Ended)));
        source.begin(None, 0);
        source.begin(None, 10);
        assert!(matches!(source.poll(1, after), Ok(Pumping::Later(at)) if at == after + 10));
        source.hurry(20);
        assert!(matches!(source.poll(1, 20), Ok(Pumping::Rows(_))));
        // One that was stopped before it began stays so.
        let mut stopped = unread();
        stopped.begin(None, 0);
        stopped.stop();
        stopped.begin(None, 10);
        assert!(matches!(stopped.poll(1, 10 * after), Ok(Pumping::Ended)));
    }

    #[test]
    fn rates_parse() {
        assert_eq!(parse_rate("max").unwrap(), None);
        assert_eq!(parse_rate("20_000").unwrap(), Some(20_000.0));
        assert!(parse_rate("fast").is_err());
        assert!(parse_rate("0").is_err());
    }
}
