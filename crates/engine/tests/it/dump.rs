//! A database written as a script makes an equal one.

use std::sync::Arc;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{DumpOptions, Options, Session, SourceRows, dump_on};

use crate::support::{ask, run};

fn open(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap()
}

fn script(disk: &SimulatedDisk, sources: SourceRows) -> String {
    let mut script = Vec::new();
    dump_on(disk, DumpOptions { sources }, &mut script).unwrap();
    String::from_utf8(script).unwrap()
}

/// A database with every type, NULLs, quotes, copies of rows, views over views.
const MAKE: &str = r#"
CREATE TABLE "odd "" name" ("select" int PRIMARY KEY, "ä" text NOT NULL DEFAULT 'it''s');
INSERT INTO "odd "" name" VALUES (1, 'a''b'), (-2, E'line\nbreak; -- no comment'), (3, ''), (4, '\x');
CREATE TABLE types (
    a smallint, b int, c bigint, d real, e double precision, f numeric, g numeric(12, 3), h numeric(38, 9), i text,
    j varchar(5), k char(3), l bytea, m date, n time, o timestamp, p timestamptz, q interval, r boolean, s uuid, t jsonb,
    u int[], v text[]
);
INSERT INTO types VALUES
    (1, -2147483648, 9223372036854775807, 1.5, 0.1, 123456789012345678901234567890.5, 1.25, -0.000000001, 'x', 'abcde',
     'ab', '\x00ff27', '2024-02-29', '23:59:59.999999', '1969-12-31 23:59:59.5', '2024-01-01 00:00:00+02',
     '1 year 2 days 03:04:05.5', true, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"a": [1, null, "q\"uote"]}',
     '{1,NULL,3}', '{"a b","it''s",NULL,""}'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (-32768, 0, 0, '-Infinity', 'NaN', 'NaN', 0, 0, '', '', '', '', '0001-01-01', '00:00', '9999-12-31 00:00:00',
     '1970-01-01 00:00:00+00', '-1 mon', false, NULL, 'null', '{}', '{}');
CREATE TABLE copies (a int, b text);
INSERT INTO copies VALUES (1, 'x'), (1, 'x'), (1, NULL), (2, 'y'); DELETE FROM copies WHERE a = 2;
CREATE TABLE timed (k int, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '1 second');
INSERT INTO timed VALUES (1, '2024-01-01 00:00:10'), (2, '2024-01-01 00:00:01'), (3, NULL);
CREATE TABLE passing (k int) WITH (retain = 'none');
CREATE VIEW first AS SELECT a, count(*) AS n FROM copies GROUP BY a;
CREATE MATERIALIZED VIEW "Second" AS SELECT sum(n) AS n FROM first -- of all
;
CREATE MATERIALIZED VIEW passed AS SELECT sum(k) AS k FROM passing;
CREATE INDEX ON first (n);
INSERT INTO passing VALUES (1), (2);
SET retain_history = '90 s';
"#;

const QUESTIONS: &[&str] = &[
    "SELECT * FROM \"odd \"\" name\" ORDER BY 1",
    "SELECT * FROM types ORDER BY a",
    "SELECT * FROM copies ORDER BY a, b",
    "SELECT * FROM timed ORDER BY k",
    "SELECT * FROM first ORDER BY a",
    "SELECT * FROM \"Second\"",
    "SELECT * FROM passed",
    "SHOW TABLES",
    "SHOW VIEWS",
    "SHOW MATERIALIZED VIEWS",
    "SHOW INDEXES",
    "SHOW WATERMARKS",
    "SHOW retain_history",
    "DESCRIBE types",
    "DESCRIBE \"odd \"\" name\"",
];

fn answers(session: &mut Session) -> Vec<Vec<String>> {
    QUESTIONS.iter().map(|question| ask(session, question)).collect()
}

#[test]
fn a_script_makes_an_equal_database() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, MAKE);
    let expected = answers(&mut session);
    drop(session);
    let first = script(&disk, SourceRows::ReadAgain);
    let copy = SimulatedDisk::new();
    let mut session = open(&copy);
    run(&mut session, &first);
    assert_eq!(answers(&mut session), expected, "{first}");
    drop(session);
    // Written again, it is the same script, but for the order of rows and the commit's time.
    let sorted = |script: &str| {
        let mut lines: Vec<String> =
            script.lines().skip(1).map(|line| line.trim_end_matches([',', ';']).to_string()).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&script(&copy, SourceRows::ReadAgain)), sorted(&first));
    // And the original was not changed by being read.
    assert_eq!(answers(&mut open(&disk)), expected);
}
