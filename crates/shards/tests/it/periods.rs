//! When rows are looked at and when time moves is not part of a result: statement T4.

use std::collections::BTreeMap;

use anabranch_batch::Time;
use anabranch_engine::frame::{Event, col, count_rows, lit, sum};
use anabranch_shards::{Layout, Move, Shards, SplitPlan};
use anabranch_testing::rng::cases;

use crate::support::{layouts, source, updates};

/// Updates by row and time, of several looks.
type Updates = BTreeMap<(Time, Vec<String>), i64>;

fn add(all: &mut Updates, more: Updates) {
    more.into_iter().for_each(|(update, diff)| *all.entry(update).or_insert(0) += diff);
    all.retain(|_, diff| *diff != 0);
}

/// Programs that keep rows until time moves, that move them, and that split them.
fn programs(layout: Layout) -> [Shards; 3] {
    let rows = source("l", layout);
    [
        rows.query(|rows| rows.filter(col("x").gt(lit(0i64)))).reshard(Move::FLAT),
        rows.rekey(["k"])
            .query(|rows| rows.tumbling(10).agg([count_rows().alias("n")]))
            .redistribute(Move::FLAT)
            .query(|rows| rows.agg([sum(col("n")).alias("n")])),
        rows.split(3, col("j"), Some(col("k").eq(lit(1i64))), SplitPlan::Exp)
            .map(|rows| rows.hopping(10, 5, 0).agg([count_rows().alias("n")]))
            .merge(),
    ]
}

/// Statement T4, its first half: how often results are taken, and how often time moves, changes
/// none of them.
#[test]
fn periods_of_flushes_and_punctuations_change_no_result() {
    const END: i64 = 60;
    cases("periods", 10, |rng| {
        let layout = *rng.pick(&layouts());
        let pieces: Vec<(usize, Event)> = (0..END)
            .flat_map(|time| (0..2).map(move |_| time))
            .map(|time| {
                let row = vec![rng.between(0, 4).into(), rng.between(0, 2).into(), rng.between(-4, 9).into()];
                let event = if rng.chance(50) { Event::point(time, row) } else { Event::interval(time, time + 7, row) };
                (rng.below(layout.shards()), event)
            })
            .collect();
        for (number, program) in programs(layout).iter().enumerate() {
            let mut results: Vec<Updates> = Vec::new();
            for (punctuation, flush) in [(1, 1), (1, 100), (7, 3), (25, 1), (100, 100)] {
                let (mut run, mut found) = (program.run().unwrap(), Updates::new());
                for (at, (shard, event)) in pieces.iter().enumerate() {
                    let time = at as i64 / 2;
                    if at % 2 == 0 && time % punctuation == 0 {
                        run.advance_all(time).unwrap();
                    }
                    run.push("l", *shard, vec![event.clone()]).unwrap();
                    if at % flush == 0 {
                        add(&mut found, updates(&run.drain().unwrap().changes()));
                    }
                }
                add(&mut found, updates(&run.finish().unwrap().changes()));
                results.push(found);
            }
            assert!(!results[0].is_empty());
            assert!(results.iter().all(|other| *other == results[0]), "program {number} in {layout:?}");
        }
    });
}

/// Statement T4, its second half. Nothing is staged: movements hand rows on as they come, and
/// queries with the promise that passes them. So the latency is the period of promises: once time
/// has moved, all results before it are out.
#[test]
fn rows_wait_for_no_more_than_the_promise_that_passes_them() {
    for layout in layouts() {
        let row = |time: i64| vec![Event::point(time, [1i64.into(), 1i64.into(), 5i64.into()])];
        let mut moved = source("l", layout).rekey(["k"]).redistribute(Move::FLAT).run().unwrap();
        moved.push("l", 0, row(7)).unwrap();
        assert!(!moved.drain().unwrap().changes().is_empty(), "a row waits where it only moves");
        for (number, program) in programs(layout).iter().enumerate() {
            let (mut run, mut found) = (program.run().unwrap(), Updates::new());
            let before = |all: &Updates, end: i64| {
                all.iter().filter(|((time, _), _)| *time < end).map(|(key, n)| (key.clone(), *n)).collect::<Updates>()
            };
            let mut looks = Vec::new();
            for time in 0..40 {
                run.push("l", time as usize % layout.shards(), row(time)).unwrap();
                if time % 3 == 0 {
                    run.advance_all(time + 1).unwrap();
                    add(&mut found, updates(&run.drain().unwrap().changes()));
                    looks.push((time + 1, before(&found, time + 1)));
                }
            }
            add(&mut found, updates(&run.finish().unwrap().changes()));
            for (end, seen) in looks {
                assert_eq!(seen, before(&found, end), "program {number} before {end} in {layout:?}");
            }
        }
    }
}
