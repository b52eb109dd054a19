//! Intervals in text: `1 year 2 mons`, `3 04:05:06`, `1-2`, `@ 5 days ago`, `P1Y2M3DT4H`, `6`.
//!
//! Words are read from the last to the first, so that a number knows its unit. A bare number at the
//! end has the qualifier's last field for its unit, else seconds. A fraction of a month becomes
//! days, of a week or a day time; of a year months. Law: the answer is PostgreSQL 15's with
//! `intervalstyle = postgres`.

use super::calendar::{MICROS_A_DAY, MICROS_A_MINUTE, MICROS_A_SECOND, MICROS_AN_HOUR};
use super::interval::{DAYS_A_MONTH, Field, Interval, MONTHS_A_YEAR, Qualifier};
use super::tokens::{TokenKind, Word, words};

/// Why a text is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalProblem {
    Syntax,
    OutOfRange,
}

use IntervalProblem::{OutOfRange, Syntax};

/// Reads an interval with the qualifier of its type.
///
/// # Errors
/// In PostgreSQL's words, with the text.
pub(crate) fn read_interval(text: &str, qualifier: Qualifier) -> Result<Interval, String> {
    let read = match words(text).ok_or(Syntax).and_then(|words| read_words(&words, qualifier)) {
        Err(Syntax) => read_iso(text),
        read => read,
    };
    match read.and_then(|parts| qualifier.apply(parts.interval()?).ok_or(OutOfRange)) {
        Ok(interval) => Ok(interval),
        Err(Syntax) => Err(format!("invalid input syntax for type interval: \"{text}\"")),
        Err(OutOfRange) => Err(format!("interval field value out of range: \"{text}\"")),
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

/// Units by the first ten letters of their names.
const UNITS: [(&[&str], Unit); 12] = [
    (&["us", "usec", "usecs", "usecond", "useconds", "microsecon"], Unit::Microsecond),
    (&["ms", "msec", "msecs", "msecond", "mseconds", "millisecon"], Unit::Millisecond),
    (&["s", "sec", "secs", "second", "seconds"], Unit::Second),
    (&["m", "min", "mins", "minute", "minutes"], Unit::Minute),
    (&["h", "hr", "hrs", "hour", "hours"], Unit::Hour),
    (&["d", "day", "days"], Unit::Day),
    (&["w", "week", "weeks"], Unit::Week),
    (&["mon", "mons", "month", "months"], Unit::Month),
    (&["y", "yr", "yrs", "year", "years"], Unit::Year),
    (&["dec", "decs", "decade", "decades"], Unit::Decade),
    (&["c", "cent", "century", "centuries"], Unit::Century),
    (&["mil", "mils", "millennia", "millennium"], Unit::Millennium),
];

/// Letters of a unit's name that count.
const UNIT_LETTERS: usize = 10;

fn unit(name: &str) -> Option<Unit> {
    let name = &name[..name.len().min(UNIT_LETTERS)];
    UNITS.iter().find(|(names, _)| names.contains(&name)).map(|(_, unit)| *unit)
}

/// The parts so far, wide enough for what is added up.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

impl Parts {
    fn interval(self) -> Result<Interval, IntervalProblem> {
        let months = self.years.checked_mul(MONTHS_A_YEAR).and_then(|months| months.checked_add(self.months));
        let months = months.and_then(|months| i32::try_from(months).ok()).ok_or(OutOfRange)?;
        let days = i32::try_from(self.days).map_err(|_| OutOfRange)?;
        Ok(Interval { months, days, micros: self.micros })
    }

    fn negated(self) -> Result<Parts, IntervalProblem> {
        let micros = self.micros.checked_neg().ok_or(OutOfRange)?;
        Ok(Parts { years: -self.years, months: -self.months, days: -self.days, micros })
    }

    /// Adds a count of a unit.
    fn add(&mut self, number: Number, unit: Unit) -> Result<(), IntervalProblem> {
        let Number { whole, fraction } = number;
        match unit {
            Unit::Microsecond => self.add_time(number, 1),
            Unit::Millisecond => self.add_time(number, 1000),
            Unit::Second => self.add_time(number, MICROS_A_SECOND),
            Unit::Minute => self.add_time(number, MICROS_A_MINUTE),
            Unit::Hour => self.add_time(number, MICROS_AN_HOUR),
            Unit::Day => {
                add(&mut self.days, whole, 1)?;
                self.add_fraction(fraction, MICROS_A_DAY)
            }
            Unit::Week => {
                add(&mut self.days, whole, 7)?;
                self.add_days(fraction * 7.0)
            }
            Unit::Month => {
                add(&mut self.months, whole, 1)?;
                self.add_days(fraction * DAYS_A_MONTH as f64)
            }
            Unit::Year => self.add_years(number, 1),
            Unit::Decade => self.add_years(number, 10),
            Unit::Century => self.add_years(number, 100),
            Unit::Millennium => self.add_years(number, 1000),
        }
    }

    fn add_time(&mut self, number: Number, micros: i64) -> Result<(), IntervalProblem> {
        let more = number.whole.checked_mul(micros).ok_or(OutOfRange)?;
        self.micros = self.micros.checked_add(more).ok_or(OutOfRange)?;
        self.add_fraction(number.fraction, micros)
    }

    fn add_years(&mut self, number: Number, years: i64) -> Result<(), IntervalProblem> {
        add(&mut self.years, number.whole, years)?;
        let months = (number.fraction * (years * MONTHS_A_YEAR) as f64).round_ties_even();
        add(&mut self.months, months as i64, 1)
    }

    /// Adds days with a fraction, which becomes time.
    fn add_days(&mut self, days: f64) -> Result<(), IntervalProblem> {
        add(&mut self.days, days as i64, 1)?;
        self.add_fraction(days - days.trunc(), MICROS_A_DAY)
    }

    /// Adds a fraction of a unit, to the nearest microsecond.
    fn add_fraction(&mut self, fraction: f64, micros: i64) -> Result<(), IntervalProblem> {
        let exact = fraction * micros as f64;
        let mut more = exact as i64;
        let rest = exact - more as f64;
        if rest.abs() > 0.5 {
            more += rest.signum() as i64;
        }
        self.micros = self.micros.checked_add(more).ok_or(OutOfRange)?;
        Ok(())
    }
}

/// Adds to a part that must stay in the range of `integer`.
fn add(part: &mut i64, count: i64, unit: i64) -> Result<(), IntervalProblem> {
    let count = i32::try_from(count).map_err(|_| OutOfRange)?;
    let sum = i64::from(count) * unit + *part;
    *part = i32::try_from(sum).map_err(|_| OutOfRange)?.into();
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    whole: i64,
    /// Of the whole's sign, and below 1.
    fraction: f64,
}

/// What stands behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Unit(Unit),
    /// `ago` or a quarter: a word of PostgreSQL's that no number counts.
    NotCounted,
}

/// What the words so far have said, as bits: a unit stands once.
type Said = u16;

const SECONDS_SAID: Said = said(Unit::Second) | said(Unit::Millisecond) | said(Unit::Microsecond);
const TIME_SAID: Said = said(Unit::Hour) | said(Unit::Minute) | SECONDS_SAID;

const fn said(unit: Unit) -> Said {
    1 << unit as u16
}

fn read_words(words: &[Word], qualifier: Qualifier) -> Result<Parts, IntervalProblem> {
    let mut parts = Parts::default();
    let mut known = Known::Nothing;
    let mut is_ago = false;
    let mut all: Said = 0;
    for word in words.iter().rev() {
        let now = match word.kind {
            TokenKind::Time => {
                parts.micros = time(&word.text, qualifier)?;
                known = Known::Unit(Unit::Day);
                TIME_SAID
            }
            TokenKind::Signed if word.text.contains(':') && time(&word.text[1..], qualifier).is_ok() => {
                let micros = time(&word.text[1..], qualifier)?;
                parts.micros = if word.text.starts_with('-') { -micros } else { micros };
                known = Known::Unit(Unit::Day);
                TIME_SAID
            }
            TokenKind::Signed | TokenKind::Date | TokenKind::Number => {
                let (number, unit) = match (number(&word.text)?, known) {
                    (Count::YearsAndMonths(months), _) => (whole(months), Unit::Month),
                    (Count::Number(number), Known::Nothing) => (number, bare_unit(qualifier)),
                    (Count::Number(number), Known::Unit(unit)) => (number, unit),
                    (Count::Number(_), Known::NotCounted) => return Err(Syntax),
                };
                parts.add(number, unit)?;
                known = Known::Unit(if unit == Unit::Hour { Unit::Day } else { unit });
                match unit {
                    Unit::Second if number.fraction != 0.0 => SECONDS_SAID,
                    unit => said(unit),
                }
            }
            TokenKind::Text if word.text == "ago" => {
                is_ago = true;
                known = Known::NotCounted;
                0
            }
            TokenKind::Text if matches!(word.text.as_str(), "qtr" | "quarter") => {
                known = Known::NotCounted;
                0
            }
            TokenKind::Text => {
                known = Known::Unit(unit(&word.text).ok_or(Syntax)?);
                0
            }
        };
        if all & now != 0 {
            return Err(Syntax);
        }
        all |= now;
    }
    match (all, is_ago) {
        (0, _) => Err(Syntax),
        (_, true) => parts.negated(),
        (_, false) => Ok(parts),
    }
}

/// The unit of a number at the end that has none.
fn bare_unit(qualifier: Qualifier) -> Unit {
    match qualifier.fields.map(|(_, last)| last) {
        Some(Field::Year) => Unit::Year,
        Some(Field::Month) => Unit::Month,
        Some(Field::Day) => Unit::Day,
        Some(Field::Hour) => Unit::Hour,
        Some(Field::Minute) => Unit::Minute,
        Some(Field::Second) | None => Unit::Second,
    }
}

enum Count {
    Number(Number),
    /// `1-2`, in months.
    YearsAndMonths(i64),
}

fn number(text: &str) -> Result<Count, IntervalProblem> {
    let (whole, rest) = integer(text)?;
    let is_negative = text.starts_with('-');
    if let Some(months) = rest.strip_prefix('-') {
        let (months, rest) = integer(months)?;
        if !(0..MONTHS_A_YEAR).contains(&months) {
            return Err(OutOfRange);
        }
        if !rest.is_empty() {
            return Err(Syntax);
        }
        let months = if is_negative { -months } else { months };
        let all = whole.checked_mul(MONTHS_A_YEAR).and_then(|all| all.checked_add(months));
        return all.map(Count::YearsAndMonths).ok_or(OutOfRange);
    }
    if rest.is_empty() {
        return Ok(Count::Number(Number { whole, fraction: 0.0 }));
    }
    let fraction = fraction(rest)?;
    Ok(Count::Number(Number { whole, fraction: if is_negative { -fraction } else { fraction } }))
}

/// The whole number at the start, 0 where there is none, and what follows.
fn integer(text: &str) -> Result<(i64, &str), IntervalProblem> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = text.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at(end);
    match number {
        "" | "-" | "+" => Ok((0, text)),
        number => Ok((number.parse().map_err(|_| OutOfRange)?, rest)),
    }
}

