//! Law "restore": where a database was closed, or its machine stopped, changes no answer.
//!
//! Random histories of statements run over a disk that stops at a random operation, loses what was
//! not synced and tears sectors, returns errors, or fills up. The model is a list of states: what
//! the tables held after each statement that may have taken effect. After each opening the tables
//! are one of these states, and not one from before the last statement that was answered; each view
//! is what its query gives when it is asked anew.
//!
//! `SEED=n` replays a case, `ROUNDS=n` runs n times as many.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::store::{Durability, Faults, SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{Error, Options, Session};
use anabranch_testing::rng::{Rng, cases};
use arrow::util::display::array_value_to_string;

/// Sorted rows of each table, as text; a table that is not there has no entry.
type State = BTreeMap<String, Vec<String>>;

fn open(disk: &SimulatedDisk, workers: usize) -> Result<Session, Error> {
    let keeping =
        StoreOptions { segment_bytes: 4096, snapshot_bytes: 8192, threads: Threads::None, ..StoreOptions::default() };
    let options = Options { workers, durability: Durability::Full, ..Options::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, options)
}

fn rows(session: &mut Session, sql: &str) -> Result<Vec<String>, Error> {
    let rows = session.query(sql)?;
    let mut lines = Vec::new();
    for batch in &rows.batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| array_value_to_string(column, row).expect("a value"));
            lines.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    lines.sort();
    Ok(lines)
}

fn tables(session: &mut Session) -> State {
    let names = ["t0", "t1", "t2"];
    let there =
        session.relations().into_iter().map(|relation| relation.name).filter(|name| names.contains(&name.as_str()));
    let there: Vec<String> = there.collect();
    there
        .into_iter()
        .map(|name| (name.clone(), rows(session, &format!("SELECT * FROM {name}")).expect("a table is read")))
        .collect()
}

/// Views, by name, and the queries whose rows they hold.
const VIEWS: &[(&str, &str)] = &[
    ("v0", "SELECT b, count(*) AS n, sum(a) AS s, max(c) AS c FROM t0 GROUP BY b"),
    ("v1", "SELECT x.a, y.c FROM t0 x JOIN t1 y ON x.b = y.b"),
    ("v2", "SELECT n, count(*) AS m FROM v0 GROUP BY n"),
    ("v3", "SELECT DISTINCT b FROM t1"),
    ("v4", "SELECT a, c FROM t0 ORDER BY a DESC, c LIMIT 3"),
];

fn check_views(session: &mut Session) {
    let there: Vec<String> = session.relations().into_iter().map(|relation| relation.name).collect();
    for (view, query) in VIEWS.iter().filter(|(view, _)| there.iter().any(|name| name == view)) {
        let held = rows(session, &format!("SELECT * FROM {view}")).expect("a view is read");
        assert_eq!(held, rows(session, query).expect("a query is answered"), "{view}");
    }
}

/// A script that is one commit, or none.
fn script(rng: &mut Rng) -> String {
    let table = format!("t{}", rng.below(2));
    let row = |rng: &mut Rng| {
        let c = if rng.below(4) == 0 { "NULL".to_string() } else { format!("'text {}'", rng.below(9)) };
        format!("({}, {}, {c})", rng.below(30), rng.below(4))
    };
    let insert = |rng: &mut Rng, table: &str| {
        let n_rows_max = if rng.below(10) == 0 { 200 } else { 6 };
        let rows: Vec<String> = (0..1 + rng.below(n_rows_max)).map(|_| row(rng)).collect();
        format!("INSERT INTO {table} VALUES {}", rows.join(", "))
    };
    match rng.below(20) {
        0..8 => insert(rng, &table),
        8..10 => format!("DELETE FROM {table} WHERE b = {} AND a < {}", rng.below(4), rng.below(30)),
        10..12 => format!("UPDATE {table} SET c = 'changed', a = a + 1 WHERE b = {}", rng.below(4)),
        12..14 => format!(
            "BEGIN; {}; DELETE FROM t1 WHERE a = {}; {}; COMMIT",
            insert(rng, "t0"),
            rng.below(30),
            insert(rng, "t1")
        ),
        14 => format!("CREATE TABLE t2 AS SELECT b, count(*) AS n FROM {table} GROUP BY b"),
        15 => "DROP TABLE t2".to_string(),
        16 => {
            let (view, query) = VIEWS[rng.below(VIEWS.len())];
            format!("CREATE MATERIALIZED VIEW {view} AS {query}")
        }
        17 => format!("DROP MATERIALIZED VIEW {} CASCADE", VIEWS[rng.below(VIEWS.len())].0),
        18 => format!("CREATE INDEX ON {table} ({})", ["a", "b", "c"][rng.below(3)]),
        _ => format!("BEGIN; {}; ROLLBACK", insert(rng, &table)),
    }
}

