//! The buffers of rows under construction, one a column.
//!
//! Law: all columns before the one that is next have one value more than those from there on.

use std::sync::Arc;

use anabranch_batch::types::narrowed_type;
use anabranch_sql::{input, sql_name};
use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, BooleanBuilder, PrimitiveBuilder, RecordBatch, StringViewArray,
    StringViewBuilder,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Schema,
    SchemaRef, TimeUnit, TimestampMicrosecondType,
};

use super::AppendedValue;
use crate::error::Error;

/// Rows under construction.
pub(super) struct RowColumns {
    /// As the batches are; the same object for all of them.
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The column of the next value.
    next: usize,
    n_rows: usize,
}

/// A column's buffer.
enum Column {
    Boolean(BooleanBuilder),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    /// Texts, also of values of other types that SQL reads when the portion ends.
    Text(StringViewBuilder),
}

/// What is wrong with a value or a row.
pub(super) enum Problem {
    /// The row has as many columns.
    TooMany(usize),
    /// A row ended at this column.
    TooFew(String),
    /// A value that the column does not take.
    Misfit { column: String, is: String, value: String },
    /// A text that is no value of the column's type.
    Unread { column: String, message: String },
}

impl Problem {
    pub(super) fn of_table(self, table: &str) -> Error {
        match self {
            Problem::TooMany(n) => Error::invalid(format!("a row of table \"{table}\" has {n} columns, not more"))
                .with_sqlstate("42601")
                .with_hint("Call end_row after the last value of a row."),
            Problem::TooFew(column) => {
                Error::invalid(format!("a row of table \"{table}\" has no value for column \"{column}\""))
                    .with_sqlstate("42601")
                    .with_hint("Append a value for each column; NULL is a value.")
            }
            Problem::Misfit { column, is, value } => {
                Error::invalid(format!("column \"{column}\" of table \"{table}\" is of type {is} and takes no {value}"))
                    .with_sqlstate("42804")
            }
            Problem::Unread { column, message } => Error::data(message)
                .with_detail(format!("This is a value for column \"{column}\" of table \"{table}\".")),
        }
    }
}

impl RowColumns {
    pub(super) fn new(table: &SchemaRef) -> RowColumns {
        let columns: Vec<Column> = table.fields().iter().map(|field| Column::of(field.data_type())).collect();
        let fields = table.fields().iter().zip(&columns).map(|(field, column)| {
            let stored = match column {
                Column::Text(_) => DataType::Utf8View,
                _ => narrowed_type(field.data_type()),
            };
            Field::new(field.name(), stored, true)
        });
        RowColumns { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, next: 0, n_rows: 0 }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    #[inline]
    pub(super) fn append(&mut self, value: AppendedValue<'_>) -> Result<(), Problem> {
        let Some(column) = self.columns.get_mut(self.next) else { return Err(Problem::TooMany(self.columns.len())) };
        if !column.append(value) {
            self.append_read(value)?;
        }
        self.next += 1;
        Ok(())
    }

    /// Appends a text as the value that SQL reads.
    #[cold]
    fn append_read(&mut self, value: AppendedValue<'_>) -> Result<(), Problem> {
        let field = self.schema.field(self.next);
        let AppendedValue::Text(text) = value else {
            let kind = match value {
                AppendedValue::Null => "NULL",
                AppendedValue::Boolean(_) => "boolean",
                AppendedValue::Integer(_) => "whole number of that size",
                AppendedValue::Float(_) => "float",
                AppendedValue::Text(_) => "text",
                AppendedValue::Date(_) => "date",
                AppendedValue::Timestamp(_) => "timestamp",
            };
            let is = sql_name(field.data_type());
            return Err(Problem::Misfit { column: field.name().clone(), is, value: kind.to_owned() });
        };
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
        let unread = |message: String| Problem::Unread { column: field.name().clone(), message };
        let read = input::convert(&texts, field.data_type()).map_err(unread)?;
        self.columns[self.next].append_first(&read);
        Ok(())
    }

    #[inline]
    pub(super) fn end_row(&mut self) -> Result<(), Problem> {
        if self.next < self.columns.len() {
            return Err(Problem::TooFew(self.schema.field(self.next).name().clone()));
        }
        self.next = 0;
        self.n_rows += 1;
        Ok(())
    }

    /// Takes the values of the incomplete row out again.
    pub(super) fn cancel_row(&mut self) {
        let n_rows = self.n_rows;
        self.columns[..self.next].iter_mut().for_each(|column| column.truncate(n_rows));
        self.next = 0;
    }

    /// The complete rows, if there are any.
    pub(super) fn take(&mut self) -> Result<Option<RecordBatch>, Problem> {
        if self.next > 0 {
            return Err(Problem::TooFew(self.schema.field(self.next.min(self.columns.len() - 1)).name().clone()));
        }
        if std::mem::take(&mut self.n_rows) == 0 {
            return Ok(None);
        }
        let columns = self.columns.iter_mut().map(Column::finish).collect();
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        Ok(Some(rows.expect("columns have one value a row, of their fields' types")))
    }
}

impl Column {
    fn of(data_type: &DataType) -> Column {
        match data_type {
            DataType::Boolean => Column::Boolean(BooleanBuilder::new()),
            DataType::Int16 => Column::Int16(PrimitiveBuilder::new()),
            DataType::Int32 => Column::Int32(PrimitiveBuilder::new()),
            DataType::Int64 => Column::Int64(PrimitiveBuilder::new()),
            DataType::Float32 => Column::Float32(PrimitiveBuilder::new()),
            DataType::Float64 => Column::Float64(PrimitiveBuilder::new()),
            DataType::Date32 => Column::Date(PrimitiveBuilder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Column::Timestamp(PrimitiveBuilder::new().with_data_type(data_type.clone()))
            }
            _ => Column::Text(StringViewBuilder::new()),
        }
    }

