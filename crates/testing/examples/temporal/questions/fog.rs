//! An observation of the weather is in force for an hour; a departure meets the one of its airport
//! at its time.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{Events, How, Pace, Play, avg, col, count_rows, lit};

use super::{HOUR, open, session};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let mut session = session()?;
    let (flights, weather) = (open(&session, data, "flights.parquet")?, open(&session, data, "weather.parquet")?);
    // Both by the hour that their rows name, which is the same instant in both.
    let departures = Events::input("flights", flights.schema()).time_column("time_hour").constant_duration(1);
    let observed = Events::input("weather", weather.schema()).time_column("time_hour").constant_duration(HOUR);
    let departures = departures.frame().select([col("origin"), col("dep_delay")]);
    let observed = observed.frame().select([col("origin"), col("visib").lt(lit(2.0)).alias("bad sight")]);
    let met = departures.join(&observed, [col("origin")], [col("origin")], How::Inner);
    // All of the year: events that never end.
    let year = met.alter_duration(anabranch_engine::frame::FOREVER);
    let frame = year.group_by([col("bad sight")]).agg([count_rows(), avg(col("dep_delay"))]);
    let mut run = session.start(&frame)?;
    run.play_to_end(&mut Play::new([("flights", flights), ("weather", weather)], Pace::Fast))?;
    let lifetimes = run.lifetimes()?;
    let last = lifetimes.iter().filter(|lifetime| lifetime.end == anabranch_engine::frame::FOREVER);
    let mut lines: Vec<String> = last
        .map(|lifetime| {
            let late: f64 = lifetime.row[2].to_string().parse().unwrap_or_default();
            format!("bad sight {}: {} flights, {late:.1} minutes late", lifetime.row[0], lifetime.row[1])
        })
        .collect();
    lines.sort();
    Ok(lines)
}
