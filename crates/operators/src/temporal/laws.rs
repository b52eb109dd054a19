//! Random streams of events through every verb that remembers, against models that say for each
//! event what becomes of it.

use anabranch_batch::order::Nulls;
use anabranch_batch::{Columns, Time};
use anabranch_spec::pattern::{Overlap, Pattern, Simultaneous, Takes};
use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::Int64Type;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::detect::{Automaton, Detect, DetectSpec, Element};
use super::testing::*;
use super::ticks::{add, ceil, floor};
use super::{Hold, absent, chop, clip, clip_duration, extend, join, point_at_end, session, stitch};
use crate::expression::Expression;
use anabranch_flow::tactic::{Output, Timed};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n) as i64
    }

    /// Events with few values and times, so that much happens at once; some never end.
    fn events(&mut self, n: usize, values: u64) -> Vec<Event> {
        let mut event = || {
            let start = self.below(60) - 10;
            let end = if self.below(8) == 0 { END } else { start + 1 + self.below(25) };
            (start, end, self.below(values))
        };
        (0..n).map(|_| event()).collect()
    }
}

fn rounds() -> u64 {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

/// Runs `check` on many random streams; a failure names its seed.
fn for_random(values: u64, mut check: impl FnMut(&[Event], &mut Random)) {
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + rounds() {
        println!("SEED={seed}");
        let mut random = Random(seed);
        let n = random.below(30) as usize;
        let events = random.events(n, values);
        check(&events, &mut random);
    }
}

/// What becomes of each event by itself.
fn each(events: &[Event], map: impl Fn(Event) -> Vec<Event>) -> Vec<Event> {
    events.iter().flat_map(|&event| map(event)).collect()
}

#[test]
fn shortened_events_end_earlier() {
    for_random(3, |events, random| {
        let ticks = random.below(20);
        let expected = each(events, |(start, end, value)| match end {
            END => vec![(start, END, value)],
            _ if end - ticks > start => vec![(start, end - ticks, value)],
            _ => vec![],
        });
        let hold = extend::Shorten::hold(ticks);
        check_held(hold, || extend::Shorten::new(ticks, &types()), events, &expected);
    });
}

#[test]
fn lengthened_events_and_ends_need_no_state() {
    for_random(3, |events, random| {
        let ticks = random.below(20);
        let longer = each(events, |(start, end, value)| vec![(start, add(end, ticks), value)]);
        let points = each(events, |(_, end, value)| if end == END { vec![] } else { vec![(end, end + 1, value)] });
        for input in [events.to_vec(), as_edges(events)] {
            let result = applied(|batch, out| extend::lengthen(batch, ticks, out), super::testing::events(&input));
            assert_eq!(intervals(&result), sorted(longer.clone()));
            let result = applied(point_at_end::apply, super::testing::events(&input));
            assert_eq!(sorted(result), sorted(points.clone()));
        }
    });
}

#[test]
fn clipped_events_are_no_longer_than_the_limit() {
    for_random(3, |events, random| {
        let limit = 1 + random.below(20);
        let expected = each(events, |(start, end, value)| vec![(start, end.min(start + limit), value)]);
        check(|| clip_duration::ClipDuration::new(limit, &types()), events, &expected);
    });
}

#[test]
fn chopped_events_are_cut_at_every_boundary() {
    for_random(3, |events, random| {
        let (period, offset) = (1 + random.below(15), random.below(40) - 20);
        let events: Vec<Event> = events.iter().copied().filter(|event| event.1 < END).collect();
        let expected = each(&events, |(start, end, value)| {
            let mut cuts = vec![start];
            while let Some(cut) = cuts.last().map(|last| ceil(last + 1, period, offset)).filter(|cut| *cut < end) {
                cuts.push(cut);
            }
            let ends = cuts[1..].iter().copied().chain([end]);
            cuts.iter().zip(ends).map(|(&start, end)| (start, end, value)).collect()
        });
        check(|| chop::Chop::new(period, offset, &types()), &events, &expected);
    });
}

#[test]
fn stitched_events_have_no_neighbours() {
    for_random(2, |events, _| {
        let mut expected = events.to_vec();
        // The longest of those that end where another starts goes on with it, time by time.
        for time in -10..100 {
            loop {
                let ending = expected.iter().enumerate().filter(|(_, event)| event.1 == time);
                let starting: Vec<(usize, Event)> =
                    expected.iter().copied().enumerate().filter(|(_, event)| event.0 == time).collect();
                let pair = ending
                    .filter_map(|(at, event)| Some((event.0, at, starting.iter().find(|next| next.1.2 == event.2)?.0)))
                    .min();
                let Some((start, at, next)) = pair else { break };
                expected[at] = (start, expected[next].1, expected[at].2);
                expected.swap_remove(next);
            }
        }
        // Which of two events goes on is one of those that make the multiset of bounds; lengths may
        // be told apart only by it.
        let bounds = |events: &[Event]| {
            let starts = sorted(events.iter().map(|event| (event.0, 0, event.2)).collect());
            let ends = sorted(events.iter().map(|event| (event.1, 0, event.2)).collect());
            (starts, ends)
        };
        let result = intervals(&run(stitch::Stitch::new(&types()), Hold::Same, &[events], &[7, 30, END], false));
        assert_eq!(bounds(&result), bounds(&expected));
        check(|| stitch::Stitch::new(&types()), events, &result);
    });
}

#[test]
fn events_last_until_their_session_ends() {
    for_random(3, |events, random| {
        let timeout = 1 + random.below(12);
        let maximum = (random.below(2) == 0).then(|| 1 + random.below(30));
        let mut expected = Vec::new();
        for value in 0..3 {
            let mut times: Vec<Time> = events.iter().filter(|event| event.2 == value).map(|event| event.0).collect();
            times.sort_unstable();
            expected.extend(sessions(&times, timeout, maximum).into_iter().map(|(start, end)| (start, end, value)));
        }
        check(|| session::Session::new(vec![0], &types(), timeout, maximum), events, &expected);
    });
}

/// The lifetimes of events at these times.
fn sessions(times: &[Time], timeout: i64, maximum: Option<i64>) -> Vec<(Time, Time)> {
    let mut result = Vec::new();
    let mut at = 0;
    while at < times.len() {
        let first = times[at];
        let after_cut = at > 0 && first - times[at - 1] < timeout;
        let latest = maximum.map_or(END, |m| {
            let base = floor(first, m, 0);
            if after_cut || base == first { base + m } else { base + 2 * m }
        });
        let mut to = at + 1;
        while to < times.len() && times[to] - times[to - 1] < timeout && times[to] < latest {
            to += 1;
        }
        let end = (times[to - 1] + timeout).min(latest);
        result.extend(times[at..to].iter().map(|&time| (time, end)));
        at = to;
    }
    result
}

#[test]
fn the_first_later_event_clips() {
    for_random(3, |left, random| {
        let right = random.events(10, 3);
        for key in [vec![], vec![0]] {
            let expected = each(left, |(start, end, value)| {
                let clips = right.iter().filter(|other| key.is_empty() || other.2 == value);
                let first = clips.map(|other| other.0).filter(|time| *time > start).min().unwrap_or(END);
                vec![(start, end.min(first), value)]
            });
            check_inputs(
                Hold::Same,
                || clip::Clip::new(key.clone(), &types(), key.clone()),
                &[left, &right],
                &expected,
            );
        }
    });
}

/// Both streams as they are, and with events of one duration each, which end in the order in which
/// they come.
fn also_of_one_duration(left: &[Event], right: &[Event], random: &mut Random) -> [[Vec<Event>; 2]; 2] {
    let (ticks, others) = (1 + random.below(12), 1 + random.below(12));
    let last = |events: &[Event], ticks| each(events, |(start, _, value)| vec![(start, start + ticks, value)]);
    [[left.to_vec(), right.to_vec()], [last(left, ticks), last(right, others)]]
}

#[test]
fn pairs_are_in_force_while_both_events_are() {
    for_random(3, |left, random| {
        let right = random.events(20, 3);
        for [left, right] in also_of_one_duration(left, &right, random) {
            for key in [vec![], vec![0]] {
                let expected = each(&left, |(start, end, value)| {
                    let others = right.iter().filter(|other| key.is_empty() || other.2 == value);
                    let pairs = others.map(|other| (start.max(other.0), end.min(other.1), value));
                    pairs.filter(|pair| pair.0 < pair.1).collect()
                });
                let make = || join::Join::new(key.clone(), key.clone(), &types()[..key.len()]);
                check_inputs(Hold::Same, make, &[&left, &right], &expected);
            }
        }
    });
}

#[test]
fn events_are_shown_while_nothing_hides_them() {
    for_random(3, |left, random| {
        let right = random.events(10, 3);
        for [left, right] in also_of_one_duration(left, &right, random) {
            for key in [vec![], vec![0]] {
                let expected = each(&left, |(start, end, value)| {
                    let others = right.iter().filter(|other| key.is_empty() || other.2 == value);
                    let pieces = uncovered((start, end), others.map(|other| (other.0, other.1)).collect());
                    pieces.into_iter().map(|(start, end)| (start, end, value)).collect()
                });
                let make = || absent::Absent::new(key.clone(), key.clone(), &types()[..key.len()], Nulls::Differ);
                check_inputs(Hold::Same, make, &[&left, &right], &expected);
            }
        }
    });
}

/// The maximal pieces of a lifetime that none of the others has a part in.
fn uncovered((start, end): (Time, Time), mut others: Vec<(Time, Time)>) -> Vec<(Time, Time)> {
    others.sort_unstable();
    let mut pieces = Vec::new();
    let mut since = start;
    for (from, to) in others {
        if since < from.min(end) {
            pieces.push((since, from.min(end)));
        }
        since = since.max(to);
    }
    if since < end {
        pieces.push((since, end));
    }
    pieces
}

#[test]
fn times_at_the_extremes_join_and_hide() {
    let (first, last) = (Time::MIN + 1, END - 1);
    let left = [(first, last, 1), (last - 1, last, 2), (first, first + 1, 3), (first, END, 4)];
    let right =
        [(last - 1, last, 1), (first, END, 2), (first + 1, last, 3), (first, first + 2, 4), (last - 1, last, 4)];
    for stops in [&[END][..], &[first + 1, last - 1, last, END]] {
        let joined = run(join::Join::new(vec![0], vec![0], &types()), Hold::Same, &[&left, &right], stops, false);
        let expected = [(last - 1, last, 1), (last - 1, last, 2), (first, first + 2, 4), (last - 1, last, 4)];
        assert_eq!(intervals(&joined), sorted(expected.to_vec()));
        let absent = absent::Absent::new(vec![0], vec![0], &types(), Nulls::Differ);
        let shown = run(absent, Hold::Same, &[&left, &right], stops, false);
        let expected = [(first, last - 1, 1), (first, first + 1, 3), (first + 2, last - 1, 4), (last, END, 4)];
        assert_eq!(intervals(&shown), sorted(expected.to_vec()));
    }
}

/// Whether the value is this one.
struct Is(i64);

impl Expression for Is {
    fn evaluate(&self, columns: &Columns, _rows: usize) -> Result<ArrayRef, String> {
        let values = columns[0].as_primitive::<Int64Type>().values();
        Ok(Arc::new(values.iter().map(|value| Some(value % 2 == self.0)).collect::<BooleanArray>()))
    }
}

#[test]
fn matches_are_those_of_the_expression() {
    for_random(4, |events, random| {
        let duration = 1 + random.below(30);
        let element = |n: i64| Element {
            takes: Takes::Event,
            condition: Some(Arc::new(Is(n))),
            reads_register: false,
            register: None,
        };
        // a+ b{1,2} a?: each sequence of values can be read in one way only.
        let pattern = Pattern::Sequence(vec![
            Pattern::Element(0).plus(),
            Pattern::Repeat(Box::new(Pattern::Element(1)), 1, Some(2)),
            Pattern::Element(0).optional(),
        ]);
        let is_match = |values: &[i64]| {
            let rest = values.iter().skip_while(|value| **value == 0).copied().collect::<Vec<_>>();
            let ones = rest.iter().take_while(|value| **value == 1).count();
            rest.len() < values.len() && (1..=2).contains(&ones) && matches!(rest[ones..], [] | [0])
        };
        for group in [vec![], vec![0]] {
            let spec = DetectSpec {
                automaton: Automaton::new(&pattern),
                elements: vec![element(0), element(1)],
                group: group.clone(),
                input_types: types().to_vec(),
                register: vec![],
                duration,
                overlap: Overlap::Allowed,
                simultaneous: Simultaneous::Instant,
                instances_max: 1000,
            };
            // A group of its own value never sees both values: so groups are tried on one value at
            // a time.
            let mut expected = Vec::new();
            let keys: Vec<Option<i64>> = if group.is_empty() { vec![None] } else { (0..4).map(Some).collect() };
            for key in keys {
                let mut instants: BTreeMap<Time, Vec<i64>> = BTreeMap::new();
                for event in events.iter().filter(|event| key.is_none_or(|key| event.2 == key)) {
                    instants.entry(event.0).or_default().push(event.2 % 2);
                }
                let instants: Vec<(Time, Vec<i64>)> = instants.into_iter().collect();
                for from in 0..instants.len() {
                    for to in from..instants.len() {
                        let part = &instants[from..=to];
                        let values: Option<Vec<i64>> =
                            part.iter().map(|(_, values)| (values.len() == 1).then(|| values[0])).collect();
                        let (first, last) = (part[0].0, part[part.len() - 1].0);
                        if values.is_some_and(|values| is_match(&values)) && last < first + duration {
                            expected.push((last, first + duration, key.unwrap_or(0)));
                        }
                    }
                }
            }
            expected.sort_unstable();
            for stops in [&[END][..], &[0, 7, 13, 14, 40, END]] {
                for reverse in [false, true] {
                    let out = run(Detect::new(spec.clone()), Hold::Same, &[events], stops, reverse);
                    assert_eq!(sorted(out), expected, "{group:?}");
                }
            }
        }
    });
}

fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_unstable();
    events
}

