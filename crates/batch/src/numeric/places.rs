//! Places that a column of plain numerics is shown with: `round(x, 2)` has two, as in PostgreSQL.
//!
//! Equal numbers are kept as equal bytes, so a value has no zeros at its end: they are the
//! column's. The number of places travels in the metadata of a relation's field. Law: what is shown
//! is equal to what is kept. Cost: one text a value, where values are shown.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::Field;

use super::{number_of, write};

/// The key in a field's metadata; the value is the number of places.
const KEY: &str = "anabranch.numeric_places";

/// Places behind the point that the numbers of a column are shown with, at least.
///
/// ```
/// use anabranch_batch::numeric::{NumericPlaces, TYPE};
/// use arrow::datatypes::Field;
/// let field = NumericPlaces(2).declare(Field::new("mean", TYPE, true));
/// assert_eq!(NumericPlaces::of(&field), Some(NumericPlaces(2)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumericPlaces(pub u8);

impl NumericPlaces {
    /// The places that a field declares.
    pub fn of(field: &Field) -> Option<NumericPlaces> {
        field.metadata().get(KEY)?.parse().ok().map(NumericPlaces)
    }

    /// The field with these places declared.
    pub fn declare(self, field: Field) -> Field {
        field.with_metadata([(KEY.to_string(), self.0.to_string())].into())
    }

    /// The field without places: a table shows its numerics as they are.
    pub fn taken_off(field: Field) -> Field {
        if NumericPlaces::of(&field).is_some() { field.with_metadata(HashMap::new()) } else { field }
    }

    /// A column of plain numerics as texts with these places.
    ///
    /// # Panics
    /// If the column is none of plain numerics.
    pub fn shown(self, column: &ArrayRef) -> ArrayRef {
        let numbers = column.as_binary::<i64>();
        let mut texts = StringViewBuilder::with_capacity(column.len());
        let mut text = String::new();
        for row in 0..column.len() {
            if numbers.is_null(row) {
                texts.append_null();
                continue;
            }
            text.clear();
            write(&number_of(numbers.value(row)), &mut text);
            self.fill_up(&mut text);
            texts.append_value(&text);
        }
        Arc::new(texts.finish())
    }

    /// Appends the zeros that a number's text lacks; what is no finite number stays.
    fn fill_up(self, text: &mut String) {
        if !text.ends_with(|last: char| last.is_ascii_digit()) || self.0 == 0 {
            return;
        }
        let has = match text.find('.') {
            Some(point) => text.len() - point - 1,
            None => {
                text.push('.');
                0
            }
        };
        (has..usize::from(self.0)).for_each(|_| text.push('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_added_and_nothing_is_cut_off() {
        let filled = |text: &str| {
            let mut text = text.to_string();
            NumericPlaces(2).fill_up(&mut text);
            text
        };
        assert_eq!(
            ["7", "-0.5", "1.25", "1.125", "NaN", "-Infinity"].map(filled),
            ["7.00", "-0.50", "1.25", "1.125", "NaN", "-Infinity"]
        );
    }
}
