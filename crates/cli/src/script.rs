//! Texts of several statements: `-c`, `-f` and pipes.
//!
//! Statements are parsed and run one by one, so those before an error are done. Without `--keep-going` the first error
//! ends the run; an interrupt always does.

use std::{
    fs,
    io::{Read, stdin},
    path::PathBuf,
};

use anabranch_engine::Error;

use crate::{
    progress::thousands,
    run::{Place, Runner, Status},
    shell,
};

/// One text to run.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    /// SQL from the command line.
    Command(String),
    /// SQL from a file; `-` is standard input.
    File(PathBuf),
}

/// Runs the texts in order, then tells what the sources left out.
pub(crate) fn run_all(runner: &mut Runner<'_>, texts: Vec<Text>, keep_going: bool) -> Status {
    let status = run_texts(runner, texts, keep_going);
    for source in runner.host.sources().iter().filter(|source| source.progress.skipped > 0) {
        let (name, skipped) = (&source.name, thousands(source.progress.skipped));
        let first = source.progress.first_skipped.as_deref().unwrap_or("unknown");
        eprintln!("notice: source \"{name}\" left out {skipped} bad rows; the first: {first}");
    }
    status
}

fn run_texts(runner: &mut Runner<'_>, texts: Vec<Text>, keep_going: bool) -> Status {
    let mut failed = false;
    for text in texts {
        let status = match text {
            Text::Command(sql) if shell::is_command(&sql) => shell::run_command(runner, &sql),
            Text::Command(sql) => run_text(runner, &sql, None, keep_going),
            Text::File(path) => run_file(runner, &path, keep_going),
        };
        match status {
            Status::Good => {}
            Status::Failed if keep_going => failed = true,
            stop => return stop,
        }
    }
    if failed { Status::Failed } else { Status::Good }
}

/// Runs a file, or standard input for `-`.
pub(crate) fn run_file(runner: &mut Runner<'_>, path: &PathBuf, keep_going: bool) -> Status {
    let standard = path.as_os_str() == "-";
    let mut text = String::new();
    let read = if standard {
        stdin().read_to_string(&mut text).map(|_| ())
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    if let Err(problem) = read {
        let name = if standard { "standard input".into() } else { path.display().to_string() };
        eprintln!("{}", Error::unavailable(format!("cannot read {name}: {problem}")).render(""));
        return Status::Failed;
    }
    let name = if standard { "stdin".into() } else { path.display().to_string() };
    run_text(runner, &text, Some(&name), keep_going)
}

/// Runs every statement of a text.
pub(crate) fn run_text(runner: &mut Runner<'_>, text: &str, file: Option<&str>, keep_going: bool) -> Status {
    let mut failed = false;
    for range in anabranch_sql::split(text).statements {
        let place = Place { script: text, start: range.start, file };
        match runner.run(&text[range], &place) {
            Status::Good => {}
            Status::Failed if keep_going => failed = true,
            stop => return stop,
        }
    }
    if failed { Status::Failed } else { Status::Good }
}
