//! Numbers about the server, in Prometheus's text form.
//!
//! What happens is counted as it happens; what is, is asked of the database when a client looks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use anabranch_engine::store::{SYNC_MICROS_MAX, Statistics};
use anabranch_engine::{Connection, Rows};
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;

/// What dataflows hold that stay: those of views and indexes.
const STATE_OF_VIEWS: &str = "SELECT m.name, m.part, m.bytes FROM anabranch_memory AS m \
    JOIN anabranch_dataflows AS d ON d.id = m.dataflow WHERE d.kind IN ('standing', 'rows') AND d.connection IS NULL";

/// Counters and gauges.
pub(crate) struct Metrics {
    registry: Registry,
    pub connections: Gauge,
    pub refused: Counter,
    pub statements: Counter,
    pub errors: Counter,
    pub rows: Counter,
    arrangement_bytes: Family<Named, Gauge>,
    arrangement_rows: Family<Named, Gauge>,
    freshness: Family<Named, Gauge>,
    late_rows: Family<Named, Gauge>,
    source_rows: Family<Named, Gauge>,
    last_commit: Gauge,
    state_bytes: Family<ViewPart, Gauge>,
    requests_waiting: Gauge,
    commits_waiting: Gauge,
    backlog_bytes: Gauge,
    syncs: SyncTimes,
}

/// A part of the memory of a view.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ViewPart {
    view: String,
    part: String,
}

/// The times that syncs of the log took, as the store has counted them.
#[derive(Clone, Debug, Default)]
struct SyncTimes(Arc<Mutex<Statistics>>);

impl EncodeMetric for SyncTimes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let log = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
        let bounds = SYNC_MICROS_MAX.into_iter().map(seconds).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(log.sync_times).collect();
        let count = log.sync_times.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(seconds(log.sync_micros), count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// A relation.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Named {
    name: String,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("anabranch");
        let metrics = Metrics {
            connections: Gauge::default(),
            refused: Counter::default(),
            statements: Counter::default(),
            errors: Counter::default(),
            rows: Counter::default(),
            arrangement_bytes: Family::default(),
            arrangement_rows: Family::default(),
            freshness: Family::default(),
            late_rows: Family::default(),
            source_rows: Family::default(),
            last_commit: Gauge::default(),
            state_bytes: Family::default(),
            requests_waiting: Gauge::default(),
            commits_waiting: Gauge::default(),
            backlog_bytes: Gauge::default(),
            syncs: SyncTimes::default(),
            registry: Registry::default(),
        };
        registry.register("connections", "Clients that are connected", metrics.connections.clone());
        registry.register("connections_refused", "Clients that were turned away", metrics.refused.clone());
        registry.register("statements", "Statements that were begun", metrics.statements.clone());
        registry.register("errors", "Errors that clients were told", metrics.errors.clone());
        registry.register("rows_sent", "Rows that were sent to clients", metrics.rows.clone());
        let family = |registry: &mut Registry, name: &str, help: &str, family: &Family<Named, Gauge>| {
            registry.register(name, help, family.clone());
        };
        registry.register_with_unit(
            "arrangement",
            "Memory of a relation's arrangements",
            Unit::Bytes,
            metrics.arrangement_bytes.clone(),
        );
        family(&mut registry, "arrangement_rows", "Updates in a relation's arrangements", &metrics.arrangement_rows);
        family(&mut registry, "late_rows", "Rows that came behind the watermark", &metrics.late_rows);
        family(&mut registry, "source_rows", "Rows that were read from a source", &metrics.source_rows);
        registry.register_with_unit(
            "freshness",
            "How far a relation is behind the last commit, in ticks of the timeline",
            Unit::Other("micros".into()),
            metrics.freshness.clone(),
        );
        registry.register("last_commit_micros", "Time of the last commit", metrics.last_commit.clone());
        metrics.register_load(&mut registry);
        Metrics { registry, ..metrics }
    }

    /// What waits, what is held and how fast the disk is.
    fn register_load(&self, registry: &mut Registry) {
        let gauge = |registry: &mut Registry, name: &str, help: &str, gauge: &Gauge| {
            registry.register(name, help, gauge.clone());
        };
        registry.register_with_unit(
            "state",
            "Memory of a view: its operators' state, its arrangements, and changes not taken",
            Unit::Bytes,
            self.state_bytes.clone(),
        );
        let help = "Requests of clients that the engine has not begun";
        gauge(registry, "requests_waiting", help, &self.requests_waiting);
        gauge(registry, "commits_waiting", "Commits that are not on disk yet", &self.commits_waiting);
        registry.register_with_unit(
            "backlog",
            "Committed rows that no dataflow has taken in yet",
            Unit::Bytes,
            self.backlog_bytes.clone(),
        );
        let help = "Time of syncs of the log to disk (none without a folder)";
        registry.register_with_unit("fsync", help, Unit::Seconds, self.syncs.clone());
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self, connection: &mut Connection) -> String {
        self.look(connection);
        let mut text = String::new();
        // (Writing to a String cannot fail.)
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Asks the database what is. What it does not tell stays out.
    fn look(&self, connection: &mut Connection) {
        for family in
            [&self.arrangement_bytes, &self.arrangement_rows, &self.freshness, &self.late_rows, &self.source_rows]
        {
            family.clear();
        }
        let mut last = None;
        if let Ok(rows) = connection.query("SHOW TIME") {
            each(&rows, |row| last = row.number("time"));
        }
        let last = last.unwrap_or(0);
        self.last_commit.set(last);
        if let Ok(rows) = connection.query("SHOW ARRANGEMENTS") {
            each(&rows, |row| {
                let Some(name) = row.text("relation") else { return };
                let of = Named { name };
                self.arrangement_bytes.get_or_create(&of).inc_by(row.number("bytes").unwrap_or(0));
                self.arrangement_rows.get_or_create(&of).inc_by(row.number("rows").unwrap_or(0));
                if let Some(upper) = row.number("upper") {
                    self.freshness.get_or_create(&of).set(last.saturating_sub(upper.saturating_sub(1)).max(0));
                }
            });
        }
        self.look_at_load(connection);
        if let Ok(rows) = connection.query("SHOW SOURCES") {
            each(&rows, |row| self.gauge(&self.source_rows, row, "rows"));
        }
        if let Ok(rows) = connection.query("SHOW WATERMARKS") {
            each(&rows, |row| self.gauge(&self.late_rows, row, "late_rows"));
        }
    }

    fn look_at_load(&self, connection: &mut Connection) {
        let whole = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        if let Ok(load) = connection.load() {
            self.requests_waiting.set(whole(load.requests_waiting));
            self.backlog_bytes.set(whole(load.backlog_bytes));
            let log = load.log.unwrap_or_default();
            self.commits_waiting.set(log.unsynced.try_into().unwrap_or(i64::MAX));
            *self.syncs.0.lock().unwrap_or_else(PoisonError::into_inner) = log;
        }
        self.state_bytes.clear();
        if let Ok(rows) = connection.query(STATE_OF_VIEWS) {
            each(&rows, |row| {
                let (Some(view), Some(part)) = (row.text("name"), row.text("part")) else { return };
                let of = ViewPart { view, part };
                self.state_bytes.get_or_create(&of).inc_by(row.number("bytes").unwrap_or(0));
            });
        }
    }

    fn gauge(&self, family: &Family<Named, Gauge>, row: &Row<'_>, column: &str) {
        if let (Some(name), Some(value)) = (row.text("name"), row.number(column)) {
            family.get_or_create(&Named { name }).set(value);
        }
    }
}

