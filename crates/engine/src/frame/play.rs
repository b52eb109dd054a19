//! History as input: a frame runs over files as it runs over what happens now.
//!
//! A [`Play`] reads sources (of any connector) into the inputs of a run, as fast as it goes or at
//! the pace at which it happened. The frame knows nothing of it: the same query, over a bounded
//! file, a replay and a live input, has the same results.
//!
//! ```text
//!     file ───── source ─┐
//!     file ───── source ─┤ Play ── run.push, run.advance ── the frame ── results
//!     live ──────────────────────  run.push, run.advance ── the frame ── the same results
//! ```
//!
//! Law: what comes out in the end is what comes out when all rows are pushed by hand and the inputs
//! end. Sources are read in the order of their time as far as it is known, the one that is furthest
//! behind first, so what waits for another source is what lies between two of their batches. Time
//! moves with the rows of an input that is [`sorted`](Events::sorted) or has a disorder policy; of
//! others only when their source ends.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_batch::{Batch, END, Time};

use super::input::IntoEvents;
use super::run::FrameRun;
use crate::connector::{Poll, ReadProgress, SourceReader};
use crate::error::Error;
use crate::session::state::Session;

/// Rows asked of a source at once.
const ROWS_MAX: usize = 8192;

/// How fast history is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as it goes.
    Fast,
    /// So many ticks of the rows' time in a second of the session's clock.
    TicksPerSecond(f64),
}

/// Sources on their way into a run.
pub struct Play {
    sources: BTreeMap<String, Playing>,
    pace: Pace,
    /// When it began, micros of the session's clock, and at which time of the rows.
    origin: Option<(i64, Time)>,
}

/// A source.
struct Playing {
    reader: Box<dyn SourceReader>,
    /// Rows that are not due yet.
    waiting: Option<Batch>,
    /// The greatest time pushed.
    reached: Time,
    is_over: bool,
}

/// What a turn of a play did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayTurn {
    /// Rows were pushed, or an input ended.
    Worked,
    /// Nothing is due for so long.
    Later(Duration),
    /// All sources have ended.
    Over,
}

impl Session {
    /// Opens a source with a registered connector, to be [played](FrameRun::play): for example
    /// `"file"`, with its `path`.
    ///
    /// # Errors
    /// `Invalid` when there is no such connector or it knows no such option; the connector's, when
    /// it cannot be opened.
    pub fn open<'a>(
        &self,
        connector: &str,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Box<dyn SourceReader>, Error> {
        let options = options.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let spec =
            crate::connector::SourceSpec { name: connector.to_owned(), columns: vec![], options: options.collect() };
        self.connector(connector)?.open(&spec)
    }
}

impl Play {
    /// Sources for inputs, by their names.
    pub fn new<'a>(sources: impl IntoIterator<Item = (&'a str, Box<dyn SourceReader>)>, pace: Pace) -> Play {
        let playing = |reader| Playing { reader, waiting: None, reached: Time::MIN, is_over: false };
        let sources = sources.into_iter().map(|(name, reader)| (name.to_owned(), playing(reader))).collect();
        Play { sources, pace, origin: None }
    }

    /// The part of the input that has been read, by its bytes, from 0 to 1; `None` when a source
    /// does not say how large it is.
    pub fn share(&self) -> Option<f64> {
        share(self.sources.values().map(|source| (source.reader.progress(), source.is_over)))
    }
}

/// The part that has been read of sources, each with whether it is over.
pub(super) fn share(sources: impl Iterator<Item = (ReadProgress, bool)>) -> Option<f64> {
    let (mut read, mut total, mut are_over) = (0, 0, true);
    for (progress, is_over) in sources {
        read += progress.bytes_read;
        total += if is_over { progress.bytes_read } else { progress.bytes_total? };
        are_over &= is_over;
    }
    Some(if are_over || total == 0 { 1.0 } else { (read as f64 / total as f64).min(1.0) })
}

