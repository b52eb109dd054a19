//! Commands of the shell: `.name` or, as in psql, `\name`.

use std::{
    fs::File,
    io::{BufWriter, IsTerminal, stdout},
    path::PathBuf,
};

use anabranch_engine::{RelationInfo, SourceState, nearest::nearest};
use anabranch_sql::statement::ObjectKind;
use clap::ValueEnum;

use super::{Next, synopses};
use crate::{
    output::Format,
    progress::{share, thousands},
    run::{Runner, Status},
    script::{run_file, run_text},
    target::Target,
};

const HELP: &str = "\
Statements end with ; and may span lines. Ctrl-C stops a running statement, Ctrl-D leaves.

.help              \\?           this text
                   \\h [WORDS]   how statements are written: \\h create
.tables            \\dt, \\d     tables, sources and views
.schema [NAME]     \\d NAME     columns of a relation; without a name, how everything was created
.sources                       how far the sources are read
.mode [FORMAT]                 table, csv, json, jsonl or markdown
.maxrows [N]                   rows of a table shown, 0 for all
.expanded [on|off] \\x          a row as a block, one line a column
.pager [on|off]                 answers that do not fit the screen go through $PAGER, else less
.output [FILE]     \\o [FILE]   answers go to a file; without one, to the screen again
.timer [on|off]    \\timing     tell how long statements take
.read FILE         \\i FILE     run a file
.shell COMMAND     \\! COMMAND  run a command of the system
.databases         \\l          the database that is open
.quit              \\q          leave

CREATE SOURCE flights WITH (connector = 'file', path = 'flights.parquet', rate = '1000');
CREATE MATERIALIZED VIEW delays AS SELECT carrier, avg(arr_delay) FROM flights GROUP BY carrier;
SELECT * FROM delays;        the answer as of now, however much has streamed in
SUBSCRIBE delays;            every change as it happens, until Ctrl-C";

/// Commands by their long names.
pub(super) const NAMES: [&str; 15] = [
    ".databases",
    ".expanded",
    ".help",
    ".maxrows",
    ".mode",
    ".output",
    ".pager",
    ".quit",
    ".read",
    ".schema",
    ".shell",
    ".sources",
    ".tables",
    ".timer",
    ".exit",
];

/// Words that are commands where they stand alone, as in psql.
const WORDS: [(&str, &str); 3] = [("help", ".help"), ("quit", ".quit"), ("exit", ".quit")];

/// Whether a line is for the shell, not SQL.
pub(crate) fn is_command(line: &str) -> bool {
    line.starts_with(['.', '\\']) || word(line).is_some()
}

/// The command that a word at the prompt stands for.
fn word(line: &str) -> Option<&'static str> {
    let word = line.trim().trim_end_matches(';').trim_end();
    WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, command)| *command)
}

/// Runs a command given with `-c`.
pub(crate) fn run_command(runner: &mut Runner<'_>, line: &str) -> Status {
    run(runner, line).1
}

/// Runs a command and says how to go on.
pub(super) fn run(runner: &mut Runner<'_>, line: &str) -> (Next, Status) {
    let line = word(line).unwrap_or(line.trim().trim_end_matches(';'));
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    let status = match name {
        "\\h" | "\\help" => synopses::print(argument),
        ".help" | "\\?" => {
            println!("{HELP}");
            Status::Good
        }
        ".quit" | ".exit" | "\\q" => return (Next::Quit, Status::Good),
        ".tables" | "\\dt" | "\\dv" | "\\dm" => list(runner),
        "\\d" if argument.is_empty() => list(runner),
        ".schema" if argument.is_empty() => show_all(runner),
        ".schema" | "\\d" => describe(runner, argument),
        ".sources" => sources(runner),
        ".mode" => mode(runner, argument),
        ".maxrows" => rows_max(runner, argument),
        ".timer" | "\\timing" => timer(runner, argument),
        ".expanded" | "\\x" => expanded(runner, argument),
        ".pager" | "\\pset" => pager(runner, argument.trim_start_matches("pager").trim()),
        ".output" | "\\o" => output(runner, argument.trim_matches('\'')),
        ".shell" | ".system" | "\\!" => system(argument),
        ".databases" | "\\l" => {
            println!("memory (of this process; nothing is kept when it ends)");
            Status::Good
        }
        ".read" | "\\i" if argument.is_empty() => complain(&format!("{name} needs a file")),
        ".read" | "\\i" => run_file(runner, &PathBuf::from(argument.trim_matches('\'')), false),
        _ => match nearest(name.trim_start_matches(['.', '\\']), NAMES.map(|name| &name[1..])) {
            Some(near) => complain(&format!("unknown command {name}\nhint: Did you mean .{near}?")),
            None => complain(&format!("unknown command {name}\nhint: Type .help for the list.")),
        },
    };
    (Next::Go, status)
}

fn complain(problem: &str) -> Status {
    eprintln!("error: {problem}");
    Status::Failed
}

fn relations(runner: &Runner<'_>) -> Vec<RelationInfo> {
    runner.host.call(|session| session.relations()).unwrap_or_default()
}

