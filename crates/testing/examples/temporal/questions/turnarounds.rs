//! A departure holds until the same aircraft departs again: a signal, clipped by itself.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{FOREVER, col};

use super::{HOUR, ask_flights};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let away = ask_flights(data, |flights| {
        let known = flights.filter(col("tailnum").is_not_null()).select([col("tailnum")]);
        let last = known.alter_duration(FOREVER);
        last.clip_by(&last, [col("tailnum")], [col("tailnum")])
    })?;
    let mut hours: Vec<i64> =
        away.iter().filter(|life| life.end != FOREVER).map(|life| (life.end - life.start) / HOUR).collect();
    hours.sort();
    let still = away.len() - hours.len();
    let part = |percent: usize| hours.get(hours.len() * percent / 100).copied().unwrap_or_default();
    Ok(vec![
        format!("{} departures were followed by another of the same aircraft, {still} were not", hours.len()),
        format!(
            "after {} hours in a quarter of all cases, {} in half, {} in three quarters",
            part(25),
            part(50),
            part(75)
        ),
    ])
}
