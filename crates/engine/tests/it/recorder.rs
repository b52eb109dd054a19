//! Commits and definitions are recorded before they are seen; what cannot be recorded does not
//! happen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anabranch_engine::{Error, Recorder, Sealed, Session};

use crate::support::{ask, fail, pairs, run, with_workers};

/// Writes down what is recorded, and refuses when told to.
#[derive(Clone, Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    is_full: Arc<Mutex<bool>>,
}

impl Recorder for Notes {
    fn record(&mut self, sealed: &Sealed) -> Result<(), Error> {
        if *self.is_full.lock().unwrap() {
            return Err(Error::unavailable("the disk is full").with_sqlstate("53100"));
        }
        let mut line = String::new();
        sealed.removed.iter().for_each(|id| line.push_str(&format!("-{} ", id.0)));
        sealed.created.iter().for_each(|created| line.push_str(&format!("+{} {} ", created.id.0, created.name)));
        let mut counts = BTreeMap::<u64, usize>::new();
        sealed.rows.iter().for_each(|rows| *counts.entry(rows.object.0).or_default() += rows.batch.len());
        counts.iter().for_each(|(object, n)| line.push_str(&format!("{object}:{n} ")));
        sealed.marks.iter().for_each(|mark| line.push_str(&format!("mark {} ", mark.object.0)));
        self.lines.lock().unwrap().push(line.trim_end().to_owned());
        Ok(())
    }
}

fn noted(session: &mut Session) -> Notes {
    let notes = Notes::default();
    session.set_recorder(Box::new(notes.clone()));
    notes
}

#[test]
fn commits_and_definitions_are_recorded_in_one_order() {
    with_workers(|session| {
        let notes = noted(session);
        run(session, "CREATE TABLE t (k bigint, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')");
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t; CREATE INDEX i ON t (k)");
        session.ingest("t", &pairs(&[(3, "c")]), None, None).unwrap();
        session.ingest("t", &pairs(&[(4, "d"), (5, "e")]), None, None).unwrap();
        session.commit().unwrap();
        run(session, "CREATE TABLE u AS SELECT k FROM t; CREATE TABLE IF NOT EXISTS u (a int); DROP TABLE t CASCADE");
        let lines = notes.lines.lock().unwrap().clone();
        assert_eq!(lines, ["+1 t", "1:2", "+2 m", "+3 i", "1:3", "+4 u 4:5", "-1 -2 -3"]);
    });
}

#[test]
fn what_cannot_be_recorded_does_not_happen() {
    with_workers(|session| {
        let notes = noted(session);
        run(session, "CREATE TABLE t (k bigint, ts bigint, WATERMARK FOR ts AS ts - 1); INSERT INTO t VALUES (1, 10)");
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT sum(k) AS n FROM t");
        *notes.is_full.lock().unwrap() = true;
        let error = fail(session, "INSERT INTO t VALUES (2, 20)");
        assert_eq!((error.message.as_str(), error.sqlstate()), ("the disk is full", "53100"));
        fail(session, "CREATE TABLE u (a int)");
        fail(session, "CREATE INDEX i ON t (k)");
        fail(session, "DELETE FROM t");
        assert_eq!(ask(session, "SELECT * FROM t"), ["1 10"]);
        assert_eq!(ask(session, "SELECT n FROM m"), ["1"]);
        assert_eq!(ask(session, "SHOW INDEXES"), Vec::<String>::new());
        *notes.is_full.lock().unwrap() = false;
        run(session, "CREATE TABLE u (a int); INSERT INTO t VALUES (3, 12)");
        assert_eq!(ask(session, "SELECT n FROM m"), ["4"]);
        let lines = notes.lines.lock().unwrap().clone();
        assert_eq!(lines[1], "1:1 mark 1");
        assert_eq!(lines.last().map(String::as_str), Some("1:1 mark 1"));
    });
}
