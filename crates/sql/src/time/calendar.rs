//! The Gregorian calendar, counted in days since 1970-01-01 and in years of which 0 is 1 BC.
//!
//! Source: Howard Hinnant, "chrono-compatible low-level date algorithms". The year is counted from
//! March, in cycles of 400 years. Cost: a few divisions a call.

pub(crate) const MICROS_A_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_A_MINUTE: i64 = 60 * MICROS_A_SECOND;
pub(crate) const MICROS_AN_HOUR: i64 = 60 * MICROS_A_MINUTE;
pub(crate) const MICROS_A_DAY: i64 = 24 * MICROS_AN_HOUR;
const DAYS_A_CYCLE: i64 = 146_097;
/// Days from 0000-03-01 to the epoch.
const EPOCH: i64 = 719_468;
/// The Julian day of the epoch.
const JULIAN_EPOCH: i64 = 2_440_588;
/// The first day that `timestamp` has, 4714-11-24 BC, and the first beyond it, 294277-01-01.
const TIMESTAMP_DAYS: std::ops::Range<i64> = -JULIAN_EPOCH..106_751_991;

/// A day by year (0 is 1 BC), month and day of the month, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// The date of a day since the epoch.
pub(crate) fn civil(days: i64) -> Civil {
    let days = days + EPOCH;
    let cycle = days.div_euclid(DAYS_A_CYCLE);
    let in_cycle = days.rem_euclid(DAYS_A_CYCLE);
    let year = (in_cycle - in_cycle / 1460 + in_cycle / 36_524 - in_cycle / 146_096) / 365;
    let in_year = in_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    Civil { year: year + cycle * 400 + i64::from(month <= 2), month, day }
}

/// Days since the epoch. A day beyond the end of its month counts into the next.
pub(crate) fn days_of(date: Civil) -> i64 {
    let year = if date.month <= 2 { date.year - 1 } else { date.year };
    let cycle = year.div_euclid(400);
    let in_cycle = year.rem_euclid(400);
    let from_march = if date.month > 2 { date.month - 3 } else { date.month + 9 };
    // (Intervals are asked for months below 1.)
    let in_year = (153 * from_march + 2).div_euclid(5) + date.day - 1;
    cycle * DAYS_A_CYCLE + in_cycle * 365 + in_cycle / 4 - in_cycle / 100 + in_year - EPOCH
}

pub(crate) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Day of the week; Sunday is 0.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// Day of the year, from 1.
pub(crate) fn day_of_year(days: i64) -> i64 {
    days - days_of(Civil { year: civil(days).year, month: 1, day: 1 }) + 1
}

/// The Monday at which a week of an ISO year begins.
pub(crate) fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = days_of(Civil { year, month: 1, day: 4 });
    fourth - (fourth + 3).rem_euclid(7) + (week - 1) * 7
}

/// ISO year and week.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    // The week belongs to the year of its Thursday.
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let year = civil(thursday).year;
    (year, (thursday - iso_week_start(year, 1)) / 7 + 1)
}

/// Day of the ISO year, from 1.
pub(crate) fn iso_day_of_year(days: i64) -> i64 {
    days - iso_week_start(iso_week(days).0, 1) + 1
}

pub(crate) fn julian(days: i64) -> i64 {
    days + JULIAN_EPOCH
}

pub(crate) fn of_julian(day: i64) -> i64 {
    day - JULIAN_EPOCH
}

/// Microseconds since the epoch; `None` beyond the range of `timestamp`.
pub(crate) fn micros_of(days: i64, micros: i64) -> Option<i64> {
    let moment = days.checked_mul(MICROS_A_DAY)?.checked_add(micros)?;
    TIMESTAMP_DAYS.contains(&moment.div_euclid(MICROS_A_DAY)).then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-3_000_000..3_000_000).step_by(997) {
            assert_eq!(days_of(civil(days)), days);
        }
        assert_eq!(civil(-1), Civil { year: 1969, month: 12, day: 31 });
        assert_eq!(civil(11_016), Civil { year: 2000, month: 2, day: 29 });
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        let day = |year, month, day| days_of(Civil { year, month, day });
        assert_eq!(iso_week(day(2021, 1, 3)), (2020, 53));
        assert_eq!(iso_week(day(2024, 12, 30)), (2025, 1));
        assert_eq!(iso_day_of_year(day(2024, 12, 30)), 1);
        assert_eq!(weekday(day(2024, 5, 5)), 0);
        assert_eq!(day_of_year(day(2024, 12, 31)), 366);
    }
}
