//! Grouping of trips: requests for journeys are put together in shared ones, by a greedy search
//! whose quality and cost depend on how the requests are split.
//!
//! Law: every request is in exactly one share; a share holds at most [`SHARE_MAX`] requests, all
//! valid when it is made; a share of several saves at least [`SAVINGS_MIN`]. Source: Zeitler's
//! thesis (Uppsala 2011), paper III.
//!
//! Reading order: [`grouping`] (one branch), [`router`] (which branch), [`requests`] (made-up
//! requests), [`program`] (branches of a sharded program), [`alone`] (the same without an engine).

pub mod alone;
pub mod grouping;
pub mod program;
pub mod requests;
pub mod router;

/// Requests in a share, at most.
pub const SHARE_MAX: usize = 4;

/// Part of the cost of single trips that a share of several saves, at least.
pub const SAVINGS_MIN: f64 = 0.2;

/// Seconds that a request waits, at most.
pub(crate) const WAIT_SECONDS: i64 = 600;

/// Seconds between two groupings.
pub(crate) const CYCLE_SECONDS: i64 = 60;

/// A point of the plane, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the east.
    pub x: f64,
    /// To the north.
    pub y: f64,
}

impl Point {
    /// Euclidean distance.
    pub fn distance(self, other: Point) -> f64 {
        ((self.x - other.x).powi(2) + (self.y - other.y).powi(2)).sqrt()
    }
}

/// A request for a journey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Unique, in order of time.
    pub id: i64,
    /// Second of the request.
    pub time: i64,
    /// From here,
    pub origin: Point,
    /// to there.
    pub destination: Point,
}

impl Request {
    /// The last second at which it may be grouped.
    pub fn expires(&self) -> i64 {
        self.time + WAIT_SECONDS
    }

    /// The extra cost of taking `other` along, by the cost of this trip: FEC(i, j). Not symmetric.
    pub fn extra_cost(&self, other: &Request) -> f64 {
        let detour = self.origin.distance(other.origin) + self.destination.distance(other.destination);
        detour / self.origin.distance(self.destination)
    }
}

/// Requests that travel together, the one that led to the share first.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// When it was made.
    pub time: i64,
    /// Numbers of its requests.
    pub requests: Vec<i64>,
    /// Part of the cost that it saves: 0 for a request alone.
    pub savings: f64,
}

/// The mean over requests of what their share saves.
pub fn mean_savings<'a>(shares: impl IntoIterator<Item = &'a Share>) -> f64 {
    let (mut saved, mut requests) = (0.0, 0.0);
    for share in shares {
        saved += share.savings * share.requests.len() as f64;
        requests += share.requests.len() as f64;
    }
    if requests == 0.0 { 0.0 } else { saved / requests }
}
