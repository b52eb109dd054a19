//! Databases on disk from outside: `anabranch check` and `anabranch dump`.

use std::fs::File;
use std::io::{BufWriter, stdout};
use std::path::Path;

use anabranch_engine::store::{LocalDisk, Report, StoreError, check as check_disk};
use anabranch_engine::{DumpOptions, Error, SourceRows};

use crate::arguments::Dump;
use crate::progress::thousands;
use crate::run::Status;

/// Reads every byte and says what is there, or what is wrong.
pub(crate) fn check(folder: &Path) -> Result<Status, Error> {
    let place = folder.display().to_string();
    let disk = LocalDisk::existing(folder)
        .map_err(|error| StoreError::NotADatabase { place: place.clone(), detail: error.to_string() })?;
    let report = check_disk(&disk)?;
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
        None => anabranch_engine::dump(&asked.folder, options, &mut BufWriter::new(stdout().lock()))?,
        Some(path) => {
            let file = File::create(path)
                .map_err(|error| Error::unavailable(format!("cannot write {}: {error}", path.display())))?;
            anabranch_engine::dump(&asked.folder, options, &mut BufWriter::new(file))?;
        }
    }
    Ok(Status::Good)
}
