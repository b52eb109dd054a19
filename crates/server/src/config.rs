//! How a server is set up: a file of TOML, whose entries the command line overrides.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::error::ServerError;
use crate::users::{User, Users};

/// How a server is set up.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where clients of PostgreSQL's protocol connect.
    pub listen: SocketAddr,
    /// Where HTTP is served, if it is.
    pub http: Option<SocketAddr>,
    /// The folder that holds the database; `None` keeps it in memory.
    pub data: Option<PathBuf>,
    /// Where snapshots of the database go: `s3://bucket/prefix`, `file:///folder`, or `folder` for
    /// the folder of the database; `None` goes on where the last one went.
    pub snapshots: Option<String>,
    /// Worker threads; `None` is one a core.
    pub workers: Option<usize>,
    /// Certificate and key, if connections may be encrypted.
    pub tls: Option<Tls>,
    /// Who may connect; empty lets every client in, which only loopback addresses allow.
    pub users: Vec<User>,
    /// A file of further users.
    pub users_file: Option<PathBuf>,
    /// Limits that protect the server from its clients.
    pub limits: Limits,
    /// How events are logged.
    pub log: Log,
}

/// Files of TLS, in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate and those that it rests on.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Whether unencrypted connections are refused.
    #[serde(default)]
    pub required: bool,
}

/// Limits that protect the server from its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Clients at the same time.
    pub connections: usize,
    /// Bytes of one message, at most.
    pub message_bytes_max: usize,
    /// Bytes that dataflows and connections may hold together; without an entry two thirds of the
    /// machine's memory, or of the container's, and 0 is without a limit. `SET memory_limit`
    /// changes the limit of a server that runs.
    pub memory_bytes_max: Option<usize>,
    /// Prepared statements and portals of one client together, at most.
    pub statements_max: usize,
    /// Seconds in which a client has told who it is.
    pub login_s: u64,
    /// Seconds in which a message that began has come whole.
    pub message_s: u64,
    /// Seconds that a client may do nothing; 0 is without end.
    pub idle_s: u64,
    /// Seconds in which a client takes what is sent, at least some bytes of it.
    pub write_s: u64,
    /// Seconds that running statements and open transactions have when the server ends.
    pub drain_s: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1_000,
            message_bytes_max: 64 << 20,
            memory_bytes_max: None,
            statements_max: 200_000,
            login_s: 60,
            message_s: 300,
            idle_s: 0,
            write_s: 60,
            drain_s: 10,
        }
    }
}

impl Limits {
    /// How long a client may do nothing.
    pub(crate) fn idle(&self) -> Option<Duration> {
        (self.idle_s > 0).then(|| Duration::from_secs(self.idle_s))
    }
}

/// How events are logged.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// For people or for programs.
    pub format: LogFormat,
    /// Which events, as `tracing` filters them: `info`, `anabranch_server=debug`.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Log {
        Log { format: LogFormat::Human, filter: "info".into() }
    }
}

/// Whom a log is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    Human,
    /// An object of JSON a line.
    Json,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 5432)),
            http: None,
            data: None,
            snapshots: None,
            workers: None,
            tls: None,
            users: vec![],
            users_file: None,
            limits: Limits::default(),
            log: Log::default(),
        }
    }
}

impl Config {
    /// Reads a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When the file cannot be read, or an entry is unknown or not what it should be.
    pub fn read(path: &Path) -> Result<Config, ServerError> {
        let text = read(path)?;
        let mut config: Config =
            toml::from_str(&text).map_err(|error| ServerError::new(format!("{}: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let in_folder = |path: &mut PathBuf| *path = folder.join(&*path);
        config.data.iter_mut().for_each(in_folder);
        config.users_file.iter_mut().for_each(in_folder);
        if let Some(tls) = &mut config.tls {
            in_folder(&mut tls.certificate);
            in_folder(&mut tls.key);
        }
        Ok(config)
    }

    /// All users, those of the file included.
    ///
    /// # Errors
    /// When the file cannot be read, a name occurs twice, or a password is not a verifier.
    pub fn users(&self) -> Result<Users, ServerError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            users: Vec<User>,
        }
        let mut users = self.users.clone();
        if let Some(path) = &self.users_file {
            let file: File = toml::from_str(&read(path)?)
                .map_err(|error| ServerError::new(format!("{}: {error}", path.display())))?;
            users.extend(file.users);
        }
        Users::new(users)
    }

    /// Refuses to serve others than this machine without authentication.
    ///
    /// # Errors
    /// Names the address and what to do.
    pub(crate) fn check_reach(&self, users: &Users) -> Result<(), ServerError> {
        let open = [Some(self.listen), self.http].into_iter().flatten().find(|address| !address.ip().is_loopback());
        match open {
            Some(address) if users.is_empty() => {
                Err(ServerError::new(format!("the server would serve {address} without authentication")).with_hint(
                    "Add users to the configuration (make an entry with: anabranch password --user NAME), or listen on 127.0.0.1.",
                ))
            }
            _ => Ok(()),
        }
    }
}

fn read(path: &Path) -> Result<String, ServerError> {
    std::fs::read_to_string(path).map_err(|error| ServerError::new(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_how_the_server_is_set_up() {
        let config: Config = toml::from_str(
            "listen = '0.0.0.0:6000'\nhttp = '127.0.0.1:8080'\n[limits]\nconnections = 5\n[log]\nformat = 'json'\n",
        )
        .unwrap();
        assert_eq!(config.listen.port(), 6000);
        assert_eq!(config.limits, Limits { connections: 5, ..Limits::default() });
        assert_eq!(config.log.format, LogFormat::Json);
        assert!(toml::from_str::<Config>("lisen = '0.0.0.0:6000'").is_err());
    }

    #[test]
    fn others_than_this_machine_need_authentication() {
        let mut config = Config { listen: SocketAddr::from(([0, 0, 0, 0], 5432)), ..Config::default() };
        let error = config.check_reach(&config.users().unwrap()).unwrap_err();
        assert!(error.message.contains("0.0.0.0:5432") && error.hint.unwrap().contains("anabranch password"));
        config.users = vec![User::with_password("ann", "secret").unwrap()];
        assert!(config.check_reach(&config.users().unwrap()).is_ok());
        assert!(Config::default().check_reach(&Users::new(vec![]).unwrap()).is_ok());
    }
}
