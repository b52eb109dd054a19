//! Departures of an airport less than two hours apart are one session: a day's traffic. Between
//! sessions it is quiet.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{col, count_rows};

use super::{HOUR, ask_flights, clock};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let sessions = ask_flights(data, |flights| {
        // Every departure lasts until its session ends; of those in force together, one event for
        // each stretch.
        let busy = flights.group_apply([col("origin")], |airport| airport.session(2 * HOUR, None));
        // Rows alike but for their number touch where one more comes: stitched, they are the
        // session.
        let alive = busy.group_by([col("origin")]).agg([count_rows().alias("n")]);
        alive.select([col("origin")]).stitch()
    })?;
    let mut lines = Vec::new();
    for origin in ["EWR", "JFK", "LGA"] {
        let days: Vec<_> = sessions.iter().filter(|session| session.row[0].to_string() == origin).collect();
        // (A session lasts two hours from its last departure.)
        let last = |day: i64| day - 2 * HOUR;
        let gaps = days.windows(2).map(|pair| (pair[1].start - last(pair[0].end), last(pair[0].end)));
        if let Some((gap, from)) = gaps.max() {
            let hours = gap as f64 / HOUR as f64;
            lines.push(format!(
                "{origin}: {} sessions, longest quiet {hours:.1} hours from {}",
                days.len(),
                clock(from)
            ));
        }
    }
    Ok(lines)
}
