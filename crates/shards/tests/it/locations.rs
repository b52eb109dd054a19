//! Groups of shards as places to move to: section 1.4 of Quill's operators.

use anabranch_engine::frame::{Event, Frame, How, avg, col, count_rows, sum};
use anabranch_shards::{Datasets, Layout, Move, ShardGroup, Shards};
use anabranch_testing::rng::cases;

use crate::support::{rows, run, same_as_one_shard, source, updates};

fn keyed(name: &str, layout: Layout) -> Shards {
    source(name, layout).rekey(["k"])
}

/// The last shards of a layout: two of them, where there are so many.
fn last(layout: Layout) -> ShardGroup {
    ShardGroup::new("last", layout.shards().saturating_sub(2)..layout.shards())
}

/// The last shard of a layout.
fn last_one(layout: Layout) -> ShardGroup {
    ShardGroup::new("lone", [layout.shards() - 1])
}

#[test]
fn rows_go_to_the_shards_of_the_group_and_no_others() {
    let group = ShardGroup::new("socket", [3, 1, 3]);
    assert_eq!(group.shards(), [1, 3]);
    cases("locations", 8, |rng| {
        let given = [("l", rows(rng, 80))];
        let one = updates(&run(rng, &keyed("l", Layout::flat(1)), 1, &given).changes());
        for layout in [Layout::flat(4), Layout::grid(2, 2)] {
            let s = keyed("l", layout);
            for moved in [s.redistribute(Move::to_group(&group)), s.reshard(Move::to_group(&group))] {
                let outcome = run(rng, &moved, 4, &given);
                assert_eq!(updates(&outcome.changes()), one);
                let events = |shard: usize| outcome.shards[shard].iter().map(|batch| batch.len()).sum::<usize>();
                assert_eq!([events(0), events(2)], [0, 0]);
                assert!(events(1) > 0 && events(3) > 0, "{} and {}", events(1), events(3));
            }
            let copied = run(rng, &s.broadcast(Move::to_group(&group)), 4, &given);
            for shard in 0..4 {
                let found = updates(&copied.changes_of(shard));
                assert_eq!(found, if shard % 2 == 1 { one.clone() } else { Default::default() });
            }
        }
    });
}

#[test]
fn spread_rows_are_even_within_the_group() {
    let group = ShardGroup::new("three", [0, 2, 5]);
    let mut run = source("l", Layout::grid(2, 3)).reshard(Move::to_group(&group)).run().unwrap();
    let row = |x: i64| Event::start(0, [0i64.into(), 0i64.into(), x.into()]);
    run.push("l", 1, (0..30_000).map(row).collect::<Vec<_>>()).unwrap();
    let outcome = run.finish().unwrap();
    for shard in [0, 2, 5] {
        let rows: usize = outcome.shards[shard].iter().map(|batch| batch.len()).sum();
        assert!((9_500..10_500).contains(&rows), "{rows}");
    }
}

#[test]
fn groups_that_do_not_fit_are_errors_of_building() {
    let s = keyed("l", Layout::flat(4));
    let message = |group: &ShardGroup| s.redistribute(Move::to_group(group)).check().unwrap_err().message;
    assert_eq!(message(&ShardGroup::new("wide", [1, 4])), "group \"wide\" names shard 4: there are 4");
    assert_eq!(message(&ShardGroup::new("none", [])), "group \"none\" has no shards");
    let local = Move { to: Move::to_group(&ShardGroup::new("few", [1])).to, ..Move::LOCAL };
    let error = s.reshard(local).check().unwrap_err();
    assert_eq!(error.message, "a group of shards is said of movement among all of them only");
}

