//! Flights as events, joined with a view of SQL; both follow the file.
//!
//! ```text
//! cargo run --release -p anabranch-file --example busy_hours     (from the root of the repository)
//! ```
//!
//! A frame counts the departures of each airport in the hour that has just closed. Its result is a
//! relation, which SQL joins with the mean delay of each airport so far.

use std::sync::Arc;

use anabranch_engine::frame::{col, count_rows, window_end};
use anabranch_engine::{Error, Options, Session};
use anabranch_file::FileConnector;
use arrow::util::pretty::pretty_format_batches;

/// A tick is a microsecond.
const HOUR: i64 = 3_600_000_000;

/// A session that follows the flights, with a frame's view `busy` and views of SQL around it.
pub fn session(flights: &str, rate: &str) -> Result<Session, Error> {
    let mut session = Session::new(Options::default())?;
    session.register_connector("file", Arc::new(FileConnector));
    session.execute(&format!(
        "CREATE SOURCE flights (sched_dep timestamp, origin text, dep_delay int,
                                WATERMARK FOR sched_dep AS sched_dep)
         WITH (connector = 'file', path = '{flights}', rate = '{rate}');
         CREATE MATERIALIZED VIEW delays AS
         SELECT origin, round(avg(dep_delay), 1) AS late_min FROM flights GROUP BY origin"
    ))?;
    let busy = session.events("flights")?.frame().tumbling(HOUR).group_by([col("origin")]);
    let busy = busy.agg([count_rows().alias("departures")]).with_columns([window_end().alias("upto")]);
    session.create_view("busy", &busy)?;
    session.execute(
        "CREATE MATERIALIZED VIEW board AS
         SELECT origin, departures, late_min FROM busy JOIN delays USING (origin)",
    )?;
    Ok(session)
}

fn main() -> Result<(), Error> {
    let mut session = session("examples/data/flights.parquet", "100000")?;
    for _ in 0..6 {
        let until = std::time::Instant::now() + std::time::Duration::from_millis(500);
        while std::time::Instant::now() < until {
            session.step()?;
        }
        let board = session.query("SELECT * FROM board ORDER BY origin")?;
        let shown = pretty_format_batches(&board.batches).map_err(|error| Error::internal(error.to_string()))?;
        println!("{shown}");
    }
    Ok(())
}
