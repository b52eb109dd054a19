//! Lines drawn in place: each drawing goes over the last one.

use std::io::{self, Write, stdout};

use crate::output::shortened;
use crate::terminal;

/// See the module.
#[derive(Default)]
pub(super) struct Screen {
    /// Lines of the last drawing.
    drawn: usize,
}

impl Screen {
    /// Draws lines over the last ones, as far as the terminal has room.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (columns, height) = terminal::columns_and_lines();
        let mut frame = if self.drawn == 0 { String::new() } else { format!("\r\x1b[{}A", self.drawn) };
        let fitting = lines.iter().take(height.saturating_sub(1).max(1));
        self.drawn = fitting.len();
        for line in fitting {
            // (In raw mode the terminal does not add the return of the carriage.)
            frame.push_str(&format!("\x1b[2K{}\r\n", shortened(line, columns.saturating_sub(1))));
        }
        frame.push_str("\x1b[J");
        let mut out = stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }

    /// Takes the last drawing away.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if self.drawn == 0 {
            return Ok(());
        }
        self.draw(&[])
    }
}
