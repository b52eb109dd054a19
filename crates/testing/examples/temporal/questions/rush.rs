//! Windows of an hour at every quarter, by airport, and the greatest of each day: an aggregate of
//! an aggregate.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{col, count_rows, max};

use super::{HOUR, MINUTE, ask_flights, clock};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let days = ask_flights(data, |flights| {
        let rush = flights.hopping(HOUR, 15 * MINUTE, 0).group_by([col("origin")]).agg([count_rows().alias("flights")]);
        rush.tumbling(24 * HOUR).group_by([col("origin")]).agg([max(col("flights")).alias("most")])
    })?;
    let mut best: Vec<(String, i64, i64)> = Vec::new();
    for day in &days {
        let (origin, most): (String, i64) =
            (day.row[0].to_string(), day.row[1].to_string().parse().unwrap_or_default());
        match best.iter_mut().find(|(known, ..)| *known == origin) {
            Some(known) if known.1 >= most => {}
            Some(known) => *known = (origin, most, day.start),
            None => best.push((origin, most, day.start)),
        }
    }
    best.sort();
    let line = |(origin, most, end): &(String, i64, i64)| {
        format!("{origin}: {most} within an hour, on the day that ended {}", clock(*end))
    };
    Ok(best.iter().map(line).collect())
}
