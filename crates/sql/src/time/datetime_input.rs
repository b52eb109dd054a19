//! Dates, times and timestamps in text: `2024-01-02 03:04:05.6+02`, `Jan 2, 2024 3:04 pm`,
//! `20240102T030405`, `0044-03-15 BC`.
//!
//! Law: the answer is PostgreSQL's with `datestyle = 'ISO, MDY'` and the session in UTC. Refused
//! are the words of the present (`now`, `today` ..), for which messages say what to write. Cost:
//! one pass over the text.

use super::calendar::{Civil, MICROS_A_DAY, MICROS_A_MINUTE, MICROS_A_SECOND, MICROS_AN_HOUR, days_of, days_of_month};
use super::moments::End;
use super::template::{DAYS, MONTHS, SHORT};
use super::tokens::{TokenKind, Word, words};

/// What a text said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since the epoch.
    pub(crate) days: Option<i64>,
    /// Microseconds of the day, up to the 24th hour's end.
    pub(crate) time: Option<i64>,
    pub(crate) zone: Option<Zone>,
    /// `infinity` or `-infinity`, which have no other parts.
    pub(crate) end: Option<End>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Seconds east of Greenwich.
    Offset(i64),
    /// A name, in small letters.
    Named(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Syntax,
    OutOfRange,
    /// A word of the present.
    Refused,
}

use Problem::{OutOfRange, Refused, Syntax};

/// What a text is to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WantedType {
    #[default]
    Moment,
    /// A time of day: digits alone are its.
    Time,
}

/// Reads a text.
///
/// # Errors
/// What is wrong with it; the caller knows the type to name.
pub(crate) fn read(text: &str, wanted: WantedType) -> Result<Moment, Problem> {
    if let Some(moment) = read_plain(text) {
        return Ok(moment);
    }
    if wanted == WantedType::Moment
        && let Some(end) = End::named(text)
    {
        return Ok(Moment { days: None, time: None, zone: None, end: Some(end) });
    }
    let words = words(text).ok_or(Syntax)?;
    let mut parts = Parts { wanted, ..Parts::default() };
    let mut expects = Expects::Anything;
    for word in &words {
        expects = parts.take(word, expects)?;
    }
    if expects != Expects::Anything {
        return Err(Syntax);
    }
    parts.moment()
}

/// `2024-01-02` and `2024-01-02 03:04:05.678`, which most texts are.
fn read_plain(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| {
        let digits = bytes.get(range)?;
        digits.iter().try_fold(0i64, |n, digit| digit.is_ascii_digit().then(|| n * 10 + i64::from(digit - b'0')))
    };
    let is = |at: usize, mark: u8| bytes.get(at) == Some(&mark);
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let is_date = is(4, b'-') && is(7, b'-') && year > 0 && (1..=12).contains(&month);
    if !is_date || !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    let days = Some(days_of(Civil { year, month, day }));
    if bytes.len() == 10 {
        return Some(Moment { days, time: None, zone: None, end: None });
    }
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let marks = (is(10, b' ') || is(10, b'T')) && is(13, b':') && is(16, b':');
    if !marks || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = match bytes.len() {
        19 => 0,
        21..=26 if is(19, b'.') => number(20..bytes.len())? * 10i64.pow(26 - bytes.len() as u32),
        _ => return None,
    };
    let time = hour * MICROS_AN_HOUR + minute * MICROS_A_MINUTE + second * MICROS_A_SECOND + micros;
    Some(Moment { days, time: Some(time), zone: None, end: None })
}

/// What must follow a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Anything,
    /// Behind `T`.
    Time,
    /// Behind `J`.
    Julian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Morning,
    Afternoon,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Ad,
    Bc,
}

#[derive(Debug, Default)]
struct Parts {
    wanted: WantedType,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    /// Days since the epoch, as such.
    days: Option<i64>,
    has_month_name: bool,
    is_short_year: bool,
    clock: Option<Clock>,
    half: Option<Half>,
    era: Option<Era>,
    zone: Option<Zone>,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

/// Sets what is said once.
fn set<T>(part: &mut Option<T>, value: T) -> Result<(), Problem> {
    match part.replace(value) {
        None => Ok(()),
        Some(_) => Err(Syntax),
    }
}

impl Parts {
    fn has_date(&self) -> bool {
        self.days.is_some() || (self.year.is_some() && self.month.is_some() && self.day.is_some())
    }

