//! Which nodes can be reached over links that come and go, at each instant: a loop over frames.
//!
//! ```text
//!   cargo run --release -p anabranch-engine --example reach
//! ```
#![allow(clippy::print_stdout)]

use anabranch_engine::frame::{Event, Events, Frame, How, col, iterate, lit, min};
use anabranch_engine::{Error, Options, Session};
use arrow::datatypes::{DataType, Field, Schema};

fn schema(names: &[&str]) -> Schema {
    Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>())
}

/// The nodes that can be reached from those of `start`.
fn reached(start: &Frame, links: &Frame) -> Frame {
    start.iterate(|reached| {
        reached.join(links, [col("node")], [col("src")], How::Inner).select([col("dst").alias("node")])
    })
}

/// The fewest links on a way to each of them.
fn hops(start: &Frame, links: &Frame) -> Frame {
    let [hops] = iterate([schema(&["node", "hops"])], |[hops]| {
        let first = start.select([col("node"), lit(0_i64).alias("hops")]);
        let further = hops.join(links, [col("node")], [col("src")], How::Inner);
        let further = further.select([col("dst").alias("node"), (col("hops") + lit(1_i64)).alias("hops")]);
        [first.union(&further).group_by([col("node")]).agg([min(col("hops")).alias("hops")])]
    });
    hops
}

/// The lifetimes of a frame's rows over four links, one of which is down for a while.
pub fn answers() -> Result<Vec<(&'static str, Vec<String>)>, Error> {
    let start = Events::input("start", schema(&["node"])).frame();
    let links = Events::input("links", schema(&["src", "dst"])).frame();
    let mut answers = Vec::new();
    for (name, frame) in [("reached", reached(&start, &links)), ("hops", hops(&start, &links))] {
        let mut session = Session::new(Options::default())?;
        let mut run = session.start(&frame)?;
        run.push("start", vec![Event::interval(0, 100, [1_i64.into()])])?;
        let link = |from: i64, to: i64, begin, end| Event::interval(begin, end, [from.into(), to.into()]);
        run.push(
            "links",
            vec![link(1, 2, 0, 40), link(1, 2, 60, 100), link(2, 3, 10, 100), link(3, 2, 10, 100), link(1, 3, 50, 70)],
        )?;
        run.finish()?;
        let mut lifetimes: Vec<String> = run.lifetimes()?.iter().map(ToString::to_string).collect();
        lifetimes.sort();
        answers.push((name, lifetimes));
    }
    Ok(answers)
}

#[allow(dead_code, reason = "a test has its own beginning")]
fn main() -> Result<(), Error> {
    for (name, lifetimes) in answers()? {
        println!("{name}");
        lifetimes.iter().for_each(|lifetime| println!("  {lifetime}"));
    }
    Ok(())
}
