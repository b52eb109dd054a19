//! Which Arrow types rows may have, and the forms that each has in plans and in batches.
//!
//! Law: kernels of this crate accept every type that [`check`] accepts. Schemas and plans know one
//! type of each kind ([`planned_type`]), so that joins and merges never meet two forms of one
//! value; [`to_planned`] brings foreign arrays into it, without loss except that times finer than a
//! microsecond are cut. Within batches a column differs in one thing: decimals of at most eighteen
//! digits take eight bytes ([`narrowed`], and back [`widened`]).

use arrow::array::{Array, ArrayRef, AsArray, Decimal64Array, Decimal128Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DataType, Decimal64Type, Decimal128Type, Field, FieldRef,
    TimeUnit,
};
use arrow::error::ArrowError;
use std::sync::Arc;

/// A type that rows cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The type as given.
    pub data_type: DataType,
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "type {} is not supported", self.data_type)
    }
}

impl std::error::Error for Unsupported {}

/// Whether columns of this type can be rows of a batch.
///
/// # Errors
/// Names the type, or the nested type, that cannot.
pub fn check(data_type: &DataType) -> Result<(), Unsupported> {
    use DataType as D;
    match data_type {
        D::Null | D::Boolean | D::Float16 | D::Float32 | D::Float64 | D::Decimal256(..) => Ok(()),
        D::Decimal64(..) | D::Decimal128(..) => Ok(()),
        D::Date32 | D::Date64 | D::Time32(_) | D::Time64(_) | D::Timestamp(..) | D::Interval(_) | D::Duration(_) => {
            Ok(())
        }
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Binary | D::LargeBinary | D::BinaryView => Ok(()),
        D::FixedSizeBinary(width) if *width >= 0 => Ok(()),
        D::List(element) | D::LargeList(element) => check(element.data_type()),
        D::Struct(fields) => fields.iter().try_for_each(|field| check(field.data_type())),
        integer if integer.is_integer() => Ok(()),
        other => Err(Unsupported { data_type: other.clone() }),
    }
}

/// The type that columns of `data_type` have in schemas and plans: views for text and bytes,
/// microseconds for times of day and timestamps, days for dates, 128 bits for narrow decimals, and
/// the values of dictionaries and run-end encodings. `LargeBinary` is plain `numeric`
/// ([`numeric::TYPE`](crate::numeric)): callers bring foreign bytes of that type into views before.
/// Nested types by their parts; all others stay.
pub fn planned_type(data_type: &DataType) -> DataType {
    use DataType as D;
    match data_type {
        D::Utf8 | D::LargeUtf8 => D::Utf8View,
        D::Binary => D::BinaryView,
        D::Timestamp(_, zone) => D::Timestamp(TimeUnit::Microsecond, zone.clone()),
        D::Time32(_) | D::Time64(_) => D::Time64(TimeUnit::Microsecond),
        D::Date64 => D::Date32,
        D::Decimal32(precision, scale) | D::Decimal64(precision, scale) => D::Decimal128(*precision, *scale),
        D::Dictionary(_, values) => planned_type(values),
        D::RunEndEncoded(_, values) => planned_type(values.data_type()),
        D::List(element) => D::List(planned_field(element)),
        D::LargeList(element) => D::LargeList(planned_field(element)),
        D::FixedSizeList(element, _) => D::List(planned_field(element)),
        D::Struct(fields) => D::Struct(fields.iter().map(planned_field).collect()),
        other => other.clone(),
    }
}

/// The array in its planned type; the same array when it has it already. Of a stored decimal:
/// O(rows), sixteen bytes a row.
///
/// # Errors
/// [`ConversionError::Unsupported`] if rows cannot have the type; [`ConversionError::Value`] if a
/// value does not fit (a timestamp in seconds beyond the year 294,000).
pub fn to_planned(array: &ArrayRef) -> Result<ArrayRef, ConversionError> {
    let planned = planned_type(array.data_type());
    check(&planned)?;
    if *array.data_type() == planned {
        return Ok(array.clone());
    }
    if let DataType::Decimal64(..) = array.data_type() {
        return Ok(widened(array));
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, &planned, &strict)?)
}