/// What the check derives of groups, held against one shard: wrong derivations would differ.
#[test]
fn programs_of_groups_that_are_accepted_are_those_of_one_shard() {
    let count = |q: Frame| q.agg([count_rows().alias("n")]);
    same_as_one_shard("counts in a group", |layout| {
        keyed("l", layout).redistribute(Move::to_group(&last(layout))).query(count)
    });
    same_as_one_shard("sums of counts in a group", |layout| {
        let counts = keyed("l", layout).query(count).redistribute(Move::to_group(&last(layout)));
        counts.query(|q| q.agg([sum(col("n")).alias("n")]))
    });
    same_as_one_shard("a join in a group", |layout| {
        let side = |name| keyed(name, layout).redistribute(Move::to_group(&last(layout)));
        side("l").query_with(&side("r"), |l, r| l.join(&r, [], [], How::Inner))
    });
    same_as_one_shard("all rows in a group of one", |layout| {
        source("l", layout).reshard(Move::to_group(&last_one(layout))).query(|q| q.agg([avg(col("x")).alias("m")]))
    });
    same_as_one_shard("SQL by the key of a group", |layout| {
        let moved = keyed("l", layout).redistribute(Move::to_group(&last(layout)));
        moved.sql("SELECT k, avg(x) AS m FROM shard GROUP BY k")
    });
}

#[test]
fn sides_in_different_groups_do_not_lie_alike() {
    let join = |first: Move, second: Move| {
        let side = |name, reach| keyed(name, Layout::flat(4)).redistribute(reach);
        side("l", first).query_with(&side("r", second), |l, r| l.join(&r, [], [], How::Inner))
    };
    let group = |shards: [usize; 2]| Move::to_group(&ShardGroup::new("g", shards));
    join(group([1, 2]), group([2, 1])).check().unwrap();
    for other in [group([1, 3]), Move::FLAT, Move::to_shards(2)] {
        let error = join(group([1, 2]), other).check().unwrap_err();
        assert!(error.message.starts_with("the program depends on the number of shards: "), "{}", error.message);
    }
    // It is right to refuse it: rows that match lie in different shards.
    cases("different groups", 2, |rng| {
        let given = [("l", rows(rng, 60)), ("r", rows(rng, 60))];
        let together = run(rng, &join(group([1, 2]), group([1, 2])), 4, &given);
        let apart = run(rng, &join(group([1, 2]), group([0, 3])), 4, &given);
        assert!(!together.changes().is_empty() && apart.changes().is_empty());
    });
}

#[test]
fn copies_in_some_shards_are_refused_and_an_answer_of_nothing_is_partial() {
    let (s, group) = (source("l", Layout::flat(3)), ShardGroup::new("g", [1, 2]));
    let error = s.broadcast(Move::to_group(&group)).check().unwrap_err();
    assert_eq!(error.message, "the program depends on the number of shards: a broadcast to some of the shards");
    // The shards without rows would each count none.
    let alone = s.reshard(Move::to_group(&ShardGroup::new("one", [2])));
    alone.sql("SELECT count(*) AS n FROM shard").check().unwrap_err();
}

#[test]
fn plans_show_groups() {
    let s = keyed("l", Layout::flat(4)).redistribute(Move::to_group(&ShardGroup::new("socket", [1, 3])));
    let expected = "\
reshard to group lone (2): in group lone (2)
  redistribute to group socket (1, 3): by key (k) in group socket (1, 3)
    rekey (k): arbitrary
      source l in 4 shards: arbitrary
";
    assert_eq!(s.reshard(Move::to_group(&ShardGroup::new("lone", [2]))).explain().unwrap(), expected);
}

/// What a group is stays with rows that are kept, in memory and in files.
#[test]
fn rows_that_are_kept_are_known_to_lie_in_their_group() {
    let group = ShardGroup::new("g", [0, 2]);
    let moved = || keyed("l", Layout::flat(3)).redistribute(Move::to_group(&group));
    let filled = || {
        let mut run = moved().run().unwrap();
        let row = |k: i64| Event::start(0, [k.into(), 0i64.into(), 1i64.into()]);
        run.push("l", 1, (0..40).map(|at| row(at % 7)).collect::<Vec<_>>()).unwrap();
        run
    };
    let datasets = Datasets::default();
    filled().to_memory(&moved(), &datasets, "kept").unwrap();
    let folder = std::env::temp_dir().join(format!("anabranch-group-{}", std::process::id()));
    filled().to_store(&moved(), &folder).unwrap();
    for read in [datasets.read("kept"), Shards::stored(&folder)] {
        assert_eq!(read.known().unwrap().placement, moved().known().unwrap().placement);
        let counts = read.query(|q| q.agg([count_rows().alias("n")]));
        counts.check().unwrap();
        let found = counts.run().unwrap().finish().unwrap().lifetimes().unwrap();
        assert_eq!(found.len(), 7);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
