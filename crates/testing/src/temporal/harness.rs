//! A harness for queries over events: rows with times in, the changelog out.
//!
//! ```
//! use anabranch_engine::frame::{Event, Events, col, sum};
//! use anabranch_testing::temporal::harness::{advance, changelog, row};
//! use arrow::datatypes::{DataType, Field, Schema};
//!
//! let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
//! let sums = Events::input("in", schema).frame().tumbling(10).agg([sum(col("x"))]);
//! let log = changelog(&sums, [
//!     row("in", Event::point(3, [5i64.into()])),
//!     row("in", Event::point(7, [6i64.into()])),
//!     advance("in", 11),
//!     row("in", Event::point(12, [1i64.into()])),
//! ])?;
//! assert_eq!(log, ["@10 +1 11", "@20 -1 11", "@20 +1 1", "@30 -1 1"]);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```
//!
//! Law: the changelog is that of the collection, consolidated and in order of time, then of the
//! row, what leaves first. It is checked on the way that it does not depend on how rows are fed:
//! once one at a time as said, once all those between two advances together with a worker beside,
//! and the two must agree. The inputs end after the last step.

use anabranch_engine::frame::{Event, Frame, FrameRun};
use anabranch_engine::{Error, Options, Session};
use datafusion_common::ScalarValue;

/// Something that happens to an input.
#[derive(Clone, Debug)]
pub enum Feed {
    /// A row comes.
    Row(String, Event),
    /// No row before the time will come.
    Advance(String, i64),
}

/// A row comes to an input.
pub fn row(input: &str, event: Event) -> Feed {
    Feed::Row(input.to_owned(), event)
}

/// No row before the time will come to an input.
pub fn advance(input: &str, time: i64) -> Feed {
    Feed::Advance(input.to_owned(), time)
}

/// What comes out of a frame that is fed so: lines of time, difference and row.
///
/// # Errors
/// The first error of the frame or of a row.
///
/// # Panics
/// When the changelog depends on how rows are fed.
pub fn changelog(frame: &Frame, feed: impl IntoIterator<Item = Feed>) -> Result<Vec<String>, Error> {
    let feed: Vec<Feed> = feed.into_iter().collect();
    let one_by_one = fed(frame, 0, |run| feed.iter().try_for_each(|step| apply(run, std::slice::from_ref(step))))?;
    let is_row = |step: &Feed| matches!(step, Feed::Row(..));
    let together =
        fed(frame, 1, |run| feed.chunk_by(|a, b| is_row(a) && is_row(b)).try_for_each(|steps| apply(run, steps)))?;
    assert_eq!(one_by_one, together, "the changelog does not depend on how rows are fed");
    Ok(one_by_one)
}

fn fed(
    frame: &Frame,
    workers: usize,
    feed: impl FnOnce(&mut FrameRun) -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let mut session = Session::new(Options { workers, ..Options::default() })?;
    let mut run = session.start(frame)?;
    feed(&mut run)?;
    run.finish()?;
    let mut changes: Vec<(i64, String, i64)> = Vec::new();
    for batch in run.changes()? {
        for at in 0..batch.len() {
            let cells = batch.columns().iter().map(|column| {
                let value = ScalarValue::try_from_array(column, at);
                value.map_or_else(|error| error.to_string(), |value| value.to_string())
            });
            let row = cells.collect::<Vec<_>>().join(", ");
            changes.push((batch.times().get(at), row, batch.diffs().get(at)));
        }
    }
    changes.sort_by_key(|(time, row, diff)| (*time, *diff > 0, row.clone()));
    Ok(changes.into_iter().map(|(time, row, diff)| format!("@{time} {diff:+} {row}")).collect())
}

/// Neighbouring steps: one advance, or rows, which are pushed input by input.
fn apply(run: &mut FrameRun, steps: &[Feed]) -> Result<(), Error> {
    if let [Feed::Advance(input, time)] = steps {
        return run.advance(input, *time);
    }
    let mut inputs: Vec<&str> = Vec::new();
    for step in steps {
        if let Feed::Row(input, _) = step
            && !inputs.contains(&input.as_str())
        {
            inputs.push(input);
        }
    }
    for wanted in inputs {
        let events = steps.iter().filter_map(|step| match step {
            Feed::Row(input, event) if input == wanted => Some(event.clone()),
            _ => None,
        });
        run.push(wanted, events.collect::<Vec<_>>())?;
    }
    Ok(())
}
