//! `to_char` of moments and intervals: values written by a [`template`](super::template).

use std::fmt::Write;

use super::calendar::{
    Civil, MICROS_A_DAY, MICROS_A_MINUTE, MICROS_A_SECOND, MICROS_AN_HOUR, civil, day_of_year, days_of,
    iso_day_of_year, iso_week, julian, weekday,
};
use super::interval::{DAYS_A_MONTH, Interval, MONTHS_A_YEAR};
use super::template::{DAYS, Field, Letters, MONTHS, Ordinal, ROMAN_MONTHS, SHORT, TemplateNode, TemplatePlace};

/// What is written, in fields.
#[derive(Clone, Copy, Debug)]
struct Fields {
    /// 0 is 1 BC.
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: i64,
    kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Timestamp,
    /// A timestamp in the session's zone, UTC.
    Instant,
    Interval,
}

/// Whether a moment has a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownZone {
    None,
    Utc,
}

/// Writes a moment, in microseconds since the epoch.
pub(crate) fn write_moment(micros: i64, zone: ShownZone, nodes: &[TemplateNode], out: &mut String) {
    let (days, time) = (micros.div_euclid(MICROS_A_DAY), micros.rem_euclid(MICROS_A_DAY));
    let Civil { year, month, day } = civil(days);
    let fields = Fields {
        year,
        month,
        day,
        hour: time / MICROS_AN_HOUR,
        minute: time / MICROS_A_MINUTE % 60,
        second: time / MICROS_A_SECOND % 60,
        micros: time % MICROS_A_SECOND,
        day_of_year: day_of_year(days),
        kind: if zone == ShownZone::None { FieldKind::Timestamp } else { FieldKind::Instant },
    };
    for node in nodes {
        match node {
            TemplateNode::Field(place) => fields.write(place, out),
            TemplateNode::Character(c) | TemplateNode::Separator(c) | TemplateNode::Space(c) => out.push(*c),
        }
    }
}

/// Writes an interval.
///
/// # Errors
/// A field that only a date has.
pub(crate) fn write_interval(interval: Interval, nodes: &[TemplateNode], out: &mut String) -> Result<(), String> {
    let (months, days, time) = (i64::from(interval.months), i64::from(interval.days), interval.micros);
    let fields = Fields {
        year: months / MONTHS_A_YEAR,
        month: months % MONTHS_A_YEAR,
        day: days,
        hour: time / MICROS_AN_HOUR,
        minute: time / MICROS_A_MINUTE % 60,
        second: time / MICROS_A_SECOND % 60,
        micros: time % MICROS_A_SECOND,
        day_of_year: months * DAYS_A_MONTH + days,
        kind: FieldKind::Interval,
    };
    for node in nodes {
        match node {
            TemplateNode::Field(place) if is_of_dates(place.field) => {
                return Err(format!(
                    "invalid format specification for an interval value: \"{}\" is of dates only",
                    place.name
                ));
            }
            TemplateNode::Field(place) => fields.write(place, out),
            TemplateNode::Character(c) | TemplateNode::Separator(c) | TemplateNode::Space(c) => out.push(*c),
        }
    }
    Ok(())
}

fn is_of_dates(field: Field) -> bool {
    use Field as F;
    matches!(
        field,
        F::Era { .. }
            | F::DayName
            | F::DayNameShort
            | F::MonthName
            | F::MonthNameShort
            | F::DayOfWeek
            | F::IsoDayOfWeek
            | F::Zone
            | F::ZoneHour
            | F::ZoneMinute
            | F::Offset
    )
}

