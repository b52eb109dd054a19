//! Where the runs of an arrangement come from, for operators that look keys up in it.
//!
//! Law: an operator hears of every update of the arrangement once, in order of time, and then of
//! its frontier; it may look at all that it heard of, and at what came since, with the
//! arrangement's reader.
//!
//! ```text
//!   this dataflow        [ stage | arrange ] --edge--> [ join ]
//!   another dataflow     [ stage | arrange ] ........> [ join ]     a queue of the arrangement, drained by the join
//! ```
//!
//! Runs of an arrangement that exists elsewhere are *imported* by the operator that needs them: the
//! runtime counts no messages for them and moves no frontier, which would cost some ten thousand
//! instructions a commit. The operator holds the right to send from where the arrangement stands.
//! Cost: a pointer a run. Source: shared arrangements (VLDB 2020), section 5.

use std::rc::Rc;

use anabranch_arrangement::{Listener, Reader, Sealed};
use anabranch_batch::{END, Time};
use timely::communication::Pull;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::InputHandleCore;

use crate::arrange::{SealedStream, Sealing};
use crate::drive::{HeldCapability, frontier_of};
use crate::import::{Content, Horizon, ImportState, StreamImport};
use crate::line::Frontiers;
use crate::opening::{Edges, Opening};
use crate::pulled::Pulled;
use crate::scope::Scope;
use crate::waker::Waker;

/// An arrangement, as operators of a dataflow see it.
#[derive(Clone)]
pub struct Arranged<'s> {
    /// Reads what is arranged so far.
    pub reader: Reader,
    /// Its runs, and the row errors of its collection.
    pub runs: Runs<'s>,
}

/// Where runs, and the row errors of the collection, come from.
#[derive(Clone)]
pub enum Runs<'s> {
    /// An arrangement of the same dataflow.
    Edge(SealedStream<'s>),
    /// One that exists.
    Import(RunsImport<'s>),
}

/// An arrangement that exists, to be read in a dataflow. Nothing is copied.
#[derive(Clone)]
pub struct RunsImport<'s> {
    /// Where it is read.
    pub scope: Scope<'s>,
    /// For logs.
    pub name: String,
    /// Its row errors, by message, if there may be any.
    pub errors: Option<Reader>,
    /// History is read as of this time.
    pub as_of: Time,
    /// Times of row errors inside it are moved up to its end.
    pub horizon: Horizon,
}

/// Brings runs to an operator.
pub trait RunsFeed {
    /// Gives what has come since the last call to `take`, with the time from which on it may be
    /// answered. Returns the time before which nothing will come any more.
    fn pull(
        &mut self,
        frontiers: &Frontiers,
        hold: &mut HeldCapability,
        pulled: &mut Pulled,
        take: &mut dyn FnMut(Vec<Sealed>, Time),
    ) -> Time;
}

impl<'s> Arranged<'s> {
    /// The dataflow that reads it.
    pub fn scope(&self) -> Scope<'s> {
        match &self.runs {
            Runs::Edge(sealed) => sealed.scope(),
            Runs::Import(import) => import.scope.clone(),
        }
    }

    /// Whether its runs come over an edge.
    pub fn edges(&self) -> Edges {
        match &self.runs {
            Runs::Edge(_) => Edges::Some,
            Runs::Import(_) => Edges::None,
        }
    }

    /// The arrangement's reader, and what brings its runs to the operator or task that is made.
    pub fn open(self, opening: &mut Opening<'s>) -> (Reader, Box<dyn RunsFeed>) {
        let feed: Box<dyn RunsFeed> = match self.runs {
            Runs::Edge(sealed) => {
                let (input, index) = opening.input(sealed, Pipeline);
                Box::new(RunsEdge { input, index })
            }
            Runs::Import(import) => Box::new(Importing::new(&self.reader, import, opening.waker())),
        };
        (self.reader, feed)
    }
}

/// An edge as a feed of runs.
struct RunsEdge<P: Pull<Message<Time, Sealing>>> {
    input: InputHandleCore<Time, Sealing, P>,
    /// Number among the operator's inputs.
    index: usize,
}

impl<P: Pull<Message<Time, Sealing>>> RunsFeed for RunsEdge<P> {
    fn pull(
        &mut self,
        frontiers: &Frontiers,
        hold: &mut HeldCapability,
        pulled: &mut Pulled,
        take: &mut dyn FnMut(Vec<Sealed>, Time),
    ) -> Time {
        self.input.for_each(|message, sealing| {
            let time = hold.lower_to(&message);
            match std::mem::take(sealing) {
                Sealing::Empty => {}
                Sealing::Runs(runs) => take(runs, time),
                Sealing::Errors(batch) => pulled.out.give_errors(batch),
            }
        });
        frontier_of(&frontiers[self.index])
    }
}

/// An import as a feed of runs.
struct Importing {
    listener: Listener,
    errors: Option<ImportState>,
    as_of: Time,
    /// Nothing before this time will come.
    upper: Time,
}

impl Importing {
    fn new(reader: &Reader, import: RunsImport<'_>, waker: &Waker) -> Importing {
        let RunsImport { name, errors, as_of, horizon, .. } = import;
        let wake = waker.clone();
        let errors = errors.map(|errors| StreamImport {
            name: format!("{name} errors"),
            as_of,
            history: Some(errors),
            live: None,
            horizon: Rc::clone(&horizon),
            columns: vec![0],
            content: Content::Errors,
            dealing: None,
        });
        Importing {
            listener: reader.listen(Some(Box::new(move || wake.wake()))),
            errors: errors.map(|errors| ImportState::new(errors, waker)),
            as_of,
            upper: as_of,
        }
    }

    /// What has come, and the time before which nothing will. Until the whole history up to `as_of`
    /// is there it is not shown: readers acknowledge it in one piece, because compaction may have
    /// moved its times up to `as_of`.
    fn advance(&mut self, pulled: &mut Pulled, take: &mut dyn FnMut(Vec<Sealed>, Time)) -> Time {
        if self.listener.upper() <= self.as_of {
            return self.as_of;
        }
        let mut sealed = self.listener.drain();
        sealed.retain(|sealed| !sealed.run.is_empty());
        if !sealed.is_empty() {
            take(sealed, self.upper);
        }
        let upper = self.listener.upper();
        match &mut self.errors {
            Some(errors) => {
                let reached = errors.pull(&mut pulled.out);
                pulled.has_more |= errors.has_more();
                reached.min(upper)
            }
            None => upper,
        }
    }
}

impl RunsFeed for Importing {
    fn pull(
        &mut self,
        _frontiers: &Frontiers,
        _hold: &mut HeldCapability,
        pulled: &mut Pulled,
        take: &mut dyn FnMut(Vec<Sealed>, Time),
    ) -> Time {
        self.upper = self.advance(pulled, take);
        pulled.reach(END, (self.upper < END).then_some(self.upper));
        self.upper
    }
}