/// A row of what SHOW answers.
struct Row<'a> {
    batch: &'a arrow::array::RecordBatch,
    row: usize,
}

impl Row<'_> {
    fn text(&self, column: &str) -> Option<String> {
        let values = self.batch.column_by_name(column)?.as_string_view_opt()?;
        (!values.is_null(self.row)).then(|| values.value(self.row).to_owned())
    }

    fn number(&self, column: &str) -> Option<i64> {
        let values = self.batch.column_by_name(column)?.as_primitive_opt::<Int64Type>()?;
        (!values.is_null(self.row)).then(|| values.value(self.row))
    }
}

fn each(rows: &Rows, mut look: impl FnMut(&Row<'_>)) {
    for batch in &rows.batches {
        (0..batch.num_rows()).for_each(|row| look(&Row { batch, row }));
    }
}

#[cfg(test)]
mod tests {
    use anabranch_engine::{Database, DatabaseOptions};

    use super::*;

    #[test]
    fn queues_syncs_and_the_state_of_views_are_told() {
        let folder = std::env::temp_dir().join(format!("anabranch-metrics-{}", std::process::id()));
        let options = DatabaseOptions { path: Some(folder.clone()), ..DatabaseOptions::default() };
        let database = Database::open(options).unwrap();
        let mut connection = database.connect().unwrap();
        connection.execute("CREATE TABLE t (a int, b int)").unwrap();
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a").unwrap();
        connection.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 1000) AS g").unwrap();
        connection.query("SELECT count(*) FROM v").unwrap();
        let text = Metrics::new().text(&mut connection);
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
        };
        assert!(value("anabranch_fsync_seconds_count ") >= 1.0);
        assert!(value("anabranch_fsync_seconds_sum ") > 0.0);
        let all = value("anabranch_fsync_seconds_bucket{le=\"+Inf\"}");
        assert!((all - value("anabranch_fsync_seconds_count ")).abs() < 0.5);
        for name in ["anabranch_requests_waiting ", "anabranch_commits_waiting ", "anabranch_backlog_bytes "] {
            assert!(value(name) >= 0.0);
        }
        let of_view =
            ["state", "arrangements"].map(|part| format!("anabranch_state_bytes{{view=\"v\",part=\"{part}\"}}"));
        assert!(of_view.iter().map(|name| value(name)).sum::<f64>() > 0.0, "{text}");
        drop((connection, database));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
