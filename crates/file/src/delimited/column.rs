//! One column of many records, from cells to an Arrow array.
//!
//! Law: entry i of the array is row i's value; a cell that cannot be read becomes NULL here and is
//! reported in `bad`, so the reader can leave its row out. Cost: one dispatch a column, one parse a
//! value; text longer than 12 bytes is copied once.

use std::{borrow::Cow, sync::Arc};

use anabranch_batch::{TextLimit, numeric};
use arrow::{
    array::{
        ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewBuilder, BooleanBuilder, NullBufferBuilder, PrimitiveArray,
        StringViewBuilder,
    },
    compute::{CastOptions, can_cast_types, cast_with_options},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
        UInt64Type,
    },
};

use super::{
    split::{SplitCell, SplitForm},
    values::{self, FileZone},
};

/// A rectangle of cells in a block.
pub(crate) struct Cells<'a> {
    bytes: &'a [u8],
    /// The block as text, when all of it is UTF-8.
    text: Option<&'a str>,
    cells: &'a [SplitCell],
    /// For each row, the position of its first cell.
    firsts: &'a [u32],
    quote: u8,
    null: &'a [u8],
}

/// A cell that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bad {
    pub row: u32,
    pub column: u32,
}

/// Whether cells can be read as this type.
pub(crate) fn is_readable(data_type: &DataType) -> bool {
    // (A cast of a text to a list makes it the list's one element.)
    !data_type.is_nested()
        && (matches!(data_type, DataType::BinaryView | DataType::LargeBinary)
            || can_cast_types(&DataType::Utf8View, data_type))
}

/// The text of a cell without its quoting; `None` if it is broken.
pub(crate) fn content<'a>(bytes: &'a [u8], cell: SplitCell, quote: u8) -> Option<Cow<'a, [u8]>> {
    let raw = &bytes[cell.start as usize..cell.end as usize];
    match cell.form {
        SplitForm::Plain | SplitForm::Quoted => Some(Cow::Borrowed(raw)),
        SplitForm::Escaped => Some(Cow::Owned(unescape(raw, quote))),
        SplitForm::Broken => None,
    }
}

fn unescape(raw: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        out.push(byte);
        if byte == quote {
            bytes.next();
        }
    }
    out
}

impl<'a> Cells<'a> {
    pub(crate) fn new(
        bytes: &'a [u8],
        cells: &'a [SplitCell],
        firsts: &'a [u32],
        quote: Option<u8>,
        null: &'a str,
    ) -> Cells<'a> {
        let text = std::str::from_utf8(bytes).ok();
        Cells { bytes, text, cells, firsts, quote: quote.unwrap_or_default(), null: null.as_bytes() }
    }

    /// The values at cell position `at` of every row, as `field`'s type; `column` names the column
    /// in `bad`.
    pub(crate) fn read(&self, field: &Field, at: usize, column: u32, bad: &mut Vec<Bad>) -> ArrayRef {
        let reader = ColumnReader { cells: self, at, column, nullable: field.is_nullable() };
        let data_type = field.data_type();
        match data_type {
            DataType::Boolean => reader.booleans(bad),
            DataType::Int8 => reader.integers::<Int8Type>(data_type, bad),
            DataType::Int16 => reader.integers::<Int16Type>(data_type, bad),
            DataType::Int32 => reader.integers::<Int32Type>(data_type, bad),
            DataType::Int64 => reader.integers::<Int64Type>(data_type, bad),
            DataType::UInt8 => reader.integers::<UInt8Type>(data_type, bad),
            DataType::UInt16 => reader.integers::<UInt16Type>(data_type, bad),
            DataType::UInt32 => reader.integers::<UInt32Type>(data_type, bad),
            DataType::UInt64 => reader.integers::<UInt64Type>(data_type, bad),
            DataType::Float32 => reader.primitives::<Float32Type>(data_type, bad, |text| {
                std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
            }),
            DataType::Float64 => reader.primitives::<Float64Type>(data_type, bad, values::float),
            DataType::Decimal128(precision, scale) => {
                let (precision, scale) = (*precision, *scale);
                reader.primitives::<Decimal128Type>(data_type, bad, |text| values::decimal(text, precision, scale))
            }
            DataType::LargeBinary => reader.numbers(bad),
            DataType::Date32 => reader.primitives::<Date32Type>(data_type, bad, values::date),
            DataType::Time64(TimeUnit::Microsecond) => {
                reader.primitives::<Time64MicrosecondType>(data_type, bad, values::time)
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let zone = if zone.is_some() { FileZone::Apply } else { FileZone::Ignore };
                reader.primitives::<TimestampMicrosecondType>(data_type, bad, |text| values::timestamp(text, zone))
            }
            DataType::Utf8View => {
                let texts: ArrayRef = Arc::new(reader.texts(bad));
                let Some(limit) = TextLimit::of(field) else { return texts };
                let (fitted, too_long) = limit.fit_column(&texts);
                bad.extend(too_long.into_iter().map(|row| Bad { row: row as u32, column }));
                fitted
            }
            DataType::BinaryView => reader.binaries(bad),
            other => reader.through_text(other, bad),
        }
    }
}

/// One column of a rectangle.
struct ColumnReader<'a> {
    cells: &'a Cells<'a>,
    at: usize,
    column: u32,
    nullable: bool,
}

