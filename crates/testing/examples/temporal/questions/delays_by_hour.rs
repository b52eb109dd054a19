//! Windows of an hour, one after the other: what is reported is final, and names its window.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{avg, col, count_rows, window_end, window_start};

use super::{HOUR, ask_flights, clock};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let hours = ask_flights(data, |flights| {
        flights.tumbling(HOUR).agg([count_rows().alias("flights"), avg(col("dep_delay")).alias("late")]).select([
            window_start(),
            window_end(),
            col("flights"),
            col("late"),
        ])
    })?;
    let worst = hours.iter().filter(|hour| count(hour, 2) >= 30).max_by(|a, b| late(a).total_cmp(&late(b)));
    let Some(worst) = worst else { return Ok(vec![]) };
    Ok(vec![
        format!("{} hours with departures", hours.len()),
        format!(
            "the latest: {} to {}, {} flights, {:.1} minutes",
            clock(count(worst, 0)),
            clock(count(worst, 1)),
            count(worst, 2),
            late(worst)
        ),
    ])
}

fn count(hour: &anabranch_engine::frame::ResultLifetime, column: usize) -> i64 {
    hour.row[column].to_string().parse().unwrap_or_default()
}

fn late(hour: &anabranch_engine::frame::ResultLifetime) -> f64 {
    hour.row[3].to_string().parse().unwrap_or(f64::MIN)
}
