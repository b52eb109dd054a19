//! `\watch`, `\g`, `\gx`, `\e`: the last statement again.

use std::io::{Write, stdout};
use std::process::Command;
use std::time::{Duration, Instant};

use super::words::complain;
use crate::{
    live::Frame,
    output::{Format, Layout, write_rows},
    run::{Runner, Status},
    signals::{self, Running},
    target::Target,
    terminal,
};

/// How often, and how many times.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    every: Duration,
    times: Option<u64>,
}

/// Seconds between two runs, unless it is said.
const SECONDS: f64 = 2.0;
/// Longest sleep between two looks whether Ctrl-C was pressed.
const NAP: Duration = Duration::from_millis(50);

impl Pace {
    /// `2`, `i=0.5`, `c=3`, in any order.
    fn parse(text: &str) -> Option<Pace> {
        let mut pace = Pace { every: Duration::from_secs_f64(SECONDS), times: None };
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("c" | "count", times)) => pace.times = Some(times.parse().ok().filter(|times| *times > 0)?),
                Some(("i" | "interval", seconds)) => pace.every = seconds_of(seconds)?,
                Some(_) => return None,
                None => pace.every = seconds_of(word)?,
            }
        }
        Some(pace)
    }
}

fn seconds_of(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Runs the last statement again and again, until Ctrl-C.
pub(super) fn watch(runner: &mut Runner<'_>, argument: &str) -> Status {
    let Some(pace) = Pace::parse(argument) else {
        return complain("\\watch takes seconds, and c=N for N times: \\watch 0.5 c=10");
    };
    let statement = runner.last.clone();
    if statement.is_empty() {
        return complain("\\watch runs the last statement again, and there is none");
    }
    let in_place = matches!(runner.target, Target::Terminal { .. }) && runner.format == Format::Table;
    let mut frame = Frame::default();
    let mut left = pace.times;
    // (Ctrl-C between an answer and the wait behind it counts, too.)
    let _running = Running::start();
    let presses = signals::presses();
    loop {
        let status = match in_place {
            true => draw(runner, &mut frame, &statement, pace),
            false => runner.run_alone(&statement),
        };
        left = left.map(|left| left - 1);
        if status != Status::Good {
            // (Ctrl-C is how one leaves.)
            return if status == Status::Interrupted { Status::Good } else { status };
        }
        if left == Some(0) || !waited(pace.every, presses) {
            return Status::Good;
        }
    }
}

/// Waits; false if Ctrl-C was pressed more often than it had been.
fn waited(time: Duration, presses: u64) -> bool {
    let end = Instant::now() + time;
    while signals::presses() == presses {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP));
    }
    false
}

/// The answer as of now, over the one of before.
fn draw(runner: &Runner<'_>, frame: &mut Frame, statement: &str, pace: Pace) -> Status {
    let running = Running::start();
    let presses = signals::presses();
    let answer = runner.place.query(statement);
    drop(running);
    let rows = match answer {
        Ok(rows) => rows,
        Err(_) if signals::presses() != presses => return Status::Interrupted,
        Err(error) => {
            eprintln!("{}", error.render(statement));
            return Status::Failed;
        }
    };
    let (columns, lines) = terminal::columns_and_lines();
    let layout = Layout { rows_max: lines.saturating_sub(6).max(1), width: Some(columns), ..runner.layout.clone() };
    let mut text = format!("every {:?}; Ctrl-C ends\n", pace.every).into_bytes();
    let written = write_rows(&mut text, Format::Table, &rows, &layout).and_then(|()| {
        let drawn: Vec<String> = String::from_utf8_lossy(&text).lines().take(lines - 1).map(str::to_owned).collect();
        stdout().write_all(frame.draw(&drawn).as_bytes())?;
        stdout().flush()
    });
    if written.is_ok() { Status::Good } else { Status::Failed }
}

/// Runs the last statement again; `expanded` shows each row as a block.
pub(super) fn again(runner: &mut Runner<'_>, expanded: bool) -> Status {
    let statement = runner.last.clone();
    let before = runner.layout.expanded;
    runner.layout.expanded |= expanded;
    let status = runner.run_alone(&statement);
    runner.layout.expanded = before;
    status
}

/// Opens the last statement, or a file, in an editor; gives what was written.
pub(super) fn edited(runner: &Runner<'_>, file: &str) -> Result<String, Status> {
    let scratch = std::env::temp_dir().join(format!("anabranch-{}.sql", std::process::id()));
    let path = if file.is_empty() { scratch.clone() } else { file.into() };
    if file.is_empty()
        && let Err(problem) = std::fs::write(&path, format!("{}\n", runner.last))
    {
        return Err(complain(&format!("cannot write {}: {problem}", path.display())));
    }
    let named = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let editor = named.unwrap_or_else(|| "vi".into());
    let ended = Command::new("sh").args(["-c", &format!("{editor} \"$0\""), &path.display().to_string()]).status();
    let text = match ended {
        Ok(status) if status.success() => std::fs::read_to_string(&path).map_err(|problem| problem.to_string()),
        Ok(status) => Err(format!("{editor} ended with {status}")),
        Err(problem) => Err(problem.to_string()),
    };
    // (A scratch file that stays is overwritten by the next one.)
    let _ = std::fs::remove_file(&scratch);
    text.map_err(|problem| complain(&format!("cannot edit: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_seconds_and_times() {
        let pace = |text: &str| Pace::parse(text).map(|pace| (pace.every.as_secs_f64(), pace.times));
        assert_eq!(pace(""), Some((2.0, None)));
        assert_eq!(pace("0.5 c=3"), Some((0.5, Some(3))));
        assert_eq!(pace("i=1"), Some((1.0, None)));
        assert_eq!(pace("x").or(pace("c=0")).or(pace("-1")).or(pace("m=2")), None);
    }
}
