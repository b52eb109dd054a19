//! One worker: its inputs, arrangements and dataflows, and the questions that wait for an answer.
//!
//! A panic while a dataflow is built, or while an arrangement is taken up for an answer (its held
//! updates are sorted then), fails the dataflow ([`Account::turn`]): no question looks at the
//! arrangement again. A panic while rows are read lets the question fall, and nothing else: what is
//! read are runs that do not change.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use anabranch_arrangement::{MergeEffort, Reader};
use anabranch_batch::{END, Time};
use anabranch_flow::Scope;
use anabranch_flow::account::{Account, Cause, Failure, Load};
use anabranch_flow::egress::{EgressRef, Item};
use anabranch_flow::hidden::HiddenTimes;
use anabranch_flow::import::{Horizon, no_horizon};
use anabranch_flow::limit::Limit;
use anabranch_flow::relay::{Relay, RelayedBatch};
use anabranch_flow::service::Service;
use anabranch_flow::sink::{CaptureRef, Fetched};
use anabranch_flow::steps::{Meter, StepStats};
use anabranch_flow::worker::{Dataflow, Worker};

use super::Reply;
use super::marks::Marks;
use super::published::{Publication, Publisher};
use super::shown::{Shown, ShownRows, messages, upper};
use super::spec::{ArrangementId, ArrangementStats, ChangeSpec, CollectionId, DataflowId, Egress, Peek, PeekResult};
use crate::render::physical::Physical;
use crate::render::{Exported, RenderOptions, Rendered, WorkerShared, render};

/// What a worker is told.
pub(super) enum Command {
    CreateInput {
        input: CollectionId,
        upper: Time,
    },
    GiveOwnTime {
        input: CollectionId,
    },
    DropInput {
        input: CollectionId,
    },
    CreateEvents {
        input: CollectionId,
    },
    Push {
        input: CollectionId,
        arrival: RelayedBatch,
        load: Arc<Load>,
    },
    Advance {
        upper: Time,
    },
    Mark {
        input: CollectionId,
        time: Time,
        value: i64,
    },
    AdvanceEvents {
        input: CollectionId,
        upper: Time,
    },
    Install {
        dataflow: DataflowId,
        name: String,
        physical: Box<Physical>,
        as_of: Time,
        egress: Egress,
        account: Account,
    },
    Uninstall {
        dataflow: DataflowId,
    },
    Peek {
        peek: Peek,
        reply: Reply<PeekResult>,
    },
    Await {
        dataflow: DataflowId,
        past: Time,
        reply: Reply<()>,
    },
    Fetch {
        dataflow: DataflowId,
        reply: Reply<(usize, ChangeSpec)>,
    },
    Notify {
        dataflow: DataflowId,
        reply: Reply<()>,
    },
    FetchEvents {
        dataflow: DataflowId,
        reply: Reply<EventsPart>,
    },
    Publish {
        arrangement: ArrangementId,
        publication: Arc<Publication>,
    },
    AllowCompaction {
        arrangement: ArrangementId,
        since: Time,
    },
    SetHorizons {
        after: Time,
        horizons: Arc<[(DataflowId, Time)]>,
    },
    Stats {
        reply: Reply<WorkerStats>,
    },
    Steps {
        reply: Reply<Vec<StepStats>>,
    },
    ResetSteps,
}

/// The events that left a dataflow on one worker.
pub(super) struct EventsPart {
    pub worker: usize,
    pub items: Vec<Item>,
}

/// What the arrangements of one worker hold.
pub(super) struct WorkerStats(pub Vec<ArrangementStats>);

/// What a worker has, beside its dataflows.
pub(super) struct WorkerState {
    effort: MergeEffort,
    relays: BTreeMap<CollectionId, Relay>,
    /// Those of `relays` that have a time of their own.
    event_inputs: BTreeSet<CollectionId>,
    arrangements: BTreeMap<ArrangementId, Exported>,
    /// The accounts of the dataflows that make the arrangements.
    makers: BTreeMap<ArrangementId, Account>,
    dataflows: BTreeMap<DataflowId, Installed>,
    marks: Marks,
    /// What parts of queries need not keep for others.
    floors: BTreeMap<ArrangementId, Limit>,
    waiting: Vec<Waiting>,
    /// This worker's number.
    index: usize,
    publisher: Publisher,
    /// Counts how long answering takes.
    answering: Meter,
}

struct Installed {
    built: Dataflow,
    exports: Vec<ArrangementId>,
    capture: Option<CaptureRef>,
    events: Option<EgressRef>,
    horizon: Horizon,
    hidden: HiddenTimes,
}

