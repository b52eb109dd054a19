//! Texts of several statements: `-c`, `-f` and pipes.
//!
//! Statements are parsed and run one by one, so those before an error are done. Statements of a
//! pipe run as they arrive. Without `--keep-going` the first error ends the run; an interrupt
//! always does.

use std::{
    fs,
    io::{self, BufRead, stdin},
    ops::Range,
    path::PathBuf,
};

use anabranch_engine::Error;

use crate::{
    arguments::Text,
    data,
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
        if runner.leaves {
            break;
        }
    }
    if failed { Status::Failed } else { Status::Good }
}

/// Runs a file, or standard input for `-`.
pub(crate) fn run_file(runner: &mut Runner<'_>, path: &PathBuf, keep_going: bool) -> Status {
    if path.as_os_str() == "-" {
        return run_input(runner, keep_going);
    }
    let name = path.display().to_string();
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => {
                let status = run_text(runner, without_mark(&text), Some(&name), keep_going);
                // Of a file \q ends the file.
                runner.leaves = false;
                status
            }
            Err(error) => not_text(&name, error.as_bytes(), 0),
        },
        Err(problem) => cannot_read(&name, &problem),
    }
}

/// Runs statements as they arrive: each when its `;` has been read, the last one at the end.
///
/// Standard input is locked line by line: the rows of a COPY are read behind its statement.
fn run_input(runner: &mut Runner<'_>, keep_going: bool) -> Status {
    let (mut pending, mut bytes) = (String::new(), Vec::new());
    let mut lines_before = 0;
    let mut failed = false;
    loop {
        bytes.clear();
        let is_end = match stdin().lock().read_until(b'\n', &mut bytes) {
            Ok(read) => read == 0,
            Err(problem) => return cannot_read("standard input", &problem),
        };
        let Ok(line) = std::str::from_utf8(&bytes) else {
            return not_text("stdin", &bytes, lines_before + pending.matches('\n').count());
        };
        pending.push_str(if lines_before == 0 && pending.is_empty() { without_mark(line) } else { line });
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
        lines_before += pending.matches('\n').count() + std::mem::take(&mut runner.lines_fed);
        pending.clear();
        if is_end || runner.leaves {
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

/// Tells the first line that is no text.
fn not_text(name: &str, bytes: &[u8], lines_before: usize) -> Status {
    let at = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let line = lines_before + bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let byte = bytes.get(at).copied().unwrap_or_default();
    let error =
        Error::data(format!("byte 0x{byte:02x} is not valid UTF-8 text")).with_hint("Save the script as UTF-8.");
    eprintln!("{name}:{line}: {}", error.render(""));
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
            let range = rest + range.start..rest + range.end;
            // (Behind a command's line its text goes on with what is no part of it.)
            let is_command = shell::is_command(&text[range.clone()]);
            let (range, tail) = if is_command { (range, None) } else { shell::without_tail(text, range) };
            let mut is_cut = is_command || tail.is_some();
            let status = if is_command {
                // A command ends with its line; what the splitter took for the same statement is
                // what follows.
                let line = text[range.start..].lines().next().unwrap_or_default();
                from = range.start + line.len();
                shell::run_command(runner, line)
            } else {
                let rows = match data::reads_lines(&text[range.clone()]) {
                    true => rows_behind(runner, text, range.end, file),
                    false => None,
                };
                let behind = rows.clone().map_or("", |rows| &text[rows]);
                let place = Place { script: text, start: range.start, file, lines_before, rows: behind };
                let end = range.end;
                match &tail {
                    None => {
                        let status = runner.run(&text[range], &place);
                        match rows {
                            Some(rows) if status != Status::Interrupted => {
                                from = rows.end;
                                is_cut = true;
                                // What stands between the statement and its rows runs behind them.
                                let rest = text[end..rows.start].trim_start_matches([';', ' ']);
                                match run_part(runner, rest, file, keep_going, lines_before) {
                                    Status::Good => status,
                                    worse => worse,
                                }
                            }
                            _ => status,
                        }
                    }
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
            if runner.leaves {
                return if failed { Status::Failed } else { Status::Good };
            }
            if is_cut {
                break;
            }
        }
    }
    if failed { Status::Failed } else { Status::Good }
}

/// Where the rows of a COPY stand in the text of its statement: in files behind it, up to a line
/// `\.`; at the prompt what was pasted with it.
fn rows_behind(runner: &Runner<'_>, text: &str, end: usize, file: Option<&str>) -> Option<Range<usize>> {
    match (file, &runner.prompt) {
        (None, None) => None,
        (Some(_), _) => data::rows_behind(text, end),
        (None, Some(_)) => {
            let start = end + text[end..].find('\n')? + 1;
            Some(data::rows_behind(text, end).unwrap_or(start..text.len()))
        }
    }
}
