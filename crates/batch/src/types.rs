//! Which Arrow types rows may have, and the one form each is stored in.
//!
//! Law: kernels of this crate accept every type that [`check`] accepts. Within a collection each column has one storage type ([`storage_type`]), so that
//! joins and merges never meet two forms of one value; [`to_storage`] brings foreign arrays into it, without loss except that times
//! finer than a microsecond are cut.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
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
        D::Null | D::Boolean | D::Float16 | D::Float32 | D::Float64 | D::Decimal128(..) | D::Decimal256(..) => Ok(()),
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

/// The type that columns of `data_type` are stored in: views for text and bytes, microseconds for times of day and timestamps, days for dates, 128
/// bits for narrow decimals, and the values of dictionaries and run-end encodings. Nested types by their parts; all others stay.
pub fn storage_type(data_type: &DataType) -> DataType {
    use DataType as D;
    match data_type {
        D::Utf8 | D::LargeUtf8 => D::Utf8View,
        D::Binary | D::LargeBinary => D::BinaryView,
        D::Timestamp(_, zone) => D::Timestamp(TimeUnit::Microsecond, zone.clone()),
        D::Time32(_) | D::Time64(_) => D::Time64(TimeUnit::Microsecond),
        D::Date64 => D::Date32,
        D::Decimal32(precision, scale) | D::Decimal64(precision, scale) => D::Decimal128(*precision, *scale),
        D::Dictionary(_, values) => storage_type(values),
        D::RunEndEncoded(_, values) => storage_type(values.data_type()),
        D::List(element) => D::List(storage_field(element)),
        D::LargeList(element) => D::LargeList(storage_field(element)),
        D::FixedSizeList(element, _) => D::List(storage_field(element)),
        D::Struct(fields) => D::Struct(fields.iter().map(storage_field).collect()),
        other => other.clone(),
    }
}

/// The array in its storage type; the same array when it has it already.
///
/// # Errors
/// [`ToStorageError::Unsupported`] if rows cannot have the type; [`ToStorageError::Value`] if a value does not fit (a timestamp in seconds beyond the year 294,000).
pub fn to_storage(array: &ArrayRef) -> Result<ArrayRef, ToStorageError> {
    let storage = storage_type(array.data_type());
    check(&storage)?;
    if *array.data_type() == storage {
        return Ok(array.clone());
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, &storage, &strict)?)
}

/// Why an array did not reach its storage type.
#[derive(Debug)]
pub enum ToStorageError {
    /// Rows cannot have this type.
    Unsupported(Unsupported),
    /// A value of the array does not fit its storage type.
    Value(ArrowError),
}

impl std::fmt::Display for ToStorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ToStorageError::Unsupported(unsupported) => unsupported.fmt(f),
            ToStorageError::Value(_) => write!(f, "a value does not fit its storage type"),
        }
    }
}

impl std::error::Error for ToStorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ToStorageError::Unsupported(_) => None,
            ToStorageError::Value(cause) => Some(cause),
        }
    }
}

impl From<Unsupported> for ToStorageError {
    fn from(unsupported: Unsupported) -> Self {
        ToStorageError::Unsupported(unsupported)
    }
}

impl From<ArrowError> for ToStorageError {
    fn from(cause: ArrowError) -> Self {
        ToStorageError::Value(cause)
    }
}

/// Both arrays in one form, when they are different forms of one kind of value: integers or floats of several widths, text or bytes in
/// several layouts. `None` when they need no conversion, or none exists.
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
        (D::Decimal128(_, left), D::Decimal128(_, right)) => left == right,
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

fn storage_field(field: &FieldRef) -> FieldRef {
    let data_type = storage_type(field.data_type());
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
    fn storage_types_are_supported_and_final() {
        for data_type in all_types() {
            let storage = storage_type(&data_type);
            assert_eq!(check(&storage), Ok(()), "{data_type}");
            assert_eq!(storage_type(&storage), storage, "{data_type}");
        }
    }

    #[test]
    fn arrays_reach_their_storage_type_with_their_nulls() {
        let mut rng = Rng::from_env(41);
        for data_type in all_types() {
            let column = random_column(&mut rng, &data_type, 20);
            match to_storage(&column) {
                Ok(stored) => {
                    assert_eq!(stored.data_type(), &storage_type(&data_type));
                    assert_eq!(stored.logical_null_count(), column.logical_null_count());
                }
                Err(error) => assert!(matches!(error, ToStorageError::Value(_)), "{data_type}: {error}"),
            }
        }
    }

    #[test]
    fn foreign_forms_are_brought_to_one() {
        let dictionary: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
        let stored = to_storage(&(Arc::new(dictionary) as ArrayRef)).unwrap();
        assert_eq!(stored.as_string_view().value(2), "x");

        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1]).with_timezone("UTC"));
        let stored = to_storage(&seconds).unwrap();
        assert_eq!(stored.as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000);
        assert_eq!(stored.data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));

        let days: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000]));
        assert_eq!(to_storage(&days).unwrap().as_primitive::<Date32Type>().value(0), 1);

        let narrow: ArrayRef = Arc::new(Decimal64Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap());
        assert_eq!(to_storage(&narrow).unwrap().as_primitive::<Decimal128Type>().value(0), 150);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        assert!(matches!(to_storage(&far), Err(ToStorageError::Value(_))));
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
        assert!(Arc::ptr_eq(&to_storage(&column).unwrap(), &column));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert_eq!(to_storage(&text).unwrap().data_type(), &DataType::Utf8View);
    }
}
