//! Sources that keep no rows until a query needs those that have passed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anabranch_engine::{
    Connector, Error, ErrorKind, Poll, ReadProgress, Session, SourceReader, SourceSpec, SourceState, StepStatus,
};
use arrow::datatypes::SchemaRef;

use crate::support::{ask, fail, pairs, run, with_workers};

/// Gives `(i, "a" or "b")` for i in 0..10, two rows a poll, from the beginning for each reader; a
/// long tape a hundred times as many.
#[derive(Clone, Default)]
struct Tape {
    is_long: bool,
    edition: Arc<Mutex<String>>,
    /// Columns that readers were narrowed to, one entry a reader.
    narrowed: Arc<Mutex<Vec<BTreeSet<usize>>>>,
    /// Rows that it lacks at its end.
    torn_off: Arc<Mutex<i64>>,
    at: i64,
}

impl Connector for Tape {
    fn open(&self, _spec: &SourceSpec) -> Result<Box<dyn SourceReader>, Error> {
        Ok(Box::new(Tape { at: 0, ..self.clone() }))
    }

    fn edition(&self, _spec: &SourceSpec) -> Result<Option<String>, Error> {
        Ok(Some(self.edition.lock().unwrap().clone()))
    }
}

impl SourceReader for Tape {
    fn schema(&self) -> SchemaRef {
        pairs(&[]).schema()
    }

    fn narrow(&mut self, columns: &BTreeSet<usize>) -> Result<(), Error> {
        self.narrowed.lock().unwrap().push(columns.clone());
        Ok(())
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        let times = if self.is_long { 100 } else { 1 };
        let n_left = 10 * times - *self.torn_off.lock().unwrap() - self.at;
        let n_rows = n_left.clamp(0, 2 * times).min(rows_max as i64);
        let kind = |i: i64| if i % 3 == 0 { "a" } else { "b" };
        let rows: Vec<(i64, &str)> = (self.at..self.at + n_rows).map(|i| (i, kind(i))).collect();
        self.at += n_rows;
        Ok(if n_rows == 0 { Poll::Done } else { Poll::Rows(pairs(&rows)) })
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress::default()
    }
}

/// Registers the connector `tape`.
fn taped(session: &mut Session) -> Tape {
    taped_with(session, Tape::default())
}

fn taped_with(session: &mut Session, tape: Tape) -> Tape {
    session.register_connector("tape", Arc::new(tape.clone()));
    tape
}

fn read_some(session: &mut Session) {
    while session.sources()[0].rows < 4 {
        session.step().unwrap();
    }
}

#[test]
fn reading_begins_with_the_first_query_and_only_its_columns_are_read() {
    with_workers(|session| {
        let tape = taped(session);
        run(session, "CREATE SOURCE s WITH (connector = 'tape')");
        while session.step().unwrap() == StepStatus::Working {}
        assert_eq!((session.sources()[0].rows, &session.sources()[0].state), (0, &SourceState::Unread));
        assert_eq!(ask(session, "SHOW SOURCES"), ["s tape unread 0 0 null null"]);
        run(session, "CREATE MATERIALIZED VIEW n AS SELECT v, count(*) AS n FROM s GROUP BY v");
        assert_eq!(ask(session, "SELECT * FROM n ORDER BY v"), ["a 4", "b 6"]);
        assert_eq!(*tape.narrowed.lock().unwrap(), [BTreeSet::from([1])]);
        // The view's groups are all that is kept.
        assert_eq!(ask(session, "SHOW ARRANGEMENTS").len(), 1);
    });
}

