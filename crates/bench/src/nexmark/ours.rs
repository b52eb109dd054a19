//! Our side: a session, relations that keep nothing, and the query as a subscription.

use std::path::Path;
use std::time::{Duration, Instant};

use anabranch_engine::{Changes, Options as SessionOptions, Outcome, Session, Subscription};
use anabranch_testing::nexmark::Stream;
use anabranch_testing::nexmark::queries::{QUERIES, Query};
use arrow::array::RecordBatch;
use serde_json::{Value, json};

use super::{Case, WARM_MB};
use crate::{allocator, measure, rows_file};

/// Runs one case and returns its figures.
pub(super) fn run(case: &Case) -> Result<Value, String> {
    let query = QUERIES.iter().find(|query| query.number == case.query);
    let query = query.ok_or_else(|| format!("there is no q{}", case.query))?;
    allocator::count();
    let live = allocator::live_bytes();
    let mut session = Session::new(SessionOptions { workers: case.workers, ..SessionOptions::default() })
        .map_err(|error| error.to_string())?;
    for stream in query.streams {
        execute(&mut session, &stream.create(false))?;
    }
    if let Some(path) = &case.answer {
        execute(&mut session, &format!("create materialized view answer as {}", query.ours))?;
        for at in 0..n_rounds(case) {
            commit(&mut session, round(query, case, at))?;
        }
        return write_answer(&mut session, path);
    }
    let subscription = subscribe(&mut session, query)?;
    let mut run = Run { session, subscription, live, cpu_s: 0.0, seconds: 0.0, events: 0, changes: 0 };
    run.measure(query, case)
}

type Round = Vec<(Stream, RecordBatch)>;

/// A run that is under way.
struct Run {
    session: Session,
    subscription: Subscription,
    /// Bytes alive before the session began.
    live: f64,
    /// Used in commits so far, and in taking changes.
    cpu_s: f64,
    seconds: f64,
    events: usize,
    changes: usize,
}

impl Run {
    fn measure(&mut self, query: &Query, case: &Case) -> Result<Value, String> {
        if case.warm {
            measure::warm(WARM_MB);
        }
        measure::reset_peak();
        let resident = measure::resident_mb();
        let mut held_at_half = 0.0;
        for at in 0..n_rounds(case) {
            self.commit(round(query, case, at))?;
            if at + 1 == n_rounds(case).div_ceil(2) {
                held_at_half = self.held_bytes();
            }
        }
        let held = self.held_bytes();
        Ok(json!({
            "events": self.events, "seconds": self.seconds, "cpu_s": self.cpu_s, "changes": self.changes,
            "peak_mb": measure::peak_mb() - resident, "held_mb": held / 1e6,
            "growth_percent": (held / held_at_half.max(1.0) - 1.0) * 100.0,
        }))
    }

    fn held_bytes(&self) -> f64 {
        allocator::live_bytes() - self.live
    }

    /// One commit, and the changes that it makes.
    fn commit(&mut self, round: Round) -> Result<(), String> {
        self.events += round.iter().map(|(_, batch)| batch.num_rows()).sum::<usize>();
        let (cpu, start) = (measure::cpu_seconds(), Instant::now());
        commit(&mut self.session, round)?;
        self.changes += take_changes(&mut self.session, &self.subscription)?;
        self.seconds += start.elapsed().as_secs_f64();
        self.cpu_s += measure::cpu_seconds() - cpu;
        Ok(())
    }
}

fn execute(session: &mut Session, sql: &str) -> Result<Vec<Outcome>, String> {
    session.execute(sql).map_err(|error| format!("{sql}: {}", error.render(sql)))
}

fn subscribe(session: &mut Session, query: &Query) -> Result<Subscription, String> {
    let made = execute(session, &format!("subscribe ({})", query.ours))?.pop();
    match made {
        Some(Outcome::Subscription(subscription)) => Ok(subscription),
        _ => Err(format!("q{} gave no subscription", query.number)),
    }
}

fn commit(session: &mut Session, round: Round) -> Result<(), String> {
    for (stream, batch) in round {
        session.ingest(stream.name(), &batch, None, None).map_err(|error| error.to_string())?;
    }
    session.commit().map_err(|error| error.to_string())?;
    session.wait().map_err(|error| error.to_string())
}

/// Takes all changes that there are; says how many.
fn take_changes(session: &mut Session, subscription: &Subscription) -> Result<usize, String> {
    let mut n = 0;
    loop {
        match session.next_changes(subscription, Duration::ZERO).map_err(|error| error.to_string())? {
            Changes::Nothing | Changes::End => return Ok(n),
            Changes::Rows(batches) => n += batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            Changes::Progress(_) => {}
        }
    }
}

fn write_answer(session: &mut Session, path: &Path) -> Result<Value, String> {
    let rows = session.query("select * from answer").map_err(|error| error.to_string())?;
    let empty = RecordBatch::new_empty(rows.schema.clone());
    rows_file::write(path, rows.batches.into_iter().chain([empty]))?;
    Ok(json!({"written": path}))
}

fn n_rounds(case: &Case) -> u64 {
    case.events.div_ceil(case.physical)
}

/// The rows of a commit. Rows that do not change come with the first.
fn round(query: &Query, case: &Case, at: u64) -> Round {
    let (from, upto) = (at * case.physical, ((at + 1) * case.physical).min(case.events));
    let comes = |stream: &&Stream| at == 0 || **stream != Stream::Side;
    query.streams.iter().filter(comes).map(|stream| (*stream, stream.rows(from, upto))).collect()
}
