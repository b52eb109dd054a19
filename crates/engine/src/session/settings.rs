//! SET: what a session lets its user choose.

use super::durable::RETAIN_HISTORY;
use super::sealed::SealedFact;
use super::{Options, Session};
use crate::catalog::ObjectId;
use crate::error::Error;
use crate::nearest::nearest;
use crate::sharing::Sharing;

use anabranch_store::Durability;

/// A session's settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Whether a SELECT first reads the bounded, unpaced sources behind it to their end.
    pub wait_for_sources: bool,
    /// Rows read from one source in one turn, at most.
    pub batch_rows_max: usize,
    /// How far queries share arrangements.
    pub sharing: Sharing,
    /// How long, before the last commit, what relations held can still be read.
    pub retain_history_micros: i64,
    /// When commits count as done.
    pub durability: Durability,
}

/// Names and what they mean, for SHOW ALL.
const SETTINGS: [(&str, &str); 5] = [
    ("batch_rows_max", "rows read from one source in one turn, at most"),
    ("durability", "full: a commit is done when it is on disk; relaxed: at once, and on disk a little later"),
    ("retain_history", "how long what has changed can still be read with AS OF"),
    ("sharing", "whether queries share the arrangements of indexes and of their common parts"),
    ("wait_for_sources", "whether a SELECT first reads bounded, unpaced sources to their end"),
];

/// Settings that clients of PostgreSQL make, with the one value they have here.
const FIXED: [(&str, &str); 6] = [
    ("client_encoding", "UTF8"),
    ("datestyle", "ISO, MDY"),
    ("search_path", "public"),
    ("standard_conforming_strings", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "serializable"),
];

impl Settings {
    pub fn new(options: &Options) -> Settings {
        Settings {
            wait_for_sources: true,
            batch_rows_max: options.batch_rows_max.max(1),
            sharing: options.sharing,
            retain_history_micros: i64::try_from(options.retain_history.as_micros()).unwrap_or(i64::MAX),
            durability: options.durability,
        }
    }
}

impl Session {
    /// Changes a setting, as `SET name = value` does.
    ///
    /// - `wait_for_sources` (`on`, `off`; at first `on`): a SELECT first reads the bounded sources behind it that have
    ///   no rate to their end.
    /// - `batch_rows_max` (a number): rows read from one source in one turn, at most.
    /// - `retain_history` (a duration such as `10 minutes`; at first `0 s`): what tables, views and indexes held stays readable with AS OF for
    ///   that long. What is forgotten already does not come back.
    /// - `durability` (`full`, `relaxed`; at first `full`; `synchronous_commit` is the same as `on`, `off`): when commits of a database in
    ///   a folder count as done: once they are on disk, or at once.
    /// - `sharing` (`on`, `off`; at first `on`): queries installed from now on share the arrangements of indexes and of their common
    ///   parts. Those that are installed stay as they are.
    ///
    /// # Errors
    /// `Invalid` for an unknown name or a value that does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let name = name.to_lowercase();
        match name.as_str() {
            "wait_for_sources" => self.settings.wait_for_sources = parse_bool(&name, value)?,
            "retain_history" => self.retain_history(parse_duration(&name, value)?)?,
            "durability" => self.settings.durability = parse_durability(&name, value)?,
            "synchronous_commit" => {
                let is_full = parse_bool(&name, value)?;
                self.settings.durability = if is_full { Durability::Full } else { Durability::Relaxed };
            }
            "sharing" => {
                self.settings.sharing = if parse_bool(&name, value)? { Sharing::Full } else { Sharing::Off };
            }
            "batch_rows_max" => self.settings.batch_rows_max = parse_count(&name, value)?,
            _ => set_fixed(&name, value)?,
        }
        Ok(())
    }

    /// Retains history for that long, also after the database is opened again.
    fn retain_history(&mut self, micros: i64) -> Result<(), Error> {
        let (object, value) = (ObjectId::default(), micros.to_string().into_bytes());
        self.record_definition(vec![], vec![], vec![SealedFact { object, name: RETAIN_HISTORY, value }])?;
        self.settings.retain_history_micros = micros;
        Ok(())
    }

    /// Name, value and meaning of one setting, or of all.
    pub(super) fn setting_rows(&self, name: Option<&str>) -> Result<Vec<[String; 3]>, Error> {
        let rows: Vec<[String; 3]> = SETTINGS
            .iter()
            .filter(|(known, _)| name.is_none_or(|name| name.eq_ignore_ascii_case(known)))
            .map(|(known, meaning)| [known.to_string(), self.setting_value(known), meaning.to_string()])
            .collect();
        let fixed = |name: &str| FIXED.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        match name {
            Some(name) if rows.is_empty() => match fixed(name) {
                Some((name, value)) => Ok(vec![[name.to_string(), value.to_string(), "always so".to_string()]]),
                None => Err(unknown_setting(name)),
            },
            _ => Ok(rows),
        }
    }

    fn setting_value(&self, name: &str) -> String {
        match name {
            "wait_for_sources" => on_off(self.settings.wait_for_sources),
            "retain_history" => duration_text(self.settings.retain_history_micros),
            "durability" => durability_text(self.settings.durability).to_string(),
            "sharing" => on_off(self.settings.sharing != Sharing::Off),
            _ => self.settings.batch_rows_max.to_string(),
        }
    }
}

