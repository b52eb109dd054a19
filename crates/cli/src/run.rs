//! One statement: from its text to its printed answer.
//!
//! Answers go to standard output, everything else (errors, notices, times, progress) to standard
//! error.

use std::{
    cell::RefCell,
    io::{self, ErrorKind as IoErrorKind, Write, stdout},
    rc::Rc,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use anabranch_engine::{Error, ErrorKind, Rows};
use arrow::{array::RecordBatch, datatypes::Schema};
use serde_json::json;

use crate::{
    arguments::Arguments,
    data::{Lines, StandardLines, TextLines, Wanted, feed},
    live::{Contents, Frame},
    output::{Format, Layout, Stream, write_rows},
    place::{Place as Where, lost},
    progress::{ProgressLine, REDRAWN_EVERY},
    reply::{Done, Reply},
    shell::variables::Variables,
    signals::Running,
    target::Target,
    terminal,
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
    /// Where statements run.
    pub place: &'a Where,
    pub format: Format,
    pub timer: bool,
    pub quiet: bool,
    /// How tables are drawn.
    pub layout: Layout,
    /// Where answers go.
    pub target: Target,
    /// Whether a line tells how each statement ended, for a program that waits before it sends
    /// more.
    pub marks_ends: bool,
    /// Whether a subscription at a terminal shows its rows as they are now, not each change.
    pub live: bool,
    /// Texts that stand in statements by name.
    pub variables: Variables,
    /// Whether a command said that this ends.
    pub leaves: bool,
    /// The last statement, for commands that run or edit it again.
    pub last: String,
    /// The shell's prompt, where rows of COPY are typed; else they come from standard input.
    pub prompt: Option<Rc<RefCell<dyn Lines>>>,
    /// Lines of standard input that were rows of a COPY since a script of it looked.
    pub lines_fed: usize,
    /// Rows of the last answer of the statement that runs.
    answered: Option<usize>,
}

/// A subscription that is drawn in place.
struct Drawn {
    contents: Contents,
    frame: Frame,
    is_stale: bool,
    drawn_at: Option<Instant>,
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
    /// Rows of a COPY that stand behind it in the text.
    pub rows: &'a str,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(place: &'a Where, arguments: &Arguments) -> Runner<'a> {
        Runner {
            place,
            format: arguments.format(),
            timer: arguments.timer,
            quiet: arguments.quiet,
            layout: Layout::default(),
            target: Target::Plain,
            marks_ends: arguments.ends,
            live: true,
            variables: Variables::default(),
            leaves: false,
            last: String::new(),
            prompt: None,
            lines_fed: 0,
            answered: None,
        }
    }

    /// Runs the statement `text`, which stands at `place`.
    pub(crate) fn run(&mut self, text: &str, place: &Place<'_>) -> Status {
        let with_values = self.variables.put_into(text).into_owned();
        if with_values == text {
            return self.run_as_is(text, place);
        }
        let before = place.script[..place.start].matches('\n').count();
        let lines_before = place.lines_before + before;
        self.run_as_is(&with_values, &Place { script: &with_values, start: 0, lines_before, ..*place })
    }

    fn run_as_is(&mut self, text: &str, place: &Place<'_>) -> Status {
        let started = Instant::now();
        self.last = text.trim().to_owned();
        let result = self.try_run(text, place.rows);
        let end = match &result {
            Ok(tag) => json!({ "done": tag }),
            Err(error) => json!({ "error": error.message, "hint": error.hint }),
        };
        let status = match result {
            Ok(_) => Status::Good,
            Err(error) if error.kind == ErrorKind::Cancelled && !error.is_timeout() => {
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

    /// Runs one statement that stands in no script.
    pub(crate) fn run_alone(&mut self, text: &str) -> Status {
        self.run(text, &Place { script: text, start: 0, file: None, lines_before: 0, rows: "" })
    }

    /// Runs the statement, and returns what it did: `INSERT 0 3`, `SELECT 12`.
    fn try_run(&mut self, text: &str, rows: &str) -> Result<String, Error> {
        let mut did = String::new();
        for part in self.place.parts(text)? {
            let running = Running::start();
            self.answered = None;
            let replies = self.place.begin(part)?;
            let done = self.finish(&replies, rows)?;
            drop(running);
            did = self.answered.map_or(did, |rows| format!("SELECT {rows}"));
            did = done.unwrap_or(did);
        }
        Ok(did)
    }

    /// Prints what a statement gives; what it did, if it told so. `rows` stand behind a COPY.
    pub(crate) fn finish(&mut self, replies: &Receiver<Reply>, rows: &str) -> Result<Option<String>, Error> {
        let Some(Done { tag, detail }) = self.print(replies, rows)? else { return Ok(None) };
        if self.format == Format::Table && !self.quiet && !tag.is_empty() {
            checked(self.target.stream(|out| writeln!(out, "{tag}")))?;
        }
        if let Some(detail) = detail {
            eprintln!("notice: {detail}");
        }
        Ok(Some(tag))
    }

    /// Prints replies until the statement is finished.
    fn print(&mut self, replies: &Receiver<Reply>, rows: &str) -> Result<Option<Done>, Error> {
        let mut progress = ProgressLine::start();
        let mut stream = Stream::new(self.format);
        let mut drawn: Option<Drawn> = None;
        loop {
            let reply = match replies.recv_timeout(REDRAWN_EVERY) {
                Ok(reply) => reply,
                Err(RecvTimeoutError::Timeout) => {
                    match &mut drawn {
                        Some(drawn) => drawn.draw()?,
                        None => progress.draw(&self.place.sources(), self.place.rows_put_out()),
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(lost(self.place)),
            };
            progress.clear();
            match (reply, &mut drawn) {
                (Reply::Rows(rows), _) => self.print_rows(&rows)?,
                (Reply::Wants(wanted), _) => {
                    self.feed(&wanted, rows)?;
                    progress = ProgressLine::start();
                }
                (Reply::Subscribed(schema), _) => {
                    drawn = self.drawn(&schema);
                    if drawn.is_none() {
                        checked(self.target.stream(|out| stream.start(out, &schema)))?;
                    }
                }
                (Reply::Changes(batch), Some(drawn)) => drawn.apply(&batch)?,
                (Reply::Changes(batch), None) => checked(self.target.stream(|out| stream.write(out, &batch)))?,
                (Reply::Complete(_), Some(_)) => {}
                (Reply::Complete(time), None) => self.print_complete(time)?,
                (Reply::Finished(result), None) => return result,
                (Reply::Finished(result), Some(drawn)) => {
                    drawn.draw()?;
                    return result;
                }
            }
        }
    }

    /// Sends a COPY the rows behind its statement, and those that are typed.
    fn feed(&mut self, wanted: &Wanted, rows: &str) -> Result<(), Error> {
        let n_lines = match &self.prompt {
            Some(prompt) => feed(wanted, &mut TextLines::new(rows, Some(&mut *prompt.borrow_mut()))),
            None => feed(wanted, &mut TextLines::new(rows, Some(&mut StandardLines))),
        }?;
        if rows.is_empty() {
            self.lines_fed += n_lines;
        }
        Ok(())
    }

    /// A subscription that is drawn in place, where a person reads.
    fn drawn(&self, schema: &Schema) -> Option<Drawn> {
        let is_read = matches!(self.target, Target::Terminal { .. }) && self.format == Format::Table && self.live;
        let contents = Contents::of_changes(schema).filter(|_| is_read)?;
        Some(Drawn { contents, frame: Frame::default(), is_stale: true, drawn_at: None })
    }

    fn print_rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let (format, layout) = (self.format, self.layout.clone());
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
            Format::Csv | Format::Markdown | Format::Plain => Ok(()),
        }))
    }
}

impl Drawn {
    fn apply(&mut self, changes: &RecordBatch) -> Result<(), Error> {
        self.contents.apply(changes);
        self.is_stale = true;
        match self.drawn_at.is_some_and(|at| at.elapsed() < REDRAWN_EVERY) {
            true => Ok(()),
            false => self.draw(),
        }
    }

    /// Draws what has changed since the last time.
    fn draw(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_stale, false) {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let (columns, lines) = terminal::columns_and_lines();
        let drawing = self.frame.draw(&self.contents.lines(columns, lines)?);
        checked(stdout().write_all(drawing.as_bytes()).and_then(|()| stdout().flush()))
    }
}

/// A reader that went away (`anabranch .. | head`) ends the program without a word, as it does for
/// other tools.
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
