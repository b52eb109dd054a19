//! Durations as settings and options have them: a whole number and a unit.

/// Units of durations in microseconds, each with the names it goes by; the shortest first.
const UNITS: [(i64, &[&str]); 6] = [
    (1, &["us", "microsecond", "microseconds"]),
    (1_000, &["ms", "millisecond", "milliseconds"]),
    (1_000_000, &["s", "sec", "secs", "second", "seconds"]),
    (60_000_000, &["min", "mins", "minute", "minutes"]),
    (3_600_000_000, &["h", "hr", "hour", "hours"]),
    (86_400_000_000, &["d", "day", "days"]),
];

/// Microseconds of a whole number and a unit (`200 ms`, `5 minutes`); `None` for other texts.
pub fn duration_micros(value: &str) -> Option<i64> {
    let text = value.trim().to_lowercase().replace('_', "");
    let (amount, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = UNITS.iter().find(|(_, names)| names.contains(&unit.trim()));
    match (amount.parse::<i64>(), unit) {
        (Ok(0), _) if !amount.is_empty() => Some(0),
        (Ok(amount), Some((micros, _))) => amount.checked_mul(*micros),
        _ => None,
    }
}

/// A duration in the longest unit that divides it.
pub(crate) fn duration_text(micros: i64) -> String {
    let (unit, names) = UNITS.iter().rev().find(|(unit, _)| micros % unit == 0 && micros > 0).unwrap_or(&UNITS[2]);
    format!("{} {}", micros / unit, names[0])
}
