//! PostgreSQL's run-time parameters: what drivers set when they connect.
//!
//! Law: each client has its own. What a transaction has set is taken back when it rolls back; `SET
//! LOCAL` is taken back whenever it ends. A value that would change the meaning or the form of
//! answers is taken only if answers have it anyway.
//!
//! Three parameters act here: `statement_timeout`, `application_name` (shown), and
//! `default_transaction_read_only`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_sql::statement::SettingScope;

use super::unused_variables::UNUSED_VARIABLES;
use crate::error::Error;

/// What a parameter takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SettingTakes {
    /// Any text.
    Text,
    /// `on` or `off`.
    Switch,
    /// One of these; all mean the default.
    Only(&'static [&'static str]),
    /// One of these.
    Words(&'static [&'static str]),
    /// Milliseconds, or a number with a unit.
    Time,
    /// A whole number in this range.
    Whole(i64, i64),
    /// Schemas, of which names without a schema may mean these alone.
    Schemas(&'static [&'static str]),
    /// Nothing: the parameter is told, not set.
    Nothing,
}

/// A parameter.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// Its value until it is set.
    pub(crate) default: &'static str,
    pub(crate) takes: SettingTakes,
    pub(crate) meaning: &'static str,
}

macro_rules! variables {
    ($($name:tt $default:literal $takes:expr, $meaning:literal;)*) => {
        &[$(Setting { name: $name, default: $default, takes: $takes, meaning: $meaning }),*]
    };
}

/// The parameter that tells the user.
const USER: &str = "session_authorization";

pub(crate) const UTF8: &[&str] = &["utf8", "utf-8", "unicode"];
pub(crate) const UTC: &[&str] =
    &["utc", "gmt", "etc/utc", "etc/gmt", "z", "zulu", "universal", "greenwich", "0", "+0", "+00", "+00:00"];
pub(crate) const PATH: &[&str] = &["public", "pg_catalog", "$user", "pg_temp", "information_schema", ""];
pub(crate) const ISO: &[&str] = &["iso", "iso, mdy", "iso,mdy", "mdy", "iso, us"];
pub(crate) const LEVELS: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];
pub(crate) const MESSAGES: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error", "fatal", "panic",
    "info",
];
/// The longest timeout: PostgreSQL's, in milliseconds.
pub(crate) const TIMEOUT_MS_MAX: i64 = i32::MAX as i64;

pub(crate) const VARIABLES: &[Setting] = variables! {
    "application_name" "" SettingTakes::Text, "the name of the client's program";
    "bytea_output" "hex" SettingTakes::Only(&["hex"]), "how bytes are shown";
    "check_function_bodies" "on" SettingTakes::Switch, "has no effect: there are no functions in SQL";
    "client_encoding" "UTF8" SettingTakes::Only(UTF8), "the encoding of texts between client and server";
    "client_min_messages" "notice" SettingTakes::Words(MESSAGES), "which notices are sent";
    "datestyle" "ISO, MDY" SettingTakes::Only(ISO), "how dates are shown";
    "default_table_access_method" "heap" SettingTakes::Text, "has no effect";
    "default_tablespace" "" SettingTakes::Text, "has no effect";
    "default_transaction_deferrable" "off" SettingTakes::Only(&["off", "false", "no", "0"]), "has no effect";
    "default_transaction_isolation" "serializable" SettingTakes::Only(LEVELS), "every level gives the highest";
    "default_transaction_read_only" "off" SettingTakes::Switch, "whether transactions may only read unless they say otherwise";
    "default_text_search_config" "pg_catalog.simple" SettingTakes::Text, "has no effect";
    "extra_float_digits" "1" SettingTakes::Whole(1, 3), "floats are shown with all digits that tell them apart";
    "idle_in_transaction_session_timeout" "0" SettingTakes::Time, "how long a transaction may wait for its client";
    "integer_datetimes" "on" SettingTakes::Nothing, "times are whole microseconds";
    "intervalstyle" "postgres" SettingTakes::Only(&["postgres"]), "how intervals are shown";
    "is_superuser" "on" SettingTakes::Nothing, "there are no roles";
    "jit" "off" SettingTakes::Text, "has no effect";
    "lock_timeout" "0" SettingTakes::Time, "how long a statement may wait for an advisory lock; 0 is for ever";
    "max_identifier_length" "63" SettingTakes::Nothing, "has no effect: names may be longer";
    "role" "none" SettingTakes::Only(&["none"]), "there are no roles";
    "row_security" "on" SettingTakes::Switch, "has no effect";
    "search_path" "public" SettingTakes::Schemas(PATH), "names without a schema mean objects of public";
    USER "anabranch" SettingTakes::Nothing, "the user that the client has logged in as";
    "server_encoding" "UTF8" SettingTakes::Nothing, "the encoding of texts";
    "server_version" "15.0" SettingTakes::Nothing, "the version of PostgreSQL that answers are compared with";
    "server_version_num" "150000" SettingTakes::Nothing, "the same as a number";
    "standard_conforming_strings" "on" SettingTakes::Only(&["on", "true", "yes", "1"]), "a backslash in quotes is one";
    "statement_timeout" "0" SettingTakes::Time, "how long a statement may run; 0 is for ever";
    "synchronize_seqscans" "on" SettingTakes::Switch, "has no effect";
    "timezone" "UTC" SettingTakes::Only(UTC), "the zone in which times are shown";
    "transaction_isolation" "serializable" SettingTakes::Only(LEVELS), "every level gives the highest";
    "transaction_read_only" "off" SettingTakes::Nothing, "whether the transaction may only read";
    "work_mem" "4MB" SettingTakes::Text, "has no effect: memory_limit bounds the memory of all";
    "xmloption" "content" SettingTakes::Text, "has no effect";
};

