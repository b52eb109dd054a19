//! Which branch a request goes to: requests are points of four dimensions, and near ones belong
//! together.
//!
//! | router | rule |
//! |---|---|
//! | [`Rule::RoundRobin`] | in turn: even branches, worst savings |
//! | [`Rule::Quad`] | one cut a dimension, at the median of all (point-quad) |
//! | [`Rule::Kd`] | dimension after dimension, each part cut at its own median: sixteen equal parts |
//!
//! A static router knows the medians of a sample. An adaptive one takes those of the last ten
//! minutes, every ten minutes; only new requests follow, and those that wait stay where they are.

use super::Request;

/// Regions of the static and adaptive rules.
const REGIONS: usize = 16;

/// Seconds between two adaptions, and of the requests they look at.
pub(crate) const ADAPTED_EVERY_SECONDS: i64 = 600;

/// How requests are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// In turn.
    RoundRobin,
    /// One cut a dimension.
    Quad,
    /// Each part at its own median.
    Kd,
}

/// Whether cuts change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They stay as they were at the start.
    Static,
    /// They follow the requests of the last ten minutes.
    Adaptive,
}

/// Sixteen regions as a tree of cuts: node n's children are 2n and 2n + 1, the root is 1.
#[derive(Clone, Debug, PartialEq)]
struct Cuts([f64; REGIONS]);

type Coordinates = [f64; 4];

fn coordinates(request: &Request) -> Coordinates {
    [request.origin.x, request.origin.y, request.destination.x, request.destination.y]
}

fn median(points: &mut [Coordinates], dimension: usize) -> f64 {
    if points.is_empty() {
        return 0.0;
    }
    let middle = points.len() / 2;
    let (_, median, _) = points.select_nth_unstable_by(middle, |a, b| a[dimension].total_cmp(&b[dimension]));
    median[dimension]
}

impl Cuts {
    fn of(rule: Rule, sample: &[Request]) -> Cuts {
        let mut points: Vec<Coordinates> = sample.iter().map(coordinates).collect();
        let mut cuts = Cuts([0.0; REGIONS]);
        match rule {
            Rule::RoundRobin => {}
            Rule::Kd => cuts.cut(1, 0, &mut points),
            Rule::Quad => {
                let medians: [f64; 4] = std::array::from_fn(|dimension| median(&mut points, dimension));
                (1..REGIONS).for_each(|node| cuts.0[node] = medians[node.ilog2() as usize]);
            }
        }
        cuts
    }

    fn cut(&mut self, node: usize, dimension: usize, points: &mut [Coordinates]) {
        self.0[node] = median(points, dimension);
        if dimension < 3 {
            // (The median stands in the middle, what is less before it.)
            let (less, more) = points.split_at_mut(points.len() / 2);
            self.cut(2 * node, dimension + 1, less);
            self.cut(2 * node + 1, dimension + 1, more);
        }
    }

    fn region(&self, request: &Request) -> usize {
        let point = coordinates(request);
        let step = |node: usize, dimension: usize| 2 * node + usize::from(point[dimension] >= self.0[node]);
        (0..4).fold(1, step) - REGIONS
    }
}

/// See the [module's page](self).
#[derive(Clone, Debug)]
pub struct Router {
    rule: Rule,
    change: Change,
    branches: usize,
    cuts: Cuts,
    recent: Vec<Request>,
    adapted: i64,
    routed: u64,
}

impl Router {
    /// A router to so many branches, at most sixteen but in turn, that knows a sample of history.
    pub fn new(rule: Rule, change: Change, branches: usize, sample: &[Request]) -> Router {
        let cuts = Cuts::of(rule, sample);
        Router { rule, change, branches: branches.max(1), cuts, recent: Vec::new(), adapted: 0, routed: 0 }
    }

    /// The branch of the next request; requests come in order of time.
    pub fn route(&mut self, request: &Request) -> usize {
        self.routed += 1;
        if self.change == Change::Adaptive {
            self.adapt(request.time);
            self.recent.push(*request);
        }
        match self.rule {
            Rule::RoundRobin => ((self.routed - 1) % self.branches as u64) as usize,
            Rule::Quad | Rule::Kd => self.cuts.region(request) * self.branches / REGIONS,
        }
    }

    fn adapt(&mut self, time: i64) {
        if time < self.adapted + ADAPTED_EVERY_SECONDS {
            return;
        }
        self.adapted = time - time.rem_euclid(ADAPTED_EVERY_SECONDS);
        self.recent.retain(|request| request.time >= self.adapted - ADAPTED_EVERY_SECONDS);
        // (So few requests say little about where the next ones are.)
        if self.recent.len() >= 2 * REGIONS {
            self.cuts = Cuts::of(self.rule, &self.recent);
        }
    }
}
