//! Texts of several statements: `-c`, `-f` and pipes.
//!
//! Statements are parsed and run one by one, so those before an error are done. Statements of a
//! pipe run as they arrive. Without `--keep-going` the first error ends the run; an interrupt
//! always does.

use std::{
    fs,
    io::{self, BufRead, stdin},
    path::PathBuf,
};

use anabranch_engine::Error;

use crate::{
    arguments::Text,
    progress::thousands,
    run::{Place, Runner, Status},
    shell,
};

/// Runs the texts in order, then tells what the sources left out.
pub(crate) fn run_all(runner: &mut Runner<'_>, texts: Vec<Text>, keep_going: bool) -> Status {
    let status = run_texts(runner, texts, keep_going);
    for source in runner.place.sources().iter().filter(|source| source.progress.skipped > 0) {
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
    if path.as_os_str() == "-" {
        return run_input(runner, stdin().lock(), keep_going);
    }
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => run_text(runner, without_mark(&text), Some(&name), keep_going),
        Err(problem) => cannot_read(&name, &problem),
    }
}

/// Runs statements as they arrive: each when its `;` has been read, the last one at the end.
fn run_input(runner: &mut Runner<'_>, mut input: impl BufRead, keep_going: bool) -> Status {
    let (mut pending, mut line) = (String::new(), String::new());
    let mut lines_before = 0;
    let mut failed = false;
    loop {
        line.clear();
        let is_end = match input.read_line(&mut line) {
            Ok(read) => read == 0,
            Err(problem) => return cannot_read("standard input", &problem),
        };
        pending.push_str(if lines_before == 0 && pending.is_empty() { without_mark(&line) } else { &line });
        // A statement ends with a `;`, so other lines need not be looked through.
        let is_command = shell::is_command(pending.trim_start()) || shell::has_tail(&pending);
        let is_due = is_end || line.contains(';') || is_command;
        if !is_due || !(is_end || is_command || anabranch_sql::split(&pending).complete) {
            continue;
        }
        match run_part(runner, &pending, Some("stdin"), keep_going, lines_before) {
            Status::Good => {}
            Status::Failed if keep_going => failed = true,
            stop => return stop,
        }
        lines_before += pending.matches('\n').count();
        pending.clear();
        if is_end {
            return if failed { Status::Failed } else { Status::Good };
        }
    }
}

/// The text without the mark of UTF-8 that some editors put in front.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn cannot_read(name: &str, problem: &io::Error) -> Status {
    eprintln!("{}", Error::unavailable(format!("cannot read {name}: {problem}")).render(""));
    Status::Failed
}

/// Runs every statement of a text, and the shell's commands that stand on lines of their own.
pub(crate) fn run_text(runner: &mut Runner<'_>, text: &str, file: Option<&str>, keep_going: bool) -> Status {
    run_part(runner, text, file, keep_going, 0)
}

/// As [`run_text`], for a part of a file.
fn run_part(runner: &mut Runner<'_>, text: &str, file: Option<&str>, keep_going: bool, lines_before: usize) -> Status {
    let mut failed = false;
    let mut from = 0;
    while from < text.len() {
        let rest = from;
        from = text.len();
        for range in anabranch_sql::split(&text[rest..]).statements {
            let (range, tail) = shell::without_tail(text, rest + range.start..rest + range.end);
            let is_command = shell::is_command(&text[range.clone()]);
            let status = if is_command {
                // A command ends with its line; what the splitter took for the same statement is
                // what follows.
                let line = text[range.start..].lines().next().unwrap_or_default();
                from = range.start + line.len();
                shell::run_command(runner, line)
            } else {
                let place = Place { script: text, start: range.start, file, lines_before };
                match &tail {
                    None => runner.run(&text[range], &place),
                    // The command is what runs the statement.
                    Some(tail) => {
                        text[range].trim_end().clone_into(&mut runner.last);
                        shell::run_command(runner, &text[tail.clone()])
                    }
                }
            };
            if let Some(tail) = &tail {
                from = tail.end;
            }
            match status {
                Status::Good => {}
                Status::Failed if keep_going => failed = true,
                stop => return stop,
            }
            if is_command || tail.is_some() {
                break;
            }
        }
    }
    if failed { Status::Failed } else { Status::Good }
}
