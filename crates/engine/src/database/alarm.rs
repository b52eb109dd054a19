//! Alarms: what a connection waits for between two looks at a subscription.
//!
//! Law: workers ring an alarm once the subscription has something that was not there when the alarm
//! was set. An alarm that was not rung is kept for the next wait, so a subscription has one
//! question at most with each worker. A thread that interrupts the connection rings too.
//!
//! Cost: a connection that waits sleeps in one receive, and takes no turns of the engine.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;
use crate::session::AlarmSet;

/// An alarm of one subscription.
#[derive(Debug)]
pub(super) struct Alarm {
    receiver: Receiver<()>,
    sender: Sender<()>,
    /// Rings that are still to come: one of each worker where all have to pass a time.
    rings_left: usize,
    /// Longest wait: what workers do not ring for is looked for so often.
    pace: Duration,
    /// When the subscription was last looked at.
    looked_at: Instant,
}

/// What a wait gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rung {
    Yes,
    No,
}

impl Alarm {
    /// An alarm that `set` has hung up: it is given what workers ring with.
    pub fn new<E>(set: impl FnOnce(Sender<()>) -> Result<AlarmSet, E>) -> Result<Alarm, E> {
        let (sender, receiver) = channel();
        let AlarmSet { rings, pace } = set(sender.clone())?;
        Ok(Alarm { receiver, sender, rings_left: rings, pace, looked_at: Instant::now() })
    }

    /// Whether nothing needs to be looked for until this time is over.
    pub fn is_enough_for(&self, time: Duration) -> bool {
        self.looked_at.elapsed() + time < self.pace
    }

    /// Notes that the subscription was looked at just now.
    pub fn looked(&mut self) {
        self.looked_at = Instant::now();
    }

    /// Waits for the rings, for an interrupt, or until the time is over.
    pub fn wait(&mut self, left: Option<Duration>, interrupt: &Interrupt) -> Rung {
        let deadline = Instant::now() + left.unwrap_or(self.pace).min(self.pace);
        interrupt.ring_with(Some(self.sender.clone()));
        let mut rung = Rung::No;
        while !interrupt.is_triggered() {
            match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(()) => self.rings_left = self.rings_left.saturating_sub(1),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
            if self.rings_left == 0 {
                rung = Rung::Yes;
                break;
            }
        }
        interrupt.ring_with(None);
        rung
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarm(rings: usize) -> Alarm {
        Alarm::new(|_| Ok::<_, ()>(AlarmSet { rings, pace: Duration::from_secs(10) })).unwrap()
    }

    #[test]
    fn an_alarm_waits_for_all_its_rings() {
        let mut alarm = alarm(2);
        let interrupt = Interrupt::new();
        alarm.sender.send(()).unwrap();
        assert_eq!(alarm.wait(Some(Duration::from_millis(1)), &interrupt), Rung::No);
        alarm.sender.send(()).unwrap();
        assert_eq!(alarm.wait(None, &interrupt), Rung::Yes);
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let mut alarm = alarm(1);
        let interrupt = Interrupt::new();
        let other = interrupt.clone();
        let started = Instant::now();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            other.trigger();
        });
        alarm.wait(None, &interrupt);
        assert!(started.elapsed() < Duration::from_secs(5));
        thread.join().unwrap();
    }
}
