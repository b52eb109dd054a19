//! A loop as a feed: it works by fuel, and time goes no further than the epoch that is under way.

use anabranch_arrangement::Sealed;
use anabranch_batch::{Batch, END, Time};
use anabranch_flow::chain::Chain;
use anabranch_flow::drive::HeldCapability;
use anabranch_flow::hidden::{Hidden, HiddenTimes};
use anabranch_flow::line::{Feed, Frontiers};
use anabranch_flow::pulled::Pulled;
use anabranch_flow::runs::{Arranged, RunsFeed};
use anabranch_flow::{Edges, Open, Scope};

use super::machine::Machine;
use super::spec::LoopSpec;
use super::trace::Entering;
use super::waiting::WaitingRows;

/// Rows, probes and pairs that a turn may cost: some ten milliseconds.
const FUEL_PER_TURN: isize = 1 << 17;

/// How a loop begins on a worker.
pub struct LoopBegin {
    /// The loop yields rows at this time at the earliest.
    pub as_of: Time,
    /// Times that the loop passes over.
    pub hidden: Hidden,
    /// Whether the loop is on this worker.
    pub is_owner: bool,
}

/// Runs a loop on one worker, where all rows of the streams are.
pub fn recursive<'s>(
    scope: Scope<'s>,
    spec: LoopSpec,
    streams: Vec<Chain<'s>>,
    arranged: Vec<Arranged<'s>>,
    begin: LoopBegin,
) -> Chain<'s> {
    let as_of = begin.as_of;
    let edges = streams.iter().map(Chain::edges).chain(arranged.iter().map(Arranged::edges));
    let edges = Edges::of_any(edges.collect::<Vec<Edges>>());
    let open: Open<'s> = Box::new(move |opening| {
        let streams: Vec<Box<dyn Feed>> = streams.into_iter().map(|chain| chain.into_feed(opening)).collect();
        let (readers, runs): (Vec<Entering>, Vec<Box<dyn RunsFeed>>) = arranged
            .into_iter()
            .map(|arranged| arranged.open(opening))
            .map(|(reader, runs)| (Entering::new(reader, as_of), runs))
            .unzip();
        let waiting = streams.iter().map(|_| WaitingRows::default()).collect();
        Box::new(LoopFeed { streams, runs, epochs: Epochs::new(Machine::new(spec, readers), waiting, begin) })
    });
    Chain::of_feed(scope, "Recursive", as_of, edges, open)
}

struct LoopFeed {
    streams: Vec<Box<dyn Feed>>,
    runs: Vec<Box<dyn RunsFeed>>,
    epochs: Epochs,
}

impl Feed for LoopFeed {
    fn size_bytes(&self) -> usize {
        self.epochs.machine.size_bytes() + self.epochs.waiting.iter().map(WaitingRows::size_bytes).sum::<usize>()
    }

    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        let LoopFeed { streams, runs, epochs } = self;
        let mut upto = END;
        for (feed, waiting) in streams.iter_mut().zip(&mut epochs.waiting) {
            let mut own = Pulled::default();
            feed.pull(frontiers, hold, &mut own);
            own.out.rows.drain(..).for_each(|batch| waiting.push(batch));
            upto = upto.min(own.upto);
            pulled.take_but_rows(own);
        }
        for (input, feed) in runs.iter_mut().enumerate() {
            let take = &mut |sealed: Vec<Sealed>, _| epochs.machine.accept(input, sealed);
            upto = upto.min(feed.pull(frontiers, hold, pulled, take));
        }
        let mut fuel = FUEL_PER_TURN;
        epochs.work(upto, &mut fuel, pulled);
        // (Rows of rounds have not come from anywhere, and are held as others are.)
        pulled.worked_on(usize::try_from(FUEL_PER_TURN - fuel).unwrap_or(0));
    }
}

/// The epochs of a loop, as time goes on.
struct Epochs {
    machine: Machine,
    /// Rows of each stream that wait for their epoch.
    waiting: Vec<WaitingRows>,
    begin: LoopBegin,
}

impl Epochs {
    fn new(machine: Machine, waiting: Vec<WaitingRows>, begin: LoopBegin) -> Epochs {
        Epochs { machine, waiting, begin }
    }

    /// Works on the epochs before `upto`.
    fn work(&mut self, upto: Time, fuel: &mut isize, pulled: &mut Pulled) {
        self.waiting.iter_mut().for_each(|waiting| waiting.complete(upto));
        loop {
            if let Some(epoch) = self.machine.epoch()
                && !self.machine.work(fuel, &mut pulled.out)
            {
                pulled.has_more = true;
                return pulled.reach(epoch, Some(epoch));
            }
            let next = self.next_epoch();
            match next {
                Some(epoch) if epoch < upto => {
                    let entered = self.waiting.iter_mut().map(|waiting| waiting.take(epoch)).collect();
                    self.machine.begin(epoch, entered);
                }
                _ => {
                    // (Rows of hidden times wait for the time that is shown: they are not done
                    // with.)
                    let done = self.next_time().map_or(upto, |waiting| waiting.min(upto));
                    if done > self.begin.as_of {
                        self.machine.forget_before(done);
                    }
                    self.begin.hidden.forget_before(done);
                    return pulled.reach(upto, next);
                }
            }
        }
    }

    fn next_epoch(&self) -> Option<Time> {
        let first = (self.begin.is_owner && !self.machine.has_begun()).then_some(self.begin.as_of);
        self.next_time().into_iter().chain(first).min().map(|time| self.begin.hidden.shown(time))
    }

    /// The least time of a change that waits.
    fn next_time(&self) -> Option<Time> {
        let waiting = self.waiting.iter().filter_map(WaitingRows::from).map(|time| time.max(self.begin.as_of));
        waiting.chain(self.machine.next_time()).min()
    }
}

/// A loop inside of a loop, as a tactic of the outer one that is evaluated anew: its epochs are the
/// rounds of that.
pub(super) struct Nested(Epochs);

impl Nested {
    /// A loop over nothing, which begins at the first round.
    pub fn new(spec: LoopSpec) -> Nested {
        let waiting = (0..spec.n_inputs).map(|_| WaitingRows::default()).collect();
        let begin = LoopBegin { as_of: 1, hidden: HiddenTimes::default().listen(), is_owner: true };
        Nested(Epochs::new(Machine::new(spec, vec![]), waiting, begin))
    }
}

impl anabranch_flow::tactic::Timed for Nested {
    fn push(&mut self, input: usize, batch: Batch) {
        self.0.waiting[input].push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut anabranch_flow::tactic::Output) {
        let mut pulled = Pulled::default();
        self.0.work(upto, &mut FUEL_PER_TURN.clone(), &mut pulled);
        pulled.out.rows.into_iter().for_each(|batch| out.give_rows(batch));
        pulled.out.errors.into_iter().for_each(|batch| out.give_errors(batch));
    }

    fn has_more(&self) -> bool {
        self.0.machine.epoch().is_some()
    }

    fn pending_from(&self) -> Option<Time> {
        self.0.next_epoch()
    }

    fn size_bytes(&self) -> usize {
        self.0.machine.size_bytes() + self.0.waiting.iter().map(WaitingRows::size_bytes).sum::<usize>()
    }
}
