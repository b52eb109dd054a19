//! The laws of windows on moved grids, of pairs of neighbouring events, and of aggregates that go
//! by starts, against models that look at everything at once.

use anabranch_engine::frame::{
    FOREVER, Frame, bool_and, bool_or, col, collect, count, first, floor_div, last, lit, start,
};
use anabranch_testing::temporal::laws::{Life, Out, input, snapshots};

use super::temporal::{ceil, floor, law, out};

#[test]
fn windows_tumble_from_an_offset() {
    law("tumbling from an offset", |rng| {
        let (size, offset) = (rng.between(1, 12), rng.between(-30, 30));
        let frame = input("left").tumbling_at(size, offset);
        let window = move |life: &Life| ceil(life.start, size, offset);
        (frame, Box::new(move |lives| lives.iter().map(|l| out(window(l), window(l) + size, l)).collect()))
    });
}

/// An event for every window `(b - size, b]` that holds the start.
#[test]
fn windows_hop_repeatedly() {
    law("repetitive hopping", |rng| {
        let (size, period, offset) = (rng.between(1, 20), rng.between(1, 12), rng.between(-5, 5));
        let frame = input("left").repetitive_hopping(size, period, offset);
        (
            frame,
            Box::new(move |lives| {
                let mut all = Vec::new();
                for life in lives {
                    let mut boundary = ceil(life.start, period, offset);
                    while boundary - size < life.start {
                        all.push(out(boundary, boundary + size.min(period), life));
                        boundary += period;
                    }
                }
                all
            }),
        )
    });
}

/// Every one of `these` with those of `those` that begin at the least later time, at most
/// `distance` ticks on.
fn pairs(these: &[Life], those: &[Life], all: &[Life], distance: i64) -> Vec<(Life, Life)> {
    let mut pairs = Vec::new();
    for one in these {
        let next = all.iter().map(|life| life.start).filter(|start| *start > one.start).min();
        let Some(next) = next.filter(|next| next - one.start <= distance) else { continue };
        pairs.extend(those.iter().filter(|life| life.start == next).map(|life| (*one, *life)));
    }
    pairs
}

fn only(lives: &[Life], keep: impl Fn(&Life) -> bool) -> Vec<Life> {
    lives.iter().copied().filter(|life| keep(life)).collect()
}

#[test]
fn events_follow_each_other() {
    law("followed by immediate", |rng| {
        let within = *rng.pick(&[2, 3, 7, FOREVER]);
        let frame = input("left").followed_by_immediate(col("x").gt(lit(0)), col("x").lt(lit(2)), within);
        (
            frame,
            Box::new(move |lives| {
                let (firsts, seconds) = (only(lives, |life| life.x > 0), only(lives, |life| life.x < 2));
                let row = |(one, next): (Life, Life)| {
                    (next.start, next.start + 1, format!("{}, {}, {}, {}", one.k, one.x, next.k, next.x))
                };
                pairs(&firsts, &seconds, lives, within - 1).into_iter().map(row).collect()
            }),
        )
    });
}

/// What a model says of every key apart; the key, then both numbers.
fn by_key(lives: &[Life], model: impl Fn(&[Life]) -> Vec<(Life, Life)>) -> Vec<Out> {
    let row = |(one, next): (Life, Life)| (next.start, next.start + 1, format!("{}, {}, {}", one.k, one.x, next.x));
    (0..4).flat_map(|key| model(&only(lives, |life| life.k == key))).map(row).collect()
}

#[test]
fn events_are_paired_with_the_next_ones() {
    law("consecutive pairs by key", |_| {
        let frame = input("left").group_apply([col("k")], |group| group.consecutive_pairs());
        (frame, Box::new(|lives| by_key(lives, |lives| pairs(lives, lives, lives, FOREVER))))
    });
}

#[test]
fn sessions_are_opened_and_closed() {
    law("sessionize", |_| {
        let frame = input("left").sessionize([col("k")], col("x").gt(lit(0)), col("x").lt(lit(2)));
        (
            frame,
            Box::new(|lives| {
                by_key(lives, |lives| {
                    let (opening, closing) = (only(lives, |life| life.x > 0), only(lives, |life| life.x < 2));
                    pairs(&opening, &closing, &closing, FOREVER)
                })
            }),
        )
    });
}

/// New starts before the old ones, where the distance can be read off the expression.
#[test]
fn starts_move_back() {
    law("rounded starts", |rng| {
        let (period, back, ticks) = (rng.between(1, 9), rng.between(0, 5), rng.between(1, 20));
        let rounded = floor_div(start(), lit(period)) * lit(period) - lit(back);
        let keeps = rng.chance(50);
        let frame = input("left").alter_lifetime(rounded, (!keeps).then(|| lit(ticks)));
        let moved = move |life: &Life| {
            let begin = floor(life.start, period, 0) - back;
            let end = match (keeps, life.end) {
                (false, _) => begin + ticks,
                (true, FOREVER) => FOREVER,
                (true, end) => begin + (end - life.start),
            };
            (begin, end)
        };
        (
            frame,
            Box::new(move |lives| {
                lives.iter().map(|life| (moved(life), life)).map(|((begin, end), l)| out(begin, end, l)).collect()
            }),
        )
    });
}

fn with_aggregates() -> Frame {
    let positive = || col("x").gt(lit(0));
    input("left").group_by([col("k")]).agg([
        first(col("x")).alias("first"),
        last(col("x")).alias("last"),
        collect(col("x")).alias("all"),
        collect(col("x")).distinct().alias("each"),
        count(col("x")).distinct().alias("n"),
        bool_and(positive()).alias("and"),
        bool_or(positive()).alias("or"),
    ])
}

#[test]
fn aggregates_go_by_starts() {
    law("first, last, all", |_| {
        let of = |rows: &[&Life]| {
            let mut rows: Vec<&Life> = rows.to_vec();
            rows.sort_by_key(|life| (life.start, life.x));
            let list = |values: &[i64]| {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                format!("[{}]", values.join(", "))
            };
            let all: Vec<i64> = rows.iter().map(|life| life.x).collect();
            let mut each = all.clone();
            each.sort();
            each.dedup();
            let (first, last) = (all[0], all[all.len() - 1]);
            let (is_all, is_any) = (all.iter().all(|x| *x > 0), all.iter().any(|x| *x > 0));
            format!("{first}, {last}, {}, {}, {}, {is_all}, {is_any}", list(&all), list(&each), each.len())
        };
        (with_aggregates(), Box::new(move |lives| snapshots(lives, |life| Some(life.k), of)))
    });
}

#[test]
fn what_cannot_follow_is_refused() {
    let error = input("left").followed_by_immediate(lit(true), lit(true), 1).schema().expect_err("nothing is within 1");
    assert!(error.render("").contains("within 2 ticks at least"), "{error}");
    let error = input("left").agg([bool_or(col("x"))]).schema().expect_err("x is no condition");
    assert!(error.render("").contains("of conditions, but its argument is of type"), "{error}");
}
