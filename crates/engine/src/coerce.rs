//! Rows from outside, fitted to a relation's columns.
//!
//! Columns go by name when every column of the batch is named like one of the relation's, else by
//! position. Types are cast exactly: a value that does not fit is an error that names column and
//! value; nothing becomes NULL silently.

use std::collections::HashSet;
use std::sync::Arc;

use anabranch_batch::{TextLimit, TimePrecision, numeric, types};
use anabranch_sql::output::printer;
use anabranch_sql::table::own_name;
use anabranch_sql::{column_type_name, input, sql_name};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;

/// The relation that rows are fitted to, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// `table` or `source`.
    pub kind: &'static str,
    pub name: &'a str,
    pub schema: &'a Schema,
}

/// Columns in planned types; an error names the first type that is not supported.
pub(crate) fn planned_schema(kind: &str, name: &str, fields: &[Field]) -> Result<SchemaRef, Error> {
    let mut out: Vec<Field> = Vec::with_capacity(fields.len());
    let mut names = HashSet::with_capacity(fields.len());
    for field in fields {
        if !names.insert(field.name()) {
            return Err(Error::invalid(format!("column \"{}\" of {kind} \"{name}\" appears twice", field.name()))
                .with_hint("Give each column a name of its own (AS)."));
        }
        types::check(field.data_type())
            .map_err(|e| Error::invalid(format!("column \"{}\" of {kind} \"{name}\": {e}", field.name())))?;
        let planned = types::planned_type(field.data_type());
        out.push(field.clone().with_data_type(planned));
    }
    Ok(Arc::new(Schema::new(out)))
}

/// The batch's columns as the target's, in order, as they are stored. `missing` gives a column that
/// the batch lacks, `None` for NULLs.
///
/// # Errors
/// `Invalid` when columns do not match or a type cannot be cast, `Data` when a value cannot, or a
/// NULL is not allowed.
pub(crate) fn coerce(
    target: Target<'_>,
    batch: &RecordBatch,
    missing: impl Fn(usize, usize) -> Result<Option<ArrayRef>, Error>,
) -> Result<Vec<ArrayRef>, Error> {
    let places = places(target, &batch.schema())?;
    let mut columns = Vec::with_capacity(places.len());
    for (idx, place) in places.iter().enumerate() {
        let field = target.schema.field(idx);
        let column = match place {
            Some(place) => cast(target, field, batch.column(*place))?,
            None => match missing(idx, batch.num_rows())? {
                Some(column) => cast(target, field, &column)?,
                None => new_null_array(&types::narrowed_type(field.data_type()), batch.num_rows()),
            },
        };
        columns.push(column);
    }
    let columns = fit_lengths(target, columns)?;
    check_not_null(target, &columns)?;
    Ok(columns)
}

/// A schema whose columns [`coerce`] leaves as they are, but for the width of decimals, unless
/// there is a NULL or a digit too many.
#[derive(Clone, Debug)]
pub(crate) struct Fitting {
    schema: SchemaRef,
    has_wide_decimals: bool,
}

impl Fitting {
    /// The schema, if it is such a one.
    pub fn of(target: Target<'_>, schema: &SchemaRef) -> Option<Fitting> {
        let (given, wanted) = (schema.fields(), target.schema.fields());
        let fits = |(given, wanted): (&Arc<Field>, &Arc<Field>)| {
            given.name() == wanted.name()
                && types::widened_type(given.data_type()) == *wanted.data_type()
                && *wanted.data_type() != numeric::TYPE
                && TextLimit::of(wanted).is_none_or(TextLimit::takes_all)
                && TextLimit::of_elements(wanted).is_none()
                && TimePrecision::of(wanted).is_none()
        };
        let is_wide = |field: &Arc<Field>| matches!(field.data_type(), DataType::Decimal128(..));
        let all_fit = given.len() == wanted.len() && given.iter().zip(wanted).all(fits);
        all_fit.then(|| Fitting { schema: Arc::clone(schema), has_wide_decimals: given.iter().any(is_wide) })
    }

    /// Whether the batch has this very schema.
    pub fn is_of(&self, batch: &RecordBatch) -> bool {
        Arc::ptr_eq(&self.schema, batch.schema_ref())
    }