    /// Appends a value if it is one for the column as it stands.
    #[inline]
    fn append(&mut self, value: AppendedValue<'_>) -> bool {
        match (self, value) {
            (Column::Int64(column), AppendedValue::Integer(value)) => column.append_value(value),
            (Column::Float64(column), AppendedValue::Float(value)) => column.append_value(value),
            (Column::Text(column), AppendedValue::Text(value)) => column.append_value(value),
            (Column::Timestamp(column), AppendedValue::Timestamp(value)) => column.append_value(value),
            (Column::Int32(column), AppendedValue::Integer(value)) => match i32::try_from(value) {
                Ok(value) => column.append_value(value),
                Err(_) => return false,
            },
            (Column::Int16(column), AppendedValue::Integer(value)) => match i16::try_from(value) {
                Ok(value) => column.append_value(value),
                Err(_) => return false,
            },
            (Column::Float64(column), AppendedValue::Integer(value)) => column.append_value(value as f64),
            (Column::Float32(column), AppendedValue::Float(value)) => column.append_value(value as f32),
            (Column::Float32(column), AppendedValue::Integer(value)) => column.append_value(value as f32),
            (Column::Boolean(column), AppendedValue::Boolean(value)) => column.append_value(value),
            (Column::Date(column), AppendedValue::Date(value)) => column.append_value(value),
            (column, AppendedValue::Null) => column.append_null(),
            _ => return false,
        }
        true
    }

    fn append_null(&mut self) {
        match self {
            Column::Boolean(column) => column.append_null(),
            Column::Int16(column) => column.append_null(),
            Column::Int32(column) => column.append_null(),
            Column::Int64(column) => column.append_null(),
            Column::Float32(column) => column.append_null(),
            Column::Float64(column) => column.append_null(),
            Column::Date(column) => column.append_null(),
            Column::Timestamp(column) => column.append_null(),
            Column::Text(column) => column.append_null(),
        }
    }

    /// Appends the first value of an array of the column's type.
    fn append_first(&mut self, read: &ArrayRef) {
        fn first<T: ArrowPrimitiveType>(column: &mut PrimitiveBuilder<T>, read: &ArrayRef) {
            let read = read.as_primitive::<T>();
            column.append_option(read.is_valid(0).then(|| read.value(0)));
        }
        match self {
            Column::Boolean(column) => column.append_value(read.as_boolean().value(0)),
            Column::Int16(column) => first(column, read),
            Column::Int32(column) => first(column, read),
            Column::Int64(column) => first(column, read),
            Column::Float32(column) => first(column, read),
            Column::Float64(column) => first(column, read),
            Column::Date(column) => first(column, read),
            Column::Timestamp(column) => first(column, read),
            Column::Text(column) => column.append_value(read.as_string_view().value(0)),
        }
    }

    /// Leaves the first values only.
    fn truncate(&mut self, n_rows: usize) {
        let kept = self.finish().slice(0, n_rows);
        macro_rules! again {
            ($column:ident, $array:ident) => {
                $array.iter().for_each(|value| $column.append_option(value))
            };
        }
        match self {
            Column::Boolean(column) => {
                let array = kept.as_boolean();
                again!(column, array)
            }
            Column::Int16(column) => {
                let array = kept.as_primitive::<Int16Type>();
                again!(column, array)
            }
            Column::Int32(column) => {
                let array = kept.as_primitive::<Int32Type>();
                again!(column, array)
            }
            Column::Int64(column) => {
                let array = kept.as_primitive::<Int64Type>();
                again!(column, array)
            }
            Column::Float32(column) => {
                let array = kept.as_primitive::<Float32Type>();
                again!(column, array)
            }
            Column::Float64(column) => {
                let array = kept.as_primitive::<Float64Type>();
                again!(column, array)
            }
            Column::Date(column) => {
                let array = kept.as_primitive::<Date32Type>();
                again!(column, array)
            }
            Column::Timestamp(column) => {
                let array = kept.as_primitive::<TimestampMicrosecondType>();
                again!(column, array)
            }
            Column::Text(column) => {
                let array = kept.as_string_view();
                again!(column, array)
            }
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Column::Boolean(column) => ArrayBuilder::finish(column),
            Column::Int16(column) => ArrayBuilder::finish(column),
            Column::Int32(column) => ArrayBuilder::finish(column),
            Column::Int64(column) => ArrayBuilder::finish(column),
            Column::Float32(column) => ArrayBuilder::finish(column),
            Column::Float64(column) => ArrayBuilder::finish(column),
            Column::Date(column) => ArrayBuilder::finish(column),
            Column::Timestamp(column) => ArrayBuilder::finish(column),
            Column::Text(column) => ArrayBuilder::finish(column),
        }
    }
}
