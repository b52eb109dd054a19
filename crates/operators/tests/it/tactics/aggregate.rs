//! Aggregates against the model.

use anabranch_arrangement::MergeEffort;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec, Unsupported};

use super::aggregate_model::expected;
use super::*;
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::order::SortKey;

fn call(function: AggregateFunction, argument: Option<usize>, output_type: DataType) -> AggregateCall {
    AggregateCall { function, argument, distinct: false, filter: None, order: Vec::new(), output_type }
}

fn filtered(call: AggregateCall) -> AggregateCall {
    AggregateCall { filter: Some(FLAG), ..call }
}

fn distinct(call: AggregateCall) -> AggregateCall {
    AggregateCall { distinct: true, ..call }
}

fn spec(keys: &[usize], calls: Vec<AggregateCall>, random: &mut Random) -> AggregateSpec {
    let effort = random.pick(&[MergeEffort::EAGER, MergeEffort::LAZY, MergeEffort::default()]);
    AggregateSpec { keys: keys.to_vec(), calls, input_types: types(), is_append_only: false, effort }
}

/// Whether the call keeps a sum a group, and no values.
fn is_sum(call: &AggregateCall) -> bool {
    use AggregateFunction::*;
    let is_sum = matches!(call.function, Count | Sum | Avg | BoolAnd | BoolOr | BitAnd | BitOr | BitXor);
    is_sum || matches!(call.function, VarianceSample | VariancePopulation | StddevSample | StddevPopulation)
}

/// Grouped by nothing, by an integer, and by two columns.
fn check(calls: impl Fn() -> Vec<AggregateCall>) {
    for keys in [&[] as &[usize], &[KEY], &[NAME, FLAG]] {
        with_seeds(|random| {
            let spec = spec(keys, calls(), random);
            let from = random.pick(&[0, 4, TIMES - 1]);
            let mut tactic = Aggregate::new(spec.clone(), keys.is_empty().then_some(from));
            assert_eq!(tactic.recalls(), spec.calls.iter().all(is_sum));
            let inputs = [updates(random, 80)];
            let collected = match random.pick(&[true, false]) {
                true => run_with(&mut tactic, &inputs, random, true),
                false => run(&mut tactic, &inputs, random),
            };
            let mut n_groups = 0;
            for at in 0..=TIMES {
                let (mut rows, mut errors) = expected(&spec, &inputs[0], at);
                n_groups = rows.len() + errors.values().sum::<Diff>() as usize;
                if keys.is_empty() && at < from {
                    (rows, errors) = Default::default();
                }
                assert_eq!(collected.rows_at(at), rows, "rows by {keys:?} at {at}");
                assert_eq!(collected.errors_at(at), errors, "errors by {keys:?} at {at}");
            }
            if !keys.is_empty() {
                assert_eq!(tactic.n_groups(), n_groups);
            }
            retract(&mut tactic, &inputs);
            assert_eq!(tactic.n_groups(), 0, "groups are given back");
        });
    }
}

#[test]
fn counts() {
    let count = |argument| call(AggregateFunction::Count, argument, DataType::Int64);
    check(|| vec![count(None), count(Some(BIG)), filtered(count(None)), filtered(count(Some(NAME)))]);
}

#[test]
fn no_calls_at_all() {
    check(Vec::new);
}

#[test]
fn sums_of_integers_and_decimals() {
    let price = || call(AggregateFunction::Sum, Some(PRICE), DataType::Decimal128(25, 2));
    check(|| vec![call(AggregateFunction::Sum, Some(SMALL), DataType::Int64), price(), filtered(price())]);
}

#[test]
fn sums_out_of_range_are_errors_that_go_away() {
    let count = || call(AggregateFunction::Count, None, DataType::Int64);
    check(|| vec![count(), call(AggregateFunction::Sum, Some(BIG), DataType::Int64)]);
}

