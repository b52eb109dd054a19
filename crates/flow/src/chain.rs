//! Chains: steps that follow each other on one worker are one operator of the runtime.
//!
//! Law: a chain puts out what its steps would, one operator each. Nothing is exchanged between two
//! of its steps, so every step sees the frontier of the first: what came before it is done with,
//! from end to end, in one turn, or in several when it is much.
//!
//! ```text
//!   feeds                    links                              end
//!   [ import | edge | join ] -> [ stage ] -> [ aggregate ] ->   [ edge | arrangement ]
//! ```
//!
//! A *feed* brings rows from outside of the operator and says how far time has come; a *link* is a
//! function of batches, or a [`Timed`] tactic; the end is an edge to other operators, an
//! arrangement (see [`crate::arrange`]), or where changes leave (see [`crate::sink`]). With several
//! workers a step that wants equal keys on one worker begins a new chain.
//!
//! Why: a round of one row costs what its operators cost the runtime: each is scheduled, and each
//! of its edges has messages to count and frontiers to move (some seven thousand instructions an
//! operator and round, half of what a commit of one row to a filter and a sum took). Cost: a turn
//! is the work of all its steps, so it may take longer; what is cut by fuel (imports, joins, a
//! [`Timed`] tactic that [has more](Timed::has_more)) still is: the steps behind see the frontier
//! only once all of it is out. It is counted as a step of the feed's kind, or the last link's;
//! arranging at the end is counted by itself. Source: Trill 3 (operators push batches to each other
//! directly); Quill 4 (only a re-shard ends a pipeline).

use std::rc::Rc;

use anabranch_arrangement::{Audience, Origin};
use anabranch_batch::{Batch, END, Time};
use timely::container::NoopBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::progress::operate::FrontierInterest;

use crate::account::memory::{Gauge, MemoryPart};
use crate::advancing::Advancing;
use crate::counting::Counting;
use crate::drive::{HeldCapability, send};
use crate::exchange::{CountedRoute, Route};
use crate::line::{Apply, Feed, Frontiers, Line, Link, Meeting, Working};
use crate::opening::{Edges, Open, Opening};
use crate::parcel::Parcel;
use crate::pulled::Pulled;
use crate::recall::Recalling;
use crate::scope::{Scope, Stream};
use crate::steps::Meter;
use crate::tactic::{Output, Timed};
use crate::waker::Waker;
use crate::worker::WorkerContext;

/// Steps under construction. They become an operator with [`into_stream`](Chain::into_stream),
/// [`arrange_for`](Chain::arrange_for) or [`capture`](crate::sink::capture).
pub struct Chain<'s> {
    scope: Scope<'s>,
    /// The kind of operator: that of the feed, or of the last link when that is an edge.
    kind: &'static str,
    has_feed: bool,
    heads: Vec<Head<'s>>,
    links: Vec<Link>,
    as_of: Time,
    /// Rows are on the worker of the hash of these columns, in this order.
    placed_by: Option<Vec<usize>>,
    /// The operator of the dataflow whose rows they are, for counts of what moves.
    operator: Option<usize>,
}

enum Head<'s> {
    /// The rows of a stream, exchanged between several workers if there is a route.
    Edge(Stream<'s>, Option<CountedRoute>),
    /// What a feed brings.
    Feed(Edges, Open<'s>),
}

impl Head<'_> {
    fn edges(&self) -> Edges {
        match self {
            Head::Edge(..) => Edges::Some,
            Head::Feed(edges, _) => *edges,
        }
    }
}

