//! `to_timestamp` and `to_date` with a template: the text is read field by field, then the fields
//! make a day and a time.
//!
//! Law: the answer is PostgreSQL 15's. Spaces before and behind fields do not count, unless `FX`
//! stands in front; a mark of the template matches a mark or space of the text, or nothing. A
//! number reads the digits of its field where another number follows, else all digits there are.
//! Fields of ISO weeks and of the Gregorian calendar do not mix.

use super::calendar::{Civil, MICROS_A_SECOND, days_of, days_of_month, iso_week_start, micros_of, of_julian};
use super::template::{DAYS, Field, MONTHS, Ordinal, ROMAN_MONTHS, SHORT, TemplateNode, TemplatePlace};
use super::tokens::is_space;

/// What a text said, in the fields of its template. 0 is a field that was not given.
#[derive(Debug, Default)]
struct Said {
    is_twelve_hours: bool,
    hour: i64,
    /// 1 after noon.
    half: i64,
    minute: i64,
    second: i64,
    second_of_day: i64,
    /// Sunday is 1.
    weekday: i64,
    day: i64,
    day_of_year: i64,
    month: i64,
    millis: i64,
    year: i64,
    year_digits: u8,
    /// 1 before Christ.
    era: i64,
    week: i64,
    week_of_month: i64,
    century: i64,
    julian: i64,
    micros: i64,
    /// Digits of `FF1` to `FF6`.
    precision: u8,
    zone: Option<ReadZone>,
    calendar: Option<Calendar>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReadZone {
    /// 1 or -1.
    sign: i64,
    hours: i64,
    minutes: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calendar {
    Gregorian,
    IsoWeek,
}

/// The moment that a text tells, as microseconds of UTC since the epoch.
///
/// # Errors
/// In PostgreSQL's words.
pub(crate) fn read_moment(text: &str, nodes: &[TemplateNode]) -> Result<i64, String> {
    let said = read(text, nodes)?;
    let (date, micros) = said.settle(text)?;
    let zone = said.zone.unwrap_or_default();
    let shift = zone.sign * (zone.hours * 3600 + zone.minutes * 60) * MICROS_A_SECOND;
    let moment = micros_of(date, micros).and_then(|moment| moment.checked_sub(shift));
    moment.ok_or_else(|| format!("timestamp out of range: \"{text}\""))
}

/// The day that a text tells, since the epoch.
///
/// # Errors
/// In PostgreSQL's words.
pub(crate) fn read_day(text: &str, nodes: &[TemplateNode]) -> Result<i32, String> {
    let (days, _) = read(text, nodes)?.settle(text)?;
    let is_known = (-2_440_588..=2_145_031_948).contains(&days);
    i32::try_from(days).ok().filter(|_| is_known).ok_or_else(|| format!("date out of range: \"{text}\""))
}

/// A text that is being read.
struct CharReader<'t> {
    text: &'t str,
    at: usize,
    is_exact: bool,
    /// Spaces that were passed over beyond those of the template.
    extra: i64,
}

fn read(text: &str, nodes: &[TemplateNode]) -> Result<Said, String> {
    let mut said = Said::default();
    let mut reader = CharReader { text, at: 0, is_exact: false, extra: 0 };
    for (n, node) in nodes.iter().enumerate() {
        if reader.rest().is_empty() {
            break;
        }
        let is_field = matches!(node, TemplateNode::Field(place) if place.field != Field::Exact);
        let is_mode = matches!(node, TemplateNode::Field(place) if place.field == Field::Exact);
        if !reader.is_exact && !is_mode && (is_field || n == 0) {
            reader.extra += reader.skip_spaces();
        }
        match node {
            TemplateNode::Separator(_) | TemplateNode::Space(_) => reader.pass_mark(),
            TemplateNode::Character(_) => reader.pass_character(),
            TemplateNode::Field(place) => {
                said.take_calendar(place.field)?;
                said.read_field(place, nodes.get(n + 1), &mut reader)?;
                if !reader.is_exact {
                    reader.extra = reader.skip_spaces();
                }
            }
        }
    }
    Ok(said)
}

impl CharReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) -> i64 {
        let rest = self.rest();
        let n_spaces = rest.len() - rest.trim_start_matches(is_space).len();
        self.at += n_spaces;
        n_spaces as i64
    }

    fn skip_character(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    fn pass_mark(&mut self) {
        if self.is_exact {
            return self.skip_character();
        }
        self.extra -= 1;
        if self.rest().starts_with(|c: char| is_space(c) || c.is_ascii_punctuation()) {
            self.skip_character();
            self.extra += 1;
        }
    }

    fn pass_character(&mut self) {
        if !self.is_exact && self.extra > 0 {
            self.extra -= 1;
        } else {
            self.skip_character();
        }
    }

    /// A number of at most so many characters where a digit of another field may follow; and its
    /// length, with the spaces before it.
    fn number(
        &mut self,
        digits_max: usize,
        place: &TemplatePlace,
        next: Option<&TemplateNode>,
    ) -> Result<(i64, usize), String> {
        let start = self.at;
        self.skip_spaces();
        let is_open = place.is_bare || ends_numbers(place, next);
        let window = &self.rest()[..floor_boundary(self.rest(), if is_open { usize::MAX } else { digits_max })];
        if !is_open && window.len() < digits_max {
            return Err(format!(
                "source string too short for \"{}\" formatting field: it takes {digits_max} characters, but only {} remain",
                place.name,
                window.len()
            ));
        }
        let spaces = window.len() - window.trim_start_matches(is_space).len();
        let body = &window[spaces..];
        let unsigned = body.strip_prefix(['-', '+']).unwrap_or(body);
        let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let used = if digits == 0 { 0 } else { spaces + body.len() - unsigned.len() + digits };
        if !is_open && used > 0 && used < digits_max {
            return Err(format!(
                "invalid value \"{window}\" for \"{}\": it takes {digits_max} characters, but only {used} are a number",
                place.name
            ));
        }
        if used == 0 && (self.at == start || is_open || digits == 0) {
            let shown = self.text[start..].chars().take(place.name.len()).collect::<String>();
            return Err(format!("invalid value \"{shown}\" for \"{}\": it must be a whole number", place.name));
        }
        let value = window[spaces..used].parse::<i32>();
        let value = value.map_err(|_| format!("value for \"{}\" in source string is out of range", place.name))?;
        self.at += used;
        Ok((i64::from(value), self.at - start))
    }

    /// Which of the words stands here, in capitals or small letters.
    fn word(&mut self, words: impl Iterator<Item = &'static str>, place: &TemplatePlace) -> Result<i64, String> {
        for (n, word) in words.enumerate() {
            if self.rest().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
                self.at += word.len();
                return Ok(n as i64);
            }
        }
        let shown = self.rest().split(is_space).next().unwrap_or_default();
        Err(format!("invalid value \"{shown}\" for \"{}\": it is none of the field's words", place.name))
    }

    fn skip_ordinal(&mut self, place: &TemplatePlace) {
        if place.ordinal != Ordinal::None {
            self.skip_character();
            self.skip_character();
        }
    }
}

