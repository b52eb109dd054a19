//! Drawing in place on a terminal, and plain snapshots for pipes.
//!
//! A frame is one write: up to its first line, then each line wiped and written anew, with wrapping off so that a long line
//! takes one line. The cursor is never hidden, so the program can end at any moment and leave the terminal as it was. When
//! the views do not fit the height, they take turns.

use std::{
    fs::File,
    io::{self, Write, stdout},
    process::{Command, Stdio},
    time::Duration,
};

use anabranch_engine::{Error, Rows, SourceState, SourceStatus};

use super::{Exhibit, Snapshot};
use crate::{
    output::{Format, write_rows},
    progress::{share, thousands},
    run::duration,
};

/// Lines of a view besides its rows: title, column names, rule, blank.
const FRAMING: usize = 4;
/// Lines of a frame besides views.
const HEADER: usize = 3;
const ROWS_MIN: usize = 3;
const ROWS_MAX: usize = 10;
/// How long views that take turns stay.
const TURN: Duration = Duration::from_secs(3);

/// See the module.
pub(super) struct Screen {
    height: usize,
    /// Lines of the last frame.
    lines: usize,
}

impl Screen {
    pub(super) fn new() -> Screen {
        Screen { height: height(), lines: 0 }
    }

    /// Rows of each view that fit.
    pub(super) fn rows(&self, views: usize) -> usize {
        let each = self.height.saturating_sub(HEADER + 1) / views.max(1);
        each.saturating_sub(FRAMING).clamp(ROWS_MIN, ROWS_MAX)
    }

    /// Draws a frame over the last one.
    pub(super) fn draw(&mut self, exhibits: &[Exhibit], snapshot: &Snapshot, elapsed: Duration) -> io::Result<()> {
        let rows = self.rows(exhibits.len());
        let fitting = (self.height.saturating_sub(HEADER + 1) / (rows + FRAMING)).max(1);
        let pages = exhibits.len().div_ceil(fitting).max(1);
        let page = (elapsed.as_secs() / TURN.as_secs()) as usize % pages;
        let mut lines = vec![format!("\x1b[1m{}\x1b[0m", heading(snapshot, elapsed)), String::new()];
        for (exhibit, answer) in exhibits.iter().zip(&snapshot.answers).skip(page * fitting).take(fitting) {
            lines.push(format!("\x1b[36m{}\x1b[0m", exhibit.title));
            let table = table(answer);
            let missing = (rows + 2).saturating_sub(table.len());
            lines.extend(table);
            lines.extend(std::iter::repeat_n(String::new(), missing + 1));
        }
        if pages > 1 {
            lines.push(format!("(views {} of {}; a taller terminal shows all)", page + 1, pages));
        }
        let mut frame = self.back();
        frame.push_str("\x1b[?7l");
        lines.iter().for_each(|line| frame.push_str(&format!("\x1b[2K{line}\n")));
        frame.push_str("\x1b[J\x1b[?7h");
        self.lines = lines.len();
        let mut out = stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }

    /// Takes the last frame away.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let frame = self.back() + "\x1b[J";
        self.lines = 0;
        let mut out = stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }

    /// Moves to the first line of the last frame.
    fn back(&self) -> String {
        if self.lines == 0 { String::new() } else { format!("\r\x1b[{}A", self.lines) }
    }
}

/// A snapshot for a pipe.
pub(super) fn print_plain(exhibits: &[Exhibit], snapshot: &Snapshot, elapsed: Duration) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "== {}", heading(snapshot, elapsed))?;
    for (exhibit, answer) in exhibits.iter().zip(&snapshot.answers) {
        writeln!(out, "{}", exhibit.title)?;
        table(answer).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    writeln!(out)?;
    out.flush()
}

/// Time, and where the sources stand.
fn heading(snapshot: &Snapshot, elapsed: Duration) -> String {
    let mut parts = vec![duration(elapsed)];
    let reading = |source: &&SourceStatus| {
        source.state == SourceState::Running && Some(source.progress.bytes_read) != source.progress.bytes_total
    };
    for source in snapshot.sources.iter().filter(reading) {
        let rate = source.rows as f64 / elapsed.as_secs_f64().max(1e-3);
        parts.push(format!("{}{}", source.name, share(source)));
        parts.push(format!("{} rows, {} a second", thousands(source.rows), thousands(rate as u64)));
    }
    parts.join("  ·  ")
}

/// An answer's lines, without the count of rows.
fn table(answer: &Result<Rows, Error>) -> Vec<String> {
    let rows = match answer {
        Ok(rows) => rows,
        Err(error) => return vec![format!("error: {}", error.message)],
    };
    let mut text = Vec::new();
    write_rows(&mut text, Format::Table, rows, usize::MAX).expect("writing to memory cannot fail");
    let mut lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_string).collect();
    lines.pop();
    lines
}

/// Lines of the terminal, as `stty` knows them.
fn height() -> usize {
    const USUAL: usize = 24;
    let Ok(terminal) = File::open("/dev/tty") else { return USUAL };
    let asked = Command::new("stty").arg("size").stdin(Stdio::from(terminal)).stderr(Stdio::null()).output();
    let lines = asked.ok().and_then(|answer| {
        let text = String::from_utf8(answer.stdout).ok()?;
        text.split_whitespace().next()?.parse().ok()
    });
    lines.filter(|lines| *lines > 0).unwrap_or(USUAL)
}
