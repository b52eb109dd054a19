//! Intervals as PostgreSQL has them: months, days and microseconds, each with its own sign.

use anabranch_batch::TimePrecision;

use super::calendar::{MICROS_A_DAY, MICROS_A_MINUTE, MICROS_A_SECOND, MICROS_AN_HOUR};

pub(crate) const MONTHS_A_YEAR: i64 = 12;
pub(crate) const DAYS_A_MONTH: i64 = 30;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) micros: i64,
}

/// The least unit that `interval year to month` and its like keep; greater ones are never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// `interval hour to second(3)`: what the words after the type say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Qualifier {
    /// The first and the last field; the same where one is written.
    pub(crate) fields: Option<(Field, Field)>,
    /// Digits of the seconds' fraction.
    pub(crate) precision: Option<u8>,
}

impl Qualifier {
    /// The interval without what lies below the last field, its seconds rounded.
    pub(crate) fn apply(self, interval: Interval) -> Option<Interval> {
        let Interval { months, days, micros } = interval;
        let kept = match self.fields.map(|(_, last)| last) {
            Some(Field::Year) => Interval { months: months / 12 * 12, days: 0, micros: 0 },
            Some(Field::Month) => Interval { months, days: 0, micros: 0 },
            Some(Field::Day) => Interval { micros: 0, ..interval },
            Some(Field::Hour) => Interval { micros: micros / MICROS_AN_HOUR * MICROS_AN_HOUR, ..interval },
            Some(Field::Minute) => Interval { micros: micros / MICROS_A_MINUTE * MICROS_A_MINUTE, ..interval },
            Some(Field::Second) | None => Interval { months, days, micros },
        };
        Some(Interval { micros: TimePrecision(self.precision.unwrap_or(PRECISION_MAX)).round(kept.micros)?, ..kept })
    }
}

/// Digits of a second that microseconds have.
pub(crate) const PRECISION_MAX: u8 = 6;

impl Interval {
    pub(crate) fn negated(self) -> Option<Interval> {
        let (months, days) = (self.months.checked_neg()?, self.days.checked_neg()?);
        Some(Interval { months, days, micros: self.micros.checked_neg()? })
    }

    /// The product. Fractions of months become days, of days hours.
    pub(crate) fn times(self, factor: f64) -> Option<Interval> {
        self.scaled(|part| part * factor)
    }

    pub(crate) fn divided(self, divisor: f64) -> Option<Interval> {
        self.scaled(|part| part / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Option<Interval> {
        let months = scale(f64::from(self.months));
        let days = scale(f64::from(self.days));
        let (whole_months, whole_days) = (whole(months)?, whole(days)?);
        // Below a microsecond a fraction is noise of the binary numbers.
        let month_days = to_micros((months - f64::from(whole_months)) * DAYS_A_MONTH as f64);
        let seconds = (days - f64::from(whole_days) + month_days - month_days.trunc()) * SECONDS_A_DAY;
        let mut seconds = to_micros(seconds);
        let mut spilt = 0;
        // What was rounded may have come to a whole day.
        if seconds.abs() >= SECONDS_A_DAY {
            spilt = (seconds / SECONDS_A_DAY) as i32;
            seconds -= f64::from(spilt) * SECONDS_A_DAY;
        }
        let whole_days = whole_days.checked_add(month_days as i32)?.checked_add(spilt)?;
        let micros = (scale(self.micros as f64) + seconds * MICROS_A_SECOND as f64).round_ties_even();
        let fits = micros.is_finite() && micros >= i64::MIN as f64 && micros < i64::MAX as f64;
        fits.then_some(Interval { months: whole_months, days: whole_days, micros: micros as i64 })
    }

    /// Days of 24 hours made of hours; with days' sign that of the rest.
    pub(crate) fn justify_hours(self) -> Option<Interval> {
        let spilt = self.micros / MICROS_A_DAY;
        let mut days = i64::from(self.days) + spilt;
        let mut micros = self.micros - spilt * MICROS_A_DAY;
        if days > 0 && micros < 0 {
            micros += MICROS_A_DAY;
            days -= 1;
        } else if days < 0 && micros > 0 {
            micros -= MICROS_A_DAY;
            days += 1;
        }
        Some(Interval { days: i32::try_from(days).ok()?, micros, ..self })
    }

    /// Months of 30 days made of days.
    pub(crate) fn justify_days(self) -> Option<Interval> {
        let spilt = i64::from(self.days) / DAYS_A_MONTH;
        let mut months = i64::from(self.months) + spilt;
        let mut days = i64::from(self.days) - spilt * DAYS_A_MONTH;
        if months > 0 && days < 0 {
            days += DAYS_A_MONTH;
            months -= 1;
        } else if months < 0 && days > 0 {
            days -= DAYS_A_MONTH;
            months += 1;
        }
        Some(Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, ..self })
    }

    /// Both, and all parts of one sign.
    pub(crate) fn justify(self) -> Option<Interval> {
        let (mut months, mut days, mut micros) = (i64::from(self.months), i64::from(self.days), self.micros);
        // Days first where they have the sign of the time, lest they leave their range on the way.
        if (days > 0 && micros > 0) || (days < 0 && micros < 0) {
            months += days / DAYS_A_MONTH;
            days %= DAYS_A_MONTH;
        }
        days += micros / MICROS_A_DAY;
        micros %= MICROS_A_DAY;
        months += days / DAYS_A_MONTH;
        days %= DAYS_A_MONTH;
        if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
            days += DAYS_A_MONTH;
            months -= 1;
        } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
            days -= DAYS_A_MONTH;
            months += 1;
        }
        if days > 0 && micros < 0 {
            micros += MICROS_A_DAY;
            days -= 1;
        } else if days < 0 && micros > 0 {
            micros -= MICROS_A_DAY;
            days += 1;
        }
        Some(Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, micros })
    }
}

const SECONDS_A_DAY: f64 = 86_400.0;

/// The whole part, if it is within the range of months and days.
fn whole(value: f64) -> Option<i32> {
    let fits = !value.is_nan() && value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
    fits.then_some(value as i32)
}

/// Rounded to six digits behind the point.
fn to_micros(value: f64) -> f64 {
    let micros = MICROS_A_SECOND as f64;
    (value * micros).round_ties_even() / micros
}