/// `.25`; a point alone is nothing.
fn fraction(text: &str) -> Result<f64, IntervalProblem> {
    let digits = text.strip_prefix('.').ok_or(Syntax)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Syntax);
    }
    if digits.is_empty() { Ok(0.0) } else { text.parse().map_err(|_| Syntax) }
}

/// `4:05`, `4:05:06.7`; `4:05.6` is minutes and seconds, and so is `4:05` of `minute to second`.
fn time(text: &str, qualifier: Qualifier) -> Result<i64, IntervalProblem> {
    let (first, rest) = integer(text)?;
    let (second, rest) = integer(rest.strip_prefix(':').ok_or(Syntax)?)?;
    let is_minutes = qualifier.fields == Some((Field::Minute, Field::Second));
    let seconds = |text: &str| Ok((fraction(text)? * MICROS_A_SECOND as f64).round_ties_even() as i64);
    let (hours, minutes, seconds, micros) = match rest.strip_prefix(':') {
        Some(rest) => {
            let (third, rest) = integer(rest)?;
            (first, second, third, if rest.is_empty() { 0 } else { seconds(rest)? })
        }
        None if rest.is_empty() && is_minutes => (0, first, second, 0),
        None if rest.is_empty() => (first, second, 0, 0),
        None => (0, first, second, seconds(rest)?),
    };
    if hours < 0 || !(0..60).contains(&minutes) || !(0..=60).contains(&seconds) {
        return Err(OutOfRange);
    }
    let hours = hours.checked_mul(MICROS_AN_HOUR).ok_or(OutOfRange)?;
    hours.checked_add(minutes * MICROS_A_MINUTE + seconds * MICROS_A_SECOND + micros).ok_or(OutOfRange)
}

