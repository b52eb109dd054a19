//! `anabranch linear-road`: the Linear Road benchmark, watched.
//!
//! Traffic is generated (or read) second by second and handed to the program; on a terminal a
//! screen shows rate, lag, tolls, accidents and response times, a pipe gets a line a minute. Two
//! modes, named in all that is printed: *replay* hands a second over when the one before has
//! answered, and its lag is modelled; *paced* hands a second over when the clock says so, and
//! response times are measured.
//!
//! The rows and the historical table that are generated can be written, for another system to
//! answer. [`judge`] tells whether the answers of a file are right.

mod judge;
mod screen;
mod tally;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Write, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use anabranch_engine::Error;
use anabranch_linear_road::answer::{AnswerForm, TollAnswer};
use anabranch_linear_road::generator::Traffic;
use anabranch_linear_road::history::History;
use anabranch_linear_road::reference::{Expected, Reference};
use anabranch_linear_road::row::{self, Second, Seconds};
use anabranch_linear_road::system::{Setup, System, read};
use anabranch_linear_road::validate::compare;

use crate::arguments::{LinearRoad, Speed};
use crate::run::{Status, checked};
use crate::terminal::{Keys, Wish};
use screen::Screen;
use tally::Tally;

/// Time between two drawings.
const REDRAWN_EVERY: Duration = Duration::from_millis(200);

/// Seconds of the input between two lines in a pipe.
const LINE_EVERY_SECONDS: u32 = 60;

/// Runs the benchmark to its end.
pub(crate) fn run(options: &LinearRoad, workers: usize) -> Result<Status, Error> {
    if let Some(judged) = &options.judge {
        return judge::run(options, judged);
    }
    let mut input = Input::open(options)?;
    if let Some(path) = &options.write_history {
        let mut out = create(path)?;
        written(path, input.history.write(&mut out).and_then(|()| out.flush()))?;
    }
    let mut rows_out = options.write_rows.as_deref().map(create).transpose()?;
    let setup = Setup { keep: options.keep.into(), ..Setup::new(options.half_expressways.div_ceil(2), workers.max(1)) };
    let mut system = System::start(setup, &input.history)?;
    let mut judge = options.check.then(|| Judge::new(input.history.clone()));
    let mut output = options.output.as_deref().map(create).transpose()?;
    let mut tally = Tally::new(options, workers.max(1));
    let (is_terminal, mut screen, mut drawn) = (stdout().is_terminal(), Screen::default(), Instant::now());
    let keys = is_terminal.then(Keys::listen);
    if !is_terminal {
        checked(writeln!(stdout(), "{}", tally.heading()))?;
    }
    let begun = Instant::now();
    let mut second = Second::default();
    loop {
        let making = Instant::now();
        if !input.fill(&mut second)? {
            break;
        }
        let making = making.elapsed();
        write_rows(rows_out.as_mut(), options.write_rows.as_deref(), &second.rows)?;
        if let Some(end) = wait(options.speed, begun, second.time, keys.as_ref())? {
            checked(screen.clear())?;
            return Ok(end);
        }
        let taking = Instant::now();
        let answers = read(&system.take(&second)?)?;
        let seconds = (making + taking.elapsed()).as_secs_f64();
        let emit = tally.add(&second, &answers, seconds, begun.elapsed().as_secs_f64());
        write_answers(output.as_mut(), options.output.as_deref(), options.form, &answers, emit)?;
        if let Some(judge) = &mut judge {
            judge.add(&second, &answers);
        }
        if is_terminal && drawn.elapsed() >= REDRAWN_EVERY {
            checked(screen.draw(&tally.lines(begun.elapsed())))?;
            drawn = Instant::now();
        } else if !is_terminal && (second.time + 1).is_multiple_of(LINE_EVERY_SECONDS) {
            checked(writeln!(stdout(), "{}", tally.line(begun.elapsed())))?;
        }
    }
    checked(screen.clear())?;
    drop(keys);
    if let (Some(output), Some(path)) = (&mut output, &options.output) {
        written(path, output.flush())?;
    }
    if let (Some(out), Some(path)) = (&mut rows_out, &options.write_rows) {
        written(path, out.flush())?;
    }
    tally.lines(begun.elapsed()).iter().try_for_each(|line| checked(writeln!(stdout(), "{line}")))?;
    finish(judge, &tally)
}

/// Waits until the rows of a second are known, if a clock says so, and for keys.
fn wait(speed: Speed, begun: Instant, time: u32, keys: Option<&Keys>) -> Result<Option<Status>, Error> {
    let left = match speed {
        Speed::Replay => Duration::ZERO,
        Speed::Times(speed) => {
            let due = Duration::from_secs_f64((f64::from(time) + 1.0) / speed);
            due.saturating_sub(begun.elapsed())
        }
    };
    let wish = match keys {
        Some(keys) => checked(keys.wait(left))?,
        None => {
            std::thread::sleep(left);
            None
        }
    };
    Ok(match wish {
        Some(Wish::Leave) => Some(Status::Good),
        Some(Wish::Interrupt) => Some(Status::Interrupted),
        None => None,
    })
}