fn list(runner: &Runner<'_>) -> Status {
    let relations = relations(runner);
    if relations.is_empty() {
        println!("There is nothing yet: begin with CREATE TABLE or CREATE SOURCE.");
    }
    let widest = relations.iter().map(|relation| relation.name.len()).max().unwrap_or(0);
    for relation in &relations {
        let columns: Vec<&str> = relation.schema.fields().iter().map(|field| field.name().as_str()).collect();
        println!("{:widest$}  {:17}  {}", relation.name, kind(relation.kind), columns.join(", "));
    }
    Status::Good
}

fn kind(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "table",
        ObjectKind::Source => "source",
        ObjectKind::View => "view",
        ObjectKind::MaterializedView => "materialized view",
        ObjectKind::Index => "index",
    }
}

fn show_all(runner: &mut Runner<'_>) -> Status {
    for relation in relations(runner) {
        let sql = format!("SHOW CREATE \"{}\"", relation.name.replace('"', "\"\""));
        let text = runner.host.call(move |session| session.query(&sql));
        if let Ok(Ok(rows)) = text {
            for batch in &rows.batches {
                if let Some(column) = batch.columns().last() {
                    let print = anabranch_sql::output::printer(column);
                    for row in 0..batch.num_rows() {
                        let mut text = String::new();
                        print(row, &mut text);
                        println!("{};", text.trim_end_matches(';'));
                    }
                }
            }
        }
    }
    Status::Good
}

fn describe(runner: &mut Runner<'_>, name: &str) -> Status {
    run_text(runner, &format!("DESCRIBE {name}"), None, false)
}

fn sources(runner: &Runner<'_>) -> Status {
    // Through the session, so that the newest turn counts.
    let sources = runner.host.call(|session| session.sources()).unwrap_or_default();
    if sources.is_empty() {
        println!("There are no sources.");
    }
    for source in sources {
        let state = match &source.state {
            SourceState::Running => format!("reading{}", share(&source)),
            SourceState::Done => "read to its end".into(),
            SourceState::Failed(problem) => format!("failed: {problem}"),
        };
        let skipped = match source.progress.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", thousands(skipped)),
        };
        println!("{}: {} rows{skipped}, {state}", source.name, thousands(source.rows));
    }
    Status::Good
}

fn mode(runner: &mut Runner<'_>, argument: &str) -> Status {
    if argument.is_empty() {
        println!("{}", runner.format.name());
        return Status::Good;
    }
    match Format::from_str(argument, true) {
        Ok(format) => {
            runner.format = format;
            Status::Good
        }
        Err(_) => {
            complain(&format!("there is no format {argument}\nhint: Formats are table, csv, json, jsonl and markdown."))
        }
    }
}

fn rows_max(runner: &mut Runner<'_>, argument: &str) -> Status {
    let layout = &mut runner.layout;
    match argument.parse() {
        Ok(0) => layout.rows_max = usize::MAX,
        Ok(rows) => layout.rows_max = rows,
        Err(_) if argument.is_empty() && layout.rows_max == usize::MAX => println!("all"),
        Err(_) if argument.is_empty() => println!("{}", layout.rows_max),
        Err(_) => return complain(".maxrows takes a number"),
    }
    Status::Good
}

fn timer(runner: &mut Runner<'_>, argument: &str) -> Status {
    switch("timer", argument, &mut runner.timer)
}

fn expanded(runner: &mut Runner<'_>, argument: &str) -> Status {
    switch("expanded display", argument, &mut runner.layout.expanded)
}

fn pager(runner: &mut Runner<'_>, argument: &str) -> Status {
    match &mut runner.target {
        Target::Terminal { pages } => switch("pager", argument, pages),
        _ => complain("the pager needs a terminal, and answers that go there"),
    }
}

/// Turns something on or off; without a word, the other way.
fn switch(what: &str, argument: &str, is_on: &mut bool) -> Status {
    *is_on = match argument {
        "" => !*is_on,
        "on" => true,
        "off" => false,
        _ => return complain(&format!("the {what} can be on or off, not {argument}")),
    };
    println!("The {what} is {}.", if *is_on { "on" } else { "off" });
    Status::Good
}

/// Sends answers to a file, or back to standard output.
fn output(runner: &mut Runner<'_>, path: &str) -> Status {
    runner.target = match path {
        "" if stdout().is_terminal() => Target::Terminal { pages: true },
        "" => Target::Plain,
        path => match File::create(path) {
            Ok(file) => Target::File(BufWriter::new(file)),
            Err(problem) => return complain(&format!("cannot write {path}: {problem}")),
        },
    };
    Status::Good
}

/// Runs a command of the system's shell.
fn system(command: &str) -> Status {
    if command.is_empty() {
        return complain("\\! needs a command");
    }
    match std::process::Command::new("sh").args(["-c", command]).status() {
        Ok(status) if status.success() => Status::Good,
        Ok(status) => complain(&format!("the command ended with {status}")),
        Err(problem) => complain(&format!("cannot run a command: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_stand_alone_are_commands() {
        assert!(is_command("quit") && is_command("HELP;") && is_command("\\q") && is_command(".tables"));
        assert!(!is_command("help me") && !is_command("SELECT 1;") && !is_command(""));
        assert_eq!(word("Exit ;"), Some(".quit"));
    }
}
