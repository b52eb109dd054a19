//! Sources, COPY, SUBSCRIBE and Ctrl-C.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::*;

#[test]
fn a_select_waits_for_files_to_be_read() {
    let place = Place::new();
    place.write("a.csv", (0..50_000).fold("id,kind\n".to_string(), |text, i| text + &format!("{i},k{}\n", i % 3)));
    let sql = "CREATE SOURCE s WITH (connector = 'file', path = 'a.csv');
               CREATE MATERIALIZED VIEW v AS SELECT kind, count(*) AS n, sum(id) AS total FROM s GROUP BY kind;
               SELECT * FROM v ORDER BY kind";
    for workers in ["0", "1", "2"] {
        let ran = place.run(&["--csv", "--workers", workers, "-c", sql]);
        assert_eq!(ran.good(), "kind,n,total\nk0,16667,416658333\nk1,16667,416675000\nk2,16666,416641667\n");
    }
}

#[test]
fn a_script_loses_no_row_between_a_source_and_its_view() {
    let place = Place::new();
    place.write("a.csv", (0..50_000).fold("id,kind\n".to_string(), |text, i| text + &format!("{i},k{}\n", i % 3)));
    let none = "CREATE SOURCE s WITH (connector = 'file', path = 'a.csv', retain = 'none');
                CREATE TABLE middle (a int); INSERT INTO middle VALUES (1);
                CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s; SELECT n FROM v";
    // Each view comes while the file is read, or after it.
    let all = "CREATE SOURCE s WITH (connector = 'file', path = 'a.csv');
               CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s; INSERT INTO middle VALUES (1);
               CREATE MATERIALIZED VIEW w AS SELECT kind, sum(id) AS total FROM s GROUP BY kind;
               SELECT n, total FROM v, w WHERE kind = 'k1'; SELECT count(*) AS m FROM s WHERE kind = 'k2'";
    for workers in ["0", "2"] {
        assert_eq!(place.run(&["--csv", "--workers", workers, "-c", none]).good(), "n\n50000\n");
        let all = format!("CREATE TABLE middle (a int); {all}");
        let ran = place.run(&["--csv", "--workers", workers, "-c", &all]);
        assert_eq!(ran.good(), "n,total\n50000,416675000\nm\n16666\n");
    }
}

