//! COPY with the client, and with files, in PostgreSQL's formats.

use std::time::Duration;

use anabranch_engine::{Connection, CopyRows, CopyWay, Error, Outcome, TransactionState};

use crate::connections::{ask, database, fail, run};

/// Sends `bytes`, cut into pieces of that length.
pub fn send(connection: &mut Connection, sql: &str, bytes: &[u8], piece: usize) -> Result<String, Error> {
    let Some(Outcome::Copy(start)) = connection.execute(sql)?.pop() else { panic!("{sql}") };
    assert_eq!(start.way, CopyWay::In);
    bytes.chunks(piece).try_for_each(|piece| connection.copy_data(piece))?;
    match connection.copy_done()? {
        Outcome::Done { tag, .. } => Ok(tag),
        other => panic!("{other:?}"),
    }
}

/// All bytes of a copy, and its tag.
fn taken(connection: &mut Connection, sql: &str) -> (Vec<u8>, String) {
    let Some(Outcome::Copy(start)) = run(connection, sql).pop() else { panic!("{sql}") };
    assert_eq!(start.way, CopyWay::Out);
    let mut bytes = Vec::new();
    loop {
        match connection.copy_rows(Duration::from_secs(5)).unwrap() {
            CopyRows::Data(data) => bytes.extend(data.bytes),
            CopyRows::Nothing => {}
            CopyRows::Done { tag } => return (bytes, tag),
        }
    }
}

fn text(connection: &mut Connection, sql: &str) -> String {
    String::from_utf8(taken(connection, sql).0).unwrap()
}

const TABLE: &str = "CREATE TABLE t (k int PRIMARY KEY, s text, o boolean, n numeric(10,2), p numeric, f float8, d date, \
    ts timestamp, tz timestamptz, i interval, y bytea, u uuid, j jsonb, b bigint, m smallint, r real, c time)";
const ROWS: &str = "INSERT INTO t VALUES \
    (1, E'a\\tb\\\\c\\nd', true, 1.5, 12345.678901, 0.1, '2024-02-29', '2024-02-29 10:20:30.5', '1999-01-01 00:00:00+00', \
     '1 mon 2 days 03:04:05', '\\x00ff', '11111111-2222-3333-4444-555555555555', '{\"a\": 1}', -9, 7, 0.25, '12:34:56'), \
    (2, NULL, false, NULL, -0.0001, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
    (3, '', NULL, -99999999.99, 0, -1e300, '0001-01-01', '1900-01-01', NULL, '-1 day', '', NULL, '[]', 0, -1, 3, '00:00')";

/// PostgreSQL 15 writes these rows so.
#[test]
fn values_are_written_as_postgresql_writes_them() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE v (k int, s text, o boolean)");
    run(
        &mut here,
        "INSERT INTO v VALUES (1, E'a\\tb\\\\c\\nd', true), (2, NULL, false), (3, '', NULL), (4, '\"x\", y', NULL)",
    );
    let query = |options: &str| format!("COPY (SELECT * FROM v ORDER BY k) TO STDOUT {options}");
    assert_eq!(text(&mut here, &query("")), "1\ta\\tb\\\\c\\nd\tt\n2\t\\N\tf\n3\t\t\\N\n4\t\"x\", y\t\\N\n");
    assert_eq!(
        text(&mut here, &query("WITH (FORMAT csv, HEADER)")),
        "k,s,o\n1,\"a\tb\\c\nd\",t\n2,,f\n3,\"\",\n4,\"\"\"x\"\", y\",\n"
    );
    assert_eq!(
        text(&mut here, &query("(FORMAT csv, DELIMITER '|', NULL 'nil', FORCE_QUOTE (k), QUOTE '''')")),
        "'1'|'a\tb\\c\nd'|t\n'2'|nil|f\n'3'||nil\n'4'|\"x\", y|nil\n"
    );
    assert_eq!(text(&mut here, "COPY v (o, k) TO STDOUT (DELIMITER ',')").lines().count(), 4);
    assert_eq!(taken(&mut here, &query("CSV HEADER")).1, "COPY 4");
}

