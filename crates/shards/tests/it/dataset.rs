//! Results that are kept: a program over one gives what the whole program gives (statement A18).

use std::sync::Arc;

use anabranch_engine::frame::{Event, Frame, col, count_rows, lit, max, sum};
use anabranch_shards::{Datasets, Layout, Move, RunOutcome, Shards};
use anabranch_testing::rng::cases;

use crate::support::{layouts, rows, run, source, updates};

fn by_k(layout: Layout) -> Shards {
    source("l", layout).rekey(["k"]).redistribute(Move::FLAT)
}

fn sums(frame: Frame) -> Frame {
    frame.tumbling(10).agg([sum(col("x")).alias("s"), count_rows().alias("n")])
}

/// A program in two halves, and as a whole.
fn in_halves(layout: Layout, datasets: &Datasets, second: fn(Shards) -> Shards) -> [Shards; 2] {
    [second(datasets.read("sums")), second(by_k(layout).query(sums))]
}

#[test]
fn a_program_over_a_dataset_is_the_whole_program() {
    let seconds: [fn(Shards) -> Shards; 4] = [
        |s| s,
        |s| s.query(|q| q.filter(col("s").gt(lit(3)))),
        |s| s.query(|q| q.agg([max(col("s")).alias("m")])),
        |s| s.rekey(["n"]).redistribute(Move::FLAT).query(|q| q.agg([count_rows().alias("c")])),
    ];
    for (at, second) in seconds.into_iter().enumerate() {
        cases(&format!("datasets {at}"), 8, |rng| {
            let layout = *rng.pick(&layouts());
            let inputs = [("l", rows(rng, 60))];
            let datasets = Datasets::default();
            let first = by_k(layout).query(sums);
            datasets.keep("sums", &first, run(rng, &first, layout.shards(), &inputs)).unwrap();
            let [over_dataset, whole] = in_halves(layout, &datasets, second);
            over_dataset.check().unwrap();
            assert_eq!(over_dataset.known().unwrap(), whole.known().unwrap(), "rows lie where they lay");
            let found = over_dataset.run().unwrap().finish().unwrap();
            let expected = run(rng, &whole, layout.shards(), &inputs);
            assert_eq!(updates(&found.changes()), updates(&expected.changes()));
        });
    }
}

#[test]
fn a_dataset_is_read_without_its_sources_and_freed_when_it_is_dropped() {
    let layout = Layout::flat(3);
    let datasets = Datasets::default();
    let program = by_k(layout).query(sums);
    cases("kept once", 1, |rng| {
        let mut given = program.run().unwrap();
        for (shard, row) in rows(rng, 40).into_iter().enumerate() {
            given.push("l", shard % 3, row).unwrap();
        }
        given.to_memory(&program, &datasets, "sums").unwrap();
    });
    let again = datasets.read("sums").query(|q| q.filter(col("n").gt(lit(0))));
    let mut at_work = again.run().unwrap();
    let result: RunOutcome = at_work.finish().unwrap();
    assert!(!result.changes().is_empty());
    let steps: Vec<&str> = at_work.moved().iter().map(|(name, _)| *name).collect();
    assert_eq!(steps, ["dataset", "query"], "no source is read, and nothing moves");
    assert!(again.explain().unwrap().contains("dataset sums in 3 shards: by key (k)"), "{}", again.explain().unwrap());

    let weak = {
        let kept = datasets.list();
        assert!(kept.len() == 1 && kept[0].size_bytes() > 0 && kept[0].events() > 0);
        Arc::downgrade(&kept[0])
    };
    drop((again, at_work));
    datasets.drop("sums").unwrap();
    assert!(weak.upgrade().is_none(), "its rows are freed");
}

#[test]
fn what_cannot_be_kept_or_read_is_told() {
    let datasets = Datasets::default();
    let layout = Layout::flat(2);
    let program = by_k(layout).query(sums);
    let of = |program: &Shards| program.run().unwrap().finish().unwrap();
    datasets.keep("sums", &program, of(&program)).unwrap();
    let error = datasets.keep("sums", &program, of(&program)).unwrap_err();
    assert_eq!(error.message, "there is a dataset \"sums\" already");
    let error = datasets.keep("other", &program, program.run().unwrap().drain().unwrap()).unwrap_err();
    assert_eq!(error.message, "the result \"other\" is not complete");
    let mut taken = program.run().unwrap();
    taken.push("l", 0, vec![Event::point(1, [1i64.into(), 0i64.into(), 5i64.into()])]).unwrap();
    taken.advance_all(50).unwrap();
    assert!(!taken.drain().unwrap().changes().is_empty());
    let error = taken.to_memory(&program, &datasets, "other").unwrap_err();
    assert_eq!(error.message, "a part of the result \"other\" was taken by drain() before");
    let partial = source("l", layout).rekey(["k"]).query(sums);
    let error = datasets.keep("other", &partial, of(&partial)).unwrap_err();
    assert!(error.message.starts_with("the program ends with partial results"), "{error:?}");
    let error = datasets.read("sum").query(sums).check().unwrap_err();
    assert_eq!(error.message, "there is no dataset \"sum\"");
    assert_eq!(error.hint.as_deref(), Some("Did you mean \"sums\"?"));
    assert!(datasets.drop("sum").is_err());
}