/// A question whose time is not complete yet.
enum Waiting {
    Peek {
        peek: Peek,
        /// Keeps the time that is asked for apart from later ones.
        hold: Option<Box<Exported>>,
        reply: Reply<PeekResult>,
    },
    /// A peek whose time is complete: the rows read so far, and where reading has got to.
    Reading {
        rows: ShownRows,
        result: PeekResult,
        reply: Reply<PeekResult>,
    },
    Await {
        dataflow: DataflowId,
        past: Time,
        reply: Reply<()>,
    },
    /// For changes that a caller may fetch.
    Changes {
        dataflow: DataflowId,
        reply: Reply<()>,
    },
}

/// The session's name among the readers of an arrangement.
const SESSION: &str = "the session";

/// Rows of an arrangement that one turn of a question reads, so that dataflows go on in between.
const PEEK_ROWS_PER_TURN: usize = 1 << 15;

impl WorkerState {
    pub(super) fn new(effort: MergeEffort, worker: &Worker) -> WorkerState {
        WorkerState {
            effort,
            relays: BTreeMap::new(),
            event_inputs: BTreeSet::new(),
            arrangements: BTreeMap::new(),
            makers: BTreeMap::new(),
            dataflows: BTreeMap::new(),
            marks: Marks::default(),
            floors: BTreeMap::new(),
            waiting: Vec::new(),
            index: worker.index(),
            publisher: Publisher::default(),
            answering: worker.context().meter("Answer"),
        }
    }
}

impl Service for WorkerState {
    type Command = Command;

    fn obey(&mut self, worker: &mut Worker, command: Command) {
        match command {
            Command::CreateInput { input, upper } => {
                self.relays.insert(input, Relay::new(upper));
            }
            Command::CreateEvents { input } => {
                self.relays.insert(input, Relay::new(Time::MIN));
                self.event_inputs.insert(input);
            }
            Command::GiveOwnTime { input } => _ = self.event_inputs.insert(input),
            Command::DropInput { input } => {
                self.relays.remove(&input);
                self.event_inputs.remove(&input);
                self.marks.forget(input);
            }
            Command::Push { input, arrival, load } => {
                let relay = self.relays.get_mut(&input).expect("the session pushes to inputs that exist");
                relay.push_counted(arrival, &load);
            }
            Command::Advance { upper } => {
                let timed = self.relays.iter_mut().filter(|(input, _)| !self.event_inputs.contains(input));
                timed.for_each(|(_, relay)| relay.advance(upper));
            }
            Command::Mark { input, time, value } => {
                self.marks.note(input, time, value);
                // (Queries that were installed with a part hold it by now themselves.)
                for (arrangement, limit) in &self.floors {
                    if let Some(Exported { rows, .. }) = self.arrangements.get_mut(arrangement) {
                        let upper = rows.upper();
                        limit.raise(rows, upper);
                    }
                }
            }
            Command::AdvanceEvents { input, upper } => {
                self.relays.get_mut(&input).expect("the session advances inputs that exist").advance(upper);
            }
            Command::Install { dataflow, name, physical, as_of, egress, account } => {
                self.install(worker, dataflow, &name, &physical, as_of, egress, account);
            }
            Command::Uninstall { dataflow } => self.uninstall(worker, dataflow),
            Command::Peek { peek, reply } => {
                self.waiting.push(Waiting::Peek { peek, hold: None, reply });
                self.answer_waiting();
            }
            Command::Await { dataflow, past, reply } => {
                self.waiting.push(Waiting::Await { dataflow, past, reply });
                self.answer_waiting();
            }
            Command::Fetch { dataflow, reply } => self.fetch(worker.index(), dataflow, &reply),
            Command::Notify { dataflow, reply } => {
                // (Who asks again has given up on the last answer.)
                let is_same =
                    |question: &Waiting| matches!(question, Waiting::Changes { dataflow: of, .. } if *of == dataflow);
                self.waiting.retain(|question| !is_same(question));
                self.waiting.push(Waiting::Changes { dataflow, reply });
                self.answer_waiting();
            }
            Command::FetchEvents { dataflow, reply } => self.fetch_events(worker.index(), dataflow, &reply),
            Command::Publish { arrangement, publication } => self.publisher.begin(arrangement, publication),
            Command::AllowCompaction { arrangement, since } => {
                if let Some(exported) = self.arrangements.get_mut(&arrangement) {
                    allow_compaction(&mut exported.rows, since);
                    allow_compaction(&mut exported.errors, since);
                }
            }
            Command::SetHorizons { after, horizons } => {
                for (dataflow, horizon) in horizons.iter() {
                    if let Some(installed) = self.dataflows.get(dataflow) {
                        installed.horizon.set((after, *horizon));
                        installed.hidden.hide(after, *horizon);
                    }
                }
            }
            Command::Stats { reply } => {
                let stats = self.arrangements.iter().map(|(id, exported)| arrangement_stats(*id, exported));
                // No receiver is left, so no answer is missed. Likewise below.
                let _ = reply.send(WorkerStats(stats.collect()));
            }
            Command::Steps { reply } => {
                let _ = reply.send(worker.context().clock().stats());
            }
            Command::ResetSteps => worker.context().clock().reset(),
        }
    }