fn finish(judge: Option<Judge>, tally: &Tally) -> Result<Status, Error> {
    let Some(judge) = judge else { return Ok(Status::Good) };
    let verdict = compare(&judge.expected, judge.given.iter().map(|answer| (*answer, None)));
    checked(writeln!(stdout(), "\n{verdict}"))?;
    let is_counted = tally.refused() == 0;
    Ok(if verdict.is_right() && is_counted { Status::Good } else { Status::Failed })
}

fn write_answers(
    output: Option<&mut BufWriter<File>>,
    path: Option<&Path>,
    form: AnswerForm,
    answers: &[TollAnswer],
    emit: f64,
) -> Result<(), Error> {
    let (Some(output), Some(path)) = (output, path) else { return Ok(()) };
    let mut lines = answers.iter().map(|answer| answer.line(form, format!("{emit:.3}")));
    written(path, lines.try_for_each(|line| writeln!(output, "{line}")))
}

/// Writes rows, if they are to be written.
fn write_rows(out: Option<&mut BufWriter<File>>, path: Option<&Path>, rows: &[row::Row]) -> Result<(), Error> {
    let (Some(out), Some(path)) = (out, path) else { return Ok(()) };
    rows.iter().try_for_each(|row| written(path, row.write(out).and_then(|()| writeln!(out))))
}

fn written(path: &Path, outcome: io::Result<()>) -> Result<(), Error> {
    outcome.map_err(|problem| Error::unavailable(format!("cannot write {}: {problem}", path.display())))
}

fn unreadable(path: &Path, problem: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("cannot read {}: {problem}", path.display()))
}

fn create(path: &Path) -> Result<BufWriter<File>, Error> {
    let file = File::create(path).map(BufWriter::new);
    file.map_err(|problem| Error::unavailable(format!("cannot write {}: {problem}", path.display())))
}

/// Where seconds come from.
struct Input {
    history: History,
    rows: Rows,
    seconds_max: u32,
}

enum Rows {
    Made(Box<anabranch_linear_road::generator::Generator>),
    Read(Seconds<Box<dyn Iterator<Item = io::Result<row::Row>>>>, std::path::PathBuf),
}

impl Input {
    fn open(options: &LinearRoad) -> Result<Input, Error> {
        let seconds_max = options.minutes.saturating_mul(60);
        let history = match &options.history {
            Some(path) => {
                let file = File::open(path).map_err(|problem| unreadable(path, problem))?;
                History::read(BufReader::new(file)).map_err(|problem| unreadable(path, problem))?
            }
            None if options.input.is_none() => traffic(options, seconds_max).history(),
            None => History::default(),
        };
        let rows = match &options.input {
            None => Rows::Made(Box::new(traffic(options, seconds_max).start())),
            Some(path) => {
                let file = File::open(path).map_err(|problem| unreadable(path, problem))?;
                let rows: Box<dyn Iterator<Item = _>> = Box::new(row::read(BufReader::new(file)));
                Rows::Read(Seconds::new(rows), path.clone())
            }
        };
        Ok(Input { history, rows, seconds_max })
    }

    fn fill(&mut self, second: &mut Second) -> Result<bool, Error> {
        match &mut self.rows {
            Rows::Made(generator) => Ok(generator.fill(second)),
            Rows::Read(seconds, path) => match seconds.next() {
                None => Ok(false),
                Some(Ok(next)) if next.time >= self.seconds_max => Ok(false),
                Some(Ok(next)) => {
                    *second = next;
                    Ok(true)
                }
                Some(Err(problem)) => Err(unreadable(path, problem)),
            },
        }
    }
}

fn traffic(options: &LinearRoad, seconds: u32) -> Traffic {
    let traffic = Traffic::new(options.half_expressways, seconds, options.seed);
    let traffic = if options.dense { traffic.dense() } else { traffic };
    Traffic { skip: options.skip, ..traffic }
}

/// What the rules say, beside what was given.
struct Judge {
    reference: Reference,
    expected: Vec<Expected>,
    given: Vec<TollAnswer>,
}

impl Judge {
    fn new(history: History) -> Judge {
        Judge { reference: Reference::new(history), expected: Vec::new(), given: Vec::new() }
    }

    fn add(&mut self, second: &Second, answers: &[TollAnswer]) {
        self.reference.second(second, &mut self.expected);
        self.given.extend_from_slice(answers);
    }
}