/// A client's parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    /// Those that are set.
    pub(crate) set: BTreeMap<String, String>,
    /// What was set when the open transaction began.
    pub(crate) before: Option<BTreeMap<String, String>>,
    /// `SET LOCAL` of the open transaction.
    pub(crate) local: BTreeMap<String, String>,
    /// The user that has logged in.
    pub(crate) user: Option<Arc<str>>,
}

/// What `set_config` asks for.
#[derive(Clone, Debug)]
pub(crate) struct WantedSetting {
    pub name: String,
    pub value: String,
    /// Whether it is for the open transaction alone.
    pub is_local: bool,
}

pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    VARIABLES.iter().chain(UNUSED_VARIABLES).find(|variable| variable.name.eq_ignore_ascii_case(name))
}

/// The names of all.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|variable| variable.name)
}

/// Whether a parameter is one of a client's.
pub(crate) fn is_variable(name: &str) -> bool {
    find(name).is_some() || is_custom(name)
}

/// Whether a parameter is one that a client makes up, as `myapp.user`.
pub(crate) fn is_custom(name: &str) -> bool {
    name.split_once('.').is_some_and(|(class, own)| !class.is_empty() && !own.is_empty())
}

impl Variables {
    /// The value of a parameter, as SHOW tells it.
    pub fn get(&self, name: &str) -> Option<&str> {
        let variable = find(name);
        let name = variable.map_or_else(|| name.to_lowercase(), |variable| variable.name.to_owned());
        self.get_set(&name).or_else(|| variable.map(|variable| variable.default))
    }

    /// The value that a parameter was given.
    pub fn get_set(&self, name: &str) -> Option<&str> {
        if name == USER {
            return self.user.as_deref();
        }
        self.local.get(name).or_else(|| self.set.get(name)).map(String::as_str)
    }

    /// How long a statement may run.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.time_limit("statement_timeout")
    }

    /// How long a statement may wait for a lock.
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.time_limit("lock_timeout")
    }

    fn time_limit(&self, name: &str) -> Option<Duration> {
        // (Most clients set none.)
        if self.set.is_empty() && self.local.is_empty() {
            return None;
        }
        let millis = parse_time(self.get(name)?)?;
        u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis)
    }

    /// A transaction begins.
    pub fn begin(&mut self) {
        self.before = Some(self.set.clone());
    }

    /// The transaction has ended.
    pub fn end(&mut self, is_committed: bool) {
        let mut ended = std::mem::take(&mut self.local);
        if let Some(before) = self.before.take().filter(|_| !is_committed) {
            ended.append(&mut std::mem::replace(&mut self.set, before));
        }
        // (A parameter that a client has made up stays one, without a value.)
        for name in ended.into_keys().filter(|name| find(name).is_none()) {
            self.set.entry(name).or_default();
        }
    }

    pub(crate) fn put(&mut self, name: &str, value: Option<String>, scope: SettingScope) {
        if scope == SettingScope::Session {
            self.local.remove(name);
        }
        let values = if scope == SettingScope::Session { &mut self.set } else { &mut self.local };
        match value {
            Some(value) => drop(values.insert(name.to_owned(), value)),
            None => drop(values.remove(name)),
        }
    }
}