/// Runs a long stream of start edges, end edges ten ticks later, and intervals through a verb: its
/// state must not grow.
fn check_bounded(tactic: impl Timed) {
    check_bounded_inputs(tactic, 1);
}

/// As [`check_bounded`], through each of the first `n_inputs` inputs; their values differ at a
/// time, and are the same some ticks apart.
fn check_bounded_inputs(mut tactic: impl Timed, n_inputs: usize) {
    let mut greatest = [0; 2];
    for time in 0..40_000 {
        for input in 0..n_inputs {
            let value = time + 3 * input as i64;
            let rows = [
                (time, END, value % 1000),
                (time, time - 10, (value - 10) % 1000),
                (time, time + 1 + time % 30, value),
            ];
            let from = if time < 10 { 2 } else { 0 };
            tactic.push(input, super::testing::events(&rows[from..]));
            tactic.push(input, super::testing::events(&rows[..1]).slice(0, usize::from(time < 10)));
        }
        tactic.advance(time + 1, &mut Output::default());
        let half = &mut greatest[usize::from(time >= 10_000)];
        *half = (*half).max(tactic.size_bytes());
    }
    assert!(greatest[1] <= 2 * greatest[0], "{greatest:?} bytes");
    tactic.advance(END, &mut Output::default());
}

