//! Functions of the rows of a key, inside of a loop.
//!
//! Law: the output of all epochs up to this one, accumulated up to a round, is the function of the
//! input of all epochs up to this one, accumulated up to that round.
//!
//! Method: an epoch evaluates the keys that it touches twice, from the round on in which it first
//! touches them: over their history of earlier epochs, and over that and the epoch's changes. The
//! difference is what the epoch puts out. Both evaluations are a tactic that takes rounds for
//! times, so a key is looked at again in every later round of its history. That is where a row
//! disappears that had a later reason to be there, or one that was in the way of another:
//!
//! ```text
//!   distinct:  epochs before   a +1 @2, a +1 @6         output   a +1 @2
//!              this epoch      a -1 @2                  output   a -1 @2, a +1 @6
//! ```
//!
//! State: the inputs' arrangements. Cost: in proportion to the histories of the keys touched.
//! Source: differential dataflow's reduce, which evaluates keys anew at all least upper bounds of
//! their times. Here one of two times of a pair is the present epoch, so these are rounds.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_arrangement::{Keys, Layout, Matches, Run, probe};
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, gather, hash};
use anabranch_flow::tactic::{Output, Timed};
use arrow::array::ArrayRef;

use super::moment::Moment;
use super::spec::TacticMaker;
use super::trace::{Entering, RoundTrace};
use crate::aggregate::group_table::GroupTable;

/// The input of a reduction.
#[derive(Clone, Copy)]
pub(super) enum ReduceInput<'a> {
    Inside(&'a RoundTrace),
    Outside(&'a Entering),
}

impl ReduceInput<'_> {
    fn layout(&self) -> &Arc<Layout> {
        match self {
            ReduceInput::Inside(trace) => trace.layout(),
            ReduceInput::Outside(entering) => entering.layout(),
        }
    }

    /// The changes of this round.
    pub fn changes(&self, moment: &Moment) -> Vec<Batch> {
        match self {
            ReduceInput::Inside(trace) => trace.delta().into_iter().flat_map(batches_of).collect(),
            ReduceInput::Outside(entering) => {
                let changes = entering.changes(moment).cloned();
                changes.map(|batch| batch.with_times(Times::Constant(moment.round))).into_iter().collect()
            }
        }
    }

    /// The rounds after this one in which rows are there, before the present round.
    pub fn rounds_after(&self, round: Time) -> BTreeSet<Time> {
        let ReduceInput::Inside(trace) = self else { return BTreeSet::new() };
        let runs = trace.runs_for(0);
        let later = runs.iter().flat_map(batches_of).filter_map(|batch| {
            let rows: Vec<u32> =
                (0..batch.len() as u32).filter(|row| batch.times().get(*row as usize) > round).collect();
            (!rows.is_empty()).then(|| batch.take(&rows))
        });
        let Some(rows) = Batch::concat(&later.collect::<Vec<_>>()).map(consolidate) else { return BTreeSet::new() };
        (0..rows.len()).map(|row| rows.times().get(row)).collect()
    }

    /// What was there before the present epoch, if nothing of it has come yet.
    fn history(&self, moment: &Moment) -> History {
        let (runs, before) = match self {
            _ if moment.is_first => (vec![], END),
            ReduceInput::Inside(trace) => (trace.runs_for(0), END),
            ReduceInput::Outside(entering) => (entering.runs_for(0), moment.from),
        };
        History { runs, before, is_timeless: matches!(self, ReduceInput::Outside(_)), layout: self.layout().clone() }
    }
}

fn batches_of(run: &Arc<Run>) -> impl Iterator<Item = Batch> {
    run.chunks()
        .iter()
        .map(|chunk| Batch::with_len(chunk.columns(), chunk.len(), chunk.times().clone(), chunk.diffs().clone()))
}

/// What an input had before the epoch.
struct History {
    runs: Vec<Arc<Run>>,
    before: Time,
    /// Times are epochs: all belongs to round 1.
    is_timeless: bool,
    layout: Arc<Layout>,
}

impl History {
    /// The rows with these keys, from `round` on.
    fn rows(&self, keys: &Keys, round: Time) -> Option<Batch> {
        if self.runs.is_empty() {
            return None;
        }
        let mut matches = Matches::default();
        probe(&self.runs, &self.layout.key, keys, 0, self.before, usize::MAX, &mut matches);
        if matches.is_empty() {
            return None;
        }
        let all: Vec<usize> = (0..self.layout.types.len()).collect();
        let times = match self.is_timeless {
            true => Times::Constant(round),
            false => Times::Column(matches.times().into_iter().map(|time| time.max(round)).collect()).simplify(),
        };
        let diffs = Diffs::Column(matches.diffs().into()).simplify();
        Some(Batch::with_len(matches.gather(&all), matches.len(), times, diffs))
    }
}

/// A reduction. See the module's page.
pub(super) struct Reduce {
    tactic: TacticMaker,
    is_over_nothing: bool,
    /// What the present epoch has touched.
    epoch: Option<Epoch>,
}

struct Epoch {
    histories: Vec<History>,
    keys: GroupTable,
    /// Evaluates histories and changes.
    new: Box<dyn Timed>,
    /// Evaluates histories alone; `None` where nothing was before.
    old: Option<Box<dyn Timed>>,
    /// What has come of either in this round.
    out: [Output; 2],
}

impl Reduce {
    pub fn new(tactic: &TacticMaker, is_over_nothing: bool) -> Reduce {
        Reduce { tactic: Arc::clone(tactic), is_over_nothing, epoch: None }
    }

    /// The same, between epochs.
    pub fn copy(&self) -> Reduce {
        Reduce::new(&self.tactic, self.is_over_nothing)
    }

