//! `anabranch serve` and `anabranch password`.

use std::io::{IsTerminal, Read, stdin};

use anabranch_engine::Error;
use anabranch_server::config::{LogFormat, Tls};
use anabranch_server::{Config, ServerError, User};

use crate::{
    arguments::{Password, Serve},
    run::Status,
    terminal::typed,
};

/// Serves until it is told to end.
pub(crate) fn run(serve: &Serve, workers: Option<usize>) -> Result<Status, Error> {
    let config = config(serve, workers).map_err(told)?;
    anabranch_server::run(&config).map_err(told)?;
    Ok(Status::Good)
}

fn told(error: ServerError) -> Error {
    let told = Error::invalid(error.message);
    match error.hint {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

/// The configuration with what the command line says in place of its entries.
fn config(serve: &Serve, workers: Option<usize>) -> Result<Config, ServerError> {
    let mut config = match &serve.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    config.listen = serve.listen.unwrap_or(config.listen);
    config.http = serve.http.or(config.http);
    config.data = serve.data.clone().or(config.data);
    config.snapshots = serve.snapshots.clone().or(config.snapshots);
    config.workers = workers.or(config.workers);
    config.users_file = serve.users.clone().or(config.users_file);
    if let (Some(certificate), Some(key)) = (serve.tls_cert.clone(), serve.tls_key.clone()) {
        let required = config.tls.is_some_and(|tls| tls.required);
        config.tls = Some(Tls { certificate, key, required });
    }
    if serve.log_json {
        config.log.format = LogFormat::Json;
    }
    if let Some(filter) = &serve.log {
        config.log.filter.clone_from(filter);
    }
    Ok(config)
}

/// Prints the entry of a user for the configuration.
pub(crate) fn make_password(password: &Password) -> Result<Status, Error> {
    let text = match stdin().is_terminal() {
        true => typed(&format!("Password of {}: ", password.user))?,
        false => {
            let mut text = String::new();
            stdin().read_to_string(&mut text).map_err(unread)?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    if text.is_empty() {
        return Err(Error::invalid("the password is empty"));
    }
    let user = User::with_password(&password.user, &text).map_err(told)?;
    let name = user.name.replace('\\', "\\\\").replace('"', "\\\"");
    println!("[[users]]\nname = \"{name}\"\npassword = \"{}\"", user.password);
    if password.read_only {
        println!("read_only = true");
    }
    Ok(Status::Good)
}

fn unread(error: std::io::Error) -> Error {
    Error::unavailable(format!("the password cannot be read: {error}"))
}