#[test]
fn state_does_not_grow_with_time() {
    check_bounded(extend::Shorten::new(15, &types()));
    check_bounded(clip_duration::ClipDuration::new(5, &types()));
    check_bounded(clip_duration::ClipDuration::new(50, &types()));
    check_bounded(chop::Chop::new(7, 0, &types()));
    check_bounded(stitch::Stitch::new(&types()));
    check_bounded(session::Session::new(vec![0], &types(), 5, Some(100)));
    check_bounded(session::Session::new(vec![], &[], 1, None));
    check_bounded(clip::Clip::new(vec![0], &types(), vec![0]));
    check_bounded_inputs(join::Join::new(vec![0], vec![0], &types()), 2);
    check_bounded_inputs(join::Join::new(vec![], vec![], &[]), 2);
    check_bounded_inputs(absent::Absent::new(vec![0], vec![0], &types(), Nulls::Differ), 2);
    check_bounded_inputs(absent::Absent::new(vec![], vec![], &[], Nulls::Differ), 2);
    let element = Element { takes: Takes::Event, condition: None, reads_register: false, register: None };
    check_bounded(Detect::new(DetectSpec {
        automaton: Automaton::new(&Pattern::Element(0).plus()),
        elements: vec![element],
        group: vec![0],
        input_types: types().to_vec(),
        register: vec![],
        duration: 20,
        overlap: Overlap::Allowed,
        simultaneous: Simultaneous::Instant,
        instances_max: 1000,
    }));
}
