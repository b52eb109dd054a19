//! `anabranch plan`: a sharded program over the relations of a database.

use std::{
    fs::read_to_string,
    io::{Read, Write, stderr, stdin, stdout},
    path::Path,
    thread::available_parallelism,
};

use anabranch_engine::{Error, ErrorKind, Rows};
use anabranch_plan::program::Program;
use anabranch_shards::{
    Layout as ShardLayout, Moved,
    planned::{PlannedShards, read_program},
};

use crate::{
    arguments::PlanFile,
    host::Host,
    output::{Layout, write_rows},
    progress::thousands,
    run::{Status, checked},
    signals::{self, Running},
};

/// What a program gave.
struct Answer {
    explained: String,
    rows: Option<Rows>,
    moved: Vec<(&'static str, Moved)>,
    profile: Option<Rows>,
}

/// Runs the program, and prints its rows.
pub(crate) fn run(arguments: &PlanFile, workers: usize) -> Result<Status, Error> {
    let program = read_program(&text_of(&arguments.program)?)?;
    let mut scripts = arguments.files.iter().map(|file| text_of(file)).collect::<Result<Vec<String>, Error>>()?;
    scripts.extend(arguments.commands.iter().cloned());
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let layout = arguments.shards.map_or_else(
        || ShardLayout::flat(cores),
        |counts| match counts.locations {
            1 => ShardLayout::flat(counts.of_each.into()),
            locations => ShardLayout::grid(locations.into(), counts.of_each.into()),
        },
    );
    if let Some(folder) = arguments.folder.as_ref().filter(|folder| scripts.is_empty() && !folder.exists()) {
        return Err(Error::invalid(format!("there is no folder {}", folder.display()))
            .with_hint("Name the folder of a database; without one, -f and -c make the relations of the plan."));
    }
    let host = Host::start(workers, arguments.folder.clone(), None)?;
    let interrupt = host.interrupt();
    signals::listen(move || interrupt.trigger());
    let running = Running::start();
    let (explain, unchecked) = (arguments.explain, arguments.unchecked);
    let ran = host.call(move |session| answer(session, &scripts, &program, layout, explain, unchecked))?;
    drop(running);
    match ran {
        Ok(answer) => print(&answer, arguments),
        Err(error) if error.kind == ErrorKind::Cancelled => {
            eprintln!("interrupted");
            Ok(Status::Interrupted)
        }
        Err(error) => Err(error),
    }
}

fn text_of(path: &Path) -> Result<String, Error> {
    let unreadable = |problem| Error::unavailable(format!("cannot read {}: {problem}", path.display()));
    if path != Path::new("-") {
        return read_to_string(path).map_err(unreadable);
    }
    let mut text = String::new();
    stdin().read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

fn answer(
    session: &mut anabranch_engine::Session,
    scripts: &[String],
    program: &Program,
    layout: ShardLayout,
    explain: bool,
    unchecked: bool,
) -> Result<Answer, Error> {
    for script in scripts {
        session.execute(script)?;
    }
    let planned = PlannedShards::new(program, session, layout)?;
    if explain {
        return Ok(Answer { explained: planned.explain()?, rows: None, moved: vec![], profile: None });
    }
    if !unchecked {
        planned.program.check()?;
    }
    let (outcome, run) = planned.run(&session.interrupt())?;
    let (moved, profile) = (run.moved(), Some(run.profile_rows()?));
    Ok(Answer { explained: String::new(), rows: Some(outcome.rows()?), moved, profile })
}

fn print(answer: &Answer, arguments: &PlanFile) -> Result<Status, Error> {
    let mut out = answer.explained.clone().into_bytes();
    if let Some(rows) = &answer.rows {
        let written = write_rows(&mut out, arguments.format, rows, &Layout::default());
        written.map_err(|problem| Error::internal(problem.to_string()))?;
    }
    checked(stdout().lock().write_all(&out))?;
    if arguments.moved {
        for (step, moved) in &answer.moved {
            eprintln!(
                "{step}: {} rows hashed, {} stayed, {} moved, {} bytes",
                thousands(moved.rows_hashed),
                thousands(moved.rows_kept),
                thousands(moved.rows_near + moved.rows_far),
                thousands(moved.bytes),
            );
        }
    }
    if let Some(profile) = answer.profile.as_ref().filter(|_| arguments.profile) {
        let mut told = Vec::new();
        let written = write_rows(&mut told, arguments.format, profile, &Layout::default());
        written.map_err(|problem| Error::internal(problem.to_string()))?;
        checked(stderr().lock().write_all(&told))?;
    }
    Ok(Status::Good)
}
