//! A question that workers have been asked, and the caller that waits for the answers.
//!
//! Law: each worker answers once, or lets the question fall: because what was asked was dropped or
//! has failed, or because the worker has.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A question under way. It may be waited for on any thread.
#[derive(Debug)]
pub(crate) struct Asked<T> {
    receiver: Receiver<T>,
    answers: Vec<T>,
    wanted: usize,
}

/// What has become of a question.
pub(crate) enum Waited<T> {
    /// All answers.
    Answered(Vec<T>),
    /// Some are still to come.
    Waiting(Asked<T>),
    /// A worker let the question fall.
    Lost,
}

impl<T> Asked<T> {
    /// A question of which so many answers are to come.
    pub fn new(receiver: Receiver<T>, wanted: usize) -> Asked<T> {
        Asked { receiver, answers: Vec::with_capacity(wanted), wanted }
    }

    /// Waits for the answers, but not longer than `timeout`.
    pub fn wait(mut self, timeout: Duration) -> Waited<T> {
        let deadline = Instant::now() + timeout;
        while self.answers.len() < self.wanted {
            match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(answer) => self.answers.push(answer),
                Err(RecvTimeoutError::Timeout) => return Waited::Waiting(self),
                Err(RecvTimeoutError::Disconnected) => return Waited::Lost,
            }
        }
        Waited::Answered(self.answers)
    }
}
