//! Rows as Python holds them: Arrow batches that go out by capsules without a copy, or as Python
//! values.

use std::sync::Arc;

use anabranch_sql::SqlError;
use anabranch_sql::catalog::{Catalog, Relation};
use anabranch_sql::output::is_plain_numeric;
use anabranch_sql::statement::Statement;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat_batches, filter_record_batch, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};
use pyo3_arrow::input::AnyRecordBatch;
use pyo3_arrow::{PyRecordBatch, PySchema, PyTable};

use crate::error::{raise, raised};
use crate::from_python;
use crate::to_python::{Values, printer};

/// Rows of one schema. Immutable.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    notices: Vec<String>,
}

/// Memory of one column, which NumPy reads where it lies (`__array_interface__`).
#[pyclass(frozen, module = "anabranch._native")]
pub struct Buffer {
    column: ArrayRef,
    type_code: &'static str,
}

impl Rows {
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>, notices: Vec<String>) -> Rows {
        Rows { schema, batches, notices }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn n_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// All rows as one batch: what the engine takes as one commit. No copy where there is one
    /// batch.
    pub fn single(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        match self.batches.as_slice() {
            [batch] => Ok(batch.clone()),
            batches => py.detach(|| concat_batches(&self.schema, batches)).map_err(|error| refused(py, &error)),
        }
    }

    fn column(&self, py: Python<'_>, idx: usize) -> PyResult<ArrayRef> {
        Ok(match self.batches.as_slice() {
            [] => new_empty_array(self.schema.field(idx).data_type()),
            [batch] => batch.column(idx).clone(),
            batches => {
                let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(idx).as_ref()).collect();
                arrow::compute::concat(&parts).map_err(|error| refused(py, &error))?
            }
        })
    }
}

fn refused(py: Python<'_>, error: &arrow::error::ArrowError) -> PyErr {
    raise(py, "invalid", "0A000", &error.to_string().to_lowercase(), None)
}

#[pymethods]
impl Rows {
    /// Rows of an object with `__arrow_c_stream__` or `__arrow_c_array__`; its buffers are
    /// referenced, not copied.
    #[staticmethod]
    fn from_capsule(py: Python<'_>, data: AnyRecordBatch) -> PyResult<Rows> {
        let reader = data.into_reader()?;
        let schema = reader.schema();
        let batches: Result<Vec<RecordBatch>, _> = py.detach(|| reader.collect());
        let batches = batches.map_err(|error| refused(py, &error))?;
        Ok(Rows::new(schema, batches.into_iter().filter(|batch| batch.num_rows() > 0).collect(), vec![]))
    }

    /// No rows, with the columns of an object that has an Arrow schema.
    #[staticmethod]
    fn from_schema(schema: PySchema) -> Rows {
        Rows::new(schema.into_inner(), vec![], vec![])
    }

    /// No rows, with columns of types of SQL.
    #[staticmethod]
    fn of_types(py: Python<'_>, names: Vec<String>, types: Vec<String>) -> PyResult<Rows> {
        let items = types.iter().enumerate().map(|(at, of)| format!("CAST(NULL AS {of}) AS \"{at}\""));
        let text = format!("SELECT {}", items.collect::<Vec<_>>().join(", "));
        let schema = py.detach(|| columns_of_query(&text)).map_err(|error| raised(py, &error.into(), Some(&text)))?;
        let field = |(field, name): (&Arc<Field>, &String)| Field::new(name, field.data_type().clone(), true);
        let fields = schema.fields().iter().zip(&names).map(field).collect::<Vec<_>>();
        Ok(Rows::new(Arc::new(Schema::new(fields)), vec![], vec![]))
    }

