//! The example: a frame over a file, joined with SQL, against SQL alone.

use std::sync::Arc;

use anabranch_engine::frame::{FOREVER, col, count_rows, sum};
use anabranch_engine::{Options, Session, StepStatus};
use anabranch_file::FileConnector;
use arrow::util::display::array_value_to_string;

#[path = "../../examples/busy_hours.rs"]
#[allow(dead_code, reason = "the example has a main of its own")]
mod example;

fn ask(session: &mut anabranch_engine::Session, sql: &str) -> Vec<Vec<String>> {
    let rows = session.query(sql).unwrap();
    let batches = rows.batches.iter();
    batches
        .flat_map(|batch| {
            let row = |row| batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap()).collect();
            (0..batch.num_rows()).map(row).collect::<Vec<_>>()
        })
        .collect()
}

/// At the end of the file, the frame's view has the last hour that has closed, and the view over it
/// joins what SQL computes.
#[test]
fn the_board_shows_the_hour_that_closed_last() {
    let flights = "../../examples/data/flights.parquet";
    let mut session = example::session(flights, "max").unwrap();
    let board = ask(&mut session, "SELECT origin, departures, late_min FROM board ORDER BY origin");
    let by_sql = "SELECT f.origin, count(*), late_min FROM flights f JOIN delays USING (origin),
                         (SELECT date_trunc('hour', max(sched_dep) - INTERVAL '1 microsecond') AS upto FROM flights) last
                  WHERE sched_dep > upto - INTERVAL '1 hour' AND sched_dep <= upto
                  GROUP BY f.origin, late_min ORDER BY f.origin";
    assert_eq!(board, ask(&mut session, by_sql));
    assert!(!board.is_empty());
}

/// A frame is a reader of a source by itself: reading begins with the frame, and no column is
/// missing, whether the source keeps its rows or not, and whether rows have passed before.
#[test]
fn a_frame_alone_reads_a_source() {
    let flights = "../../examples/data/flights.parquet";
    for retain in ["", ", retain = 'none'", ", retain = 'all'"] {
        for begins_before in [false, true] {
            if begins_before && retain.contains("none") {
                continue;
            }
            let mut session = Session::new(Options::default()).unwrap();
            session.register_connector("file", Arc::new(FileConnector));
            let source = format!(
                "CREATE SOURCE flights (sched_dep timestamp, origin text, dep_delay int, WATERMARK FOR sched_dep AS sched_dep)
                 WITH (connector = 'file', path = '{flights}'{retain})"
            );
            session.execute(&source).unwrap();
            if begins_before {
                session.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM flights").unwrap();
                session.step().unwrap();
            }
            let all = session
                .events("flights")
                .unwrap()
                .frame()
                .agg([count_rows().alias("n"), sum(col("dep_delay")).alias("late")]);
            session.create_view("all_flights", &all.alter_duration(FOREVER)).unwrap();
            while session.step().unwrap() == StepStatus::Working {}
            session.wait().unwrap();
            let found = ask(&mut session, "SELECT max(n) FROM all_flights");
            assert!(found[0][0].parse::<i64>().is_ok_and(|n| n > 336_000), "{retain} {begins_before}: {found:?}");
        }
    }
}

/// Columns are found, and one of them has a watermark.
#[test]
fn a_source_without_columns_may_have_a_watermark() {
    let create = |of: &str| {
        let mut session = Session::new(Options::default()).unwrap();
        session.register_connector("file", Arc::new(FileConnector));
        let path = "../../examples/data/flights.parquet";
        let sql = format!("CREATE SOURCE flights ({of}) WITH (connector = 'file', path = '{path}')");
        session.execute(&sql).map(|_| session)
    };
    let mut session = create("WATERMARK FOR sched_dep AS sched_dep - INTERVAL '1 day'").unwrap();
    session
        .execute(
            "CREATE MATERIALIZED VIEW days AS SELECT window_end, count(*) AS n
             FROM TUMBLE(flights, sched_dep, INTERVAL '1 day') GROUP BY window_end EMIT ON WINDOW CLOSE",
        )
        .unwrap();
    while session.step().unwrap() == StepStatus::Working {}
    session.wait().unwrap();
    let found = ask(&mut session, "SELECT count(*) FROM days");
    assert!(found[0][0].parse::<i64>().is_ok_and(|n| n > 300), "{found:?}");
    let error = create("WATERMARK FOR nothing AS nothing").err().unwrap();
    assert_eq!(error.message, "column \"nothing\" named in the watermark does not exist");
}
