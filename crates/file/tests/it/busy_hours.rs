//! The example: a frame over a file, joined with SQL, against SQL alone.

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
    let flights = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/flights.parquet");
    let mut session = example::session(flights, "max").unwrap();
    let board = ask(&mut session, "SELECT origin, departures, late_min FROM board ORDER BY origin");
    let by_sql = "SELECT f.origin, count(*), late_min FROM flights f JOIN delays USING (origin),
                         (SELECT date_trunc('hour', max(sched_dep) - INTERVAL '1 microsecond') AS upto FROM flights) last
                  WHERE sched_dep > upto - INTERVAL '1 hour' AND sched_dep <= upto
                  GROUP BY f.origin, late_min ORDER BY f.origin";
    assert_eq!(board, ask(&mut session, by_sql));
    assert!(!board.is_empty());
}
