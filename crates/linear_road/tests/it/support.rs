//! Rows and seconds for tests.

use std::path::Path;

use anabranch_linear_road::row::{self, Row, Second, Seconds};

/// Rows in any order as seconds.
pub fn seconds(mut rows: Vec<Row>) -> Vec<Second> {
    rows.sort_by_key(|row| row.time);
    Seconds::new(rows.into_iter().map(Ok)).map(Result::unwrap).collect()
}

/// Official sample data, where it is at hand.
pub fn sample(name: &str) -> Option<Vec<Second>> {
    let folder = std::env::var("LINEAR_ROAD_DATA").unwrap_or_else(|_| "/work/shared/workloads/linear_road".to_owned());
    let path = Path::new(&folder).join(name);
    let file = std::fs::File::open(&path).ok()?;
    Some(Seconds::new(row::read(std::io::BufReader::new(file))).map(Result::unwrap).collect())
}
