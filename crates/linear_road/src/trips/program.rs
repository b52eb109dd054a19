//! Grouping as a sharded program: requests carry their branch, each branch is grouped by itself.
//!
//! Law: for one router and seed the shares are the same whatever the shards. The router runs where
//! the requests come from, since it changes with time; rows carry its answer, and the split goes by
//! that column.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_engine::Error;
use anabranch_engine::frame::{Arrived, Given, Instance, UserOperator, col};
use anabranch_shards::{Layout, ShardRun, Shards, SplitPlan};
use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};

use super::grouping::Grouping;
use super::router::Router;
use super::{CYCLE_SECONDS, Point, Request, Share};

/// Columns of a request: its number, the branch that the router named, origin and destination.
const COLUMNS: [&str; 6] = ["id", "region", "ox", "oy", "dx", "dy"];

/// The program: rows of `requests` in, a row for each request of a share out.
pub fn program(branches: u32, layout: Layout) -> Shards {
    let number = |name: &str| match name {
        "id" | "region" => Field::new(name, DataType::Int64, true),
        _ => Field::new(name, DataType::Float64, true),
    };
    let requests = Shards::source("requests", Schema::new(COLUMNS.map(number).to_vec()), layout);
    let split = requests.split(branches, col("region"), None, SplitPlan::Flat);
    match split.column_names() {
        Ok(names) => split.operator(Groups::new(&names)).merge(),
        // (The error stays with the program.)
        Err(_) => split.merge(),
    }
}

/// Greedy grouping of each branch.
struct Groups {
    /// Places of the branch and of [`COLUMNS`].
    places: Vec<usize>,
}

impl Groups {
    fn new(names: &[String]) -> Groups {
        let place = |name: &str| names.iter().position(|known| known == name).unwrap_or_default();
        Groups { places: ["branch"].into_iter().chain(COLUMNS).map(place).collect() }
    }
}

impl UserOperator for Groups {
    fn name(&self) -> &str {
        "groups"
    }

    fn output(&self, _inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        let number = |name: &str| (name.to_owned(), DataType::Int64);
        Ok(vec![number("branch"), number("leader"), number("id"), ("savings".to_owned(), DataType::Float64)])
    }

    fn start(&self) -> Box<dyn Instance> {
        Box::new(Cycles { places: self.places.clone(), next: CYCLE_SECONDS, ..Cycles::default() })
    }
}

#[derive(Default)]
struct Cycles {
    places: Vec<usize>,
    /// Requests of this cycle, and those that wait, by branch.
    branches: BTreeMap<i64, (Vec<Request>, Grouping)>,
    /// The end of this cycle.
    next: i64,
}

impl Instance for Cycles {
    fn advance(&mut self, upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
        let rows = &inputs[0];
        let (mut made, mut row) = (Vec::new(), 0);
        while self.next < upto {
            while row < rows.len() && rows.times()[row] < self.next {
                self.arrive(rows, row);
                row += 1;
            }
            let is_over = row == rows.len() && self.branches.values().all(|(new, old)| new.len() + old.waiting() == 0);
            for (branch, (arrived, grouping)) in &mut self.branches {
                let shares = grouping.cycle(self.next, &std::mem::take(arrived));
                made.extend(shares.into_iter().map(|share| (*branch, share)));
            }
            // (Empty cycles are left out: time may go on to its end at once.)
            if is_over {
                let last = upto - 1;
                self.next = (last - last.rem_euclid(CYCLE_SECONDS)).saturating_add(CYCLE_SECONDS);
                break;
            }
            self.next += CYCLE_SECONDS;
        }
        (row..rows.len()).for_each(|row| self.arrive(rows, row));
        give(&made, out);
        Ok(())
    }
}

impl Cycles {
    fn arrive(&mut self, rows: &Arrived<'_>, row: usize) {
        let whole = |at: usize| rows.columns()[self.places[at]].as_primitive::<Int64Type>().value(row);
        let real = |at: usize| rows.columns()[self.places[at]].as_primitive::<Float64Type>().value(row);
        let origin = Point { x: real(3), y: real(4) };
        let request =
            Request { id: whole(1), time: rows.times()[row], origin, destination: Point { x: real(5), y: real(6) } };
        self.branches.entry(whole(0)).or_default().0.push(request);
    }
}

fn give(made: &[(i64, Share)], out: &mut Given) {
    let rows = || made.iter().flat_map(|(branch, share)| share.requests.iter().map(move |id| (branch, share, id)));
    let whole = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let columns = vec![
        whole(rows().map(|(branch, ..)| *branch).collect()),
        whole(rows().map(|(_, share, _)| share.requests[0]).collect()),
        whole(rows().map(|(.., id)| *id).collect()),
        Arc::new(Float64Array::from_iter_values(rows().map(|(_, share, _)| share.savings))) as ArrayRef,
    ];
    out.points(columns, rows().map(|(_, share, _)| share.time).collect());
}

/// The shares of requests that come in order of time, in order of time and leader.
///
/// # Errors
/// Those of the run.
pub fn shares(requests: &[Request], router: Router, branches: u32, layout: Layout) -> Result<Vec<Share>, Error> {
    let mut run = program(branches, layout).run()?;
    push(&mut run, requests, router, layout)?;
    let last = requests.last().map_or(0, Request::expires);
    run.advance_all(last + 2 * CYCLE_SECONDS)?;
    let mut shares: BTreeMap<(i64, i64), Share> = BTreeMap::new();
    for batch in run.drain()?.shards.into_iter().flatten() {
        let whole = |at: usize| batch.column(at).as_primitive::<Int64Type>();
        for row in 0..batch.len() {
            let (time, leader) = (batch.times().get(row), whole(1).value(row));
            let savings = batch.column(3).as_primitive::<Float64Type>().value(row);
            let empty = || Share { time, requests: vec![], savings };
            shares.entry((time, leader)).or_insert_with(empty).requests.push(whole(2).value(row));
        }
    }
    Ok(shares.into_values().collect())
}

fn push(run: &mut ShardRun, requests: &[Request], mut router: Router, layout: Layout) -> Result<(), Error> {
    let shards = layout.shards();
    for (at, cycle) in requests.chunk_by(|a, b| a.time / CYCLE_SECONDS == b.time / CYCLE_SECONDS).enumerate() {
        let whole = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let real =
            |field: fn(&Request) -> f64| Arc::new(Float64Array::from_iter_values(cycle.iter().map(field))) as ArrayRef;
        let columns = vec![
            whole(cycle.iter().map(|request| request.id).collect()),
            whole(cycle.iter().map(|request| router.route(request) as i64).collect()),
            real(|request| request.origin.x),
            real(|request| request.origin.y),
            real(|request| request.destination.x),
            real(|request| request.destination.y),
        ];
        let times = Times::Column(cycle.iter().map(|request| request.time).collect());
        let batch = Batch::with_len(columns.into(), cycle.len(), times, Diffs::Constant(1));
        run.push("requests", at % shards, batch.with_until(Until::Duration(1)))?;
        let end = (cycle[0].time / CYCLE_SECONDS + 1) * CYCLE_SECONDS;
        run.advance_all(end)?;
    }
    Ok(())
}