/// The greatest length up to `at` that ends between characters.
fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Whether what follows a number in the template ends it: it begins with no digit.
fn ends_numbers(place: &TemplatePlace, next: Option<&TemplateNode>) -> bool {
    if place.ordinal != Ordinal::None {
        return true;
    }
    match next {
        None => true,
        Some(TemplateNode::Field(place)) => !is_digits(place.field),
        Some(TemplateNode::Character(c) | TemplateNode::Separator(c) | TemplateNode::Space(c)) => !c.is_ascii_digit(),
    }
}

fn is_digits(field: Field) -> bool {
    use Field as F;
    !matches!(
        field,
        F::Era { .. }
            | F::HalfDay { .. }
            | F::DayName
            | F::DayNameShort
            | F::Exact
            | F::MonthName
            | F::MonthNameShort
            | F::Offset
            | F::RomanMonth
            | F::ZoneHour
            | F::Zone
    )
}

/// A field is said once, or twice alike.
fn set(field: &mut i64, value: i64, place: &TemplatePlace) -> Result<(), String> {
    if *field != 0 && *field != value {
        return Err(format!(
            "conflicting values for \"{}\" field in formatting string: it is {field} and {value}",
            place.name
        ));
    }
    *field = value;
    Ok(())
}

impl Said {
    fn take_calendar(&mut self, field: Field) -> Result<(), String> {
        use Field as F;
        let calendar = match field {
            F::IsoDayOfYear | F::IsoDayOfWeek | F::IsoWeek | F::IsoYear(_) => Calendar::IsoWeek,
            F::DayOfYear | F::DayOfMonth | F::DayOfWeek | F::Month | F::MonthName | F::MonthNameShort => {
                Calendar::Gregorian
            }
            F::RomanMonth | F::WeekOfYear | F::WeekOfMonth | F::YearWithComma | F::Year(_) => Calendar::Gregorian,
            _ => return Ok(()),
        };
        if *self.calendar.get_or_insert(calendar) == calendar {
            return Ok(());
        }
        Err("invalid combination of date conventions: a template is of Gregorian dates or of ISO weeks".into())
    }

