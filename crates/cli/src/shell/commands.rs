//! Commands of the shell: `.name` or, as in psql, `\name`.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, IsTerminal, stdout},
    path::PathBuf,
};

use anabranch_engine::{Error, ErrorKind, SourceState, nearest::nearest};

use super::words::{NAMES, Next, complain, switch, word};
use super::{display, lists, repeat, synopses};
use crate::{
    copy::Copy,
    output::texts,
    progress::{share, thousands},
    run::{Runner, Status},
    script::{run_file, run_text},
    signals::Running,
    target::Target,
};

const HELP: &str = "\
Statements end with ; and may span lines. Ctrl-C stops a running statement, Ctrl-D leaves.

.help              \\?           this text
                   \\h [WORDS]   how statements are written: \\h create
.tables [PATTERN]  \\d, \\dt, \\dv, \\dm    tables, sources and views; PATTERN is like ord*
                   \\di, \\dn, \\du, \\df  indexes, schemas, roles, functions
.schema [NAME]     \\d NAME     columns of a relation; without a name, how everything was created
.sources                       how far the sources are read
.import FILE TABLE             rows of a CSV file; a table that is not there is made of its first line
                   \\copy T FROM FILE [OPTIONS], \\copy (SELECT ..) TO FILE [OPTIONS]
.mode [FORMAT]                 table, line, csv, json, jsonl, markdown or plain
.headers [on|off]  \\t         whether answers have a line of names
                   \\pset null TEXT   how NULL is shown
.maxrows [N]                   rows of a table shown, 0 for all
.expanded [on|off|auto] \\x     a row as a block, one line a column; auto: if it is too wide
.pager [on|off]                 answers that do not fit the screen go through $PAGER, else less
.live [on|off]                 at a terminal SUBSCRIBE shows the rows as they are now; off shows each change
.output [FILE]     \\o [FILE]   answers go to a file; without one, to the screen again
.timer [on|off]    \\timing     tell how long statements take
.read FILE         \\i FILE     run a file
.shell COMMAND     \\! COMMAND  run a command of the system
.databases         \\l, \\conninfo   the database that is open
                   \\watch [SECONDS] [c=TIMES]   the last statement again and again
                   \\g, \\gx, \\e, \\p, \\r  the last statement: again, with rows as blocks, in $EDITOR,
                   printed, forgotten
                   \\set [NAME VALUE], \\unset NAME  texts for :name, :'name' and :\"name\" in statements
.print TEXT        \\echo TEXT  print a text
.quit              \\q          leave

CREATE SOURCE flights WITH (connector = 'file', path = 'flights.parquet', rate = '1000');
CREATE MATERIALIZED VIEW delays AS SELECT carrier, avg(arr_delay) FROM flights GROUP BY carrier;
SELECT * FROM delays;        the answer as of now, however much has streamed in
SUBSCRIBE delays;            every change as it happens, until Ctrl-C";

/// Runs a command of a script or of `-c`; one that leaves is noted.
pub(crate) fn run_command(runner: &mut Runner<'_>, line: &str) -> Status {
    let (next, status) = run(runner, line);
    runner.leaves |= next == Next::Quit;
    status
}

