//! Trigonometry in degrees, `sind(30)`: exact where the result is. Also `acosh`, `atanh` and
//! `atan2`.
//!
//! Law: PostgreSQL's answers. Each function is reduced to the first quadrant, and there divided by
//! its value at 30, 45 or 60 degrees, so that these come out exactly. An angle that is infinite,
//! and a sine beyond 1, are errors. Cost: one call or two of the system's functions a row. Source:
//! PostgreSQL's manual, 9.3.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 11] {
    let function = |name, arity, compute| {
        let signature = Signature::uniform(arity, vec![DataType::Float64], Volatility::Immutable);
        Arc::new(ScalarUDF::from(InDegrees { name, compute, signature }))
    };
    [
        function("sind", 1, |x| folded(x[0]).map(|angle| angle.sine_sign * sine(angle.x))),
        function("cosd", 1, |x| folded(x[0]).map(|angle| angle.cosine_sign * cosine(angle.x))),
        function("tand", 1, |x| folded(x[0]).map(|angle| angle.by_45(|x| sine(x) / cosine(x)))),
        function("cotd", 1, |x| folded(x[0]).map(|angle| angle.by_45(|x| cosine(x) / sine(x)))),
        function("asind", 1, |x| of_sine(x[0], |x| if x < 0.0 { -arcsine(-x) } else { arcsine(x) })),
        function("acosd", 1, |x| of_sine(x[0], |x| if x < 0.0 { 90.0 + arcsine(-x) } else { arccosine(x) })),
        function("atand", 1, |x| Some(x[0].atan() / 1f64.atan() * 45.0)),
        function("acosh", 1, |x| (x[0] >= 1.0 || x[0].is_nan()).then(|| x[0].acosh())),
        function("atanh", 1, |x| (x[0].abs() <= 1.0 || x[0].is_nan()).then(|| x[0].atanh())),
        function("atan2", 2, |args| Some(angle(args))),
        function("atan2d", 2, |args| Some(angle(args) / 1f64.atan() * 45.0)),
    ]
}

/// The angle of a point, y and x. (A zero has no sign: -0 and 0 are equal, so a group or a key may
/// hold either.)
fn angle(point: &[f64]) -> f64 {
    (point[0] + 0.0).atan2(point[1] + 0.0)
}

/// A function of doubles; `None` if an argument is out of its range.
#[derive(Debug)]
struct InDegrees {
    name: &'static str,
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
        let mut row_args = vec![0.0; columns.len()];
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

/// An angle as one of the first quadrant.
struct Folded {
    /// Degrees from 0 to 90.
    x: f64,
    /// What the sine of `x` is multiplied by.
    sine_sign: f64,
    cosine_sign: f64,
}

/// `None` of an infinite angle.
fn folded(x: f64) -> Option<Folded> {
    if x.is_infinite() {
        return None;
    }
    let (x, sine_sign) = if x < 0.0 { (-x % 360.0, -1.0) } else { (x % 360.0, 1.0) };
    let (x, sine_sign) = if x > 180.0 { (360.0 - x, -sine_sign) } else { (x, sine_sign) };
    let (x, cosine_sign) = if x > 90.0 { (180.0 - x, -1.0) } else { (x, 1.0) };
    Some(Folded { x, sine_sign, cosine_sign })
}

impl Folded {
    /// A tangent or cotangent by its value at 45 degrees. Zero has no sign.
    fn by_45(&self, quotient: impl Fn(f64) -> f64) -> f64 {
        // (The sum of both zeros is the one without a sign.)
        self.sine_sign * self.cosine_sign * (quotient(self.x) / quotient(45.0)) + 0.0
    }
}

fn of_sine(x: f64, of: impl Fn(f64) -> f64) -> Option<f64> {
    (x.is_nan() || x.abs() <= 1.0).then(|| of(x))
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