    fn read_field(
        &mut self,
        place: &TemplatePlace,
        next: Option<&TemplateNode>,
        reader: &mut CharReader<'_>,
    ) -> Result<(), String> {
        use Field as F;
        let name_length = place.name.len();
        let short = |names: &'static [&'static str]| names.iter().map(|name| &name[..SHORT]);
        match place.field {
            F::Exact => reader.is_exact = true,
            F::HalfDay { points } => {
                let words = if points { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let half = reader.word(words.into_iter(), place)?;
                set(&mut self.half, half, place)?;
                self.is_twelve_hours = true;
            }
            F::Era { points } => {
                let words = if points { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                set(&mut self.era, reader.word(words.into_iter(), place)?, place)?;
            }
            F::MonthName => set(&mut self.month, reader.word(MONTHS.into_iter(), place)? + 1, place)?,
            F::MonthNameShort => set(&mut self.month, reader.word(short(&MONTHS), place)? + 1, place)?,
            F::RomanMonth => {
                let month = 12 - reader.word(ROMAN_MONTHS.into_iter().rev(), place)?;
                set(&mut self.month, month, place)?;
            }
            F::DayName => {
                let day = reader.word(DAYS.into_iter(), place)?;
                set(&mut self.weekday, day, place)?;
                self.weekday += 1;
            }
            F::DayNameShort => {
                let day = reader.word(short(&DAYS), place)?;
                set(&mut self.weekday, day, place)?;
                self.weekday += 1;
            }
            F::Zone | F::Offset => {
                return Err(format!("formatting field \"{}\" is only supported in to_char", place.name));
            }
            F::ZoneHour => {
                let sign = match reader.rest().chars().next() {
                    Some(sign @ ('+' | '-' | ' ')) => {
                        reader.at += 1;
                        if sign == '-' { -1 } else { 1 }
                    }
                    // A hyphen that was taken for a mark of the template may have been the sign.
                    _ if reader.extra > 0 && reader.text[..reader.at].ends_with('-') => -1,
                    _ => 1,
                };
                let (hours, _) = reader.number(2, place, next)?;
                let zone = self.zone.get_or_insert_default();
                zone.sign = sign;
                set(&mut zone.hours, hours, place)?;
            }
            F::ZoneMinute => {
                let (minutes, _) = reader.number(2, place, next)?;
                let zone = self.zone.get_or_insert(ReadZone { sign: 1, ..ReadZone::default() });
                set(&mut zone.minutes, minutes, place)?;
            }
            F::YearWithComma => self.read_year_with_comma(place, reader)?,
            field => {
                let digits_max = match field {
                    F::Hour24 | F::Hour12 => 2,
                    F::Fraction(digits) => usize::from(digits),
                    F::Millisecond | F::IsoDayOfYear => 3,
                    F::Microsecond => 6,
                    F::IsoDayOfWeek => 1,
                    _ => name_length,
                };
                let number = reader.number(digits_max, place, next)?;
                self.take_number(number, place)?;
                reader.skip_ordinal(place);
            }
        }
        Ok(())
    }

    fn take_number(&mut self, (value, length): (i64, usize), place: &TemplatePlace) -> Result<(), String> {
        use Field as F;
        match place.field {
            F::Hour12 => {
                self.is_twelve_hours = true;
                set(&mut self.hour, value, place)
            }
            F::Hour24 => set(&mut self.hour, value, place),
            F::Minute => set(&mut self.minute, value, place),
            F::Second => set(&mut self.second, value, place),
            F::SecondOfDay => set(&mut self.second_of_day, value, place),
            F::Millisecond => {
                set(&mut self.millis, value, place)?;
                self.millis *= 10i64.pow(3u32.saturating_sub(length as u32));
                Ok(())
            }
            F::Microsecond | F::Fraction(_) => {
                if let F::Fraction(digits) = place.field {
                    self.precision = digits;
                }
                set(&mut self.micros, value, place)?;
                self.micros *= 10i64.pow(6u32.saturating_sub(length as u32));
                Ok(())
            }
            F::Month => set(&mut self.month, value, place),
            F::DayOfYear | F::IsoDayOfYear => set(&mut self.day_of_year, value, place),
            F::DayOfMonth => set(&mut self.day, value, place),
            F::DayOfWeek => set(&mut self.weekday, value, place),
            F::IsoDayOfWeek => {
                set(&mut self.weekday, value, place)?;
                self.weekday = if self.weekday >= 7 { 1 } else { self.weekday + 1 };
                Ok(())
            }
            F::WeekOfYear | F::IsoWeek => set(&mut self.week, value, place),
            F::WeekOfMonth => set(&mut self.week_of_month, value, place),
            F::Century => set(&mut self.century, value, place),
            F::Julian => set(&mut self.julian, value, place),
            F::Year(digits) | F::IsoYear(digits) => {
                set(&mut self.year, value, place)?;
                if digits < 4 && length < 4 {
                    self.year = nearest_to_2020(self.year);
                }
                self.year_digits = digits;
                Ok(())
            }
            // A quarter is read and means nothing.
            _ => Ok(()),
        }
    }

    fn read_year_with_comma(&mut self, place: &TemplatePlace, reader: &mut CharReader<'_>) -> Result<(), String> {
        let invalid = || "invalid input string for \"Y,YYY\"".to_string();
        reader.skip_spaces();
        let (millennia, rest) = reader.rest().split_once(',').ok_or_else(invalid)?;
        let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
        let number = |digits: &str| digits.parse::<i32>().map(i64::from).map_err(|_| invalid());
        let year = number(millennia)? * 1000 + number(&rest[..digits])?;
        let used = millennia.len() + 1 + digits;
        set(&mut self.year, year, place)?;
        self.year_digits = 4;
        reader.at += used;
        reader.skip_ordinal(place);
        Ok(())
    }

    /// The day since the epoch, and microseconds of the day.
    fn settle(&self, text: &str) -> Result<(i64, i64), String> {
        let out_of_range = || format!("date/time field value out of range: \"{text}\"");
        let time = self.time()?.ok_or_else(out_of_range)?;
        if let Some(zone) = self.zone
            && (!(0..=15).contains(&zone.hours) || !(0..60).contains(&zone.minutes))
        {
            return Err(out_of_range());
        }
        let day = self.date()?.days().ok_or_else(out_of_range)?;
        Ok((day, time))
    }

    /// Microseconds of the day; `None` out of range.
    fn time(&self) -> Result<Option<i64>, String> {
        let (mut hour, mut minute, mut second) =
            (self.second_of_day / 3600, self.second_of_day / 60 % 60, self.second_of_day % 60);
        for (part, said) in [(&mut second, self.second), (&mut minute, self.minute), (&mut hour, self.hour)] {
            if said != 0 {
                *part = said;
            }
        }
        if self.is_twelve_hours {
            if !(1..=12).contains(&hour) {
                return Err(format!(
                    "hour \"{hour}\" is invalid for the 12-hour clock: write HH24, or an hour between 1 and 12"
                ));
            }
            hour = hour % 12 + 12 * self.half;
        }
        let micros = self.millis * 1000 + self.micros;
        let fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROS_A_SECOND).contains(&micros);
        Ok(fits.then_some(((hour * 60 + minute) * 60 + second) * MICROS_A_SECOND + micros))
    }

