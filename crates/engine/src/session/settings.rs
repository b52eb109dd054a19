//! SET: what a session lets its user choose.

use std::num::NonZeroU64;

use anabranch_flow::sink::WhenFull;
use anabranch_sql::statement::SettingScope;
use anabranch_store::Durability;

use super::durable::RETAIN_HISTORY;
use super::outcome::Outcome;
use super::sealed::SealedFact;
use super::state::Session;
use super::state::settings::Settings;
use super::state::subscriptions::Buffer;
use super::state::variables::{self, is_variable, parse_bool};
use crate::catalog::ObjectId;
use crate::duration::{duration_micros, duration_text};
use crate::error::Error;
use crate::nearest::nearest;
use crate::sharing::Sharing;

/// Whose a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingOwner {
    /// Of the database, and so of all its clients.
    Database,
    Client,
}

/// Names, whose they are, and what they mean, for SHOW ALL.
const SETTINGS: [(&str, SettingOwner, &str); 9] = [
    ("batch_rows_max", SettingOwner::Database, "rows read from one source in one turn, at most"),
    (
        "durability",
        SettingOwner::Client,
        "full: a commit is done when it is on disk; relaxed: at once, and on disk a little later",
    ),
    (
        "recursion_limit",
        SettingOwner::Client,
        "rounds after which a recursive query fails that has not come to its end",
    ),
    (
        "memory_limit",
        SettingOwner::Database,
        "bytes that arrangements and operators may hold together; off for no limit",
    ),
    ("retain_history", SettingOwner::Database, "how long what has changed can still be read with AS OF"),
    ("sharing", SettingOwner::Database, "whether queries share the arrangements of indexes and of their common parts"),
    (
        "subscribe_buffer",
        SettingOwner::Client,
        "bytes of changes that are held for a subscriber on each worker; off for no limit",
    ),
    (
        "subscribe_overflow",
        SettingOwner::Client,
        "coalesce: changes that do not fit are summed up; error: the subscription ends",
    ),
    ("wait_for_sources", SettingOwner::Client, "whether a SELECT first reads bounded, unpaced sources to their end"),
];

