//! Databases on disk from outside: `anabranch check`, `anabranch dump` and `anabranch restore`.

use std::fs::File;
use std::io::{BufWriter, stdout};
use std::path::Path;

use anabranch_bucket::Buckets;
use anabranch_engine::nearest::nearest;
use anabranch_engine::store::{LocalDisk, Report, Restored, Restoring, StoreError, check_with, restore as restore_on};
use anabranch_engine::{DumpOptions, Error, SourceRows, dump_with};
use clap::CommandFactory;

use crate::arguments::{Arguments, Dump, Restore};
use crate::progress::thousands;
use crate::run::Status;

/// Refuses what is hardly meant as the folder of a database: a file, and a subcommand that is
/// mistyped.
///
/// # Errors
/// `Invalid`, with what to write instead.
pub(crate) fn check_name(folder: &Path) -> Result<(), Error> {
    let shown = folder.display().to_string();
    if folder.is_file() {
        let error = Error::invalid(format!("{shown} is a file, where the folder of a database is wanted"));
        let quoted = shown.replace('\'', "''");
        return Err(match folder.extension().and_then(|ending| ending.to_str()) {
            Some("sql") => error.with_hint(format!("Run its statements with anabranch -f {shown}.")),
            _ => error.with_hint(format!("Query it with anabranch -c \"SELECT * FROM '{quoted}'\".")),
        });
    }
    if folder.exists() || shown.contains(['/', '\\', '.']) {
        return Ok(());
    }
    let commands = Arguments::command();
    let near = nearest(&shown, commands.get_subcommands().map(|command| command.get_name()));
    match near.filter(|near| near.get(..1) == shown.get(..1)) {
        None => Ok(()),
        Some(near) => Err(Error::invalid(format!("there is no command {shown}, and no folder of that name"))
            .with_hint(format!("Did you mean {near}? A new database in a folder of this name is ./{shown}."))),
    }
}

/// Reads every byte and says what is there, or what is wrong.
pub(crate) fn check(folder: &Path) -> Result<Status, Error> {
    let place = folder.display().to_string();
    let disk = LocalDisk::existing(folder)
        .map_err(|error| StoreError::NotADatabase { place: place.clone(), detail: error.to_string() })?;
    let report = check_with(&disk, &Buckets)?;
    println!("{place} is sound");
    print_report(&report);
    Ok(Status::Good)
}

fn print_report(report: &Report) {
    for (name, n_bytes) in &report.files {
        println!("  file   {name}  {} bytes", thousands(*n_bytes));
    }
    for object in &report.objects {
        let statement: String = object.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = statement.chars().take(60).collect();
        let more = if shown.len() < statement.len() { ".." } else { "" };
        let rows = thousands(u64::try_from(object.n_rows).unwrap_or(0));
        println!("  object {}  {rows} rows  {shown}{more}", object.id);
    }
    println!("  {} commits, the last at {}", thousands(report.n_commits), report.time);
    if report.torn_bytes > 0 {
        let torn = thousands(report.torn_bytes);
        println!(
            "  notice: the log ends in {torn} bytes of a commit that was never acknowledged; opening cuts them off"
        );
    }
}

/// Writes the database as a script.
pub(crate) fn dump(asked: &Dump) -> Result<Status, Error> {
    let sources = if asked.sources_as_tables { SourceRows::AsTable } else { SourceRows::ReadAgain };
    let options = DumpOptions { sources };
    match &asked.output {
        None => dump_with(&asked.folder, &Buckets, options, &mut BufWriter::new(stdout().lock()))?,
        Some(path) => {
            let file = File::create(path)
                .map_err(|error| Error::unavailable(format!("cannot write {}: {error}", path.display())))?;
            dump_with(&asked.folder, &Buckets, options, &mut BufWriter::new(file))?;
        }
    }
    Ok(Status::Good)
}

/// Makes a database of a snapshot in a place, and says what is not in it.
pub(crate) fn restore(asked: &Restore) -> Result<Status, Error> {
    check_name(&asked.folder)?;
    let was_there = asked.folder.exists();
    let disk = LocalDisk::create(&asked.folder).map_err(|error| {
        Error::unavailable(format!("folder {} cannot be made: {error}", asked.folder.display())).with_sqlstate("58030")
    })?;
    let restoring = Restoring { database: asked.database.clone(), snapshot: asked.snapshot };
    match restore_on(&disk, &Buckets, &asked.place, &restoring) {
        Ok(restored) => {
            print_restored(&asked.folder, &restored);
            Ok(Status::Good)
        }
        Err(error) => {
            if !was_there {
                // (One that holds something stays.)
                let _ = std::fs::remove_dir(&asked.folder);
            }
            Err(error.into())
        }
    }
}

fn print_restored(folder: &Path, restored: &Restored) {
    let Restored { place, snapshot, size_bytes, time, n_objects } = restored;
    let bytes = thousands(*size_bytes);
    println!("{} is restored from snapshot {snapshot} in {place} ({bytes} bytes)", folder.display());
    println!("  {n_objects} objects as of the commit at {time}");
    println!("  notice: what was committed after that was in the log of the lost folder, and is not there");
    println!("  notice: its snapshots stay in the folder until a place is named with --snapshots");
}
