//! SET: what a session lets its user choose.

use super::Session;
use crate::error::Error;
use crate::nearest::nearest;

/// A session's settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Whether a SELECT first reads the bounded, unpaced sources behind it to their end.
    pub wait_for_sources: bool,
    /// Rows read from one source in one turn, at most.
    pub batch_rows_max: usize,
}

/// Names and what they mean, for SHOW ALL.
const SETTINGS: [(&str, &str); 2] = [
    ("batch_rows_max", "rows read from one source in one turn, at most"),
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
    pub fn new(batch_rows_max: usize) -> Settings {
        Settings { wait_for_sources: true, batch_rows_max: batch_rows_max.max(1) }
    }
}

impl Session {
    /// Changes a setting, as `SET name = value` does.
    ///
    /// - `wait_for_sources` (`on`, `off`; at first `on`): a SELECT first reads the bounded sources behind it that have
    ///   no rate to their end.
    /// - `batch_rows_max` (a number): rows read from one source in one turn, at most.
    ///
    /// # Errors
    /// `Invalid` for an unknown name or a value that does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let name = name.to_lowercase();
        match name.as_str() {
            "wait_for_sources" => self.settings.wait_for_sources = parse_bool(&name, value)?,
            "batch_rows_max" => self.settings.batch_rows_max = parse_count(&name, value)?,
            _ => set_fixed(&name, value)?,
        }
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
            "wait_for_sources" => if self.settings.wait_for_sources { "on" } else { "off" }.to_string(),
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
