//! Sharded programs: streams in several shards, as Python builds them.
//!
//! Law: an error of building is raised by the method that makes it. Queries are frames that a
//! function of Python gives for a frame.

use std::cell::RefCell;
use std::net::SocketAddr;

use anabranch_engine::frame::{Events, Frame as EngineFrame};
use anabranch_shards::planned::MoveExpr;
use anabranch_shards::{
    Branches as EngineBranches, Layout, Move, ParaOptions, Processes, ShardGroup, ShardScope, Shards as Program,
    SplitForm, To,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raised;
use crate::expressions::expressions;
use crate::frame::{Frame, described};
use crate::functions::Function;
use crate::rows::Rows;

/// Functions that expressions call, by name.
type Functions<'py> = Vec<(String, PyRef<'py, Function>)>;

/// Options of a parallel split: splitters, rows of a window, seed, wanted rows a second, and those
/// of one splitter of one branch.
type ParaNumbers = (Option<u32>, Option<u32>, u64, Option<f64>, Option<f64>);

/// A stream in several shards, as a plan. Immutable.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Shards {
    pub program: Program,
}

/// A stream that is split into branches, as a plan. Immutable.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Branches {
    branches: EngineBranches,
}

#[pymethods]
impl Shards {
    /// Rows with the columns of `like`, pushed into shards.
    #[staticmethod]
    fn source(
        py: Python<'_>,
        name: &str,
        like: &Rows,
        options: &Bound<'_, PyDict>,
        processes: usize,
        threads: usize,
    ) -> PyResult<Shards> {
        let events = described(Events::input(name, like.schema().clone()), options)?;
        Shards::checked(py, Program::of_events(events, Layout::grid(processes, threads)))
    }

    /// The rows that a run has stored in a folder.
    #[staticmethod]
    fn stored(py: Python<'_>, folder: &str) -> PyResult<Shards> {
        Shards::checked(py, py.detach(|| Program::stored(folder)))
    }

