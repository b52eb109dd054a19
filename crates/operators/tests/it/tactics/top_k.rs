//! Top-k against sorting everything.

use anabranch_spec::order::SortKey;
use anabranch_spec::top_k::{RankedBy, TopK};
use std::cmp::Ordering;

use anabranch_arrangement::MergeEffort;
use anabranch_operators::ordered::top_k::{TopKSpec, TopKTactic};

use super::*;

fn expected(spec: &TopKSpec, updates: &[Update], at: Time) -> Bag {
    let rest = (0..7).map(|column| (column, ASCENDING));
    let order: Vec<(usize, Direction)> = spec.top.order.iter().map(SortKey::pair).chain(rest).collect();
    let by_order = |left: &Row, right: &Row| {
        order.iter().fold(Ordering::Equal, |so_far, &(column, direction)| {
            so_far.then_with(|| compare_column(left, right, column, direction))
        })
    };
    let are_peers = |left: &Row, right: &Row| {
        let mut keys = spec.top.order.iter().map(SortKey::pair);
        keys.all(|(column, direction)| compare_column(left, right, column, direction).is_eq())
    };
    let mut groups: Vec<(Vec<String>, Vec<Row>)> = Vec::new();
    for (row, count) in contents(updates, at) {
        let cells = text(&columns(std::slice::from_ref(&row)), 0);
        let group: Vec<String> = spec.top.group.iter().map(|&column| cells[column].clone()).collect();
        let at = groups.iter().position(|(other, _)| *other == group).unwrap_or_else(|| {
            groups.push((group, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.extend(std::iter::repeat_n(row, count as usize));
    }
    let mut bag = Bag::new();
    for (_, mut rows) in groups {
        rows.sort_by(by_order);
        let kept = spec.top.offset..spec.top.limit.map_or(usize::MAX, |limit| spec.top.offset + limit);
        let (mut rank, mut dense_rank) = (0, 0);
        for (position, row) in rows.iter().enumerate() {
            if position > 0 && !are_peers(&rows[position - 1], row) {
                (rank, dense_rank) = (position, dense_rank + 1);
            }
            let place = match spec.top.ranked {
                RankedBy::Row => position,
                RankedBy::Rank => rank,
                RankedBy::DenseRank => dense_rank,
            };
            if kept.contains(&place) {
                let mut cells = text(&columns(std::slice::from_ref(row)), 0);
                cells.extend(spec.top.numbered.then(|| (place + 1).to_string()));
                add(&mut bag, cells, 1);
            }
        }
    }
    bag
}

fn check(group: &[usize], order: &[(usize, Direction)], offset: usize, limit: Option<usize>, numbered: bool) {
    let order = order.iter().map(|&(column, direction)| SortKey::new(column, direction)).collect();
    let top = TopK { group: group.to_vec(), order, ranked: RankedBy::Row, offset, limit, numbered };
    check_top(&top);
    for ranked in [RankedBy::Rank, RankedBy::DenseRank] {
        check_top(&TopK { ranked, offset: 0, ..top.clone() });
    }
}

fn check_top(top: &TopK) {
    check_where_nothing_goes(top);
    with_seeds(|random| {
        let spec = spec(top, random);
        let updates = updates(random, 100);
        let mut tactic = TopKTactic::new(spec.clone());
        let inputs = [updates];
        let collected = run(&mut tactic, &inputs, random);
        for at in 0..=TIMES {
            assert_eq!(collected.rows_at(at), expected(&spec, &inputs[0], at), "at {at}");
        }
        let full = tactic.size_bytes();
        retract(&mut tactic, &inputs);
        // The run time lets a tactic use spare time after turns in which nothing was complete.
        for turn in 0..10 {
            tactic.advance(TIMES + 30 + turn, &mut Output::default());
            tactic.idle();
        }
        assert_eq!((full > 0, tactic.size_bytes()), (true, 0), "state is given back");
    });
}

fn spec(top: &TopK, random: &mut Random) -> TopKSpec {
    TopKSpec {
        top: top.clone(),
        input_types: types(),
        is_append_only: false,
        effort: random.pick(&[MergeEffort::EAGER, MergeEffort::LAZY, MergeEffort::default()]),
    }
}

/// The same where it is known that no row is taken back.
fn check_where_nothing_goes(top: &TopK) {
    with_seeds(|random| {
        let spec = TopKSpec { is_append_only: true, ..spec(top, random) };
        let mut updates = updates(random, 400);
        updates.iter_mut().for_each(|(_, _, diff)| *diff = diff.abs());
        let mut tactic = TopKTactic::new(spec.clone());
        let inputs = [updates];
        let collected = run(&mut tactic, &inputs, random);
        for at in 0..=TIMES {
            assert_eq!(collected.rows_at(at), expected(&spec, &inputs[0], at), "at {at}");
        }
    });
}

/// Of rows that are never taken back, those stay that are shown.
#[test]
fn rows_behind_the_window_leave() {
    for ranked in [RankedBy::Row, RankedBy::Rank, RankedBy::DenseRank] {
        for (offset, numbered) in [(0, false), (0, true), (2, false), (2, true)] {
            if ranked == RankedBy::Row || offset == 0 {
                rows_leave(ranked, offset, numbered);
            }
        }
    }
}

fn rows_leave(ranked: RankedBy, offset: usize, numbered: bool) {
    // (Many columns, so that few rows are tied.)
    let order = [PRICE, FLOAT, BIG, NAME, KEY, SMALL].map(|column| SortKey::new(column, DESCENDING)).to_vec();
    let top = TopK { group: vec![FLAG], order, ranked, offset, limit: Some(3), numbered };
    let mut random = Random::new(7);
    let effort = MergeEffort::default();
    let mut tactic = TopKTactic::new(TopKSpec { is_append_only: true, effort, ..spec(&top, &mut random) });
    for turn in 0..200 {
        let updates: Vec<Update> = (0..100).map(|_| (random.row(), turn, 1)).collect();
        push_shuffled(&mut tactic, 0, updates, &mut random);
        tactic.advance(turn + 1, &mut Output::default());
    }
    (0..100).for_each(|_| tactic.idle());
    let rows = tactic.state_rows().expect("it tells of its rows");
    assert!(rows < 1_000, "{rows} rows of 20,000 are kept: {top:?}");
}

#[test]
fn the_first_rows_of_all() {
    check(&[], &[(SMALL, DESCENDING)], 0, Some(3), false);
}

#[test]
fn rows_after_an_offset_in_each_group() {
    check(&[KEY], &[(PRICE, ASCENDING), (NAME, DESCENDING)], 2, Some(3), false);
}

#[test]
fn rows_are_numbered_in_each_group() {
    check(&[KEY, FLAG], &[(FLOAT, DESCENDING)], 0, None, true);
}

#[test]
fn numbered_rows_after_an_offset() {
    check(&[NAME], &[(BIG, ASCENDING)], 1, Some(4), true);
}

#[test]
fn a_limit_of_zero_keeps_nothing() {
    check(&[KEY], &[(BIG, ASCENDING)], 0, Some(0), false);
}

#[test]
fn an_offset_alone_drops_the_first_rows() {
    check(&[], &[], 5, None, false);
}
