//! `anabranch demo`: standing queries over the flights of New York 2013, redrawn while the flights
//! stream in.
//!
//! Nothing about the data is known here. The script (`examples/flights.sql`) names the sources and
//! the standing queries; the demo shows it, runs it, looks at each materialized view a few times a
//! second until the sources are read to their end, and tells the final answers and the rate. On a
//! terminal the screen is redrawn in place; a pipe gets plain snapshots.

mod exhibits;
mod screen;

use std::{
    fs,
    io::{IsTerminal, Write, stdout},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anabranch_engine::{Error, Rows, Session, SourceState, SourceStatus};
use anabranch_sql::{Parsed, statement::Statement};

use crate::{
    arguments::Demo,
    host::Host,
    output::{Format, Layout, write_rows},
    progress::thousands,
    run::{Place, Status, checked, duration, report},
    signals,
    terminal::{self, Keys, Wish},
};
use exhibits::{Exhibit, exhibits};
use screen::Screen;

/// Flights per second on a terminal, unless told otherwise: a year in some thirteen seconds.
const RATE_TO_WATCH: &str = "25000";
/// Time between two drawings.
const REDRAWN_EVERY: Duration = Duration::from_millis(200);
/// Time between two snapshots in a pipe.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(2);
/// Where the script's paths point.
const SCRIPT_FOLDER: &str = "examples/data";

/// Where everything stands at one moment.
struct Snapshot {
    sources: Vec<SourceStatus>,
    answers: Vec<Result<Rows, Error>>,
}

/// Runs the demo to its end.
pub(crate) fn run(demo: &Demo, workers: usize) -> Result<Status, Error> {
    let (path, text) = read_script(demo)?;
    let name = path.display().to_string();
    let terminal = stdout().is_terminal();
    let rate = demo.rate.clone().unwrap_or_else(|| if terminal { RATE_TO_WATCH } else { "max" }.to_string());
    let statements = match anabranch_sql::parse(&text) {
        Ok(statements) => statements,
        Err(error) => {
            report(error.into(), &Place { script: &text, start: 0, file: Some(&name), lines_before: 0, rows: "" });
            return Ok(Status::Failed);
        }
    };
    let exhibits = exhibits(&text, &statements);
    checked(write!(stdout(), "{text}\n-- {name} was all of it. It runs now, on {workers} workers.\n\n"))?;
    let host = Host::start(workers, None, None)?;
    let interrupt = host.interrupt();
    signals::listen(move || interrupt.trigger());
    let started = Instant::now();
    let paced = paced_sources(&statements);
    if let Err(error) = start(&host, &text, statements, rate.clone())? {
        report(error, &Place { script: &text, start: 0, file: Some(&name), lines_before: 0, rows: "" });
        return Ok(Status::Failed);
    }
    checked(writeln!(stdout(), "{} standing queries installed in {}.\n", exhibits.len(), duration(started.elapsed())))?;
    let streaming = Instant::now();
    let end = watch(&host, &exhibits, terminal, streaming)?;
    if end == End::Interrupted {
        return Ok(Status::Interrupted);
    }
    let settled = if end == End::Read { host.call(Session::wait)? } else { Ok(()) };
    let elapsed = streaming.elapsed();
    let last = look(&host, &exhibits, None)?;
    finish(&exhibits, &last)?;
    summarise(&last.sources, &paced, elapsed, &rate)?;
    if let Err(error) = settled {
        eprintln!("{}", error.render(""));
        return Ok(Status::Failed);
    }
    Ok(Status::Good)
}

/// The script, with its paths pointing to the data.
fn read_script(demo: &Demo) -> Result<(PathBuf, String), Error> {
    let beside = demo.data.parent().unwrap_or(Path::new("")).join("flights.sql");
    let path = demo.sql.clone().unwrap_or(beside);
    let unreadable = |problem| {
        Error::unavailable(format!("cannot read {}: {problem}", path.display()))
            .with_hint("Run it from the root of the repository, or say --data FOLDER.")
    };
    let text = fs::read_to_string(&path).map_err(unreadable)?;
    if !demo.data.is_dir() {
        return Err(Error::unavailable(format!("there is no folder {}", demo.data.display()))
            .with_hint("Run it from the root of the repository, or say --data FOLDER."));
    }
    let data = demo.data.display().to_string().replace('\'', "''");
    Ok((path, text.replace(&format!("'{SCRIPT_FOLDER}/"), &format!("'{}/", data.trim_end_matches('/')))))
}

/// The sources that stream: those for which the script names a rate.
fn paced_sources(statements: &[Parsed]) -> Vec<String> {
    let paced = |parsed: &Parsed| match &parsed.statement {
        Statement::CreateSource(create) => {
            create.options.iter().any(|(name, _)| name == "rate").then(|| create.name.clone())
        }
        _ => None,
    };
    statements.iter().filter_map(paced).collect()
}

/// Runs everything that creates something, before the first row is read.
fn start(host: &Host, text: &str, mut statements: Vec<Parsed>, rate: String) -> Result<Result<(), Error>, Error> {
    for parsed in &mut statements {
        if let Statement::CreateSource(create) = &mut parsed.statement {
            let rates = create.options.iter_mut().filter(|(name, _)| name == "rate");
            rates.for_each(|(_, value)| value.clone_from(&rate));
        }
    }
    let text = text.to_string();
    host.call(move |session| {
        // Looking must not wait for the sources: the point is to see the answers change.
        session.set("wait_for_sources", "off")?;
        for statement in statements.iter().filter(|parsed| !matches!(parsed.statement, Statement::Select { .. })) {
            session.execute_one(&text, statement)?;
        }
        Ok(())
    })
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// No source reads any more.
    Read,
    /// `q` was pressed.
    Left,
    /// Ctrl-C was pressed.
    Interrupted,
}

/// Shows the answers until no source reads any more, or a key ends the demo.
fn watch(host: &Host, exhibits: &[Exhibit], terminal: bool, started: Instant) -> Result<End, Error> {
    let mut screen = Screen::new();
    let mut shown = Instant::now();
    let keys = terminal.then(Keys::listen);
    loop {
        let snapshot = look(host, exhibits, Some(screen.measure()))?;
        let reading = snapshot.sources.iter().any(|source| source.state == SourceState::Running);
        if terminal {
            checked(screen.draw(exhibits, &snapshot, started.elapsed()))?;
        } else if reading && shown.elapsed() >= SNAPSHOT_EVERY {
            checked(screen::print_plain(exhibits, &snapshot, started.elapsed()))?;
            shown = Instant::now();
        }
        let end = match &keys {
            _ if !reading => Some(End::Read),
            Some(keys) => match checked(keys.wait(REDRAWN_EVERY))? {
                Some(Wish::Leave) => Some(End::Left),
                Some(Wish::Interrupt) => Some(End::Interrupted),
                None => None,
            },
            None => {
                std::thread::sleep(REDRAWN_EVERY);
                None
            }
        };
        if let Some(end) = end {
            if terminal {
                checked(screen.clear())?;
            }
            return Ok(end);
        }
    }
}

/// Asks all questions at one moment: nothing streams in between them.
fn look(host: &Host, exhibits: &[Exhibit], rows_max: Option<usize>) -> Result<Snapshot, Error> {
    let queries: Vec<String> = exhibits.iter().map(|exhibit| exhibit.query(rows_max)).collect();
    host.call(move |session| {
        let answers = queries.iter().map(|query| session.query(query)).collect();
        Snapshot { sources: session.sources(), answers }
    })
}

fn finish(exhibits: &[Exhibit], last: &Snapshot) -> Result<(), Error> {
    let width = stdout().is_terminal().then(|| terminal::columns_and_lines().0);
    let layout = &Layout { width, ..Layout::default() };
    let mut out = stdout().lock();
    for (exhibit, answer) in exhibits.iter().zip(&last.answers) {
        checked(writeln!(out, "{}", exhibit.title))?;
        match answer {
            Ok(rows) => checked(write_rows(&mut out, Format::Table, rows, layout).and_then(|()| writeln!(out)))?,
            Err(error) => checked(writeln!(out, "{}\n", error.render("")))?,
        }
    }
    Ok(())
}

fn summarise(sources: &[SourceStatus], paced: &[String], elapsed: Duration, rate: &str) -> Result<(), Error> {
    let streamed = |source: &&SourceStatus| paced.is_empty() || paced.contains(&source.name);
    let rows: u64 = sources.iter().filter(streamed).map(|source| source.rows).sum();
    let names: Vec<&str> = sources.iter().filter(streamed).map(|source| source.name.as_str()).collect();
    let reached = thousands((rows as f64 / elapsed.as_secs_f64().max(1e-9)) as u64);
    let asked = if rate == "max" {
        String::new()
    } else {
        format!(" ({rate} were asked for; --rate max goes as fast as the answers keep up)")
    };
    let (names, rows, time) = (names.join(", "), thousands(rows), duration(elapsed));
    checked(writeln!(
        stdout(),
        "{rows} rows of {names} in {time}: {reached} a second{asked}, with every answer current."
    ))
}