impl<'s> Chain<'s> {
    /// The rows of a stream. What follows may put out rows at `as_of` even if nothing comes in.
    pub fn of_stream(stream: Stream<'s>, as_of: Time) -> Chain<'s> {
        Chain {
            scope: stream.scope(),
            kind: "Edge",
            has_feed: false,
            heads: vec![Head::Edge(stream, None)],
            links: vec![],
            as_of,
            placed_by: None,
            operator: None,
        }
    }

    /// What a feed of this kind of operator brings, from `as_of` on.
    pub fn of_feed(scope: Scope<'s>, kind: &'static str, as_of: Time, edges: Edges, open: Open<'s>) -> Chain<'s> {
        let heads = vec![Head::Feed(edges, open)];
        Chain { scope, kind, has_feed: true, heads, links: vec![], as_of, placed_by: None, operator: None }
    }

    /// The rows and row errors of all chains together.
    ///
    /// # Panics
    /// Without a chain.
    pub fn union(chains: Vec<Chain<'s>>) -> Chain<'s> {
        let mut chains = chains.into_iter().map(Chain::without_links);
        let mut all = chains.next().expect("a union has a part");
        for chain in chains {
            all.heads.extend(chain.heads);
            all.placed_by = all.placed_by.filter(|placed| chain.placed_by.as_ref() == Some(placed));
        }
        all
    }

    /// The same with its links in the heads.
    fn without_links(self) -> Chain<'s> {
        if self.links.is_empty() {
            return self;
        }
        let (scope, kind, as_of, edges) = (self.scope.clone(), self.kind, self.as_of, self.edges());
        let placed_by = self.placed_by.clone();
        let open: Open<'s> = Box::new(move |opening| {
            let interest = opening.interest();
            Box::new(self.into_line(opening, interest))
        });
        Chain::of_feed(scope, kind, as_of, edges, open).placed(placed_by)
    }

    pub(crate) fn into_line(self, opening: &mut Opening<'s>, interest: FrontierInterest) -> Line {
        let looks = self.interest() != FrontierInterest::Never;
        let interest = if looks { FrontierInterest::Always } else { interest };
        Line { feeds: open_all(self.heads, opening, interest), links: self.links }
    }

    /// Whether rows come over an edge.
    pub fn edges(&self) -> Edges {
        Edges::of_any(self.heads.iter().map(Head::edges))
    }

