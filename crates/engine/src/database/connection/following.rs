//! Subscriptions of a connection: waits for changes, which the engine is not asked about as long as
//! no alarm rings.

use std::time::{Duration, Instant};

use super::super::alarm::{Alarm, Rung};
use super::Connection;
use crate::error::{Error, ErrorKind};
use crate::session::{Changes, Subscription};

impl Connection {
    /// The next changes of a subscription of this connection: as soon as there are some, or
    /// [`Changes::Nothing`] after `timeout`.
    ///
    /// # Errors
    /// As [`Session::next_changes`](crate::Session::next_changes).
    pub fn next_changes(&mut self, subscription: &Subscription, timeout: Duration) -> Result<Changes, Error> {
        // (An interrupt between two waits ends the next one: to its sender they are one statement.)
        let next = self.next_before(subscription, timeout);
        if next.as_ref().is_err_and(|error| error.kind == ErrorKind::Cancelled) {
            self.interrupt.clear();
        }
        next
    }

    /// Forgets an interrupt that came while no statement ran: a caller that goes on with what has
    /// rested begins with this.
    pub fn forget_interrupt(&self) {
        self.interrupt.clear();
    }

    fn next_before(&mut self, subscription: &Subscription, timeout: Duration) -> Result<Changes, Error> {
        let deadline = Instant::now().checked_add(timeout);
        if self.stays_quiet(subscription, timeout)? {
            return Ok(Changes::Nothing);
        }
        loop {
            let asked = subscription.clone();
            let changes = self.call(move |session| session.next_changes(&asked, Duration::ZERO))??;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !matches!(changes, Changes::Nothing) || left.is_some_and(|left| left.is_zero()) {
                return Ok(changes);
            }
            self.interrupt.check()?;
            if let Some(alarm) = self.alarms.get_mut(&subscription.id) {
                alarm.looked();
            }
            self.await_alarm(subscription, left)?;
        }
    }

    /// Whether the alarm of an earlier wait is not rung for all of a time. The engine is not asked
    /// then.
    fn stays_quiet(&mut self, subscription: &Subscription, time: Duration) -> Result<bool, Error> {
        let is_enough = self.alarms.get(&subscription.id).is_some_and(|alarm| alarm.is_enough_for(time));
        if !is_enough || time.is_zero() {
            return Ok(false);
        }
        let deadline = Instant::now() + time;
        self.await_alarm(subscription, Some(time))?;
        Ok(self.alarms.contains_key(&subscription.id) && Instant::now() >= deadline)
    }

    /// Waits until a subscription may have something, but not longer than `left`.
    pub(super) fn await_alarm(&mut self, subscription: &Subscription, left: Option<Duration>) -> Result<(), Error> {
        let mut alarm = match self.alarms.remove(&subscription.id) {
            Some(alarm) => alarm,
            None => {
                let of = subscription.clone();
                Alarm::new(|sender| self.engine.call(move |session| session.set_alarm(&of, &sender))?)?
            }
        };
        if alarm.wait(left, &self.interrupt) == Rung::No {
            self.alarms.insert(subscription.id, alarm);
        }
        self.interrupt.check()
    }

    /// Ends a subscription and frees what it holds.
    pub fn unsubscribe(&mut self, subscription: Subscription) {
        self.subscriptions.remove(&subscription.id);
        self.alarms.remove(&subscription.id);
        // (A closed engine holds nothing.)
        let _ = self.engine.tell(move |session| session.unsubscribe(subscription));
    }
}
