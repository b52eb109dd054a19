//! Aggregates of every type they are defined for: one group, a few values in, one value taken out
//! again.

use anabranch_arrangement::MergeEffort;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::{
    Array, Date32Array, Decimal256Array, DurationMicrosecondArray, Float32Array, UInt8Array, UInt64Array,
};
use arrow::datatypes::{TimeUnit, i256};

use super::*;

/// The result over all `values`, and over all but the first, as text; errors as their message.
fn results(function: AggregateFunction, values: impl Array + 'static, output_type: DataType) -> [String; 2] {
    hash::set_mask_for_tests(crate::hash_mask());
    let values: ArrayRef = Arc::new(values);
    let call = AggregateCall {
        function,
        argument: Some(0),
        distinct: false,
        filter: None,
        order: Vec::new(),
        output_type: output_type.clone(),
    };
    let input_types = vec![values.data_type().clone()];
    let spec = AggregateSpec {
        keys: vec![],
        calls: vec![call],
        input_types,
        is_append_only: false,
        effort: MergeEffort::default(),
    };
    spec.check().expect("the call is defined");
    let mut tactic = Aggregate::new(spec, Some(0));
    let rows = Batch::new(vec![values], Times::Constant(0), Diffs::Constant(1));
    tactic.push(0, rows.clone());
    tactic.push(0, rows.slice(0, 1).negate().with_times(Times::Constant(1)));
    let (mut output, mut collected) = (Output::default(), Collected::default());
    tactic.advance(2, &mut output);
    assert!(output.rows.iter().all(|batch| *batch.column(0).data_type() == output_type));
    collected.take(&mut output);
    [0, 1].map(|at| {
        let mut shown = collected.rows_at(at);
        shown.append(&mut collected.errors_at(at));
        assert_eq!((shown.len(), shown.values().sum::<Diff>()), (1, 1), "there is one row, or one error");
        shown.into_keys().next().expect("there is one")[0].clone()
    })
}

fn decimals(values: &[i128], precision: u8, scale: i8) -> Decimal128Array {
    Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).expect("a legal decimal")
}

#[test]
fn sums() {
    use DataType::*;
    let nines = 10i128.pow(38) - 1;
    assert_eq!(results(AggregateFunction::Sum, UInt8Array::from(vec![255, 255, 1]), UInt64), ["511", "256"]);
    let huge = UInt64Array::from(vec![1, u64::MAX]);
    assert_eq!(results(AggregateFunction::Sum, huge, UInt64), ["bigint out of range in sum", "18446744073709551615"]);
    let wide = results(AggregateFunction::Sum, decimals(&[nines, nines, -nines, -1], 38, 0), Decimal128(38, 0));
    assert_eq!(wide, [(nines - 1).to_string(), "-1".to_string()]);
    let [over, one] = results(AggregateFunction::Sum, decimals(&[nines, 1], 38, 0), Decimal128(38, 0));
    assert_eq!((over.contains("numeric out of range in sum"), one.as_str()), (true, "1"));
    let wider = results(AggregateFunction::Sum, decimals(&[nines, nines], 38, 2), Decimal256(48, 2));
    assert_eq!(wider, ["1999999999999999999999999999999999999.98", "999999999999999999999999999999999999.99"]);
    let power = i256::from_i128(10).wrapping_pow(60);
    let values =
        Decimal256Array::from(vec![power, power, i256::from_i128(5)]).with_precision_and_scale(61, 1).expect("legal");
    assert_eq!(results(AggregateFunction::Sum, values, Decimal256(71, 1))[1], format!("1{}.5", "0".repeat(59)));
    assert_eq!(results(AggregateFunction::Sum, Float32Array::from(vec![0.5, 0.25]), Float32), ["0.75", "0.25"]);
    assert_eq!(
        results(AggregateFunction::Sum, Int32Array::from(vec![None, Some(2)]), Decimal128(20, 2)),
        ["2.00", "2.00"]
    );
    let durations = DurationMicrosecondArray::from(vec![1_000_000, 500_000]);
    assert_eq!(results(AggregateFunction::Sum, durations, Duration(TimeUnit::Microsecond)), ["PT1.5S", "PT0.5S"]);
}

#[test]
fn averages() {
    use DataType::*;
    assert_eq!(
        results(AggregateFunction::Avg, Int32Array::from(vec![1, 2, 4]), Decimal128(14, 4)),
        ["2.3333", "3.0000"]
    );
    assert_eq!(results(AggregateFunction::Avg, decimals(&[-5, 5, 0], 5, 2), Decimal128(9, 1)), ["0.0", "0.0"]);
    assert_eq!(results(AggregateFunction::Avg, decimals(&[15, 25], 5, 2), Float64), ["0.2", "0.25"]);
    let values = Decimal256Array::from(vec![i256::from_i128(1), i256::from_i128(2)])
        .with_precision_and_scale(61, 0)
        .expect("legal");
    assert_eq!(results(AggregateFunction::Avg, values, Decimal256(65, 4)), ["1.5000", "2.0000"]);
    let durations = DurationMicrosecondArray::from(vec![1_000_000, 500_000]);
    assert_eq!(results(AggregateFunction::Avg, durations, Duration(TimeUnit::Microsecond)), ["PT0.75S", "PT0.5S"]);
    assert_eq!(results(AggregateFunction::Avg, Float64Array::from(vec![f64::INFINITY, 1.0]), Float64), ["inf", "1.0"]);
}

#[test]
fn bits_of_narrow_and_unsigned_integers() {
    use DataType::*;
    assert_eq!(results(AggregateFunction::BitAnd, UInt8Array::from(vec![0b0110, 0b1100]), UInt8), ["4", "12"]);
    assert_eq!(
        results(AggregateFunction::BitOr, UInt64Array::from(vec![1, u64::MAX - 1]), UInt64),
        ["18446744073709551615", "18446744073709551614"]
    );
}

#[test]
fn extremes_and_middles() {
    use DataType::*;
    assert_eq!(
        results(AggregateFunction::Max, Date32Array::from(vec![20_000, 10_000]), Date32),
        ["2024-10-04", "1997-05-19"]
    );
    assert_eq!(results(AggregateFunction::Max, Float64Array::from(vec![f64::NAN, 1.0]), Float64), ["NaN", "1.0"]);
    assert_eq!(results(AggregateFunction::Min, Float64Array::from(vec![-0.0, f64::NAN]), Float64)[1], "NaN");
    assert_eq!(results(AggregateFunction::Min, StringViewArray::from(vec!["a", "b"]), Utf8View), ["a", "b"]);
    assert_eq!(results(AggregateFunction::Median, Int64Array::from(vec![1, 2, 5, 8]), Int64), ["3", "5"]);
    assert_eq!(results(AggregateFunction::Median, Int64Array::from(vec![1, 2]), Float64), ["1.5", "2.0"]);
    assert_eq!(
        results(AggregateFunction::Median, UInt64Array::from(vec![u64::MAX, u64::MAX]), UInt64)[0],
        u64::MAX.to_string()
    );
    assert_eq!(results(AggregateFunction::VarianceSample, decimals(&[100, 300], 5, 2), Float64), ["2.0", "NULL"]);
}
