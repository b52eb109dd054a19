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

/// A folder that is gone with its test.
fn folder(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("anabranch-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

#[test]
fn a_program_over_a_stored_dataset_is_the_whole_program() {
    let second: fn(Shards) -> Shards = |s| s.query(|q| q.agg([max(col("s")).alias("m")]));
    cases("stored datasets", 12, |rng| {
        let layout = *rng.pick(&layouts());
        let folder = folder("stored");
        let first = by_k(layout).query(sums);
        let inputs = rows(rng, 60);
        let mut at_work = first.run().unwrap();
        for (number, row) in inputs.iter().enumerate() {
            at_work.push("l", number % layout.shards(), row.clone()).unwrap();
        }
        at_work.to_store(&first, &folder).unwrap();
        let (over_stored, whole) = (second(Shards::stored(&folder)), second(first));
        over_stored.check().unwrap();
        assert_eq!(over_stored.known().unwrap(), whole.known().unwrap(), "rows lie where they lay");
        let found = over_stored.run().unwrap().finish().unwrap();
        let expected = run(rng, &whole, layout.shards(), &[("l", inputs)]);
        assert_eq!(updates(&found.changes()), updates(&expected.changes()));
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn what_is_stored_badly_is_told() {
    let folder = folder("badly");
    let program = by_k(Layout::flat(2)).query(sums);
    let stored = || {
        let mut run = program.run().unwrap();
        run.push("l", 0, vec![Event::point(1, [1i64.into(), 0i64.into(), 5i64.into()])]).unwrap();
        run.to_store(&program, &folder)
    };
    let error = |of: Result<(), anabranch_engine::Error>| of.unwrap_err().message;
    let missing = Shards::stored(&folder).check().unwrap_err();
    assert!(missing.message.starts_with("there is no dataset in"), "{missing:?}");
    stored().unwrap();
    assert!(error(stored()).ends_with("is not empty"));
    let read = || Shards::stored(&folder).run().and_then(|mut run| run.finish()).map(|_| ());
    read().unwrap();
    let path = folder.join("shard-0000.rows");
    let bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        std::fs::write(&path, &other).unwrap();
        // (All bytes count but those of Arrow's own that nothing reads; the checksum sees those
        // too.)
        assert!(read().is_err(), "byte {at} is another");
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(read().is_err(), "the file ends at byte {at}");
    }
    std::fs::write(&path, &bytes).unwrap();
    std::fs::write(folder.join("dataset.json"), "{\"version\": 1, \"threads\": 0}").unwrap();
    assert!(error(read()).contains("is damaged"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn streams_carry_rows_and_promises_into_another_run() {
    cases("binary streams", 12, |rng| {
        let layout = *rng.pick(&layouts());
        let (first, inputs) = (by_k(layout), rows(rng, 60));
        let second = |input: &Shards| input.query(sums);
        // Live: written in pieces, and read again.
        let mut run_of_first = first.run().unwrap();
        let mut streams = run_of_first.binary_writers(vec![Vec::new(); layout.shards()]).unwrap();
        for (number, row) in inputs.iter().enumerate() {
            run_of_first.push("l", number % layout.shards(), row.clone()).unwrap();
            if rng.chance(10) {
                run_of_first.write_binary(&mut streams).unwrap();
            }
        }
        run_of_first.finish_binary(&mut streams).unwrap();
        let program = second(&source("l", layout).rekey(["k"]));
        let mut again = program.run().unwrap();
        for (shard, stream) in streams.into_iter().enumerate() {
            again.play_binary("l", shard, &*stream.into_inner()).unwrap();
        }
        let found = again.finish().unwrap();
        let expected = run(rng, &second(&first), layout.shards(), &[("l", inputs)]);
        assert_eq!(updates(&found.changes()), updates(&expected.changes()));
    });
    let program = by_k(Layout::flat(2));
    let error = program.run().unwrap().to_binary(vec![Vec::new()]).unwrap_err();
    assert_eq!(error.message, "1 writers for 2 shards");
    let error = program.run().unwrap().play_binary("l", 0, &b"nothing of ours"[..]).unwrap_err();
    assert_eq!(error.message, "the bytes are no stream of a shard");
}
