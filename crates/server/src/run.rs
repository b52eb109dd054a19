//! A server as a program: it starts, serves until it is told to end, and ends in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use anabranch_bucket::Buckets;
use anabranch_engine::store::{Snapshots, StoreError};
use anabranch_engine::{Database, DatabaseOptions, Options, memory_for_state};
use anabranch_file::FileConnector;

use crate::config::Config;
use crate::error::ServerError;
use crate::http;
use crate::server::Server;

/// Serves until SIGTERM or an interrupt from the keyboard.
///
/// # Errors
/// When the database cannot be opened, or the server cannot start.
pub fn run(config: &Config) -> Result<(), ServerError> {
    crate::logs::start(&config.log)?;
    crate::pages::keep_small();
    // (Refused before anything is opened.)
    config.check_reach(&config.users()?)?;
    let workers = config.workers.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)).max(1);
    let memory_limit =
        config.limits.memory_bytes_max.map_or_else(memory_for_state, |bytes| (bytes > 0).then_some(bytes));
    let told = Some(Arc::new(snapshot_teller()) as _);
    let snapshots = Snapshots { place: config.snapshots.clone(), places: Arc::new(Buckets), told };
    let engine = Options { snapshots, memory_limit, ..Options::default() };
    let options = DatabaseOptions { path: config.data.clone(), workers, engine };
    let database = Database::open(options)?;
    database.register_connector("file", Arc::new(FileConnector))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ServerError::new(format!("cannot start: {error}")))?;
    let server = Server::start(database.clone(), config)?;
    tracing::info!(
        address = %server.address(),
        workers,
        users = !server.shared().users.is_empty(),
        encryption = server.shared().tls.is_some(),
        "listening"
    );
    runtime.block_on(async {
        let http = match config.http {
            Some(address) => Some(http::start(address, Arc::clone(server.shared())).await?),
            None => None,
        };
        ended().await?;
        tracing::info!(clients = server.clients(), "ending");
        if let Some(http) = http {
            http.abort();
        }
        Ok::<(), ServerError>(())
    })?;
    server.stop();
    // Requests over HTTP that still run lose their database.
    runtime.shutdown_background();
    database.close()?;
    tracing::info!("ended");
    Ok(())
}

/// Logs what goes wrong with snapshots, and that it goes well again.
fn snapshot_teller() -> impl Fn(Option<&StoreError>) + Send + Sync {
    let has_failed = AtomicBool::new(false);
    move |problem| match problem {
        Some(problem) => {
            has_failed.store(true, Ordering::Relaxed);
            tracing::warn!("a snapshot cannot be written, so the log grows; nothing is lost: {problem}");
        }
        None if has_failed.swap(false, Ordering::Relaxed) => tracing::info!("snapshots are written again"),
        None => tracing::debug!("a snapshot was written"),
    }
}

/// Waits for SIGTERM, or SIGINT.
async fn ended() -> Result<(), ServerError> {
    let failed = |error: std::io::Error| ServerError::new(format!("cannot wait for signals: {error}"));
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(failed)
}
