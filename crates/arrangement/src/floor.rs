//! Floors: rows that readers will not look at any more, by the value of a column.
//!
//! Law: a row may go once it is below a floor of every reader. A reader without a floor keeps all
//! rows. Contents restricted to the rows above a reader's floor are what they were; contents below
//! it may be anything, since whole histories go in one merge and not in another. NULL is below no
//! floor.
//!
//! Floors only rise. Rows go where runs are merged, chunk by chunk: a chunk wholly below is dropped
//! unread, one wholly above is kept as it is. Cost: a look at one column for each row that is
//! merged, and a copy of the rows that stay of a chunk of which some go.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

/// Rows with a value of `column` before `below` will not be asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Floor {
    /// Position in the arrangement's rows, of a type that [has ticks](has_ticks).
    pub column: usize,
    /// The least value that is asked for, in units of the column.
    pub below: i64,
}

/// The floors of all readers: a row that is below each of them may go. Without a floor none may.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Floors(Vec<Floor>);

/// Whether values of a type are whole numbers of some unit, in the same order.
pub fn has_ticks(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
        || matches!(data_type, DataType::Timestamp(..) | DataType::Decimal128(_, 0))
}

/// The values of such a column; NULL for a numeric beyond 64 bits.
///
/// # Panics
/// If the column's type [has no ticks](has_ticks).
pub fn ticks(column: &ArrayRef) -> Int64Array {
    let ticks = cast(column, &DataType::Int64).expect("dates, timestamps and whole numbers are whole numbers");
    ticks.as_primitive::<Int64Type>().clone()
}

impl Floors {
    /// The floors of readers, of which one without a floor keeps all.
    pub fn of_readers(floors: impl Iterator<Item = Option<Floor>>) -> Floors {
        let Some(mut floors) = floors.collect::<Option<Vec<Floor>>>() else { return Floors::default() };
        floors.sort_unstable();
        // (Of one column the least floor is first.)
        floors.dedup_by_key(|floor| floor.column);
        Floors(floors)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows that stay, of so many with these columns.
    pub fn staying(&self, column: impl Fn(usize) -> ArrayRef, n_rows: usize) -> Vec<u32> {
        let columns: Vec<(Int64Array, i64)> =
            self.0.iter().map(|floor| (ticks(&column(floor.column)), floor.below)).collect();
        let is_below = |row: u32| {
            let mut columns = columns.iter();
            columns.all(|(ticks, below)| ticks.is_valid(row as usize) && ticks.value(row as usize) < *below)
        };
        (0..n_rows as u32).filter(|row| !is_below(*row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_without_a_floor_keeps_all() {
        let floor = |column, below| Some(Floor { column, below });
        assert!(Floors::of_readers([floor(0, 5), None].into_iter()).is_empty());
        assert!(Floors::of_readers(std::iter::empty()).is_empty());
        let floors = Floors::of_readers([floor(1, 7), floor(0, 5), floor(1, 3)].into_iter());
        assert_eq!(floors.0, [Floor { column: 0, below: 5 }, Floor { column: 1, below: 3 }]);
    }
}
