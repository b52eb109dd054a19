//! One statement: from its text to its printed answer.
//!
//! Answers go to standard output, everything else (errors, notices, times, progress) to standard error.

use std::{
    io::{self, BufWriter, ErrorKind as IoErrorKind, Write, stdout},
    process::ExitCode,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use anabranch_engine::{Error, ErrorKind, Rows};

use crate::{
    arguments::Arguments,
    host::{Done, Host, Reply, gone},
    output::{Format, Stream, write_rows},
    progress::{ProgressLine, REDRAWN_EVERY},
    signals::Running,
};

/// How a run ended, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Good,
    Failed,
    Interrupted,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(match status {
            Status::Good => 0,
            Status::Failed => 1,
            Status::Interrupted => 130,
        })
    }
}

/// Runs statements and prints what they give.
pub(crate) struct Runner<'a> {
    pub host: &'a Host,
    pub format: Format,
    pub timer: bool,
    pub quiet: bool,
    /// Rows of a table shown at most.
    pub rows_max: usize,
}

/// Where a statement stands.
pub(crate) struct Place<'a> {
    /// The whole text.
    pub script: &'a str,
    /// Where the statement begins in it.
    pub start: usize,
    /// Its name, if it is a file's.
    pub file: Option<&'a str>,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(host: &'a Host, arguments: &Arguments) -> Runner<'a> {
        Runner {
            host,
            format: arguments.format(),
            timer: arguments.timer,
            quiet: arguments.quiet,
            rows_max: usize::MAX,
        }
    }

    /// Runs the statement `text`, which stands at `place`.
    pub(crate) fn run(&mut self, text: &str, place: &Place<'_>) -> Status {
        let started = Instant::now();
        let result = self.try_run(text);
        let status = match result {
            Ok(()) => Status::Good,
            Err(error) if error.kind == ErrorKind::Cancelled => {
                eprintln!("interrupted");
                Status::Interrupted
            }
            Err(error) => {
                report(error, place);
                Status::Failed
            }
        };
        if self.timer {
            eprintln!("Time: {}", duration(started.elapsed()));
        }
        status
    }

    fn try_run(&mut self, text: &str) -> Result<(), Error> {
        let script: Arc<str> = Arc::from(text);
        for statement in anabranch_sql::parse(text)? {
            let running = Running::start();
            let replies = self.host.begin(script.clone(), statement)?;
            let done = self.print(&replies)?;
            drop(running);
            if let Some(Done { tag, detail }) = done {
                if self.format == Format::Table && !self.quiet {
                    checked(writeln!(stdout(), "{tag}"))?;
                }
                if let Some(detail) = detail {
                    eprintln!("notice: {detail}");
                }
            }
        }
        Ok(())
    }

    /// Prints replies until the statement is finished.
    fn print(&self, replies: &Receiver<Reply>) -> Result<Option<Done>, Error> {
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
                Reply::Subscribed(schema) => checked(stream.start(&mut stdout(), &schema))?,
                Reply::Changes(batch) => {
                    let mut out = BufWriter::new(stdout().lock());
                    checked(stream.write(&mut out, &batch).and_then(|()| out.flush()))?;
                }
                Reply::Complete(time) => self.print_complete(time)?,
                Reply::Finished(result) => return result,
            }
        }
    }

    fn print_rows(&self, rows: &Rows) -> Result<(), Error> {
        let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
        checked(write_rows(&mut out, self.format, rows, self.rows_max).and_then(|()| out.flush()))?;
        rows.notices.iter().for_each(|notice| eprintln!("notice: {notice}"));
        Ok(())
    }

    fn print_complete(&self, time: i64) -> Result<(), Error> {
        checked(match self.format {
            Format::Json | Format::Jsonl => writeln!(stdout(), "{{\"progress\":{time}}}"),
            Format::Table => writeln!(stdout(), "(complete before {time})"),
            Format::Csv | Format::Markdown => Ok(()),
        })
    }
}

/// A reader that went away (`anabranch .. | head`) ends the program without a word, as it does for other tools.
pub(crate) fn checked(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Ok(()) => Ok(()),
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
            let line = place.script.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
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
