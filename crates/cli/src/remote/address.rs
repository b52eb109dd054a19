//! Where a server is and who wants in: `postgresql://user:password@host:port/database?sslmode=..`.

use std::path::PathBuf;

use anabranch_engine::Error;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    pub encryption: Encryption,
    /// Certificates that are trusted (PEM).
    pub root: Option<PathBuf>,
}

/// Whether a connection is encrypted: libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// `disable`.
    Never,
    /// `prefer`: where the server offers it; its certificate is not checked.
    IfOffered,
    /// `require`: the certificate is checked if a root is named.
    Always,
    /// `verify-ca` and `verify-full`: the certificate and the name in it are checked.
    Verified,
}

/// What an address may leave open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    pub user: Option<String>,
    pub password: Option<String>,
}

impl Defaults {
    /// Those of libpq's variables.
    pub(crate) fn of_environment() -> Defaults {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Defaults { user: variable("PGUSER").or_else(|| variable("USER")), password: variable("PGPASSWORD") }
    }
}

const PORT: u16 = 5432;

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// `Invalid` for a text that is none.
    pub(crate) fn parse(url: &str, defaults: Defaults) -> Result<Address, Error> {
        let rest = ["postgresql://", "postgres://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| wrong(url, "it does not begin with postgresql://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
        let (host, port) = host_and_port(place).ok_or_else(|| wrong(url, "the port is no number"))?;
        let given = |text: &str| Some(decoded(text)).filter(|text| !text.is_empty());
        let user = given(user).or(defaults.user).unwrap_or_else(|| "anabranch".to_owned());
        let mut address = Address {
            host: given(host).unwrap_or_else(|| "127.0.0.1".to_owned()),
            port,
            database: given(database).unwrap_or_else(|| "anabranch".to_owned()),
            user,
            password: password.map(decoded).or(defaults.password),
            encryption: Encryption::IfOffered,
            root: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            address.set(name, &decoded(value)).map_err(|problem| wrong(url, &problem))?;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "sslmode" => {
                self.encryption = match value {
                    "disable" => Encryption::Never,
                    "allow" | "prefer" => Encryption::IfOffered,
                    "require" => Encryption::Always,
                    "verify-ca" | "verify-full" => Encryption::Verified,
                    _ => return Err(format!("sslmode cannot be '{value}'")),
                };
            }
            "sslrootcert" => self.root = Some(PathBuf::from(value)),
            "user" => self.user = value.to_owned(),
            "password" => self.password = Some(value.to_owned()),
            "host" => self.host = value.to_owned(),
            "port" => self.port = value.parse().map_err(|_| "the port is no number".to_owned())?,
            "dbname" => self.database = value.to_owned(),
            "application_name" | "connect_timeout" => {}
            _ => return Err(format!("option {name} is not known")),
        }
        Ok(())
    }

    /// The address without its password.
    pub(crate) fn shown(&self) -> String {
        format!("postgresql://{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }
}

fn wrong(url: &str, problem: &str) -> Error {
    Error::invalid(format!("\"{url}\" is not the address of a server: {problem}"))
        .with_hint("An address is postgresql://user@host:port/database, or the like with sslmode=require behind a ?.")
}

/// A host, perhaps in brackets, and a port.
fn host_and_port(place: &str) -> Option<(&str, u16)> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = port.strip_prefix(':').map_or(Ok(PORT), str::parse).ok()?;
        return Some((host, port));
    }
    match place.rsplit_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((place, PORT)),
    }
}

/// The text without percent signs for bytes.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        Address::parse(url, Defaults { user: Some("me".into()), password: None }).unwrap()
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let address = parsed("postgresql://localhost");
        assert_eq!((address.host.as_str(), address.port, address.user.as_str()), ("localhost", 5432, "me"));
        assert_eq!(parsed("postgres://").shown(), "postgresql://me@127.0.0.1:5432/anabranch");
    }

    #[test]
    fn all_parts_are_read() {
        let address = parsed("postgresql://ann:p%40ss%3a@[::1]:6543/shop?sslmode=verify-full&sslrootcert=%2fca.pem");
        assert_eq!((address.user.as_str(), address.password.as_deref()), ("ann", Some("p@ss:")));
        assert_eq!((address.host.as_str(), address.port, address.database.as_str()), ("::1", 6543, "shop"));
        assert_eq!((address.encryption, address.root), (Encryption::Verified, Some(PathBuf::from("/ca.pem"))));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in ["localhost:5432", "postgresql://h:port", "postgresql://h?sslmode=maybe", "postgresql://h?nothing=1"]
        {
            assert!(Address::parse(url, Defaults::default()).is_err(), "{url}");
        }
    }
}