impl Fields {
    fn write(&self, place: &TemplatePlace, out: &mut String) {
        use Field as F;
        let start = out.len();
        match place.field {
            F::Exact => return,
            F::Era { points } => push_era(self.year <= 0, ["AD", "BC"], points, place, out),
            F::HalfDay { points } => push_era(self.hour % 24 >= 12, ["AM", "PM"], points, place, out),
            F::DayName => push_name(DAYS[self.weekday() as usize], place, 9, out),
            F::DayNameShort => push_name(&DAYS[self.weekday() as usize][..SHORT], place, 0, out),
            F::MonthName => push_name(MONTHS[self.month as usize - 1], place, 9, out),
            F::MonthNameShort => push_name(&MONTHS[self.month as usize - 1][..SHORT], place, 0, out),
            F::RomanMonth => {
                if let Some(month) = self.roman_month() {
                    push_name(month, place, 4, out);
                }
            }
            F::Zone if self.kind == FieldKind::Instant => push_name("UTC", place, 0, out),
            F::Zone => {}
            F::ZoneHour => return out.push_str("+00"),
            F::ZoneMinute => return out.push_str("00"),
            F::Offset => return out.push_str(if place.is_bare { "+0" } else { "+00" }),
            F::YearWithComma => {
                let year = self.shown_year(self.year);
                push(out, format_args!("{},{:03}", year / 1000, year % 1000));
            }
            F::Year(digits) => self.push_year(self.year, digits, place, out),
            F::IsoYear(digits) => self.push_year(iso_week(self.days()).0, digits, place, out),
            F::Fraction(digits) => self.push_fraction(digits, out),
            F::Millisecond => self.push_fraction(3, out),
            F::Microsecond => self.push_fraction(6, out),
            number => {
                if let Some((value, width)) = self.number(number) {
                    let width = if place.is_bare { 0 } else { width };
                    push_number(value, width, out);
                }
            }
        }
        push_ordinal(place, start, out);
    }

    /// The last digits of a year, or all of it. The calendar's year says whether there is a place
    /// for a sign, also for the ISO year.
    fn push_year(&self, year: i64, digits: u8, place: &TemplatePlace, out: &mut String) {
        let whole = self.shown_year(year);
        let value = if digits < 4 { whole % 10i64.pow(u32::from(digits)) } else { whole };
        let signed = digits > 1 && self.shown_year(self.year) < 0;
        let width = if place.is_bare { 0 } else { usize::from(digits) + usize::from(signed) };
        push_number(value, width, out);
    }

    /// Digits of the second's fraction, filled up also after FM. A sign takes the place of a digit.
    fn push_fraction(&self, digits: u8, out: &mut String) {
        let value = self.micros / 10i64.pow(u32::from(6 - digits));
        push_number(value, usize::from(digits), out);
    }

    /// A number and the width to which it is filled up with zeros.
    fn number(&self, field: Field) -> Option<(i64, usize)> {
        use Field as F;
        Some(match field {
            F::Century => (self.century(), with_sign(2, self.century())),
            F::DayOfYear => (self.day_of_year, 3),
            F::DayOfMonth => (self.day, 2),
            F::DayOfWeek => (self.weekday() + 1, 1),
            F::Hour24 => (self.hour, with_sign(2, self.hour)),
            F::Hour12 if self.hour % 12 == 0 => (12, with_sign(2, self.hour)),
            F::Hour12 => (self.hour % 12, with_sign(2, self.hour)),
            F::IsoDayOfYear => (iso_day_of_year(self.days()), 3),
            F::IsoDayOfWeek => (if self.weekday() == 0 { 7 } else { self.weekday() }, 1),
            F::IsoWeek => (iso_week(self.days()).1, 2),
            F::Julian => (julian(self.days()), 1),
            F::Minute => (self.minute, with_sign(2, self.minute)),
            F::Month => (self.month, with_sign(2, self.month)),
            F::Quarter if self.month == 0 => return None,
            F::Quarter => ((self.month - 1) / 3 + 1, 1),
            F::SecondOfDay => (self.hour * 3600 + self.minute * 60 + self.second, 1),
            F::Second => (self.second, with_sign(2, self.second)),
            F::WeekOfYear => ((self.day_of_year - 1) / 7 + 1, 2),
            F::WeekOfMonth => ((self.day - 1) / 7 + 1, 1),
            _ => return None,
        })
    }

    fn days(&self) -> i64 {
        days_of(Civil { year: self.year, month: self.month, day: self.day })
    }