    /// Timestamps as instants of UTC.
    fn as_instants(&self, py: Python<'_>) -> PyResult<Rows> {
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let batch = self.single(py)?;
        let columns: Result<Vec<ArrayRef>, _> =
            batch.columns().iter().map(|column| arrow::compute::cast(column, &instant)).collect();
        let columns = columns.map_err(|error| refused(py, &error))?;
        let fields = self.schema.fields().iter().map(|field| Field::new(field.name(), instant.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|error| refused(py, &error))?;
        Ok(Rows::new(schema, vec![batch], vec![]))
    }

    /// Rows of lists, one a column. `like` gives the types by name; a column without one takes the
    /// type of its values.
    #[staticmethod]
    #[pyo3(signature = (names, columns, like=None, like_names=None))]
    fn from_columns(
        py: Python<'_>,
        names: Vec<String>,
        columns: Vec<Bound<'_, PyAny>>,
        like: Option<&Rows>,
        like_names: Option<Vec<Option<String>>>,
    ) -> PyResult<Rows> {
        let mut fields = Vec::with_capacity(names.len());
        let mut arrays = Vec::with_capacity(names.len());
        let mut n_rows = None;
        for (idx, (name, values)) in names.iter().zip(&columns).enumerate() {
            let wanted = like_names.as_ref().and_then(|names| names.get(idx).cloned().flatten());
            let field = like.and_then(|like| like.schema.field_with_name(wanted.as_deref().unwrap_or(name)).ok());
            let array = from_python::column(py, name, values, field)?;
            if *n_rows.get_or_insert(array.len()) != array.len() {
                let text =
                    format!("column \"{name}\" has {} values, the one before {}", array.len(), n_rows.unwrap_or(0));
                return Err(raise(py, "invalid", "22023", &text, None));
            }
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows.unwrap_or(0)));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
        Ok(Rows::new(schema, vec![batch.map_err(|error| refused(py, &error))?], vec![]))
    }

    /// A column of fixed width from the bytes of its values and, if some are NULL, one byte a row
    /// that says which are not.
    #[staticmethod]
    #[pyo3(signature = (name, type_code, data, valid=None))]
    fn from_bytes(py: Python<'_>, name: &str, type_code: &str, data: &[u8], valid: Option<&[u8]>) -> PyResult<Rows> {
        let column = from_python::fixed_column(type_code, data, valid);
        let column = column.ok_or_else(|| {
            raise(py, "invalid", "0A000", &format!("NumPy type {type_code} of column \"{name}\" is not taken"), None)
        })?;
        let schema = Arc::new(Schema::new(vec![Field::new(name, column.data_type().clone(), true)]));
        let batch = RecordBatch::try_new(schema.clone(), vec![column]).map_err(|error| refused(py, &error))?;
        Ok(Rows::new(schema, vec![batch], vec![]))
    }

    /// Columns of several answers of equally many rows, side by side.
    #[staticmethod]
    fn beside(py: Python<'_>, parts: Vec<PyRef<'_, Rows>>) -> PyResult<Rows> {
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        let mut n_rows = 0;
        for part in &parts {
            let batch = part.single(py)?;
            n_rows = batch.num_rows();
            fields.extend(batch.schema().fields().iter().cloned());
            columns.extend(batch.columns().iter().cloned());
        }
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
        Ok(Rows::new(schema, vec![batch.map_err(|error| refused(py, &error))?], vec![]))
    }

    /// These columns, in this order, under these names.
    fn project(&self, py: Python<'_>, places: Vec<usize>, names: Vec<String>) -> PyResult<Rows> {
        let field = |(place, name): (&usize, &String)| self.schema.field(*place).clone().with_name(name);
        let schema = Arc::new(Schema::new(places.iter().zip(&names).map(field).collect::<Vec<_>>()));
        let take = |batch: &RecordBatch| {
            let columns = places.iter().map(|place| batch.column(*place).clone()).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        };
        let batches: Result<Vec<_>, _> = self.batches.iter().map(take).collect();
        Ok(Rows::new(schema.clone(), batches.map_err(|error| refused(py, &error))?, self.notices.clone()))
    }