    /// Then a function of each batch of rows, some of which may be absent; row errors pass.
    pub fn then(mut self, kind: &'static str, apply: impl FnMut(Batch, &mut Output) + 'static) -> Chain<'s> {
        self.links.push(Link::Apply(Box::new(apply)));
        self.placed_by = None;
        self.called(kind)
    }

    /// Then a function of each batch of rows if rows of equal `key` are still to move to one
    /// worker.
    pub fn then_unless_placed(
        self,
        key: &[usize],
        kind: &'static str,
        apply: impl FnOnce() -> Option<Apply>,
    ) -> Chain<'s> {
        if self.is_together(key) {
            return self;
        }
        match apply() {
            Some(apply) => self.then(kind, apply),
            None => self,
        }
    }

    /// Whether rows are on the worker of the hash of `key`.
    fn is_placed(&self, key: &[usize]) -> bool {
        self.scope.peers() == 1 || self.placed_by.as_deref() == Some(key)
    }

    /// Whether rows of equal `key` are on one worker: those of equal values in some of its columns
    /// are. (Rows of no key are on one worker all together, which nothing else is to be.)
    pub(crate) fn is_together(&self, key: &[usize]) -> bool {
        let is_part = |placed: &Vec<usize>| !placed.is_empty() && placed.iter().all(|column| key.contains(column));
        self.is_placed(key) || self.placed_by.as_ref().is_some_and(is_part)
    }

    /// Says that rows are on the worker of the hash of these columns; `None` says nothing.
    pub fn placed(mut self, columns: Option<Vec<usize>>) -> Chain<'s> {
        self.placed_by = columns;
        self
    }

    /// Columns by whose hash rows are on workers, if that is known.
    pub fn places(&self) -> Option<&[usize]> {
        self.placed_by.as_deref()
    }

    /// Then a tactic of one input, with rows of equal `key` on one worker. What it puts out has the
    /// key in the columns `key_out`, if it has it at all.
    pub fn then_timed(
        self,
        kind: &'static str,
        key: Vec<usize>,
        tactic: Box<dyn Timed>,
        key_out: Option<Vec<usize>>,
    ) -> Chain<'s> {
        let mut chain = if self.is_together(&key) { self } else { self.by_key(key.clone()) };
        let advancing = Advancing::new(tactic, chain.as_of, chain.scope.worker().clone());
        chain.links.push(Link::Tactic(Working::Timed(advancing)));
        let place_out = |column: &usize| {
            let place = key.iter().position(|key| key == column)?;
            key_out.as_ref()?.get(place).copied()
        };
        chain.placed_by = chain.placed_by.and_then(|placed| placed.iter().map(place_out).collect());
        chain.called(kind)
    }

    /// Then a link behind which the place of rows is not known.
    pub(crate) fn linked(mut self, kind: &'static str, link: Link) -> Chain<'s> {
        self.links.push(link);
        self.placed_by = None;
        self.called(kind)
    }

    /// What stands here is the end of an operator of the dataflow: its rows, time and bytes are
    /// counted in the dataflow's account, from the operator before.
    pub fn counted(mut self, operator: usize) -> Chain<'s> {
        self.links.push(Link::Count(Counting::new(self.scope.worker(), self.scope.index(), operator)));
        self
    }

    /// What stands here is a part of an operator of the dataflow, of which more follows: its time
    /// and bytes are counted with the operator's.
    pub fn counted_in_part(mut self, operator: usize) -> Chain<'s> {
        let counting = Counting::new(self.scope.worker(), self.scope.index(), operator);
        self.links.push(Link::Count(counting.of_part()));
        self
    }

    /// The rows are those of an operator of the dataflow: what moves of them is counted as its own.
    pub fn of_operator(mut self, operator: usize) -> Chain<'s> {
        self.operator = Some(operator);
        self
    }

    /// The step that can tell all rows that have come to the end: the last step, if it can.
    pub(crate) fn origin(&mut self) -> Option<Rc<dyn Origin>> {
        let count = self.links.pop_if(|last| matches!(last, Link::Count(_)));
        let last = self.links.pop_if(|last| last.recalls());
        let origin: Option<Rc<dyn Origin>> = match last {
            Some(Link::Tactic(Working::Timed(last))) => {
                let recalling = Recalling::new(last.tactic);
                let last = Advancing { tactic: Box::new(recalling.clone()), ..last };
                self.links.push(Link::Tactic(Working::Timed(last)));
                Some(Rc::new(recalling))
            }
            _ => None,
        };
        self.links.extend(count);
        origin
    }

    /// The chain as a feed of the operator or task that is being made.
    pub fn into_feed(self, opening: &mut Opening<'s>) -> Box<dyn Feed> {
        Box::new(self.into_line(opening, FrontierInterest::Always))
    }

    /// With all rows on the worker of this index.
    pub fn on_worker(self, index: usize) -> Chain<'s> {
        if self.scope.peers() == 1 {
            return self;
        }
        self.moved(Route::ToWorker(index))
    }

    fn called(mut self, kind: &'static str) -> Chain<'s> {
        if !self.has_feed {
            self.kind = kind;
        }
        self
    }

    /// With rows of equal `key` on one worker.
    pub(crate) fn by_key(self, key: Vec<usize>) -> Chain<'s> {
        if self.is_placed(&key) {
            return self;
        }
        self.moved(Route::ByKey(key.clone())).placed(Some(key))
    }

    /// With its rows where a route says.
    fn moved(self, route: Route) -> Chain<'s> {
        let (scope, kind, as_of) = (self.scope.clone(), self.kind, self.as_of);
        let count = |operator| scope.worker().account().count_moves(operator, scope.index(), scope.peers());
        let movement = CountedRoute { route, counter: self.operator.map(count) };
        let heads = vec![Head::Edge(self.into_stream(), Some(movement))];
        Chain { scope, kind, has_feed: false, heads, links: vec![], as_of, placed_by: None, operator: None }
    }

    /// The end of the chain as an edge.
    pub fn into_stream(mut self) -> Stream<'s> {
        if let [Head::Edge(_, None)] = &self.heads[..]
            && self.links.is_empty()
            && let Some(Head::Edge(stream, _)) = self.heads.pop()
        {
            return stream;
        }
        let (interest, name, worker) = (self.interest(), self.kind.to_owned(), self.scope.worker().clone());
        let (mut operator, mut steps) = self.open(name, interest);
        let (output, stream) = operator.new_output::<Parcel>();
        let mut output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(output);
        let account = worker.account().clone();
        operator.build(move |mut capabilities| {
            steps.start_with(HeldCapability::new(capabilities.pop().expect("one output")));
            move |frontiers| {
                let Some(mut turn) = account.turn(|| steps.turn(frontiers)) else { return };
                if !turn.out.is_empty() {
                    let capability = steps.hold.capability().expect("what is put out came with a capability");
                    send(&mut turn.out, capability, &mut output.activate());
                }
                steps.release(turn.pending);
            }
        });
        Stream::new(stream, worker)
    }

    /// The end of the chain as a function of what each turn brings, in a task if nothing comes over
    /// an edge, else in an operator without an output, for which the runtime tracks no progress.
    /// Operators that hear what the end makes are its audience.
    pub(crate) fn into_end(
        mut self,
        name: String,
        audience: Option<Audience>,
        mut end: impl FnMut(ChainTurn, &Waker) + 'static,
    ) {
        // (An end has a turn whenever the frontier moves. Operators behind an edge need not.)
        for link in &mut self.links {
            if let Link::Count(counting) = link {
                counting.tell_time();
            }
        }
        // Returns whether there may be another turn.
        let account = self.scope.worker().account().clone();
        let mut turn_of = move |steps: &mut Steps, frontiers: &Frontiers| {
            let goes_on = account.turn(|| {
                let turn = steps.turn(frontiers);
                let goes_on = turn.upto < END;
                end(turn, &steps.waker);
                goes_on
            });
            // (What has failed is kept until the dataflow is dropped.)
            goes_on.unwrap_or(true)
        };
        match self.edges() {
            Edges::None => {
                let tasks = self.scope.worker().tasks().clone();
                let waker = tasks.reserve();
                let task = waker.id();
                let mut steps = self.open_task(Waker::of_task(waker));
                tasks.start(task, move || turn_of(&mut steps, &[]));
            }
            Edges::Some => {
                let (operator, mut steps) = self.open(name, FrontierInterest::Always);
                audience.into_iter().for_each(|audience| steps.waker.add(audience));
                operator.build_reschedule(move |_| move |frontiers| turn_of(&mut steps, frontiers));
            }
        }
    }

    pub(crate) fn worker(&self) -> &WorkerContext {
        self.scope.worker()
    }

    pub(crate) fn as_of(&self) -> Time {
        self.as_of
    }

    pub(crate) fn scope(&self) -> Scope<'s> {
        self.scope.clone()
    }

    /// When the end is an edge.
    fn interest(&self) -> FrontierInterest {
        self.links.iter().map(Link::interest).fold(FrontierInterest::Never, closer)
    }

    /// An operator with the inputs of the feeds, and the steps for it. `interest` is that of edges;
    /// other feeds look at every frontier.
    pub(crate) fn open(self, name: String, interest: FrontierInterest) -> (OperatorBuilder<'s, Time>, Steps) {
        let mut opening = Opening::of_operator(name, &self.scope);
        let steps = self.steps(&mut opening, interest);
        // (An operator without inputs is not scheduled by what comes in.)
        steps.waker.go_on();
        (opening.into_operator(), steps)
    }

    /// The steps of a task, which its waker wakes.
    fn open_task(self, waker: Waker) -> Steps {
        self.steps(&mut Opening::of_task(waker), FrontierInterest::Always)
    }

    fn steps(self, opening: &mut Opening<'s>, interest: FrontierInterest) -> Steps {
        let Chain { scope, kind, heads, links, as_of, .. } = self;
        let (feeds, waker) = (open_all(heads, opening, interest), opening.waker().clone());
        Steps {
            line: Line { feeds, links },
            as_of,
            hold: HeldCapability::none(),
            waker,
            meter: scope.worker().meter(kind),
            gauge: Gauge::new(scope.worker().account().clone(), MemoryPart::State),
        }
    }
}

