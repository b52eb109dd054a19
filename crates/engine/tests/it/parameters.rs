//! Statements with parameters.

use anabranch_engine::{Connection, Outcome, ScalarValue};
use anabranch_sql::pg_types::{PgType, oid};
use anabranch_sql::sql_name;
use arrow::datatypes::DataType;

use crate::connections::{ask, database, fail, run};
use crate::support::lines;

const TABLE: &str = "CREATE TABLE t (k int PRIMARY KEY, b bigint, s text, v varchar(3), n numeric(10,2), f float8, \
    r real, d date, ts timestamp, tz timestamptz, j interval, o boolean, y bytea, a int[], m smallint)";

fn typed(connection: &mut Connection, sql: &str) -> String {
    let prepared = connection.prepare(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {}", error.render(sql)));
    prepared.parameters.iter().map(|field| sql_name(field.data_type())).collect::<Vec<_>>().join(",")
}

/// The answer of a statement with values, each written as text.
fn with(connection: &mut Connection, sql: &str, values: &[Option<&str>]) -> Vec<String> {
    let prepared = connection.prepare(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {}", error.render(sql)));
    let values: Vec<ScalarValue> = values.iter().map(|value| ScalarValue::Utf8(value.map(str::to_owned))).collect();
    match connection.run(&prepared, &values) {
        Ok(Outcome::Rows(rows)) => lines(&rows),
        Ok(Outcome::Done { tag, .. }) => vec![tag],
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => vec![format!("{} {}", error.sqlstate(), error.message)],
    }
}

/// PostgreSQL 15 tells these types in `pg_prepared_statements`.
#[test]
fn parameters_have_the_types_of_postgresql() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, TABLE);
    for (sql, types) in [
        ("select * from t where k = $1", "integer"),
        ("select * from t where $1 = b", "bigint"),
        ("select * from t where s = $1 and v = $2", "text,text"),
        ("select * from t where n > $1", "numeric"),
        ("select * from t where f between $1 and $2", "double precision,double precision"),
        ("select * from t where k in ($1, $2, 3)", "integer,integer"),
        ("select * from t where d >= $1 and ts < $2 and tz < $3 and j = $4", "date,timestamp,timestamptz,interval"),
        ("select $1", "text"),
        ("select $1::int, $2::date", "integer,date"),
        ("select k + $1 from t", "integer"),
        ("select n * $1 from t", "numeric"),
        ("select * from t limit $1 offset $2", "bigint,bigint"),
        ("select * from t where s like $1", "text"),
        ("select s || $1 from t", "text"),
        ("select * from t where $1", "boolean"),
        ("select * from t where o and $1", "boolean"),
        ("select * from t where not $1", "boolean"),
        ("select coalesce(n, $1) from t", "numeric"),
        ("select case when o then $1 else b end from t", "bigint"),
        ("select case k when $1 then 'x' end from t", "integer"),
        ("select upper($1)", "text"),
        ("select left($1, $2)", "text,integer"),
        ("select round($1, 2)", "numeric"),
        ("select sqrt($1)", "double precision"),
        ("select abs($1)", "double precision"),
        ("select ts + $1 from t", "interval"),
        ("select ts - $1 from t", "timestamp"),
        ("insert into t (k, s, n, d) values ($1, $2, $3, $4)", "integer,text,numeric,date"),
        ("insert into t (k, b) select $1, b from t", "integer"),
        ("insert into t (k, b) values ($1 + 1, $2)", "integer,bigint"),
        ("update t set s = $1, n = $2 where k = $3", "text,numeric,integer"),
        ("delete from t where k = $1 and m = $2", "integer,smallint"),
        ("select * from t where k in (select b from t where s = $1)", "text"),
        ("select * from t where $1 in (select b from t)", "bigint"),
        ("select * from t where k = any($1)", "integer[]"),
        ("select k from t union select $1", "integer"),
        ("select sum(k) filter (where s = $1) from t having count(*) > $2", "text,bigint"),
        ("select greatest(k, $1) from t", "integer"),
        ("select nullif(s, $1) from t", "text"),
        ("select * from t where y = $1", "bytea"),
        ("select * from t where a = $1", "integer[]"),
        ("select k from t where k = $1 order by s limit $2", "integer,bigint"),
        (
            "insert into t (k, s) values ($1, $2) on conflict (k) do update set s = excluded.s || $3 \
             where t.b > $4 returning k + $5",
            "integer,text,text,bigint,integer",
        ),
        ("select $1 + 1", "integer"),
        ("select $1 + $2::int", "integer,integer"),
    ] {
        assert_eq!(typed(&mut connection, sql), types, "{sql}");
    }
}