#[test]
fn every_format_reads_what_it_wrote_however_it_is_cut() {
    let database = database();
    let mut here = database.connect().unwrap();
    run(&mut here, TABLE);
    run(&mut here, ROWS);
    run(&mut here, &TABLE.replace("TABLE t", "TABLE again"));
    let before = ask(&mut here, "SELECT * FROM t ORDER BY k");
    for options in ["", "(FORMAT csv)", "(FORMAT csv, HEADER MATCH)", "(FORMAT binary)", "(DELIMITER '|', NULL 'x')"] {
        let (bytes, tag) = taken(&mut here, &format!("COPY t TO STDOUT {}", options.replace("MATCH", "")));
        assert_eq!(tag, "COPY 3", "{options}");
        for piece in [1, 7, 4096] {
            run(&mut here, "TRUNCATE again");
            let sql = format!("COPY again FROM STDIN {options}");
            assert_eq!(send(&mut here, &sql, &bytes, piece).unwrap(), "COPY 3", "{options}");
            assert_eq!(ask(&mut here, "SELECT * FROM again ORDER BY k"), before, "{options} by {piece}");
        }
    }
    for (ending, options) in [("", ""), ("", "(FORMAT binary)"), (".txt", ""), (".tsv", "")] {
        let path = std::env::temp_dir().join(format!("anabranch-copy-{}{ending}", std::process::id()));
        run(&mut here, "TRUNCATE again");
        run(&mut here, &format!("COPY t TO '{}' {options}", path.display()));
        run(&mut here, &format!("COPY again FROM '{}' {options}", path.display()));
        assert_eq!(ask(&mut here, "SELECT * FROM again ORDER BY k"), before, "{ending} {options}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn arrays_and_intervals_come_back_from_files_of_csv() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE lists (k int, i int[], s text[], t interval); CREATE TABLE again (LIKE lists)");
    run(
        &mut here,
        "INSERT INTO lists VALUES (1, '{1,NULL,-3}', '{\"a,b\",NULL,\"\"}', '1 mon 2 days 03:00:00'), (2, '{}', NULL, NULL)",
    );
    let path = std::env::temp_dir().join(format!("anabranch-lists-{}.csv", std::process::id()));
    run(&mut here, &format!("COPY lists TO '{}' (FORMAT csv)", path.display()));
    for options in ["", "(FORMAT csv)"] {
        run(&mut here, &format!("TRUNCATE again; COPY again FROM '{}' {options}", path.display()));
        assert_eq!(ask(&mut here, "SELECT k FROM (TABLE lists EXCEPT TABLE again) AS lost"), Vec::<String>::new());
        assert_eq!(ask(&mut here, "SELECT i[3], s[1] FROM again WHERE k = 1"), ["-3 a,b"]);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn arrays_have_a_binary_format() {
    let database = database();
    let mut here = database.connect().unwrap();
    for name in ["lists", "again"] {
        run(&mut here, &format!("CREATE TABLE {name} (k int, i int[], s text[], n numeric[], d date[], u uuid)"));
    }
    run(
        &mut here,
        "INSERT INTO lists VALUES (1, '{1,NULL,-3}', '{\"a,b\",NULL,\"\"}', '{1.50,NaN,1e20}', '{2024-02-29}', NULL),
         (2, '{}', NULL, NULL, '{NULL}', '11111111-2222-3333-4444-555555555555')",
    );
    let (bytes, _) = taken(&mut here, "COPY lists TO STDOUT (FORMAT binary)");
    // What PostgreSQL 15 writes for '{1,NULL,-3}'::int[]: dimensions, NULLs, type, length, lower
    // bound, elements.
    let first = [
        &[0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 3, 0, 0, 0, 1][..],
        &[0, 0, 0, 4, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 4, 255, 255, 255, 253],
    ]
    .concat();
    assert!(bytes.windows(first.len()).any(|window| window == first));
    assert_eq!(send(&mut here, "COPY again FROM STDIN (FORMAT binary)", &bytes, 5).unwrap(), "COPY 2");
    assert_eq!(ask(&mut here, "SELECT * FROM again ORDER BY k"), ask(&mut here, "SELECT * FROM lists ORDER BY k"));
}

#[test]
fn lines_are_read_as_postgresql_reads_them() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE t (k int, s text, d int DEFAULT 7)");
    let cases: [(&str, &str, &[&str]); 8] = [
        ("COPY t (k, s) FROM STDIN", "1\ta\r2\tb", &["1 a 7", "2 b 7"]),
        ("COPY t (k, s) FROM STDIN CSV", "1,\"a\r\nb\"\r\n2,c\r\n", &["1 a\r\nb 7", "2 c 7"]),
        ("COPY t (k, s) FROM STDIN", "1\ta\\x41\\101\\\nb\r\n2\t\\N\r\n\\.\r\nnot read", &["1 aAA\nb 7", "2 null 7"]),
        ("COPY t FROM STDIN CSV", "1,\"a,\"\"b\nc\",2\n2,,\n3,\"\",4", &["1 a,\"b\nc 2", "2 null null", "3  4"]),
        (
            "COPY t (k, s) FROM STDIN (FORMAT csv, HEADER, NULL 'nil')",
            "x,y\n1,nil\n2,\"nil\"\n",
            &["1 null 7", "2 nil 7"],
        ),
        ("COPY t (k, s) FROM STDIN (FORMAT csv, FORCE_NOT_NULL (s))", "1,\n", &["1  7"]),
        ("COPY t (k, s) FROM STDIN (FORMAT csv, FORCE_NULL (s))", "1,\"\"\n", &["1 null 7"]),
        ("COPY t (s) FROM STDIN (FORMAT csv, QUOTE '''', ESCAPE '\\')", "'it\\'s'\n", &["null it's 7"]),
    ];
    for (sql, bytes, rows) in cases {
        run(&mut here, "TRUNCATE t");
        send(&mut here, sql, bytes.as_bytes(), 5).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(ask(&mut here, "SELECT * FROM t ORDER BY k"), rows, "{sql}");
    }
}

#[test]
fn errors_name_line_and_column_and_leave_nothing() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE t (k int PRIMARY KEY, s varchar(3) NOT NULL); INSERT INTO t VALUES (5, 'old')");
    let cases: [(&str, &[u8], &str, &str, &str); 16] = [
        (
            "",
            b"1\ta\nx\tb\n",
            "22P02",
            "invalid input syntax for type integer: \"x\"",
            "COPY t, line 2, column k: \"x\"",
        ),
        ("", b"1\ta\n2\n", "22P04", "missing data for column \"s\"", "COPY t, line 2: \"2\""),
        ("", b"1\ta\tb\n", "22P04", "extra data after last expected column", "COPY t, line 1: \"1\ta\tb\""),
        ("", b"1\ta\n2\tb\r\n", "22P04", "literal carriage return found in data", "COPY t, line 2"),
        ("", b"1\ta\r\n2\tb\n", "22P04", "literal newline found in data", "COPY t, line 2"),
        ("CSV", b"1,a\r\n2,b\r3,c\r\n", "22P04", "unquoted carriage return found in data", "COPY t, line 2"),
        ("CSV", b"1,a\r2,b\n", "22P04", "unquoted newline found in data", "COPY t, line 2"),
        ("CSV", b"1,\"a\n2,b", "22P04", "unterminated CSV quoted field", "COPY t, line 1"),
        ("", b"1\t\xff\n", "22021", "invalid byte sequence for encoding \"UTF8\": 0xff", "COPY t, line 1"),
        ("", b"1\ta\n2\t\\N\n", "23502", "null value in column \"s\"", "COPY t, line 2"),
        ("", b"1\ta\n2\tabcd\n", "22001", "value too long for type character varying(3)", "COPY t, line 2"),
        ("", b"1\ta\n1\tb\n", "23505", "duplicate key", "COPY t, line 2"),
        ("", b"1\ta\n5\tb\n", "23505", "duplicate key", "COPY t, line 2"),
        ("", b"1\ta\n2\tb\n3\tc\n2\td\n5\te\n1\tf\n", "23505", "duplicate key", "COPY t, line 4"),
        ("", b"1\ta\n2\tb\n5\tc\n1\td\n", "23505", "duplicate key", "COPY t, line 3"),
        ("CSV HEADER", b"k,s\n1,\"a\nb\"\n2,c\n2,d\n", "23505", "duplicate key", "COPY t, line 5"),
    ];
    for (options, bytes, code, message, place) in cases {
        let error = send(&mut here, &format!("COPY t FROM STDIN {options}"), bytes, 3).unwrap_err();
        assert_eq!(error.sqlstate(), code, "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
        assert!(error.context().unwrap_or_default().contains(place), "{error:?}");
        assert_eq!(ask(&mut here, "SELECT * FROM t"), ["5 old"]);
        assert_eq!(here.copy_data(b"1\ta\n").unwrap_err().sqlstate(), "08P01");
    }
    for (options, code) in [
        ("(FORMAT xml)", "22023"),
        ("(NOTHING 1)", "42601"),
        ("(DELIMITER 'ab')", "0A000"),
        ("(QUOTE '''')", "0A000"),
        ("(FORMAT csv, QUOTE ',')", "22023"),
        ("(FORMAT binary, HEADER)", "0A000"),
        ("(FORMAT csv, FORCE_QUOTE *)", "0A000"),
        ("(NULL E'a\\tb')", "22023"),
        ("(FORMAT csv, FORMAT csv)", "42601"),
    ] {
        assert_eq!(fail(&mut here, &format!("COPY t FROM STDIN {options}")).sqlstate(), code, "{options}");
    }
    assert_eq!(fail(&mut here, "COPY t TO '/nowhere/at/all'").sqlstate(), "58P01");
}

/// Rows that do not pass break no constraint, and their lines count.
#[test]
fn rows_that_do_not_pass_are_not_copied() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE t (k int PRIMARY KEY, s varchar(3) NOT NULL, n int DEFAULT 7 CHECK (n > 0))");
    let mut copy = |clause: &str, bytes: &[u8]| send(&mut here, &format!("COPY t {clause}"), bytes, 3);
    let rows = b"1\ta\n2\t\\N\n1\tb\n3\tc\n";
    assert_eq!(copy("(k, s) FROM STDIN WHERE k <> 2 AND t.s <> 'b' AND n = 7", rows).unwrap(), "COPY 2");
    assert_eq!(copy("FROM STDIN WITH (FORMAT csv) WHERE n > 0", b"4,d,0\n5,e,\n6,f,1\n").unwrap(), "COPY 1");
    for (clause, bytes, code, place) in [
        ("(k, s) FROM STDIN WHERE k <> 2", b"2\tx\n7\ta\n2\ty\n7\tb\n".as_slice(), "23505", "COPY t, line 4"),
        ("(k, s) FROM STDIN WHERE k <> 2", b"2\tx\n8\t\\N\n", "23502", "COPY t, line 2"),
        ("(k, s) FROM STDIN WHERE k <> 2", b"2\tlong\n", "22001", "COPY t, line 1"),
        ("(k, s) FROM STDIN WHERE 1 / (k - 2) > 0", b"2\tx\n", "22012", "COPY t, line 1"),
    ] {
        let error = copy(clause, bytes).unwrap_err();
        assert_eq!((error.sqlstate(), error.context()), (code, Some(place)), "{clause}: {error:?}");
    }
    for (condition, code) in [
        ("k", "42804"),
        ("nothing = 1", "42703"),
        ("k IN (SELECT 1)", "0A000"),
        ("count(*) > 1", "0A000"),
        ("", "42601"),
    ] {
        assert_eq!(fail(&mut here, &format!("COPY t FROM STDIN WHERE {condition}")).sqlstate(), code, "{condition}");
    }
    assert_eq!(ask(&mut here, "SELECT * FROM t ORDER BY k"), ["1 a 7", "3 c 7", "6 f 1"]);
}

#[test]
fn a_copy_is_part_of_its_transaction_and_seen_by_nobody_before() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE TABLE t (k int PRIMARY KEY)");
    run(&mut here, "BEGIN");
    assert_eq!(send(&mut here, "COPY t FROM STDIN", b"1\n2\n", 1).unwrap(), "COPY 2");
    assert_eq!(ask(&mut here, "SELECT count(*) FROM t"), ["2"]);
    assert_eq!(ask(&mut there, "SELECT count(*) FROM t"), ["0"]);
    run(&mut here, "COMMIT");
    assert_eq!(ask(&mut there, "SELECT count(*) FROM t"), ["2"]);
    run(&mut here, "BEGIN");
    send(&mut here, "COPY t FROM STDIN", b"3\nx\n", 100).unwrap_err();
    assert_eq!(here.transaction(), TransactionState::Failed);
    run(&mut here, "ROLLBACK");
    // Rows that others commit meanwhile count.
    run(&mut here, "COPY t FROM STDIN");
    here.copy_data(b"9\n").unwrap();
    run(&mut there, "INSERT INTO t VALUES (9)");
    assert_eq!(here.copy_done().unwrap_err().sqlstate(), "23505");
    run(&mut here, "COPY t FROM STDIN");
    here.copy_data(b"10\n").unwrap();
    assert_eq!(here.copy_fail("no more").sqlstate(), "57014");
    assert_eq!(ask(&mut here, "SELECT max(k) FROM t"), ["9"]);
    // Many rows, more than a block.
    let many: String = (100..20_100).map(|k| format!("{k}\n")).collect();
    assert_eq!(send(&mut here, "COPY t FROM STDIN", many.as_bytes(), 65_536).unwrap(), "COPY 20000");
    assert_eq!(taken(&mut here, "COPY t TO STDOUT").1, "COPY 20003");
}

