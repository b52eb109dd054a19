//! The terminal: its size, keys that are read without Enter, and passwords that are not shown.

use std::{
    io::{self, IsTerminal, Write, stderr, stdin},
    time::{Duration, Instant},
};

use anabranch_engine::Error;
use crossterm::{
    event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    terminal::{disable_raw_mode, enable_raw_mode, size},
};

/// Columns and lines of a terminal that does not tell.
const USUAL: (usize, usize) = (80, 24);

/// Columns and lines of the terminal, as of now.
pub(crate) fn columns_and_lines() -> (usize, usize) {
    match size() {
        Ok((columns, lines)) if columns > 0 && lines > 0 => (columns.into(), lines.into()),
        _ => USUAL,
    }
}

/// What a person at the keyboard wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// `q` or Escape: leave in good order.
    Leave,
    /// Ctrl-C.
    Interrupt,
}

/// Keys are read one by one for as long as this lives. The terminal's own line editing comes back
/// when it is dropped.
pub(crate) struct Keys {
    /// Whether the terminal is in raw mode; without a keyboard it is not.
    is_raw: bool,
}

impl Keys {
    /// Begins to listen, if standard input is a terminal.
    pub(crate) fn listen() -> Keys {
        Keys { is_raw: stdin().is_terminal() && enable_raw_mode().is_ok() }
    }

    /// Waits for a wish, at most until `timeout` is over. A change of the terminal's size ends the
    /// wait too, so that the screen follows at once.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<Option<Wish>> {
        if !self.is_raw {
            std::thread::sleep(timeout);
            return Ok(None);
        }
        let end = Instant::now() + timeout;
        while event::poll(end.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Resize(..) => return Ok(None),
                Event::Key(key) => match wish(key) {
                    None => {}
                    wish => return Ok(wish),
                },
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if self.is_raw {
            // Nothing is left to try when the terminal refuses.
            let _ = disable_raw_mode();
        }
    }
}

fn wish(key: KeyEvent) -> Option<Wish> {
    match key.code {
        _ if key.kind == KeyEventKind::Release => None,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::Interrupt),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Wish::Leave),
        _ => None,
    }
}

/// Reads a line at a terminal without showing it.
pub(crate) fn typed(prompt: &str) -> Result<String, Error> {
    eprint!("{prompt}");
    stderr().flush().map_err(unread)?;
    enable_raw_mode().map_err(unread)?;
    let typed = typed_raw();
    disable_raw_mode().map_err(unread)?;
    eprintln!();
    typed
}

fn typed_raw() -> Result<String, Error> {
    let mut text = String::new();
    loop {
        let Event::Key(key) = event::read().map_err(unread)? else { continue };
        match key.code {
            KeyCode::Enter => return Ok(text),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Err(Error::cancelled()),
            KeyCode::Char(typed) => text.push(typed),
            _ => {}
        }
    }
}

fn unread(error: std::io::Error) -> Error {
    Error::unavailable(format!("the password cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_wishes() {
        let key = |code, modifiers| wish(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Wish::Leave));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(Wish::Leave));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Interrupt));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
    }
}