/// Accepts the value that a setting has anyway.
fn set_fixed(name: &str, value: &str) -> Result<(), Error> {
    let Some((_, fixed)) = FIXED.iter().find(|(known, _)| *known == name) else {
        return Err(unknown_setting(name));
    };
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "");
    let same = plain(value) == plain(fixed) || plain(fixed).split(',').next() == Some(&plain(value));
    match same {
        true => Ok(()),
        false => Err(Error::invalid(format!("setting \"{name}\" cannot be '{value}'"))
            .with_hint(format!("It is always {fixed}; leave the statement out."))),
    }
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_string()
}

fn durability_text(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "full",
        Durability::Relaxed => "relaxed",
    }
}

fn parse_durability(name: &str, value: &str) -> Result<Durability, Error> {
    let all = [Durability::Full, Durability::Relaxed];
    all.into_iter().find(|durability| value.eq_ignore_ascii_case(durability_text(*durability))).ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'")).with_hint("It takes full or relaxed.")
    })
}

fn unknown_setting(name: &str) -> Error {
    let names = SETTINGS.map(|(name, _)| name);
    let hint = match nearest(name, names) {
        Some(near) => format!("Did you mean \"{near}\"?"),
        None => format!("Settings: {}.", names.join(", ")),
    };
    Error::invalid(format!("setting \"{name}\" does not exist")).with_hint(hint)
}

fn parse_bool(name: &str, value: &str) -> Result<bool, Error> {
    match value.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(Error::invalid(format!("setting \"{name}\" cannot be '{value}'")).with_hint("It takes on or off.")),
    }
}

fn parse_count(name: &str, value: &str) -> Result<usize, Error> {
    value.replace('_', "").parse().ok().filter(|count| *count > 0).ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'")).with_hint("It takes a number from 1.")
    })
}

/// Units of durations in microseconds, each with the names it goes by; the shortest first.
const UNITS: [(i64, &[&str]); 6] = [
    (1, &["us", "microsecond", "microseconds"]),
    (1_000, &["ms", "millisecond", "milliseconds"]),
    (1_000_000, &["s", "sec", "secs", "second", "seconds"]),
    (60_000_000, &["min", "mins", "minute", "minutes"]),
    (3_600_000_000, &["h", "hr", "hour", "hours"]),
    (86_400_000_000, &["d", "day", "days"]),
];

/// A number and a unit, as microseconds.
fn parse_duration(name: &str, value: &str) -> Result<i64, Error> {
    let text = value.trim().to_lowercase().replace('_', "");
    let (amount, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = UNITS.iter().find(|(_, names)| names.contains(&unit.trim()));
    let micros = match (amount.parse::<i64>(), unit) {
        (Ok(0), _) if !amount.is_empty() => Some(0),
        (Ok(amount), Some((micros, _))) => amount.checked_mul(*micros),
        _ => None,
    };
    micros.ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'"))
            .with_hint("It takes a duration such as '10 s', '5 minutes' or '1 day'.")
    })
}

/// A duration in the longest unit that divides it.
fn duration_text(micros: i64) -> String {
    let (unit, names) = UNITS.iter().rev().find(|(unit, _)| micros % unit == 0 && micros > 0).unwrap_or(&UNITS[2]);
    format!("{} {}", micros / unit, names[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown() {
        for (text, micros, shown) in [
            ("10 s", 10_000_000, "10 s"),
            ("90minutes", 5_400_000_000, "90 min"),
            ("0", 0, "0 s"),
            ("1 DAY", 86_400_000_000, "1 d"),
        ] {
            assert_eq!(parse_duration("retain_history", text).unwrap(), micros);
            assert_eq!(duration_text(micros), shown);
        }
        for text in ["", "s", "5 fortnights", "-1 s", "99999999999 days"] {
            assert!(parse_duration("retain_history", text).is_err(), "{text}");
        }
    }
}