    /// Names of the columns and their types as SQL names them.
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let step = self.program.step().map_err(|error| raised(py, &error, None))?;
        let told = |field: &arrow::datatypes::FieldRef| (field.name().clone(), anabranch_sql::column_type_name(field));
        Ok(step.schema.fields().iter().map(told).collect())
    }

    /// An answer without rows that has the columns.
    fn like(&self, py: Python<'_>) -> PyResult<Rows> {
        let step = self.program.step().map_err(|error| raised(py, &error, None))?;
        Ok(Rows::new(anabranch_sql::output::shown_schema(&step.schema), vec![], vec![]))
    }

    /// Names of the key's columns.
    fn key(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.program.step().map_err(|error| raised(py, &error, None))?.key.clone())
    }

    /// The number of shards.
    fn width(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.program.step().map_err(|error| raised(py, &error, None))?.layout.shards())
    }

    /// A query for each shard, or for each key: `body(frame)` gives a frame.
    fn query(&self, py: Python<'_>, body: &Bound<'_, PyAny>) -> PyResult<Shards> {
        let asked = Asked::new(py, body);
        let made = self.program.query(|frame| asked.one(frame));
        Shards::checked(py, asked.checked(made)?)
    }

    /// A query for each pair of shards, or of keys: `body(left, right)` gives a frame.
    fn query_with(&self, py: Python<'_>, other: &Shards, body: &Bound<'_, PyAny>) -> PyResult<Shards> {
        let asked = Asked::new(py, body);
        let made = self.program.query_with(&other.program, |left, right| asked.two(left, right));
        Shards::checked(py, asked.checked(made)?)
    }

    /// A query of SQL for each shard.
    fn sql(&self, py: Python<'_>, text: &str) -> PyResult<Shards> {
        Shards::checked(py, py.detach(|| self.program.sql(text)))
    }

    /// A query of SQL for each pair of shards.
    fn sql_with(&self, py: Python<'_>, other: &Shards, text: &str) -> PyResult<Shards> {
        Shards::checked(py, py.detach(|| self.program.sql_with(&other.program, text)))
    }

    /// The rows of both.
    fn union(&self, py: Python<'_>, other: &Shards) -> PyResult<Shards> {
        Shards::checked(py, self.program.union(&other.program))
    }

    /// Another key.
    fn rekey(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<Shards> {
        Shards::checked(py, self.program.rekey(columns.iter().map(String::as_str)))
    }

    /// A promise that each shard of a source has a range of a column.
    fn packed_by(&self, py: Python<'_>, column: &str) -> PyResult<Shards> {
        Shards::checked(py, self.program.packed_by(column))
    }

    /// Rows of each shard in order of time.
    fn in_time_order(&self, py: Python<'_>) -> PyResult<Shards> {
        Shards::checked(py, self.program.in_time_order())
    }

    /// A movement: its kind, its scope, to the first so many shards, or to those of a group.
    #[pyo3(signature = (kind, scope, shards=None, group=None))]
    fn moved(
        &self,
        py: Python<'_>,
        kind: &str,
        scope: &str,
        shards: Option<usize>,
        group: Option<(String, Vec<usize>)>,
    ) -> PyResult<Shards> {
        let scope = match scope {
            "local" => ShardScope::Local,
            "global" => ShardScope::Global,
            _ => ShardScope::Flat,
        };
        let to = match group {
            Some((name, shards)) => To::Group(ShardGroup::new(&name, shards)),
            None => shards.map_or(To::Same, To::Shards),
        };
        let reach = Move { scope, to };
        let made = match kind {
            "redistribute" => self.program.redistribute(reach),
            "reshard" => self.program.reshard(reach),
            "broadcast" => self.program.broadcast(reach),
            _ => return Err(PyValueError::new_err(format!("there is no movement {kind}"))),
        };
        Shards::checked(py, made)
    }

    /// Each row to the shards that an expression names.
    fn multicast(&self, py: Python<'_>, text: String, functions: Functions<'_>) -> PyResult<Shards> {
        let exprs = expressions(py, &self.frame(py)?, &[text], &[], &functions)?;
        MoveExpr::Targets.check(&self.program, &exprs[0]).map_err(|error| raised(py, &error, None))?;
        Shards::checked(py, self.program.multicast_to(exprs[0].clone()))
    }

    /// Branches `0 .. width` by a plan: auto, flat, exp, max, para or local. `share` is the part of
    /// the rows that are broadcast, from 0 to 1, as cost models take it; `para` are splitters,
    /// window, seed, rate and rate of one splitter, for a parallel split.
    #[pyo3(signature = (width, route, broadcast, plan, share, para, functions))]
    #[expect(clippy::too_many_arguments, reason = "they are those of a split")]
    fn split(
        &self,
        py: Python<'_>,
        width: u32,
        route: String,
        broadcast: Option<String>,
        plan: &str,
        share: f64,
        para: ParaNumbers,
        functions: Functions<'_>,
    ) -> PyResult<Branches> {
        let texts: Vec<String> = std::iter::once(route).chain(broadcast).collect();
        let mut exprs = expressions(py, &self.frame(py)?, &texts, &[], &functions)?.into_iter();
        let Some(route) = exprs.next() else { return Err(PyValueError::new_err("a split has a route")) };
        let broadcast = exprs.next();
        let checked = MoveExpr::Route.check(&self.program, &route);
        let checked = checked.and_then(|()| {
            broadcast.iter().try_for_each(|broadcast| MoveExpr::Broadcast.check(&self.program, broadcast))
        });
        checked.map_err(|error| raised(py, &error, None))?;
        let form = SplitForm::ALL.into_iter().find(|form| form.name() == plan);
        let form = form.ok_or_else(|| PyValueError::new_err(format!("there is no plan {plan}")))?;
        let form = match form {
            SplitForm::Para(_) => {
                let (splitters, window, seed, rate, rate_of_one) = para;
                SplitForm::Para(ParaOptions { splitters, window, seed, rate, rate_of_one, share })
            }
            form => form.with_share(share),
        };
        Branches::checked(py, self.program.split(width, route, broadcast, form.into()))
    }

    /// The steps, and where rows lie after each.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.program.explain()).map_err(|error| raised(py, &error, None))
    }

    /// Refuses a program whose result depends on the number of shards.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.program.check()).map_err(|error| raised(py, &error, None))
    }

    /// Works at the shards of a process other than the client's, until the run is over.
    fn serve(&self, py: Python<'_>, process: usize, addresses: Vec<String>) -> PyResult<()> {
        let addresses = sockets(&addresses)?;
        let served = py.detach(|| self.program.serve_in(Processes::connect(process, &addresses)?));
        served.map_err(|error| raised(py, &error, None))
    }
}

