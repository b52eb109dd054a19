//! Results of frames as relations: SQL reads them, joins them and subscribes to them.

use std::time::Duration;

use anabranch_engine::frame::{EmitWhen, Event, FOREVER, Frame, How, col, count, floor_div, lit, sum, window_end};
use anabranch_engine::{Changes, ErrorKind, Outcome, Session};

use super::support::{ask, fail, lines, run, session, whole, with_workers};

const READINGS: &str =
    "CREATE TABLE readings (sensor text, at bigint, x bigint, WATERMARK FOR at AS at - 2) APPEND ONLY";

fn sums(session: &Session) -> Frame {
    let readings = session.events("readings").unwrap().frame();
    readings.tumbling(10).group_by([col("sensor")]).agg([sum(col("x")).alias("sum")])
}

fn refused<T: std::fmt::Debug>(result: Result<T, anabranch_engine::Error>) -> String {
    result.unwrap_err().message
}

/// A view of windows shows the windows that are over as far as the watermark has come, whatever the
/// commits that brought the rows.
#[test]
fn windows_close_with_the_watermark() {
    with_workers(|session| {
        run(session, READINGS);
        run(session, "CREATE TABLE names (sensor text, name text); INSERT INTO names VALUES ('a', 'hall')");
        let frame = sums(session);
        session.create_view("sums", &frame).unwrap();
        run(session, "CREATE MATERIALIZED VIEW named AS SELECT name, sum FROM sums JOIN names USING (sensor)");
        run(session, "INSERT INTO readings VALUES ('a', 3, 5)");
        assert!(ask(session, "SELECT * FROM sums").is_empty());
        run(session, "INSERT INTO readings VALUES ('a', 7, 6), ('b', 9, 1)");
        run(session, "INSERT INTO readings VALUES ('b', 11, 1), ('a', 13, 2)");
        assert_eq!(ask(session, "SELECT * FROM sums ORDER BY 1"), ["a 11", "b 1"]);
        assert_eq!(ask(session, "SELECT * FROM named"), ["hall 11"]);
        run(session, "INSERT INTO readings VALUES ('a', 23, 4)");
        assert_eq!(ask(session, "SELECT * FROM sums ORDER BY 1"), ["a 2", "b 1"]);
        assert_eq!(ask(session, "SELECT * FROM named"), ["hall 2"]);
        // Late: the table leaves it out.
        run(session, "INSERT INTO readings VALUES ('a', 4, 100)");
        assert_eq!(ask(session, "SELECT sum(sum) FROM sums"), ["3"]);
    });
}

/// A view that is made when there are rows begins with them.
#[test]
fn a_view_begins_with_the_rows_that_are_there() {
    with_workers(|session| {
        run(session, READINGS);
        run(session, "INSERT INTO readings VALUES ('a', 3, 5), ('a', 13, 1), (NULL, NULL, 7)");
        let frame = sums(session);
        session.create_view("sums", &frame).unwrap();
        assert_eq!(ask(session, "SELECT * FROM sums"), ["a 5"]);
        run(session, "CREATE INDEX ON sums (sensor); INSERT INTO readings VALUES ('b', 12, 2), ('b', 23, 2)");
        assert_eq!(ask(session, "SELECT sum FROM sums WHERE sensor = 'b'"), ["2"]);
    });
}

