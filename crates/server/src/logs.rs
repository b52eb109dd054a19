//! Where events go: standard error, a line each.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use crate::error::ServerError;

/// Logs from now on. A second call in one process changes nothing.
///
/// # Errors
/// When the filter cannot be read.
pub fn start(log: &Log) -> Result<(), ServerError> {
    let filter = EnvFilter::try_new(&log.filter).map_err(|error| {
        ServerError::new(format!("the log filter \"{}\" cannot be read: {error}", log.filter))
            .with_hint("Write a level (error, warn, info, debug), or anabranch_server=debug.")
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // (A subscriber that is there stays.)
    let _ = match log.format {
        LogFormat::Human => builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
