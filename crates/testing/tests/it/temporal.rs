//! The cases of the temporal algebra, and the laws of its verbs against models that look at
//! everything at once.

use std::path::PathBuf;

use anabranch_engine::frame::{
    AsofOptions, Event, FOREVER, Frame, How, Strategy, avg, col, count_rows, end, lit, max, min, start, sum,
};
use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::temporal::laws::{Life, Out, hold, input, snapshots};
use anabranch_testing::temporal::{read, run};

#[test]
fn the_cases_pass() {
    let folder = PathBuf::from("../../tests/temporal");
    let cases = read(&[folder]).expect("the cases are in the repository");
    assert!(cases.len() >= 430, "{} cases", cases.len());
    let failed: Vec<String> = cases
        .iter()
        .flat_map(|case| [0, 2].map(|workers| (case, workers)))
        .filter_map(|(case, workers)| run(case, workers).err().map(|error| format!("{}: {error}", case.id)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A law of a verb of one input.
pub(crate) fn law(name: &str, build: impl Fn(&mut Rng) -> (Frame, Box<dyn Fn(&[Life]) -> Vec<Out>>)) {
    cases(name, 25, |rng| {
        let base = *rng.pick(&[0, -20, 1_000_000, i64::MIN + 1000, i64::MAX - 1000]);
        let (frame, model) = build(rng);
        hold(rng, &frame, base, |inputs| model(&inputs[0]));
    });
}

/// A law of a verb of two inputs.
fn law_of_two(name: &str, build: impl Fn(&mut Rng) -> (Frame, Box<dyn Fn(&[Life], &[Life]) -> Vec<Out>>)) {
    cases(name, 40, |rng| {
        let base = *rng.pick(&[0, 0, -20, i64::MIN + 1000, i64::MAX - 1000]);
        let (frame, model) = build(rng);
        hold(rng, &frame, base, |inputs| model(&inputs[0], &inputs[1]));
    });
}

pub(crate) fn out(start: i64, end: i64, life: &Life) -> Out {
    (start, end, format!("{}, {}", life.k, life.x))
}

/// `end + ticks`, for ends that come.
fn later(end: i64, ticks: i64) -> i64 {
    if end == FOREVER { FOREVER } else { end.saturating_add(ticks) }
}

pub(crate) fn floor(time: i64, period: i64, offset: i64) -> i64 {
    (i128::from(time) - (i128::from(time) - i128::from(offset)).rem_euclid(i128::from(period))) as i64
}

pub(crate) fn ceil(time: i64, period: i64, offset: i64) -> i64 {
    let below = floor(time, period, offset);
    if below == time { time } else { below + period }
}

#[test]
fn rows_are_filtered_and_computed() {
    law("filters", |_| {
        let frame = input("left").filter(col("x").gt(lit(0))).select([col("k"), (col("x") * lit(2)).alias("x")]);
        (
            frame,
            Box::new(|lives| {
                let kept = lives.iter().filter(|life| life.x > 0);
                kept.map(|life| (life.start, life.end, format!("{}, {}", life.k, life.x * 2))).collect()
            }),
        )
    });
}

#[test]
fn bounds_are_columns() {
    law("bounds", |_| {
        let frame = input("left").select([start().alias("s")]);
        (frame, Box::new(|lives| lives.iter().map(|life| (life.start, life.end, life.start.to_string())).collect()))
    });
}

#[test]
fn lifetimes_shift() {
    law("shift", |rng| {
        let ticks = rng.between(-30, 30);
        let frame = input("left").shift(ticks);
        (frame, Box::new(move |lives| lives.iter().map(|l| out(l.start + ticks, later(l.end, ticks), l)).collect()))
    });
}

#[test]
fn durations_are_set() {
    law("durations", |rng| {
        let ticks = *rng.pick(&[1, 5, 100, FOREVER]);
        let frame = input("left").alter_duration(ticks);
        let end = move |start: i64| if ticks == FOREVER { FOREVER } else { start.saturating_add(ticks) };
        (frame, Box::new(move |lives| lives.iter().map(|l| out(l.start, end(l.start), l)).collect()))
    });
    law("durations of rows", |_| {
        let frame = input("left").alter_duration_by(col("x"));
        (
            frame,
            Box::new(|lives| {
                lives.iter().filter(|l| l.x > 0).map(|l| out(l.start, l.start.saturating_add(l.x), l)).collect()
            }),
        )
    });
    law("durations of lifetimes", |_| {
        let frame = input("left").alter_duration_by((end() - start()) * lit(2));
        (
            frame,
            Box::new(|lives| {
                let doubled =
                    |l: &Life| if l.end == FOREVER { FOREVER } else { l.start.saturating_add(2 * (l.end - l.start)) };
                lives.iter().map(|l| out(l.start, doubled(l), l)).collect()
            }),
        )
    });
}

#[test]
fn windows_hop() {
    law("hopping", |rng| {
        let (size, period, offset) = (rng.between(1, 20), rng.between(1, 12), rng.between(-5, 5));
        let frame = input("left").hopping(size, period, offset);
        (
            frame,
            Box::new(move |lives| {
                let mut all = Vec::new();
                for life in lives {
                    let first = ceil(life.start, period, offset);
                    let last = match size % period {
                        0 => first + size,
                        _ if size < period => first + size,
                        _ => ceil(life.start + size, period, offset),
                    };
                    if period <= size || first - life.start < size {
                        all.push(out(first, last, life));
                    }
                }
                all
            }),
        )
    });
}

#[test]
fn windows_quantize() {
    law("quantize", |rng| {
        let progress = rng.between(1, 5);
        let period = progress * rng.between(1, 4);
        let (size, offset) = (rng.between(1, 20), rng.between(-5, 5));
        let frame = input("left").quantize_progressive(size, period, progress, offset);
        (
            frame,
            Box::new(move |lives| {
                let quantized = |life: &Life| {
                    if life.end == FOREVER {
                        return FOREVER;
                    }
                    floor((life.end + period - 1).max(life.start + size), period, offset + size)
                };
                lives
                    .iter()
                    .map(|l| out(floor(l.start, progress, offset), quantized(l), l))
                    .filter(|o| o.1 > o.0)
                    .collect()
            }),
        )
    });
}

fn total(lives: &[&Life]) -> i64 {
    lives.iter().map(|life| life.x).sum()
}

#[test]
fn snapshots_are_aggregated() {
    law("counts and sums by key", |_| {
        let frame = input("left").group_by([col("k")]).agg([count_rows(), sum(col("x"))]);
        (frame, Box::new(|lives| snapshots(lives, |l| Some(l.k), |rows| format!("{}, {}", rows.len(), total(rows)))))
    });
    law("least and greatest", |_| {
        let frame = input("left").agg([min(col("x")), max(col("x"))]);
        (
            frame,
            Box::new(|lives| {
                snapshots(
                    lives,
                    |_| None,
                    |rows| {
                        let values = || rows.iter().map(|life| life.x);
                        format!(
                            "{}, {}",
                            values().min().expect("a group has rows"),
                            values().max().expect("a group has rows")
                        )
                    },
                )
            }),
        )
    });
    law("sub-queries of groups", |_| {
        let frame =
            input("left").group_apply([col("k")], |group| group.filter(col("x").gt(lit(-2))).agg([count_rows()]));
        (
            frame,
            Box::new(|lives| {
                let kept: Vec<Life> = lives.iter().copied().filter(|life| life.x > -2).collect();
                snapshots(&kept, |l| Some(l.k), |rows| rows.len().to_string())
            }),
        )
    });
    law("distinct rows", |_| {
        let frame = input("left").select([col("x")]).distinct();
        (
            frame,
            Box::new(|lives| {
                snapshots(lives, |l| Some(l.x), |_| String::new())
                    .into_iter()
                    .map(|(s, e, row)| (s, e, row.trim_end_matches(", ").to_owned()))
                    .collect()
            }),
        )
    });
}

#[test]
fn constant_durations_are_aggregated_alike() {
    let with = |lives: &[Life], change: &dyn Fn(&Life) -> Option<(i64, i64)>| -> Vec<Life> {
        lives.iter().filter_map(|l| change(l).map(|(start, end)| Life { start, end, ..*l })).collect()
    };
    law("sliding", |rng| {
        let ticks = rng.between(1, 12);
        let by_key = rng.chance(50);
        let keys = if by_key { vec![col("k")] } else { vec![] };
        let frame =
            input("left").alter_duration(ticks).group_by(keys).agg([count_rows(), sum(col("x")), avg(col("x"))]);
        (
            frame,
            Box::new(move |lives| {
                let lives = with(lives, &|l| Some((l.start, l.start + ticks)));
                snapshots(
                    &lives,
                    |l| by_key.then_some(l.k),
                    |rows| {
                        let mean =
                            datafusion_common::ScalarValue::Float64(Some(total(rows) as f64 / rows.len() as f64));
                        format!("{}, {}, {mean}", rows.len(), total(rows))
                    },
                )
            }),
        )
    });
    law("windows", |rng| {
        let period = rng.between(1, 8);
        let size = period * rng.between(1, 4);
        let by_key = rng.chance(50);
        let keys = if by_key { vec![col("k")] } else { vec![] };
        let frame = input("left").hopping(size, period, 0).group_by(keys).agg([count_rows(), sum(col("x"))]);
        (
            frame,
            Box::new(move |lives| {
                let lives = with(lives, &|l| Some((ceil(l.start, period, 0), ceil(l.start, period, 0) + size)));
                snapshots(&lives, |l| by_key.then_some(l.k), |rows| format!("{}, {}", rows.len(), total(rows)))
            }),
        )
    });
}

#[test]
fn frames_unite() {
    law_of_two("union", |_| {
        let frame = input("left").union(&input("right"));
        (frame, Box::new(|left, right| left.iter().chain(right).map(|l| out(l.start, l.end, l)).collect()))
    });
}

fn pairs(left: &[Life], right: &[Life], keyed: bool) -> Vec<Out> {
    let mut all = Vec::new();
    for l in left {
        for r in right.iter().filter(|r| !keyed || r.k == l.k) {
            let (start, end) = (l.start.max(r.start), l.end.min(r.end));
            if start < end {
                all.push((start, end, format!("{}, {}, {}, {}", l.k, l.x, r.k, r.x)));
            }
        }
    }
    all
}

/// The maximal stretches of a lifetime in which none of the others is in force.
fn alone(l: &Life, others: &[&Life]) -> Vec<(i64, i64)> {
    let mut cuts: Vec<i64> = others.iter().flat_map(|r| [r.start, r.end]).chain([l.start, l.end]).collect();
    cuts.retain(|cut| l.start <= *cut && *cut <= l.end);
    cuts.sort();
    cuts.dedup();
    let mut stretches: Vec<(i64, i64)> = Vec::new();
    for piece in cuts.windows(2) {
        let is_hidden = others.iter().any(|r| r.start <= piece[0] && piece[0] < r.end);
        match stretches.last_mut() {
            _ if is_hidden => {}
            Some(last) if last.1 == piece[0] => last.1 = piece[1],
            _ => stretches.push((piece[0], piece[1])),
        }
    }
    stretches
}

#[test]
fn frames_join() {
    law_of_two("join on keys", |_| {
        let frame = input("left").join(&input("right"), [col("k")], [col("k")], How::Inner);
        (frame, Box::new(|left, right| pairs(left, right, true)))
    });
    law_of_two("join without keys", |_| {
        let frame = input("left").join(&input("right"), [], [], How::Inner);
        (frame, Box::new(|left, right| pairs(left, right, false)))
    });
}

#[test]
fn frames_join_outside() {
    law_of_two("full join", |_| {
        let frame = input("left").join(&input("right"), [col("k")], [col("k")], How::Full);
        (
            frame,
            Box::new(|left, right| {
                let mut all = pairs(left, right, true);
                for l in left {
                    let others: Vec<&Life> = right.iter().filter(|r| r.k == l.k).collect();
                    all.extend(
                        alone(l, &others).into_iter().map(|(s, e)| (s, e, format!("{}, {}, NULL, NULL", l.k, l.x))),
                    );
                }
                for r in right {
                    let others: Vec<&Life> = left.iter().filter(|l| r.k == l.k).collect();
                    all.extend(
                        alone(r, &others).into_iter().map(|(s, e)| (s, e, format!("NULL, NULL, {}, {}", r.k, r.x))),
                    );
                }
                all
            }),
        )
    });
}

/// A row of an as-of join, with the time of its pair, or of its giving up.
fn as_of(l: &Life, right: &[Life], strategy: Strategy, is_strict: bool, tolerance: Option<i64>) -> (i64, Vec<Life>) {
    let near = |r: &&Life| {
        let distance = r.start - l.start;
        let is_side = match strategy {
            Strategy::Backward => distance <= 0,
            Strategy::Forward => distance >= 0,
            Strategy::Nearest => true,
        };
        r.k == l.k && is_side && (distance != 0 || !is_strict) && tolerance.is_none_or(|ticks| distance.abs() <= ticks)
    };
    let near: Vec<&Life> = right.iter().filter(near).collect();
    // (Of two as far away the later one.)
    let best = near.iter().map(|r| ((r.start - l.start).abs(), -r.start)).min().map(|(_, start)| -start);
    let at = match (best, strategy) {
        (_, Strategy::Backward) => l.start,
        (Some(start), _) => l.start + (start - l.start).abs(),
        (None, _) => tolerance.map_or(FOREVER - 1, |ticks| l.start + ticks),
    };
    (at, near.into_iter().filter(|r| Some(r.start) == best).copied().collect())
}

#[test]
fn frames_join_as_of() {
    for strategy in [Strategy::Backward, Strategy::Forward, Strategy::Nearest] {
        for is_left in [false, true] {
            law_of_two(&format!("as-of join {strategy:?}, left {is_left}"), |rng| {
                let is_strict = rng.chance(40);
                let tolerance = rng.chance(60).then(|| rng.between(0, 10));
                let mut asof = AsofOptions::strategy(strategy);
                asof = if is_strict { asof.strictly() } else { asof };
                asof = tolerance.map_or(asof, |ticks| asof.tolerance(ticks));
                asof = if is_left { asof.left() } else { asof };
                let frame = input("left").join_asof(&input("right"), [col("k")], [col("k")], asof);
                (
                    frame,
                    Box::new(move |left, right| {
                        let mut all = Vec::new();
                        for l in left {
                            let (at, found) = as_of(l, right, strategy, is_strict, tolerance);
                            let mut put_out = |rest: String| {
                                let end = if at == FOREVER - 1 { FOREVER } else { at + 1 };
                                all.push((at, end, format!("{}, {}, {rest}", l.k, l.x)));
                            };
                            found.iter().for_each(|r| put_out(format!("{}, {}", r.k, r.x)));
                            if is_left && found.is_empty() {
                                put_out("NULL, NULL".to_owned());
                            }
                        }
                        all
                    }),
                )
            });
        }
    }
}

#[test]
fn rows_are_hidden() {
    law_of_two("where not exists", |rng| {
        let keyed = rng.chance(70);
        let keys = || if keyed { vec![col("k")] } else { vec![] };
        let frame = input("left").where_not_exists(&input("right"), keys(), keys());
        (
            frame,
            Box::new(move |left, right| {
                let mut all = Vec::new();
                for l in left {
                    let others: Vec<&Life> = right.iter().filter(|r| !keyed || r.k == l.k).collect();
                    all.extend(alone(l, &others).into_iter().map(|(start, end)| out(start, end, l)));
                }
                all
            }),
        )
    });
}

#[test]
fn rows_are_hidden_by_some() {
    law_of_two("where not exists, with a condition", |rng| {
        let keyed = rng.chance(70);
        let keys = || if keyed { vec![col("k")] } else { vec![] };
        let is_less = col("x").lt(col("x_right"));
        let frame = input("left").where_not_exists_where(&input("right"), keys(), keys(), is_less);
        (
            frame,
            Box::new(move |left, right| {
                let mut all = Vec::new();
                for l in left {
                    // Equal rows are treated alike: what hides one of them, while that one is in
                    // force, hides all.
                    let equal = left.iter().filter(|other| (other.k, other.x) == (l.k, l.x));
                    let hides = |r: &&Life| (!keyed || r.k == l.k) && l.x < r.x;
                    let hidden: Vec<Life> = equal
                        .flat_map(|other| right.iter().filter(hides).map(move |r| (other, r)))
                        .map(|(other, r)| Life { start: other.start.max(r.start), end: other.end.min(r.end), ..*r })
                        .filter(|pair| pair.start < pair.end)
                        .collect();
                    let hidden: Vec<&Life> = hidden.iter().collect();
                    all.extend(alone(l, &hidden).into_iter().map(|(start, end)| out(start, end, l)));
                }
                all
            }),
        )
    });
}

#[test]
fn a_union_in_groups_matches_keys_by_name() {
    cases("union in groups", 20, |rng| {
        // An aggregate puts the group's key first, the group's own frame has it last.
        let frame = input("left").select([col("x")]).group_apply([(col("x") % lit(2)).alias("odd")], |group| {
            group.select([col("x")]).union(&group.agg([count_rows().alias("x")]))
        });
        hold(rng, &frame, 0, |inputs| {
            let lives: Vec<Life> = inputs[0].iter().map(|life| Life { k: life.x % 2, ..*life }).collect();
            let counts = snapshots(&lives, |life| Some(life.k), |rows| rows.len().to_string());
            let rows = lives.iter().map(|life| (life.start, life.end, format!("{}, {}", life.k, life.x)));
            rows.chain(counts).collect()
        });
    });
}

#[test]
fn a_start_in_the_past_is_an_error_of_its_row() {
    let mut session = Session::new(Options::default()).expect("a session starts");
    for (start, message) in [
        (start() - col("x"), "an event that begins at 13 was given an earlier start, 8"),
        (when_negative(), "an event that begins at 13 was given no start, but NULL"),
    ] {
        let frame = input("in").alter_lifetime(start, None);
        let mut run = session.start(&frame).expect("the frame is right");
        let row = |x: i64| [1i64.into(), x.into()];
        run.push("in", vec![Event::interval(13, 17, row(5)), Event::interval(14, 16, row(0))]).expect("rows fit");
        run.finish().expect("the run ends");
        let error = run.lifetimes().expect_err("a row is in error");
        assert!(error.to_string().contains(message), "{error}");
        let rest: Vec<String> = run.lifetimes().expect("the rest").iter().map(ToString::to_string).collect();
        assert_eq!(rest, ["[14, 16) 1, 0"]);
    }
    let refused = session.start(&input("in").alter_lifetime(end(), None)).err().expect("ends are not known");
    assert!(refused.render("").contains("point_at_end"), "{refused}");
}

/// NULL for positive `x`.
fn when_negative() -> datafusion_expr::Expr {
    let is_negative = col("x").lt_eq(lit(0));
    datafusion_expr::when(is_negative, start()).end().expect("an expression")
}

/// More than operators take on in one turn: each asks for another, with and without worker threads.
#[test]
fn much_comes_out_in_several_turns() {
    const TICKS: i64 = 700_000;
    let frame = input("in").chop(1, 0).alter_duration(3).agg([count_rows()]);
    for workers in [0, 2] {
        let mut session = Session::new(Options { workers, ..Options::default() }).expect("a session starts");
        let mut run = session.start(&frame).expect("the frame is right");
        run.push("in", vec![Event::interval(0, TICKS, [1i64.into(), 1i64.into()])]).expect("the row fits");
        run.finish().expect("the run ends");
        // (A piece that is cut by the end of a turn comes as two edges, which are paired here.)
        let pieces = run.lifetimes().expect("no row is in error").len();
        // (The events of the last tick last two more.)
        assert_eq!((run.frontier(), pieces as i64), (FOREVER, TICKS + 2), "{workers} workers");
    }
}
