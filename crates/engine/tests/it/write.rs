//! INSERT, UPDATE, DELETE, and rows from Arrow.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Changes, Error, ErrorKind, Options, Outcome, Poll, Session, Times};
use arrow::array::{ArrayRef, Decimal64Array, Decimal128Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};

use crate::support::{Scripted, ask, fail, pairs, run, tag, whole, with_workers};

#[test]
fn rows_are_written_changed_and_removed() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint PRIMARY KEY, v text, n int DEFAULT 5)");
        assert_eq!(tag(session, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)"), "INSERT 0 3");
        assert_eq!(tag(session, "INSERT INTO t (v, k) VALUES ('d', 4)"), "INSERT 0 1");
        assert_eq!(tag(session, "UPDATE t SET v = v || '!', n = n + 1 WHERE k >= 3"), "UPDATE 2");
        assert_eq!(tag(session, "DELETE FROM t WHERE n = 2"), "DELETE 1");
        assert_eq!(ask(session, "SELECT * FROM t ORDER BY k"), ["1 a 1", "3 c! 4", "4 d! 6"]);
        assert_eq!(tag(session, "INSERT INTO t SELECT k + 10, v, n FROM t ORDER BY k LIMIT 2"), "INSERT 0 2");
        assert_eq!(ask(session, "SELECT k FROM t ORDER BY k"), ["1", "3", "4", "11", "13"]);
        assert_eq!(tag(session, "UPDATE t SET k = k + 1"), "UPDATE 5");
        assert_eq!(ask(session, "SELECT k FROM t ORDER BY k"), ["2", "4", "5", "12", "14"]);
    });
}

#[test]
fn a_duplicate_key_leaves_nothing() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int, b text, v int, PRIMARY KEY (a, b)); INSERT INTO t VALUES (1, 'x', 0)");
        let error = fail(session, "INSERT INTO t VALUES (2, 'x', 0), (1, 'x', 9)");
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Data, "duplicate key value violates unique constraint \"t_pkey\"")
        );
        assert_eq!(error.detail.as_deref(), Some("Key (a, b)=(1, x) already exists."));
        assert!(fail(session, "INSERT INTO t VALUES (5, 'x', 0), (5, 'x', 1)").message.contains("duplicate key"));
        run(session, "INSERT INTO t VALUES (2, 'x', 0)");
        assert!(fail(session, "UPDATE t SET a = 1").message.contains("duplicate key"));
        assert_eq!(ask(session, "SELECT * FROM t ORDER BY a"), ["1 x 0", "2 x 0"]);
        // Keys may change places within one statement.
        run(session, "UPDATE t SET a = 3 - a");
        assert_eq!(ask(session, "SELECT a FROM t ORDER BY a"), ["1", "2"]);
    });
}

#[test]
fn decimals_of_both_widths_are_taken_and_wide_ones_are_shown() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a numeric(10, 2) PRIMARY KEY, b numeric(20, 2))");
        run(session, "CREATE MATERIALIZED VIEW v AS SELECT min(a) AS least, sum(a) AS total FROM t");
        let wide = |value: i128, precision: u8| -> ArrayRef {
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(precision, 2).unwrap())
        };
        let narrow = |value: i64| -> ArrayRef {
            Arc::new(Decimal64Array::from(vec![value]).with_precision_and_scale(10, 2).unwrap())
        };
        let rows = |a: ArrayRef| RecordBatch::try_from_iter([("a", a), ("b", wide(1, 20))]).unwrap();
        session.insert("t", &rows(narrow(150))).unwrap();
        session.insert("t", &rows(wide(-25, 10))).unwrap();
        session.insert("t", &rows(narrow(700))).unwrap();
        assert!(session.insert("t", &rows(wide(700, 10))).unwrap_err().message.contains("duplicate key"));
        let error = session.insert("t", &rows(wide(1 << 70, 10))).unwrap_err();
        assert_eq!(error.message, "a value does not fit column \"a\" (numeric(10,2)) of table \"t\"");
        // The same with a schema that fitted before.
        let schema = rows(wide(0, 10)).schema();
        let again = |a: i128| RecordBatch::try_new(schema.clone(), vec![wide(a, 10), wide(1, 20)]).unwrap();
        session.insert("t", &again(900)).unwrap();
        session.insert("t", &again(901)).unwrap();
        assert_eq!(session.insert("t", &again(1 << 70)).unwrap_err().message, error.message);
        run(session, "DELETE FROM t WHERE a > 8");
        assert_eq!(ask(session, "SELECT * FROM t ORDER BY a"), ["-0.25 0.01", "1.50 0.01", "7.00 0.01"]);
        assert_eq!(ask(session, "SELECT * FROM t WHERE a = 1.5"), ["1.50 0.01"]);
        assert_eq!(ask(session, "SELECT * FROM v"), ["-0.25 8.25"]);
        let answer = session.query("SELECT a, b FROM t").unwrap();
        assert_eq!(answer.batches[0].column(0).data_type(), &DataType::Decimal128(10, 2));
        let subscription = match session.execute("SUBSCRIBE v").unwrap().pop() {
            Some(Outcome::Subscription(subscription)) => subscription,
            other => panic!("no subscription but {other:?}"),
        };
        let changes = session.next_changes(&subscription, Duration::from_secs(10)).unwrap();
        let Changes::Rows(rows) = changes else { panic!("no rows but {changes:?}") };
        let rows = whole(&rows);
        assert_eq!(rows.column(2).data_type(), &DataType::Decimal128(10, 2));
    });
}