/// The interest of two links in one frontier.
fn closer(left: FrontierInterest, right: FrontierInterest) -> FrontierInterest {
    match (left, right) {
        (FrontierInterest::Always, _) | (_, FrontierInterest::Always) => FrontierInterest::Always,
        (FrontierInterest::IfCapability, _) | (_, FrontierInterest::IfCapability) => FrontierInterest::IfCapability,
        (FrontierInterest::Never, FrontierInterest::Never) => FrontierInterest::Never,
    }
}

fn open_all<'s>(heads: Vec<Head<'s>>, opening: &mut Opening<'s>, interest: FrontierInterest) -> Vec<Box<dyn Feed>> {
    let open = |head| match head {
        Head::Feed(_, open) => opening.feed(open, interest),
        Head::Edge(stream, movement) => opening.edge(stream, movement, interest),
    };
    heads.into_iter().map(open).collect()
}

/// Applies a function to every batch of rows; row errors pass.
pub fn stateless<'s>(
    stream: Stream<'s>,
    kind: &'static str,
    apply: impl FnMut(Batch, &mut Output) + 'static,
) -> Stream<'s> {
    Chain::of_stream(stream, Time::MIN).then(kind, apply).into_stream()
}

/// A [`Timed`] tactic over several chains, with rows of equal keys on one worker.
///
/// The tactic may put out rows at `as_of` even if nothing comes in.
pub fn timed<'s>(
    inputs: Vec<(Chain<'s>, Vec<usize>)>,
    kind: &'static str,
    as_of: Time,
    tactic: Box<dyn Timed>,
) -> Chain<'s> {
    let inputs: Vec<Chain<'s>> = inputs.into_iter().map(|(chain, key)| chain.by_key(key)).collect();
    let scope = inputs.first().expect("a tactic has an input").scope.clone();
    let edges = Edges::of_any(inputs.iter().map(Chain::edges));
    let tactic = Working::Timed(Advancing::new(tactic, as_of, scope.worker().clone()));
    let open: Open<'s> = Box::new(move |opening| {
        let lines = inputs.into_iter().map(|chain| chain.into_line(opening, FrontierInterest::Always));
        Box::new(Meeting { lines: lines.collect(), tactic })
    });
    Chain::of_feed(scope, kind, as_of, edges, open)
}

