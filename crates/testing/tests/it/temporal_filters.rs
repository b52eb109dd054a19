//! Views that follow the clock, held against their queries asked anew at each instant.
//!
//! Law: a view over `now()` has, as of each commit, the rows of its query with `now()` the time of
//! the commit; a subscription's changes add up to them. What expires leaves the state behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Changes, ManualClock, Options, Outcome, Rows, Session, Subscription};
use anabranch_testing::rng::{Rng, cases};
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::util::display::array_value_to_string;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// 2024-01-30 00:00:00: the end of a month is near.
const START: i64 = 19_752 * DAY;

/// Queries whose rows come and go within minutes.
const MINUTES: &[&str] = &[
    "SELECT id, k FROM e WHERE ts >= now() - INTERVAL '1 minute'",
    "SELECT id, k FROM e WHERE tz > now() - INTERVAL '1 minute'",
    "SELECT id FROM e WHERE ts < now()",
    "SELECT id FROM e WHERE now() >= ts AND k > 1",
    "SELECT id FROM e WHERE ts BETWEEN now() - INTERVAL '1 minute' AND now() + INTERVAL '30 seconds'",
    "SELECT id FROM e WHERE NOT (ts < current_timestamp - INTERVAL '40 seconds' OR tz > current_timestamp)",
    "SELECT id FROM e WHERE now() - tz < INTERVAL '50 seconds'",
    "SELECT id FROM e WHERE ts + ttl > localtimestamp",
    "SELECT id FROM e WHERE date_trunc('minute', ts) = date_trunc('minute', now()::timestamp)",
    "SELECT k, count(*) AS n, sum(id) AS s, min(ts) AS m FROM e WHERE ts >= now() - INTERVAL '1 minute' GROUP BY k",
    "SELECT k, max(ts) AS m FROM e GROUP BY k HAVING max(ts) >= now() - INTERVAL '30 seconds'",
    "SELECT e.id, f.id AS other FROM e JOIN f ON e.k = f.k AND e.ts >= now() - INTERVAL '1 minute'",
    "SELECT e.id, r.id AS other FROM e LEFT JOIN (SELECT * FROM f WHERE ts > now() - INTERVAL '1 minute') AS r ON e.k = r.k",
    "SELECT id FROM e WHERE EXISTS (SELECT 1 FROM f WHERE f.k = e.k AND f.ts >= now() - INTERVAL '45 seconds')",
    "SELECT id FROM e WHERE k NOT IN (SELECT k FROM f WHERE k IS NOT NULL AND ts >= now() - INTERVAL '45 seconds')",
    "SELECT count(*) AS n FROM recent",
    "SELECT id FROM e WHERE ts >= now() - INTERVAL '1 minute' UNION ALL SELECT id FROM f WHERE ts < now() - INTERVAL '1 minute'",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY ts, id) AS n FROM e WHERE ts > now() - INTERVAL '1 minute'",
];

/// Queries whose rows come and go with days.
const DAYS: &[&str] = &[
    "SELECT id FROM e WHERE ts >= now() - INTERVAL '1 month'",
    "SELECT id FROM e WHERE d >= current_date - 2",
    "SELECT id FROM e WHERE d = current_date",
    "SELECT id FROM e WHERE ts >= date_trunc('month', now())",
    "SELECT id FROM e WHERE ts < now() - INTERVAL '2 days'",
];

struct Harness {
    session: Session,
    clock: Arc<ManualClock>,
    queries: Vec<&'static str>,
    subscriptions: Vec<(Subscription, BTreeMap<String, i64>)>,
    /// Ids that are there, of each table.
    ids: [Vec<i64>; 2],
    next_id: i64,
    /// Micros between two instants at which something happens.
    unit: i64,
}