/// The two zeros are one group, and its errors have one name.
#[test]
fn an_error_of_a_group_goes_away_whichever_row_brought_it() {
    let calls = vec![call(AggregateFunction::Sum, Some(0), DataType::Int64)];
    let input_types = vec![DataType::Int64, DataType::Float64];
    let spec =
        AggregateSpec { keys: vec![1], calls, input_types, is_append_only: false, effort: MergeEffort::default() };
    let mut tactic = Aggregate::new(spec, None);
    let mut collected = Collected::default();
    let updates = [(i64::MAX, -0.0, 1), (1, 0.0, 1), (i64::MAX, -0.0, -1), (1, 0.0, -1)];
    for (time, (value, key, diff)) in (0..).zip(updates) {
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![value])), Arc::new(Float64Array::from(vec![key]))];
        tactic.push(0, Batch::new(columns, Times::Constant(time), Diffs::Constant(diff)));
        let mut output = Output::default();
        tactic.advance(time + 1, &mut output);
        collected.take(&mut output);
    }
    assert_eq!(collected.errors_at(1).len(), 1);
    assert!(collected.errors_at(2).is_empty(), "{:?}", collected.errors_at(2));
    assert_eq!(collected.rows_at(2).values().sum::<Diff>(), 1);
    // (As texts the two are not equal.)
    assert_eq!(collected.rows_at(3).values().sum::<Diff>(), 0);
}

#[test]
fn averages() {
    let price = || call(AggregateFunction::Avg, Some(PRICE), DataType::Decimal128(19, 6));
    check(|| vec![price(), call(AggregateFunction::Avg, Some(SMALL), DataType::Float64), distinct(price())]);
}

#[test]
fn floats_are_summed_exactly() {
    let sum = || call(AggregateFunction::Sum, Some(FLOAT), DataType::Float64);
    check(|| vec![sum(), call(AggregateFunction::Avg, Some(FLOAT), DataType::Float64), distinct(sum())]);
}

#[test]
fn variances() {
    use AggregateFunction::*;
    let functions = || [VarianceSample, VariancePopulation, StddevSample, StddevPopulation];
    check(|| functions().map(|function| call(function, Some(SMALL), DataType::Float64)).to_vec());
}

#[test]
fn booleans_and_bits() {
    use AggregateFunction::*;
    check(|| {
        let booleans = [BoolAnd, BoolOr].map(|function| call(function, Some(FLAG), DataType::Boolean));
        let bits = [BitAnd, BitOr, BitXor].map(|function| call(function, Some(SMALL), DataType::Int32));
        booleans.into_iter().chain(bits).chain([distinct(call(BitXor, Some(SMALL), DataType::Int32))]).collect()
    });
}

#[test]
fn distinct_calls_count_values_once() {
    check(|| {
        let count = |column| distinct(call(AggregateFunction::Count, Some(column), DataType::Int64));
        let sum = distinct(call(AggregateFunction::Sum, Some(SMALL), DataType::Int64));
        vec![count(NAME), count(SMALL), count(FLOAT), filtered(sum)]
    });
}

#[test]
fn least_and_greatest() {
    check(|| {
        let extreme = |function: AggregateFunction, column| call(function, Some(column), types()[column].clone());
        let columns = [NAME, PRICE, FLOAT];
        columns
            .into_iter()
            .flat_map(|column| {
                [extreme(AggregateFunction::Min, column), filtered(extreme(AggregateFunction::Max, column))]
            })
            .collect()
    });
}

#[test]
fn texts_and_lists_in_order() {
    check(|| {
        let join = call(AggregateFunction::StringAgg("; ".into()), Some(NAME), DataType::Utf8View);
        let list = call(AggregateFunction::ArrayAgg, Some(SMALL), DataType::new_list(DataType::Int32, true));
        let descending = AggregateCall { order: vec![SortKey::new(NAME, DESCENDING)], ..distinct(join.clone()) };
        let by_price = AggregateCall {
            order: vec![SortKey::new(PRICE, DESCENDING), SortKey::new(FLAG, ASCENDING)],
            ..list.clone()
        };
        vec![join, descending, filtered(list), by_price]
    });
}

#[test]
fn first_and_last_values() {
    check(|| {
        let ordered = |function| AggregateCall {
            order: vec![SortKey::new(PRICE, DESCENDING)],
            ..call(function, Some(SMALL), DataType::Int32)
        };
        vec![
            ordered(AggregateFunction::FirstValue),
            ordered(AggregateFunction::LastValue),
            call(AggregateFunction::LastValue, Some(NAME), DataType::Utf8View),
        ]
    });
}

#[test]
fn medians() {
    check(|| {
        let price = || call(AggregateFunction::Median, Some(PRICE), PRICE_TYPE);
        let mode = |column, of| call(AggregateFunction::Mode, Some(column), of);
        let modes = [mode(SMALL, DataType::Int32), mode(PRICE, PRICE_TYPE)];
        [call(AggregateFunction::Median, Some(SMALL), DataType::Int32), price(), distinct(price())]
            .into_iter()
            .chain(modes)
            .collect()
    });
}

