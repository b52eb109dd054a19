//! Groups, their instances, and the rounds in which events are shown to them.

use anabranch_spec::pattern::{Overlap, Simultaneous};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_batch::{Batch, Columns, Diffs, Time, Times, gather, hash};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::DetectSpec;
use super::step::{Candidate, DetectStep, Mask, Taken};
use crate::aggregate::group_table::GroupTable;
use crate::stateless::filter_project::error_rows;
use crate::temporal::events::{EventQueue, Ready, with_lifetimes};
use crate::temporal::rows::RowStore;
use crate::temporal::ticks::add;
use anabranch_flow::tactic::{Output, Timed};

/// The tactic. See the page of [`super`].
pub struct Detect {
    spec: DetectSpec,
    queue: EventQueue,
    table: GroupTable,
    /// By the table's slot.
    groups: Vec<Group>,
    registers: RowStore,
    /// The register of new instances, in `registers`.
    new_register: u32,
    /// One a slot: a time no later than the end of its oldest instance.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
}

/// Instances of one key.
#[derive(Debug, Default)]
struct Group {
    hash: u64,
    instances: Vec<Instance>,
    has_timer: bool,
}

/// One way to read the events so far.
#[derive(Clone, Copy, Debug)]
struct Instance {
    /// State of the automaton.
    state: u32,
    start: Time,
    /// Its register, in the store of all registers.
    register: u32,
}

/// Events of one group that are seen at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instant {
    pub(super) slot: u32,
    pub(super) time: Time,
    /// Which of [`Rounds::rows`].
    pub(super) from: u32,
    pub(super) to: u32,
}

/// The instants of a batch: first the first of each group, then the second of each, and so on.
struct Rounds {
    /// Rows of the batch, by group and time.
    rows: Vec<u32>,
    instants: Vec<Instant>,
    /// Where in `instants` each round ends.
    ends: Vec<usize>,
}

/// Complete matches under construction.
#[derive(Default)]
struct Matches {
    /// An event of each match's group: the last one.
    rows: Vec<u32>,
    times: Vec<Time>,
    untils: Vec<Time>,
    /// Their registers, in parts.
    registers: Vec<Columns>,
}

impl Detect {
    /// Looks for nothing yet.
    ///
    /// # Panics
    /// If the register is not one row, or the automaton names elements that are not there.
    pub fn new(spec: DetectSpec) -> Detect {
        assert!(spec.register.iter().all(|column| column.len() == 1), "a register is one row");
        assert!(spec.automaton.element.iter().all(|&element| element < spec.elements.len()), "elements exist");
        assert!(spec.duration > 0, "a duration is positive");
        let key_types: Vec<DataType> = spec.group.iter().map(|&column| spec.input_types[column].clone()).collect();
        let mut registers = RowStore::default();
        let new_register = registers.add(&spec.register, &[0])[0];
        Detect {
            spec,
            queue: EventQueue::default(),
            table: GroupTable::new(&key_types),
            groups: Vec::new(),
            registers,
            new_register,
            timers: BinaryHeap::new(),
        }
    }

    fn detect(&mut self, ready: &Ready, out: &mut Output) {
        let rounds = self.rounds(ready);
        let masks: Vec<Mask> = self.spec.elements.iter().map(|element| Mask::new(element, ready, out)).collect();
        let mut matches = Matches::default();
        let mut from = 0;
        for &to in &rounds.ends {
            self.round(ready, &rounds.rows, &rounds.instants[from..to], &masks, &mut matches, out);
            from = to;
        }
        let key: Vec<ArrayRef> = self.spec.group.iter().map(|&column| ready.batch.column(column).clone()).collect();
        out.give_rows(matches.finish(&key, &self.spec.register));
        let first_round = rounds.ends.first().map_or(0, |&end| end);
        rounds.instants[..first_round].iter().for_each(|instant| self.settle(instant.slot));
    }