/// What to write where a parameter has one value.
fn instead_of(name: &str) -> &'static str {
    match name {
        "datestyle" => {
            " '01/02/2020' is the 2nd of January: write '2020-02-01', or to_date('01/02/2020', 'DD/MM/YYYY') for another order."
        }
        "timezone" => " For the clock of a zone write ts AT TIME ZONE 'Europe/Berlin'.",
        _ => "",
    }
}

/// A value as it is kept and shown.
pub(crate) fn taken(variable: &Setting, value: &str) -> Result<String, Error> {
    let name = variable.name;
    let plain = value.trim().to_lowercase();
    let refused = |hint: String| {
        Err(Error::invalid(format!("invalid value for parameter \"{name}\": \"{value}\""))
            .with_sqlstate("22023")
            .with_hint(hint))
    };
    match variable.takes {
        SettingTakes::Text => Ok(value.to_owned()),
        SettingTakes::Switch => parse_bool(name, value).map(|on| if on { "on" } else { "off" }.to_owned()),
        SettingTakes::Only(words) if words.contains(&plain.as_str()) => Ok(variable.default.to_owned()),
        SettingTakes::Only(_) => {
            refused(format!("It is always {}; leave the statement out.{}", variable.default, instead_of(name)))
        }
        SettingTakes::Words(words) if words.contains(&plain.as_str()) => Ok(plain),
        SettingTakes::Words(words) => refused(format!("Available values: {}.", words.join(", "))),
        SettingTakes::Whole(least, greatest) => match plain.parse::<i64>() {
            Ok(n) if (least..=greatest).contains(&n) => Ok(n.to_string()),
            Ok(n) => Err(Error::invalid(format!(
                "{n} is outside the valid range for parameter \"{name}\" ({least} .. {greatest})"
            ))
            .with_sqlstate("22023")
            .with_hint(match name {
                "extra_float_digits" => "For fewer digits write round(x::numeric, n) or to_char(x, '9.99').",
                _ => "Choose a number in that range.",
            })),
            Err(_) => refused("It takes a whole number.".to_owned()),
        },
        SettingTakes::Time => match parse_time(&plain) {
            Some(millis) if (0..=TIMEOUT_MS_MAX).contains(&millis) => Ok(time_text(millis)),
            Some(millis) => Err(Error::invalid(format!(
                "{millis} ms is outside the valid range for parameter \"{name}\" (0 .. {TIMEOUT_MS_MAX})"
            ))
            .with_sqlstate("22023")),
            None => refused(
                "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".".to_owned(),
            ),
        },
        SettingTakes::Schemas(known) => {
            let names = value.split(',').map(|name| name.trim().trim_matches(['"', '\'']));
            match names.into_iter().find(|name| !known.contains(&name.to_lowercase().as_str())) {
                None => Ok(value.to_owned()),
                Some(other) => Err(Error::invalid(format!("{name} cannot have the schema \"{other}\""))
                    .with_sqlstate("0A000")
                    .with_detail("A name without a schema means an object of \"public\".")
                    .with_hint(format!("Name the objects with their schema, as in {other}.name."))),
            }
        }
        SettingTakes::Nothing => Ok(String::new()),
    }
}

/// Units of times in milliseconds, the longest first.
pub(crate) const UNITS: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// Milliseconds, or a number with a unit, as PostgreSQL writes times of settings.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let number: f64 = number.trim().parse().ok()?;
    let in_millis = match unit.trim() {
        "" => number,
        "us" => number / 1000.0,
        unit => number * UNITS.iter().find(|(name, _)| *name == unit)?.1 as f64,
    };
    in_millis.is_finite().then(|| in_millis.round() as i64)
}

/// A time in the longest unit that divides it.
pub(crate) fn time_text(millis: i64) -> String {
    match UNITS.iter().find(|(_, unit)| millis > 0 && millis % unit == 0) {
        Some((name, unit)) => format!("{}{name}", millis / unit),
        None => millis.to_string(),
    }
}

/// A switch as settings take it.
pub(crate) fn parse_bool(name: &str, value: &str) -> Result<bool, Error> {
    match value.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(Error::invalid(format!("setting \"{name}\" cannot be '{value}'")).with_hint("It takes on or off.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown_as_postgresql_does() {
        for (text, millis, shown) in [
            ("0", 0, "0"),
            ("1500", 1_500, "1500ms"),
            ("1s", 1_000, "1s"),
            ("1.5min", 90_000, "90s"),
            ("2 h", 7_200_000, "2h"),
            ("500us", 1, "1ms"),
        ] {
            assert_eq!(parse_time(text), Some(millis), "{text}");
            assert_eq!(time_text(millis), shown);
        }
        for text in ["", "x", "1 fortnight", "s"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