/// Runs a command and says how to go on.
pub(super) fn run(runner: &mut Runner<'_>, line: &str) -> (Next, Status) {
    let line = word(line).unwrap_or(line.trim().trim_end_matches(';'));
    let (name, argument) = match line.strip_prefix("\\!") {
        Some(command) => ("\\!", command),
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    };
    let argument = argument.trim();
    // (psql's + and S ask for more of the same.)
    let listed = name.trim_end_matches(['+', 'S']);
    let name = if name.starts_with("\\d") || name.starts_with("\\l") { listed } else { name };
    let is_of_process = name == "\\l" && runner.place.host().is_some();
    if !is_of_process && let Some(status) = lists::query(runner, name, argument) {
        return (Next::Go, status);
    }
    let status = match name {
        "\\h" | "\\help" => synopses::print(argument),
        ".help" | "\\?" => {
            println!("{HELP}");
            Status::Good
        }
        ".quit" | ".exit" | "\\q" => return (Next::Quit, Status::Good),
        ".tables" => lists::relations(runner, &[], argument),
        "\\dt" => lists::relations(runner, &["table", "source"], argument),
        "\\dv" => lists::relations(runner, &["view", "materialized view"], argument),
        "\\dm" => lists::relations(runner, &["materialized view"], argument),
        "\\d" if argument.is_empty() || argument.contains('*') => lists::relations(runner, &[], argument),
        ".schema" if argument.is_empty() => lists::definitions(runner),
        ".schema" | "\\d" => describe(runner, argument),
        ".import" => import(runner, argument),
        "\\copy" => copy(runner, argument),
        "\\watch" => repeat::watch(runner, argument),
        "\\g" => repeat::again(runner, false),
        "\\gx" => repeat::again(runner, true),
        "\\e" | "\\edit" => match repeat::edited(runner, argument) {
            Ok(text) => run_text(runner, &text, None, false),
            Err(status) => status,
        },
        ".live" => switch("live display", argument, &mut runner.live),
        ".sources" => sources(runner),
        "\\p" | "\\print" => {
            println!("{}", if runner.last.is_empty() { "There is no statement yet." } else { &runner.last });
            Status::Good
        }
        "\\r" | "\\reset" => {
            runner.last.clear();
            println!("The statement is cleared.");
            Status::Good
        }
        "\\echo" | "\\qecho" | ".print" => display::echo(runner, argument),
        "\\set" => display::set(runner, argument),
        "\\unset" => display::unset(runner, argument),
        ".headers" | ".header" => display::headers(runner, argument),
        "\\t" => display::pset(runner, &format!("tuples_only {argument}")),
        ".indexes" | ".indices" => lists::query(runner, "\\di", argument).unwrap_or(Status::Good),
        ".dump" => complain(
            "the shell does not dump\nhint: Leave it, and write anabranch dump FOLDER; .schema tells how everything was created.",
        ),
        ".mode" => display::mode(runner, argument),
        ".maxrows" => rows_max(runner, argument),
        ".timer" | "\\timing" => timer(runner, argument),
        ".expanded" | "\\x" => display::expanded(runner, argument),
        ".pager" => display::pager(runner, argument),
        "\\pset" => display::pset(runner, argument),
        ".output" | "\\o" => output(runner, argument.trim_matches('\'')),
        ".shell" | ".system" | "\\!" => system(argument),
        ".databases" | "\\conninfo" | "\\l" => {
            println!("{}", runner.place.told());
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

fn describe(runner: &mut Runner<'_>, name: &str) -> Status {
    runner.run_alone(&format!("DESCRIBE {name}"))
}

/// COPY between a relation and a file of this machine.
fn copy(runner: &mut Runner<'_>, argument: &str) -> Status {
    match Copy::parse(argument) {
        Ok(copy) => run_copy(runner, &copy),
        Err(error) => told(&error),
    }
}

fn run_copy(runner: &mut Runner<'_>, copy: &Copy) -> Status {
    if runner.place.host().is_some() {
        return runner.run_alone(&copy.statement_with_file());
    }
    let _running = Running::start();
    let begun = copy.transfer().and_then(|file| runner.place.begin_copy(&copy.statement_over_connection(), file));
    match begun.and_then(|replies| runner.finish(&replies, "")) {
        Ok(_) => Status::Good,
        Err(error) if error.kind == ErrorKind::Cancelled => Status::Interrupted,
        Err(error) => told(&error),
    }
}

fn told(error: &Error) -> Status {
    eprintln!("{}", error.render(""));
    Status::Failed
}

/// `.import [--skip 1] FILE TABLE`, as sqlite has it.
fn import(runner: &mut Runner<'_>, argument: &str) -> Status {
    let words: Vec<&str> = argument.split_whitespace().filter(|word| *word != "--csv").collect();
    let (has_header, words) = match words.as_slice() {
        ["--skip", "1", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let [path, table] = words else {
        return complain(
            ".import takes a file and a table: .import rows.csv orders\nhint: --skip 1 passes over a first line of names.",
        );
    };
    let path = path.trim_matches(['\'', '"']);
    let name = format!("\"{}\"", table.trim_matches('"').replace('"', "\"\""));
    let exists = runner.place.relations().is_ok_and(|all| all.iter().any(|one| one.name == table.trim_matches('"')));
    if exists {
        return run_copy(runner, &Copy::of_csv(&name, path, has_header));
    }
    match columns_of(path) {
        Ok(columns) => {
            let made = runner.run_alone(&format!("CREATE TABLE {name} ({columns})"));
            if made == Status::Good { run_copy(runner, &Copy::of_csv(&name, path, true)) } else { made }
        }
        Err(problem) => complain(&format!("cannot read {path}: {problem}")),
    }
}

/// Columns of text, named by the first line of a file.
fn columns_of(path: &str) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(File::open(path)?).read_line(&mut line)?;
    let names = line.trim_end().trim_start_matches('\u{feff}').split(',').map(|name| name.trim().trim_matches('"'));
    let columns: Vec<String> = names.map(|name| format!("\"{}\" text", name.replace('"', "\"\""))).collect();
    Ok(columns.join(", "))
}

fn sources(runner: &Runner<'_>) -> Status {
    let Some(host) = runner.place.host() else { return sources_of_server(runner) };
    // Through the session, so that the newest turn counts.
    let sources = host.call(|session| session.sources()).unwrap_or_default();
    if sources.is_empty() {
        println!("There are no sources.");
    }
    for source in sources {
        let state = match &source.state {
            SourceState::Unread => "unread until a query reads it".into(),
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

fn sources_of_server(runner: &Runner<'_>) -> Status {
    match runner.place.query("SHOW SOURCES") {
        Err(error) => return told(&error),
        Ok(rows) if rows.num_rows() == 0 => println!("There are no sources."),
        Ok(rows) => {
            for row in texts(&rows) {
                let cells: Vec<String> = row.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into())).collect();
                println!("{}", cells.join("  "));
            }
        }
    }
    Status::Good
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