    /// Enters the batch's groups, and puts its rows in order of being seen.
    fn rounds(&mut self, ready: &Ready) -> Rounds {
        let key: Vec<ArrayRef> = self.spec.group.iter().map(|&column| ready.batch.column(column).clone()).collect();
        let hashes = hash::hash_columns(&key, ready.len());
        let touched = self.table.touch(&key, &hashes);
        if self.groups.len() < self.table.n_slots() {
            self.groups.resize_with(self.table.n_slots(), Group::default);
        }
        for (&slot, &row) in touched.slot.iter().zip(&touched.first_row) {
            self.groups[slot as usize].hash = hashes[row as usize];
        }
        let mut rows: Vec<u32> = (0..ready.len() as u32).collect();
        if touched.slot.len() > 1 {
            // (Stable: rows of one group stay in order of time, then arrival.)
            rows.sort_by_key(|&row| touched.of_row[row as usize]);
        }
        let mut instants: Vec<(u32, Instant)> = Vec::new();
        let mut before: Option<(u32, Time)> = None;
        for (at, &row) in (0u32..).zip(&rows) {
            let (index, time) = (touched.of_row[row as usize], ready.times[row as usize]);
            let is_alone = self.spec.simultaneous == Simultaneous::Arrival;
            match instants.last_mut() {
                Some((_, last)) if before == Some((index, time)) && !is_alone => last.to = at + 1,
                last => {
                    let is_same_group = before.is_some_and(|(other, _)| other == index);
                    let round = last.filter(|_| is_same_group).map_or(0, |(round, _)| *round + 1);
                    let slot = touched.slot[index as usize];
                    instants.push((round, Instant { slot, time, from: at, to: at + 1 }));
                }
            }
            before = Some((index, time));
        }
        if touched.slot.len() > 1 {
            instants.sort_by_key(|&(round, _)| round);
        }
        let mut ends = Vec::new();
        for chunk in instants.chunk_by(|left, right| left.0 == right.0) {
            ends.push(ends.last().copied().unwrap_or(0) + chunk.len());
        }
        Rounds { rows, instants: instants.into_iter().map(|(_, instant)| instant).collect(), ends }
    }

    /// Shows one instant to each of some groups.
    fn round(
        &mut self,
        ready: &Ready,
        rows: &[u32],
        instants: &[Instant],
        masks: &[Mask],
        matches: &mut Matches,
        out: &mut Output,
    ) {
        let mut old_registers = Vec::new();
        let step = |registers| DetectStep { spec: &self.spec, ready, rows, instants, masks, registers };
        let mut candidates = Vec::new();
        {
            let step = step(&self.registers);
            for (index, instant) in (0u32..).zip(instants) {
                for instance in self.groups[instant.slot as usize].instances.drain(..) {
                    old_registers.push(instance.register);
                    if add(instance.start, self.spec.duration) > instant.time {
                        let next = &self.spec.automaton.next[instance.state as usize];
                        step.propose(index, next, instance.start, instance.register, &mut candidates);
                    }
                }
                if self.spec.overlap == Overlap::Allowed {
                    self.propose_new(&step, index, instant, &mut candidates);
                }
            }
        }
        let taken = step(&self.registers).take(candidates, out);
        let goes_on = |taken: &Taken| {
            let mut busy = vec![false; instants.len()];
            for candidate in &taken.candidates {
                busy[candidate.instant as usize] |= !self.spec.automaton.next[candidate.state as usize].is_empty();
            }
            busy
        };
        let begun = (self.spec.overlap == Overlap::Forbidden).then(|| {
            let busy = goes_on(&taken);
            let step = step(&self.registers);
            let mut candidates = Vec::new();
            for (index, instant) in (0u32..).zip(instants).filter(|&(index, _)| !busy[index as usize]) {
                self.propose_new(&step, index, instant, &mut candidates);
            }
            step.take(candidates, out)
        });
        for taken in std::iter::once(taken).chain(begun) {
            self.enter(taken, instants, rows, matches);
        }
        self.release(old_registers);
        for instant in instants {
            self.limit(ready, rows, instant, out);
        }
    }

    fn propose_new(&self, step: &DetectStep, index: u32, instant: &Instant, candidates: &mut Vec<Candidate>) {
        step.propose(index, &self.spec.automaton.first, instant.time, self.new_register, candidates);
    }

    /// Notes matches and keeps what goes on.
    fn enter(&mut self, taken: Taken, instants: &[Instant], rows: &[u32], matches: &mut Matches) {
        let Taken { candidates, registers } = taken;
        let select = |wanted: &dyn Fn(&Candidate) -> bool| -> Vec<u32> {
            let all = (0u32..).zip(&candidates);
            all.filter(|(_, candidate)| wanted(candidate)).map(|(index, _)| index).collect()
        };
        let automaton = &self.spec.automaton;
        let complete = select(&|candidate| automaton.is_final[candidate.state as usize]);
        for &index in &complete {
            let candidate = &candidates[index as usize];
            let instant = &instants[candidate.instant as usize];
            matches.rows.push(rows[instant.from as usize]);
            matches.times.push(instant.time);
            matches.untils.push(add(candidate.start, self.spec.duration));
        }
        let goes_on = select(&|candidate| !automaton.next[candidate.state as usize].is_empty());
        if !self.has_register() {
            for &index in &goes_on {
                let candidate = &candidates[index as usize];
                self.keep(instants, candidate, self.new_register);
            }
            return;
        }
        if !complete.is_empty() {
            matches.registers.push(gather::take(&registers, &complete));
        }
        for (&index, register) in goes_on.iter().zip(self.registers.add(&registers, &goes_on)) {
            let candidate = &candidates[index as usize];
            self.keep(instants, candidate, register);
        }
    }

