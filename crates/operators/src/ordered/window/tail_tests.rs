//! Rows behind the end of a partition against the whole partition: what is put out is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_flow::tactic::{Output, Timed};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use anabranch_spec::order::SortKey;
use anabranch_spec::window::{Place, Window, WindowCall, WindowFunction};
use arrow::array::{ArrayRef, BooleanArray, Int64Array};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;

use super::{WindowSpec, WindowTactic};

/// A generator of numbers below `n`.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// A row: partition, order, value (NULL if not there), key of a bound; when, and how often.
pub(super) type Update = (i64, i64, Option<i64>, Time, Diff);

pub(super) fn back_frame(dice: &mut Dice) -> WindowFrame {
    use FrameBound::{First, Key, Peers, Rows};
    // (Column 3 is the order less five.)
    let start = dice.pick(&[First, First, Rows(0), Rows(-1), Rows(-3), Peers(0), Peers(-1), Peers(-2), Key(3)]);
    let end = dice.pick(&[Rows(0), Rows(0), Rows(-1), Rows(-2), Peers(0), Peers(0), Peers(-1), Rows(1)]);
    let exclude = if dice.below(8) == 0 { Exclude::Row } else { Exclude::Nothing };
    WindowFrame { start, end, exclude }
}

pub(super) fn call(dice: &mut Dice, frame: fn(&mut Dice) -> WindowFrame) -> WindowCall {
    use AggregateFunction::{ArrayAgg, Avg, Count, Max, Min, Sum};
    let filter = (dice.below(4) == 0).then_some(4);
    let aggregate = |function: AggregateFunction, argument, output_type| {
        WindowFunction::Aggregate(AggregateCall {
            function,
            argument,
            distinct: false,
            filter,
            order: vec![],
            output_type,
        })
    };
    let list = DataType::new_list(DataType::Int64, true);
    let function = match dice.below(9) {
        0 => aggregate(Count, None, DataType::Int64),
        1 => aggregate(Count, Some(2), DataType::Int64),
        2 => aggregate(Min, Some(2), DataType::Int64),
        3 => aggregate(Max, Some(2), DataType::Int64),
        4 => aggregate(Avg, Some(2), DataType::Float64),
        5 => aggregate(ArrayAgg, Some(2), list),
        6 => WindowFunction::Value {
            column: 2,
            place: dice.pick(&[Place::First, Place::Last, Place::Nth(0), Place::Nth(3)]),
        },
        _ => aggregate(Sum, Some(2), DataType::Int64),
    };
    WindowCall { function, frame: frame(dice) }
}

/// What comes, mostly behind what was there; now and then something goes, or comes in the middle.
fn updates(dice: &mut Dice, there: &mut Vec<Update>, ends: &mut [i64], from: Time, n_times: usize) -> Vec<Update> {
    let mut updates = Vec::new();
    for time in from..from + n_times as Time {
        for _ in 0..dice.below(4) {
            let partition = dice.below(ends.len());
            let is_behind = dice.below(12) > 0;
            let order = match is_behind {
                true => ends[partition] + dice.below(3) as i64,
                false => ends[partition] - dice.below(6) as i64,
            };
            ends[partition] = ends[partition].max(order);
            // (Two of the greatest are no sum; one of the least makes it one again.)
            let value = match dice.below(12) {
                0 => None,
                1 => Some(i64::MAX - 5),
                2 => Some(-i64::MAX),
                _ => Some(dice.below(9) as i64),
            };
            let row = (partition as i64, order, value, time, 1 + (dice.below(6) == 0) as Diff);
            there.push(row);
            updates.push(row);
        }
        if dice.below(3) == 0 {
            let row = (0, dice.below(9) as i64, None, time, 1);
            updates.extend([row, (row.0, row.1, row.2, row.3, -1)]);
        }
        if !there.is_empty() && dice.below(10) == 0 {
            let (partition, order, value, _, diff) = there.swap_remove(dice.below(there.len()));
            updates.push((partition, order, value, time, -diff));
        }
    }
    updates
}

pub(super) fn batch(updates: &[Update]) -> Batch {
    let column =
        |of: &dyn Fn(&Update) -> Option<i64>| Arc::new(updates.iter().map(of).collect::<Int64Array>()) as ArrayRef;
    // (Whether the value is even, for filters.)
    let is_even =
        Arc::new(updates.iter().map(|u| u.2.map(|value| value % 2 == 0)).collect::<BooleanArray>()) as ArrayRef;
    let numbers = [column(&|u| Some(u.0)), column(&|u| Some(u.1)), column(&|u| u.2), column(&|u| Some(u.1 - 5))];
    // (Behind the row, and not in step with all rows.)
    let others = [column(&|u| Some(u.1 + 4)), column(&|u| Some(u.1 - 3 * (u.1 % 7 == 0) as i64))];
    let columns: Vec<ArrayRef> = numbers.into_iter().chain([is_even]).chain(others).collect();
    let times = Times::Column(updates.iter().map(|update| update.3).collect());
    Batch::new(columns, times, Diffs::Column(updates.iter().map(|update| update.4).collect()))
}

