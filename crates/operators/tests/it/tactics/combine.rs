//! Rows that are made fewer mean the same to the aggregate behind.

use anabranch_arrangement::MergeEffort;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec, Combiner};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};

use super::*;

fn call(function: AggregateFunction, argument: Option<usize>, output_type: DataType) -> AggregateCall {
    AggregateCall { function, argument, distinct: false, filter: None, order: Vec::new(), output_type }
}

fn collected(spec: &AggregateSpec, batches: Vec<Batch>) -> Collected {
    let mut tactic = Aggregate::new(spec.clone(), spec.keys.is_empty().then_some(0));
    batches.into_iter().for_each(|batch| tactic.push(0, batch));
    let mut collected = Collected::default();
    loop {
        let mut output = Output::default();
        tactic.advance(TIMES, &mut output);
        collected.take(&mut output);
        if !tactic.has_more() {
            return collected;
        }
    }
}

/// Returns how many rows went in and came out.
fn check(keys: &[usize], calls: Vec<AggregateCall>) -> (usize, usize) {
    let (mut n_in, mut n_out) = (0, 0);
    with_seeds(|random| {
        let spec = AggregateSpec {
            keys: keys.to_vec(),
            calls: calls.clone(),
            input_types: types(),
            is_append_only: false,
            effort: MergeEffort::default(),
        };
        let updates = updates(random, 2000);
        let chunks = updates.chunks(300 + random.below(1000));
        let batches: Vec<Batch> = chunks.clone().map(batch).collect();
        let mut combiner = Combiner::of_aggregate(&spec).expect("there is a sum");
        let mut combined = Output::default();
        for (updates, batch) in chunks.zip(&batches) {
            let has_absent = random.below(2) == 0;
            let batch = if has_absent { batch_with_absent(updates, random) } else { batch.clone() };
            combiner.combine(batch, &mut combined);
        }
        n_in += updates.len();
        n_out += combined.rows.iter().map(Batch::len).sum::<usize>();
        let (plain, combined) = (collected(&spec, batches), collected(&spec, combined.rows));
        for at in 0..TIMES {
            assert_eq!(combined.rows_at(at), plain.rows_at(at), "rows by {keys:?} at {at}");
            assert_eq!(combined.errors_at(at), plain.errors_at(at), "errors by {keys:?} at {at}");
        }
    });
    (n_in, n_out)
}

#[test]
fn sums_of_combined_rows_are_those_of_the_rows() {
    use AggregateFunction::{Avg, Count, Max, Sum};
    let price = || call(Sum, Some(PRICE), DataType::Decimal128(25, 2));
    let filtered = AggregateCall { filter: Some(FLAG), ..price() };
    let distinct = AggregateCall { distinct: true, ..call(Count, Some(SMALL), DataType::Int64) };
    let sums = || vec![call(Sum, Some(SMALL), DataType::Int64), price(), call(Count, None, DataType::Int64)];
    let mean = call(Avg, Some(PRICE), DataType::Decimal128(19, 6));
    for keys in [&[] as &[usize], &[KEY], &[NAME, FLAG]] {
        let (n_in, n_out) = check(keys, sums());
        assert!(2 * n_out < n_in, "{n_in} rows became {n_out} by {keys:?}");
        check(keys, vec![filtered.clone(), mean.clone(), call(Count, Some(NAME), DataType::Int64)]);
        check(keys, vec![distinct.clone(), price(), call(Max, Some(SMALL), DataType::Int32)]);
        // (Sums that may not fit their column, and doubles, which are not added up before.)
        check(keys, vec![call(Sum, Some(BIG), DataType::Int64), call(Count, Some(BIG), DataType::Int64)]);
        check(keys, vec![call(Sum, Some(FLOAT), DataType::Float64), call(Count, None, DataType::Int64)]);
    }
}