#[test]
fn values_stand_for_parameters_in_all_statements() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, TABLE);
    let here = &mut connection;
    let row = [Some("1"), Some("a"), Some("2.345"), Some("2024-02-29")];
    assert_eq!(with(here, "INSERT INTO t (k, s, n, d) VALUES ($1, $2, $3, $4)", &row), ["INSERT 0 1"]);
    assert_eq!(
        with(here, "INSERT INTO t (k, s) VALUES ($1, $2), ($1 + 1, $3)", &[Some("2"), Some("b"), None]),
        ["INSERT 0 2"]
    );
    assert_eq!(
        with(here, "INSERT INTO t (k, b) SELECT $1 + k, $2 FROM t WHERE k < $3", &[Some("10"), Some("7"), Some("3")]),
        ["INSERT 0 2"]
    );
    assert_eq!(
        ask(here, "SELECT k, s, b, n, d FROM t ORDER BY k"),
        [
            "1 a null 2.35 2024-02-29",
            "2 b null null null",
            "3 null null null null",
            "11 null 7 null null",
            "12 null 7 null null",
        ]
    );
    assert_eq!(with(here, "SELECT k FROM t WHERE k = $1", &[Some("2")]), ["2"]);
    assert_eq!(with(here, "SELECT k FROM t WHERE k = $1", &[None]), [""; 0]);
    assert_eq!(with(here, "SELECT k FROM t WHERE k IN ($1, $2, 12) ORDER BY k", &[Some("1"), None]), ["1", "12"]);
    assert_eq!(
        with(
            here,
            "SELECT k FROM t WHERE k BETWEEN $1 AND $2 ORDER BY k LIMIT $3 OFFSET $4",
            &[Some("1"), Some("11"), Some("2"), Some("1")]
        ),
        ["2", "3"]
    );
    assert_eq!(with(here, "SELECT k FROM t ORDER BY k LIMIT $1", &[None]).len(), 5);
    assert_eq!(with(here, "SELECT k FROM t WHERE n = $1", &[Some("2.354")]), [""; 0]);
    assert_eq!(with(here, "SELECT k FROM t WHERE n < $1", &[Some("2.354")]), ["1"]);
    assert_eq!(
        with(here, "SELECT upper(s) || $1, round(n, $2) FROM t WHERE s = $3", &[Some("!"), Some("1"), Some("a")]),
        ["A! 2.4"]
    );
    assert_eq!(
        with(here, "SELECT $1::int + 1, $2::date - d FROM t WHERE d IS NOT NULL", &[Some("41"), Some("2024-03-01")]),
        ["42 1"]
    );
    assert_eq!(with(here, "SELECT count(*) FROM t WHERE $1 IS NULL OR s = $1", &[None]), ["5"]);
    assert_eq!(with(here, "SELECT count(*) FROM t WHERE $1 IS NULL OR s = $1", &[Some("a")]), ["1"]);
    assert_eq!(
        with(here, "SELECT b, count(*) FROM t GROUP BY b HAVING count(*) >= $1 ORDER BY b", &[Some("3")]),
        ["null 3"]
    );
    assert_eq!(with(here, "SELECT k FROM t WHERE k = ANY($1) ORDER BY k", &[Some("{3,1,99}")]), ["1", "3"]);
    assert_eq!(
        with(here, "UPDATE t SET s = $1, n = $2 WHERE k = $3", &[Some("z"), Some("9.999"), Some("2")]),
        ["UPDATE 1"]
    );
    assert_eq!(ask(here, "SELECT s, n FROM t WHERE k = 2"), ["z 10.00"]);
    let upsert =
        "INSERT INTO t (k, s) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET s = excluded.s || $3 RETURNING k + $4, s";
    assert_eq!(with(here, upsert, &[Some("2"), Some("y"), Some("!"), Some("100")]), ["102 y!"]);
    assert_eq!(with(here, "DELETE FROM t WHERE k = $1 OR b = $2 RETURNING k", &[Some("1"), Some("7")]).len(), 3);
    assert_eq!(with(here, "SELECT count(*) FROM t", &[]), ["2"]);
}

