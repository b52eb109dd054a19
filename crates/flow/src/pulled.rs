//! What the feeds and links of a line have brought in a turn: rows, and how far time has come.

use anabranch_batch::{END, Time};

use crate::tactic::Output;

/// What feeds have brought in a turn.
pub struct Pulled {
    /// Rows and row errors.
    pub out: Output,
    /// No row before this time will come.
    pub upto: Time,
    /// What a feed keeps back may be put out from this time on.
    pub pending: Option<Time>,
    /// Whether there is more to do, so that the operator is to be scheduled again.
    pub has_more: bool,
    /// Rows that came in, or were worked on: what is held may have changed by as many.
    pub(crate) n_rows: usize,
}

impl Default for Pulled {
    /// Nothing has come, and nothing will.
    fn default() -> Pulled {
        Pulled { out: Output::default(), upto: END, pending: None, has_more: false, n_rows: 0 }
    }
}

impl Pulled {
    /// Adds what another feed has brought, but for its rows.
    pub fn take_but_rows(&mut self, other: Pulled) {
        other.out.errors.into_iter().for_each(|batch| self.out.give_errors(batch));
        self.has_more |= other.has_more;
        self.n_rows += other.n_rows;
        self.reach(other.upto, other.pending);
    }

    /// So many rows were worked on that have not come in.
    pub fn worked_on(&mut self, rows: usize) {
        self.n_rows += rows;
    }

    /// Nothing before `upto` will come, and the right to send is held from then on.
    pub(crate) fn reach_exactly(&mut self, upto: Time) {
        self.upto = upto;
        self.pending = (upto < END).then_some(upto).into_iter().chain(self.pending).min();
    }

    /// A feed brings nothing before `upto` any more, and keeps back what may be put out from
    /// `pending` on.
    pub fn reach(&mut self, upto: Time, pending: Option<Time>) {
        self.upto = self.upto.min(upto);
        self.pending = self.pending.into_iter().chain(pending).min();
    }
}
