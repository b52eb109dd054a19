//! `generate_series`: DataFusion's, with PostgreSQL's choice of types.
//!
//! Numbers of which one is a decimal make a series of decimals; dates make one of `timestamptz`; a
//! literal in quotes is the bound or the interval that its place asks for.
//!
//! Cost: the series is made whole, before its rows are counted; but not by the planner, which would
//! write its numbers in the names of columns, again and again: a long one stays a call.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::array::{Array, ArrayBuilder, AsArray, Decimal128Array, Decimal128Builder, ListBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, IntervalUnit, TimeUnit};
use datafusion_common::{Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::moment_series::ELEMENTS_MAX;
use crate::passes::plan::options::is_planner;
use crate::resolve::type_names::{UTC, is_text};

/// Digits of the numbers of a series.
const PRECISION: u8 = 38;

/// Digits behind the point of numerics that do not say how many they have.
const PLAIN_SCALE: i8 = 16;

/// A series of more numbers is no constant of the plan.
pub(crate) const FOLDED_MAX: usize = 1 << 10;

/// The function around DataFusion's.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TypedSeries {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl TypedSeries {
    /// The function as PostgreSQL has it, or another function as it is.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match function.name() {
            "generate_series" => {
                let signature = Signature::user_defined(Volatility::Immutable);
                Arc::new(ScalarUDF::from(Self { inner: function, signature }))
            }
            _ => function,
        }
    }
}

impl ScalarUDFImpl for TypedSeries {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        let refused = || plan_err!("function generate_series does not take these arguments");
        let (2 | 3, Some(bounds)) = (types.len(), types.get(..2)) else { return refused() };
        let is_open = |is: &DataType| is.is_null() || is_text(is);
        let moment = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let is_plain = |is: &DataType| matches!(is, DataType::Timestamp(_, None));
        let is_moment = |is: &DataType| matches!(is, DataType::Timestamp(..) | DataType::Date32);
        if bounds.iter().any(is_moment) {
            let is_interval = |is: &DataType| is_open(is) || matches!(is, DataType::Interval(_));
            if !bounds.iter().all(|is| is_moment(is) || is_open(is)) || !types.get(2).is_some_and(is_interval) {
                return refused();
            }
            let has_zone = bounds.iter().any(|is| matches!(is, DataType::Timestamp(_, Some(_))));
            let moment = if bounds.iter().any(is_plain) && !has_zone { moment(None) } else { moment(Some(UTC)) };
            return Ok(vec![moment.clone(), moment, DataType::Interval(IntervalUnit::MonthDayNano)]);
        }
        let is_number = |is: &DataType| is_open(is) || is.is_integer() || is.is_decimal() || *is == TYPE;
        if types.iter().all(is_open) && !types.iter().any(DataType::is_null) || !types.iter().all(is_number) {
            return refused();
        }
        let scale = |is: &DataType| match is {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Some(*scale),
            is if *is == TYPE => Some(PLAIN_SCALE),
            _ => None,
        };
        let of_all = match types.iter().filter_map(scale).max() {
            Some(scale) => DataType::Decimal128(PRECISION, scale.max(0)),
            None => DataType::Int64,
        };
        Ok(vec![of_all; types.len()])
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        match &types[0] {
            number @ DataType::Decimal128(..) => {
                Ok(DataType::List(Arc::new(Field::new_list_field(number.clone(), true))))
            }
            _ => self.inner.return_type(types),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        if is_planner(&args.config_options) && !is_short(&args.args) {
            // (The planner keeps a call that fails.)
            return exec_err!("the series is long");
        }
        let number = args.args[0].data_type();
        let DataType::Decimal128(precision, scale) = number else {
            check_lengths(&args)?;
            return self.inner.invoke_with_args(args);
        };
        let columns = args.args.iter().map(|arg| {
            let column = cast(&arg.to_array(args.number_rows)?, &number)?;
            Ok(column.as_primitive::<Decimal128Type>().clone())
        });
        let columns = columns.collect::<DfResult<Vec<Decimal128Array>>>()?;
        let one = 10i128.pow(u32::from(scale.unsigned_abs()));
        let values = Decimal128Builder::new().with_precision_and_scale(precision, scale)?;
        let mut lists = ListBuilder::new(values);
        for row in 0..args.number_rows {
            if columns.iter().any(|column| column.is_null(row)) {
                lists.append(false);
                continue;
            }
            let (mut at, stop) = (columns[0].value(row), columns[1].value(row));
            let step = columns.get(2).map_or(one, |step| step.value(row));
            if step == 0 {
                return exec_err!("step size cannot equal zero");
            }
            while if step > 0 { at <= stop } else { at >= stop } {
                if lists.values().len() >= ELEMENTS_MAX {
                    return exec_err!("{}", too_long());
                }
                lists.values().append_value(at);
                let Some(next) = at.checked_add(step) else { break };
                at = next;
            }
            lists.append(true);
        }
        Ok(ColumnarValue::Array(Arc::new(lists.finish())))
    }
}

fn too_long() -> String {
    format!("generate_series has more than {ELEMENTS_MAX} elements: take a longer step, or a nearer end")
}

/// An error where series of whole numbers together have more elements than there is memory for.
fn check_lengths(args: &ScalarFunctionArgs) -> DfResult<()> {
    let columns = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<Vec<_>>>()?;
    let whole = |column: usize| columns.get(column)?.as_primitive_opt::<Int64Type>();
    let (Some(first), Some(last)) = (whole(0), whole(1)) else { return Ok(()) };
    let step = |row: usize| whole(2).map_or(1, |step| step.value(row));
    let known = (0..args.number_rows).filter(|row| columns.iter().all(|column| column.is_valid(*row)));
    let elements = known.map(|row| n_elements(first.value(row), last.value(row), step(row)));
    match elements.sum::<u128>() > ELEMENTS_MAX as u128 {
        true => exec_err!("{}", too_long()),
        false => Ok(()),
    }
}

/// Whether a series of constants has few elements. (One of other things than whole numbers is
/// another's to limit.)
fn is_short(bounds: &[ColumnarValue]) -> bool {
    let whole = |bound: &ColumnarValue| match bound {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(bound))) => Some(*bound),
        _ => None,
    };
    let n_elements = match bounds.iter().map(whole).collect::<Option<Vec<i64>>>().as_deref() {
        Some([first, last]) => n_elements(*first, *last, 1),
        Some([first, last, step]) => n_elements(*first, *last, *step),
        _ => 0,
    };
    n_elements <= FOLDED_MAX as u128
}

/// How many elements a series of whole numbers has. (A step of zero is another's error.)
fn n_elements(first: i64, last: i64, step: i64) -> u128 {
    let is_empty = step == 0 || if step > 0 { first > last } else { first < last };
    if is_empty { 0 } else { u128::from(first.abs_diff(last) / step.unsigned_abs()) + 1 }
}