/// What subscribers see of a view adds up to what readers see, commit by commit.
#[test]
fn subscribers_hear_of_the_commits_that_change_a_view() {
    let mut session = session(0);
    run(&mut session, READINGS);
    let frame = sums(&session);
    session.create_view("sums", &frame).unwrap();
    let Some(Outcome::Subscription(subscription)) = run(&mut session, "SUBSCRIBE sums").pop() else { panic!() };
    let mut heard = Vec::new();
    for at in [3, 13, 14, 25, 33] {
        run(&mut session, &format!("INSERT INTO readings VALUES ('a', {at}, 1)"));
        while let Changes::Rows(rows) = session.next_changes(&subscription, Duration::ZERO).unwrap() {
            let rows = whole(&rows);
            heard.extend(super::support::batch_lines(&rows));
        }
    }
    let diffs: Vec<String> = heard.iter().map(|line| line.split(' ').skip(1).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(diffs, ["1 a 1", "-1 a 1", "1 a 2", "-1 a 2", "1 a 1"], "{heard:?}");
}

/// The contents of a table as events, counted, are what SQL counts, after each of many changes.
#[test]
fn contents_by_commits_are_those_of_the_table() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint PRIMARY KEY, g bigint, x bigint)");
        run(session, "INSERT INTO t VALUES (0, 0, 7)");
        let frame = session.contents("t").unwrap().frame();
        let frame = frame.group_by([col("g")]).agg([count(col("k")).alias("n"), sum(col("x")).alias("s")]);
        session.create_view("of_frame", &frame).unwrap();
        let mut state = 9u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..60 {
            let (key, group, x) = (below(12), below(3), below(5));
            let statement = match below(3) {
                0 => format!("DELETE FROM t WHERE k = {key}"),
                1 => format!("UPDATE t SET g = {group}, x = x + 1 WHERE k <= {key}"),
                _ => format!("INSERT INTO t VALUES ({key}, {group}, {x}) ON CONFLICT (k) DO UPDATE SET x = excluded.x"),
            };
            run(session, &statement);
            let of_sql = ask(session, "SELECT g, count(k), sum(x) FROM t GROUP BY g ORDER BY g");
            assert_eq!(ask(session, "SELECT * FROM of_frame ORDER BY g"), of_sql, "after {statement}");
        }
    });
}

/// Frames over views of SQL over frames over views of SQL: each commit is seen as a whole.
#[test]
fn frames_read_views_of_sql() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (k bigint PRIMARY KEY, g bigint, x bigint); INSERT INTO t VALUES (0, 0, 7);
             CREATE MATERIALIZED VIEW totals AS SELECT g, sum(x) AS s FROM t GROUP BY g",
        );
        let counts = |frame: Frame, key: &str, n: &str| frame.group_by([col(key)]).agg([count(lit(1)).alias(n)]);
        let frame = counts(session.contents("totals").unwrap().frame(), "s", "n");
        session.create_view("by_sum", &frame).unwrap();
        run(session, "CREATE MATERIALIZED VIEW doubled AS SELECT n * 2 AS n FROM by_sum JOIN totals USING (s)");
        let frame = counts(session.contents("doubled").unwrap().frame(), "n", "times");
        session.create_view("by_count", &frame.alter_duration(FOREVER)).unwrap();
        // A frame of its own rows and of those that come last.
        let both = session.contents("t").unwrap().frame();
        let both = both.join(&session.contents("by_sum").unwrap().frame(), [col("x")], [col("s")], How::Inner);
        session.create_view("both", &both.select([col("k"), col("n")])).unwrap();
        let Some(Outcome::Subscription(subscription)) = run(session, "SUBSCRIBE by_sum WITH (PROGRESS)").pop() else {
            panic!()
        };
        let mut state = 5u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut heard = 0;
        for _ in 0..40 {
            let (key, group, x) = (below(9), below(3), below(3));
            let statement = match below(3) {
                0 => format!("DELETE FROM t WHERE k = {key}"),
                1 => format!("UPDATE t SET g = {group} WHERE k <= {key}"),
                _ => format!("INSERT INTO t VALUES ({key}, {group}, {x}) ON CONFLICT (k) DO UPDATE SET x = excluded.x"),
            };
            run(session, &statement);
            let by_sum = "SELECT s, count(*) AS n FROM (SELECT sum(x) AS s FROM t GROUP BY g) AS q GROUP BY s";
            assert_eq!(ask(session, "SELECT * FROM by_sum ORDER BY s"), ask(session, &format!("{by_sum} ORDER BY s")));
            let joined = format!("SELECT k, n FROM t JOIN ({by_sum}) AS q ON t.x = q.s ORDER BY k");
            assert_eq!(ask(session, "SELECT k, n FROM both ORDER BY k"), ask(session, &joined), "{statement}");
            while let Changes::Rows(rows) = session.next_changes(&subscription, Duration::ZERO).unwrap() {
                let rows = whole(&rows);
                heard += rows.num_rows();
            }
        }
        assert!(heard > 20, "{heard}");
        let error = fail(session, "DROP MATERIALIZED VIEW totals");
        assert!(error.detail.unwrap_or_default().contains("\"by_sum\""));
        run(session, "DROP MATERIALIZED VIEW totals CASCADE; DELETE FROM t");
        assert_eq!(lines(&session.query("SHOW MATERIALIZED VIEWS").unwrap()), Vec::<String>::new());
    });
}

