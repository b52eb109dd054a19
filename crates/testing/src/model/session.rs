//! Sessions: each row looks for the ends of its session by going on to a nearer row, as long as
//! there is one.

use anabranch_spec::session::SessionWindows;
use datafusion_common::ScalarValue;

use super::answer::Answer;
use super::asof::instant;
use crate::row::{Contents, Row};

/// The answer of sessions over their input's answer.
pub fn sessions(session: &SessionWindows, input: Answer) -> Answer {
    let mut answer = Answer { rows: Contents::new(), errors: input.errors };
    for (row, count) in input.rows.iter() {
        let time = row.value(session.time);
        if instant(time).is_some() {
            let bounds = [-1, 1].map(|way| end(session, row, &input.rows, way));
            answer.rows.add(row.concat(&Row::new(bounds)), count);
        }
    }
    answer
}

/// The last time that is reached from a row's time on, going one way.
fn end(session: &SessionWindows, row: &Row, rows: &Contents, way: i128) -> ScalarValue {
    let key = row.project(&session.partition);
    let mut at = row.value(session.time).clone();
    loop {
        let here = instant(&at).unwrap_or_default() * way;
        let times = rows.iter().filter(|(other, _)| other.project(&session.partition) == key);
        let times = times.filter_map(|(other, _)| Some((instant(other.value(session.time))? * way, other)));
        let near = times.filter(|(time, _)| *time > here && (*time - here).unsigned_abs() <= u128::from(session.gap));
        match near.min_by_key(|(time, _)| *time) {
            Some((_, other)) => at = other.value(session.time).clone(),
            None => return at,
        }
    }
}
