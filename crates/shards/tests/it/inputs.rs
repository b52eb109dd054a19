//! One program over files, over pushed rows and over rows that come one by one: equal contents at
//! every time (statement A16).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_engine::frame::{Frame, How, avg, col, count_rows, in_parts, lit, max, sum, top_k};
use anabranch_engine::{Connector, SourceSpec};
use anabranch_file::FileConnector;
use anabranch_shards::{Layout, Move, ShardRun, Shards};
use anabranch_testing::rng::{Rng, cases};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};

use crate::support::updates;

/// Key, another key, a number, time.
type Row = [i64; 4];

const COLUMNS: [&str; 4] = ["k", "j", "x", "t"];

fn fields() -> Vec<Field> {
    COLUMNS.map(|column| Field::new(column, DataType::Int64, true)).to_vec()
}

fn source(name: &str, layout: Layout) -> Shards {
    Shards::timed_source(name, Schema::new(fields()), "t", layout)
}

fn sums(frame: Frame) -> Frame {
    frame.tumbling(10).agg([sum(col("x")).alias("s"), count_rows().alias("n"), max(col("x")).alias("m")])
}

fn add(frame: Frame) -> Frame {
    frame.agg([sum(col("s")).alias("s"), sum(col("n")).alias("n"), max(col("m")).alias("m")])
}

/// The plans of figures 1 and 4, partial aggregates by their two steps, a chain of keys, and rows
/// spread evenly.
fn programs(layout: Layout) -> Vec<Shards> {
    let s = source("l", layout).rekey(["k"]);
    let r = source("r", layout).rekey(["k"]);
    let clicks = s.redistribute(Move::FLAT);
    let busy = clicks.query(|q| q.alter_duration(10).agg([count_rows().alias("c")]).filter(col("c").gt(lit(2i64))));
    let quiet = clicks.query_with(&busy, |clicks, busy| clicks.where_not_exists(&busy, [], []));
    let steps = in_parts([avg(col("x")).alias("m"), top_k(col("x"), 2).alias("t")]);
    let join = |l: Frame, r: Frame| l.alter_duration(15).join(&r.alter_duration(20), [], [], How::Left);
    vec![
        clicks.query(sums),
        s.query(sums).redistribute(Move::FLAT).query(add),
        s.query(sums).redistribute(Move::LOCAL).query(add).redistribute(Move::FLAT).query(add),
        s.redistribute(Move::LOCAL).query(sums).redistribute(Move::FLAT).query(add),
        clicks.query_with(&r.redistribute(Move::FLAT), join),
        s.query_with(&r.broadcast(Move::GLOBAL).broadcast(Move::LOCAL), join),
        s.redistribute(Move::LOCAL).query_with(&r.broadcast(Move::GLOBAL).redistribute(Move::LOCAL), join),
        s.query(|q| steps.parts(&q.hopping(20, 10, 0))).redistribute(Move::FLAT).query(|q| steps.results(&q)),
        quiet.rekey(["j"]).redistribute(Move::FLAT).query(|q| q.hopping(20, 10, 0).agg([count_rows().alias("n")])),
        source("l", layout).reshard(Move::FLAT).query(|q| q.filter(col("x").gt(lit(2i64)))),
    ]
}

/// Rows of each shard, in order of time.
fn rows(rng: &mut Rng, shards: usize) -> Vec<Vec<Row>> {
    let of_shard = |rng: &mut Rng| {
        let mut rows: Vec<Row> = (0..5 + rng.below(45))
            .map(|_| [rng.between(0, 5), rng.between(0, 3), rng.between(-4, 9), rng.between(0, 60)])
            .collect();
        rows.sort_by_key(|row| row[3]);
        rows
    };
    (0..shards).map(|_| of_shard(rng)).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let column = |at: usize| Arc::new(rows.iter().map(|row| row[at]).collect::<Int64Array>()) as ArrayRef;
    RecordBatch::try_new(Arc::new(Schema::new(fields())), (0..4).map(column).collect()).unwrap()
}

/// A file that goes away with the test.
struct CsvFile(PathBuf);

impl CsvFile {
    fn of(rows: &[Row]) -> CsvFile {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("anabranch-shards-{}-{}.csv", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let lines = rows.iter().map(|row| row.map(|cell| cell.to_string()).join(","));
        let text = std::iter::once(COLUMNS.join(",")).chain(lines).map(|line| line + "\n").collect::<String>();
        std::fs::write(&path, text).unwrap();
        CsvFile(path)
    }

    fn play(&self, run: &mut ShardRun, source: &str, shard: usize) {
        let options = BTreeMap::from([("path".to_owned(), self.0.display().to_string())]);
        let spec = SourceSpec { name: source.to_owned(), columns: fields(), options };
        run.play(source, shard, FileConnector.open(&spec).unwrap()).unwrap();
    }
}

impl Drop for CsvFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn files_and_pushed_rows_give_the_same() {
    for at in 0..programs(Layout::flat(1)).len() {
        cases(&format!("inputs {at}"), 2, |rng| {
            for layout in [Layout::flat(1), Layout::flat(3), Layout::grid(2, 2), Layout::grid(4, 2)] {
                files_and_pushed_rows_agree(rng, layout, at);
            }
        });
    }
}

fn files_and_pushed_rows_agree(rng: &mut Rng, layout: Layout, at: usize) {
    let program = programs(layout).swap_remove(at);
    program.check().unwrap();
    let plan = program.explain().unwrap();
    let names = ["l", "r"].into_iter().filter(|name| plan.contains(&format!("source {name} ")));
    let given: Vec<(&str, usize, Vec<Row>)> = names
        .flat_map(|name| {
            rows(rng, layout.shards()).into_iter().enumerate().map(move |(shard, rows)| (name, shard, rows))
        })
        .collect();
    let mut of_files = program.run().unwrap();
    let files: Vec<CsvFile> = given.iter().map(|(.., rows)| CsvFile::of(rows)).collect();
    files.iter().zip(&given).for_each(|(file, (source, shard, _))| file.play(&mut of_files, source, *shard));
    let mut at_once = program.run().unwrap();
    for (source, shard, rows) in &given {
        at_once.push(source, *shard, batch(rows)).unwrap();
    }
    let mut one_by_one = program.run().unwrap();
    for time in 0..=60 {
        for (source, shard, rows) in &given {
            one_by_one.advance(source, *shard, time).unwrap();
            for row in rows.iter().filter(|row| row[3] == time) {
                one_by_one.push(source, *shard, batch(&[*row])).unwrap();
            }
        }
    }
    let [of_files, at_once, one_by_one] =
        [of_files, at_once, one_by_one].map(|mut run| updates(&run.finish().unwrap().changes()));
    assert!(!at_once.is_empty(), "{plan}");
    assert_eq!(of_files, at_once, "{layout:?}\n{plan}");
    assert_eq!(of_files, one_by_one, "{layout:?}\n{plan}");
}