impl FrameRun<'_> {
    /// Reads a little of what is due.
    ///
    /// # Errors
    /// `Invalid` when there is no input for a source, or a pace is not positive; those of sources
    /// and of [`push`](FrameRun::push).
    pub fn play(&mut self, play: &mut Play) -> Result<PlayTurn, Error> {
        for name in play.sources.keys() {
            self.input(name)?;
        }
        match play.pace {
            Pace::Fast => self.play_fast(play),
            Pace::TicksPerSecond(rate) if rate > 0.0 && rate.is_finite() => self.play_at(play, rate),
            Pace::TicksPerSecond(rate) => {
                Err(Error::invalid(format!("history cannot be replayed at {rate} ticks a second")))
            }
        }
    }

    /// Reads all of it, sleeping when nothing is due.
    ///
    /// # Errors
    /// As for [`play`](FrameRun::play).
    pub fn play_to_end(&mut self, play: &mut Play) -> Result<(), Error> {
        loop {
            match self.play(play)? {
                PlayTurn::Worked => {}
                PlayTurn::Later(wait) => std::thread::sleep(wait),
                PlayTurn::Over => return Ok(()),
            }
        }
    }

    fn play_fast(&mut self, play: &mut Play) -> Result<PlayTurn, Error> {
        let mut wait: Option<Duration> = None;
        let mut names: Vec<(Time, String)> = Vec::new();
        for (name, _) in play.sources.iter().filter(|(_, source)| !source.is_over) {
            names.push((self.input(name)?.frontier, name.clone()));
        }
        if names.is_empty() {
            return Ok(PlayTurn::Over);
        }
        names.sort();
        for (_, name) in names {
            let source = play.sources.get_mut(&name).expect("it was just there");
            match source.reader.poll(ROWS_MAX)? {
                Poll::Rows(rows) => {
                    let batch = rows.into_events(&self.input(&name)?.events)?;
                    self.push_played(&name, source, batch)?;
                    return Ok(PlayTurn::Worked);
                }
                Poll::Done => {
                    self.end_played(&name, source)?;
                    return Ok(PlayTurn::Worked);
                }
                Poll::Pending { retry_after } => wait = Some(wait.map_or(retry_after, |wait| wait.min(retry_after))),
            }
        }
        Ok(PlayTurn::Later(wait.expect("a source that is not over waits")))
    }

    fn play_at(&mut self, play: &mut Play, rate: f64) -> Result<PlayTurn, Error> {
        let mut wait = self.fill(play)?;
        let starts =
            play.sources.values().filter_map(|source| source.waiting.as_ref()).map(|batch| batch.times().get(0));
        let Some(first) = starts.min() else {
            return match play.sources.values().all(|source| source.is_over) {
                true => Ok(PlayTurn::Over),
                false => Ok(wait.map_or(PlayTurn::Worked, PlayTurn::Later)),
            };
        };
        let now = self.clock.now_micros();
        let (began, origin) = *play.origin.get_or_insert((now, first));
        // The row time that is reached now, and how long until another one is.
        let due = origin as f64 + (now - began) as f64 / 1e6 * rate;
        let until = |time: Time| Duration::from_secs_f64(((time as f64 - due) / rate).clamp(0.0, 3600.0));
        let mut has_worked = false;
        for (name, source) in &mut play.sources {
            let Some(batch) = source.waiting.take() else { continue };
            let cut = (0..batch.len()).find(|&row| batch.times().get(row) as f64 > due).unwrap_or(batch.len());
            if cut < batch.len() {
                let rest = batch.slice(cut, batch.len() - cut);
                let later = until(rest.times().get(0));
                wait = Some(wait.map_or(later, |wait| wait.min(later)));
                source.waiting = Some(rest);
            }
            if cut > 0 {
                self.push_played(name, source, batch.slice(0, cut))?;
                has_worked = true;
            }
        }
        Ok(if has_worked { PlayTurn::Worked } else { PlayTurn::Later(wait.expect("rows wait")) })
    }

    /// Reads ahead where nothing waits; returns how long a source without rows wants to be left
    /// alone.
    fn fill(&mut self, play: &mut Play) -> Result<Option<Duration>, Error> {
        let mut wait: Option<Duration> = None;
        for (name, source) in &mut play.sources {
            if source.is_over || source.waiting.is_some() {
                continue;
            }
            match source.reader.poll(ROWS_MAX)? {
                Poll::Rows(rows) => {
                    let batch = rows.into_events(&self.input(name)?.events)?.compact();
                    source.waiting = Some(batch).filter(|batch| !batch.is_empty());
                }
                Poll::Done => self.end_played(name, source)?,
                Poll::Pending { retry_after } => wait = Some(wait.map_or(retry_after, |wait| wait.min(retry_after))),
            }
        }
        Ok(wait)
    }

    fn push_played(&mut self, name: &str, source: &mut Playing, batch: Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        source.reached = source.reached.max(batch.times().max());
        self.push(name, batch)?;
        if self.input(name)?.events.is_sorted() {
            self.advance(name, source.reached)?;
        }
        Ok(())
    }

    fn end_played(&mut self, name: &str, source: &mut Playing) -> Result<(), Error> {
        source.is_over = true;
        self.advance(name, END)
    }
}
