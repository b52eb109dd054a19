//! Three departures of an aircraft within a day, each at least half an hour later than the one
//! before: a pattern with a register.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{EventPattern, col, lit, reg};

use super::{HOUR, ask_flights, clock};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let found = ask_flights(data, |flights| {
        let known = flights.filter(col("tailnum").is_not_null().and(col("dep_delay").is_not_null()));
        let first = EventPattern::event(col("dep_delay").gt(lit(15))).set("delay", col("dep_delay"));
        let worse = || EventPattern::event(col("dep_delay").gt(reg("delay") + lit(30))).set("delay", col("dep_delay"));
        let pattern = EventPattern::sequence([first, worse(), worse()]).register("delay", lit(0i32)).within(24 * HOUR);
        known.group_apply([col("tailnum")], |aircraft| aircraft.detect(&pattern))
    })?;
    let worst =
        found.iter().max_by_key(|life| (life.row[1].to_string().parse::<i64>().unwrap_or_default(), life.start));
    let mut lines = vec![format!("{} times", found.len())];
    lines.extend(worst.map(|life| {
        format!("the worst: {} left {} minutes late, found {}", life.row[0], life.row[1], clock(life.start))
    }));
    Ok(lines)
}
