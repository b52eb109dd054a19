//! Rows given value by value.

use anabranch_engine::appender::{AppendedValue, PORTION_ROWS};
use anabranch_engine::{Database, DatabaseOptions, ErrorKind};

use crate::support::{ask, lines, run, with_workers};

#[test]
fn values_of_all_types_are_appended() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (a smallint, b int, c bigint PRIMARY KEY, d real, e double precision, f boolean,
                             g date, h timestamp, i text, j numeric(9, 2), k varchar(3))",
        );
        let mut appender = session.appender("t").unwrap();
        appender
            .append_row([
                AppendedValue::from(1i16),
                AppendedValue::from(-2),
                AppendedValue::from(3i64),
                AppendedValue::from(0.5f32),
                AppendedValue::from(4i64),
                AppendedValue::from(true),
                AppendedValue::Date(19_000),
                AppendedValue::Timestamp(1_500_000),
                AppendedValue::from("x y"),
                AppendedValue::from("12.5"),
                AppendedValue::from("abc"),
            ])
            .unwrap();
        appender
            .append_row(
                [AppendedValue::Null, AppendedValue::Null, AppendedValue::from(4i64)]
                    .into_iter()
                    .chain([AppendedValue::Null; 8]),
            )
            .unwrap();
        // Texts are read as SQL reads them in quotes.
        let texts = ["5", "6", "7", "1.5", "2.5", "f", "2024-02-29", "2024-01-01 10:00", "", "-1", ""];
        appender.append_row(texts.map(AppendedValue::from)).unwrap();
        assert_eq!(appender.finish().unwrap(), 3);
        assert_eq!(
            ask(session, "SELECT a, b, c, d, e, f, g, h, j, k FROM t WHERE i IS NOT NULL ORDER BY c"),
            [
                "1 -2 3 0.5 4.0 true 2022-01-08 1970-01-01T00:00:01.500 12.50 abc",
                "5 6 7 1.5 2.5 false 2024-02-29 2024-01-01T10:00:00 -1.00 ",
            ]
        );
    });
}

#[test]
fn a_value_that_does_not_fit_leaves_the_row_as_it_was() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k int PRIMARY KEY, v text NOT NULL)");
        let mut appender = session.appender("t").unwrap();
        let wrong = appender.append(1.5).unwrap_err();
        assert_eq!(wrong.message, "column \"k\" of table \"t\" is of type integer and takes no float");
        assert_eq!(appender.append(3_000_000_000i64).unwrap_err().sqlstate(), "42804");
        assert!(appender.append("one").unwrap_err().message.contains("invalid input syntax for type integer"));
        appender.append(1).unwrap();
        assert!(appender.end_row().unwrap_err().message.contains("no value for column \"v\""));
        assert!(appender.flush().unwrap_err().message.contains("no value for column \"v\""));
        appender.append("a").unwrap();
        assert!(appender.append("b").unwrap_err().message.contains("has 2 columns"));
        appender.end_row().unwrap();
        appender.append(2).unwrap();
        appender.cancel_row();
        appender.append_row([AppendedValue::from(3), AppendedValue::from("c")]).unwrap();
        assert_eq!(appender.finish().unwrap(), 2);
        assert_eq!(ask(session, "SELECT * FROM t ORDER BY k"), ["1 a", "3 c"]);
    });
}

#[test]
fn a_portion_is_one_commit_or_nothing() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint PRIMARY KEY, v text NOT NULL)");
        run(session, "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t");
        let mut appender = session.appender("t").unwrap();
        for k in 0..PORTION_ROWS as i64 + 5 {
            appender.append_row([AppendedValue::from(k), AppendedValue::from("v")]).unwrap();
        }
        // A key that is there already, in the portion that follows the full one.
        appender.append_row([AppendedValue::from(7i64), AppendedValue::from("again")]).unwrap();
        assert!(appender.flush().unwrap_err().message.contains("duplicate key"));
        appender.append_row([AppendedValue::from(-1i64), AppendedValue::Null]).unwrap();
        assert_eq!(appender.flush().unwrap_err().kind, ErrorKind::Data);
        drop(appender);
        assert_eq!(ask(session, "SELECT * FROM n"), [PORTION_ROWS.to_string()]);
    });
}

#[test]
fn connections_append_too() {
    let database = Database::open(DatabaseOptions::default()).unwrap();
    let mut connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k int)").unwrap();
    assert!(connection.appender("u").err().unwrap().message.contains("\"u\" does not exist"));
    let mut appender = connection.appender("t").unwrap();
    (0..10).for_each(|k| appender.append_row([AppendedValue::from(k)]).unwrap());
    assert_eq!(appender.finish().unwrap(), 10);
    assert_eq!(lines(&connection.query("SELECT sum(k) FROM t").unwrap()), ["45"]);
}
