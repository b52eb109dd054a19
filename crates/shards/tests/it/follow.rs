//! Subscribers of runs, and their progress.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_batch::{Batch, END, Time};
use anabranch_engine::connector::{Poll, ReadProgress, SourceReader};
use anabranch_engine::frame::{Event, col, lit, sum};
use anabranch_engine::{Error, ErrorKind};
use anabranch_shards::{Carry, Layout, Move, Shards};
use anabranch_testing::rng::{Rng, cases};
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::support::{layouts, rows, source, updates};

fn sums(layout: Layout) -> Shards {
    let keyed = source("l", layout).rekey(["k"]).redistribute(Move::FLAT);
    keyed.query(|rows| rows.tumbling(10).agg([sum(col("x")).alias("s")]))
}

/// Pushes random rows, piece by piece, as time goes on.
fn push_all(rng: &mut Rng, run: &mut anabranch_shards::ShardRun, rows: &[Vec<Event>]) {
    for piece in rows.chunks(7) {
        let shard = rng.below(run.shards());
        run.push("l", shard, piece.concat()).unwrap();
    }
    run.advance_all(40).unwrap();
}

/// A subscriber is given what would come out otherwise, each change once, by shard.
#[test]
fn subscribers_get_what_comes_out() {
    cases("subscribers of runs", 10, |rng| {
        let (rows, layout) = (rows(rng, 60), *rng.pick(&layouts()));
        let carry = if rng.chance(50) { Carry::Batches } else { Carry::Wire };
        let program = sums(layout);
        let mut alone = program.run().unwrap();
        let mut again = rng.clone();
        push_all(rng, &mut alone, &rows);
        let expected = alone.finish().unwrap();

        let mut run = program.run_with(carry).unwrap();
        let heard: Arc<Mutex<Vec<(usize, Batch)>>> = Arc::default();
        let taken = Arc::clone(&heard);
        run.subscribe(move |shard, changes| taken.lock().unwrap().push((shard, changes.clone())));
        push_all(&mut again, &mut run, &rows);
        // (Nothing is waited for: pushes and advances hand on what is there.)
        let begun = Instant::now();
        while heard.lock().unwrap().is_empty() && begun.elapsed() < Duration::from_secs(20) {
            run.advance_all(41).unwrap();
            assert!(run.ready().unwrap().changes().is_empty(), "what is subscribed comes out otherwise");
        }
        assert!(!heard.lock().unwrap().is_empty());
        assert!(run.finish().unwrap().changes().is_empty());
        for shard in 0..layout.shards() {
            let heard = heard.lock().unwrap();
            let of_shard: Vec<Batch> =
                heard.iter().filter(|(of, _)| *of == shard).map(|(_, batch)| batch.clone()).collect();
            let found = Batch::concat(&of_shard).unwrap_or_default();
            assert_eq!(updates(&found), updates(&expected.changes_of(shard)), "shard {shard} of {layout:?}");
        }
    });
}

#[test]
fn progress_tells_sources_the_result_errors_and_failure() {
    let program = source("l", Layout::flat(2)).query(|rows| rows.select([(lit(60i64) / col("x")).alias("q")]));
    let mut run = program.run().unwrap();
    let watch = run.watch();
    let begun = watch.progress();
    assert_eq!((begun.frontier, begun.sources[0].rows, begun.row_errors), (Time::MIN, 0, 0));
    let row = |x: i64| Event::start(3, [1i64.into(), 1i64.into(), x.into()]);
    run.push("l", 0, vec![row(1), row(0), row(0)]).unwrap();
    run.push("l", 1, vec![row(5)]).unwrap();
    run.advance("l", 0, 9).unwrap();
    run.advance("l", 1, 5).unwrap();
    assert!(run.drain().unwrap_err().message.starts_with("division by zero"));
    let there = std::thread::spawn(move || watch.progress()).join().unwrap();
    assert_eq!((there.frontier, there.row_errors, there.queued), (5, 2, 0));
    let source = &there.sources[0];
    assert_eq!((source.name.as_str(), source.rows, &source.frontiers[..]), ("l", 4, &[9, 5][..]));
    assert_eq!((source.share(), there.failed.is_none()), (None, true));
    // (An error that is taken back is none.)
    run.push("l", 0, vec![Event::end(12, 3, [1i64.into(), 1i64.into(), 0i64.into()])]).unwrap();
    run.finish().unwrap();
    assert_eq!((run.progress().row_errors, run.progress().frontier), (1, END));

    let stop = anabranch_engine::Interrupt::new();
    let mut run = program.run().unwrap();
    run.heed(&stop);
    stop.trigger();
    // (It is looked at where the run waits for a shard.)
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) && run.push("l", 0, vec![row(1)]).and_then(|()| run.drain()).is_ok()
    {
    }
    assert_eq!(run.progress().failed.map(|error| error.kind), Some(ErrorKind::Cancelled));
    assert_eq!(run.ready().unwrap_err().kind, ErrorKind::Cancelled);
}

/// Pieces of ten rows, of ten bytes each.
struct Pieces {
    left: usize,
    read: u64,
    seen: Arc<Mutex<Vec<Option<f64>>>>,
    watch: anabranch_shards::RunWatch,
}

impl SourceReader for Pieces {
    fn schema(&self) -> SchemaRef {
        Arc::new(crate::support::schema())
    }

    fn poll(&mut self, _rows_max: usize) -> Result<Poll, Error> {
        self.seen.lock().unwrap().push(self.watch.progress().sources[0].share());
        if self.left == 0 {
            return Ok(Poll::Done);
        }
        self.left -= 1;
        self.read += 100;
        let column = || Arc::new(Int64Array::from_iter_values(0..10)) as _;
        Ok(Poll::Rows(RecordBatch::try_from_iter([("k", column()), ("j", column()), ("x", column())]).unwrap()))
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress { bytes_read: self.read, bytes_total: Some(400), rows: self.read / 10, ..ReadProgress::default() }
    }
}

/// Of a bounded input it is told which part of it was read, while it is read.
#[test]
fn the_share_of_an_input_that_was_read_is_told() {
    let events = anabranch_engine::frame::Events::input("l", crate::support::schema()).time_column("x");
    let mut run = Shards::of_events(events, Layout::flat(2)).run().unwrap();
    let seen: Arc<Mutex<Vec<Option<f64>>>> = Arc::default();
    let reader = Pieces { left: 4, read: 0, seen: Arc::clone(&seen), watch: run.watch() };
    run.play("l", 1, Box::new(reader)).unwrap();
    assert_eq!(*seen.lock().unwrap(), [None, Some(0.25), Some(0.5), Some(0.75), Some(1.0)]);
    assert_eq!(run.progress().sources[0].rows, 40);
    assert_eq!(run.progress().sources[0].frontiers, [Time::MIN, END]);
}