    fn date(&self) -> Result<Date, String> {
        let mut date = Date { civil: Civil { year: 0, month: 1, day: 1 }, checked: Checked::default() };
        if let Some(year) = self.settled_year() {
            date.civil.year = year;
            date.checked.year = true;
        }
        if self.julian != 0 {
            date.set_days(of_julian(self.julian));
        }
        let mut day_of_year = self.day_of_year;
        if self.week != 0 {
            if self.calendar == Some(Calendar::IsoWeek) {
                let monday = iso_week_start(date.civil.year, self.week);
                date.set_days(match self.weekday {
                    0 => monday,
                    1 => monday + 6,
                    weekday => monday + weekday - 2,
                });
            } else {
                day_of_year = (self.week - 1) * 7 + 1;
            }
        }
        let day = if self.week_of_month != 0 { (self.week_of_month - 1) * 7 + 1 } else { self.day };
        if day != 0 {
            date.civil.day = day;
            date.checked.day = true;
        }
        if self.month != 0 {
            date.civil.month = self.month;
            date.checked.month = true;
        }
        if day_of_year != 0 && (date.civil.month <= 1 || date.civil.day <= 1) {
            if date.civil.year == 0 && self.era == 0 {
                return Err("cannot calculate day of year without year information".into());
            }
            date.set_day_of_year(day_of_year, self.calendar == Some(Calendar::IsoWeek));
        }
        Ok(date)
    }