/// A decimal of 64 bits as one of 128, as it is in expressions, in lists and in what users are
/// shown; others as they are. O(rows) for the former.
pub fn widened(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Decimal64(..) => {
            let wide: Decimal128Array = array.as_primitive::<Decimal64Type>().unary(i128::from);
            Arc::new(wide.with_data_type(widened_type(array.data_type())))
        }
        _ => array.clone(),
    }
}

/// The type of [`widened`] columns.
pub fn widened_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
        other => other.clone(),
    }
}

/// The type that columns of a planned type have in batches: decimals of at most eighteen digits are
/// of 64 bits there. (Those within lists and structs are of 128.)
pub fn narrowed_type(planned: &DataType) -> DataType {
    match planned {
        DataType::Decimal128(precision, scale) if *precision <= DECIMAL64_MAX_PRECISION => {
            DataType::Decimal64(*precision, *scale)
        }
        other => other.clone(),
    }
}

/// An array of a planned type as it is in batches: the opposite of [`widened`]. O(rows) for
/// decimals of at most eighteen digits, and for those of 38, whose sums and products may have more;
/// nothing for others.
///
/// # Errors
/// [`ConversionError::Value`] if a decimal has more than 38 digits, or more than its type says, and
/// more than 64 bits hold.
pub fn narrowed(array: &ArrayRef) -> Result<ArrayRef, ConversionError> {
    let narrow_type = narrowed_type(array.data_type());
    if let DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) = narrow_type {
        return check_widest(array.as_primitive()).map(|()| array.clone());
    }
    if *array.data_type() == narrow_type {
        return Ok(array.clone());
    }
    let wide = array.as_primitive::<Decimal128Type>();
    let narrow: Decimal64Array = wide.unary(|value| value as i64);
    let is_same = |(&wide, &narrow): (&i128, &i64)| wide == i128::from(narrow);
    let all_same = wide.values().iter().zip(narrow.values()).fold(true, |all, pair| all & is_same(pair));
    // (Where there is no value anything may be.)
    let differs = |row: &usize| wide.is_valid(*row) && !is_same((&wide.values()[*row], &narrow.values()[*row]));
    match (0..wide.len()).filter(|_| !all_same).find(differs) {
        Some(row) => Err(too_long(wide, row, DECIMAL64_MAX_PRECISION)),
        None => Ok(Arc::new(narrow.with_data_type(narrow_type))),
    }
}

/// An error if a decimal has more than 38 digits: 128 bits hold some of those.
fn check_widest(wide: &Decimal128Array) -> Result<(), ConversionError> {
    let limit = 10u128.pow(DECIMAL128_MAX_PRECISION.into());
    let is_long = |value: &i128| value.unsigned_abs() >= limit;
    if !wide.values().iter().fold(false, |any, value| any | is_long(value)) {
        return Ok(());
    }
    match (0..wide.len()).find(|&row| wide.is_valid(row) && is_long(&wide.value(row))) {
        Some(row) => Err(too_long(wide, row, DECIMAL128_MAX_PRECISION)),
        None => Ok(()),
    }
}

fn too_long(decimals: &Decimal128Array, row: usize, digits: u8) -> ConversionError {
    // (Digits and point by hand: Arrow shows 38 at most.)
    let (value, scale) = (decimals.value(row), usize::try_from(decimals.scale()).unwrap_or(0));
    let text = format!("{:0>1$}", value.unsigned_abs(), scale + 1);
    let (whole, part) = text.split_at(text.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    ConversionError::Value(ArrowError::CastError(format!("{sign}{whole}{point}{part} has more than {digits} digits")))
}

/// Why an array did not reach the type that it should.
#[derive(Debug)]
pub enum ConversionError {
    /// Rows cannot have this type.
    Unsupported(Unsupported),
    /// A value of the array does not fit the type.
    Value(ArrowError),
}

impl ConversionError {
    /// What is wrong, in one line.
    pub fn detail(&self) -> String {
        match self {
            ConversionError::Unsupported(unsupported) => unsupported.to_string(),
            ConversionError::Value(ArrowError::CastError(message)) => format!("value out of range: {message}"),
            ConversionError::Value(cause) => cause.to_string(),
        }
    }
}

impl std::fmt::Display for ConversionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConversionError::Unsupported(unsupported) => unsupported.fmt(f),
            ConversionError::Value(_) => write!(f, "a value does not fit its type"),
        }
    }
}

