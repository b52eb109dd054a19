//! Ctrl-C.
//!
//! While a statement runs it stops that statement and nothing else. A second one within a second, or one while nothing
//! runs and nobody is at a prompt, ends the program with code 130. At the shell's prompt the line editor sees the key itself.

use std::{
    process::exit,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anabranch_engine::Interrupt;

/// A statement is running.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// When Ctrl-C came last.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Two presses within this time mean "now".
const TWICE: Duration = Duration::from_secs(1);

/// Takes Ctrl-C over for the program.
pub(crate) fn listen(interrupt: Interrupt) {
    let handler = move || {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let again = last.replace(Instant::now()).is_some_and(|last| last.elapsed() < TWICE);
        if again || !RUNNING.load(Ordering::Relaxed) {
            exit(130);
        }
        interrupt.trigger();
    };
    if let Err(problem) = ctrlc::set_handler(handler) {
        eprintln!("notice: Ctrl-C ends the program, because its handler could not be set: {problem}");
    }
}

/// Marks a statement as running for as long as it lives.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn start() -> Running {
        RUNNING.store(true, Ordering::Relaxed);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Relaxed);
    }
}