/// ISO 8601: `P1Y2M3W4DT5H6M7.5S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
fn read_iso(text: &str) -> Result<Parts, IntervalProblem> {
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Syntax)?;
    let mut parts = Parts::default();
    let mut is_time = false;
    let mut has_field = false;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (is_time, has_field, rest) = (true, false, after);
            continue;
        }
        let start = rest;
        let (number, after) = iso_number(rest)?;
        let mark = after.chars().next();
        rest = after.get(mark.map_or(0, char::len_utf8)..).unwrap_or_default();
        let unit = match (is_time, mark) {
            (false, Some('Y')) => Unit::Year,
            (false, Some('M')) => Unit::Month,
            (false, Some('W')) => Unit::Week,
            (false, Some('D')) => Unit::Day,
            (true, Some('H')) => Unit::Hour,
            (true, Some('M')) => Unit::Minute,
            (true, Some('S')) => Unit::Second,
            (false, None | Some('T')) if digits_of(start) == 8 && !has_field => {
                let day = Number { whole: number.whole % 100, ..number };
                parts.add(whole(number.whole / 10_000), Unit::Year)?;
                parts.add(whole(number.whole / 100 % 100), Unit::Month)?;
                parts.add(day, Unit::Day)?;
                (is_time, has_field) = (true, false);
                continue;
            }
            (true, None) if digits_of(start) == 6 && !has_field => {
                parts.add(whole(number.whole / 10_000), Unit::Hour)?;
                parts.add(whole(number.whole / 100 % 100), Unit::Minute)?;
                parts.add(whole(number.whole % 100), Unit::Second)?;
                return Ok(parts);
            }
            (false, None | Some('-' | 'T')) if !has_field => {
                let (units, mark) = ([Unit::Year, Unit::Month, Unit::Day], '-');
                rest = extended(&mut parts, start, &units, mark)?;
                continue;
            }
            (true, None | Some(':')) if !has_field => {
                let (units, mark) = ([Unit::Hour, Unit::Minute, Unit::Second], ':');
                rest = extended(&mut parts, start, &units, mark)?;
                if !rest.is_empty() {
                    return Err(Syntax);
                }
                continue;
            }
            _ => return Err(Syntax),
        };
        parts.add(number, unit)?;
        has_field = true;
    }
    Ok(parts)
}