    /// Rows from `offset` on, at most `length`. No copy.
    fn slice(&self, offset: usize, length: usize) -> Rows {
        let mut batches = Vec::new();
        let (mut skip, mut left) = (offset, length);
        for batch in &self.batches {
            let n_skipped = skip.min(batch.num_rows());
            let n_taken = left.min(batch.num_rows() - n_skipped);
            if n_taken > 0 {
                batches.push(batch.slice(n_skipped, n_taken));
            }
            (skip, left) = (skip - n_skipped, left - n_taken);
        }
        Rows::new(self.schema.clone(), batches, self.notices.clone())
    }

    /// Rows of several answers of the same columns, one after the other.
    #[staticmethod]
    fn below(parts: Vec<PyRef<'_, Rows>>) -> Rows {
        let schema = parts.first().map_or_else(|| Arc::new(Schema::empty()), |part| part.schema.clone());
        Rows::new(schema, parts.iter().flat_map(|part| part.batches.iter().cloned()).collect(), vec![])
    }

    /// For each row whether no column is NULL; `None` if none is in any row.
    fn present(&self, py: Python<'_>) -> PyResult<Option<Vec<bool>>> {
        let batch = self.single(py)?;
        let nulls = batch.columns().iter().fold(None, |known: Option<NullBuffer>, column| {
            NullBuffer::union(known.as_ref(), column.logical_nulls().as_ref())
        });
        Ok(nulls.filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.iter().collect()))
    }

    /// The rows whose flag is set.
    fn masked(&self, py: Python<'_>, kept: Vec<bool>) -> PyResult<Rows> {
        let batch = self.single(py)?;
        let kept = filter_record_batch(&batch, &BooleanArray::from(kept)).map_err(|error| refused(py, &error))?;
        Ok(Rows::new(self.schema.clone(), vec![kept], vec![]))
    }

    /// The opposite of `masked`: the rows at the places whose flag is set, NULL in the others.
    fn spread(&self, py: Python<'_>, kept: Vec<bool>) -> PyResult<Rows> {
        let batch = self.single(py)?;
        let mut next = 0;
        let places = kept.iter().map(|kept| {
            kept.then(|| {
                next += 1;
                next - 1
            })
        });
        let places: UInt64Array = places.collect();
        let columns = batch.columns().iter().map(|column| take(column, &places, None));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| refused(py, &error))?;
        let options = RecordBatchOptions::new().with_row_count(Some(kept.len()));
        let fields = self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
        Ok(Rows::new(schema, vec![batch.map_err(|error| refused(py, &error))?], vec![]))
    }

    /// The batches as they lie, one answer each.
    fn parts(&self) -> Vec<Rows> {
        let part = |batch: &RecordBatch| Rows::new(self.schema.clone(), vec![batch.clone()], vec![]);
        self.batches.iter().map(part).collect()
    }

    /// What a reader of the answer should know.
    #[getter]
    fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Types of the columns as SQL names them.
    #[getter]
    fn types(&self) -> Vec<String> {
        let name = |field: &Arc<Field>| match is_plain_numeric(field) {
            true => "numeric".to_string(),
            false => anabranch_sql::column_type_name(field),
        };
        self.schema.fields().iter().map(name).collect()
    }

    /// Whether a column has no type: none of its values is there.
    fn is_null(&self, idx: usize) -> bool {
        *self.schema.field(idx).data_type() == DataType::Null
    }

    fn __len__(&self) -> usize {
        self.n_rows()
    }

    /// Rows as a list of tuples.
    fn tuples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for batch in &self.batches {
            let columns: PyResult<Vec<Values<'_>>> = batch
                .columns()
                .iter()
                .zip(self.schema.fields())
                .map(|(column, field)| Values::new(py, column, field))
                .collect();
            let columns = columns?;
            for row in 0..batch.num_rows() {
                let cells: PyResult<Vec<Bound<'py, PyAny>>> =
                    columns.iter().map(|column| column.get(py, row)).collect();
                list.append(PyTuple::new(py, cells?)?)?;
            }
        }
        Ok(list)
    }

    /// One column as a list.
    fn list<'py>(&self, py: Python<'py>, idx: usize) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for batch in &self.batches {
            let column = Values::new(py, batch.column(idx), self.schema.field(idx))?;
            for row in 0..batch.num_rows() {
                list.append(column.get(py, row)?)?;
            }
        }
        Ok(list)
    }

    /// Rows as texts, at most `rows_max`, as SQL prints them; NULL is None.
    fn texts(&self, rows_max: usize) -> Vec<Vec<Option<String>>> {
        let mut out = Vec::new();
        for batch in &self.slice(0, rows_max).batches {
            let print: Vec<_> = batch.columns().iter().map(printer).collect();
            out.extend((0..batch.num_rows()).map(|row| print.iter().map(|print| print(row)).collect()));
        }
        out
    }

    /// A column of fixed width where it lies, and, if some are NULL, one byte a row that says which
    /// are not.
    fn buffer(&self, py: Python<'_>, idx: usize) -> PyResult<Option<(Buffer, Option<Vec<u8>>)>> {
        let column = self.column(py, idx)?;
        let Some(type_code) = type_code(column.data_type()) else { return Ok(None) };
        let valid = column.nulls().map(|nulls| nulls.iter().map(u8::from).collect());
        Ok(Some((Buffer { column, type_code }, valid)))
    }

    /// Arrow's stream. Buffers are shared, not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = PyTable::try_new(self.batches.clone(), self.schema.clone())?;
        // A schema that the values cannot be cast to is ignored, as the interface allows.
        let table = table.into_pyobject(py)?.into_any();
        match requested_schema {
            Some(wanted) => match table.call_method1("__arrow_c_stream__", (wanted,)) {
                Ok(stream) => Ok(stream),
                Err(_) => table.call_method0("__arrow_c_stream__"),
            },
            None => table.call_method0("__arrow_c_stream__"),
        }
    }

    /// Arrow's array of structs.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = PyRecordBatch::new(self.single(py)?).into_pyobject(py)?.into_any();
        match requested_schema {
            Some(wanted) => match batch.call_method1("__arrow_c_array__", (wanted,)) {
                Ok(arrays) => Ok(arrays),
                Err(_) => batch.call_method0("__arrow_c_array__"),
            },
            None => batch.call_method0("__arrow_c_array__"),
        }
    }

    /// Arrow's schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = PySchema::new(self.schema.clone()).into_pyobject(py)?.into_any();
        schema.call_method0("__arrow_c_schema__")
    }
}

