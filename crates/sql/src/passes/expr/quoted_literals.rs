//! Literals in quotes beside values of other types: they have those types, as in PostgreSQL;
//! DataFusion would make text of all, or refuse.
//!
//! Beside decimals a literal is a decimal of its own digits: `n < '2.254'` is not rounded to the
//! column's scale.

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_expr::{Expr, cast};

use crate::functions::conversions::ByteaIn;
use crate::functions::decimal_text::decimal;
use crate::resolve::common_types::float_among;
use crate::resolve::type_names::is_text;

/// Reads the literals among values that must be of one type; `types` are those of the values.
/// Returns whether there were some.
pub(crate) fn read_literals(values: &mut [&mut Expr], types: &mut [DataType]) -> bool {
    let is_open = |(value, is): (&&mut Expr, &DataType)| is.is_null() || is_literal_text(value);
    let beside: Vec<DataType> =
        values.iter().zip(&*types).filter(|of| !is_open((of.0, of.1))).map(|(_, is)| is.clone()).collect();
    if beside.is_empty() || beside.iter().any(is_text) {
        return false;
    }
    let mut is_changed = false;
    for (value, is) in values.iter_mut().zip(types) {
        if let Some((read, as_type)) = read_literal(value, &beside) {
            (**value, *is) = (read, as_type);
            is_changed = true;
        }
    }
    is_changed
}

/// A literal in quotes as a value beside others, and its type.
pub(crate) fn read_literal(value: &Expr, beside: &[DataType]) -> Option<(Expr, DataType)> {
    let Expr::Literal(literal, _) = value else { return None };
    if !is_literal_text(value) {
        return None;
    }
    let among = |wanted: fn(&DataType) -> bool| beside.iter().find(|is| wanted(is)).cloned();
    let typed = float_among(beside)
        .or_else(|| among(|is| matches!(is, DataType::Timestamp(_, Some(_)))))
        .or_else(|| among(|is| matches!(is, DataType::Timestamp(_, None))))
        .or_else(|| among(|is| *is == TYPE))
        .or_else(|| among(DataType::is_decimal))
        .or_else(|| among(|is| *is == DataType::Int64))
        .or_else(|| among(DataType::is_integer))
        .or_else(|| among(is_read))?;
    if (typed.is_decimal() || typed == TYPE)
        && let Some(decimal) = literal.try_as_str().flatten().and_then(decimal)
    {
        let own = decimal.data_type();
        return Some((Expr::Literal(decimal, None), own));
    }
    let read = match &typed {
        DataType::Binary | DataType::BinaryView => ByteaIn::udf().call(vec![value.clone()]),
        _ => cast(value.clone(), typed.clone()),
    };
    Some((read, typed))
}

fn is_literal_text(value: &Expr) -> bool {
    matches!(value, Expr::Literal(literal, _) if is_text(&literal.data_type()))
}

fn is_read(beside: &DataType) -> bool {
    use DataType as D;
    matches!(beside, D::List(_) | D::Date32 | D::Time64(TimeUnit::Microsecond) | D::Interval(_))
        || matches!(beside, D::Boolean | D::Binary | D::BinaryView)
}