#[test]
fn calls_of_the_wrong_types_are_refused() {
    let refused = |call: AggregateCall| {
        let mut random = Random::new(0);
        spec(&[KEY], vec![call], &mut random).check().expect_err("the call is wrong")
    };
    let sum = refused(call(AggregateFunction::Sum, Some(NAME), DataType::Int64));
    assert_eq!(sum.to_string(), "aggregate sum of Utf8View with result Int64 is not supported");
    assert_eq!(
        refused(call(AggregateFunction::Avg, None, DataType::Float64)).to_string(),
        "aggregate avg needs an argument"
    );
    refused(call(AggregateFunction::BoolAnd, Some(SMALL), DataType::Boolean));
    let join = call(AggregateFunction::StringAgg(",".into()), Some(NAME), DataType::Utf8View);
    let refusal = refused(AggregateCall { order: vec![SortKey::new(PRICE, ASCENDING)], ..distinct(join) });
    assert_eq!(refusal, Unsupported::DistinctOrder { function: "string_agg".into() });
}

#[test]
fn a_global_aggregate_has_a_row_over_nothing() {
    let mut random = Random::new(1);
    let calls = vec![
        call(AggregateFunction::Count, None, DataType::Int64),
        call(AggregateFunction::Max, Some(NAME), DataType::Utf8View),
    ];
    let mut tactic = Aggregate::new(spec(&[], calls.clone(), &mut random), Some(7));
    assert_eq!(tactic.pending_from(), Some(7));
    let mut collected = Collected::default();
    for upto in [3, 8, 20] {
        let mut output = Output::default();
        tactic.advance(upto, &mut output);
        collected.take(&mut output);
    }
    assert_eq!(collected.rows, [(vec!["0".to_string(), "NULL".to_string()], 7, 1)]);
    assert_eq!(tactic.pending_from(), None);

    let mut elsewhere = Aggregate::new(spec(&[], calls, &mut random), None);
    let mut output = Output::default();
    elsewhere.advance(20, &mut output);
    assert!(output.rows.is_empty() && elsewhere.pending_from().is_none());
}

#[test]
fn memory_is_given_back_when_many_groups_vanish() {
    if crate::hash_mask() != !0 {
        return;
    }
    let keys: ArrayRef = Arc::new((0..200_000).map(|key| Some(key % 100_000)).collect::<Int64Array>());
    let rows = Batch::new(vec![keys.clone(), keys], Times::Constant(1), Diffs::Constant(1));
    let calls = vec![
        call(AggregateFunction::Sum, Some(1), DataType::Int64),
        distinct(call(AggregateFunction::Count, Some(1), DataType::Int64)),
        call(AggregateFunction::StddevSample, Some(1), DataType::Float64),
    ];
    let input_types = vec![DataType::Int64, DataType::Int64];
    let mut tactic = Aggregate::new(
        AggregateSpec { keys: vec![0], calls, input_types, is_append_only: false, effort: MergeEffort::default() },
        None,
    );
    tactic.push(0, rows.clone());
    tactic.advance(2, &mut Output::default());
    let full = tactic.size_bytes();
    tactic.push(0, rows.slice(1, 199_999).negate().with_times(Times::Constant(3)));
    tactic.advance(4, &mut Output::default());
    assert_eq!(tactic.n_groups(), 1);
    assert!(tactic.size_bytes() < full / 50, "{} of {full} bytes left", tactic.size_bytes());
    tactic.push(0, rows.slice(0, 2).with_times(Times::Constant(5)));
    let mut collected = Collected::default();
    let mut output = Output::default();
    tactic.advance(6, &mut output);
    collected.take(&mut output);
    let row = |cells: [&str; 4]| cells.map(String::from).to_vec();
    assert_eq!(collected.rows[0], (row(["0", "0", "1", "NULL"]), 5, -1));
    assert_eq!(collected.rows[1], (row(["0", "0", "1", "0.0"]), 5, 1));
    assert_eq!(collected.rows[2], (row(["1", "1", "1", "NULL"]), 5, 1));
}

