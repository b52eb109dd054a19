//! Arrangements of one collection by several keys: each is read by itself, and a reader of one
//! hears of all that comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::{Batch, Diffs, Time, Times};
use anabranch_engine::cluster::{
    ArrangementId, Cluster, CollectionId, DataflowId, DataflowSpec, Egress, Export, Peek, Read, WantedKeys,
};
use anabranch_engine::{Interrupt, MergeEffort};
use anabranch_plan::JoinKind;
use anabranch_plan::bounds::Promises;
use anabranch_testing::build::{Builder, JoinOn, Relation};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;

const INPUT: CollectionId = CollectionId(1);
const BY_KEY: [ArrangementId; 2] = [ArrangementId(1), ArrangementId(2)];
const RESULT: ArrangementId = ArrangementId(3);
const COMMITS: i64 = 300;
/// Far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A join that reads the second of two arrangements is told of each commit, in whatever order the
/// two are complete on a worker. (Row errors lay beside the first one, and became complete after
/// the second without a word.)
#[test]
fn whoever_reads_the_second_arrangement_of_a_collection_hears_of_each_commit() {
    let relation = Relation::new("r", &[DataType::Int64, DataType::Int64]);
    for workers in 1..4 {
        let mut cluster = Cluster::start(workers, MergeEffort::default()).expect("threads start");
        cluster.create_input(INPUT, 1);
        let read = |arrangements| {
            let read = Read {
                collection: INPUT,
                is_input: true,
                arrangements,
                primary_key: vec![],
                promises: Promises::default(),
            };
            BTreeMap::from([("r".to_string(), read)])
        };
        let install = |cluster: &mut Cluster, number: u64, plan, arrangements, exports| {
            let (dataflow, name) = (DataflowId(number), "r".to_string());
            let reads = read(arrangements);
            let spec = DataflowSpec { dataflow, name, plan, reads, as_of: 0, exports, egress: Egress::Nothing };
            cluster.install(spec).expect("the plan can be run");
        };
        let export = |arrangement, key| Export { arrangement, key, is_part: false };
        let scan = Builder::new().scan(&relation);
        let by_keys = vec![export(BY_KEY[0], vec![0]), export(BY_KEY[1], vec![1])];
        install(&mut cluster, 1, Arc::clone(&scan), vec![], by_keys);
        let mut builder = Builder::new();
        let (left, right) = (builder.scan(&relation), builder.scan(&relation));
        let pairs = builder.join(&left, &right, JoinOn::new(JoinKind::Inner, &[(1, 1)]));
        install(&mut cluster, 2, pairs, vec![(BY_KEY[1], vec![1])], vec![export(RESULT, vec![0])]);

        let interrupt = Interrupt::new();
        let (watched, done) = (interrupt.clone(), Arc::new(()));
        let watch = Arc::downgrade(&done);
        let watchdog = std::thread::spawn(move || {
            let rounds = PATIENCE.as_millis() / 10;
            for _ in 0..rounds {
                std::thread::sleep(Duration::from_millis(10));
                if watch.strong_count() == 0 {
                    return;
                }
            }
            watched.trigger();
        });
        for time in 1..=COMMITS {
            cluster.push(INPUT, rows(time));
            cluster.advance(time + 1);
            let peek = Peek { arrangement: RESULT, at: time, rows: WantedKeys::All };
            let result = cluster.peek(peek, &interrupt);
            let result = result.unwrap_or_else(|error| panic!("{workers} workers, commit {time}: {error}"));
            let n_rows: usize = result.batches.iter().map(Batch::len).sum();
            // Keys 0 to 2, each of its third of the rows with each other.
            let expected: i64 =
                (0..3).map(|key| (1..=time).filter(|row| row % 3 == key).count() as i64).map(|n| n * n).sum();
            assert_eq!(n_rows as i64, expected, "{workers} workers, commit {time}");
        }
        drop(done);
        watchdog.join().expect("the watchdog ends");
    }
}

/// One row: a number of its own, and one of three keys.
fn rows(time: Time) -> Batch {
    let columns = [time, time % 3].map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef);
    Batch::new(columns.to_vec(), Times::Constant(time), Diffs::Constant(1))
}