/// Tables' states since the database was opened, and how many are known to last.
struct History {
    states: Vec<State>,
    n_durable: usize,
}

/// Runs scripts until something outside fails. A statement that is refused has changed nothing.
fn work(session: &mut Session, shadow: &mut Session, history: &mut History, rng: &mut Rng) {
    for _ in 0..rng.below(25) {
        let script = script(rng);
        // The shadow is a database in memory: it says what the statement does if it takes effect.
        let before = tables(shadow);
        let expected = shadow.execute(&script);
        let after = tables(shadow);
        history.states.push(after);
        match session.execute(&script) {
            Ok(_) => {
                assert!(expected.is_ok(), "{script}: {expected:?}");
                history.n_durable = history.states.len() - 1;
            }
            Err(error) if expected.is_err() && !is_of_disk(&error) => {
                let _ = history.states.pop();
                assert_eq!(tables(shadow), before);
                let _ = (session.execute("ROLLBACK"), shadow.execute("ROLLBACK"));
            }
            Err(error) => {
                assert!(is_of_disk(&error), "{script}: {error:?}");
                return;
            }
        }
        if rng.below(6) == 0 {
            check_views(session);
        }
    }
}

fn is_of_disk(error: &Error) -> bool {
    ["53100", "58030", "25006"].contains(&error.sqlstate())
}

/// A database in memory with the same definitions and rows.
fn shadow_of(disk: &SimulatedDisk) -> Session {
    let mut script = Vec::new();
    anabranch_engine::dump_on(disk, anabranch_engine::DumpOptions::default(), &mut script).expect("it can be dumped");
    let mut shadow = Session::new(Options::default()).expect("a session starts");
    let script = String::from_utf8(script).expect("a script is text");
    shadow.execute(&script).unwrap_or_else(|error| panic!("{}", error.render(&script)));
    shadow
}

fn case(rng: &mut Rng) {
    let mut disk = SimulatedDisk::new();
    {
        let mut session = open(&disk, 0).expect("an empty disk opens");
        session
            .execute("CREATE TABLE t0 (a int, b int, c text); CREATE TABLE t1 (a int, b int, c text)")
            .expect("tables are made");
    }
    let mut state = tables(&mut open(&disk, 0).expect("it opens again"));
    for _ in 0..5 {
        let mut shadow = shadow_of(&disk);
        assert_eq!(tables(&mut shadow), state, "a dump makes the same tables");
        let fault = rng.below(5);
        let faults = match fault {
            0 | 1 => Faults { stops_at: Some(disk.n_operations() + rng.below(90) as u64), ..Faults::default() },
            2 => Faults { capacity_bytes: Some(2000 + rng.below(9000) as u64), ..Faults::default() },
            _ => Faults::default(),
        };
        let workers = if rng.below(8) == 0 { 2 } else { 0 };
        disk.set_faults(faults);
        let mut history = History { states: vec![state.clone()], n_durable: 0 };
        match open(&disk, workers) {
            Ok(mut session) => {
                assert_eq!(tables(&mut session), state, "opening twice gives the same");
                check_views(&mut session);
                if fault == 3 {
                    disk.set_faults(Faults { sync_fails: true, ..Faults::default() });
                }
                work(&mut session, &mut shadow, &mut history, rng);
                if fault == 2 && session.execute("SELECT 1").is_ok() {
                    // A full disk: what was written last was refused, and reads go on.
                    let held = tables(&mut session);
                    assert_eq!(held, history.states[history.n_durable], "what was refused is not there");
                    check_views(&mut session);
                }
            }
            Err(error) => assert!(is_of_disk(&error), "{error:?}"),
        }
        disk.set_faults(Faults::default());
        if fault != 4 {
            disk = disk.crash(|bound| rng.below(bound.max(1)));
        }
        let mut session = open(&disk, workers).unwrap_or_else(|error| panic!("{}", error.render("")));
        let found = tables(&mut session);
        let place = history.states.iter().rposition(|state| *state == found);
        let place = place.unwrap_or_else(|| panic!("{found:?} is no state that was"));
        // (Equal states may come several times; the latest of them is as good.)
        assert!(place >= history.n_durable, "state {} was acknowledged, {place} is there", history.n_durable);
        check_views(&mut session);
        state = found;
    }
}

#[test]
fn a_database_holds_what_was_acknowledged_wherever_it_stopped() {
    cases("restore", 12, case);
}