/// A group remembers that one of its values may have a negative multiplicity: a winner among those
/// that come in may be owed to an earlier retraction.
#[test]
fn a_value_owed_to_a_retraction_does_not_win() {
    let row = |small: i32| Row {
        key: Some(1),
        name: None,
        small: Some(small),
        big: None,
        price: None,
        float: None,
        flag: None,
    };
    // 2 is retracted before it comes, comes twice, goes again; then all go, and 9 comes.
    let changes =
        [(4, 0, 1), (6, 0, 1), (2, 1, -1), (2, 2, 1), (2, 3, 1), (2, 4, -1), (4, 5, -1), (6, 5, -1), (9, 6, 1)];
    let least = [Some(4), Some(4), Some(4), Some(2), Some(4), None, Some(9)];
    with_seeds(|random| {
        let inputs = [changes.map(|(small, time, diff)| (row(small), time, diff)).to_vec()];
        let calls = vec![call(AggregateFunction::Min, Some(SMALL), DataType::Int32)];
        let mut tactic = Aggregate::new(spec(&[KEY], calls, random), None);
        let collected = run(&mut tactic, &inputs, random);
        for (at, least) in least.iter().enumerate() {
            let expected: Bag = least.iter().map(|least: &i32| (vec!["1".to_string(), least.to_string()], 1)).collect();
            assert_eq!(collected.rows_at(at as Time), expected, "at {at}");
        }
        assert_eq!(tactic.n_groups(), 1);
    });
}

/// More rows at one time than a turn takes on: calls that take a time's values in one piece, beside
/// those that take portions.
#[test]
fn more_rows_of_one_time_than_a_turn_takes_on() {
    use anabranch_batch::{Batch, Diffs, Times};
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    const N_KEYS: i64 = 1000;
    let rows = |from: i64, to: i64, time: Time, diff: Diff| {
        let keys: ArrayRef = Arc::new((from..to).map(|row| row % N_KEYS).collect::<Int64Array>());
        let values: ArrayRef = Arc::new((from..to).collect::<Int64Array>());
        Batch::new(vec![keys, values], Times::Constant(time), Diffs::Constant(diff))
    };
    let of_value = |function| call(function, Some(1), DataType::Int64);
    let calls =
        vec![of_value(AggregateFunction::Min), of_value(AggregateFunction::Max), of_value(AggregateFunction::Count)];
    let input_types = vec![DataType::Int64; 2];
    let spec =
        AggregateSpec { keys: vec![0], calls, input_types, is_append_only: false, effort: MergeEffort::default() };
    let mut tactic = Aggregate::new(spec, None);
    let mut found = BTreeMap::<Vec<i64>, Diff>::new();
    let mut advance = |tactic: &mut Aggregate, upto: Time| loop {
        let mut out = Output::default();
        tactic.advance(upto, &mut out);
        for batch in &out.rows {
            let columns: Vec<&Int64Array> =
                (0..4).map(|column| batch.column(column).as_primitive::<Int64Type>()).collect();
            for row in 0..batch.len() {
                let row_of = columns.iter().map(|column| column.value(row)).collect();
                *found.entry(row_of).or_default() += batch.diffs().get(row);
            }
        }
        if !tactic.has_more() {
            break;
        }
    };
    // Two times complete at once, then a third that takes the least values away.
    tactic.push(0, rows(0, 700_000, 1, 1));
    tactic.push(0, rows(700_000, 1_400_000, 2, 1));
    advance(&mut tactic, 3);
    tactic.push(0, rows(0, 600_000, 5, -1));
    advance(&mut tactic, 6);
    found.retain(|_, diff| *diff != 0);
    let expected = (0..N_KEYS).map(|key| (vec![key, 600_000 + key, 1_399_000 + key, 800], 1)).collect();
    assert_eq!(found, expected);
}

