//! Rows that leave behind a watermark against all rows: what is put out is the same.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::Time;
use anabranch_batch::order::Direction;
use anabranch_flow::tactic::{Output, Passed, Timed};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use anabranch_spec::order::SortKey;
use anabranch_spec::window::Window;

use super::tail_tests::{Dice, Update, batch, call, input_types, summed};
use super::{WindowSpec, WindowTactic};

/// Any frame that begins and ends near its row.
fn near_frame(dice: &mut Dice) -> WindowFrame {
    use FrameBound::{Key, Peers, Rows};
    // (Column 3 is the order less five.)
    let start = dice.pick(&[Rows(0), Rows(-1), Rows(-4), Rows(2), Peers(0), Peers(-2), Peers(1), Key(3)]);
    let end = dice.pick(&[Rows(0), Rows(0), Rows(-2), Rows(3), Peers(0), Peers(-1), Peers(2)]);
    let exclude = dice.pick(&[Exclude::Nothing, Exclude::Nothing, Exclude::Row, Exclude::Ties]);
    WindowFrame { start, end, exclude }
}

/// Rows at a bound of the order or behind it, some of them anywhere there.
fn updates(dice: &mut Dice, bound: i64, from: Time, n_times: usize) -> Vec<Update> {
    let mut updates = Vec::new();
    for time in from..from + n_times as Time {
        for _ in 0..dice.below(9) {
            let value = if dice.below(9) == 0 { None } else { Some(dice.below(9) as i64) };
            let order = bound + dice.below(40) as i64;
            updates.push((dice.below(2) as i64, order, value, time, 1 + (dice.below(6) == 0) as i64));
        }
    }
    updates
}

#[test]
fn rows_that_leave_change_no_result() {
    let (mut n_frames, mut n_left) = (0, 0);
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let window = Window {
            partition: if seed % 3 == 0 { vec![] } else { vec![0] },
            order: vec![SortKey::new(1, Direction::ASCENDING)],
            calls: (0..1 + dice.below(3)).map(|_| call(&mut dice, near_frame)).collect(),
        };
        let Some(reach) = window.reach().filter(|reach| reach.from.is_empty() || reach.is_back_only()) else {
            continue;
        };
        n_frames += 1;
        let spec = WindowSpec { window, input_types: input_types(), effort: MergeEffort::EAGER };
        // (With the ends of partitions kept, and leaves, in some runs.)
        let (tail, leaf) = dice.pick(&[(8, 10), (usize::MAX, 10), (8, usize::MAX), (usize::MAX, usize::MAX)]);
        let mut freed = WindowTactic::with_rows_min(spec.clone(), tail, leaf);
        let mut whole = WindowTactic::with_rows_min(spec.clone(), usize::MAX, usize::MAX);
        let (mut bound, mut time) = (0, 0);
        for turn in 0..80 {
            let n_times = 1 + dice.below(3);
            let updates = updates(&mut dice, bound, time, n_times);
            time += n_times as Time;
            let [found, expected] = [&mut freed, &mut whole].map(|tactic| {
                tactic.push(0, batch(&updates));
                let mut out = Output::default();
                tactic.advance(time, &mut out);
                summed(&out)
            });
            assert_eq!(found, expected, "seed {seed}, turn {turn}: {updates:?} of {:?}", spec.window);
            bound += dice.below(8) as i64;
            let below = if reach.from.is_empty() { bound } else { bound - 5 };
            if dice.below(3) > 0 {
                freed.free(&[Passed { input: 0, column: 1, below }]);
            }
            if dice.below(5) == 0 {
                freed.idle();
            }
        }
        n_left += usize::from(freed.state_rows() < whole.state_rows());
    }
    assert!(n_frames > 20 && n_left == n_frames, "rows left in {n_left} of {n_frames} runs");
}