/// The columns of a query without relations.
fn columns_of_query(text: &str) -> Result<SchemaRef, SqlError> {
    let parsed = anabranch_sql::parse(text)?;
    match parsed.first().map(|parsed| &parsed.statement) {
        Some(Statement::Select { query, .. }) => Ok(anabranch_sql::plan_query(query, &Nothing)?.plan.arrow_schema()),
        _ => Err(SqlError::internal("it is no query")),
    }
}

/// A catalog without relations.
struct Nothing;

impl Catalog for Nothing {
    fn relation(&self, _name: &str) -> Option<Relation> {
        None
    }

    fn names(&self) -> Vec<String> {
        vec![]
    }
}

#[pymethods]
impl Buffer {
    /// What NumPy asks for: address, shape and type. The memory cannot be written.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = self.column.to_data();
        let width = self.column.data_type().primitive_width().unwrap_or(1);
        let address = data.buffers().first().map_or(0, |buffer| buffer.as_ptr() as usize + data.offset() * width);
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.column.len(),))?;
        interface.set_item("typestr", self.type_code)?;
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }
}

/// NumPy's name of a type of fixed width.
fn type_code(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Int8 => "|i1",
        DataType::Int16 => "<i2",
        DataType::Int32 => "<i4",
        DataType::Int64 => "<i8",
        DataType::UInt8 => "|u1",
        DataType::UInt16 => "<u2",
        DataType::UInt32 => "<u4",
        DataType::UInt64 => "<u8",
        DataType::Float32 => "<f4",
        DataType::Float64 => "<f8",
        DataType::Timestamp(TimeUnit::Microsecond, _) => "<M8[us]",
        DataType::Duration(TimeUnit::Microsecond) => "<m8[us]",
        _ => return None,
    })
}
