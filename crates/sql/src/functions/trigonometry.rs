//! Trigonometry in degrees, `sind(30)`: exact where the result is.
//!
//! Law: PostgreSQL's answers. Each function is reduced to the first quadrant, and there divided by
//! its value at 30, 45 or 60 degrees, so that these come out exactly. An argument that is infinite,
//! or not a sine, is an error.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 8] {
    let of_one = |name, compute| {
        let arity = 1;
        Arc::new(ScalarUDF::from(InDegrees { name, arity, compute, signature: signature(arity) }))
    };
    let atan2d = InDegrees { name: "atan2d", arity: 2, compute: |args| Some(atan2d(args)), signature: signature(2) };
    [
        of_one("sind", |x| periodic(x[0], sind)),
        of_one("cosd", |x| periodic(x[0], cosd)),
        of_one("tand", |x| periodic(x[0], |x| by_45(x, |x| sine(x) / cosine(x)))),
        of_one("cotd", |x| periodic(x[0], |x| by_45(x, |x| cosine(x) / sine(x)))),
        of_one("asind", |x| of_sine(x[0], |x| if x < 0.0 { -arcsine(-x) } else { arcsine(x) })),
        of_one("acosd", |x| of_sine(x[0], |x| if x < 0.0 { 90.0 + arcsine(-x) } else { arccosine(x) })),
        of_one("atand", |x| Some(x[0].atan() / 1f64.atan() * 45.0)),
        Arc::new(ScalarUDF::from(atan2d)),
    ]
}

fn signature(arity: usize) -> Signature {
    Signature::uniform(arity, vec![DataType::Float64], Volatility::Immutable)
}

/// A function of doubles; `None` if an argument is out of its range.
#[derive(Debug)]
struct InDegrees {
    name: &'static str,
    arity: usize,
    compute: fn(&[f64]) -> Option<f64>,
    signature: Signature,
}

impl PartialEq for InDegrees {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for InDegrees {}

impl std::hash::Hash for InDegrees {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for InDegrees {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns =
            args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<Vec<ArrayRef>>>()?;
        let mut results: Vec<Option<f64>> = Vec::with_capacity(args.number_rows);
        let mut row_args = vec![0.0; self.arity];
        for row in 0..args.number_rows {
            if columns.iter().any(|column| column.is_null(row)) {
                results.push(None);
                continue;
            }
            for (arg, column) in row_args.iter_mut().zip(&columns) {
                *arg = column.as_primitive::<Float64Type>().value(row);
            }
            let Some(result) = (self.compute)(&row_args) else { return exec_err!("input is out of range") };
            results.push(Some(result));
        }
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from(results))))
    }
}

/// An angle of less than a turn, for which the function is asked.
fn periodic(x: f64, of: impl Fn(f64) -> f64) -> Option<f64> {
    (!x.is_infinite()).then(|| of(x % 360.0))
}

fn of_sine(x: f64, of: impl Fn(f64) -> f64) -> Option<f64> {
    (x.is_nan() || x.abs() <= 1.0).then(|| of(x))
}

fn sind(x: f64) -> f64 {
    let sign = if x < 0.0 { -1.0 } else { 1.0 };
    match x.abs() {
        x if x > 270.0 => -sign * sine(360.0 - x),
        x if x > 180.0 => -sign * sine(180.0 - (360.0 - x)),
        x if x > 90.0 => sign * sine(180.0 - x),
        x => sign * sine(x),
    }
}

fn cosd(x: f64) -> f64 {
    match x.abs() {
        x if x > 270.0 => cosine(360.0 - x),
        x if x > 180.0 => -cosine(180.0 - (360.0 - x)),
        x if x > 90.0 => -cosine(180.0 - x),
        x => cosine(x),
    }
}

/// A tangent or cotangent by its value at 45 degrees. Zero has no sign.
fn by_45(x: f64, quotient: impl Fn(f64) -> f64) -> f64 {
    let (sign, x) = if x < 0.0 { (-1.0, -x) } else { (1.0, x) };
    let (sign, x) = if x > 180.0 { (-sign, 360.0 - x) } else { (sign, x) };
    let (sign, x) = if x > 90.0 { (-sign, 180.0 - x) } else { (sign, x) };
    // (The sum of both zeros is the one without a sign.)
    sign * (quotient(x) / quotient(45.0)) + 0.0
}

/// In the first quadrant.
fn sine(x: f64) -> f64 {
    if x <= 30.0 { sine_to_30(x) } else { cosine_to_60(90.0 - x) }
}

fn cosine(x: f64) -> f64 {
    if x <= 60.0 { cosine_to_60(x) } else { sine_to_30(90.0 - x) }
}

fn sine_to_30(x: f64) -> f64 {
    x.to_radians().sin() / 30f64.to_radians().sin() / 2.0
}

fn cosine_to_60(x: f64) -> f64 {
    1.0 - (1.0 - x.to_radians().cos()) / (1.0 - 60f64.to_radians().cos()) / 2.0
}

/// Of a sine from 0 to 1.
fn arcsine(x: f64) -> f64 {
    match x <= 0.5 {
        true => x.asin() / 0.5f64.asin() * 30.0,
        false => 90.0 - x.acos() / 0.5f64.acos() * 60.0,
    }
}

fn arccosine(x: f64) -> f64 {
    match x <= 0.5 {
        true => 90.0 - x.asin() / 0.5f64.asin() * 30.0,
        false => x.acos() / 0.5f64.acos() * 60.0,
    }
}

fn atan2d(args: &[f64]) -> f64 {
    args[0].atan2(args[1]) / 1f64.atan() * 45.0
}
