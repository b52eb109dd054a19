//! Changes of partitions in leaves against the whole partition: what is put out is the same.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::Time;
use anabranch_batch::order::Direction;
use anabranch_flow::tactic::{Output, Timed};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use anabranch_spec::order::SortKey;
use anabranch_spec::window::Window;

use super::tail_tests::{Dice, Update, batch, call, input_types, summed};
use super::{WindowSpec, WindowTactic};

/// Any frame that does not go on to the last row.
fn frame(dice: &mut Dice) -> WindowFrame {
    use FrameBound::{First, Key, Peers, Rows};
    let start = dice.pick(&[First, First, Rows(0), Rows(-1), Rows(-4), Rows(2), Peers(0), Peers(-2), Peers(1), Key(3)]);
    let start = if dice.below(20) == 0 { Key(6) } else { start };
    let end =
        dice.pick(&[Rows(0), Rows(0), Rows(-2), Rows(3), Rows(9), Peers(0), Peers(0), Peers(-1), Peers(2), Key(5)]);
    let exclude = match dice.below(10) {
        0 => Exclude::Row,
        1 => Exclude::Peers,
        2 => Exclude::Ties,
        _ => Exclude::Nothing,
    };
    WindowFrame { start, end, exclude: if start == First { Exclude::Nothing } else { exclude } }
}

/// What comes and goes, anywhere.
fn updates(dice: &mut Dice, there: &mut Vec<Update>, from: Time, n_times: usize) -> Vec<Update> {
    let mut updates = Vec::new();
    let span = 2 + dice.below(60);
    for time in from..from + n_times as Time {
        for _ in 0..dice.below(4) {
            let value = match dice.below(16) {
                0 => None,
                1 => Some(i64::MAX - 5),
                2 => Some(-i64::MAX),
                _ => Some(dice.below(9) as i64),
            };
            let row = (dice.below(2) as i64, dice.below(span) as i64, value, time, 1 + (dice.below(6) == 0) as i64);
            there.push(row);
            updates.push(row);
        }
        for _ in 0..dice.below(if there.len() > 150 { 5 } else { 3 }) {
            if !there.is_empty() {
                let (partition, order, value, _, diff) = there.swap_remove(dice.below(there.len()));
                updates.push((partition, order, value, time, -diff));
            }
        }
    }
    updates
}

#[test]
fn changes_anywhere_give_what_the_whole_partition_gives() {
    let mut n_kept = 0;
    for seed in 0..seeds() {
        let mut dice = Dice(seed);
        let direction = dice.pick(&[Direction::ASCENDING, Direction::ASCENDING, Direction::DESCENDING]);
        let spec = WindowSpec {
            window: Window {
                partition: if seed % 3 == 0 { vec![] } else { vec![0] },
                order: vec![SortKey::new(1, direction)],
                calls: (0..1 + dice.below(3)).map(|_| call(&mut dice, frame)).collect(),
            },
            input_types: input_types(),
            effort: MergeEffort::default(),
        };
        let sign = if spec.window.order[0].descending { -1 } else { 1 };
        // (With tails in one of two runs.)
        let mut leaves = WindowTactic::with_rows_min(spec.clone(), if seed % 2 == 0 { 8 } else { usize::MAX }, 10);
        let mut whole = WindowTactic::with_rows_min(spec.clone(), usize::MAX, usize::MAX);
        let (mut there, mut time) = (Vec::new(), 0);
        for turn in 0..80 {
            let n_times = if turn == 0 { 20 } else { 1 + dice.below(3) };
            let mut updates = updates(&mut dice, &mut there, time, n_times);
            updates.iter_mut().for_each(|update| update.1 *= sign);
            time += n_times as Time;
            let [found, expected] = [&mut leaves, &mut whole].map(|tactic| {
                tactic.push(0, batch(&updates));
                let mut out = Output::default();
                tactic.advance(time, &mut out);
                summed(&out)
            });
            assert_eq!(found, expected, "seed {seed}, turn {turn}: {updates:?} of {:?}", spec.window);
            if dice.below(5) == 0 {
                leaves.idle();
            }
            n_kept += leaves.inner.checked_len();
        }
    }
    assert!(n_kept > 20 * seeds() as usize, "partitions had leaves in {n_kept} turns");
}

/// How many runs: more of them by ANABRANCH_WINDOW_SEEDS.
fn seeds() -> u64 {
    std::env::var("ANABRANCH_WINDOW_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}