#[test]
fn changes_are_copied_as_they_come() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE t (k int, s text); INSERT INTO t VALUES (1, 'a')");
    run(&mut here, "COPY (SUBSCRIBE t WITH (SNAPSHOT)) TO STDOUT");
    let next = |here: &mut Connection| loop {
        match here.copy_rows(Duration::from_secs(5)).unwrap() {
            CopyRows::Data(data) => break String::from_utf8(data.bytes).unwrap(),
            CopyRows::Nothing => {}
            CopyRows::Done { tag } => panic!("{tag}"),
        }
    };
    assert!(next(&mut here).ends_with("\t1\t1\ta\n"));
    run(&mut here, "DELETE FROM t");
    assert!(next(&mut here).ends_with("\t-1\t1\ta\n"));
    here.copy_stop();
    assert_eq!(here.copy_rows(Duration::ZERO).unwrap_err().sqlstate(), "08P01");
}

#[test]
fn generated_columns_are_not_copied() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE g (a int PRIMARY KEY, c int GENERATED ALWAYS AS (a * 2) STORED, b text)");
    assert_eq!(send(&mut here, "COPY g FROM STDIN", b"1\tx\n2\ty\n", 3).unwrap(), "COPY 2");
    assert_eq!(send(&mut here, "COPY g (b, a) FROM STDIN", b"z\t3\n", 9).unwrap(), "COPY 1");
    assert_eq!(ask(&mut here, "SELECT * FROM g ORDER BY a"), ["1 2 x", "2 4 y", "3 6 z"]);
    // What is written can be read in again.
    let written = text(&mut here, "COPY g TO STDOUT");
    assert_eq!(written, "1\tx\n2\ty\n3\tz\n");
    assert_eq!(text(&mut here, "COPY (SELECT * FROM g WHERE a = 1) TO STDOUT"), "1\t2\tx\n");
    run(&mut here, "TRUNCATE g");
    assert_eq!(send(&mut here, "COPY g FROM STDIN", written.as_bytes(), 4).unwrap(), "COPY 3");
    let error = send(&mut here, "COPY g FROM STDIN", b"1\t99\tx\n", 9).unwrap_err();
    assert_eq!((error.sqlstate(), error.message.as_str()), ("22P04", "extra data after last expected column"));
    for sql in ["COPY g (a, c) FROM STDIN", "COPY g (c) TO STDOUT", "COPY g (c, a) FROM '/nowhere.csv'"] {
        let error = fail(&mut here, sql);
        assert_eq!((error.sqlstate(), error.message.as_str()), ("42P10", "column \"c\" is a generated column"));
        assert_eq!(error.detail.as_deref(), Some("Generated columns cannot be used in COPY."));
    }
    assert_eq!(fail(&mut here, "COPY g (a, a) FROM STDIN").sqlstate(), "42701");
    assert_eq!(fail(&mut here, "COPY g (a, d) TO STDOUT").sqlstate(), "42703");
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let mut here = database().connect().unwrap();
    run(&mut here, "CREATE TABLE t (k int)");
    for (path, code) in [("/nowhere/rows", "58P01"), ("/nowhere/rows.csv", "58P01"), ("/dev/null", "42809")] {
        let error = fail(&mut here, &format!("COPY t FROM '{path}'"));
        // (A database without the connector of files does not look for them.)
        assert!(error.sqlstate() == code || error.message.contains("connector"), "{path}: {error:?}");
    }
}
