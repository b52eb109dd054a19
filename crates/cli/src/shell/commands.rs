//! Commands of the shell: `.name` or, as in psql, `\name`.

use std::path::PathBuf;

use anabranch_engine::{RelationInfo, SourceState, nearest::nearest};
use anabranch_sql::statement::ObjectKind;
use clap::ValueEnum;

use super::Next;
use crate::{
    output::Format,
    progress::{share, thousands},
    run::{Runner, Status},
    script::{run_file, run_text},
};

const HELP: &str = "\
Statements end with ; and may span lines. Ctrl-C stops a running statement, Ctrl-D leaves.

.help              \\?           this text
.tables            \\dt, \\d     tables, sources and views
.schema [NAME]     \\d NAME     columns of a relation; without a name, how everything was created
.sources                       how far the sources are read
.mode [FORMAT]                 table, csv, json, jsonl or markdown
.maxrows [N]                   rows of a table shown, 0 for all
.timer [on|off]    \\timing     tell how long statements take
.read FILE         \\i FILE     run a file
.quit              \\q          leave

CREATE SOURCE flights WITH (connector = 'file', path = 'flights.parquet', rate = '1000');
CREATE MATERIALIZED VIEW delays AS SELECT carrier, avg(arr_delay) FROM flights GROUP BY carrier;
SELECT * FROM delays;        the answer as of now, however much has streamed in
SUBSCRIBE delays;            every change as it happens, until Ctrl-C";

const NAMES: [&str; 9] = ["help", "tables", "schema", "sources", "mode", "maxrows", "timer", "read", "quit"];

/// Whether a line is for the shell, not SQL.
pub(crate) fn is_command(line: &str) -> bool {
    line.starts_with(['.', '\\'])
}

/// Runs a command given with `-c`.
pub(crate) fn run_command(runner: &mut Runner<'_>, line: &str) -> Status {
    run(runner, line).1
}

/// Runs a command and says how to go on.
pub(super) fn run(runner: &mut Runner<'_>, line: &str) -> (Next, Status) {
    let line = line.trim().trim_end_matches(';');
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    let status = match name {
        ".help" | "\\?" | "\\h" => {
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
        ".read" | "\\i" if argument.is_empty() => complain(&format!("{name} needs a file")),
        ".read" | "\\i" => run_file(runner, &PathBuf::from(argument.trim_matches('\'')), false),
        _ => match nearest(name.trim_start_matches(['.', '\\']), NAMES) {
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
    match argument.parse() {
        Ok(0) => runner.rows_max = usize::MAX,
        Ok(rows) => runner.rows_max = rows,
        Err(_) if argument.is_empty() && runner.rows_max == usize::MAX => println!("all"),
        Err(_) if argument.is_empty() => println!("{}", runner.rows_max),
        Err(_) => return complain(".maxrows takes a number"),
    }
    Status::Good
}

fn timer(runner: &mut Runner<'_>, argument: &str) -> Status {
    runner.timer = match argument {
        "" => !runner.timer,
        "on" => true,
        "off" => false,
        _ => return complain(".timer takes on or off"),
    };
    println!("The timer is {}.", if runner.timer { "on" } else { "off" });
    Status::Good
}