impl ColumnReader<'_> {
    /// Calls `value` for each row in order with its text, or `None` for NULL. `value` says whether
    /// it could be read. A row that could not gets `value(None)` too, so that exactly one entry a
    /// row is appended.
    fn each(&self, bad: &mut Vec<Bad>, mut value: impl FnMut(Option<&[u8]>) -> bool) {
        let Cells { bytes, cells, firsts, quote, null, .. } = *self.cells;
        for (row, &first) in firsts.iter().enumerate() {
            let cell = cells[first as usize + self.at];
            let raw = &bytes[cell.start as usize..cell.end as usize];
            let read = match cell.form {
                SplitForm::Plain if raw == null => self.nullable && value(None),
                SplitForm::Plain | SplitForm::Quoted => value(Some(raw)),
                SplitForm::Escaped => value(Some(&unescape(raw, quote))),
                SplitForm::Broken => false,
            };
            if !read {
                value(None);
                bad.push(Bad { row: row as u32, column: self.column });
            }
        }
    }

    fn primitives<T: ArrowPrimitiveType>(
        &self,
        data_type: &DataType,
        bad: &mut Vec<Bad>,
        parse: impl Fn(&[u8]) -> Option<T::Native>,
    ) -> ArrayRef {
        let rows = self.cells.firsts.len();
        let mut values: Vec<T::Native> = Vec::with_capacity(rows);
        let mut nulls = NullBufferBuilder::new(rows);
        self.each(bad, |text| match text {
            None => {
                values.push(T::Native::default());
                nulls.append_null();
                true
            }
            Some(text) => match parse(text) {
                Some(value) => {
                    values.push(value);
                    nulls.append_non_null();
                    true
                }
                None => false,
            },
        });
        Arc::new(PrimitiveArray::<T>::new(values.into(), nulls.finish()).with_data_type(data_type.clone()))
    }

    fn integers<T: ArrowPrimitiveType>(&self, data_type: &DataType, bad: &mut Vec<Bad>) -> ArrayRef
    where
        T::Native: TryFrom<i64> + std::str::FromStr,
    {
        self.primitives::<T>(data_type, bad, |text| match values::integer(text) {
            Some(value) => T::Native::try_from(value).ok(),
            // The upper half of u64.
            None => std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok(),
        })
    }

    fn booleans(&self, bad: &mut Vec<Bad>) -> ArrayRef {
        let mut out = BooleanBuilder::with_capacity(self.cells.firsts.len());
        self.each(bad, |text| match text.map(values::boolean) {
            None => {
                out.append_null();
                true
            }
            Some(Some(value)) => {
                out.append_value(value);
                true
            }
            Some(None) => false,
        });
        Arc::new(out.finish())
    }

    fn binaries(&self, bad: &mut Vec<Bad>) -> ArrayRef {
        let mut out = BinaryViewBuilder::with_capacity(self.cells.firsts.len());
        self.each(bad, |text| match text.map(values::bytes) {
            None => {
                out.append_null();
                true
            }
            Some(Some(value)) => {
                out.append_value(value);
                true
            }
            Some(None) => false,
        });
        Arc::new(out.finish())
    }

    fn texts(&self, bad: &mut Vec<Bad>) -> arrow::array::StringViewArray {
        let Cells { text, cells, firsts, null, .. } = *self.cells;
        let mut out = StringViewBuilder::with_capacity(firsts.len()).with_fixed_block_size(1 << 16);
        let Some(text) = text else {
            // Somewhere in the block there is a byte that is not UTF-8: look at each value.
            self.each(bad, |value| match value.map(std::str::from_utf8) {
                None => {
                    out.append_null();
                    true
                }
                Some(Ok(value)) => {
                    out.append_value(value);
                    true
                }
                Some(Err(_)) => false,
            });
            return out.finish();
        };
        for (row, &first) in firsts.iter().enumerate() {
            let cell = cells[first as usize + self.at];
            let raw = &text[cell.start as usize..cell.end as usize];
            match cell.form {
                SplitForm::Plain if raw.as_bytes() == null && self.nullable => out.append_null(),
                SplitForm::Plain if raw.as_bytes() != null => out.append_value(raw),
                SplitForm::Quoted => out.append_value(raw),
                SplitForm::Escaped => {
                    let quote = (self.cells.quote as char).to_string();
                    out.append_value(raw.replace(&quote.repeat(2), &quote));
                }
                SplitForm::Plain | SplitForm::Broken => {
                    out.append_null();
                    bad.push(Bad { row: row as u32, column: self.column });
                }
            }
        }
        out.finish()
    }

    /// Plain `numeric`s.
    fn numbers(&self, bad: &mut Vec<Bad>) -> ArrayRef {
        let mut numbers = numeric::Builder::with_capacity(self.cells.firsts.len());
        self.each(bad, |text| match text.map(values::number) {
            None => {
                numbers.append(None);
                true
            }
            Some(Some(number)) => {
                numbers.append(Some(&number));
                true
            }
            Some(None) => false,
        });
        numbers.finish()
    }

    /// Types without a reader of their own: as text, then by Arrow's cast.
    fn through_text(&self, data_type: &DataType, bad: &mut Vec<Bad>) -> ArrayRef {
        let texts: ArrayRef = Arc::new(self.texts(bad));
        let options = CastOptions { safe: true, ..Default::default() };
        let array =
            cast_with_options(&texts, data_type, &options).expect("is_readable was asked when the source was opened");
        let texts = texts.as_string_view();
        for row in 0..array.len() {
            if array.is_null(row) && !arrow::array::Array::is_null(texts, row) {
                bad.push(Bad { row: row as u32, column: self.column });
            }
        }
        array
    }
}
