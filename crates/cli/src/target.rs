//! Where answers go: standard output, a terminal with a pager, or a file (`\\o FILE`).
//!
//! On a terminal an answer that does not fit the screen goes through the pager, where it can be
//! read in both directions. Without a pager it is fitted to the terminal's width.

use std::{
    env,
    fs::File,
    io::{self, BufWriter, Write, stdout},
    process::{Child, Command, Stdio},
};

use crate::{
    output::{Format, Layout, width},
    terminal,
};

/// See the module.
pub(crate) enum Target {
    /// Standard output, as it is.
    Plain,
    /// A terminal at which a person reads.
    Terminal {
        /// Whether long and wide answers go through the pager.
        pages: bool,
    },
    File(BufWriter<File>),
}

impl Target {
    /// Writes an answer; `write` may be called twice.
    pub(crate) fn write(
        &mut self,
        format: Format,
        layout: &Layout,
        write: impl Fn(&mut dyn Write, &Layout) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Target::Terminal { pages } if format == Format::Table => {
                let (columns, lines) = terminal::columns_and_lines();
                let mut text = Vec::new();
                write(&mut text, layout)?;
                if layout.expands_wide && !layout.expanded && !is_narrow(&text, columns) {
                    text.clear();
                    write(&mut text, &Layout { expanded: true, ..layout.clone() })?;
                }
                if fits(&text, columns, lines) {
                    return stdout().lock().write_all(&text);
                }
                if *pages && let Some(child) = pager() {
                    return page(child, &text);
                }
                write(&mut stdout().lock(), &Layout { width: Some(columns), ..layout.clone() })
            }
            _ => self.stream(|out| write(out, layout)),
        }
    }

    /// Writes a part of an answer as it comes.
    pub(crate) fn stream(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        match self {
            Target::Plain | Target::Terminal { .. } => {
                let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
                write(&mut out)?;
                out.flush()
            }
            Target::File(file) => {
                write(file)?;
                file.flush()
            }
        }
    }
}

/// Whether a text can be seen at once, with a line left for the prompt.
fn fits(text: &[u8], columns: usize, lines: usize) -> bool {
    String::from_utf8_lossy(text).lines().count() < lines && is_narrow(text, columns)
}

fn is_narrow(text: &[u8], columns: usize) -> bool {
    String::from_utf8_lossy(text).lines().all(|line| width(line) <= columns)
}

/// Starts `$PAGER`, else `less`, if there is one. Lines are cut at the screen's edge, and the arrow
/// keys move them.
fn pager() -> Option<Child> {
    let named = env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let mut command = match &named {
        Some(pager) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", pager]);
            shell
        }
        None => Command::new("less"),
    };
    if env::var_os("LESS").is_none() {
        command.env("LESS", "-SRX");
    }
    command.stdin(Stdio::piped()).spawn().ok()
}

fn page(mut child: Child, text: &[u8]) -> io::Result<()> {
    if let Some(mut pipe) = child.stdin.take() {
        // A reader who leaves the pager before its end has seen enough.
        let _ = pipe.write_all(text);
    }
    child.wait().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_when_it_can_be_seen_at_once() {
        assert!(fits(b"abc\ndef\n", 3, 3));
        assert!(!fits(b"abc\ndef\n", 3, 2));
        assert!(!fits(b"abcd\n", 3, 9));
    }
}