/// The plan of the first run serves the others, until the catalog changes.
#[test]
fn a_prepared_statement_sees_new_rows_and_new_definitions() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(
        &mut here,
        "CREATE TABLE t (k int PRIMARY KEY, v text); CREATE VIEW w AS SELECT k, v FROM t; INSERT INTO t VALUES (1, 'a')",
    );
    let look_up = here.prepare("SELECT v FROM w WHERE k = $1", &[]).unwrap();
    let find = |here: &mut Connection, k: i32| match here.run(&look_up, &[ScalarValue::from(k)]).unwrap() {
        Outcome::Rows(rows) => lines(&rows),
        other => panic!("{other:?}"),
    };
    assert_eq!((find(&mut here, 1), find(&mut here, 2)), (vec!["a".to_owned()], vec![]));
    run(&mut there, "INSERT INTO t VALUES (2, 'b')");
    assert_eq!(find(&mut here, 2), ["b"]);
    run(&mut there, "CREATE OR REPLACE VIEW w AS SELECT k, upper(v) AS v FROM t");
    assert_eq!(find(&mut here, 2), ["B"]);
    // A transaction reads its own writes, whatever plan is kept.
    run(&mut here, "BEGIN; INSERT INTO t VALUES (3, 'c')");
    assert_eq!(find(&mut here, 3), ["C"]);
    run(&mut here, "ROLLBACK");
    assert_eq!(find(&mut here, 3), [""; 0]);
    // Any connection may run it.
    let Outcome::Rows(rows) = there.run(&look_up, &[ScalarValue::from(1i64)]).unwrap() else { panic!() };
    assert_eq!(lines(&rows), ["A"]);
    let now = here.prepare("SELECT now() > TIMESTAMPTZ '2020-01-01' AND k = $1 FROM t ORDER BY k", &[]).unwrap();
    let Outcome::Rows(rows) = here.run(&now, &[ScalarValue::from(1)]).unwrap() else { panic!() };
    assert_eq!(lines(&rows), ["true", "false"]);
}

#[test]
fn given_types_hold_and_values_are_read_as_them() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, "CREATE TABLE t (k bigint PRIMARY KEY, n numeric); INSERT INTO t VALUES (1, 1.5), (70000, 2)");
    let prepared = connection.prepare("SELECT k FROM t WHERE k = $1 AND n > $2", &[Some(DataType::Int16)]).unwrap();
    assert_eq!(
        prepared.parameters.iter().map(|field| sql_name(field.data_type())).collect::<Vec<_>>(),
        ["smallint", "numeric"]
    );
    let Outcome::Rows(rows) =
        connection.run(&prepared, &[ScalarValue::Int16(Some(1)), ScalarValue::from("1.4")]).unwrap()
    else {
        panic!()
    };
    assert_eq!(lines(&rows), ["1"]);
    let error = connection.run(&prepared, &[ScalarValue::from("70000"), ScalarValue::from("1")]).unwrap_err();
    assert_eq!(error.sqlstate(), "22003", "{error}");
    let error = connection.run(&prepared, &[ScalarValue::from("x"), ScalarValue::from("1")]).unwrap_err();
    assert_eq!((error.sqlstate(), error.message.as_str()), ("22P02", "invalid input syntax for type smallint: \"x\""));
    assert_eq!(connection.run(&prepared, &[]).unwrap_err().sqlstate(), "08P01");
}