    /// The batch's columns as they are stored; `None` if a value has too many digits, of which
    /// [`coerce`] tells more.
    pub fn as_stored(&self, columns: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
        if !self.has_wide_decimals {
            return Some(columns.to_vec());
        }
        let stored = columns.iter().map(|column| match column.data_type() {
            DataType::Decimal128(..) => types::narrowed(column).ok(),
            _ => Some(Arc::clone(column)),
        });
        stored.collect()
    }
}

/// For each column of the target, the batch's column.
fn places(target: Target<'_>, given: &Schema) -> Result<Vec<Option<usize>>, Error> {
    let wanted = target.schema.fields();
    if given.fields().len() == wanted.len()
        && given.fields().iter().zip(wanted).all(|(given, wanted)| given.name() == wanted.name())
    {
        return Ok((0..wanted.len()).map(Some).collect());
    }
    let by_name = given.fields().iter().all(|field| target.schema.index_of(field.name()).is_ok());
    if by_name {
        return Ok(target.schema.fields().iter().map(|field| given.index_of(field.name()).ok()).collect());
    }
    if given.fields().len() == target.schema.fields().len() {
        return Ok((0..given.fields().len()).map(Some).collect());
    }
    Err(Error::invalid(format!(
        "{} \"{}\" has {} columns, but the rows have {}",
        target.kind,
        target.name,
        target.schema.fields().len(),
        given.fields().len()
    ))
    .with_hint("Name the columns like the table's to leave some out."))
}

fn cast(target: Target<'_>, field: &Field, column: &ArrayRef) -> Result<ArrayRef, Error> {
    if *column.data_type() == types::narrowed_type(field.data_type()) && *column.data_type() != numeric::TYPE {
        return Ok(column.clone());
    }
    let column = match *column.data_type() == numeric::TYPE {
        true if *field.data_type() == numeric::TYPE => return checked_numbers(target, field, column),
        // Bytes from outside.
        true => arrow::compute::cast(column, &DataType::BinaryView)?,
        false => column.clone(),
    };
    let column = types::to_planned(&column).map_err(|e| Error::invalid(format!("column \"{}\": {e}", field.name())))?;
    let does_not_fit = |problem: String| {
        Error::data(format!(
            "a value does not fit column \"{}\" ({}) of {} \"{}\"",
            field.name(),
            column_type_name(field),
            target.kind,
            target.name
        ))
        .with_detail(problem)
    };
    let column = match column.data_type() == field.data_type() {
        true => column,
        false if !input::can_convert(column.data_type(), field.data_type()) => {
            return Err(Error::invalid(format!(
                "column \"{}\" of {} \"{}\" is {}, but the rows have {}",
                field.name(),
                target.kind,
                target.name,
                sql_name(field.data_type()),
                sql_name(column.data_type())
            )));
        }
        false => input::convert(&column, field.data_type()).map_err(does_not_fit)?,
    };
    types::narrowed(&column).map_err(|error| does_not_fit(error.detail()))
}

/// A column of plain numerics, if its bytes are such.
fn checked_numbers(target: Target<'_>, field: &Field, column: &ArrayRef) -> Result<ArrayRef, Error> {
    let numbers = column.as_binary::<i64>();
    if numbers.iter().flatten().all(|bytes| numeric::decode(bytes).is_some()) {
        return Ok(column.clone());
    }
    Err(Error::data(format!(
        "a value of column \"{}\" of {} \"{}\" is bytes, not a number",
        field.name(),
        target.kind,
        target.name
    ))
    .with_hint("Give numbers as text, or as integers, floats or decimals of Arrow."))
}