    fn answer(&mut self) {
        self.publisher.publish(self.index, &self.arrangements, &self.makers);
        self.answer_waiting();
    }

    fn is_answering(&self) -> bool {
        self.waiting.iter().any(|question| matches!(question, Waiting::Reading { .. }))
    }

    fn is_behind(&self) -> bool {
        let timed = self.relays.iter().filter(|(input, _)| !self.event_inputs.contains(input));
        let inputs = timed.map(|(_, relay)| relay.upper()).min().unwrap_or(END);
        let exported = self.arrangements.values().map(upper);
        let captures = self.dataflows.values().filter_map(|installed| installed.capture.as_ref());
        exported.chain(captures.map(|capture| capture.borrow().upper())).any(|upper| upper < inputs)
    }

    fn shut_down(&mut self, worker: &mut Worker) {
        self.waiting.clear();
        self.publisher.end_all();
        self.arrangements.clear();
        for (_, installed) in std::mem::take(&mut self.dataflows) {
            worker.drop_dataflow(installed.built);
        }
        self.relays.clear();
    }
}

impl WorkerState {
    /// Questions about what was dropped are let fall; their asker hears that.
    fn answer_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let step = self.answering.step();
        let waiting = waiting.into_iter().filter_map(|question| self.try_answer(question)).collect();
        drop(step);
        self.waiting = waiting;
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of one command")]
    fn install(
        &mut self,
        worker: &mut Worker,
        dataflow: DataflowId,
        name: &str,
        physical: &Physical,
        as_of: Time,
        egress: Egress,
        account: Account,
    ) {
        let horizon = no_horizon();
        let hidden = HiddenTimes::default();
        let options = RenderOptions {
            as_of,
            horizon: Rc::clone(&horizon),
            hidden: hidden.clone(),
            effort: self.effort,
            egress,
            marks: self.marks.clone(),
        };
        if physical.uses().iter().any(|used| !self.arrangements.contains_key(used)) {
            // (The session has not heard yet that what makes it could not be built here.)
            let message = "what it reads has failed".to_owned();
            account.fail(Failure { cause: Cause::Reads, message });
        }
        let mut shared = WorkerShared { relays: &mut self.relays, arrangements: &self.arrangements };
        let build = |scope: Scope<'_>| render(scope, name, physical, &mut shared, options);
        let Some((rendered, built)) = worker.dataflow_of(name, account.clone(), build) else { return };
        let exports = rendered.exports.iter().map(|(arrangement, _)| *arrangement).collect();
        for (export, _) in physical.exports.iter().filter(|(export, _)| export.is_part) {
            if let Some(floor) = &physical.floor {
                self.floors.insert(export.arrangement, self.marks.limit(floor));
            }
        }
        for (arrangement, exported) in rendered.exports {
            let mut exported = Exported { rows: exported.rows.named(SESSION), errors: exported.errors.named(SESSION) };
            // Nothing before is known.
            allow_compaction(&mut exported.rows, as_of);
            allow_compaction(&mut exported.errors, as_of);
            self.arrangements.insert(arrangement, exported);
            self.makers.insert(arrangement, account.clone());
        }
        let Rendered { capture, events, .. } = rendered;
        self.dataflows.insert(dataflow, Installed { built, exports, capture, events, horizon, hidden });
    }

    fn uninstall(&mut self, worker: &mut Worker, dataflow: DataflowId) {
        if let Some(installed) = self.dataflows.remove(&dataflow) {
            worker.drop_dataflow(installed.built);
            for arrangement in installed.exports {
                let exported = self.arrangements.remove(&arrangement);
                // (As in `Worker::drop_dataflow`: what has failed half done may panic once more.)
                let _ = catch_unwind(AssertUnwindSafe(|| drop(exported)));
                self.makers.remove(&arrangement);
                self.publisher.end(arrangement);
                self.floors.remove(&arrangement);
            }
        }
        self.answer_waiting();
    }