impl Session {
    /// Changes a setting, as `SET name = value` does.
    ///
    /// - `wait_for_sources` (`on`, `off`; at first `on`): a SELECT first reads the bounded sources
    ///   behind it that have no rate to their end.
    /// - `batch_rows_max` (a number): rows read from one source in one turn, at most.
    /// - `retain_history` (a duration such as `10 minutes`; at first `0 s`): what tables, views and
    ///   indexes held stays readable with AS OF for that long. What is forgotten already does not
    ///   come back.
    /// - `durability` (`full`, `relaxed`; at first `full`; `synchronous_commit` is the same as
    ///   `on`, `off`): when commits of a database in a folder count as done: once they are on disk,
    ///   or at once.
    /// - `recursion_limit` (a number, or `off`; at first `off`): a recursive query that has not
    ///   come to its end after so many rounds fails. A view keeps the limit that was set when it
    ///   was created.
    /// - `memory_limit` (bytes such as `512MB`, or `off`; at first what [`Options`] say): what
    ///   dataflows and connections may hold together.
    /// - `subscribe_buffer` (bytes, or `off`; at first `64MB`): changes that subscriptions from now
    ///   on hold on each worker until they are taken.
    /// - `subscribe_overflow` (`coalesce`, `error`; at first `coalesce`): what becomes of more.
    /// - `sharing` (`on`, `off`; at first `on`): queries installed from now on share the
    ///   arrangements of indexes and of their common parts. Those that are installed stay as they
    ///   are.
    ///
    /// # Errors
    /// `Invalid` for an unknown name or a value that does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let name = name.to_lowercase();
        match name.as_str() {
            "wait_for_sources" => self.client.wait_for_sources = parse_bool(&name, value)?,
            "retain_history" => self.retain_history(parse_duration(&name, value)?)?,
            "durability" => self.client.durability = parse_durability(&name, value)?,
            "synchronous_commit" => {
                let is_full = parse_bool(&name, value)?;
                self.client.durability = if is_full { Durability::Full } else { Durability::Relaxed };
            }
            "sharing" => {
                self.settings.sharing = if parse_bool(&name, value)? { Sharing::Full } else { Sharing::Off };
                self.latest.forget_facts();
            }
            "recursion_limit" => self.client.recursion_limit = parse_limit(&name, value)?,
            "memory_limit" => self.cluster.set_memory_limit(parse_bytes(&name, value)?),
            "subscribe_buffer" => self.client.subscribe_buffer.bytes_max = parse_bytes(&name, value)?,
            "subscribe_overflow" => self.client.subscribe_buffer.when_full = parse_overflow(&name, value)?,
            "batch_rows_max" => self.settings.batch_rows_max = parse_count(&name, value)?,
            _ => drop(self.set_variable(&name, Some(value), SettingScope::Session)?),
        }
        Ok(())
    }

    /// Whether a setting is of the database, and so of all its clients.
    pub(crate) fn is_of_all(name: &str) -> bool {
        let mut all = SETTINGS.iter().filter(|(_, owner, _)| *owner == SettingOwner::Database);
        all.any(|(known, ..)| known.eq_ignore_ascii_case(name))
    }

    /// Retains history for that long, also after the database is opened again.
    fn retain_history(&mut self, micros: i64) -> Result<(), Error> {
        let (object, value) = (ObjectId::default(), micros.to_string().into_bytes());
        self.record_definition(vec![], vec![], vec![SealedFact { object, name: RETAIN_HISTORY, value }])?;
        self.settings.retain_history_micros = micros;
        Ok(())
    }

    /// `SET`: of the client for `wait_for_sources`, `durability`, `recursion_limit`,
    /// `subscribe_..` and PostgreSQL's parameters, of the database for the others.
    pub(super) fn set_setting(
        &mut self,
        name: &str,
        value: Option<&str>,
        scope: SettingScope,
    ) -> Result<Outcome, Error> {
        if is_variable(name) {
            return self.set_variable(name, value, scope);
        }
        if scope == SettingScope::Transaction {
            self.check_local(name)?;
            if self.client.transaction.is_none() {
                return Ok(Outcome::done_with("SET", "SET LOCAL can only be used in transaction blocks"));
            }
            self.client.durability_after.get_or_insert(self.client.durability);
        }
        match value {
            Some(value) => self.set(name, value)?,
            None => {
                let default = self.default_text(name).ok_or_else(|| unknown_setting(name))?;
                self.set(name, &default)?;
            }
        }
        Ok(Outcome::done("SET"))
    }

    /// Refuses SET LOCAL of what is not of a transaction.
    fn check_local(&self, name: &str) -> Result<(), Error> {
        self.setting(name)?;
        match matches!(name, "durability" | "synchronous_commit") {
            true => Ok(()),
            false => Err(Error::invalid(format!("SET LOCAL of setting \"{name}\" is not supported"))
                .with_sqlstate("0A000")
                .with_hint("SET it; it stays until it is set again.")),
        }
    }

    /// `RESET`; ALL are those of the client.
    pub(super) fn reset(&mut self, name: Option<&str>) -> Result<Outcome, Error> {
        match name {
            Some(name) => drop(self.set_setting(name, None, SettingScope::Session)?),
            None => {
                self.reset_variables();
                self.client.wait_for_sources = true;
                self.client.recursion_limit = None;
                self.client.subscribe_buffer = Buffer::default();
                self.client.durability = self.options.durability;
            }
        }
        Ok(Outcome::done("RESET"))
    }

    /// What a setting is at first.
    fn default_text(&self, name: &str) -> Option<String> {
        let settings = Settings::new(&self.options);
        Some(match name {
            "wait_for_sources" => on_off(true),
            "recursion_limit" => on_off(false),
            "memory_limit" => bytes_text(self.options.memory_limit),
            "retain_history" => duration_text(settings.retain_history_micros),
            "durability" => durability_text(self.options.durability).to_string(),
            "synchronous_commit" => on_off(self.options.durability == Durability::Full),
            "subscribe_buffer" => bytes_text(Buffer::default().bytes_max),
            "subscribe_overflow" => overflow_text(Buffer::default().when_full).to_owned(),
            "sharing" => on_off(settings.sharing != Sharing::Off),
            "batch_rows_max" => settings.batch_rows_max.to_string(),
            _ => return None,
        })
    }

    /// Name, value and meaning of all settings.
    pub(super) fn setting_rows(&self) -> Vec<[String; 3]> {
        let ours =
            SETTINGS.iter().map(|(name, _, meaning)| [name.to_string(), self.setting_value(name), meaning.to_string()]);
        let mut rows: Vec<[String; 3]> = ours.chain(self.variable_rows()).collect();
        rows.sort_unstable();
        rows
    }

    /// The value of one setting.
    pub(super) fn setting(&self, name: &str) -> Result<String, Error> {
        let ours = SETTINGS.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known));
        match ours {
            Some((name, ..)) => Ok(self.setting_value(name)),
            None if name == "synchronous_commit" => Ok(on_off(self.client.durability == Durability::Full)),
            None => self.variable(name).ok_or_else(|| unknown_setting(name)),
        }
    }

    fn setting_value(&self, name: &str) -> String {
        match name {
            "wait_for_sources" => on_off(self.client.wait_for_sources),
            "memory_limit" => bytes_text(self.cluster.memory_limit()),
            "subscribe_buffer" => bytes_text(self.client.subscribe_buffer.bytes_max),
            "subscribe_overflow" => overflow_text(self.client.subscribe_buffer.when_full).to_owned(),
            "retain_history" => duration_text(self.settings.retain_history_micros),
            "durability" => durability_text(self.client.durability).to_string(),
            "recursion_limit" => self.client.recursion_limit.map_or_else(|| on_off(false), |rounds| rounds.to_string()),
            "sharing" => on_off(self.settings.sharing != Sharing::Off),
            _ => self.settings.batch_rows_max.to_string(),
        }
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

pub(super) fn unknown_setting(name: &str) -> Error {
    let known = SETTINGS.iter().map(|(name, ..)| *name).chain(variables::names());
    let hint = match nearest(name, known) {
        Some(near) => format!("Did you mean \"{near}\"?"),
        None => "SHOW ALL tells which there are; those of a client's own have a point, as myapp.user.".to_owned(),
    };
    Error::invalid(format!("unrecognized configuration parameter \"{name}\"")).with_hint(hint)
}

/// A number of bytes, with a unit or without, as PostgreSQL's: `512MB`, `2 GB`; none for `off`.
fn parse_bytes(name: &str, value: &str) -> Result<Option<usize>, Error> {
    let text = value.trim().to_lowercase().replace('_', "");
    if text == "off" {
        return Ok(None);
    }
    let (amount, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim() {
        "" | "b" => Some(0),
        "kb" => Some(10),
        "mb" => Some(20),
        "gb" => Some(30),
        "tb" => Some(40),
        _ => None,
    };
    let bytes = amount.parse::<usize>().ok().zip(shift).and_then(|(amount, shift)| amount.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).map(Some).ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'"))
            .with_sqlstate("22023")
            .with_hint("It takes a number of bytes such as '512MB' or '2GB', or off.")
    })
}