/// The types of a batch.
pub(super) fn input_types() -> Vec<DataType> {
    [vec![DataType::Int64; 4], vec![DataType::Boolean], vec![DataType::Int64; 2]].concat()
}

/// Rows and errors with their times, summed up.
pub(super) fn summed(out: &Output) -> BTreeMap<(String, Time), Diff> {
    let mut sums = BTreeMap::new();
    for (kind, batches) in [("row", &out.rows), ("error", &out.errors)] {
        for batch in batches {
            for row in 0..batch.len() {
                let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
                let text = format!("{kind} {}", cells.collect::<Vec<_>>().join(" "));
                *sums.entry((text, batch.times().get(row))).or_default() += batch.diffs().get(row);
            }
        }
    }
    sums.retain(|_, diff| *diff != 0);
    sums
}

#[test]
fn rows_behind_the_others_give_what_the_whole_partition_gives() {
    let mut n_followed = 0;
    for seed in 0..100 {
        let mut dice = Dice(seed);
        let spec = WindowSpec {
            window: Window {
                partition: if seed % 3 == 0 { vec![] } else { vec![0] },
                order: vec![SortKey::new(
                    1,
                    dice.pick(&[Direction::ASCENDING, Direction::ASCENDING, Direction::DESCENDING]),
                )],
                calls: (0..1 + dice.below(3)).map(|_| call(&mut dice, back_frame)).collect(),
            },
            input_types: input_types(),
            effort: MergeEffort::default(),
        };
        let sign = if spec.window.order[0].descending { -1 } else { 1 };
        let mut tails = WindowTactic::with_rows_min(spec.clone(), 1, usize::MAX);
        let mut whole = WindowTactic::with_rows_min(spec, usize::MAX, usize::MAX);
        let (mut there, mut ends) = (Vec::new(), vec![0; 1 + dice.below(2)]);
        let mut time = 0;
        for turn in 0..60 {
            let n_times = 1 + dice.below(3);
            let mut updates = updates(&mut dice, &mut there, &mut ends, time, n_times);
            updates.iter_mut().for_each(|update| update.1 *= sign);
            time += n_times as Time;
            let [found, expected] = [&mut tails, &mut whole].map(|tactic| {
                tactic.push(0, batch(&updates));
                let mut out = Output::default();
                tactic.advance(time, &mut out);
                summed(&out)
            });
            assert_eq!(found, expected, "seed {seed}, turn {turn}: {updates:?}");
            if dice.below(5) == 0 {
                tails.idle();
            }
            let n_tails = tails.tails.checked_len();
            assert!(n_tails <= ends.len(), "seed {seed}, turn {turn}: {n_tails} tails of {} partitions", ends.len());
            n_followed += usize::from(n_tails > 0);
        }
    }
    assert!(n_followed > 500, "tails were there in {n_followed} turns");
}

/// A partition in which rows come and go at one time has no tail of another's rows.
#[test]
fn a_partition_that_does_not_change_gets_no_tail() {
    let mut dice = Dice(5);
    let start_to_here = WindowFrame { start: FrameBound::First, end: FrameBound::Rows(0), exclude: Exclude::Nothing };
    let spec = WindowSpec {
        window: Window {
            partition: vec![0],
            order: vec![SortKey::new(1, Direction::ASCENDING)],
            calls: vec![WindowCall { frame: start_to_here, ..call(&mut dice, back_frame) }],
        },
        input_types: input_types(),
        effort: MergeEffort::default(),
    };
    // (Whichever of the two is looked at first.)
    for (grows, stays) in [(0, 1), (1, 0)] {
        let mut tails = WindowTactic::with_rows_min(spec.clone(), 1, usize::MAX);
        let rounds: [&[Update]; 2] = [
            &[(grows, 1, Some(1), 0, 1), (stays, 1, Some(1), 0, 1)],
            &[(grows, 2, Some(2), 1, 1), (stays, 5, None, 1, 1), (stays, 5, None, 1, -1)],
        ];
        for (time, updates) in rounds.into_iter().enumerate() {
            tails.push(0, batch(updates));
            tails.advance(time as Time + 1, &mut Output::default());
        }
        assert_eq!(tails.tails.checked_len(), 1);
    }
}