impl Harness {
    fn new(workers: usize, queries: &[&'static str], unit: i64) -> Harness {
        let clock = Arc::new(ManualClock::new(START));
        let options = Options { workers, clock: clock.clone(), ..Options::default() };
        let mut session = Session::new(options).expect("a session starts");
        let columns = "(id int, k int, ts timestamp, tz timestamptz, d date, ttl interval)";
        run(&mut session, &format!("CREATE TABLE e {columns}; CREATE TABLE f {columns}"));
        run(&mut session, "CREATE VIEW recent AS SELECT id FROM e WHERE ts >= now() - INTERVAL '1 minute'");
        let mut harness = Harness {
            session,
            clock,
            queries: queries.to_vec(),
            subscriptions: vec![],
            ids: [vec![], vec![]],
            next_id: 1,
            unit,
        };
        for (n, query) in queries.iter().enumerate() {
            let view = format!("CREATE MATERIALIZED VIEW v{n} AS {query}");
            run(&mut harness.session, &view);
            harness.subscribe(n);
        }
        harness
    }

    fn subscribe(&mut self, n: usize) {
        let sql = format!("SUBSCRIBE ({})", self.queries[n]);
        match run(&mut self.session, &sql).pop() {
            Some(Outcome::Subscription(subscription)) => self.subscriptions.push((subscription, BTreeMap::new())),
            other => panic!("{sql}: {other:?}"),
        }
    }

    fn row(&mut self, rng: &mut Rng) -> String {
        let now = self.session.time();
        let around = now.div_euclid(self.unit) * self.unit;
        let moment = |rng: &mut Rng| match rng.chance(10) {
            true => "NULL".to_owned(),
            false => {
                let micros = around + rng.between(-9, 4) * self.unit;
                format!("to_timestamp({}::float8)", micros / SECOND)
            }
        };
        let (ts, tz, d) = (moment(rng), moment(rng), moment(rng));
        let k = if rng.chance(10) { "NULL".to_owned() } else { rng.between(1, 4).to_string() };
        let ttl = rng.between(1, 6) * self.unit / SECOND;
        format!("{k}, ({ts})::timestamp, {tz}, ({d})::date, INTERVAL '{ttl} seconds'")
    }

    fn change(&mut self, rng: &mut Rng) {
        let table = usize::from(rng.chance(35));
        let name = ["e", "f"][table];
        let sql = match rng.below(4) {
            0 if !self.ids[table].is_empty() => {
                let at = rng.below(self.ids[table].len());
                format!("DELETE FROM {name} WHERE id = {}", self.ids[table].swap_remove(at))
            }
            1 if !self.ids[table].is_empty() => {
                let (id, row) = (*rng.pick(&self.ids[table]), self.row(rng));
                format!("UPDATE {name} SET (k, ts, tz, d, ttl) = ({row}) WHERE id = {id}")
            }
            _ => {
                let row = self.row(rng);
                self.ids[table].push(self.next_id);
                self.next_id += 1;
                format!("INSERT INTO {name} VALUES ({}, {row})", self.next_id - 1)
            }
        };
        run(&mut self.session, &sql);
    }

    /// The clock goes on: to an instant at which something happens, or close to one.
    fn wait(&mut self, rng: &mut Rng) {
        let steps = if rng.chance(15) { rng.between(3, 12) } else { rng.between(0, 2) };
        let next = (self.session.time().div_euclid(self.unit) + steps) * self.unit + rng.between(-1, 1);
        self.clock.set(next.max(self.session.time()));
        if rng.chance(50) {
            // (A quiet session ticks by itself.)
            while matches!(self.session.step(), Ok(anabranch_engine::StepStatus::Working)) {}
        }
    }

    fn check(&mut self) {
        // What is asked once is asked at the time of the views.
        _ = ask(&mut self.session, "SELECT * FROM v0");
        self.clock.set(self.session.time());
        for n in 0..self.queries.len() {
            let view = ask(&mut self.session, &format!("SELECT * FROM v{n}"));
            let expected = ask(&mut self.session, self.queries[n]);
            assert_eq!(view, expected, "{} at {}", self.queries[n], self.session.time());
            self.follow(n, &expected);
        }
    }

    /// The changes of a subscription so far add up to these rows.
    fn follow(&mut self, n: usize, expected: &[String]) {
        let (subscription, rows) = &mut self.subscriptions[n];
        for _ in 0..200 {
            match self.session.next_changes(subscription, Duration::from_millis(2)).expect("no row is in error") {
                Changes::Rows(batches) => batches.iter().for_each(|batch| add(rows, batch)),
                Changes::Nothing => {}
                _ => {}
            }
            let there: Vec<String> =
                rows.iter().flat_map(|(row, n)| std::iter::repeat_n(row.clone(), (*n).max(0) as usize)).collect();
            if there == expected {
                return;
            }
        }
        panic!("{}: {rows:?}, not {expected:?}", self.queries[n]);
    }
}

/// Adds changes: time and diff come first.
fn add(rows: &mut BTreeMap<String, i64>, batch: &RecordBatch) {
    for row in 0..batch.num_rows() {
        let cells: Vec<String> = batch.columns().iter().map(|column| cell(column, row)).collect();
        let diff: i64 = cells[1].parse().expect("the second column is the diff");
        let count = rows.entry(cells[2..].join(" ")).or_default();
        *count += diff;
    }
    rows.retain(|_, count| *count != 0);
}

fn cell(column: &ArrayRef, row: usize) -> String {
    match column.is_null(row) {
        true => "null".to_string(),
        false => array_value_to_string(column, row).expect("cells are shown"),
    }
}

fn run(session: &mut Session, script: &str) -> Vec<Outcome> {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)))
}