impl std::error::Error for ConversionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConversionError::Unsupported(_) => None,
            ConversionError::Value(cause) => Some(cause),
        }
    }
}

impl From<Unsupported> for ConversionError {
    fn from(unsupported: Unsupported) -> Self {
        ConversionError::Unsupported(unsupported)
    }
}

impl From<ArrowError> for ConversionError {
    fn from(cause: ArrowError) -> Self {
        ConversionError::Value(cause)
    }
}

/// Both arrays in one form, when they are different forms of one kind of value: integers or floats
/// of several widths, text or bytes in several layouts. `None` when they need no conversion, or
/// none exists.
///
/// # Panics
/// If the two count in different units: the same number would mean different values.
pub(crate) fn comparable(left: &ArrayRef, right: &ArrayRef) -> Option<(ArrayRef, ArrayRef)> {
    let (l, r) = (left.data_type(), right.data_type());
    if l == r {
        return None;
    }
    assert!(same_unit(l, r), "columns of types {l} and {r} do not compare: one is converted to the other first");
    let common = match (l, r) {
        (DataType::UInt64, r) if r.is_signed_integer() => DataType::Decimal128(20, 0),
        (l, DataType::UInt64) if l.is_signed_integer() => DataType::Decimal128(20, 0),
        (l, r) if l.is_unsigned_integer() && r.is_unsigned_integer() => DataType::UInt64,
        (l, r) if l.is_integer() && r.is_integer() => DataType::Int64,
        (l, r) if l.is_floating() && r.is_floating() => DataType::Float64,
        (DataType::Decimal64(..), wide @ DataType::Decimal128(..))
        | (wide @ DataType::Decimal128(..), DataType::Decimal64(..)) => wide.clone(),
        (l, r) if l.is_string() && r.is_string() => DataType::Utf8View,
        (l, r) if is_bytes(l) && is_bytes(r) => DataType::BinaryView,
        _ => return None,
    };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let widen = |array| cast_with_options(array, &common, &strict).expect("every value fits the wider type");
    Some((widen(left), widen(right)))
}

