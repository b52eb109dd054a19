//! A flight is in the air from its departure for as long as it took: a lifetime computed from
//! columns. Snapshots count what is in force.

use std::path::Path;

use anabranch_engine::Error;
use anabranch_engine::frame::{col, count_rows, lit, start};

use super::{MINUTE, ask_flights, clock};

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let snapshots = ask_flights(data, |flights| {
        let flown = flights.filter(col("air_time").is_not_null().and(col("dep_delay").gt(lit(-60))));
        // (A flight that leaves early begins at its schedule all the same: events do not move
        // back.)
        let delay = datafusion_expr::cast(col("dep_delay"), arrow::datatypes::DataType::Int64) * lit(MINUTE);
        let late = datafusion_expr::when(col("dep_delay").gt(lit(0)), delay).otherwise(lit(0i64));
        let late = late.unwrap_or_else(|_| lit(0i64));
        flown
            .alter_lifetime(
                start() + late,
                Some(datafusion_expr::cast(col("air_time"), arrow::datatypes::DataType::Int64) * lit(MINUTE)),
            )
            .agg([count_rows()])
    })?;
    let most = snapshots.iter().max_by_key(|snapshot| number(snapshot));
    let line = most
        .map(|most| format!("at most {} at a time, from {} to {}", number(most), clock(most.start), clock(most.end)));
    Ok(line.into_iter().collect())
}

fn number(snapshot: &anabranch_engine::frame::ResultLifetime) -> i64 {
    snapshot.row[0].to_string().parse().unwrap_or_default()
}
