//! A pattern kept current over changes, beside one that is asked anew.

use std::collections::BTreeMap;

use anabranch_batch::Diff;
use anabranch_flow::tactic::Timed;
use anabranch_spec::recognize::{Cell, CellValue, End, Skip};
use arrow::datatypes::DataType;

use super::tests::{Update, cell, falls_spec, rows, step};
use super::{Recognize, RecognizeSpec};

/// Numbers as random as needed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n) as i64
    }
}

type Answer = BTreeMap<(i64, i64, i64, i64), Diff>;

fn add(answer: &mut Answer, changes: Vec<super::tests::Change>) {
    for (a, b, c, d, _, diff) in changes {
        *answer.entry((a, b, c, d)).or_default() += diff;
    }
    answer.retain(|_, diff| *diff != 0);
}

fn specs() -> Vec<RecognizeSpec> {
    let before = |end, variable, offset| falls_spec(cell(end, variable, offset));
    let number = Cell { name: String::new(), value: CellValue::MatchNumber, data_type: DataType::Int64 };
    let last_of_b = cell(End::Last, Some(1), 2);
    vec![
        before(End::Last, None, -1),
        before(End::Last, Some(1), -1),
        // (A value less than the one behind the next.)
        before(End::Last, None, 2),
        RecognizeSpec { skip: Skip::ToNextRow, ..before(End::Last, None, -2) },
        RecognizeSpec { within: Some(4), ..before(End::Last, None, -1) },
        RecognizeSpec { skip: Skip::ToLast(1), within: Some(9), ..before(End::Last, Some(1), -3) },
        RecognizeSpec { output: vec![cell(End::First, None, -2), last_of_b, number], ..before(End::Last, None, -1) },
    ]
}

#[test]
fn stretches_say_what_whole_partitions_say() {
    for (number, spec) in specs().into_iter().enumerate() {
        for seed in 0..40 {
            let mut numbers = Numbers(seed * 977 + number as u64);
            let (mut kept, mut all): (Recognize, Vec<Update>) = (Recognize::new(spec.clone()), vec![]);
            let (mut answer, mut had_cuts) = (Answer::new(), false);
            let mut time = 1;
            for turn in 0..30 {
                let mut changes: Vec<Update> = Vec::new();
                for _ in 0..1 + numbers.below(3) {
                    let n = if turn == 0 { 40 } else { numbers.below(4) };
                    for _ in 0..n {
                        // (Times tie at times; what is taken away was there.)
                        let (key, at, value) = (numbers.below(2), numbers.below(60), numbers.below(6));
                        let gone = (all.len() > 20).then(|| numbers.below(2 * all.len() as u64) as usize);
                        match gone.filter(|gone| *gone < all.len()) {
                            Some(gone) => {
                                let (key, at, value, ..) = all.swap_remove(gone);
                                changes.push((key, at, value, time, -1));
                            }
                            None => {
                                all.push((key, at, value, 0, 1));
                                changes.push((key, at, value, time, 1));
                            }
                        }
                    }
                    time += 1;
                }
                kept.push(0, rows(&changes));
                add(&mut answer, step(&mut kept, time));
                had_cuts |= kept.has_cuts();
                let mut fresh = Recognize::new(spec.clone());
                fresh.push(0, rows(&all));
                let mut expected = Answer::new();
                add(&mut expected, step(&mut fresh, 1));
                assert_eq!(answer, expected, "pattern {number}, seed {seed}, turn {turn}");
            }
            assert!(had_cuts, "pattern {number}, seed {seed}");
        }
    }
}
