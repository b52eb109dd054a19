//! `anabranch datalog`: a program over files of facts.

use std::{
    fs::read_to_string,
    io::{IsTerminal, Write, stderr, stdout},
    path::Path,
};

use anabranch_datalog::{Folders, Program, Progress, Value, render};
use anabranch_engine::{Error, ErrorKind, Session};

use crate::{
    arguments::Datalog,
    host::Host,
    progress::thousands,
    run::{Status, checked},
    signals::{self, Running},
};

/// Runs the program, and tells what is wrong with it in terms of its file.
pub(crate) fn run(arguments: &Datalog, workers: usize) -> Result<Status, Error> {
    let file = arguments.program.display().to_string();
    let text = read_to_string(&arguments.program)
        .map_err(|problem| Error::unavailable(format!("cannot read {file}: {problem}")))?;
    let program = match Program::parse(&text).and_then(|program| program.check().map(|()| program)) {
        Ok(program) => program,
        Err(error) => return Ok(failed(&file, &text, &error)),
    };
    let host = Host::start(workers, None, None)?;
    let interrupt = host.interrupt();
    signals::listen(move || interrupt.trigger());
    let running = Running::start();
    let (folders, queries) = (folders(arguments), arguments.queries.clone());
    let ran = host.call(move |session| answer(session, &program, &folders, &queries))?;
    drop(running);
    match ran {
        Ok(()) => Ok(Status::Good),
        Err(error) if error.kind == ErrorKind::Cancelled => {
            eprintln!("interrupted");
            Ok(Status::Interrupted)
        }
        Err(error) => Ok(failed(&file, &text, &error)),
    }
}

fn failed(file: &str, text: &str, error: &Error) -> Status {
    eprintln!("{}", render(file, text, error));
    Status::Failed
}

fn folders(arguments: &Datalog) -> Folders {
    let printed = arguments.output == Path::new("-");
    Folders { facts: arguments.facts.clone(), output: (!printed).then(|| arguments.output.clone()) }
}

/// The outputs of the program, or the answers of the queries if there are some.
fn answer(session: &mut Session, program: &Program, folders: &Folders, queries: &[String]) -> Result<(), Error> {
    let mut line = Line { is_shown: stderr().is_terminal(), visible: false };
    let mut out = vec![];
    if queries.is_empty() {
        let ran = program.run(session, folders, &mut out, &mut |progress| line.draw(&progress));
        line.clear();
        return ran.and_then(|_| print(&out));
    }
    let installed = program.read(session, folders, &mut |progress| line.draw(&progress));
    line.clear();
    let installed = installed?;
    for query in queries {
        for row in installed.query(session, query).map_err(|error| placed(error, query))? {
            out.extend(row.iter().map(shown).collect::<Vec<_>>().join("\t").into_bytes());
            out.push(b'\n');
        }
    }
    print(&out)
}

/// The error of a query, which stands in the query's text, not in the program's.
fn placed(mut error: Error, query: &str) -> Error {
    error.message = format!("query {query}: {}", error.message);
    error.position = None;
    error
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
    }
}

fn print(out: &[u8]) -> Result<(), Error> {
    let mut stdout = stdout();
    checked(stdout.write_all(out).and_then(|()| stdout.flush()))
}

/// A line on the terminal that tells how far the run has come.
struct Line {
    is_shown: bool,
    visible: bool,
}

impl Line {
    fn draw(&mut self, progress: &Progress) {
        if !self.is_shown {
            return;
        }
        let line = match progress {
            Progress::Read { relation, facts } => format!("{relation}: {} facts", thousands(*facts)),
            Progress::Computing { relation } => format!("{relation}: computing"),
            Progress::Written { relation, rows } => format!("{relation}: {} rows", thousands(*rows)),
        };
        eprint!("\r\x1b[2K\x1b[?7l{line}\x1b[?7h");
        // (A terminal that does not show progress is no reason to stop.)
        let _ = stderr().flush();
        self.visible = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.visible) {
            eprint!("\r\x1b[2K");
            let _ = stderr().flush();
        }
    }
}