    /// Takes the changes of a round. Returns whether there is something to do in it.
    pub fn begin(&mut self, inputs: &[ReduceInput<'_>], moment: &Moment) -> bool {
        let changes: Vec<Vec<Batch>> = inputs.iter().map(|input| input.changes(moment)).collect();
        let starts = self.is_over_nothing && moment.is_first && moment.round == 1;
        if changes.iter().all(Vec::is_empty) && !starts {
            return self.next_round() == Some(moment.round);
        }
        let Reduce { tactic, is_over_nothing, epoch } = self;
        let epoch = epoch.get_or_insert_with(|| Epoch::new(tactic, *is_over_nothing, inputs, moment));
        epoch.touch(&changes, moment.round);
        for (input, batches) in changes.into_iter().enumerate() {
            batches.into_iter().for_each(|batch| epoch.new.push(input, batch));
        }
        true
    }

    /// Goes on with a round; what it puts out, once that is all.
    pub fn work(&mut self, round: Time) -> Option<Output> {
        let Some(epoch) = &mut self.epoch else { return Some(Output::default()) };
        let [out_new, out_old] = &mut epoch.out;
        epoch.new.advance(round + 1, out_new);
        if epoch.new.has_more() {
            return None;
        }
        if let Some(old) = &mut epoch.old {
            old.advance(round + 1, out_old);
            if old.has_more() {
                return None;
            }
        }
        let [new, old] = std::mem::take(&mut epoch.out);
        Some(difference(new, old, round))
    }

    /// The next round in which something may change.
    pub fn next_round(&self) -> Option<Time> {
        let epoch = self.epoch.as_ref()?;
        let old = epoch.old.as_ref().and_then(|old| old.pending_from());
        epoch.new.pending_from().into_iter().chain(old).min()
    }

    /// The epoch is over.
    pub fn close(&mut self) {
        self.epoch = None;
    }
}

impl Epoch {
    fn new(tactic: &TacticMaker, is_over_nothing: bool, inputs: &[ReduceInput<'_>], moment: &Moment) -> Epoch {
        let histories: Vec<History> = inputs.iter().map(|input| input.history(moment)).collect();
        let layouts: Vec<Arc<Layout>> = inputs.iter().map(|input| input.layout().clone()).collect();
        let key_types: Vec<_> = layouts[0].key.iter().map(|column| layouts[0].types[*column].clone()).collect();
        // (Over nothing there was something before, if only that.)
        let has_old = is_over_nothing || histories.iter().any(|history| !history.runs.is_empty());
        let old = (has_old && !moment.is_first).then(|| tactic(&layouts));
        let (keys, new) = (GroupTable::new(&key_types), tactic(&layouts));
        Epoch { histories, keys, new, old, out: Default::default() }
    }

    /// Brings in the histories of keys that the epoch has not touched before.
    fn touch(&mut self, changes: &[Vec<Batch>], round: Time) {
        let Some(old) = &mut self.old else { return };
        let mut new_keys = NewKeys::default();
        for (history, batch) in self.histories.iter().zip(changes).flat_map(|(h, all)| all.iter().map(move |b| (h, b)))
        {
            let columns = history.layout.key.iter().map(|column| batch.column(*column).clone());
            new_keys.find(&mut self.keys, columns.collect(), batch.len());
        }
        let Some(keys) = new_keys.into_keys() else { return };
        for (input, history) in self.histories.iter().enumerate() {
            if let Some(rows) = history.rows(&keys, round) {
                old.push(input, rows.clone());
                self.new.push(input, rows);
            }
        }
    }
}

/// Keys that were not in a table.
#[derive(Default)]
struct NewKeys {
    columns: Vec<Columns>,
    n_keys: usize,
}

impl NewKeys {
    /// Puts keys into the table, and keeps those that are new.
    fn find(&mut self, table: &mut GroupTable, columns: Columns, n_rows: usize) {
        let n_known = table.n_slots();
        let touched = table.touch(&columns, &hash::hash_columns(&columns, n_rows));
        let firsts = touched.slot.iter().zip(&touched.first_row);
        let new: Vec<u32> = firsts.filter(|(slot, _)| **slot as usize >= n_known).map(|(_, row)| *row).collect();
        if !new.is_empty() {
            self.n_keys += new.len();
            self.columns.push(gather::take(&columns, &new));
        }
    }

    fn into_keys(self) -> Option<Keys> {
        let sources: Vec<&[ArrayRef]> = self.columns.iter().map(|columns| &**columns).collect();
        let columns = match sources[..] {
            [] => return None,
            [one] => one.iter().cloned().collect(),
            _ if sources[0].is_empty() => Columns::from(vec![]),
            _ => gather::concat(&sources),
        };
        let hashes = hash::hash_columns(&columns, self.n_keys);
        Some(Keys::from_columns(&columns, &hashes, Nulls::Equal).0)
    }
}

/// What one output has more than another, all in one round.
fn difference(new: Output, old: Output, round: Time) -> Output {
    Output { rows: less(new.rows, old.rows, round), errors: less(new.errors, old.errors, round) }
}

/// What some rows have more than others, all in one round.
pub(super) fn less(new: Vec<Batch>, old: Vec<Batch>, round: Time) -> Vec<Batch> {
    let old = old.into_iter().map(Batch::negate);
    let all: Vec<Batch> =
        new.into_iter().chain(old).map(|batch| batch.flatten().with_times(Times::Constant(round))).collect();
    let rest = Batch::concat(&all).map(consolidate);
    rest.into_iter().filter(|batch| !batch.is_empty()).collect()
}