    fn take(&mut self, word: &Word, expects: Expects) -> Result<Expects, Problem> {
        let text = word.text.as_str();
        match (expects, word.kind) {
            (Expects::Julian, TokenKind::Number) => {
                let day: i64 = text.parse().map_err(|_| Syntax)?;
                set(&mut self.days, super::calendar::of_julian(day))?;
            }
            (Expects::Julian, _) => return Err(Syntax),
            (Expects::Time, TokenKind::Number) => self.take_digits_of_time(text)?,
            (Expects::Time, TokenKind::Time) | (Expects::Anything, TokenKind::Time) => {
                set(&mut self.clock, clock(text)?)?
            }
            (Expects::Time, _) => return Err(Syntax),
            (_, TokenKind::Signed) => set(&mut self.zone, offset(text)?)?,
            (_, TokenKind::Date) => self.take_date(text)?,
            (_, TokenKind::Number) => self.take_number(text)?,
            (_, TokenKind::Text) => return self.take_word(text),
        }
        Ok(Expects::Anything)
    }

    /// A date with marks, or a zone's name.
    fn take_date(&mut self, text: &str) -> Result<(), Problem> {
        let has_day = self.days.is_some() || (self.month.is_some() && self.day.is_some());
        if has_day && text.starts_with(|c: char| c.is_ascii_digit()) {
            // `030405-08`: a time of digits and its zone.
            let (digits, zone) = text.split_once('-').ok_or(Syntax)?;
            self.take_digits_of_time(digits)?;
            return set(&mut self.zone, offset(&format!("-{zone}"))?);
        }
        if has_day || (self.clock.is_some() && text.starts_with(|c: char| c.is_ascii_alphabetic())) {
            return set(&mut self.zone, Zone::Named(text.to_string()));
        }
        let parts: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
        if parts.len() > 3 {
            return Err(Syntax);
        }
        let is_name = |part: &&&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
        if let Some(name) = parts.iter().find(is_name) {
            set(&mut self.month, month(name).ok_or(Syntax)?)?;
            self.has_month_name = true;
        }
        parts.iter().filter(|part| !is_name(part)).try_for_each(|part| self.take_part(part))
    }

    /// A number of a date, by its place.
    fn take_part(&mut self, digits: &str) -> Result<(), Problem> {
        let value: i64 = digits.parse().map_err(|_| Syntax)?;
        if value > i64::from(i32::MAX) {
            return Err(OutOfRange);
        }
        let is_long = digits.len() >= 3;
        let part = match (self.year, self.month, self.day) {
            (Some(_), None, None) if digits.len() == 3 && (1..=366).contains(&value) => {
                return set(&mut self.day_of_year, value);
            }
            (None, None, None) | (None, Some(_), None) if is_long && (self.month.is_none() || self.has_month_name) => {
                &mut self.year
            }
            (None, None, None) | (Some(_), None, None) | (None, None, Some(_)) => &mut self.month,
            (None, Some(_), None) => &mut self.day,
            (Some(year), Some(_), None) if self.has_month_name && is_long && self.is_short_year => {
                self.day = Some(year);
                self.is_short_year = false;
                &mut self.year
            }
            (Some(_), Some(_), None) => &mut self.day,
            (None, Some(_), Some(_)) => {
                self.is_short_year = digits.len() <= 2;
                &mut self.year
            }
            _ => return Err(Syntax),
        };
        *part = Some(value);
        Ok(())
    }

    fn take_number(&mut self, text: &str) -> Result<(), Problem> {
        let (whole, has_fraction) = match text.split_once('.') {
            Some((whole, _)) => (whole, true),
            None => (text, false),
        };
        if self.wanted == WantedType::Time {
            return self.take_digits_of_time(text);
        }
        let has_none = self.days.is_none() && self.year.is_none() && self.month.is_none() && self.day.is_none();
        if has_fraction && has_none {
            // `2024.123` is a year and its day.
            return self.take_date(text);
        }
        if has_fraction && whole.len() <= 2 {
            return Err(Syntax);
        }
        if has_fraction || (whole.len() >= 6 && !(self.has_date() && self.clock.is_some())) {
            if has_fraction || self.has_date() {
                return self.take_digits_of_time(text);
            }
            let (year, rest) = whole.split_at(whole.len() - 4);
            let number = |digits: &str| digits.parse::<i64>().map_err(|_| OutOfRange);
            self.is_short_year = year.len() == 2;
            set(&mut self.year, number(year)?)?;
            set(&mut self.month, number(&rest[..2])?)?;
            return set(&mut self.day, number(&rest[2..])?);
        }
        if self.has_date() { self.take_digits_of_time(text) } else { self.take_part(text) }
    }

