//! Ctrl-C.
//!
//! While a statement runs it stops that statement and nothing else. Outside of the shell a second
//! one within a second, or one while nothing runs, ends the program with code 130; so does a
//! statement that does not stop by itself for a second. At the shell's prompt the line editor sees
//! the key itself.

use std::{
    process::exit,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{Builder, sleep},
    time::{Duration, Instant},
};

/// What is running: a statement, or something around it.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// How many statements have begun.
static STATEMENTS: AtomicU64 = AtomicU64::new(0);
/// A person is at a prompt: the shell alone decides when to leave.
static SHELL: AtomicBool = AtomicBool::new(false);
/// How often Ctrl-C was pressed while a statement ran.
static PRESSES: AtomicU64 = AtomicU64::new(0);
/// When Ctrl-C came last.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// How long a script's statement may take to stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// Two presses within this time mean "now".
const TWICE: Duration = Duration::from_secs(1);

/// Takes Ctrl-C over for the program.
pub(crate) fn listen(stop: impl Fn() + Send + 'static) {
    let handler = move || {
        if RUNNING.load(Ordering::Relaxed) > 0 {
            PRESSES.fetch_add(1, Ordering::Relaxed);
        }
        press(&stop);
    };
    if let Err(problem) = ctrlc::set_handler(handler) {
        eprintln!("notice: Ctrl-C ends the program, because its handler could not be set: {problem}");
    }
}

/// How often Ctrl-C was pressed while a statement ran.
pub(crate) fn presses() -> u64 {
    PRESSES.load(Ordering::Relaxed)
}

fn press(stop: &impl Fn()) {
    match (RUNNING.load(Ordering::Relaxed) > 0, SHELL.load(Ordering::Relaxed)) {
        (true, true) => stop(),
        (true, false) if pressed_twice() => exit(130),
        (true, false) => {
            stop();
            end_unless_stopped();
        }
        // Between two prompts of the shell the line editor does not see the key.
        (false, true) if pressed_twice() => exit(0),
        (false, true) => {}
        (false, false) => exit(130),
    }
}

/// Ends the program if the statement that runs now still runs a moment later: of a script nothing
/// outlives the interrupt.
fn end_unless_stopped() {
    let statement = STATEMENTS.load(Ordering::Relaxed);
    let watch = move || {
        sleep(PATIENCE);
        if RUNNING.load(Ordering::Relaxed) > 0 && STATEMENTS.load(Ordering::Relaxed) == statement {
            eprintln!("interrupted");
            exit(130);
        }
    };
    if Builder::new().spawn(watch).is_err() {
        exit(130);
    }
}

/// Notes that Ctrl-C was pressed; whether the last time was a moment ago.
pub(crate) fn pressed_twice() -> bool {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.replace(Instant::now()).is_some_and(|last| last.elapsed() < TWICE)
}

/// From now on the program ends only when the shell does.
pub(crate) fn enter_shell() {
    SHELL.store(true, Ordering::Relaxed);
}

/// Marks a statement as running for as long as it lives.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn start() -> Running {
        STATEMENTS.fetch_add(1, Ordering::Relaxed);
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}
