//! `generate_series(first, last, step)` of moments, as a list; of whole numbers, DataFusion's.
//!
//! Dates are the `timestamptz` of their midnights, as in PostgreSQL. Law: each moment is the one
//! before moved by the step, so that months are those of the calendar. Cost: one move an element; a
//! series of more than [`ELEMENTS_MAX`] is an error, as is one without an end.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion_common::{Result as DfResult, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::series::FOLDED_MAX;
use crate::passes::plan::options::is_planner;
use crate::resolve::type_names::{UTC, is_text, sql_name};
use crate::time::columns::of_arrow;
use crate::time::interval::{DAYS_A_MONTH, Interval};
use crate::time::moments::{End, MomentShift, micros_column, moved};

/// Elements of one series.
pub(crate) const ELEMENTS_MAX: usize = 100_000_000;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The function with series of moments beside those of numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct MomentSeries {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl MomentSeries {
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        if function.name() != "generate_series" {
            return function;
        }
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(MomentSeries { inner: function, signature }))
    }
}

fn is_moment(is: &DataType) -> bool {
    matches!(is, DataType::Date32 | DataType::Timestamp(..))
}

/// The elements of a series from a moment of the first type to one of the second.
fn element(arg_types: &[DataType]) -> DataType {
    let is_local = |is: &DataType| matches!(is, DataType::Timestamp(_, None)) || !is_moment(is);
    let zone = if arg_types.iter().take(2).all(is_local) { None } else { Some(UTC.into()) };
    DataType::Timestamp(TimeUnit::Microsecond, zone)
}

impl ScalarUDFImpl for MomentSeries {
    fn name(&self) -> &str {
        "generate_series"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        if !arg_types.iter().take(2).any(is_moment) {
            let is_whole = |is: &DataType| is.is_integer() || is.is_null() || is_text(is);
            if !(2..=3).contains(&arg_types.len()) || !arg_types.iter().all(is_whole) {
                let types: Vec<String> = arg_types.iter().map(sql_name).collect();
                return plan_err!("function generate_series({}) does not exist", types.join(", "));
            }
            return self.inner.return_type(&vec![DataType::Int64; arg_types.len()]);
        }
        let is_step = |is: &DataType| matches!(is, DataType::Interval(_) | DataType::Null) || is_text(is);
        match arg_types {
            [first, last, step]
                if is_step(step) && [first, last].iter().all(|is| is_moment(is) || is_text(is) || is.is_null()) =>
            {
                Ok(DataType::List(Arc::new(Field::new_list_field(element(arg_types), true))))
            }
            _ => {
                let types: Vec<String> = arg_types.iter().map(sql_name).collect();
                plan_err!(
                    "function generate_series({}) does not exist: write the step, as in generate_series(a, b, interval '1 day')",
                    types.join(", ")
                )
            }
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let return_field = Arc::clone(&args.return_field);
        let of_moments = match return_field.data_type() {
            DataType::List(element) if is_moment(element.data_type()) => Some(element),
            _ => None,
        };
        let Some(element) = of_moments else {
            for (arg, field) in args.args.iter_mut().zip(&mut args.arg_fields) {
                *arg = arg.cast_to(&DataType::Int64, None)?;
                *field = Arc::new(Field::new(field.name(), DataType::Int64, true));
            }
            return self.inner.invoke_with_args(args);
        };
        let columns: Vec<ArrayRef> =
            args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<_>>()?;
        match columns.as_slice() {
            [first, last, step] => {
                // (The planner keeps a call that fails.)
                let elements_max = if is_planner(&args.config_options) { FOLDED_MAX } else { ELEMENTS_MAX };
                Ok(ColumnarValue::Array(series([first, last, step], element, elements_max)?))
            }
            _ => exec_err!("generate_series of moments takes three arguments"),
        }
    }
}

fn series([first, last, step]: [&ArrayRef; 3], element: &FieldRef, elements_max: usize) -> DfResult<ArrayRef> {
    let (first, last, step) = (micros_column(first)?, micros_column(last)?, cast(step, &INTERVAL)?);
    let step = step.as_primitive::<IntervalMonthDayNanoType>();
    let (mut moments, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..first.len() {
        let is_valid = first.is_valid(row) && last.is_valid(row) && step.is_valid(row);
        let before = moments.len();
        if is_valid {
            push_series(first.value(row), last.value(row), of_arrow(step.value(row)), elements_max, &mut moments)?;
        }
        lengths.push(moments.len() - before);
        valid.push(is_valid);
    }
    let moments = TimestampMicrosecondArray::from(moments).with_data_type(element.data_type().clone());
    let offsets = OffsetBuffer::from_lengths(lengths);
    let valid = NullBuffer::from(valid);
    let list = ListArray::try_new(Arc::clone(element), offsets, Arc::new(moments), Some(valid))?;
    Ok(Arc::new(list))
}

fn push_series(first: i64, last: i64, step: Interval, elements_max: usize, out: &mut Vec<i64>) -> DfResult<()> {
    let days = i128::from(step.months) * i128::from(DAYS_A_MONTH) + i128::from(step.days);
    let length = days * 86_400_000_000 + i128::from(step.micros);
    if length == 0 {
        return exec_err!("step size cannot equal zero");
    }
    let is_over = |moment: i64| if length > 0 { moment > last } else { moment < last };
    if is_over(first) {
        return Ok(());
    }
    let ends = [first, last].map(End::of_micros);
    if ends.iter().any(Option::is_some) {
        return exec_err!("generate_series from {} to {} has no end: give it finite ones", shown(first), shown(last));
    }
    let n_before = out.len();
    let mut moment = first;
    while !is_over(moment) {
        if out.len() - n_before >= elements_max {
            return exec_err!("generate_series has more than {elements_max} elements: take a longer step");
        }
        out.push(moment);
        moment =
            moved(moment, step, MomentShift::Later).ok_or_else(|| exec_datafusion_err!("timestamp out of range"))?;
    }
    Ok(())
}

fn shown(micros: i64) -> String {
    End::of_micros(micros).map_or_else(|| "a finite timestamp".to_owned(), |end| end.text().to_owned())
}