/// Rows of a schema that fitted before are not looked at again, but for NULLs; a table of the same
/// name is another table.
#[test]
fn what_fitted_before_may_still_have_nulls_or_come_to_another_table() {
    with_workers(|session| {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
        let rows = |values: Vec<Option<i64>>| {
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            RecordBatch::try_new(schema.clone(), vec![column]).unwrap()
        };
        run(session, "CREATE TABLE t (k bigint NOT NULL)");
        for value in [1, 2, 3] {
            session.insert("t", &rows(vec![Some(value)])).unwrap();
        }
        let error = session.insert("t", &rows(vec![Some(4), None])).unwrap_err();
        assert!(error.message.contains("not-null"), "{error}");
        assert_eq!(ask(session, "SELECT * FROM t ORDER BY k"), ["1", "2", "3"]);
        run(session, "DROP TABLE t; CREATE TABLE t (k int)");
        assert!(session.insert("t", &rows(vec![Some(1 << 40)])).is_err());
        session.insert("t", &rows(vec![Some(7)])).unwrap();
        assert_eq!(ask(session, "SELECT k, pg_typeof(k) FROM t"), ["7 integer"]);
    });
}

#[test]
fn null_is_refused_where_the_column_forbids_it() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k int PRIMARY KEY, v text NOT NULL); INSERT INTO t VALUES (1, 'a')");
        let error = fail(session, "INSERT INTO t VALUES (2, 'b'), (3, null)");
        assert_eq!(error.message, "null value in column \"v\" of relation \"t\" violates not-null constraint");
        assert_eq!(error.detail.as_deref(), Some("Failing row contains (3, null)."));
        assert!(fail(session, "INSERT INTO t (v) VALUES ('x')").message.contains("column \"k\""));
        assert!(fail(session, "UPDATE t SET v = null").message.contains("not-null"));
        assert_eq!(ask(session, "SELECT * FROM t"), ["1 a"]);
    });
}

#[test]
fn arrow_rows_go_in_by_name_or_position() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (v text, k int DEFAULT 3)");
        session.insert("t", &pairs(&[(1, "a"), (2, "b")])).unwrap();
        let values: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["c"]));
        session.insert("t", &RecordBatch::try_from_iter([("v", values)]).unwrap()).unwrap();
        assert_eq!(ask(session, "SELECT k, v FROM t ORDER BY v"), ["1 a", "2 b", "3 c"]);
        let error = session.insert("t", &pairs(&[(1 << 40, "a")])).unwrap_err();
        assert!(error.message.contains("does not fit column \"k\""), "{error}");
        assert!(session.insert("nope", &pairs(&[])).is_err());
    });
}

