//! The keeper: sealed commits go into the log, and answers wait for its syncs.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_store::{Commit, Created, Durability, Fact, Statistics, Store, StoreError, Ticket};

use crate::error::Error;
use crate::session::sealed::{LastingCall, Promise, Receipt, Recorder, Sealed};

/// Keeps what is sealed in a store.
pub(super) struct Keeper {
    store: Store,
    /// The last commit whose answer waits. What was written with `durability = relaxed` is shown
    /// before it lasts.
    awaited: Option<Ticket>,
}

impl Keeper {
    pub fn new(store: Store) -> Keeper {
        Keeper { store, awaited: None }
    }
}

impl Recorder for Keeper {
    fn record(&mut self, sealed: &Sealed) -> Result<(), Error> {
        let commit = commit_of(sealed);
        if commit.is_empty() {
            return Ok(());
        }
        let ticket = self.store.append(&commit)?;
        if sealed.durability == Durability::Full {
            self.awaited = Some(ticket);
        }
        Ok(())
    }

    fn receipt(&self) -> Receipt {
        match &self.awaited {
            Some(ticket) if !ticket.is_durable() => Receipt::new(Arc::new(Synced(ticket.clone()))),
            _ => Receipt::default(),
        }
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.store.statistics())
    }
}

/// A commit that will be on disk.
struct Synced(Ticket);

impl Promise for Synced {
    fn wait(&self) -> Result<(), Error> {
        Ok(self.0.wait()?)
    }

    fn calls_back(&self) -> bool {
        self.0.calls_back()
    }

    fn then(&self, call: LastingCall) {
        self.0.then(move |synced| call(synced.map_err(Error::from)));
    }
}

/// What the log holds of a commit. Moves of watermarks follow from facts, and are left out.
fn commit_of(sealed: &Sealed) -> Commit {
    let created = sealed.created.iter().map(|created| Created { id: created.id.0, text: created.text.clone() });
    let rows = sealed.rows.iter().filter(|rows| !rows.batch.is_empty());
    let facts = sealed.facts.iter().map(|fact| Fact {
        object: fact.object.0,
        name: fact.name.to_string(),
        value: Some(fact.value.clone()),
    });
    Commit {
        time: sealed.time,
        removed: sealed.removed.iter().map(|id| id.0).collect(),
        created: created.collect(),
        rows: rows.map(|rows| (rows.object.0, rows.batch.clone())).collect(),
        facts: facts.collect(),
    }
}

impl From<StoreError> for Error {
    /// What a store's error means to those who use the database.
    fn from(error: StoreError) -> Error {
        let text = error.to_string();
        match error {
            StoreError::Full { .. } => Error::unavailable(text)
                .with_sqlstate("53100")
                .with_detail("Nothing of the statement was done. Reads go on.")
                .with_hint("Make room on the disk, then run the statement again."),
            StoreError::Denied { .. } => Error::unavailable(text)
                .with_sqlstate("25006")
                .with_detail("Nothing of the statement was done. The database can be read only.")
                .with_hint("Give this user the right to write there, then open the database again."),
            StoreError::Locked { .. } => Error::unavailable(text)
                .with_sqlstate("55006")
                .with_hint("One process has a database open at a time: end the other one, or ask it."),
            StoreError::NotADatabase { .. } => Error::invalid(text)
                .with_sqlstate("3D000")
                .with_hint("Name an empty folder, or one that holds a database."),
            StoreError::NotAPlace { .. } => Error::invalid(text).with_sqlstate("22023").with_hint(
                "Name a bucket, as s3://backups/shop, a folder, as file:///mnt/backup, or folder for the folder of the database.",
            ),
            StoreError::Damaged { .. } => Error::data(text)
                .with_sqlstate("XX001")
                .with_detail("Nothing was changed, and nothing is guessed.")
                .with_hint("Put a copy of the whole folder in its place; see docs/durability.md."),
            StoreError::NotRestored { instead, .. } => Error::invalid(text).with_sqlstate("22023").with_hint(instead),
            StoreError::DamagedSnapshot { before, .. } => {
                let error = Error::data(text).with_sqlstate("XX001").with_detail("Nothing was restored.");
                match before {
                    Some(before) => error.with_hint(format!("--snapshot {before} restores the one before it.")),
                    None => error.with_hint("There is none before it."),
                }
            }
            StoreError::Version { .. } => Error::invalid(text).with_sqlstate("0A000").with_hint(
                "Dump it with the version that wrote it (anabranch dump), and read the script in with this one.",
            ),
            StoreError::Failed { .. } => Error::unavailable(text)
                .with_sqlstate("58030")
                .with_detail("Commits that were not answered may be on disk or not.")
                .with_hint("Open the database again: it then shows what is on disk."),
            StoreError::Closed { .. } => Error::closed(text).with_sqlstate("57P01").with_hint("Open it anew."),
            _ => Error::unavailable(text).with_sqlstate("58030"),
        }
    }
}

/// The error of a folder that cannot be made or found.
pub(super) fn folder_error(folder: PathBuf, error: &std::io::Error) -> Error {
    if folder.is_file() {
        return Error::invalid(format!("{} is a file, where the folder of a database is wanted", folder.display()))
            .with_sqlstate("58P01")
            .with_hint("Name a folder; one that is not there is made.");
    }
    Error::unavailable(format!("folder {} cannot be opened: {error}", folder.display()))
        .with_sqlstate("58030")
        .with_hint("Name a folder that this user may read and write.")
}