/// The columns with texts and times as their columns keep them; a text that does not fit is an
/// error.
pub(crate) fn fit_lengths(target: Target<'_>, mut columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, Error> {
    for (field, column) in target.schema.fields().iter().zip(&mut columns) {
        if let Some(precision) = TimePrecision::of(field) {
            *column = precision.round_column(column).ok_or_else(|| {
                Error::data(format!("{} out of range", sql_name(field.data_type())))
                    .with_detail(format!("A value of column \"{}\" cannot be rounded.", field.name()))
            })?;
        }
        if let Some(limit) = TextLimit::of_elements(field) {
            let misfit = |text: String| {
                Error::data(limit.misfit(&text)).with_detail(format!(
                    "Column \"{}\" of {} \"{}\" cannot take '{text}'.",
                    field.name(),
                    target.kind,
                    target.name
                ))
            };
            *column = limit.fit_elements(column).map_err(misfit)?;
        }
        let Some(limit) = TextLimit::of(field) else { continue };
        let (fitted, too_long) = limit.fit_column(column);
        if let Some(row) = too_long.first() {
            return Err(Error::data(limit.misfit(&value_text(column, *row))).with_detail(format!(
                "Column \"{}\" of {} \"{}\" cannot take '{}'.",
                field.name(),
                target.kind,
                target.name,
                value_text(column, *row)
            )));
        }
        *column = fitted;
    }
    Ok(columns)
}

/// Refuses NULLs in columns that forbid them, naming the first such row.
pub(crate) fn check_not_null(target: Target<'_>, columns: &[ArrayRef]) -> Result<(), Error> {
    for (field, column) in target.schema.fields().iter().zip(columns) {
        if field.is_nullable() || column.logical_null_count() == 0 {
            continue;
        }
        let row = (0..column.len()).find(|row| column.is_null(*row)).unwrap_or(0);
        return Err(Error::data(format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            field.name(),
            own_name(target.name)
        ))
        .with_detail(format!("Failing row contains ({}).", row_text(columns, row)))
        .about_column(target.name, field.name()));
    }
    Ok(())
}

/// A row's values, comma separated, for messages.
pub(crate) fn row_text(columns: &[ArrayRef], row: usize) -> String {
    let values: Vec<String> = columns.iter().map(|column| value_text(column, row)).collect();
    values.join(", ")
}

fn value_text(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "null".to_string();
    }
    let mut text = String::new();
    printer(column)(row, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Int32Type};

    use super::*;

    fn table() -> Schema {
        Schema::new(vec![Field::new("a", DataType::Int32, false), Field::new("b", DataType::Utf8View, true)])
    }

    fn fit(columns: Vec<(&str, ArrayRef)>) -> Result<Vec<ArrayRef>, Error> {
        let schema = table();
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        coerce(Target { kind: "table", name: "t", schema: &schema }, &batch, |_, _| Ok(None))
    }

    #[test]
    fn columns_go_by_name_and_are_cast() {
        let columns = fit(vec![
            ("b", Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
            ("a", Arc::new(Int64Array::from(vec![7]))),
        ])
        .unwrap();
        assert_eq!(columns[0].as_primitive::<Int32Type>().value(0), 7);
        assert_eq!(columns[1].as_string_view().value(0), "x");
    }

    #[test]
    fn columns_go_by_position_when_names_differ() {
        let columns = fit(vec![
            ("x", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
            ("y", Arc::new(StringArray::from(vec!["x"]))),
        ]);
        assert!(columns.is_ok());
    }

    #[test]
    fn what_fits_as_it_is_has_the_same_names_and_types() {
        let schema = table();
        let fits = |fields: Vec<Field>| {
            let schema_given = Arc::new(Schema::new(fields));
            Fitting::of(Target { kind: "table", name: "t", schema: &schema }, &schema_given).is_some()
        };
        let (a, b) = (Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8View, true));
        assert!(fits(vec![a.clone(), b.clone()]));
        assert!(!fits(vec![b.clone(), a.clone()]) && !fits(vec![a.clone()]));
        assert!(!fits(vec![a.clone().with_data_type(DataType::Int64), b.clone()]));
        assert!(!fits(vec![a, b.with_name("c")]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = fit(vec![("a", Arc::new(Int64Array::from(vec![1i64 << 40])) as ArrayRef)]).unwrap_err();
        assert!(error.message.contains("column \"a\" (integer) of table \"t\""), "{error}");
        let error = fit(vec![("a", Arc::new(Int32Array::from(vec![None])) as ArrayRef)]).unwrap_err();
        assert!(error.message.contains("not-null"), "{error}");
        let error = fit(vec![("c", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap_err();
        assert!(error.message.contains("has 2 columns"), "{error}");
    }
}
