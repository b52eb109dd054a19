//! Grouping of trips: T1 to T4.

use std::collections::{HashMap, HashSet};

use anabranch_linear_road::trips::router::{Change, Router, Rule};
use anabranch_linear_road::trips::{Request, SAVINGS_MIN, SHARE_MAX, Share, mean_savings};
use anabranch_linear_road::trips::{alone, program, requests};
use anabranch_shards::Layout;

/// Shares in order of time and leader, distances of each branch, and requests of each branch.
fn grouped(requests: &[Request], router: Router, branches: usize) -> (Vec<Share>, Vec<u64>, Vec<usize>) {
    let found = alone::grouped(requests, router, branches);
    (found.shares, found.distances, found.sizes)
}

fn sample() -> Vec<Request> {
    requests::day(77, 16)
}

fn router(rule: Rule, change: Change, branches: usize) -> Router {
    Router::new(rule, change, branches, &sample())
}

#[test]
fn t1_shares_partition_the_requests() {
    let day = requests::day(1, 16);
    let (shares, ..) = grouped(&day, router(Rule::Kd, Change::Adaptive, 16), 16);
    let by_id: HashMap<i64, &Request> = day.iter().map(|request| (request.id, request)).collect();
    let mut seen = HashSet::new();
    for share in &shares {
        assert!((1..=SHARE_MAX).contains(&share.requests.len()), "{share:?}");
        assert!(share.requests.len() == 1 || share.savings >= SAVINGS_MIN, "{share:?}");
        for id in &share.requests {
            assert!(seen.insert(*id), "{id} travels twice");
            let request = by_id[id];
            assert!((request.time..=request.expires()).contains(&share.time), "{request:?} {share:?}");
        }
    }
    assert_eq!(seen.len(), day.len());
}

#[test]
fn t2_one_branch_is_serial_and_shards_change_nothing() {
    let day: Vec<Request> = requests::day(2, 64);
    let (serial, ..) = grouped(&day, router(Rule::RoundRobin, Change::Static, 1), 1);
    let sets = |shares: &[Share]| -> Vec<(i64, Vec<i64>)> {
        let mut sets: Vec<(i64, Vec<i64>)> = shares.iter().map(|share| (share.time, share.requests.clone())).collect();
        sets.iter_mut().for_each(|(_, ids)| ids.sort_unstable());
        sets.sort_unstable();
        sets
    };
    for rule in [Rule::RoundRobin, Rule::Quad, Rule::Kd] {
        let (alone, ..) = grouped(&day, router(rule, Change::Adaptive, 1), 1);
        assert!(alone == serial, "one branch of {rule:?}");
    }
    for (rule, change) in
        [(Rule::Kd, Change::Adaptive), (Rule::Quad, Change::Static), (Rule::RoundRobin, Change::Static)]
    {
        let (expected, ..) = grouped(&day, router(rule, change, 8), 8);
        for shards in [1, 2, 4] {
            let found = program::shares(&day, router(rule, change, 8), 8, Layout::flat(shards)).unwrap();
            assert!(sets(&found) == sets(&expected), "{rule:?} {change:?} in {shards} shards");
        }
    }
}

#[test]
fn t3_routers_keep_their_relations() {
    for (part, least) in [(16, 0.85), (4, 0.92), (2, 0.95)] {
        let day = requests::day(3, part);
        let (serial, distances, _) = grouped(&day, router(Rule::RoundRobin, Change::Static, 1), 1);
        let serial = mean_savings(&serial);
        let mut found = Vec::new();
        for (name, rule, change) in [
            ("AKD", Rule::Kd, Change::Adaptive),
            ("SKD", Rule::Kd, Change::Static),
            ("APQ", Rule::Quad, Change::Adaptive),
            ("SPQ", Rule::Quad, Change::Static),
            ("RR", Rule::RoundRobin, Change::Static),
        ] {
            let (shares, costs, sizes) = grouped(&day, router(rule, change, 16), 16);
            let kept = mean_savings(&shares) / serial;
            let largest = *sizes.iter().max().unwrap() as f64 / day.len() as f64 * 16.0;
            found.push((name, kept, largest, costs.iter().sum::<u64>() as f64 / distances[0] as f64));
        }
        println!("1/{part}: serial {serial:.3}; (router, kept, largest branch, distances of serial) {found:.3?}");
        if let Some(published) = [(16, 0.325), (4, 0.445), (2, 0.491)].iter().find(|(known, _)| *known == part) {
            assert!((serial - published.1).abs() < 0.02, "serial at 1/{part}: {serial} of {}", published.1);
        }
        for (name, kept, ..) in &found[..4] {
            assert!(*kept >= least, "{name} at 1/{part}: {found:?}");
        }
        assert!(found[4].1 < if part > 2 { 0.6 } else { 0.65 }, "RR at 1/{part}: {found:?}");
        let [akd, skd, apq, spq] = [0, 1, 2, 3].map(|at| found[at]);
        assert!(akd.2 < apq.2, "AKD is evener than APQ: {found:?}");
        assert!(akd.3 < skd.3 && apq.3 < spq.3, "adaptive routers compute less than static ones: {found:?}");
        // (Another day of the city that its cuts are of.)
        assert!(skd.2 < 1.2, "SKD on another day: {found:?}");
    }
    let sample = sample();
    let (_, _, sizes) = grouped(&sample, router(Rule::Kd, Change::Static, 16), 16);
    let largest = *sizes.iter().max().unwrap() as f64 / sample.len() as f64 * 16.0;
    assert!(largest < 1.05, "SKD on its own data: {sizes:?}");
}

#[test]
fn t4_a_change_of_cuts_moves_no_waiting_request() {
    let day = requests::day(4, 32);
    let mut adaptive = router(Rule::Kd, Change::Adaptive, 16);
    let mut fixed = router(Rule::Kd, Change::Static, 16);
    let mut branch_of: HashMap<i64, usize> = HashMap::new();
    let mut differ = 0;
    for request in &day {
        let branch = adaptive.route(request);
        differ += usize::from(branch != fixed.route(request));
        branch_of.insert(request.id, branch);
    }
    assert!(differ > day.len() / 20, "cuts have changed: {differ}");
    // Who travels together was routed to one branch, whatever happened between.
    let (shares, ..) = grouped(&day, router(Rule::Kd, Change::Adaptive, 16), 16);
    for share in &shares {
        let branches: HashSet<usize> = share.requests.iter().map(|id| branch_of[id]).collect();
        assert_eq!(branches.len(), 1, "{share:?}");
    }
}