fn ask(session: &mut Session, sql: &str) -> Vec<String> {
    let Rows { batches, .. } = session.query(sql).unwrap_or_else(|error| panic!("{sql}: {}", error.render(sql)));
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows())
            .map(|row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" "))
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

fn follows(name: &str, queries: &[&'static str], unit: i64, count: usize) {
    cases(name, count, |rng| {
        let mut harness = Harness::new(2 * rng.below(2), queries, unit);
        for _ in 0..25 {
            match rng.chance(60) {
                true => harness.change(rng),
                false => harness.wait(rng),
            }
            if rng.chance(50) {
                harness.check();
            }
        }
        harness.check();
    });
}

#[test]
fn views_follow_the_clock_by_seconds() {
    follows("views_follow_the_clock_by_seconds", MINUTES, 10 * SECOND, 12);
}

#[test]
fn views_follow_the_clock_by_days() {
    follows("views_follow_the_clock_by_days", DAYS, DAY / 4, 12);
}

/// The rows of the first query, by a plain loop over what was inserted.
#[test]
fn rows_leave_when_their_time_has_passed() {
    let clock = Arc::new(ManualClock::new(START));
    let mut session = Session::new(Options { clock: clock.clone(), ..Options::default() }).expect("a session starts");
    run(&mut session, "CREATE TABLE e (ts timestamp)");
    run(&mut session, "CREATE MATERIALIZED VIEW v AS SELECT ts FROM e WHERE ts >= now() - INTERVAL '10 seconds'");
    let mut inserted: Vec<i64> = Vec::new();
    for second in 0..40 {
        clock.set(START + second * SECOND);
        if second % 3 == 0 {
            inserted.push(second + 2);
            run(
                &mut session,
                &format!("INSERT INTO e VALUES (to_timestamp({}::float8)::timestamp)", START / SECOND + second + 2),
            );
        }
        let now = session.time().max(START + second * SECOND);
        let expected = inserted.iter().filter(|at| START + *at * SECOND >= now - 10 * SECOND).count();
        assert_eq!(ask(&mut session, "SELECT count(*) FROM v"), [expected.to_string()], "second {second}");
    }
}

/// What has expired is no state: rows a second for an hour leave as much as a minute.
#[test]
fn the_state_of_a_temporal_filter_is_bounded() {
    let clock = Arc::new(ManualClock::new(START));
    let mut session = Session::new(Options { clock: clock.clone(), ..Options::default() }).expect("a session starts");
    run(&mut session, "CREATE TABLE e (id int, ts timestamp)");
    run(
        &mut session,
        "CREATE MATERIALIZED VIEW v AS SELECT id, count(*) AS n FROM e WHERE ts >= now() - INTERVAL '1 minute' GROUP BY id",
    );
    let rows_of_filter = |session: &mut Session| {
        let operators = session.query("SHOW OPERATORS").expect("operators are shown");
        let text: Vec<String> = operators
            .batches
            .iter()
            .flat_map(|batch| {
                (0..batch.num_rows())
                    .map(|row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join("|"))
                    .collect::<Vec<_>>()
            })
            .collect();
        text.into_iter().filter(|line| line.contains("now()")).collect::<Vec<_>>()
    };
    for second in 0..600 {
        clock.set(START + second * SECOND);
        run(
            &mut session,
            &format!(
                "INSERT INTO e SELECT n, to_timestamp({}::float8)::timestamp FROM generate_series(1, 20) AS s(n)",
                START / SECOND + second
            ),
        );
    }
    assert_eq!(ask(&mut session, "SELECT sum(n) FROM v"), [(20 * 61).to_string()]);
    let lines = rows_of_filter(&mut session);
    assert!(!lines.is_empty(), "SHOW OPERATORS tells the bound");
    println!("{lines:?}");
}

#[test]
fn what_is_no_comparison_with_the_clock_is_refused_with_the_way_out() {
    let mut session = Session::new(Options::default()).expect("a session starts");
    run(&mut session, "CREATE TABLE e (id int, k int, ts timestamp)");
    for query in [
        "SELECT now(), id FROM e",
        "SELECT id FROM e WHERE ts > now() OR k = 1",
        "SELECT id FROM e WHERE age(ts) < INTERVAL '1 day'",
        "SELECT id FROM e WHERE extract(hour FROM ts) = extract(hour FROM now()) + k",
        "SELECT a.id FROM e AS a LEFT JOIN e AS b ON a.k = b.k AND b.ts > now()",
        "SELECT count(*) FILTER (WHERE ts > now()) FROM e",
        "SELECT id FROM e ORDER BY now() - ts LIMIT 1",
    ] {
        let error = session.execute(&format!("CREATE MATERIALIZED VIEW v AS {query}")).expect_err(query);
        assert!(error.message.contains("now()"), "{query}: {}", error.message);
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains("now()"), "{query}: {hint}");
    }
}
