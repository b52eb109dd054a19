//! As-of joins: each left row compares itself with all right rows.

use anabranch_plan::asof::{AsofJoin, Strategy};
use anabranch_plan::{Nulls, Plan};
use datafusion_common::ScalarValue;

use super::answer::Answer;
use super::join::null_row;
use crate::row::{Contents, Row};

/// The answer of an as-of join over its inputs' answers.
pub fn asof(asof: &AsofJoin, right_plan: &Plan, left: Answer, right: Answer) -> Answer {
    let mut answer = Answer { rows: Contents::new(), errors: left.errors };
    answer.fail_all(right.errors);
    for (row, count) in left.rows.iter() {
        match nearest(asof, row, &right.rows) {
            Some(found) => answer.rows.add(row.concat(found), count),
            None if asof.outer => answer.rows.add(row.concat(&null_row(&right_plan.schema)), count),
            None => {}
        }
    }
    answer
}

/// The right row that a left row is joined with. Contents are in order of their columns, so the
/// first of several is the one.
fn nearest<'a>(asof: &AsofJoin, left: &Row, right: &'a Contents) -> Option<&'a Row> {
    let key = left.project(&asof.left_key);
    let at = instant(left.value(asof.left_time))?;
    let candidates = right.iter().filter_map(|(row, _)| Some((row, instant(row.value(asof.right_time))?)));
    let candidates = candidates.filter(|(row, time)| {
        let is_side = match asof.strategy {
            Strategy::Backward => *time <= at,
            Strategy::Forward => *time >= at,
            Strategy::Nearest => true,
        };
        let is_near = asof.tolerance.is_none_or(|tolerance| (time - at).unsigned_abs() <= u128::from(tolerance));
        (asof.nulls == Nulls::Equal || !key.has_null())
            && row.project(&asof.right_key) == key
            && is_side
            && is_near
            && (asof.exact || *time != at)
    });
    // Of two that differ alike, the later one.
    candidates.min_by_key(|(row, time)| ((time - at).abs(), -time, (*row).clone())).map(|(row, _)| row)
}

/// A time as a number; `None` for NULL.
pub(super) fn instant(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i128::from),
        ScalarValue::Int64(value) | ScalarValue::TimestampMicrosecond(value, _) => value.map(i128::from),
        other => panic!("{other:?} is no time"),
    }
}
