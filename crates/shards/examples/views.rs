//! Views of each advertisement, counted by the four plans of Quill's figure 1: what each hashes and
//! moves.
//!
//! `cargo run -p anabranch-shards --example views`

use anabranch_engine::Error;
use anabranch_engine::frame::{Event, Frame, col, count_rows, sum};
use anabranch_shards::{Layout, Move, Shards};
use arrow::datatypes::{DataType, Field, Schema};

const ROWS: i64 = 40_000;
const ADS: i64 = 100;

fn main() -> Result<(), Error> {
    let layout = Layout::grid(2, 2);
    let schema = Schema::new(vec![Field::new("ad", DataType::Int64, true)]);
    let views = Shards::source("views", schema, layout).rekey(["ad"]);
    let count = |q: Frame| q.agg([count_rows().alias("n")]);
    let add = |q: Frame| q.agg([sum(col("n")).alias("n")]);
    let plans = [
        ("(a) shuffle", views.redistribute(Move::FLAT).query(count)),
        ("(b) count, shuffle", views.query(count).redistribute(Move::FLAT).query(add)),
        (
            "(c) count, add in each process, shuffle",
            views.query(count).redistribute(Move::LOCAL).query(add).redistribute(Move::FLAT).query(add),
        ),
        (
            "(d) shuffle in each process, count, shuffle",
            views.redistribute(Move::LOCAL).query(count).redistribute(Move::FLAT).query(add),
        ),
    ];
    for (name, plan) in plans {
        plan.check()?;
        let mut run = plan.run()?;
        for shard in 0..layout.shards() {
            let row = |at: i64| Event::start(0, [((at * 31 + shard as i64) % ADS).into()]);
            run.push("views", shard, (0..ROWS / 4).map(row).collect::<Vec<_>>())?;
        }
        let counts = run.finish()?.changes();
        let (mut near, mut far, mut hashed) = (0, 0, 0);
        for (_, moved) in run.moved() {
            near += moved.rows_near;
            far += moved.rows_far;
            hashed += moved.rows_hashed;
        }
        println!("{name}: {} counts", counts.len());
        println!("    {hashed} rows hashed, {near} moved within processes, {far} between them");
        println!("{}", plan.explain()?);
    }
    Ok(())
}
