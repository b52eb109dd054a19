//! Settings that a client asks for as it connects: parameters of the first message, and `options`,
//! which psql takes from PGOPTIONS.
//!
//! Law: what is in `options` is set, or the client is not let in. Of other parameters a client may
//! say what is not here (JDBC names its machine's time zone): that is told by a warning.

use std::collections::BTreeMap;

use anabranch_engine::{Connection, Error};

use crate::wire::reply::{self, Severity};

/// Parameters that are not settings.
const NOT_SETTINGS: [&str; 4] = ["user", "database", "options", "replication"];

/// A setting that a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    name: String,
    value: String,
    /// Whether the client is not let in without it.
    is_firm: bool,
}

/// The wishes of the parameters of a first message.
///
/// # Errors
/// `Invalid` for `options` that are no settings.
pub(super) fn wishes(given: &BTreeMap<String, String>) -> Result<Vec<Wish>, Error> {
    let is_setting = |name: &str| !NOT_SETTINGS.contains(&name) && !name.starts_with("_pq_.");
    let of_parameter =
        |(name, value): (&String, &String)| Wish { name: name.clone(), value: value.clone(), is_firm: false };
    let mut wishes: Vec<Wish> = given.iter().filter(|(name, _)| is_setting(name)).map(of_parameter).collect();
    let mut words = words(given.get("options").map_or("", String::as_str)).into_iter();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(long), _) => long.to_owned(),
            (None, Some("")) => words.next().unwrap_or_default(),
            (None, Some(short)) => short.to_owned(),
            (None, None) => return Err(unknown(&word)),
        };
        let Some((name, value)) = setting.split_once('=') else { return Err(unknown(&word)) };
        wishes.push(Wish { name: name.replace('-', "_"), value: value.to_owned(), is_firm: true });
    }
    Ok(wishes)
}

fn unknown(word: &str) -> Error {
    Error::invalid(format!("invalid command-line argument for server process: {word}"))
        .with_sqlstate("42601")
        .with_hint("Write -c name=value, as in PGOPTIONS='-c statement_timeout=5s'.")
}

/// Words between spaces, which a backslash keeps.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => word.get_or_insert_default().extend(chars.next()),
            char if char.is_whitespace() => words.extend(word.take()),
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

/// Sets what a client wishes.
///
/// # Errors
/// That of the first firm wish that cannot be fulfilled.
pub(super) fn fulfil(connection: &mut Connection, wishes: &[Wish], out: &mut Vec<u8>) -> Result<(), Error> {
    for Wish { name, value, is_firm } in wishes {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        let set = match !name.is_empty() && name.bytes().all(is_name) {
            true => connection.execute(&format!("SET {name} = '{}'", value.replace('\'', "''"))),
            false => {
                Err(Error::invalid(format!("unrecognized configuration parameter \"{name}\"")).with_sqlstate("42704"))
            }
        };
        match set {
            Ok(_) => {}
            Err(error) if *is_firm => return Err(error),
            Err(error) => {
                let message = format!("parameter \"{name}\" of the connection is not set: {}", error.message);
                reply::plain(out, Severity::Warning, "01000", &message);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(options: &str) -> Result<Vec<(String, String)>, Error> {
        let given = BTreeMap::from([("user".to_owned(), "a".to_owned()), ("options".to_owned(), options.to_owned())]);
        Ok(wishes(&given)?.into_iter().map(|wish| (wish.name, wish.value)).collect())
    }

    #[test]
    fn options_are_read_as_a_command_line() {
        let told_of =
            |options: &str| told(options).unwrap().into_iter().map(|(n, v)| format!("{n}:{v}")).collect::<Vec<_>>();
        assert_eq!(told_of("-c a=1  -cb=2 --c-d=x\\ y"), ["a:1", "b:2", "c_d:x y"]);
        assert_eq!(told_of(""), [""; 0]);
        for wrong in ["-x", "-c", "-c a", "a=1"] {
            assert!(told(wrong).is_err(), "{wrong}");
        }
    }
}
