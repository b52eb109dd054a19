//! Drawing in place on a terminal, and plain snapshots for pipes.
//!
//! A frame is one write: up to its first line, then each line wiped and written anew. Lines are
//! laid out for the terminal's width, asked anew for each frame, so no number is ever cut. The
//! cursor is never hidden, so the program can end at any moment and leave the terminal as it was.
//! Views that do not fit the height take turns.

use std::{
    io::{self, Write, stdout},
    time::Duration,
};

use anabranch_engine::{Error, Rows, SourceState, SourceStatus};

use super::{Exhibit, Snapshot};
use crate::{
    output::{Layout, shortened, table_lines},
    progress::{share, thousands},
    run::duration,
    terminal,
};

/// Lines of a view besides its rows: title, column names, rule, blank.
const FRAMING: usize = 4;
/// Lines of a frame besides views: heading, blank, and the line at the bottom.
const HEADER: usize = 3;
const ROWS_MIN: usize = 3;
/// How long views that take turns stay.
const TURN: Duration = Duration::from_secs(3);

/// See the module.
pub(super) struct Screen {
    columns: usize,
    lines: usize,
    /// Lines of the last frame.
    drawn: usize,
}

impl Screen {
    pub(super) fn new() -> Screen {
        let (columns, lines) = terminal::columns_and_lines();
        Screen { columns, lines, drawn: 0 }
    }

    /// Takes over the terminal's present size. Returns the rows of a view that can ever be shown,
    /// and one more, which tells that there are more.
    pub(super) fn measure(&mut self) -> usize {
        let (columns, lines) = terminal::columns_and_lines();
        // A narrower terminal has wrapped the last frame: its first line may be anywhere.
        if columns < self.columns && self.drawn > 0 {
            self.drawn = lines;
        }
        (self.columns, self.lines) = (columns, lines);
        lines + 1
    }

    /// Draws a frame over the last one.
    pub(super) fn draw(&mut self, exhibits: &[Exhibit], snapshot: &Snapshot, elapsed: Duration) -> io::Result<()> {
        let room = self.lines.saturating_sub(HEADER + 1);
        let fitting = (room / (ROWS_MIN + FRAMING)).clamp(1, exhibits.len().max(1));
        let pages = exhibits.len().div_ceil(fitting).max(1);
        let page = (elapsed.as_secs() / TURN.as_secs()) as usize % pages;
        let mut lines = vec![self.line("1", &heading(snapshot, elapsed)), String::new()];
        let views = || exhibits.iter().zip(&snapshot.answers).skip(page * fitting).take(fitting);
        let sizes: Vec<usize> = views().map(|(_, answer)| answer.as_ref().map_or(1, Rows::num_rows)).collect();
        let shares = shares(&sizes, room.saturating_sub(sizes.len() * FRAMING));
        for ((exhibit, answer), rows_max) in views().zip(shares) {
            let (table, cut) = self.table(answer, rows_max);
            lines.push(self.line("36", &format!("{}{cut}", exhibit.title)));
            lines.extend(table);
            lines.push(String::new());
        }
        lines.resize(room + HEADER - 1, String::new());
        let pages = if pages > 1 {
            format!("page {} of {pages}, a taller terminal shows all; ", page + 1)
        } else {
            String::new()
        };
        lines.push(self.line("2", &format!("({pages}q leaves)")));
        // A frame taller than the terminal would scroll, and never find its first line again.
        lines.truncate(self.lines.saturating_sub(1).max(1));
        self.replace(&lines)
    }

    /// Takes the last frame away.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.replace(&[])
    }

    fn replace(&mut self, lines: &[String]) -> io::Result<()> {
        let mut frame = if self.drawn == 0 { String::new() } else { format!("\r\x1b[{}A", self.drawn) };
        // (In raw mode the terminal does not add the return of the carriage.)
        lines.iter().for_each(|line| frame.push_str(&format!("\x1b[2K{line}\r\n")));
        frame.push_str("\x1b[J");
        self.drawn = lines.len();
        let mut out = stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }

    /// A line in a style of the terminal.
    fn line(&self, style: &str, text: &str) -> String {
        format!("\x1b[{style}m{}\x1b[0m", shortened(text, self.columns.saturating_sub(1)))
    }

    /// An answer's lines, and what is left out of them.
    fn table(&self, answer: &Result<Rows, Error>, rows_max: usize) -> (Vec<String>, String) {
        let rows = match answer {
            Ok(rows) => rows,
            Err(error) => {
                let message = format!("error: {}", error.message);
                return (vec![shortened(&message, self.columns.saturating_sub(1))], String::new());
            }
        };
        let width = Some(self.columns.saturating_sub(1));
        let (lines, columns) = table_lines(rows, &Layout { rows_max, width, ..Layout::default() });
        let mut cut = String::new();
        if rows.num_rows() > rows_max {
            cut.push_str(&format!(", first {rows_max} rows"));
        }
        let all = rows.schema.fields().len();
        if columns < all {
            cut.push_str(&format!(", {columns} of {all} columns"));
        }
        (lines, cut)
    }
}

/// Rows for each view: what each has, as far as `room` goes; views that have more share evenly what
/// the smaller ones leave. At least [`ROWS_MIN`] each.
fn shares(sizes: &[usize], room: usize) -> Vec<usize> {
    let mut shares = vec![0; sizes.len()];
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|view| sizes[*view]);
    let mut left = room;
    for (place, view) in order.into_iter().enumerate() {
        let even = left / (sizes.len() - place);
        shares[view] = sizes[view].min(even.max(ROWS_MIN));
        left = left.saturating_sub(shares[view]);
    }
    shares
}

/// A snapshot for a pipe.
pub(super) fn print_plain(exhibits: &[Exhibit], snapshot: &Snapshot, elapsed: Duration) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "== {}", heading(snapshot, elapsed))?;
    for (exhibit, answer) in exhibits.iter().zip(&snapshot.answers) {
        writeln!(out, "{}", exhibit.title)?;
        match answer {
            Ok(rows) => {
                let layout = Layout { rows_max: PLAIN_ROWS, ..Layout::default() };
                table_lines(rows, &layout).0.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
            Err(error) => writeln!(out, "error: {}", error.message)?,
        }
    }
    writeln!(out)?;
    out.flush()
}

/// Rows of a view in a pipe's snapshot.
const PLAIN_ROWS: usize = 10;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_share_the_height() {
        assert_eq!(shares(&[16, 10, 10], 100), [16, 10, 10]);
        assert_eq!(shares(&[16, 2, 40], 30), [14, 2, 14]);
        assert_eq!(shares(&[16, 20], 1), [3, 3]);
        assert_eq!(shares(&[], 10), Vec::<usize>::new());
    }
}