/// Up to three numbers with a mark between; what follows begins with `T` or is empty.
fn extended<'t>(parts: &mut Parts, text: &'t str, units: &[Unit], mark: char) -> Result<&'t str, IntervalProblem> {
    let mut rest = text;
    for (place, unit) in units.iter().enumerate() {
        let (number, after) = iso_number(rest)?;
        parts.add(number, *unit)?;
        rest = match after.strip_prefix(mark) {
            Some(after) if place + 1 < units.len() => after,
            _ if after.is_empty() || after.starts_with('T') => return Ok(after),
            _ => return Err(Syntax),
        };
    }
    Err(Syntax)
}

fn whole(whole: i64) -> Number {
    Number { whole, fraction: 0.0 }
}

fn digits_of(text: &str) -> usize {
    digits_of_unsigned(text.strip_prefix('-').unwrap_or(text))
}

fn digits_of_unsigned(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A number of an ISO interval. PostgreSQL reads a float and takes its whole part off, so 5.1 has a
/// fraction below 0.1.
fn iso_number(text: &str) -> Result<(Number, &str), IntervalProblem> {
    let sign = usize::from(text.starts_with('-'));
    let digits = digits_of(text);
    let mut end = sign + digits;
    if text[end..].starts_with('.') {
        let decimals = digits_of_unsigned(&text[end + 1..]);
        if digits + decimals == 0 {
            return Err(Syntax);
        }
        end += 1 + decimals;
    }
    let value: f64 = text[..end].parse().map_err(|_| Syntax)?;
    if value.abs() > ISO_NUMBER_MAX {
        return Err(OutOfRange);
    }
    Ok((Number { whole: value as i64, fraction: value - value.trunc() }, &text[end..]))
}

/// The greatest number of an ISO interval.
const ISO_NUMBER_MAX: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(i32, i32, i64), String> {
        read_interval(text, Qualifier::default()).map(|i| (i.months, i.days, i.micros))
    }

    #[test]
    fn all_spellings_are_read() {
        for (text, expected) in [
            ("6", (0, 0, 6_000_000)),
            ("1-2", (14, 0, 0)),
            ("-1-2 +3 -4:05:06", (-14, 3, -14_706_000_000)),
            ("@ 1 day 2 hours ago", (0, -1, -7_200_000_000)),
            ("1.5 months", (1, 15, 0)),
            ("1.5 weeks", (0, 10, 43_200_000_000)),
            ("0.35 years", (4, 0, 0)),
            ("P1Y2M3DT4H5M6.5S", (14, 3, 14_706_500_000)),
            ("P0001-02-03T04:05:06", (14, 3, 14_706_000_000)),
            ("P00010203T040506", (14, 3, 14_706_000_000)),
            ("3 4:05", (0, 3, 14_700_000_000)),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_interval_is_named() {
        for text in ["", "day", "1 2", "1 day 2 day", "1 fortnight", "P", "-.5 day"] {
            assert_eq!(read(text), Err(format!("invalid input syntax for type interval: \"{text}\"")));
        }
        assert_eq!(read("1-12"), Err("interval field value out of range: \"1-12\"".into()));
    }

    #[test]
    fn a_qualifier_names_the_unit_and_cuts() {
        let read = |text: &str, first, last| {
            let qualifier = Qualifier { fields: Some((first, last)), precision: None };
            read_interval(text, qualifier).map(|i| (i.months, i.days, i.micros))
        };
        assert_eq!(read("1", Field::Day, Field::Day), Ok((0, 1, 0)));
        assert_eq!(read("4:05", Field::Minute, Field::Second), Ok((0, 0, 245_000_000)));
        assert_eq!(read("1 day 4:05:06", Field::Day, Field::Minute), Ok((0, 1, 14_700_000_000)));
    }
}
