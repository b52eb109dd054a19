//! Verbs on events as links of chains.
//!
//! Law: the frontier behind a verb comes to `reach` of the least of its inputs' frontiers, exactly,
//! once all before that is out. So the frontier at a query's end is known from the plan and from
//! the frontiers pushed in, and a reader that waits for it waits for nothing else. The right to
//! send is held from that frontier on, whether rows wait or not.
//!
//! Batches come as they are, with lifetimes and end edges. Verbs that follow each other on one
//! worker are one operator, like verbs on relations ([`crate::chain`]).

use anabranch_batch::Batch;
use timely::progress::operate::FrontierInterest;

use crate::chain::Chain;
use crate::event_verb::EventVerb;
pub use crate::event_verb::Reach;
use crate::line::{Link, Meeting, Working};
use crate::opening::{Edges, Open};
use crate::tactic::{Output, Timed};

impl<'s> Chain<'s> {
    /// Then a function of each batch of events; row errors pass. Events out are at or after `reach`
    /// of the events in that cause them.
    pub fn then_reaching(
        self,
        kind: &'static str,
        reach: Reach,
        apply: impl FnMut(Batch, &mut Output) + 'static,
    ) -> Chain<'s> {
        self.then(kind, apply).linked(kind, Link::Reach(reach))
    }

    /// Then a tactic on events of one input, with rows of equal `key` on one worker.
    pub fn then_events(self, kind: &'static str, key: Vec<usize>, reach: Reach, tactic: Box<dyn Timed>) -> Chain<'s> {
        let chain = self.by_key(key);
        let verb = EventVerb::new(tactic, reach, chain.worker().clone());
        chain.linked(kind, Link::Tactic(Working::Events(verb)))
    }
}

/// A tactic on events of several inputs, with rows of equal keys on one worker.
///
/// # Panics
/// Without an input.
pub fn events<'s>(
    inputs: Vec<(Chain<'s>, Vec<usize>)>,
    kind: &'static str,
    reach: Reach,
    tactic: Box<dyn Timed>,
) -> Chain<'s> {
    let inputs: Vec<Chain<'s>> = inputs.into_iter().map(|(chain, key)| chain.by_key(key)).collect();
    let (scope, as_of) = inputs.first().map(|first| (first.scope(), first.as_of())).expect("a tactic has an input");
    let edges = Edges::of_any(inputs.iter().map(Chain::edges));
    let tactic = Working::Events(EventVerb::new(tactic, reach, scope.worker().clone()));
    let open: Open<'s> = Box::new(move |opening| {
        let lines = inputs.into_iter().map(|chain| chain.into_line(opening, FrontierInterest::Always));
        Box::new(Meeting { lines: lines.collect(), tactic })
    });
    Chain::of_feed(scope, kind, as_of, edges, open)
}