    /// The question, while it has to wait.
    fn try_answer(&self, question: Waiting) -> Option<Waiting> {
        match question {
            Waiting::Peek { peek, hold, reply } => or_let_fall(|| self.try_peek(peek, hold, reply)),
            Waiting::Reading { rows, result, reply } => or_let_fall(|| read_on(rows, result, reply)),
            Waiting::Await { dataflow, past, reply } => {
                self.try_await(dataflow, past, &reply).then_some(Waiting::Await { dataflow, past, reply })
            }
            Waiting::Changes { dataflow, reply } => {
                let capture = self.dataflows.get(&dataflow)?.capture.as_ref()?;
                if capture.borrow().is_empty() {
                    return Some(Waiting::Changes { dataflow, reply });
                }
                let _ = reply.send(());
                None
            }
        }
    }

    fn try_peek(&self, peek: Peek, hold: Option<Box<Exported>>, reply: Reply<PeekResult>) -> Option<Waiting> {
        let exported = self.arrangements.get(&peek.arrangement)?;
        let maker = self.makers.get(&peek.arrangement)?;
        if upper(exported) <= peek.at {
            // The session does not wait for the answer: commits may follow, and compaction with
            // them.
            let hold = hold.unwrap_or_else(|| {
                let mut hold = exported.clone();
                allow_compaction(&mut hold.rows, peek.at);
                allow_compaction(&mut hold.errors, peek.at);
                Box::new(hold)
            });
            return Some(Waiting::Peek { peek, hold: Some(hold), reply });
        }
        let shown = maker.turn(|| Shown::of(exported))?;
        let errors = shown.errors(peek.at);
        read_on(shown.rows(&peek.rows, peek.at), PeekResult { batches: vec![], errors }, reply)
    }

    /// True while the question has to wait.
    fn try_await(&self, dataflow: DataflowId, past: Time, reply: &Reply<()>) -> bool {
        let Some(upper) = self.upper(dataflow) else { return false };
        if upper <= past {
            return true;
        }
        let _ = reply.send(());
        false
    }

    /// All that a dataflow makes is complete before this time; `None` when there is no such
    /// dataflow.
    pub(super) fn upper(&self, dataflow: DataflowId) -> Option<Time> {
        let installed = self.dataflows.get(&dataflow)?;
        let exports = installed.exports.iter().filter_map(|arrangement| self.arrangements.get(arrangement));
        let complete = exports.map(|exported| exported.rows.upper().min(exported.errors.upper()));
        let captured = installed.capture.iter().map(|capture| capture.borrow().upper());
        let events = installed.events.iter().map(|events| events.borrow().upper);
        Some(complete.chain(captured).chain(events).min().unwrap_or(END))
    }

    fn fetch(&mut self, worker: usize, dataflow: DataflowId, reply: &Reply<(usize, ChangeSpec)>) {
        let installed = self.dataflows.get(&dataflow);
        let Some(capture) = installed.and_then(|installed| installed.capture.as_ref()) else {
            return;
        };
        let Fetched { rows, errors, upper, coalesced, only_comes } = capture.borrow_mut().fetch();
        let errors = errors.iter().flat_map(messages).collect();
        let changes = ChangeSpec { batches: rows, errors, upper, coalesced, only_comes };
        let _ = reply.send((worker, changes));
    }

    fn fetch_events(&mut self, worker: usize, dataflow: DataflowId, reply: &Reply<EventsPart>) {
        let installed = self.dataflows.get(&dataflow);
        let Some(events) = installed.and_then(|installed| installed.events.as_ref()) else {
            return;
        };
        let items = std::mem::take(&mut events.borrow_mut().items);
        let _ = reply.send(EventsPart { worker, items });
    }
}

/// The question, if it still has to wait. One that panics is let fall: its asker hears that.
fn or_let_fall(answer: impl FnOnce() -> Option<Waiting>) -> Option<Waiting> {
    catch_unwind(AssertUnwindSafe(answer)).ok().flatten()
}

/// Reads a portion; the last one sends the answer.
fn read_on(mut rows: ShownRows, mut result: PeekResult, reply: Reply<PeekResult>) -> Option<Waiting> {
    result.batches.extend(rows.next_portion(PEEK_ROWS_PER_TURN).unwrap_or_default());
    if !rows.is_done() {
        return Some(Waiting::Reading { rows, result, reply });
    }
    // No receiver is left, so no answer is missed.
    let _ = reply.send(result);
    None
}

fn allow_compaction(reader: &mut Reader, since: Time) {
    if since > reader.since() {
        reader.set_since(since);
    }
}

fn arrangement_stats(arrangement: ArrangementId, exported: &Exported) -> ArrangementStats {
    let stats = exported.rows.stats();
    let (_, slowest_reader) = exported.rows.slowest();
    ArrangementStats {
        arrangement,
        rows: stats.rows,
        bytes: stats.bytes,
        runs: stats.runs,
        readers: stats.readers,
        readable: exported.rows.since(),
        since: stats.since,
        slowest_reader: slowest_reader.to_string(),
        upper: stats.upper,
    }
}