    /// `030405.6` or `0304`.
    fn take_digits_of_time(&mut self, text: &str) -> Result<(), Problem> {
        let (digits, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Syntax);
        }
        let two = |at: usize| digits[at..at + 2].parse::<i64>().map_err(|_| Syntax);
        let (second, micros) = match digits.len() {
            6 => (two(4)?, micros(fraction)?),
            4 if fraction.is_empty() => (0, 0),
            _ => return Err(Syntax),
        };
        set(&mut self.clock, Clock { hour: two(0)?, minute: two(2)?, second, micros })
    }

    fn take_word(&mut self, word: &str) -> Result<Expects, Problem> {
        match word {
            "am" => set(&mut self.half, Half::Morning)?,
            "pm" => set(&mut self.half, Half::Afternoon)?,
            "ad" => set(&mut self.era, Era::Ad)?,
            "bc" => set(&mut self.era, Era::Bc)?,
            "t" => return Ok(Expects::Time),
            "j" | "jd" | "julian" => return Ok(Expects::Julian),
            "at" | "on" => {}
            "allballs" => {
                set(&mut self.clock, Clock { hour: 0, minute: 0, second: 0, micros: 0 })?;
                set(&mut self.zone, Zone::Offset(0))?;
            }
            "epoch" => {
                set(&mut self.days, 0)?;
                set(&mut self.clock, Clock { hour: 0, minute: 0, second: 0, micros: 0 })?;
                set(&mut self.zone, Zone::Offset(0))?;
            }
            "now" | "today" | "tomorrow" | "yesterday" => return Err(Refused),
            name if is_weekday(name) => {}
            name => match (month(name), ABBREVIATIONS.iter().find(|(zone, _)| *zone == name)) {
                (Some(month), _) => self.take_month(month)?,
                (None, Some((_, hours))) => set(&mut self.zone, Zone::Offset(hours * 3600))?,
                (None, None) if name == "dst" => return Err(Syntax),
                (None, None) if self.has_date() || self.clock.is_some() => {
                    set(&mut self.zone, Zone::Named(name.to_string()))?;
                }
                (None, None) => return Err(Syntax),
            },
        }
        Ok(Expects::Anything)
    }

    /// A month's name; a number before it that was taken for the month was the day.
    fn take_month(&mut self, month: i64) -> Result<(), Problem> {
        if let (Some(day @ 1..=31), None, false) = (self.month, self.day, self.has_month_name) {
            self.day = Some(day);
            self.month = None;
        }
        self.has_month_name = true;
        set(&mut self.month, month)
    }

    fn moment(self) -> Result<Moment, Problem> {
        let days = match (self.days, self.year, self.month, self.day, self.day_of_year) {
            (Some(days), None, None, None, None) => Some(days),
            (None, Some(_), None, None, Some(day)) => {
                Some(days_of(Civil { year: self.settled_year()?, month: 1, day: 1 }) + day - 1)
            }
            (None, Some(_), Some(month), Some(day), None) => {
                let year = self.settled_year()?;
                if !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day) {
                    return Err(OutOfRange);
                }
                Some(days_of(Civil { year, month, day }))
            }
            (None, None, None, None, None) => None,
            _ => return Err(Syntax),
        };
        if days.is_none() && self.era.is_some() {
            return Err(Syntax);
        }
        let time = self.clock.map(|clock| clock.micros(self.half)).transpose()?;
        if time.is_none() && self.half.is_some() || days.is_none() && time.is_none() {
            return Err(Syntax);
        }
        Ok(Moment { days, time, zone: self.zone, end: None })
    }

    /// The year, of which 0 is 1 BC.
    fn settled_year(&self) -> Result<i64, Problem> {
        match (self.year.unwrap_or_default(), self.era) {
            (..=0, Some(Era::Bc)) => Err(OutOfRange),
            (year, Some(Era::Bc)) => Ok(1 - year),
            (year @ ..70, _) if self.is_short_year => Ok(year + 2000),
            (year @ 70..100, _) if self.is_short_year => Ok(year + 1900),
            (..=0, _) => Err(OutOfRange),
            (year, _) => Ok(year),
        }
    }
}