impl Shards {
    /// The program, or the error of its last step.
    pub fn checked(py: Python<'_>, program: Program) -> PyResult<Shards> {
        match program.step() {
            Ok(_) => Ok(Shards { program }),
            Err(error) => Err(raised(py, &error, None)),
        }
    }

    /// A frame with the columns, for expressions over them.
    fn frame(&self, py: Python<'_>) -> PyResult<EngineFrame> {
        let step = self.program.step().map_err(|error| raised(py, &error, None))?;
        Ok(Events::input("shard", anabranch_sql::output::shown_schema(&step.schema)).frame())
    }
}

#[pymethods]
impl Branches {
    /// A query in each branch: `body(frame)` gives a frame.
    fn map(&self, py: Python<'_>, body: &Bound<'_, PyAny>) -> PyResult<Branches> {
        let asked = Asked::new(py, body);
        let made = self.branches.map(|frame| asked.one(frame));
        Branches::checked(py, asked.checked(made)?)
    }

    /// In shards of a list.
    fn placed(&self, py: Python<'_>, shards: Vec<usize>) -> PyResult<Branches> {
        Branches::checked(py, self.branches.placed(&shards))
    }

    /// All rows, with their branch.
    fn merge(&self, py: Python<'_>) -> PyResult<Shards> {
        Shards::checked(py, self.branches.merge())
    }

    /// All rows, with their branch, in order of time.
    fn merge_by_time(&self, py: Python<'_>) -> PyResult<Shards> {
        Shards::checked(py, self.branches.merge_by_time())
    }

    /// Rows with equal `on` put together by a tree.
    fn merge_tree(&self, py: Python<'_>, on: Vec<String>, fan_in: u32, body: &Bound<'_, PyAny>) -> PyResult<Shards> {
        let asked = Asked::new(py, body);
        let on = on.iter().map(String::as_str);
        let made = self.branches.merge_tree_with(on, fan_in, |frame| asked.one(frame));
        Shards::checked(py, asked.checked(made)?)
    }

    /// The plan that was chosen, its modelled cost, and the steps.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.branches.explain()).map_err(|error| raised(py, &error, None))
    }

    /// Refuses branches that depend on the number of shards.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.branches.check()).map_err(|error| raised(py, &error, None))
    }
}

impl Branches {
    fn checked(py: Python<'_>, branches: EngineBranches) -> PyResult<Branches> {
        match branches.column_names() {
            Ok(_) => Ok(Branches { branches }),
            Err(error) => Err(raised(py, &error, None)),
        }
    }
}

/// A function of Python that gives a frame, and its first error.
struct Asked<'a, 'py> {
    py: Python<'py>,
    body: &'a Bound<'py, PyAny>,
    failure: RefCell<Option<PyErr>>,
}

impl<'a, 'py> Asked<'a, 'py> {
    fn new(py: Python<'py>, body: &'a Bound<'py, PyAny>) -> Asked<'a, 'py> {
        Asked { py, body, failure: RefCell::new(None) }
    }

    fn one(&self, frame: EngineFrame) -> EngineFrame {
        let asked = |frame| self.body.call1((Frame::checked(self.py, frame)?,));
        self.given(frame.clone(), asked(frame))
    }

    fn two(&self, left: EngineFrame, right: EngineFrame) -> EngineFrame {
        let asked = |left, right| self.body.call1((Frame::checked(self.py, left)?, Frame::checked(self.py, right)?));
        self.given(left.clone(), asked(left, right))
    }

    /// What the function gave; what it was given, where it failed.
    fn given(&self, instead: EngineFrame, answer: PyResult<Bound<'py, PyAny>>) -> EngineFrame {
        let frame = answer.and_then(|answer| Ok(answer.cast::<Frame>()?.get().frame.clone()));
        frame.unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            instead
        })
    }

    /// What was made, unless the function failed.
    fn checked<T>(self, made: T) -> PyResult<T> {
        self.failure.into_inner().map_or(Ok(made), Err)
    }
}

/// Addresses of all processes, by number.
pub fn sockets(addresses: &[String]) -> PyResult<Vec<SocketAddr>> {
    let socket = |address: &String| {
        let refused =
            |_| PyValueError::new_err(format!("{address:?} is no address of a process, as 127.0.0.1:7001 is"));
        address.parse::<SocketAddr>().map_err(refused)
    };
    addresses.iter().map(socket).collect()
}