/// Whether equal numbers mean equal values, for types that are numbers of some unit.
fn same_unit(left: &DataType, right: &DataType) -> bool {
    use DataType as D;
    match (left, right) {
        (D::Decimal64(_, left) | D::Decimal128(_, left), D::Decimal64(_, right) | D::Decimal128(_, right)) => {
            left == right
        }
        (D::Decimal256(_, left), D::Decimal256(_, right)) => left == right,
        (D::Time32(left), D::Time32(right)) | (D::Time64(left), D::Time64(right)) => left == right,
        (D::Duration(left), D::Duration(right)) => left == right,
        (D::Timestamp(left, _), D::Timestamp(right, _)) => left == right,
        _ => true,
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

fn planned_field(field: &FieldRef) -> FieldRef {
    let data_type = planned_type(field.data_type());
    if data_type == *field.data_type() {
        return field.clone();
    }
    Arc::new(Field::clone(field).with_data_type(data_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rng, all_types, random_column};
    use arrow::array::{
        AsArray, Date64Array, Decimal64Array, Decimal128Array, DictionaryArray, Int32Array, StringArray,
        TimestampSecondArray,
    };
    use arrow::datatypes::{Date32Type, Decimal128Type, Int32Type, TimestampMicrosecondType};

    #[test]
    fn planned_types_are_supported_and_final() {
        for data_type in all_types() {
            let storage = planned_type(&data_type);
            assert_eq!(check(&storage), Ok(()), "{data_type}");
            assert_eq!(planned_type(&storage), storage, "{data_type}");
        }
    }

    #[test]
    fn arrays_reach_their_planned_type_with_their_nulls() {
        let mut rng = Rng::from_env(41);
        for data_type in all_types() {
            let column = random_column(&mut rng, &data_type, 20);
            match to_planned(&column) {
                Ok(stored) => {
                    assert_eq!(stored.data_type(), &planned_type(&data_type));
                    assert_eq!(stored.logical_null_count(), column.logical_null_count());
                }
                Err(error) => assert!(matches!(error, ConversionError::Value(_)), "{data_type}: {error}"),
            }
        }
    }

    #[test]
    fn foreign_forms_are_brought_to_one() {
        let dictionary: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
        let stored = to_planned(&(Arc::new(dictionary) as ArrayRef)).unwrap();
        assert_eq!(stored.as_string_view().value(2), "x");

        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1]).with_timezone("UTC"));
        let stored = to_planned(&seconds).unwrap();
        assert_eq!(stored.as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000);
        assert_eq!(stored.data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));

        let days: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000]));
        assert_eq!(to_planned(&days).unwrap().as_primitive::<Date32Type>().value(0), 1);

        let narrow: ArrayRef = Arc::new(Decimal64Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap());
        assert_eq!(to_planned(&narrow).unwrap().as_primitive::<Decimal128Type>().value(0), 150);
    }

    fn decimals(values: Vec<Option<i128>>, precision: u8) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, 2).unwrap())
    }

    #[test]
    fn decimals_of_few_digits_are_narrow_in_batches() {
        for precision in [2, 18] {
            let planned = decimals(vec![Some(150), None, Some(-7)], precision);
            let stored = narrowed(&planned).unwrap();
            assert_eq!(stored.data_type(), &DataType::Decimal64(precision, 2));
            assert_eq!(&widened(&stored), &planned);
            assert!(Arc::ptr_eq(&narrowed(&stored).unwrap(), &stored) && Arc::ptr_eq(&widened(&planned), &planned));
        }
        let wide = decimals(vec![Some(150)], 19);
        assert!(Arc::ptr_eq(&narrowed(&wide).unwrap(), &wide));
        for data_type in all_types() {
            let planned = planned_type(&data_type);
            assert_eq!(widened_type(&narrowed_type(&planned)), planned);
        }
    }

    #[test]
    fn decimals_with_more_digits_than_are_held_are_errors() {
        let beyond = i128::from(i64::MAX) + 1;
        let error = narrowed(&decimals(vec![Some(1), Some(beyond)], 10)).unwrap_err().detail();
        assert_eq!(error, "value out of range: 92233720368547758.08 has more than 18 digits");
        assert!(narrowed(&decimals(vec![Some(beyond - 1), Some(-beyond)], 10)).is_ok());
        let widest = |value: i128| narrowed(&decimals(vec![Some(value)], 38));
        assert!(widest(10i128.pow(38) - 1).is_ok() && widest(1 - 10i128.pow(38)).is_ok());
        let error = widest(-10i128.pow(38)).unwrap_err().detail();
        assert_eq!(error, "value out of range: -1000000000000000000000000000000000000.00 has more than 38 digits");
        // Under a NULL anything may lie.
        let hidden = Decimal128Array::new(vec![beyond, 2].into(), Some(vec![false, true].into()));
        let hidden: ArrayRef = Arc::new(hidden.with_precision_and_scale(10, 2).unwrap());
        assert_eq!(
            narrowed(&hidden).unwrap().as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>(),
            [None, Some(2)]
        );
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        assert!(matches!(to_planned(&far), Err(ConversionError::Value(_))));
        let map = DataType::Map(Arc::new(Field::new("entries", DataType::Null, false)), false);
        assert_eq!(check(&map).unwrap_err().data_type, map);
        let nested = DataType::List(Arc::new(Field::new("item", map, true)));
        assert!(check(&nested).unwrap_err().to_string().contains("is not supported"));
    }

    #[test]
    #[should_panic(expected = "do not compare")]
    fn decimals_of_different_scales_do_not_compare() {
        let left: ArrayRef = Arc::new(Decimal128Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap());
        let right: ArrayRef = Arc::new(Decimal128Array::from(vec![150]).with_precision_and_scale(10, 1).unwrap());
        crate::equal::rows_equal(&[left], &[0], &[right], &[0]);
    }

    #[test]
    fn arrays_in_storage_form_are_not_copied() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        assert!(Arc::ptr_eq(&to_planned(&column).unwrap(), &column));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert_eq!(to_planned(&text).unwrap().data_type(), &DataType::Utf8View);
    }
}
