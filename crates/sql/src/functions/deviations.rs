//! Variances and standard deviations of exact numbers, of their count, their sum and the sum of
//! their squares.
//!
//! Law: the digits are PostgreSQL's, which divides `n * sum(x²) - sum(x)²` by `n * (n - 1)`, or by
//! `n²`, and takes the root at the quotient's scale (`numeric_stddev_internal`). Sums are exact, so
//! rows leave nothing behind when they go.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Fault, Finite, Number, Reader, TYPE, Whole};
use arrow::datatypes::DataType;
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// What is told of the distances from the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dispersion {
    VarianceSample,
    VariancePopulation,
    DeviationSample,
    DeviationPopulation,
}

impl Dispersion {
    const ALL: [Dispersion; 4] = [
        Dispersion::VarianceSample,
        Dispersion::VariancePopulation,
        Dispersion::DeviationSample,
        Dispersion::DeviationPopulation,
    ];

    /// The one that an aggregate tells.
    pub(crate) fn of(aggregate: &str) -> Option<Dispersion> {
        Some(match aggregate {
            "var" | "var_samp" | "var_sample" => Dispersion::VarianceSample,
            "var_pop" | "var_population" => Dispersion::VariancePopulation,
            "stddev" | "stddev_samp" => Dispersion::DeviationSample,
            "stddev_pop" => Dispersion::DeviationPopulation,
            _ => return None,
        })
    }

    /// The function of `(n, sum(x), sum(x * x))`; the squares may be summed in two parts.
    pub(crate) fn udf(self) -> Arc<ScalarUDF> {
        let takes = |n_sums: usize| {
            TypeSignature::Exact(std::iter::once(DataType::Int64).chain(std::iter::repeat_n(TYPE, n_sums)).collect())
        };
        let signature = Signature::one_of(vec![takes(2), takes(3)], Volatility::Immutable);
        Arc::new(ScalarUDF::from(DispersionOf { dispersion: self, signature }))
    }

    fn is_root(self) -> bool {
        matches!(self, Dispersion::DeviationSample | Dispersion::DeviationPopulation)
    }

    fn compute(self, n: i64, sum: &Number, squares: &Number) -> Result<Option<Number>, Fault> {
        let is_sample = matches!(self, Dispersion::VarianceSample | Dispersion::DeviationSample);
        let divisor = if is_sample { n - 1 } else { n };
        if divisor <= 0 {
            return Ok(None);
        }
        let (Number::Finite(_), Number::Finite(_)) = (sum, squares) else { return Ok(Some(Number::NaN)) };
        let number = |n: i64| Number::new(i128::from(n), 0);
        let distances = number(n).times(squares)?.minus(&sum.times(sum)?)?;
        let pairs = number(n).times(&number(divisor))?;
        let (Number::Finite(distances), Number::Finite(pairs)) = (distances, pairs) else {
            return Ok(Some(Number::NaN));
        };
        if distances.sign() <= 0 {
            return Ok(Some(Number::ZERO));
        }
        let scale = distances.quotient_scale(&pairs);
        let variance = distances.divided(&pairs, scale);
        Ok(Some(Number::Finite(if self.is_root() { root(&variance) } else { variance })))
    }
}

/// The nearest number of the same scale to the square root.
fn root(square: &Finite) -> Finite {
    let shifted = square.coefficient.shifted(square.scale);
    let root = shifted.root();
    // (Half a unit above the root has the square root * (root + 1) + 1/4.)
    let is_up = shifted.minus(&root.times(&root)).compare(&root).is_gt();
    Finite { coefficient: if is_up { root.plus(&Whole::Small(1)) } else { root }, scale: square.scale }
}

/// All of them, for programs that are cut from queries.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    Dispersion::ALL.into_iter().map(Dispersion::udf)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DispersionOf {
    dispersion: Dispersion,
    signature: Signature,
}

impl ScalarUDFImpl for DispersionOf {
    fn name(&self) -> &str {
        match self.dispersion {
            Dispersion::VarianceSample => "__var_samp",
            Dispersion::VariancePopulation => "__var_pop",
            Dispersion::DeviationSample => "__stddev_samp",
            Dispersion::DeviationPopulation => "__stddev_pop",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(TYPE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let readers: Option<Vec<Reader>> = columns.iter().map(Reader::new).collect();
        let Some([n, sum, squares @ ..]) = readers.as_deref() else {
            return exec_err!("a variance is of counts and sums");
        };
        let rows = columns[0].len();
        let mut numbers = numeric::Builder::with_capacity(rows);
        for row in 0..rows {
            // (Sums of no rows are NULL.)
            let value = |of: &Reader| of.value(row).unwrap_or(Number::ZERO);
            let n = match n.value(row) {
                Some(Number::Finite(n)) => n.coefficient.to_i128().and_then(|n| i64::try_from(n).ok()).unwrap_or(0),
                _ => 0,
            };
            let squares = squares.iter().try_fold(Number::ZERO, |total, part| total.plus(&value(part)));
            let result = squares.and_then(|squares| self.dispersion.compute(n, &value(sum), &squares));
            match result {
                Ok(number) => numbers.append(number.as_ref()),
                Err(fault) => return exec_err!("{fault}"),
            }
        }
        Ok(ColumnarValue::Array(numbers.finish()))
    }
}
