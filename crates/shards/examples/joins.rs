//! A join of many rows with few, by the three plans of Quill's figure 4: the same rows from all,
//! and what each moves.
//!
//! `cargo run -p anabranch-shards --example joins`

use std::collections::BTreeMap;

use anabranch_engine::Error;
use anabranch_engine::frame::{Event, Frame, How, col};
use anabranch_shards::{Layout, Move, Shards};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

/// Rows of the large side.
const LARGE: i64 = 40_000;

/// Rows of the small side, a key each.
const SMALL: i64 = 100;

/// A row, and how often it is there.
type Rows = BTreeMap<Vec<i64>, i64>;

fn side(name: &str, columns: [&str; 2], layout: Layout) -> Shards {
    let fields = columns.map(|column| Field::new(column, DataType::Int64, true));
    Shards::source(name, Schema::new(fields.to_vec()), layout).rekey(["k"])
}

fn main() -> Result<(), Error> {
    let layout = Layout::grid(2, 2);
    let (l, r) = (side("l", ["k", "x"], layout), side("r", ["k", "y"], layout));
    let join = |a: Frame, b: Frame| a.join(&b, [col("k")], [col("k")], How::Inner);
    let few = r.broadcast(Move::GLOBAL);
    let plans = [
        ("(a) both shuffled", l.redistribute(Move::FLAT).query_with(&r.redistribute(Move::FLAT), join)),
        ("(b) few rows to each shard", l.query_with(&few.broadcast(Move::LOCAL), join)),
        (
            "(c) few rows to each process, both shuffled within",
            l.redistribute(Move::LOCAL).query_with(&few.redistribute(Move::LOCAL), join),
        ),
    ];
    let mut first: Option<Rows> = None;
    for (name, plan) in plans {
        plan.check()?;
        let mut run = plan.run()?;
        let shards = layout.shards();
        for shard in 0..shards {
            let of_shard = |at: &i64| *at as usize % shards == shard;
            let large = (0..LARGE).filter(of_shard).map(|at| Event::start(0, [(at * 31 % SMALL).into(), at.into()]));
            run.push("l", shard, large.collect::<Vec<_>>())?;
            let small = (0..SMALL).filter(of_shard).map(|at| Event::start(0, [at.into(), (at * at).into()]));
            run.push("r", shard, small.collect::<Vec<_>>())?;
        }
        let changes = run.finish()?.changes();
        let mut rows = Rows::new();
        for row in 0..changes.len() {
            let value = |column: usize| changes.columns()[column].as_primitive::<Int64Type>().value(row);
            *rows.entry((0..changes.columns().len()).map(value).collect()).or_default() += changes.diffs().get(row);
        }
        let (mut near, mut far) = (0, 0);
        for (_, moved) in run.moved() {
            near += moved.rows_near;
            far += moved.rows_far;
        }
        println!("{name}: {} rows, {near} moved within processes, {far} between them", rows.len());
        println!("{}", plan.explain()?);
        assert_eq!(first.get_or_insert_with(|| rows.clone()), &rows, "all plans give the same rows");
    }
    Ok(())
}
