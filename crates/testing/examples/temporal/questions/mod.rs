//! The questions, each on a page of its own; their answers are checked by the tests.
//!
//! Times are microseconds. Flights come in order of their scheduled departure, on the wall clock of
//! New York.

mod airborne;
mod delays_by_hour;
mod fog;
mod mean_by_carrier;
mod quiet_nights;
mod rush;
mod turnarounds;
mod worsening;

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::connector::SourceReader;
use anabranch_engine::frame::{Events, Frame, Pace, Play, ResultLifetime};
use anabranch_engine::{Error, Options, Session};
use anabranch_file::FileConnector;

/// A question: lines of its answer.
pub type Question = fn(&Path) -> Result<Vec<String>, Error>;

/// All questions, by name.
pub const ALL: [(&str, Question); 8] = [
    ("how late are departures, hour by hour? (tumbling windows)", delays_by_hour::ask),
    ("when do most leave within an hour? (hopping windows)", rush::ask),
    ("how many are in the air? (lifetimes)", airborne::ask),
    ("are they later in bad sight? (temporal join)", fog::ask),
    ("when is it quiet? (sessions)", quiet_nights::ask),
    ("how long do aircraft stay away? (clip)", turnarounds::ask),
    ("which aircraft get later and later? (patterns)", worsening::ask),
    ("what is the mean delay of each carrier? (early answers)", mean_by_carrier::ask),
];

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

/// A session that reads files.
fn session() -> Result<Session, Error> {
    let mut session = Session::new(Options::default())?;
    session.register_connector("file", Arc::new(FileConnector));
    Ok(session)
}

/// A file of the examples.
fn open(session: &Session, data: &Path, file: &str) -> Result<Box<dyn SourceReader>, Error> {
    let path = data.join(file);
    session.open("file", [("path", path.to_string_lossy().as_ref())])
}

/// Flights as points at their scheduled departure.
fn flights(source: &dyn SourceReader) -> Events {
    Events::input("flights", source.schema()).time_column("sched_dep").constant_duration(1).sorted().bounded()
}

/// Plays all flights through a frame; what came out, in order of time.
fn ask_flights(data: &Path, frame: impl FnOnce(Frame) -> Frame) -> Result<Vec<ResultLifetime>, Error> {
    let mut session = session()?;
    let source = open(&session, data, "flights.parquet")?;
    let frame = frame(flights(source.as_ref()).frame());
    let mut run = session.start(&frame)?;
    run.play_to_end(&mut Play::new([("flights", source)], Pace::Fast))?;
    let mut lifetimes = run.lifetimes()?;
    lifetimes.sort_by_key(|lifetime| (lifetime.start, lifetime.end));
    Ok(lifetimes)
}

/// A time as it is written, by the calendar of 2013.
fn clock(micros: i64) -> String {
    let minutes = micros.div_euclid(MINUTE) - 15_706 * 24 * 60;
    let (day, minute) = (minutes.div_euclid(24 * 60), minutes.rem_euclid(24 * 60));
    let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (mut month, mut left) = (0, day);
    while month < 11 && left >= months[month] {
        left -= months[month];
        month += 1;
    }
    format!("{:02}-{:02} {:02}:{:02}", month + 1, left + 1, minute / 60, minute % 60)
}