/// The steps of an operator at work.
pub(crate) struct Steps {
    line: Line,
    as_of: Time,
    /// The right to send whatever is kept back.
    pub hold: HeldCapability,
    waker: Waker,
    meter: Meter,
    gauge: Gauge,
}

/// What a turn has brought to the end of a chain.
pub(crate) struct ChainTurn {
    pub out: Output,
    /// No row before this time will come.
    pub upto: Time,
    /// Rows that are kept back may be put out from this time on.
    pub pending: Option<Time>,
}

impl Steps {
    /// The right to send from the start.
    pub fn start_with(&mut self, mut hold: HeldCapability) {
        hold.release(Some(self.as_of));
        self.hold = hold;
    }

    /// What wakes the operator.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// One turn of all feeds and links.
    pub fn turn(&mut self, frontiers: &Frontiers) -> ChainTurn {
        let _step = self.meter.step();
        self.waker.begin_turn();
        let Pulled { mut out, upto, pending, has_more, n_rows } = self.line.turn(frontiers, &mut self.hold);
        self.gauge.note(n_rows, || self.line.held_bytes());
        if has_more {
            self.waker.go_on();
        }
        out.rows = out.rows.into_iter().map(Batch::compact).collect();
        ChainTurn { out, upto, pending }
    }

    /// Keeps the right to send from `pending` on, or nothing.
    pub fn release(&mut self, pending: Option<Time>) {
        self.hold.release(pending);
    }
}
