//! The patterns of `date_format(time, '%Y-%m-%d')`, as MySQL has them.

use std::fmt::Write;

use super::calendar::{
    Civil, MICROS_A_DAY, MICROS_A_SECOND, civil, day_of_year, days_of, iso_week, iso_week_start, weekday,
};
use super::template::{DAYS, MONTHS, SHORT};
use super::to_char::ordinal_ending;

/// Writes a moment, in microseconds since the epoch.
///
/// # Errors
/// A pattern that is not known.
pub(crate) fn write_percent(micros: i64, pattern: &str, out: &mut String) -> Result<(), String> {
    let (days, time) = (micros.div_euclid(MICROS_A_DAY), micros.rem_euclid(MICROS_A_DAY));
    let Civil { year, month, day } = civil(days);
    let seconds = time / MICROS_A_SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let half = if hour < 12 { "AM" } else { "PM" };
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let (month_name, day_name) = (MONTHS[month as usize - 1], DAYS[weekday(days) as usize]);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let text = match chars.next() {
            Some('Y') => format!("{year:04}"),
            Some('y') => format!("{:02}", year.rem_euclid(100)),
            Some('m') => format!("{month:02}"),
            Some('c') => month.to_string(),
            Some('M') => month_name.to_string(),
            Some('b') => month_name[..SHORT].to_string(),
            Some('d') => format!("{day:02}"),
            Some('e') => day.to_string(),
            Some('D') => format!("{day}{}", ordinal_ending(&format!("{day:02}"))),
            Some('j') => format!("{:03}", day_of_year(days)),
            Some('W') => day_name.to_string(),
            Some('a') => day_name[..SHORT].to_string(),
            Some('w') => weekday(days).to_string(),
            Some('U') => format!("{:02}", week_of_year(days, year, first_sunday)),
            Some('u') => format!("{:02}", week_of_year(days, year, first_iso_week)),
            Some('V') => format!("{:02}", whole_week(days, year, first_sunday).1),
            Some('X') => format!("{:04}", whole_week(days, year, first_sunday).0),
            Some('v') => format!("{:02}", iso_week(days).1),
            Some('x') => format!("{:04}", iso_week(days).0),
            Some('H') => format!("{hour:02}"),
            Some('k') => hour.to_string(),
            Some('h' | 'I') => format!("{twelve:02}"),
            Some('l') => twelve.to_string(),
            Some('i') => format!("{minute:02}"),
            Some('s' | 'S') => format!("{second:02}"),
            Some('f') => format!("{:06}", time % MICROS_A_SECOND),
            Some('p') => half.to_string(),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('r') => format!("{twelve:02}:{minute:02}:{second:02} {half}"),
            Some('%') => "%".to_string(),
            Some(other) => return Err(format!("pattern %{other} of date_format is not supported")),
            None => return Err("the pattern of date_format ends in %: write %% for a per cent sign".into()),
        };
        out.write_str(&text).expect("writing to a String cannot fail");
    }
    Ok(())
}

/// The first day of the first week that begins with a Sunday.
fn first_sunday(year: i64) -> i64 {
    let new_year = days_of(Civil { year, month: 1, day: 1 });
    new_year + (7 - weekday(new_year)) % 7
}

/// The first day of the first week of ISO 8601.
fn first_iso_week(year: i64) -> i64 {
    iso_week_start(year, 1)
}

/// The week within a year: 0 before the first.
fn week_of_year(days: i64, year: i64, first: fn(i64) -> i64) -> i64 {
    (days - first(year)).div_euclid(7) + 1
}

/// The year of a week, and the week in it.
fn whole_week(days: i64, year: i64, first: fn(i64) -> i64) -> (i64, i64) {
    let year = if days < first(year) { year - 1 } else { year };
    (year, week_of_year(days, year, first))
}

/// The letters behind the per cent signs of a pattern.
pub(super) fn percent_letters(pattern: &str) -> impl Iterator<Item = char> {
    let mut chars = pattern.chars();
    std::iter::from_fn(move || {
        chars.find(|c| *c == '%')?;
        chars.next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_mysql() {
        let mut out = String::new();
        let written = write_percent(1_714_979_289_000_000, "%Y-%m-%d %H:%i:%s %M %D %W %%", &mut out);
        assert_eq!((written, out.as_str()), (Ok(()), "2024-05-06 07:08:09 May 6th Monday %"));
        assert!(write_percent(0, "%Q", &mut out).is_err());
    }

    /// Days at the ends of years that begin with each day of the week, as MySQL's manual counts
    /// (modes 0 to 3 of WEEK).
    #[test]
    fn weeks_are_those_of_mysql() {
        for (year, month, day, written) in [
            (2023, 1, 1, "01 00 01 52 2023 2022"),
            (2024, 1, 1, "00 01 53 01 2023 2024"),
            (2024, 12, 31, "52 53 52 01 2024 2025"),
            (2019, 1, 1, "00 01 52 01 2018 2019"),
            (2020, 1, 1, "00 01 52 01 2019 2020"),
            (2020, 12, 31, "52 53 52 53 2020 2020"),
            (2015, 1, 1, "00 01 52 01 2014 2015"),
            (2021, 1, 1, "00 00 52 53 2020 2020"),
            (2022, 1, 1, "00 00 52 52 2021 2021"),
            (2008, 2, 20, "07 08 07 08 2008 2008"),
        ] {
            let mut out = String::new();
            let micros = days_of(Civil { year, month, day }) * MICROS_A_DAY;
            write_percent(micros, "%U %u %V %v %X %x", &mut out).expect("it is written");
            assert_eq!(out, written, "{year}-{month}-{day}");
        }
    }
}