    /// The year (0 is 1 BC), where the year or the century was said.
    fn settled_year(&self) -> Option<i64> {
        let century = if self.era == 1 { -self.century } else { self.century };
        if self.year != 0 && self.century != 0 && self.year_digits <= 2 {
            let in_century = self.year % 100;
            return Some(match (in_century, century) {
                (0, 0..) => century * 100,
                (0, _) => century * 100 + 1,
                (years, 0..) => years + (century - 1) * 100,
                (years, _) => (century + 1) * 100 - years + 1,
            });
        }
        if self.year != 0 {
            let year = if self.era == 1 { -self.year } else { self.year };
            return Some(if year < 0 { year + 1 } else { year });
        }
        // The first year of the century.
        (century != 0).then_some(if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 })
    }
}

/// A date that is being settled, with what is to be checked of it.
struct Date {
    civil: Civil,
    checked: Checked,
}

#[derive(Default)]
struct Checked {
    year: bool,
    month: bool,
    day: bool,
}

impl Date {
    fn set_days(&mut self, days: i64) {
        self.civil = super::calendar::civil(days);
        self.checked = Checked { year: true, month: true, day: true };
    }

    fn set_day_of_year(&mut self, day_of_year: i64, is_iso: bool) {
        if is_iso {
            return self.set_days(iso_week_start(self.civil.year, 1) + day_of_year - 1);
        }
        let year = self.civil.year;
        let mut before = 0;
        let mut month = 1;
        while month <= 12 && day_of_year > before + days_of_month(year, month) {
            before += days_of_month(year, month);
            month += 1;
        }
        if self.civil.month <= 1 {
            self.civil.month = month;
        }
        if self.civil.day <= 1 {
            self.civil.day = day_of_year - before;
        }
        (self.checked.month, self.checked.day) = (true, true);
    }

    /// Days since the epoch; `None` where a checked part is out of range.
    fn days(&self) -> Option<i64> {
        let Civil { year, month, day } = self.civil;
        let Checked { year: has_year, month: has_month, day: has_day } = self.checked;
        let bad_month = has_month && !(1..=12).contains(&month);
        let bad_day = has_day && !(1..=31).contains(&day);
        if bad_month || bad_day {
            return None;
        }
        let is_beyond = has_year && has_month && has_day && day > days_of_month(year, month);
        (!is_beyond).then(|| days_of(self.civil))
    }
}

/// A year of one to three digits, in the century or millennium that brings it nearest to 2020.
fn nearest_to_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}
