//! Greedy grouping of the requests of one branch, once a cycle.
//!
//! ```text
//!     each cycle: take the window's requests in
//!     for each request that would expire before the next cycle ends, in order of arrival, if still waiting:
//!         its companions: the cheapest others that wait, by the cost of taking them along
//!         the share: the prefix of them with the least average cost
//! ```
//!
//! Cost: every expiring request against all that wait. [`Grouping::distances`] counts these
//! comparisons.

use super::{CYCLE_SECONDS, Request, SAVINGS_MIN, SHARE_MAX, Share};

/// The requests that wait in one branch.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    waiting: Vec<Request>,
    distances: u64,
}

impl Grouping {
    /// Takes in the requests of the cycle that ends at `end`, in order of arrival, and groups what
    /// expires.
    pub fn cycle(&mut self, end: i64, arrived: &[Request]) -> Vec<Share> {
        self.waiting.extend_from_slice(arrived);
        let expires = |request: &Request| request.expires() < end + CYCLE_SECONDS;
        let expiring: Vec<i64> = self.waiting.iter().filter(|request| expires(request)).map(|r| r.id).collect();
        let mut shares = Vec::new();
        for id in expiring {
            // (One that was taken along travels already.)
            if let Ok(place) = self.waiting.binary_search_by_key(&id, |request| request.id) {
                let request = self.waiting.remove(place);
                shares.push(self.share(end, &request));
            }
        }
        shares
    }

    /// Comparisons of two requests so far.
    pub fn distances(&self) -> u64 {
        self.distances
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The share that a request leads to; its companions wait no longer.
    fn share(&mut self, time: i64, request: &Request) -> Share {
        self.distances += self.waiting.len() as u64;
        let companions = self.cheapest(request);
        let (mut cost, mut best, mut chosen) = (1.0, 1.0, 0);
        for (taken, (extra, _)) in companions.iter().enumerate() {
            cost += extra;
            let average = cost / (taken + 2) as f64;
            if average < best {
                (best, chosen) = (average, taken + 1);
            }
        }
        if chosen == 0 || 1.0 - best < SAVINGS_MIN {
            return Share { time, requests: vec![request.id], savings: 0.0 };
        }
        let taken: Vec<i64> = companions[..chosen].iter().map(|(_, id)| *id).collect();
        self.waiting.retain(|other| !taken.contains(&other.id));
        let requests = [request.id].into_iter().chain(taken).collect();
        Share { time, requests, savings: 1.0 - best }
    }

    /// The cheapest others, at most one less than a share holds; of equal ones the earlier.
    fn cheapest(&self, request: &Request) -> Vec<(f64, i64)> {
        let mut cheapest: Vec<(f64, i64)> = Vec::with_capacity(SHARE_MAX);
        for other in &self.waiting {
            let extra = request.extra_cost(other);
            let place = cheapest.partition_point(|(known, _)| *known <= extra);
            if place < SHARE_MAX - 1 {
                cheapest.truncate(SHARE_MAX - 2);
                cheapest.insert(place, (extra, other.id));
            }
        }
        cheapest
    }
}

#[cfg(test)]
mod tests {
    use super::super::Point;
    use super::*;

    fn request(id: i64, time: i64, from: f64, to: f64) -> Request {
        Request { id, time, origin: Point { x: from, y: 0.0 }, destination: Point { x: to, y: 0.0 } }
    }

    #[test]
    fn requests_are_grouped_when_they_expire_with_the_cheapest_others() {
        let mut grouping = Grouping::default();
        let arrived = [
            request(1, 10, 0.0, 10_000.0),
            request(2, 20, 100.0, 10_000.0),
            request(3, 30, 0.0, 9_900.0),
            request(4, 40, 50_000.0, 60_000.0),
            request(5, 50, 0.0, 10_100.0),
            request(6, 55, 0.0, 10_000.0),
        ];
        assert_eq!(grouping.cycle(60, &arrived), []);
        for end in (120..=540).step_by(60) {
            assert_eq!(grouping.cycle(end, &[]), [], "nothing expires before {end} + 60");
        }
        let shares = grouping.cycle(600, &[]);
        // (1 expires at 610. Cheapest for it: 6 for nothing, then 2, 3 and 5 for a hundredth each;
        // of equal ones the earlier.)
        assert_eq!(shares[0].requests, [1, 6, 2, 3]);
        assert!((shares[0].savings - (1.0 - 1.02 / 4.0)).abs() < 1e-9, "{shares:?}");
        assert_eq!((&shares[1].requests, shares[1].savings), (&vec![4], 0.0));
        assert_eq!((&shares[2].requests, shares[2].savings), (&vec![5], 0.0));
        assert_eq!((shares.len(), grouping.waiting(), grouping.distances()), (3, 0, 5 + 1));
    }

    #[test]
    fn a_share_that_saves_less_than_a_fifth_is_not_made() {
        let mut grouping = Grouping::default();
        let arrived = [request(1, 0, 0.0, 10_000.0), request(2, 0, 3_500.0, 12_600.0)];
        grouping.cycle(60, &arrived);
        let shares: Vec<Share> = (2..=11).flat_map(|cycle| grouping.cycle(60 * cycle, &[])).collect();
        assert_eq!(shares.len(), 2, "an average cost of 0.805 is too much: {shares:?}");
    }
}
