//! Our side: a session, tables that keep nothing, and the query as a materialized view.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_batch::{Times, types};
use anabranch_engine::{Changes, Options as SessionOptions, Outcome, Session, Subscription};
use anabranch_peer::tpch::Contents;
use anabranch_testing::tpch::{Table, queries};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;
use serde_json::{Value, json};

use super::{Case, WARM_MB, measure};

/// Runs one case and returns its figures, and the final answer if it is asked for.
pub(super) fn run(case: &Case, check: bool) -> Result<(Value, Contents), String> {
    let tables = queries::tables(case.query);
    let rounds = rounds(&tables, case);
    let tuples: usize = rounds.iter().flatten().map(|(_, batch)| batch.num_rows()).sum();

    let mut session = Session::new(SessionOptions { workers: case.workers, ..SessionOptions::default() })
        .map_err(|error| error.to_string())?;
    let execute = |session: &mut Session, sql: &str| session.execute(sql).map_err(|error| format!("{sql}: {error}"));
    for table in &tables {
        execute(&mut session, &without_history(table))?;
    }
    let query = queries::query(case.query, case.scale);
    let query = query.trim_end().trim_end_matches(';');
    let statement = match case.every_time {
        true => format!("subscribe ({query})"),
        false => format!("create materialized view answer as {query}"),
    };
    let subscription = execute(&mut session, &statement)?.pop().and_then(|outcome| match outcome {
        Outcome::Subscription(subscription) => Some(subscription),
        _ => None,
    });

    if !case.keep_rows {
        measure::warm(WARM_MB);
    }
    measure::reset_peak();
    let (resident, cpu, start) = (measure::resident_mb(), measure::cpu_seconds(), Instant::now());
    let mut longest_round_ms: f64 = 0.0;
    let mut kept = Vec::new();
    for round in rounds {
        let begin = Instant::now();
        let next = session.time() + 1;
        for (table, batch) in &round {
            let times = (case.logical < case.physical).then(|| times(next, batch.num_rows(), case.logical));
            session.ingest(table, batch, times, None).map_err(|error| error.to_string())?;
        }
        session.commit().map_err(|error| error.to_string())?;
        session.wait().map_err(|error| error.to_string())?;
        if let Some(subscription) = &subscription {
            take_changes(&mut session, subscription)?;
        }
        longest_round_ms = longest_round_ms.max(begin.elapsed().as_secs_f64() * 1e3);
        if case.keep_rows {
            kept.push(round);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (cpu, peak) = (measure::cpu_seconds() - cpu, measure::peak_mb());
    let figures = json!({
        "tuples": tuples, "seconds": seconds, "tuples_per_s": tuples as f64 / seconds, "cpu_s": cpu,
        "longest_round_ms": longest_round_ms, "peak_mb": peak, "grown_mb": peak - resident,
    });
    let contents = if check { contents(&mut session)? } else { Contents::new() };
    Ok((figures, contents))
}

/// Takes all changes that there are.
fn take_changes(session: &mut Session, subscription: &Subscription) -> Result<(), String> {
    loop {
        match session.next_changes(subscription, Duration::ZERO).map_err(|error| error.to_string())? {
            Changes::Nothing | Changes::End => return Ok(()),
            Changes::Rows(_) | Changes::Progress(_) => {}
        }
    }
}

/// Row `i` has time `from + i / logical`.
fn times(from: i64, n: usize, logical: usize) -> Times {
    if logical == 1 {
        return Times::Column((from..from + n as i64).collect());
    }
    let mut times = Vec::with_capacity(n + logical);
    (from..).take(n.div_ceil(logical)).for_each(|time| times.extend(std::iter::repeat_n(time, logical)));
    times.truncate(n);
    Times::Column(times.into())
}

fn contents(session: &mut Session) -> Result<Contents, String> {
    let answer = session.query("select * from answer").map_err(|error| error.to_string())?;
    let mut contents = Contents::new();
    for batch in &answer.batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row));
            let cells = cells.collect::<Result<Vec<String>, _>>().map_err(|error| error.to_string())?;
            *contents.entry(cells).or_default() += 1;
        }
    }
    Ok(contents)
}

/// The rows of each round: the next `physical` rows of each relation that has some left.
fn rounds(tables: &[&'static Table], case: &Case) -> Vec<Vec<(&'static str, RecordBatch)>> {
    let take = if case.rows == 0 { usize::MAX } else { case.rows };
    let mut open: Vec<_> = tables.iter().map(|table| (table.name, Portions::new(table, case, take))).collect();
    let mut rounds = Vec::new();
    loop {
        let round: Vec<_> = open.iter_mut().filter_map(|(name, portions)| Some((*name, portions.next()?))).collect();
        if round.is_empty() {
            return rounds;
        }
        rounds.push(round);
    }
}

/// A table's rows in portions of exactly so many. (The generator's own batches of line items hold
/// whole orders.)
struct Portions {
    batches: anabranch_testing::tpch::Batches,
    batch: Option<RecordBatch>,
    /// Of all portions.
    schema: Option<SchemaRef>,
    rows: usize,
    left: usize,
}

impl Portions {
    fn new(table: &Table, case: &Case, left: usize) -> Portions {
        let batches = table.batches(case.scale, case.physical.max(1 << 10));
        Portions { batches, batch: None, schema: None, rows: case.physical, left }
    }

    fn next(&mut self) -> Option<RecordBatch> {
        let wanted = self.rows.min(self.left);
        if wanted == 0 {
            return None;
        }
        let mut parts = Vec::new();
        let mut n = 0;
        while n < wanted {
            let Some(batch) = self.batch.take().or_else(|| self.batches.next()) else { break };
            let taken = batch.num_rows().min(wanted - n);
            if taken < batch.num_rows() {
                self.batch = Some(batch.slice(taken, batch.num_rows() - taken));
            }
            parts.push(batch.slice(0, taken));
            n += taken;
        }
        self.left -= n;
        match &parts[..] {
            [] => None,
            [part] => Some(self.narrowed(part)),
            parts => {
                let schema = parts[0].schema();
                let rows = arrow::compute::concat_batches(&schema, parts).expect("parts of one table have one schema");
                Some(self.narrowed(&rows))
            }
        }
    }

    /// The rows in the types that batches have, so that nothing is converted while the clock runs.
    /// (The peer's are made before it starts, too.)
    fn narrowed(&mut self, rows: &RecordBatch) -> RecordBatch {
        let columns = rows.columns().iter().map(|column| types::narrowed(column).expect("values have few digits"));
        let schema = self.schema.get_or_insert_with(|| narrowed_schema(rows.schema_ref()));
        RecordBatch::try_new(Arc::clone(schema), columns.collect()).expect("columns are of the fields' types")
    }
}

/// The columns in the types that batches have.
fn narrowed_schema(schema: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| Field::clone(field).with_data_type(types::narrowed_type(field.data_type()));
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// The table's statement, without a primary key and keeping no rows.
fn without_history(table: &Table) -> String {
    let columns = table.create.split_once(", primary key").map_or(table.create, |(columns, _)| columns.trim_end());
    format!("{columns}) with (retain = 'none')")
}