#[test]
fn signed_changes_and_open_commits() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint, v text); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t");
        session.apply("t", &pairs(&[(1, "a"), (2, "b")]), &[2, 1]).unwrap();
        session.apply("t", &pairs(&[(1, "a")]), &[-1]).unwrap();
        assert_eq!(ask(session, "SELECT * FROM t"), ["1 a", "2 b"]);
        let before = session.time();
        for i in 0..10 {
            session.ingest("t", &pairs(&[(i, "c")]), None, None).unwrap();
        }
        let time = session.commit().unwrap();
        assert!(time > before);
        let times = Times::Column(vec![time + 5, time + 9].into());
        session.ingest("t", &pairs(&[(50, "d"), (51, "d")]), Some(times), None).unwrap();
        assert_eq!(session.commit().unwrap(), time + 9);
        assert_eq!(ask(session, "SELECT n FROM n"), ["14"]);
        assert!(session.ingest("t", &pairs(&[(1, "a")]), Some(Times::Constant(time)), None).is_err());
        // More was taken away than was there: an error until it is put back.
        session.apply("t", &pairs(&[(99, "z")]), &[-1]).unwrap();
        assert_eq!(fail(session, "SELECT * FROM t").kind, ErrorKind::Internal);
        session.apply("t", &pairs(&[(99, "z")]), &[1]).unwrap();
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["14"]);
    });
}

#[test]
fn many_commits_do_not_pile_up() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW s AS SELECT sum(k) AS s FROM t");
        for i in 0..500i64 {
            let keys: ArrayRef = Arc::new(Int64Array::from(vec![i, -i, 1]));
            session.insert("t", &RecordBatch::try_from_iter([("k", keys)]).unwrap()).unwrap();
        }
        assert_eq!(ask(session, "SELECT s FROM s"), ["500"]);
        run(session, "DELETE FROM t WHERE k <> 1");
        assert_eq!(ask(session, "SELECT count(*), sum(k) FROM t"), ["501 501"]);
    });
}

#[test]
fn a_file_is_copied_in_whole_or_not_at_all() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint PRIMARY KEY, v text, n int DEFAULT 4)");
        let polls = || vec![Ok(Poll::Rows(pairs(&[(1, "a"), (2, "b")]))), Ok(Poll::Rows(pairs(&[(3, "c")])))];
        session.register_connector("file", Arc::new(Scripted::new(polls())));
        assert_eq!(tag(session, "COPY t (k, v) FROM 'x.csv'"), "COPY 3");
        assert_eq!(ask(session, "SELECT k, n FROM t ORDER BY k"), ["1 4", "2 4", "3 4"]);
        let mut again = polls();
        again.insert(0, Ok(Poll::Rows(pairs(&[(9, "z")]))));
        session.register_connector("file", Arc::new(Scripted::new(again)));
        assert!(fail(session, "COPY t (k, v) FROM 'x.csv'").message.contains("duplicate key"));
        let broken = vec![Ok(Poll::Rows(pairs(&[(9, "z")]))), Err(Error::data("x.csv, line 2: no number"))];
        session.register_connector("file", Arc::new(Scripted::new(broken)));
        assert_eq!(fail(session, "COPY t (k, v) FROM 'x.csv'").message, "x.csv, line 2: no number");
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["3"]);
        assert!(fail(session, "COPY t (k, w) FROM 'x.csv'").message.contains("column \"w\""));
    });
}

#[test]
fn a_file_may_be_larger_than_memory_for_copies() {
    let options = Options { copy_bytes_max: 100, ..Options::default() };
    let mut session = Session::new(options).unwrap();
    run(&mut session, "CREATE TABLE t (k bigint PRIMARY KEY, v text); INSERT INTO t VALUES (1000, 'old')");
    run(&mut session, "CREATE MATERIALIZED VIEW s AS SELECT count(*) AS n, max(k) AS k FROM t");
    let block = |n: i64| Ok(Poll::Rows(pairs(&[(2 * n, "even"), (2 * n + 1, "odd, and longer than a view")])));
    let mut blocks: Vec<_> = (0..100).map(block).collect();
    session.register_connector("file", Arc::new(Scripted::new(blocks)));
    assert_eq!(tag(&mut session, "COPY t FROM 'x.csv'"), "COPY 200");
    assert_eq!(ask(&mut session, "SELECT * FROM s"), ["201 1000"]);
    // A key of the first block comes again in the last one.
    blocks = (200..300).chain([200]).map(block).collect();
    session.register_connector("file", Arc::new(Scripted::new(blocks)));
    let error = fail(&mut session, "COPY t FROM 'x.csv'");
    assert!(error.message.contains("duplicate key"), "{error}");
    assert!(error.detail.unwrap().contains("already exists"));
    assert_eq!(ask(&mut session, "SELECT * FROM s"), ["201 1000"]);
}