/// Rows of a few groups with short keys come in batches that are large enough to be compared with
/// the groups' keys; some batches have a key that is long, NULL, or new, and some groups go.
#[test]
fn rows_of_a_few_groups_are_found_in_large_batches() {
    with_seeds(|random| {
        let sum = call(AggregateFunction::Sum, Some(PRICE), DataType::Decimal128(25, 2));
        let spec = spec(&[NAME, KEY], vec![sum, call(AggregateFunction::Count, None, DataType::Int64)], random);
        let mut tactic = Aggregate::new(spec.clone(), None);
        let mut inputs = vec![Vec::new()];
        let mut collected = Collected::default();
        for time in (0..TIMES).step_by(3) {
            let names = match random.below(4) {
                0 => vec![Some("a"), Some("wxyz"), Some("a long name, out of line")],
                1 => vec![Some("bcd"), None],
                _ => vec![Some("a"), Some(""), Some("wxyz")],
            };
            let n_times = random.pick(&[1, 3]);
            let gone = contents(&inputs[0], time).into_iter().filter(|(row, _)| row.name == Some("a"));
            let mut updates: Vec<Update> = gone.map(|(row, count)| (row, time, -count)).collect();
            for index in 0..600 {
                let (name, key) = (random.pick(&names), random.pick(&[Some(1), Some(2)]));
                let row = Row { name, key, small: None, big: None, float: None, flag: None, ..random.row() };
                updates.push((row, time + index * n_times / 600, 1));
            }
            let batch = if random.below(2) == 0 { batch(&updates) } else { batch_with_absent(&updates, random) };
            tactic.push(0, batch);
            inputs[0].extend(updates);
            let mut output = Output::default();
            tactic.advance(time + 3, &mut output);
            collected.take(&mut output);
        }
        for at in 0..TIMES {
            let (rows, errors) = expected(&spec, &inputs[0], at);
            assert_eq!((collected.rows_at(at), collected.errors_at(at)), (rows, errors), "at {at}");
        }
        retract(&mut tactic, &inputs);
        assert_eq!(tactic.n_groups(), 0, "groups are given back");
    });
}

#[test]
fn a_large_time_of_few_groups_is_taken_in_over_several_turns() {
    let spec = spec(&[NAME], vec![call(AggregateFunction::Count, None, DataType::Int64)], &mut Random::new(1));
    let mut tactic = Aggregate::new(spec, None);
    let (mut collected, mut n_turns) = (Collected::default(), 0);
    for (time, n_rows) in [(0, 10), (1, 300_000)] {
        let names: StringViewArray = (0..n_rows).map(|row| Some(if row % 5 == 0 { "a" } else { "bc" })).collect();
        let mut columns = columns(&vec![Random::new(1).row(); n_rows]);
        columns[NAME] = Arc::new(names);
        tactic.push(0, Batch::new(columns, Times::Constant(time), Diffs::Constant(1)));
        n_turns = 0;
        while n_turns == 0 || tactic.has_more() {
            let mut output = Output::default();
            tactic.advance(time + 1, &mut output);
            collected.take(&mut output);
            n_turns += 1;
        }
    }
    let row = |name: &str, count: &str| (vec![name.to_string(), count.to_string()], 1);
    assert_eq!(collected.rows_at(1), Bag::from([row("a", "60002"), row("bc", "240008")]));
    assert_eq!(n_turns, 2);
}

#[test]
fn groups_that_have_passed_leave_and_come_back_empty() {
    use anabranch_flow::tactic::Passed;
    let input_types = vec![DataType::Int64, DataType::Int64];
    let call = |function: AggregateFunction, argument: Option<usize>, distinct: bool| AggregateCall {
        function,
        argument,
        distinct,
        filter: None,
        order: vec![],
        output_type: DataType::Int64,
    };
    for is_append_only in [false, true] {
        let calls = vec![
            call(AggregateFunction::Count, None, false),
            call(AggregateFunction::Count, Some(1), true),
            call(AggregateFunction::Max, Some(1), false),
        ];
        let input_types = input_types.clone();
        let spec = AggregateSpec { keys: vec![0], calls, input_types, is_append_only, effort: MergeEffort::EAGER };
        let mut tactic = Aggregate::new(spec, None);
        let step = |tactic: &mut Aggregate, rows: std::ops::Range<i64>, time: i64| {
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row / 10)));
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(|row| row % 7)));
            tactic.push(0, Batch::new(vec![keys, values], Times::Constant(time), Diffs::Constant(1)));
            let mut out = Output::default();
            tactic.advance(time + 1, &mut out);
            out.rows.iter().map(Batch::len).sum::<usize>()
        };
        assert_eq!(step(&mut tactic, 0..1_000, 1), 100);
        assert_eq!(tactic.n_groups(), 100);
        tactic.free(&[Passed { input: 0, column: 0, below: 90 }]);
        assert_eq!(tactic.n_groups(), 10);
        // Groups that stay go on: each row that changes goes and comes. A slot that is used again
        // begins with nothing.
        assert_eq!(step(&mut tactic, 900..1_000, 2), 20);
        assert_eq!(step(&mut tactic, 2_000..2_900, 3), 90);
        tactic.free(&[Passed { input: 0, column: 0, below: 1_000 }]);
        assert_eq!(tactic.n_groups(), 0);
    }
}