/// A number of bytes as it is read again.
fn bytes_text(bytes: Option<usize>) -> String {
    bytes.map_or_else(|| on_off(false), |bytes| bytes.to_string())
}

fn overflow_text(when_full: WhenFull) -> &'static str {
    match when_full {
        WhenFull::Coalesce => "coalesce",
        WhenFull::End => "error",
    }
}

fn parse_overflow(name: &str, value: &str) -> Result<WhenFull, Error> {
    let all = [WhenFull::Coalesce, WhenFull::End];
    all.into_iter().find(|when_full| value.eq_ignore_ascii_case(overflow_text(*when_full))).ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'"))
            .with_sqlstate("22023")
            .with_hint("It takes coalesce or error.")
    })
}

fn parse_count(name: &str, value: &str) -> Result<usize, Error> {
    value.replace('_', "").parse().ok().filter(|count| *count > 0).ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'")).with_hint("It takes a number from 1.")
    })
}

/// A number of rounds; `None` for none.
fn parse_limit(name: &str, value: &str) -> Result<Option<NonZeroU64>, Error> {
    if ["off", "none", "0", "default"].iter().any(|off| value.eq_ignore_ascii_case(off)) {
        return Ok(None);
    }
    value.replace('_', "").parse().map(Some).map_err(|_| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'"))
            .with_hint("It takes a number of rounds from 1, or off.")
    })
}

/// A number and a unit, as microseconds.
pub(super) fn parse_duration(name: &str, value: &str) -> Result<i64, Error> {
    duration_micros(value).ok_or_else(|| {
        Error::invalid(format!("setting \"{name}\" cannot be '{value}'"))
            .with_hint("It takes a duration such as '10 s', '5 minutes' or '1 day'.")
    })
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
