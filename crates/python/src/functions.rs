//! Functions of Python, as the engine calls them.
//!
//! Law: the interpreter is entered once a batch; the loop over rows, and what becomes of NULL, is
//! in `anabranch/functions.py`. An exception is the error of the batch, with its traceback between
//! two [`FENCE`] characters, which `anabranch.errors` takes out of the message again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::frame::{GroupRows as EngineRows, Invertible, UserAggregate};
use anabranch_engine::functions::{Function as EngineFunction, UserFunction};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::rows::Rows;

/// Stands before and behind a traceback in a message.
const FENCE: char = '\u{1f}';
/// Stands for the ends of a traceback's lines: messages of rows have one line.
const LINE_END: &str = "\u{1e}";

thread_local! {
    /// How many functions of Python this thread is inside of.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, the thread runs a function of Python for the engine.
struct Running;

impl Running {
    fn begin() -> Running {
        RUNNING.set(RUNNING.get() + 1);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
    }
}

/// Whether this thread runs a function of Python for the engine: a question to the engine would
/// wait for itself.
pub fn is_running() -> bool {
    RUNNING.get() > 0
}

/// A function that SQL can call.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Function {
    name: String,
    pub function: EngineFunction,
    /// What the aggregate is made of, to be used in frames.
    aggregate: Option<(PyAggregate, Inverse)>,
}

/// How rows leave the state of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inverse {
    /// Not at all: rows are kept.
    None,
    /// One by one.
    Rows,
    /// One by one, and states out of states.
    States,
}

#[pymethods]
impl Function {
    /// A function of values: `call(rows)` gives an answer of one column. `like` has the arguments,
    /// then the result, as columns of their types; if it is not `typed`, arguments of any type are
    /// taken as they are.
    #[staticmethod]
    fn scalar(name: String, call: Py<PyAny>, like: &Rows, typed: bool) -> Function {
        let (arguments, output) = split(like.schema());
        let names = names(like.schema());
        let scalar = PyFunction { name: name.clone(), names, arguments, typed, output, call };
        Function { name, function: EngineFunction::scalar(scalar), aggregate: None }
    }