#[test]
fn a_query_that_comes_later_reads_the_source_again() {
    with_workers(|session| {
        taped(session);
        run(
            session,
            "SET wait_for_sources = off; CREATE SOURCE s WITH (connector = 'tape');
             CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        read_some(session);
        // Rows have passed; the next view needs them and those to come, and so does an index.
        run(session, "CREATE MATERIALIZED VIEW total AS SELECT v, sum(k) AS k FROM s GROUP BY v");
        assert_eq!(ask(session, "SELECT n FROM n"), ["4"]);
        assert_eq!(ask(session, "SELECT * FROM total ORDER BY v"), ["a 3", "b 3"]);
        run(session, "CREATE INDEX by_v ON s (v); SET wait_for_sources = on");
        assert_eq!(ask(session, "SELECT n FROM n"), ["10"]);
        assert_eq!(ask(session, "SELECT * FROM total ORDER BY v"), ["a 18", "b 27"]);
        assert_eq!(ask(session, "SELECT k FROM s WHERE v = 'a' ORDER BY k"), ["0", "3", "6", "9"]);
        let pairs = "SELECT count(*) FROM s a JOIN s b ON a.k = b.k JOIN n ON true WHERE n.n = 10";
        assert_eq!(ask(session, pairs), ["10"]);
        run(session, "DROP SOURCE s CASCADE");
        assert!(session.sources().is_empty());
    });
}

#[test]
fn a_source_with_a_watermark_is_read_again() {
    with_workers(|session| {
        taped(session);
        run(
            session,
            "CREATE SOURCE s (k bigint, v text, WATERMARK FOR k AS k) WITH (connector = 'tape');
             CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        assert_eq!(ask(session, "SELECT n FROM n"), ["10"]);
        run(session, "CREATE MATERIALIZED VIEW w AS SELECT k / 4 AS w, count(*) AS n FROM s GROUP BY k / 4");
        assert_eq!(ask(session, "SELECT * FROM w ORDER BY w"), ["0 4", "1 4", "2 2"]);
        assert_eq!(ask(session, "SELECT count(*) FROM s"), ["10"]);
    });
}

#[test]
fn the_watermark_rises_again_for_a_view_that_comes_later() {
    for retain in ["", ", retain = 'none'"] {
        with_workers(|session| {
            taped(session);
            run(
                session,
                &format!(
                    "SET wait_for_sources = off;
                     CREATE SOURCE s (k bigint, v text, WATERMARK FOR k AS k)
                     WITH (connector = 'tape'{retain});
                     CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s"
                ),
            );
            read_some(session);
            // Each reads the source again, by itself or beside the inputs of those before.
            let windows = "FROM TUMBLE(s, k, 3)";
            let late = [
                format!(
                    "CREATE MATERIALIZED VIEW w AS SELECT window_end AS e, count(*) AS n, max(v) AS v {windows}
                         GROUP BY window_end EMIT ON WINDOW CLOSE"
                ),
                format!(
                    "CREATE MATERIALIZED VIEW x AS SELECT window_end AS e, max(k) AS k {windows} GROUP BY window_end"
                ),
                "CREATE MATERIALIZED VIEW j AS SELECT a.k, b.v FROM s a JOIN s b ON a.k = b.k + 1".to_string(),
                "CREATE MATERIALIZED VIEW l AS SELECT k, lag(v) OVER (ORDER BY k) AS v FROM s".to_string(),
            ];
            late.iter().for_each(|view| _ = run(session, view));
            assert_eq!(ask(session, "SELECT * FROM w ORDER BY e"), ["3 3 b"]);
            assert_eq!(ask(session, "SELECT * FROM x ORDER BY e"), ["3 2", "6 3"]);
            let plan = ask(session, "EXPLAIN w").join("\n");
            assert!(plan.contains("state bounded by"), "{plan}");
            run(session, "SET wait_for_sources = on");
            assert_eq!(ask(session, "SELECT * FROM w ORDER BY e"), ["3 3 b", "6 3 b", "9 3 b"]);
            assert_eq!(ask(session, "SELECT * FROM x ORDER BY e"), ["3 2", "6 5", "9 8", "12 9"]);
            assert_eq!(ask(session, "SELECT count(*), sum(k) FROM j"), ["9 45"]);
            assert_eq!(ask(session, "SELECT count(v), sum(k) FROM l"), ["9 45"]);
            run(session, "DROP SOURCE s CASCADE");
        });
    }
}

#[test]
fn state_leaves_for_early_views_and_late_ones() {
    with_workers(|session| {
        taped_with(session, Tape { is_long: true, ..Tape::default() });
        run(
            session,
            "SET wait_for_sources = off;
             CREATE SOURCE s (k bigint, v text, WATERMARK FOR k AS k)
             WITH (connector = 'tape', retain = 'none');
             CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        while session.sources()[0].rows < 400 {
            session.step().unwrap();
        }
        // (The second is late when the first is read from an earlier input.)
        for (view, size) in [("first", 4), ("second", 5)] {
            run(
                session,
                &format!(
                    "CREATE MATERIALIZED VIEW {view} AS SELECT sum(n) AS n, sum(k) AS k FROM
                         (SELECT window_end, count(*) AS n, max(k) AS k FROM TUMBLE(s, k, {size}) GROUP BY window_end)"
                ),
            );
        }
        run(session, "SET wait_for_sources = on");
        assert_eq!(
            ask(session, "SELECT first.n, second.n, first.k, second.k FROM first, second"),
            ["1000 1000 125250 100300"]
        );
        let rows = ask(
            session,
            "SELECT relation, operator, state_rows FROM anabranch_operators
             WHERE operator LIKE 'Aggregate by window_end%' AND relation <> 'n'",
        );
        let n_rows = |row: &String| row.rsplit(' ').next().and_then(|n| n.parse::<i64>().ok()).unwrap();
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows.iter().all(|row| n_rows(row) < 100), "{rows:?}");
    });
}

#[test]
fn a_source_that_has_changed_is_not_read_again() {
    with_workers(|session| {
        let tape = taped(session);
        run(
            session,
            "CREATE SOURCE s WITH (connector = 'tape'); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        assert_eq!(ask(session, "SELECT n FROM n"), ["10"]);
        *tape.edition.lock().unwrap() = "another".to_string();
        for text in ["SELECT * FROM s", "CREATE MATERIALIZED VIEW m AS SELECT max(k) AS k FROM s", "SUBSCRIBE s"] {
            let error = fail(session, text);
            assert_eq!(error.kind, ErrorKind::Unavailable, "{text}");
            assert!(error.message.contains("source \"s\" has changed"), "{}", error.message);
            assert!(error.hint.unwrap().contains("retain = 'all'"));
        }
        assert_eq!(ask(session, "SELECT n FROM n"), ["10"]);
        *tape.edition.lock().unwrap() = String::new();
        assert_eq!(ask(session, "SELECT max(k) FROM s"), ["9"]);
    });
}

#[test]
fn a_source_keeps_all_rows_when_told_so() {
    with_workers(|session| {
        let tape = taped(session);
        run(session, "CREATE SOURCE s WITH (connector = 'tape', retain = 'all')");
        session.wait().unwrap();
        *tape.edition.lock().unwrap() = "another".to_string();
        assert_eq!(ask(session, "SELECT count(*) FROM s"), ["10"]);
        assert!(tape.narrowed.lock().unwrap().is_empty());
    });
}

#[test]
fn a_source_that_keeps_nothing_waits_for_its_first_view() {
    with_workers(|session| {
        taped(session);
        run(session, "CREATE SOURCE s WITH (connector = 'tape', retain = 'none')");
        while session.step().unwrap() == StepStatus::Working {}
        session.wait().unwrap();
        run(session, "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s");
        assert_eq!(ask(session, "SELECT n FROM n"), ["10"]);
        assert!(fail(session, "SELECT * FROM s").message.contains("keeps no rows"));
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT max(k) AS k FROM s");
        assert_eq!(ask(session, "SELECT k FROM m"), ["9"]);
        assert_eq!(ask(session, "SHOW ARRANGEMENTS").len(), 2);
        assert!(fail(session, "SELECT * FROM s").message.contains("keeps no rows"));
    });
}

/// A tape that can be read only once.
struct Once(Tape);

impl Connector for Once {
    fn open(&self, spec: &SourceSpec) -> Result<Box<dyn SourceReader>, Error> {
        self.0.open(spec)
    }
}

#[test]
fn views_that_come_one_after_another_read_the_same_rows() {
    with_workers(|session| {
        session.register_connector("once", Arc::new(Once(Tape::default())));
        run(session, "CREATE SOURCE s WITH (connector = 'once', retain = 'none')");
        for view in ["n AS SELECT count(*) AS n", "m AS SELECT max(k) AS k", "t AS SELECT sum(k) AS k"] {
            run(session, &format!("CREATE MATERIALIZED VIEW {view} FROM s"));
            session.step().unwrap();
        }
        assert_eq!(ask(session, "SELECT n, m.k, t.k FROM n, m, t"), ["10 9 45"]);
        let error = fail(session, "CREATE MATERIALIZED VIEW l AS SELECT min(k) AS k FROM s");
        assert!(error.message.contains("rows have passed already"), "{}", error.message);
    });
}

#[test]
fn a_view_that_comes_later_reads_its_columns_again_and_nothing_is_kept_besides() {
    with_workers(|session| {
        let tape = taped(session);
        run(
            session,
            "SET wait_for_sources = off; CREATE SOURCE s WITH (connector = 'tape');
             CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        read_some(session);
        run(session, "CREATE MATERIALIZED VIEW total AS SELECT sum(k) AS k FROM s");
        // (The same rows again, from the arrangement of the first one.)
        run(session, "CREATE MATERIALIZED VIEW total_again AS SELECT sum(k) AS k FROM s");
        run(session, "CREATE MATERIALIZED VIEW kinds AS SELECT v, count(*) AS n FROM s GROUP BY v");
        run(
            session,
            "CREATE MATERIALIZED VIEW pairs AS
             SELECT count(*) AS n FROM s a JOIN s b ON a.v = b.v JOIN kinds ON kinds.v = a.v",
        );
        assert_eq!(ask(session, "SELECT n FROM n"), ["4"]);
        assert_eq!(ask(session, "SELECT k FROM total"), ["6"]);
        assert_eq!(ask(session, "SELECT n FROM pairs"), ["8"]);
        let [first, second, third, fourth, rest @ ..] = &tape.narrowed.lock().unwrap()[..] else {
            panic!("read again")
        };
        assert_eq!([first, second], [&BTreeSet::from([]), &BTreeSet::from([0])]);
        assert_eq!([third, fourth], [&BTreeSet::from([0]), &BTreeSet::from([0, 1])]);
        assert!(rest.iter().all(|columns| columns.len() == 2), "{rest:?}");
        run(session, "DROP MATERIALIZED VIEW n; SET wait_for_sources = on");
        assert_eq!(ask(session, "SELECT k FROM total"), ["45"]);
        assert_eq!(ask(session, "SELECT k FROM total_again"), ["45"]);
        assert_eq!(ask(session, "SELECT n FROM pairs"), ["52"]);
        assert_eq!(ask(session, "SELECT * FROM kinds ORDER BY v"), ["a 4", "b 6"]);
        let arrangements = ask(session, "SHOW ARRANGEMENTS");
        assert!(!arrangements.iter().any(|row| row.starts_with("s ")), "{arrangements:?}");
        run(session, "DROP SOURCE s CASCADE");
        assert!(session.sources().is_empty());
    });
}

#[test]
fn waiting_reads_sources_without_queries() {
    with_workers(|session| {
        taped(session);
        run(session, "CREATE SOURCE s WITH (connector = 'tape')");
        session.wait().unwrap();
        assert_eq!(session.sources()[0].rows, 10);
        assert_eq!(ask(session, "SELECT v FROM s WHERE k = 3"), ["a"]);
    });
}

#[test]
fn rows_that_are_kept_are_read_again_once() {
    with_workers(|session| {
        let tape = taped(session);
        run(
            session,
            "CREATE SOURCE s WITH (connector = 'tape'); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        assert_eq!(ask(session, "SELECT n FROM n"), ["10"]);
        assert_eq!(ask(session, "SELECT count(*), sum(k) FROM s"), ["10 45"]);
        // (The reader of all columns is narrowed to none.)
        assert_eq!(*tape.narrowed.lock().unwrap(), [BTreeSet::from([])]);
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT max(k) AS k FROM s");
        assert_eq!(ask(session, "SELECT k FROM m"), ["9"]);
        assert_eq!(tape.narrowed.lock().unwrap().len(), 1);
    });
}

#[test]
fn a_view_whose_rows_are_gone_is_refused_and_others_go_on() {
    with_workers(|session| {
        let tape = taped(session);
        run(
            session,
            "SET wait_for_sources = off; CREATE SOURCE s WITH (connector = 'tape');
             CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        read_some(session);
        *tape.torn_off.lock().unwrap() = 8;
        // (It is found midway, when the view's dataflow has begun.)
        for _ in 0..2 {
            let error = fail(session, "CREATE MATERIALIZED VIEW m AS SELECT max(k) AS k FROM s");
            assert!(error.message.contains("has changed since it was created"), "{}", error.message);
        }
        *tape.torn_off.lock().unwrap() = 0;
        assert_eq!(ask(session, "SHOW ARRANGEMENTS").len(), 1);
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT max(k) AS k FROM s; SET wait_for_sources = on");
        assert_eq!(ask(session, "SELECT n, k FROM n, m"), ["10 9"]);
    });
}
