//! Trips grouped on the caller's thread, branch after branch, without an engine: what the sharded
//! program is held against, and whose distances are counted.
//!
//! Law: the shares are those of the program with the same router and as many branches. Cost: in
//! each cycle, the square of the requests that wait in a branch. Source: as for [trips](super).

use super::grouping::Grouping;
use super::router::Router;
use super::{CYCLE_SECONDS, Request, Share};

/// What was grouped.
#[derive(Clone, Debug, Default)]
pub struct GroupedTrips {
    /// In order of time and of the request that is served first.
    pub shares: Vec<Share>,
    /// How many distances each branch has computed.
    pub distances: Vec<u64>,
    /// Requests that each branch was given.
    pub sizes: Vec<usize>,
}

impl GroupedTrips {
    /// The requests of the greatest branch, over the mean of all; 0 without requests.
    pub fn largest(&self) -> f64 {
        let (most, all) = (self.sizes.iter().max().copied().unwrap_or(0), self.sizes.iter().sum::<usize>());
        most as f64 * self.sizes.len() as f64 / all.max(1) as f64
    }
}

/// Groups requests, which are in order of time, in so many branches.
///
/// # Panics
/// If the router names a branch that is not there.
pub fn grouped(requests: &[Request], mut router: Router, branches: usize) -> GroupedTrips {
    let mut groups = vec![(Vec::new(), Grouping::default()); branches];
    let mut found = GroupedTrips { sizes: vec![0; branches], ..GroupedTrips::default() };
    let last = requests.last().map_or(0, |request| request.expires() + 2 * CYCLE_SECONDS);
    let mut next = requests.iter().peekable();
    for end in (CYCLE_SECONDS..=last).step_by(CYCLE_SECONDS as usize) {
        while let Some(request) = next.next_if(|request| request.time < end) {
            let branch = router.route(request);
            found.sizes[branch] += 1;
            groups[branch].0.push(*request);
        }
        for (arrived, grouping) in &mut groups {
            found.shares.extend(grouping.cycle(end, &std::mem::take(arrived)));
        }
    }
    found.shares.sort_by_key(|share| (share.time, share.requests[0]));
    found.distances = groups.iter().map(|(_, grouping)| grouping.distances()).collect();
    found
}