    fn keep(&mut self, instants: &[Instant], candidate: &Candidate, register: u32) {
        let slot = instants[candidate.instant as usize].slot;
        let instance = Instance { state: candidate.state, start: candidate.start, register };
        self.groups[slot as usize].instances.push(instance);
    }

    /// A group with too many instances begins anew, and says so.
    fn limit(&mut self, ready: &Ready, rows: &[u32], instant: &Instant, out: &mut Output) {
        let instances = &mut self.groups[instant.slot as usize].instances;
        if instances.len() <= self.spec.instances_max {
            return;
        }
        let message = format!(
            "the pattern has more than {} matches in progress at {}; give it a shorter duration or conditions that exclude each other",
            self.spec.instances_max, instant.time
        );
        let registers = std::mem::take(instances).into_iter().map(|instance| instance.register).collect();
        self.release(registers);
        let row = ready.batch.slice(rows[instant.from as usize] as usize, 1);
        out.give_errors(error_rows(&row, &message));
    }

    /// Forgets registers, but for the one of new instances.
    fn release(&mut self, registers: Vec<u32>) {
        for register in registers.into_iter().filter(|&register| register != self.new_register) {
            self.registers.release(register);
        }
    }

    /// Frees a group without instances; makes sure that another is looked at when its oldest
    /// instance ends.
    fn settle(&mut self, slot: u32) {
        let group = &mut self.groups[slot as usize];
        if group.has_timer {
            return;
        }
        match group.instances.iter().map(|instance| instance.start).min() {
            Some(start) => {
                group.has_timer = true;
                self.timers.push(Reverse((add(start, self.spec.duration), slot)));
            }
            None => {
                let group = std::mem::take(group);
                self.table.release(slot, group.hash);
            }
        }
    }

    /// Drops instances that end at or before `upto`.
    fn wake(&mut self, upto: Time) {
        while let Some(Reverse((_, slot))) = self.timers.peek().copied().filter(|Reverse((time, _))| *time <= upto) {
            self.timers.pop();
            let duration = self.spec.duration;
            let group = &mut self.groups[slot as usize];
            group.has_timer = false;
            let is_over = |instance: &mut Instance| add(instance.start, duration) <= upto;
            let over: Vec<u32> = group.instances.extract_if(.., is_over).map(|instance| instance.register).collect();
            self.release(over);
            self.settle(slot);
        }
    }

    fn has_register(&self) -> bool {
        !self.spec.register.is_empty()
    }
}

impl Matches {
    /// Key columns, then registers.
    fn finish(self, key: &[ArrayRef], register: &[ArrayRef]) -> Batch {
        let len = self.rows.len();
        if len == 0 {
            return Batch::default();
        }
        let mut columns = gather::take(key, &self.rows).to_vec();
        if !register.is_empty() {
            let parts: Vec<&[ArrayRef]> = self.registers.iter().map(|part| &**part).collect();
            columns.extend(gather::concat(&parts).iter().cloned());
        }
        let batch = Batch::with_len(Columns::from(columns), len, Times::Constant(0), Diffs::Constant(1));
        with_lifetimes(batch, self.times, self.untils)
    }
}

impl Timed for Detect {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.queue.push_starts(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        if let Some(ready) = self.queue.take_before(upto) {
            self.detect(&ready, out);
        }
        self.wake(upto);
    }

    fn pending_from(&self) -> Option<Time> {
        self.queue.pending_from()
    }

    fn size_bytes(&self) -> usize {
        let instances: usize = self.groups.iter().map(|group| group.instances.capacity()).sum();
        let groups = self.groups.capacity() * size_of::<Group>() + instances * size_of::<Instance>();
        let timers = self.timers.len() * size_of::<(Time, u32)>();
        self.queue.size_bytes() + self.table.size_bytes() + self.registers.size_bytes() + groups + timers
    }
}