    fn weekday(&self) -> i64 {
        weekday(self.days())
    }

    /// Years before Christ are counted from 1, those of intervals from 0.
    fn shown_year(&self, year: i64) -> i64 {
        if self.kind != FieldKind::Interval && year <= 0 { 1 - year } else { year }
    }

    fn century(&self) -> i64 {
        match (self.kind, self.year) {
            (FieldKind::Interval, year) => year / 100,
            (_, year @ 1..) => (year - 1) / 100 + 1,
            (_, year) => year / 100 - 1,
        }
    }

    /// Of an interval, months below zero count from the end of the year.
    fn roman_month(&self) -> Option<&'static str> {
        let month = match (self.month, self.year) {
            (0, 0) => return None,
            (0, 1..) => 12,
            (0, _) => 1,
            (month @ 1.., _) => month,
            (month, _) => 13 + month,
        };
        usize::try_from(month - 1).ok().and_then(|at| ROMAN_MONTHS.get(at).copied())
    }
}

/// The width with a place for the sign.
fn with_sign(width: usize, value: i64) -> usize {
    width + usize::from(value < 0)
}

fn push(out: &mut String, value: std::fmt::Arguments<'_>) {
    out.write_fmt(value).expect("writing to a String cannot fail");
}

/// A number, filled up with zeros behind its sign to a width.
fn push_number(value: i64, width: usize, out: &mut String) {
    const DIGITS_MAX: usize = 20;
    let mut digits = [b'0'; DIGITS_MAX];
    let (mut first, mut left) = (DIGITS_MAX, value.unsigned_abs());
    while left > 0 || first == DIGITS_MAX {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let is_negative = value < 0;
    if is_negative {
        out.push('-');
    }
    let n_written = DIGITS_MAX - first + usize::from(is_negative);
    out.extend(std::iter::repeat_n('0', width.saturating_sub(n_written)));
    out.extend(digits[first..].iter().map(|digit| char::from(*digit)));
}

/// One of two words: `AD` or `BC`, `AM` or `PM`.
fn push_era(is_second: bool, words: [&str; 2], points: bool, place: &TemplatePlace, out: &mut String) {
    let word = words[usize::from(is_second)];
    let start = out.len();
    for letter in word.chars() {
        out.push(letter);
        if points {
            out.push('.');
        }
    }
    if place.letters == Letters::Lower {
        out[start..].make_ascii_lowercase();
    }
}

/// A name, filled up with spaces behind it.
fn push_name(name: &str, place: &TemplatePlace, width: usize, out: &mut String) {
    let is_bare = place.is_bare || (place.is_local && place.field != Field::RomanMonth);
    let width = if is_bare { 0 } else { width };
    match place.letters {
        Letters::Upper => push(out, format_args!("{:width$}", name.to_ascii_uppercase())),
        Letters::Capital => push(out, format_args!("{name:width$}")),
        Letters::Lower => push(out, format_args!("{:width$}", name.to_ascii_lowercase())),
    }
}

/// `st`, `nd`, `rd` or `th` behind the number that began at `start`.
fn push_ordinal(place: &TemplatePlace, start: usize, out: &mut String) {
    if place.ordinal == Ordinal::None || !out[start..].ends_with(|c: char| c.is_ascii_digit()) {
        return;
    }
    let ending = ordinal_ending(&out[start..]);
    match place.ordinal {
        Ordinal::Upper => out.push_str(&ending.to_ascii_uppercase()),
        _ => out.push_str(ending),
    }
}

/// The ending of an ordinal number of these digits.
pub(crate) fn ordinal_ending(digits: &str) -> &'static str {
    let bytes = digits.as_bytes();
    let is_teen = bytes.len() > 1 && bytes[bytes.len() - 2] == b'1';
    match bytes.last() {
        Some(b'1') if !is_teen => "st",
        Some(b'2') if !is_teen => "nd",
        Some(b'3') if !is_teen => "rd",
        _ => "th",
    }
}
