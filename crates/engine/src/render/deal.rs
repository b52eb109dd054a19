//! Which imports deal their rows out by a key, so that rows need not move.
//!
//! All workers get the same batches of an input. An import may take this worker's rows of them by
//! the hash of the key that the first step behind it wants; what is left of a movement is then a
//! look at the hashes of the key. The choice is made for each user of an import, from the steps
//! alone, so all workers make it alike.
//!
//! ```text
//! import -> [stage] -> arrange by k     filter; the rows of k that are this worker's; the rest
//! ```
//!
//! A filter before is evaluated by every worker for all rows, so it has to be quick. Where the key
//! has texts rows move as they did, since all workers would hash all of them.

use std::collections::BTreeMap;

use anabranch_operators::aggregate::Combiner;

use super::physical::{Physical, Step, StepId};

/// Keys of more columns are hashed once, and rows move.
const KEY_COLUMNS_MAX: usize = 2;

/// How an import deals out rows for one of its users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    /// Columns of the import, by whose hash rows are dealt out.
    pub key: Vec<usize>,
    /// The columns of the user's input: of the import, or of the stage that is its user.
    pub wanted: Vec<usize>,
    /// Whether all batches are dealt out so. Else only those with many values of the key are, and
    /// the movement behind stays: of others rows are made fewer before they move.
    pub is_sure: bool,
}

/// The imports of inputs that deal out rows, and for which user.
pub(super) fn deals(physical: &Physical, users: &[usize]) -> BTreeMap<(StepId, StepId), Deal> {
    let steps = &physical.steps;
    let users_of = |step: StepId| {
        let reads = move |(index, user): (usize, &Step)| user.inputs().contains(&step).then_some(StepId(index));
        steps.iter().enumerate().filter_map(reads)
    };
    let of_user = |user: StepId| match &steps[user.0] {
        Step::Stage { stage, .. } if users[user.0] == 1 => {
            let (wanted, is_sure) = wanted(&steps[users_of(user).next()?.0])?;
            let key = stage.origins(&wanted)?;
            // (What is not kept is not there when rows are dealt out.)
            let is_kept = || stage.halves().0.shown(&key).is_some();
            (stage.filter.iter().all(|filter| filter.is_quick()) && is_kept()).then_some(Deal { key, wanted, is_sure })
        }
        user => wanted(user).map(|(wanted, is_sure)| Deal { key: wanted.clone(), wanted, is_sure }),
    };
    let mut deals = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        let import = StepId(index);
        // (History is read once: of several users none reads it alone.)
        let is_input = match step {
            Step::ImportStream { input: Some(_), history, .. } => history.is_none() || users[index] == 1,
            _ => false,
        };
        if is_input {
            deals.extend(users_of(import).filter_map(|user| Some(((import, user), of_user(user)?))));
        }
    }
    deals
}

/// Where columns that rows are placed by are among those that are read, if all are.
pub(super) fn placed(key: &[usize], columns: &[usize]) -> Option<Vec<usize>> {
    key.iter().map(|key| columns.iter().position(|column| column == key)).collect()
}

/// The key by which a step of one input wants its rows, and whether in any case.
fn wanted(step: &Step) -> Option<(Vec<usize>, bool)> {
    let (key, types, is_sure) = match step {
        Step::Arrange { key, types, .. } => (key.clone(), types, true),
        Step::Aggregate { aggregate, .. } => {
            (aggregate.keys.clone(), &aggregate.input_types, Combiner::of_aggregate(aggregate).is_none())
        }
        Step::SetOperation { inputs, types, .. } if inputs.len() == 1 => ((0..types.len()).collect(), types, false),
        _ => return None,
    };
    let is_short = |column: &usize| types[*column].is_primitive() && !types[*column].is_floating();
    let is_dealt = (1..=KEY_COLUMNS_MAX).contains(&key.len()) && key.iter().all(is_short);
    is_dealt.then_some((key, is_sure))
}