/// A view of SQL with a row in error fails the frames that read it; commits go on.
#[test]
fn a_row_in_error_of_a_view_fails_the_frames_that_read_it() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint, x bigint); CREATE MATERIALIZED VIEW q AS SELECT k, 10 / x AS y FROM t");
        let frame = session.contents("q").unwrap().frame();
        session.create_view("copied", &frame).unwrap();
        run(session, "INSERT INTO t VALUES (1, 5)");
        assert_eq!(ask(session, "SELECT * FROM copied"), ["1 2"]);
        run(session, "INSERT INTO t VALUES (1, 0)");
        assert!(fail(session, "SELECT * FROM copied").message.contains("division by zero"));
        run(session, "DELETE FROM t WHERE x = 0");
        assert_eq!(ask(session, "SELECT * FROM q"), ["1 2"]);
        run(session, "DROP MATERIALIZED VIEW copied; INSERT INTO t VALUES (2, 2)");
        session.create_view("copied", &frame).unwrap();
        assert_eq!(ask(session, "SELECT * FROM copied ORDER BY k"), ["1 2", "2 5"]);
    });
}

/// Law: rows cut into commits in several ways, under 0, 1 and 2 workers, end in one view, which is
/// what a run of the frame by itself has in force.
#[test]
fn a_view_does_not_depend_on_the_cut_into_commits() {
    let rows: Vec<(i64, i64)> = (0..60).map(|i| (i * 37 % 5 + i, i * 31 % 11)).collect();
    let frame_of = |frame: Frame| {
        let windows = frame.hopping(20, 10, 0).emit(EmitWhen::Early);
        windows.group_by([floor_div(col("x"), lit(4)).alias("part")]).agg([sum(col("x")).alias("s")])
    };
    let mut alone = session(0);
    run(&mut alone, "CREATE TABLE r (at bigint, x bigint, WATERMARK FOR at AS at - 8) APPEND ONLY");
    let frame = frame_of(alone.events("r").unwrap().frame());
    let mut at_work = alone.start(&frame).unwrap();
    let events = rows.iter().map(|(at, x)| Event::start(*at, [(*at).into(), (*x).into()]));
    at_work.push("r", events.collect::<Vec<_>>()).unwrap();
    let last = rows.iter().map(|row| row.0).max().unwrap() - 8;
    at_work.advance("r", last).unwrap();
    let mut held = std::collections::BTreeMap::new();
    for batch in at_work.changes().unwrap() {
        for row in 0..batch.len() {
            let values: Vec<String> = (0..batch.columns().len())
                .map(|column| {
                    datafusion_common::ScalarValue::try_from_array(batch.column(column), row).unwrap().to_string()
                })
                .collect();
            *held.entry(values.join(" ")).or_insert(0) += batch.diffs().get(row);
        }
    }
    held.retain(|_, n| *n != 0);
    drop(at_work);
    let expected: Vec<String> = held.into_keys().collect();
    assert!(expected.len() > 1, "{expected:?}");
    for cut in [1, 7, 60] {
        with_workers(|session| {
            run(session, "CREATE TABLE r (at bigint, x bigint, WATERMARK FOR at AS at - 8) APPEND ONLY");
            let frame = frame_of(session.events("r").unwrap().frame());
            session.create_view("v", &frame).unwrap();
            for part in rows.chunks(cut) {
                let values: Vec<String> = part.iter().map(|(at, x)| format!("({at}, {x})")).collect();
                run(session, &format!("INSERT INTO r VALUES {}", values.join(", ")));
            }
            let mut found = ask(session, "SELECT * FROM v");
            found.sort();
            assert_eq!(found, expected, "{cut} rows a commit");
        });
    }
}

/// Results of windows that last for ever are all there, however far one commit takes the watermark.
#[test]
fn results_that_last_are_kept() {
    let mut session = session(2);
    run(&mut session, READINGS);
    let readings = session.events("readings").unwrap().frame();
    let windows = readings.tumbling(10).group_by([col("sensor")]).agg([sum(col("x")).alias("sum")]);
    let all = windows.with_columns([window_end().alias("upto")]).alter_duration(FOREVER);
    session.create_view("sums", &all).unwrap();
    run(&mut session, "INSERT INTO readings VALUES ('a', 3, 5), ('a', 13, 6), ('a', 18, 1), ('a', 90, 1)");
    assert_eq!(ask(&mut session, "SELECT sum, upto FROM sums ORDER BY upto"), ["5 10", "7 20"]);
}