#[test]
fn parameters_without_values_are_refused() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, "CREATE TABLE t (k int PRIMARY KEY)");
    for sql in [
        "SELECT $1",
        "SELECT * FROM t WHERE k = $2",
        "SELECT $0",
        "INSERT INTO t VALUES ($1)",
        "SELECT * FROM t LIMIT $1",
    ] {
        assert_eq!(fail(&mut connection, sql).sqlstate(), "42P02", "{sql}");
    }
    for sql in [
        "CREATE VIEW v AS SELECT $1 AS x",
        "CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE k = $1",
        "CREATE TABLE u (a int DEFAULT $1)",
    ] {
        assert_eq!(fail(&mut connection, sql).sqlstate(), "42P02", "{sql}");
        assert_eq!(connection.prepare(sql, &[]).unwrap_err().sqlstate(), "42P02", "{sql}");
    }
    assert_eq!(fail(&mut connection, "SELECT $a").sqlstate(), "42601");
    // A text where PostgreSQL has no operator.
    let error = connection.prepare("SELECT * FROM t WHERE k = $1", &[Some(DataType::Utf8View)]).unwrap_err();
    assert_eq!(error.kind, anabranch_engine::ErrorKind::Invalid);
}

/// Arguments that functions take as constants, and places that take one only.
#[test]
fn parameters_may_stand_where_constants_are_wanted() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, TABLE);
    let here = &mut connection;
    run(here, "INSERT INTO t (k, s, ts) VALUES (1, 'abc', '2024-02-29 10:20:30'), (2, 'abd', NULL)");
    assert_eq!(with(here, "SELECT date_trunc($1, ts) FROM t WHERE k = 1", &[Some("hour")]), ["2024-02-29T10:00:00"]);
    assert_eq!(with(here, "SELECT k FROM t WHERE s ~ $1 ORDER BY k", &[Some("^ab[c]")]), ["1"]);
    assert_eq!(with(here, "SELECT k FROM t WHERE s LIKE $1 ORDER BY k", &[Some("ab%")]), ["1", "2"]);
    assert_eq!(with(here, "SELECT ts + $1 FROM t WHERE k = 1", &[Some("1 day")]), ["2024-03-01T10:20:30"]);
    assert_eq!(with(here, "SELECT to_char(ts, $1) FROM t WHERE k = 1", &[Some("YYYY")]), ["2024"]);
    assert_eq!(with(here, "SELECT k FROM t ORDER BY k FETCH FIRST $1 ROWS ONLY", &[Some("1")]), ["1"]);
    let subscribe = here.prepare("SUBSCRIBE (SELECT k FROM t WHERE k = $1)", &[]).unwrap();
    assert!(matches!(here.run(&subscribe, &[ScalarValue::from(1)]).unwrap(), Outcome::Subscription(_)));
    let explain = here.prepare("EXPLAIN SELECT s FROM t WHERE k = $1", &[]).unwrap();
    let Outcome::Rows(plan) = here.run(&explain, &[ScalarValue::from(1)]).unwrap() else { panic!() };
    assert!(lines(&plan).iter().any(|line| line.contains("looks keys up")), "{:?}", lines(&plan));
}

/// Clients that write values by the type that they are told (asyncpg, pgx) write these as such.
#[test]
fn parameters_that_are_uuids_and_documents_are_told_as_such() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, "CREATE TABLE t (u uuid, j json, b jsonb, s text)");
    let told = |connection: &mut Connection, sql: &str| -> Vec<u32> {
        let prepared = connection.prepare(sql, &[]).unwrap();
        prepared.parameters.iter().map(|field| PgType::of(field).oid).collect()
    };
    for (sql, types) in [
        ("insert into t values ($1, $2, $3, $4)", vec![oid::UUID, oid::JSON, oid::JSONB, oid::TEXT]),
        ("insert into t (b, u) select $1, $2", vec![oid::JSONB, oid::UUID]),
        ("update t set b = $1, s = $2 where u = $3", vec![oid::JSONB, oid::TEXT, oid::UUID]),
        ("select * from t where u in ($1, $2) or $3 < u", vec![oid::UUID; 3]),
        ("select * from t where u = any($1)", vec![oid::UUID_ARRAY]),
        ("delete from t where u between $1 and $2", vec![oid::UUID; 2]),
        ("select * from t where s = $1 and s = any($2)", vec![oid::TEXT, 1009]),
        ("select u || $1 from t where u::text = $2", vec![oid::TEXT; 2]),
    ] {
        assert_eq!(told(&mut connection, sql), types, "{sql}");
    }
}