    /// An aggregate by the methods of an object: `initial()`, `accumulate(states, places, rows)`,
    /// `retract(..)`, `merge(a, b)`, `unmerge(a, b)`, `finish(states)`. `inverse` is `none`, `rows`
    /// or `states`.
    #[staticmethod]
    fn aggregate(name: String, methods: Py<PyAny>, like: &Rows, inverse: &str) -> Function {
        let (arguments, output) = split(like.schema());
        let aggregate =
            PyAggregate { name: name.clone(), names: names(like.schema()), output, methods: Arc::new(methods) };
        let inverse = match inverse {
            "rows" => Inverse::Rows,
            "states" => Inverse::States,
            _ => Inverse::None,
        };
        let function = match inverse {
            Inverse::None => EngineFunction::aggregate(aggregate.clone(), arguments.len()),
            _ => EngineFunction::aggregate_invertible(aggregate.clone(), arguments.len()),
        };
        Function { name, function, aggregate: Some((aggregate, inverse)) }
    }

    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Function {
    /// The aggregate and how rows leave it, if it is one.
    pub fn as_aggregate(&self) -> Option<(PyAggregate, Inverse)> {
        self.aggregate.clone()
    }
}

/// Functions by their names in SQL.
pub fn by_name(functions: &[(String, PyRef<'_, Function>)]) -> BTreeMap<String, EngineFunction> {
    functions.iter().map(|(name, function)| (name.clone(), function.function.clone())).collect()
}

/// Types of the arguments, and of the result, which is the last column.
fn split(schema: &SchemaRef) -> (Vec<DataType>, DataType) {
    let mut types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let output = types.pop().unwrap_or(DataType::Null);
    (types, output)
}

fn names(schema: &SchemaRef) -> Vec<String> {
    let all = schema.fields().iter().map(|field| field.name().clone());
    all.take(schema.fields().len().saturating_sub(1)).collect()
}

/// Columns as Python sees them.
fn rows_of(names: &[String], columns: &[ArrayRef], n_rows: usize) -> Result<Rows, String> {
    let field = |(name, column): (&String, &ArrayRef)| Field::new(name, column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(names.iter().zip(columns).map(field).collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), columns.to_vec(), &options);
    Ok(Rows::new(schema, vec![batch.map_err(|error| error.to_string())?], vec![]))
}

/// The one column of an answer, as the type that was promised.
fn column_of(py: Python<'_>, answer: &Bound<'_, PyAny>, wanted: &DataType) -> Result<ArrayRef, String> {
    let told = |error: PyErr| message(py, &error);
    let rows = answer.cast::<Rows>().map_err(|error| told(error.into()))?;
    let batch = rows.get().single(py).map_err(told)?;
    let column = match batch.num_columns() {
        1 => batch.column(0).clone(),
        n => return Err(format!("it gave {n} columns")),
    };
    match column.data_type() == wanted {
        true => Ok(column),
        false => cast(&column, wanted).map_err(|error| error.to_string()),
    }
}

/// An exception as the message of an error.
fn message(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    let first = text.lines().next().unwrap_or_default();
    let kind = error.get_type(py).name().map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    let trace = error.traceback(py).and_then(|trace| trace.format().ok()).unwrap_or_default();
    let trace = format!("{trace}{kind}: {text}").replace('\n', LINE_END);
    format!("{kind}: {first}{FENCE}{trace}{FENCE}")
}

/// A function of values.
struct PyFunction {
    name: String,
    names: Vec<String>,
    arguments: Vec<DataType>,
    typed: bool,
    output: DataType,
    call: Py<PyAny>,
}

impl UserFunction for PyFunction {
    fn takes_any(&self) -> bool {
        !self.typed
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn arguments(&self) -> &[DataType] {
        &self.arguments
    }

    fn output_type(&self) -> &DataType {
        &self.output
    }

    fn call(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef, String> {
        let given = rows_of(&self.names, columns, rows)?;
        let _running = Running::begin();
        let called = Python::attach(|py| {
            let answer = self.call.bind(py).call1((given,)).map_err(|error| message(py, &error))?;
            column_of(py, &answer, &self.output)
        });
        called.map_err(|reason| format!("function {}() raised {reason}", self.name))
    }
}

/// An aggregate by the methods of a Python object.
#[derive(Clone)]
pub struct PyAggregate {
    name: String,
    names: Vec<String>,
    output: DataType,
    methods: Arc<Py<PyAny>>,
}

/// What is remembered of a group: an object of Python's that is never changed in place.
type State = Arc<Py<PyAny>>;

impl PyAggregate {
    /// Hands the states and rows to a method, which gives the states anew.
    fn put(&self, method: &str, states: &mut [State], rows: &EngineRows<'_>) -> Result<(), String> {
        if rows.is_empty() {
            return Ok(());
        }
        let first = rows.iter().next().map_or(0, |(_, row)| row);
        let columns: Vec<ArrayRef> = (0..self.names.len()).map(|at| rows.column(at).slice(first, rows.len())).collect();
        let given = rows_of(&self.names, &columns, rows.len())?;
        let mut touched: Vec<usize> = rows.iter().map(|(state, _)| state).collect();
        touched.sort_unstable();
        touched.dedup();
        let place = |state: usize| touched.binary_search(&state).expect("every state of a row was noted");
        let places: Vec<usize> = rows.iter().map(|(state, _)| place(state)).collect();
        let _running = Running::begin();
        let changed = Python::attach(|py| {
            let told = |error: PyErr| message(py, &error);
            let before = touched.iter().map(|state| states[*state].clone_ref(py));
            let before = PyList::new(py, before).map_err(told)?;
            let after = self.methods.bind(py).call_method1(method, (before, places, given)).map_err(told)?;
            after.extract::<Vec<Py<PyAny>>>().map_err(told)
        });
        let changed = changed.map_err(|reason| format!("aggregate {}() raised {reason}", self.name))?;
        for (state, value) in touched.into_iter().zip(changed) {
            states[state] = Arc::new(value);
        }
        Ok(())
    }

    /// A state from two.
    fn of_two(&self, method: &str, a: &State, b: &State) -> State {
        let _running = Running::begin();
        let made = Python::attach(|py| {
            let pair = (a.clone_ref(py), b.clone_ref(py));
            let made = self.methods.bind(py).call_method1(method, pair);
            made.map(Bound::unbind).map_err(|error| message(py, &error))
        });
        match made {
            Ok(state) => Arc::new(state),
            // (What an aggregate panics with becomes the error of its results.)
            Err(reason) => panic!("aggregate {}() raised {reason}", self.name),
        }
    }
}

impl UserAggregate for PyAggregate {
    type State = State;

    fn name(&self) -> &str {
        &self.name
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments.len() == self.names.len() {
            true => Ok(self.output.clone()),
            false => Err(format!("it takes {} arguments", self.names.len())),
        }
    }

    fn initial(&self) -> State {
        let _running = Running::begin();
        let made = Python::attach(|py| {
            let made = self.methods.bind(py).call_method0("initial");
            made.map(Bound::unbind).map_err(|error| message(py, &error))
        });
        match made {
            Ok(state) => Arc::new(state),
            // (What an aggregate panics with becomes the error of its results.)
            Err(reason) => panic!("aggregate {}() raised {reason}", self.name),
        }
    }

    fn accumulate(&self, states: &mut [State], rows: &EngineRows<'_>) -> Result<(), String> {
        self.put("accumulate", states, rows)
    }

    fn compute(&self, states: &[&State]) -> Result<ArrayRef, String> {
        let _running = Running::begin();
        let computed = Python::attach(|py| {
            let told = |error: PyErr| message(py, &error);
            let list = PyList::new(py, states.iter().map(|state| state.clone_ref(py))).map_err(told)?;
            let answer = self.methods.bind(py).call_method1("finish", (list,)).map_err(told)?;
            column_of(py, &answer, &self.output)
        });
        computed.map_err(|reason| format!("aggregate {}() raised {reason}", self.name))
    }
}

impl Invertible for PyAggregate {
    fn deaccumulate(&self, states: &mut [State], rows: &EngineRows<'_>) -> Result<(), String> {
        self.put("retract", states, rows)
    }

    fn difference(&self, state: &mut State, other: &State) {
        *state = self.of_two("unmerge", state, other);
    }

    fn combine(&self, state: &mut State, other: &State) {
        *state = self.of_two("merge", state, other);
    }
}
