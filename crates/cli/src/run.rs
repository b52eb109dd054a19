//! One statement: from its text to its printed answer.
//!
//! Answers go to standard output, everything else (errors, notices, times, progress) to standard error.

use std::{
    io::{self, ErrorKind as IoErrorKind, Write, stdout},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use anabranch_engine::{Error, ErrorKind, Rows};
use serde_json::json;

use crate::{
    arguments::Arguments,
    host::{Done, Host, Reply, gone},
    output::{Format, Layout, Stream, write_rows},
    progress::{ProgressLine, REDRAWN_EVERY},
    signals::Running,
    target::Target,
};

/// How a run ended, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Good,
    Failed,
    Interrupted,
}

impl Status {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Status::Good => 0,
            Status::Failed => 1,
            Status::Interrupted => 130,
        }
    }
}

/// Runs statements and prints what they give.
pub(crate) struct Runner<'a> {
    pub host: &'a Host,
    pub format: Format,
    pub timer: bool,
    pub quiet: bool,
    /// How tables are drawn.
    pub layout: Layout,
    /// Where answers go.
    pub target: Target,
    /// Whether a line tells how each statement ended, for a program that waits before it sends more.
    pub marks_ends: bool,
    /// Rows of the last answer of the statement that runs.
    answered: Option<usize>,
}

/// Where a statement stands.
pub(crate) struct Place<'a> {
    /// The whole text.
    pub script: &'a str,
    /// Where the statement begins in it.
    pub start: usize,
    /// Its name, if it is a file's.
    pub file: Option<&'a str>,
    /// Lines of the file before the text.
    pub lines_before: usize,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(host: &'a Host, arguments: &Arguments) -> Runner<'a> {
        Runner {
            host,
            format: arguments.format(),
            timer: arguments.timer,
            quiet: arguments.quiet,
            layout: Layout::default(),
            target: Target::Plain,
            marks_ends: arguments.ends,
            answered: None,
        }
    }

    /// Runs the statement `text`, which stands at `place`.
    pub(crate) fn run(&mut self, text: &str, place: &Place<'_>) -> Status {
        let started = Instant::now();
        let result = self.try_run(text);
        let end = match &result {
            Ok(tag) => json!({ "done": tag }),
            Err(error) => json!({ "error": error.message, "hint": error.hint }),
        };
        let status = match result {
            Ok(_) => Status::Good,
            Err(error) if error.kind == ErrorKind::Cancelled => {
                eprintln!("interrupted");
                Status::Interrupted
            }
            Err(error) => {
                report(error, place);
                Status::Failed
            }
        };
        if self.marks_ends
            && let Err(error) = checked(writeln!(stdout(), "{end}").and_then(|()| stdout().flush()))
        {
            eprintln!("{}", error.render(""));
            return Status::Failed;
        }
        if self.timer {
            eprintln!("Time: {}", duration(started.elapsed()));
        }
        status
    }

    /// Runs the statement, and returns what it did: `INSERT 0 3`, `SELECT 12`.
    fn try_run(&mut self, text: &str) -> Result<String, Error> {
        let script: Arc<str> = Arc::from(text);
        let mut did = String::new();
        for statement in anabranch_sql::parse(text)? {
            let running = Running::start();
            self.answered = None;
            let replies = self.host.begin(script.clone(), statement)?;
            let done = self.print(&replies)?;
            drop(running);
            did = self.answered.map_or(did, |rows| format!("SELECT {rows}"));
            if let Some(Done { tag, detail }) = done {
                if self.format == Format::Table && !self.quiet {
                    checked(self.target.stream(|out| writeln!(out, "{tag}")))?;
                }
                if let Some(detail) = detail {
                    eprintln!("notice: {detail}");
                }
                did = tag;
            }
        }
        Ok(did)
    }

    /// Prints replies until the statement is finished.
    fn print(&mut self, replies: &Receiver<Reply>) -> Result<Option<Done>, Error> {
        let mut progress = ProgressLine::start();
        let mut stream = Stream::new(self.format);
        loop {
            let reply = match replies.recv_timeout(REDRAWN_EVERY) {
                Ok(reply) => reply,
                Err(RecvTimeoutError::Timeout) => {
                    progress.draw(&self.host.sources());
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            };
            progress.clear();
            match reply {
                Reply::Rows(rows) => self.print_rows(&rows)?,
                Reply::Subscribed(schema) => checked(self.target.stream(|out| stream.start(out, &schema)))?,
                Reply::Changes(batch) => checked(self.target.stream(|out| stream.write(out, &batch)))?,
                Reply::Complete(time) => self.print_complete(time)?,
                Reply::Finished(result) => return result,
            }
        }
    }

    fn print_rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let (format, layout) = (self.format, self.layout);
        let write = |out: &mut dyn Write, layout: &Layout| write_rows(out, format, rows, layout);
        checked(self.target.write(format, &layout, write))?;
        rows.notices.iter().for_each(|notice| eprintln!("notice: {notice}"));
        self.answered = Some(rows.num_rows());
        Ok(())
    }

    fn print_complete(&mut self, time: i64) -> Result<(), Error> {
        let format = self.format;
        checked(self.target.stream(|out| match format {
            Format::Json | Format::Jsonl => writeln!(out, "{{\"progress\":{time}}}"),
            Format::Table => writeln!(out, "(complete before {time})"),
            Format::Csv | Format::Markdown => Ok(()),
        }))
    }
}

/// A reader that went away (`anabranch .. | head`) ends the program without a word, as it does for other tools.
pub(crate) fn checked<T>(result: io::Result<T>) -> Result<T, Error> {
    match result {
        Ok(value) => Ok(value),
        Err(problem) if problem.kind() == IoErrorKind::BrokenPipe => std::process::exit(0),
        Err(problem) => Err(Error::unavailable(format!("cannot write the answer: {problem}"))),
    }
}

/// Prints an error; its position is moved from the statement to the script.
pub(crate) fn report(mut error: Error, place: &Place<'_>) {
    error.position = error.position.map(|position| position + place.start);
    let rendered = error.render(place.script);
    match place.file {
        Some(file) => {
            let at = error.position.unwrap_or(place.start).min(place.script.len());
            let line =
                place.script.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1 + place.lines_before;
            eprintln!("{file}:{line}: {rendered}");
        }
        None => eprintln!("{rendered}"),
    }
}

/// `12.3 ms`, `4.56 s`.
pub(crate) fn duration(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 1000.0 { format!("{millis:.1} ms") } else { format!("{:.2} s", millis / 1e3) }
}
