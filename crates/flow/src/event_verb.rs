//! A tactic on events in a line, and how far it has come.
//!
//! Law: as that of [`crate::events`]. Work beyond a turn's limit is put out in several turns
//! ([`Paced`]), between which other operators have theirs.

use anabranch_batch::{Batch, Time};

use crate::paced::Paced;
use crate::pulled::Pulled;
use crate::tactic::Timed;
use crate::worker::WorkerContext;

/// How far back a verb puts events out: at or after this time of the frontier. Monotone, not after
/// its argument; leaves both ends of time alone.
pub type Reach = Box<dyn Fn(Time) -> Time>;

/// A tactic on events at work.
pub(crate) struct EventVerb {
    tactic: Paced,
    reach: Reach,
    worker: WorkerContext,
}

impl EventVerb {
    pub fn new(tactic: Box<dyn Timed>, reach: Reach, worker: WorkerContext) -> EventVerb {
        EventVerb { tactic: Paced::new(tactic), reach, worker }
    }

    pub fn push(&mut self, input: usize, batch: Batch) {
        self.tactic.push(input, batch.compact());
    }

    /// Puts out all before the frontier, or as much of it as a turn allows.
    pub fn advance(&mut self, pulled: &mut Pulled) {
        let is_idle = self.tactic.is_idle_before(pulled.upto);
        if !self.tactic.turn(pulled.upto, &mut pulled.out) {
            pulled.has_more = true;
        } else if is_idle && self.worker.has_spare_time() {
            self.tactic.idle();
        }
        // Rows may wait for a later turn: the frontier follows what is out, not what has come in.
        pulled.reach_exactly((self.reach)(self.tactic.done()));
    }

    pub fn size_bytes(&self) -> usize {
        self.tactic.size_bytes()
    }
}
