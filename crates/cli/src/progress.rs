//! The line on the terminal that tells how far long work has come.
//!
//! Drawn on standard error, only if that is a terminal and only after half a second; wiped before
//! anything else is printed.

use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

use anabranch_engine::{SourceState, SourceStatus};

/// Work shorter than this shows nothing.
const SHOWN_AFTER: Duration = Duration::from_millis(500);
/// Time between two drawings.
pub(crate) const REDRAWN_EVERY: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct ProgressLine {
    started: Instant,
    enabled: bool,
    visible: bool,
    /// Rows of all sources at the last drawings, for the rate.
    before: Option<(Instant, u64)>,
    /// Rows that operators had put out at the first drawing that was due.
    put_out_before: Option<u64>,
}

impl ProgressLine {
    pub(crate) fn start() -> ProgressLine {
        let enabled = stderr().is_terminal();
        ProgressLine { started: Instant::now(), enabled, visible: false, before: None, put_out_before: None }
    }

    /// Draws the line if it is due. `put_out` are the rows that operators have put out so far.
    pub(crate) fn draw(&mut self, sources: &[SourceStatus], put_out: u64) {
        let put_out = put_out.saturating_sub(*self.put_out_before.get_or_insert(put_out));
        if !self.enabled || self.started.elapsed() < SHOWN_AFTER {
            return;
        }
        let rows: u64 = sources.iter().map(|source| source.rows).sum();
        let (since, base) = *self.before.get_or_insert((self.started, rows));
        let rate = (rows - base.min(rows)) as f64 / since.elapsed().as_secs_f64().max(1e-3);
        let mut line = format!("{:.1} s", self.started.elapsed().as_secs_f64());
        for source in sources.iter().filter(|source| source.state == SourceState::Running) {
            line.push_str(&format!(" · {}{} {} rows", source.name, share(source), thousands(source.rows)));
        }
        if rows > base {
            line.push_str(&format!(" · {} rows/s", thousands(rate as u64)));
        }
        if put_out > 0 {
            line.push_str(&format!(" · {} rows put out by operators", thousands(put_out)));
        }
        // Without wrapping, so that wiping one line wipes all of it.
        eprint!("\r\x1b[2K\x1b[?7l{line}\x1b[?7h");
        let _ = stderr().flush();
        self.visible = true;
    }

    /// Wipes the line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.visible) {
            eprint!("\r\x1b[2K");
            let _ = stderr().flush();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// ` 45%`, if the input's size is known.
pub(crate) fn share(source: &SourceStatus) -> String {
    match source.progress.bytes_total {
        Some(total) if total > 0 => format!(" {}%", source.progress.bytes_read.min(total) * 100 / total),
        _ => String::new(),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1000), "1,000");
        assert_eq!(thousands(1234567), "1,234,567");
    }
}
