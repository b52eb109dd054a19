//! A column of times as whole numbers, without a copy, and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int8Array, Int16Array, Int32Array, Int64Array, make_array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;

/// The numbers of a column of whole numbers, dates or times.
pub(crate) enum Instants {
    Byte(ScalarBuffer<i8>),
    Short(ScalarBuffer<i16>),
    Int(ScalarBuffer<i32>),
    Long(ScalarBuffer<i64>),
}

impl Instants {
    /// # Panics
    /// If the column is of another type.
    pub(crate) fn of(column: &ArrayRef) -> Instants {
        use DataType::{Date32, Date64, Int8, Int16, Int32, Int64, Time32, Time64, Timestamp};
        let data = column.to_data();
        let (offset, len) = (data.offset(), data.len());
        let buffer = || data.buffers()[0].clone();
        match column.data_type() {
            Int8 => Instants::Byte(ScalarBuffer::new(buffer(), offset, len)),
            Int16 => Instants::Short(ScalarBuffer::new(buffer(), offset, len)),
            Int32 | Date32 | Time32(_) => Instants::Int(ScalarBuffer::new(buffer(), offset, len)),
            Int64 | Date64 | Time64(_) | Timestamp(..) => Instants::Long(ScalarBuffer::new(buffer(), offset, len)),
            other => panic!("the planner matches times, not {other}"),
        }
    }

    #[inline]
    pub(crate) fn at(&self, row: usize) -> i64 {
        match self {
            Instants::Byte(values) => i64::from(values[row]),
            Instants::Short(values) => i64::from(values[row]),
            Instants::Int(values) => i64::from(values[row]),
            Instants::Long(values) => values[row],
        }
    }
}

/// The column of a type that has these numbers.
///
/// # Panics
/// If the type is no time, or too narrow for a number.
pub(crate) fn column_of(numbers: &[i64], data_type: &DataType) -> ArrayRef {
    use DataType::{Date32, Int8, Int16, Int32, Time32};
    const NARROW: &str = "the numbers of a column fit its type";
    let column: ArrayRef = match data_type {
        Int8 => Arc::new(Int8Array::from_iter_values(numbers.iter().map(|n| i8::try_from(*n).expect(NARROW)))),
        Int16 => Arc::new(Int16Array::from_iter_values(numbers.iter().map(|n| i16::try_from(*n).expect(NARROW)))),
        Int32 | Date32 | Time32(_) => {
            Arc::new(Int32Array::from_iter_values(numbers.iter().map(|n| i32::try_from(*n).expect(NARROW))))
        }
        _ => Arc::new(Int64Array::from(numbers.to_vec())),
    };
    let data = column.into_data().into_builder().data_type(data_type.clone()).build();
    make_array(data.expect("times are whole numbers of their width"))
}