/// A frame reads the view of another frame.
#[test]
fn a_frame_reads_the_view_of_a_frame() {
    let mut session = session(1);
    run(&mut session, "CREATE TABLE t (k bigint, x bigint)");
    let big = session.contents("t").unwrap().frame().filter(col("x").gt(lit(10i64)));
    session.create_view("big", &big).unwrap();
    let both = session.contents("big").unwrap().frame();
    let both = both.join(&session.contents("t").unwrap().frame(), [col("k")], [col("k")], How::Inner);
    let both = both.group_by(Vec::<anabranch_engine::frame::Expr>::new()).agg([count(col("k")).alias("n")]);
    session.create_view("n", &both).unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 11), (1, 2), (2, 3)");
    assert_eq!(ask(&mut session, "SELECT * FROM n"), ["2"]);
    run(&mut session, "DELETE FROM t WHERE x = 2");
    assert_eq!(ask(&mut session, "SELECT * FROM n"), ["1"]);
}

#[test]
fn dropping_works_both_ways() {
    let mut session = session(1);
    run(&mut session, READINGS);
    let frame = sums(&session);
    session.create_view("sums", &frame).unwrap();
    assert!(refused(session.create_view("sums", &frame)).contains("already exists"));
    let error = fail(&mut session, "DROP TABLE readings");
    assert!(error.detail.unwrap_or_default().contains("materialized view \"sums\""));
    assert!(fail(&mut session, "INSERT INTO sums VALUES ('a', 1)").message.contains("not a table"));
    run(&mut session, "DROP MATERIALIZED VIEW sums; INSERT INTO readings VALUES ('a', 3, 5), ('a', 30, 5)");
    session.create_view("sums", &frame).unwrap();
    run(&mut session, "CREATE VIEW over AS SELECT count(*) FROM sums");
    run(&mut session, "DROP TABLE readings CASCADE");
    assert_eq!(lines(&session.query("SHOW MATERIALIZED VIEWS").unwrap()), Vec::<String>::new());
    run(&mut session, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
}

/// A row in error fails the view that it is of, and those that read it; nothing else.
#[test]
fn a_row_in_error_fails_the_view_alone() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint, x bigint)");
        let frame = session.contents("t").unwrap().frame().select([(lit(10i64) / col("x")).alias("q")]);
        session.create_view("quotients", &frame).unwrap();
        run(session, "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM quotients");
        run(session, "INSERT INTO t VALUES (1, 5)");
        assert_eq!(ask(session, "SELECT * FROM n"), ["1"]);
        run(session, "INSERT INTO t VALUES (1, 0)");
        let error = fail(session, "SELECT * FROM quotients");
        assert!(error.message.contains("\"quotients\" has failed: division by zero"), "{}", error.message);
        assert_eq!(error.kind, ErrorKind::Data);
        assert!(fail(session, "SELECT * FROM n").message.contains("has failed"));
        run(session, "INSERT INTO t VALUES (1, 2)");
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["3"]);
        run(session, "DROP MATERIALIZED VIEW quotients CASCADE; DELETE FROM t WHERE x = 0");
        session.create_view("quotients", &frame).unwrap();
        assert_eq!(ask(session, "SELECT * FROM quotients ORDER BY 1"), ["2", "5"]);
    });
}