#[test]
fn lengths_of_texts_and_precisions_of_numbers_are_kept() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint PRIMARY KEY, v varchar(3), c char(2), n numeric(4, 2))");
        run(session, "INSERT INTO t VALUES (1, 'abc  ', 'x ', 12.345)");
        assert_eq!(ask(session, "SELECT v, length(v), c, length(c), n FROM t"), ["abc 3 x  1 12.35"]);
        let message = |session: &mut Session, sql: &str| fail(session, sql).message;
        let too_long = "value too long for type character varying(3)";
        assert_eq!(message(session, "INSERT INTO t VALUES (2, 'abcd')"), too_long);
        assert_eq!(message(session, "UPDATE t SET v = v || 'd'"), too_long);
        assert_eq!(message(session, "UPDATE t SET c = 'xyz'"), "value too long for type character(2)");
        assert!(message(session, "INSERT INTO t (k, n) VALUES (2, 100)").starts_with("numeric field overflow"));
        session.register_connector("file", Arc::new(Scripted::new(vec![Ok(Poll::Rows(pairs(&[(3, "four")])))])));
        assert_eq!(message(session, "COPY t (k, v) FROM 'x.csv'"), too_long);
        assert_eq!(ask(session, "SELECT v::varchar(2), 'abc'::char(2), 'a  '::char(3) || '|' FROM t"), ["ab ab a|"]);
        let types = ask(session, "DESCRIBE t");
        assert!(types[1].contains("character varying(3)") && types[2].contains("character(2)"), "{types:?}");
    });
}

#[test]
fn rows_may_come_from_other_relations() {
    with_workers(|session| {
        run(session, "CREATE TABLE a (k bigint, v text); INSERT INTO a VALUES (1, 'x'), (1, 'x'), (2, null)");
        run(session, "CREATE VIEW named (key, n) AS SELECT k, count(*) FROM a GROUP BY k");
        run(session, "CREATE TABLE b (key bigint PRIMARY KEY, n bigint)");
        assert_eq!(tag(session, "INSERT INTO b SELECT key, n FROM named"), "INSERT 0 2");
        assert_eq!(
            tag(session, "UPDATE b SET n = (SELECT count(*) FROM a WHERE a.k = b.key AND v IS NULL)"),
            "UPDATE 2"
        );
        assert_eq!(ask(session, "SELECT * FROM b ORDER BY key"), ["1 0", "2 1"]);
        assert_eq!(tag(session, "DELETE FROM a WHERE k IN (SELECT key FROM b WHERE n = 0)"), "DELETE 2");
        assert_eq!(ask(session, "SELECT * FROM a"), ["2 null"]);
    });
}

/// Zeros of both signs are one value, so what is computed of them is one value as well: a group, a
/// key or a row that is taken back may hold the other one.
#[test]
fn zeros_have_no_sign() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (f float8, r real, l float8[]);
             CREATE MATERIALIZED VIEW texts AS SELECT f::text AS s, r::text AS r, l::text AS l, count(*) AS n FROM t GROUP BY 1, 2, 3;
             CREATE MATERIALIZED VIEW each AS SELECT f::text AS s, atan2(f, -1) AS a, to_jsonb(f)::text AS j FROM t;
             CREATE MATERIALIZED VIEW groups AS SELECT f::text AS s, n FROM (SELECT f, count(*) AS n FROM t GROUP BY f) AS g;
             INSERT INTO t VALUES (0, 0, '{0}'); INSERT INTO t VALUES ('-0', '-0', '{-0}')",
        );
        assert_eq!(ask(session, "SELECT * FROM texts"), ["0 0 {0} 2"]);
        assert_eq!(ask(session, "SELECT * FROM groups"), ["0 2"]);
        run(session, "DELETE FROM t");
        for view in ["texts", "each", "groups"] {
            assert_eq!(ask(session, &format!("SELECT * FROM {view}")), Vec::<String>::new(), "{view}");
        }
        run(
            session,
            "CREATE TABLE k (k int PRIMARY KEY, f float8);
             CREATE MATERIALIZED VIEW of_k AS SELECT k, f::text AS s FROM k;
             INSERT INTO k VALUES (1, 0); UPDATE k SET f = '-0'",
        );
        assert_eq!(ask(session, "SELECT * FROM of_k"), ask(session, "SELECT k, f::text FROM k"));
        run(session, "DELETE FROM k");
        assert_eq!(ask(session, "SELECT * FROM of_k"), Vec::<String>::new());
    });
}