impl Clock {
    fn micros(self, half: Option<Half>) -> Result<i64, Problem> {
        let Clock { mut hour, minute, second, micros } = self;
        if half.is_some() && hour > 12 {
            return Err(OutOfRange);
        }
        match half {
            Some(Half::Morning) if hour == 12 => hour = 0,
            Some(Half::Afternoon) if hour < 12 => hour += 12,
            _ => {}
        }
        let is_end = hour == 24 && minute == 0 && second == 0 && micros == 0;
        if (hour > 23 && !is_end) || minute > 59 || second > 60 {
            return Err(OutOfRange);
        }
        Ok(hour * MICROS_AN_HOUR + minute * MICROS_A_MINUTE + second * MICROS_A_SECOND + micros)
    }
}

/// `3:04`, `3:04:05.6`; `4:05.6` is minutes and seconds.
fn clock(text: &str) -> Result<Clock, Problem> {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut numbers = [0; 3];
    let parts: Vec<&str> = whole.split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return Err(Syntax);
    }
    for (number, part) in numbers.iter_mut().zip(&parts) {
        *number = if part.is_empty() { 0 } else { part.parse().map_err(|_| Syntax)? };
    }
    let micros = micros(fraction)?;
    let [first, second, third] = numbers;
    Ok(match parts.len() {
        2 if !fraction.is_empty() => Clock { hour: 0, minute: first, second, micros },
        _ => Clock { hour: first, minute: second, second: third, micros },
    })
}

/// `.25` of a second, to the nearest microsecond.
fn micros(fraction: &str) -> Result<i64, Problem> {
    let digits = fraction.strip_prefix('.').unwrap_or_default();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Syntax);
    }
    if digits.is_empty() {
        return Ok(0);
    }
    let seconds: f64 = fraction.parse().map_err(|_| Syntax)?;
    Ok((seconds * MICROS_A_SECOND as f64).round_ties_even() as i64)
}

/// `+2`, `-0330`, `+05:30`, `-02:30:15`.
fn offset(text: &str) -> Result<Zone, Problem> {
    let digits = &text[1..];
    let number = |digits: &str| digits.parse::<i64>().map_err(|_| Syntax);
    let parts: Vec<&str> = digits.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [digits] if digits.len() > 2 => {
            let (hours, minutes) = digits.split_at(digits.len() - 2);
            (number(hours)?, number(minutes)?, 0)
        }
        [hours] => (number(hours)?, 0, 0),
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return Err(Syntax),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(OutOfRange);
    }
    let east = (hours * 60 + minutes) * 60 + seconds;
    Ok(Zone::Offset(if text.starts_with('-') { -east } else { east }))
}

fn month(name: &str) -> Option<i64> {
    let is = |full: &&str| {
        let full = full.to_ascii_lowercase();
        name == full || name == &full[..SHORT] || (name == "sept" && full == "september")
    };
    MONTHS.iter().position(is).map(|at| at as i64 + 1)
}

fn is_weekday(name: &str) -> bool {
    let is = |full: &str| name == full || name == &full[..SHORT];
    ["tues", "thur", "thurs", "weds"].contains(&name) || DAYS.iter().any(|day| is(&day.to_ascii_lowercase()))
}

/// Names of offsets, in hours east of Greenwich.
const ABBREVIATIONS: [(&str, i64); 24] = [
    ("z", 0),
    ("zulu", 0),
    ("utc", 0),
    ("gmt", 0),
    ("ut", 0),
    ("uct", 0),
    ("wet", 0),
    ("bst", 1),
    ("west", 1),
    ("cet", 1),
    ("met", 1),
    ("cest", 2),
    ("eet", 2),
    ("eest", 3),
    ("msk", 3),
    ("jst", 9),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
];

/// Hours east of Greenwich of an offset that has a name, in small letters.
pub(crate) fn hours_of(abbreviation: &str) -> Option<i64> {
    ABBREVIATIONS.iter().find(|(name, _)| *name == abbreviation).map(|(_, hours)| *hours)
}

/// The moment in microseconds since the epoch, of a text without its zone; a date alone is its
/// midnight.
pub(crate) fn micros_without_zone(moment: &Moment) -> Result<i64, Problem> {
    if let Some(end) = moment.end {
        return Ok(end.micros());
    }
    let days = moment.days.ok_or(Syntax)?;
    super::calendar::micros_of(days, moment.time.unwrap_or_default()).ok_or(OutOfRange)
}

/// The time of day, of which 24:00 is the last.
pub(crate) fn time_of_day(moment: &Moment) -> Result<i64, Problem> {
    moment.time.filter(|time| *time <= MICROS_A_DAY).ok_or(if moment.time.is_some() { OutOfRange } else { Syntax })
}