#[test]
fn what_a_frame_cannot_read_is_refused() {
    let mut session = session(0);
    run(
        &mut session,
        "CREATE TABLE t (k bigint, at bigint, WATERMARK FOR at AS at);
         CREATE TABLE plain (k bigint, n numeric);
         CREATE VIEW v AS SELECT k FROM t",
    );
    run(&mut session, READINGS);
    assert!(refused(session.events("nothing")).contains("does not exist"));
    assert!(refused(session.events("plain")).contains("has no watermark"));
    assert!(refused(session.events("t")).contains("may be changed"));
    assert!(refused(session.contents("plain")).contains("numeric without a scale"));
    assert!(refused(session.contents("v")).contains("is not kept, so frames cannot read it"));
    let readings = session.events("readings").unwrap().frame();
    let contents = session.contents("t").unwrap().frame();
    let mixed = readings.join(&contents, [col("x")], [col("k")], How::Inner);
    assert!(refused(session.create_view("m", &mixed)).contains("another by commits"));
    let pushed = anabranch_engine::frame::Events::input("other", readings.schema().unwrap()).frame();
    assert!(refused(session.create_view("m", &pushed)).contains("no relation of the session"));
    run(&mut session, "BEGIN");
    assert!(refused(session.create_view("m", &readings)).contains("inside a transaction"));
    run(&mut session, "ROLLBACK");
    session.create_view("m", &readings).unwrap();
    run(&mut session, "BEGIN; INSERT INTO readings VALUES ('a', 1, 1)");
    assert!(fail(&mut session, "SELECT * FROM m").message.contains("has not seen this transaction's rows"));
    run(&mut session, "ROLLBACK");
    run(&mut session, "CREATE TABLE d (k bigint, at bigint)");
    let frame = session.contents("d").unwrap().frame();
    session.create_view("c", &frame).unwrap();
    for change in ["ADD COLUMN y int", "DROP COLUMN at", "RENAME COLUMN k TO j", "RENAME TO u"] {
        let error = fail(&mut session, &format!("ALTER TABLE d {change}"));
        let text = format!("{} {}", error.message, error.detail.unwrap_or_default());
        assert!(text.contains("\"c\""), "{change}: {text}");
    }
    run(&mut session, "INSERT INTO readings VALUES ('a', 1, 1), ('a', 9, 1)");
    assert_eq!(ask(&mut session, "SELECT count(*) FROM m"), ["1"]);
}

/// A relation of all events keeps what has ended, whatever the commits, and can be joined. (What is
/// known of a window is in force from its end to the next.)
#[test]
fn all_events_are_a_relation_that_grows() {
    with_workers(|session| {
        run(session, READINGS);
        run(session, "CREATE TABLE names (sensor text, name text); INSERT INTO names VALUES ('a', 'hall')");
        run(session, "INSERT INTO readings VALUES ('a', 3, 5)");
        let frame = sums(session);
        session.create_events_view("sums", &frame).unwrap();
        run(session, "CREATE MATERIALIZED VIEW late AS SELECT sensor, \"end\", sum FROM sums WHERE \"end\" > 20");
        assert!(ask(session, "SELECT * FROM sums").is_empty());
        run(session, "INSERT INTO readings VALUES ('a', 7, 6), ('b', 9, 1), ('b', 13, 1)");
        assert_eq!(ask(session, "SELECT * FROM sums ORDER BY 1, 3"), ["10 20 a 11", "10 20 b 1"]);
        run(session, "INSERT INTO readings VALUES ('a', 23, 4)");
        assert_eq!(ask(session, "SELECT * FROM sums ORDER BY 1, 3"), ["10 20 a 11", "10 20 b 1", "20 30 b 1"]);
        assert_eq!(ask(session, "SELECT * FROM late"), ["b 30 1"]);
        assert_eq!(ask(session, "SELECT name, count(*) FROM sums JOIN names USING (sensor) GROUP BY name"), ["hall 1"]);
        run(session, "DROP MATERIALIZED VIEW late; DROP MATERIALIZED VIEW sums");
        assert!(session.query("SELECT * FROM sums").is_err());
    });
}

/// The end of an event is NULL until it is known; what a table holds ends when a commit takes it.
#[test]
fn ends_of_events_come_when_they_are_known() {
    let mut session = session(0);
    run(&mut session, "CREATE TABLE doors (id bigint PRIMARY KEY, open boolean)");
    let states = session.contents("doors").unwrap().frame();
    session.create_events_view("states", &states).unwrap();
    run(&mut session, "INSERT INTO doors VALUES (1, true), (2, false)");
    run(&mut session, "UPDATE doors SET open = false WHERE id = 1");
    let ended = "SELECT id, open, \"end\" IS NULL, start < coalesce(\"end\", start + INTERVAL '1 day') FROM states ORDER BY id, start";
    assert_eq!(ask(&mut session, ended), ["1 true false true", "1 false true true", "2 false true true"]);
    run(&mut session, "DELETE FROM doors");
    assert_eq!(ask(&mut session, "SELECT count(*), count(\"end\") FROM states"), ["3 3"]);
}

/// A frame whose columns are called as times are is refused, and nothing is left behind.
#[test]
fn a_relation_of_events_has_room_for_its_times() {
    let mut session = session(0);
    run(&mut session, "CREATE TABLE spans (start bigint, at bigint, WATERMARK FOR at AS at) APPEND ONLY");
    let frame = session.events("spans").unwrap().frame();
    assert!(refused(session.create_events_view("all_spans", &frame)).contains("start"));
    run(&mut session, "CREATE TABLE all_spans (a bigint)");
}