#[test]
fn copy_takes_all_or_nothing_or_skips() {
    let place = Place::new();
    place.write("a.csv", "1,x\noops,y\n3,z\n");
    let ran = place.run(&[
        "--keep-going",
        "--csv",
        "-c",
        "CREATE TABLE t (a int, b text); COPY t FROM 'a.csv'; SELECT count(*) AS n FROM t;
         COPY t FROM 'a.csv' WITH (on_error skip); SELECT count(*) AS n FROM t",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "n\n0\nn\n2\n"));
    assert!(ran.err.contains("invalid input syntax for type integer: \"oops\""), "{}", ran.err);
    assert!(ran.err.contains("COPY t, line 2, column a"), "{}", ran.err);
    assert!(ran.err.contains("notice: 1 rows were skipped; the first: COPY t, line 2"), "{}", ran.err);
}

#[test]
fn skipped_rows_of_a_source_are_told_at_the_end() {
    let place = Place::new();
    place.write("a.csv", "a\n1\nx\n3\n");
    let sql = "CREATE SOURCE s (a int) WITH (connector = 'file', path = 'a.csv', on_error = 'skip'); SELECT sum(a) AS a FROM s";
    let ran = place.run(&["--csv", "-c", sql]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "a\n4\n"));
    let told = "notice: source \"s\" left out 1 bad rows; the first: a.csv, line 3, column \"a\": 'x' is not of type integer\n";
    assert_eq!(ran.err, told);
}

#[test]
fn a_failed_source_fails_the_answers_that_wait_for_it() {
    let place = Place::new();
    place.write("a.csv", "a\n1\nx\n3\n");
    let sql = "CREATE SOURCE s (a int) WITH (connector = 'file', path = 'a.csv'); SELECT sum(a) AS a FROM s;
               SET wait_for_sources = off; SELECT sum(a) AS a FROM s";
    let ran = place.run(&["--keep-going", "--csv", "-c", sql]);
    assert!(ran.err.contains("a.csv, line 3, column \"a\": 'x' is not of type integer"), "{}", ran.err);
    assert_eq!((ran.code, ran.out.as_str()), (1, "a\n1\n"));
}

#[test]
fn a_missing_file_names_the_nearest() {
    let place = Place::new();
    place.write("flights.csv", "a\n1\n");
    let ran = place.run(&["-c", "CREATE SOURCE s WITH (connector = 'file', path = 'flihgts.csv')"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("file flihgts.csv does not exist\nhint: Did you mean flights.csv?"), "{}", ran.err);
}

#[test]
fn a_subscription_ends_with_its_source() {
    let place = Place::new();
    place.write("a.json", "{\"a\": 1}\n{\"a\": 2}\n");
    let sql = "CREATE SOURCE s WITH (connector = 'file', path = 'a.json'); SUBSCRIBE (SELECT sum(a) AS total FROM s)";
    let ran = place.run(&["-q", "--jsonl", "-c", sql]);
    let last = ran.good().lines().last().unwrap();
    assert!(last.ends_with("\"diff\":1,\"total\":3}"), "{}", ran.out);
}

#[test]
fn an_interrupt_stops_a_subscription_with_130() {
    let place = Place::new();
    let mut child = place
        .command(&["--csv", "-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (7); SUBSCRIBE t"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "time,diff,a");
    assert!(lines.next().unwrap().unwrap().ends_with(",1,7"));
    assert_eq!(interrupted(child), Some(130));
}

#[test]
fn an_interrupt_stops_a_join_of_everything_with_130() {
    let place = Place::new();
    let script = "CREATE TABLE m (id bigint); INSERT INTO m SELECT unnest(generate_series(1, 100000));
                  CREATE TABLE begun (a int); SELECT count(*) AS n FROM begun; SELECT count(*) FROM m a JOIN m b ON a.id < b.id";
    for workers in ["0", "2"] {
        let mut child = place
            .command(&["--csv", "--workers", workers, "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "n");
        assert_eq!(lines.next().unwrap().unwrap(), "0");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(interrupted(child), Some(130), "{workers} workers");
    }
}

/// Interrupts a program, and the code it ends with.
#[track_caller]
fn interrupted(mut child: Child) -> Option<i32> {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            None => {
                child.kill().unwrap();
                panic!("the interrupt was ignored");
            }
        }
    };
    status.code()
}

#[test]
fn files_are_read_where_they_stand_in_from() {
    let place = Place::new();
    place.write("items.csv", "id;name\n1;tea\n2;jam\n");
    place.write("prices.json", "{\"id\": 1, \"price\": 3}\n{\"id\": 2, \"price\": 4}\n");
    place.write("plain.csv", "a,b\n1,x\n");
    let sql = "SELECT items.name, p.price FROM read_csv('items.csv', delim => ';', header = true) AS items
               JOIN 'prices.json' AS p USING (id) ORDER BY 1;
               CREATE TABLE kept AS SELECT * FROM 'plain.csv'; SELECT plain.b, kept.a FROM 'plain.csv', kept;
               SELECT count(*) AS n FROM 'plain.csv' a, 'plain.csv' b; SHOW TABLES";
    for workers in ["0", "1"] {
        let ran = place.run(&["--csv", "--workers", workers, "-c", sql]);
        let expected = "name,price\njam,4\ntea,3\nb,a\nx,1\nn\n1\n";
        assert!(ran.good().starts_with(expected), "{}", ran.out);
        assert!(!ran.out.contains("__file"), "{}", ran.out);
    }
    let ran =
        place.run(&["--keep-going", "-c", "CREATE VIEW v AS SELECT * FROM 'plain.csv'; SELECT * FROM 'nosuch.csv'"]);
    assert!(ran.err.contains("CREATE SOURCE name"), "{}", ran.err);
    assert!(ran.err.contains("nosuch.csv"), "{}", ran.err);
}
