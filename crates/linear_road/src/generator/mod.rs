//! Traffic: position reports and queries of any number of expressways, second by second.
//!
//! Law: the rows are a function of the [`Traffic`] described. Cars report every 30 s until they
//! leave; every query falls into a second in which its vehicle reports; rows come in order of time.
//!
//! Cost: some tens of nanoseconds a row; 28 bytes a car on the road. The program of the benchmark's
//! authors is not to be had: properties follow what is measured on its output or published.
//! [`road`] drives the cars of one expressway.

mod road;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::history::History;
use crate::random::{Random, mix};
use crate::row::{Row, RowKind, Second};
use road::{Left, Road};

/// What is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Expressways in halves: 3 is one with both directions, and one with the eastbound only.
    pub half_expressways: u32,
    /// Seconds of rows.
    pub seconds: u32,
    /// Everything random follows from it.
    pub seed: u64,
    /// New vehicles a second and expressway: the mean. Fewer come in the first five minutes, and
    /// more in the next five.
    pub arrivals: f32,
    /// Queries by report.
    pub queries: f32,
    /// Parts of the queries of types 2, 3 and 4, in percent.
    pub query_mix: [u32; 3],
    /// Seconds between accidents of one direction.
    pub accident_every: u32,
    /// Least and greatest number of seconds until an accident is cleared.
    pub cleared_within: (u32, u32),
    /// Part of the trips that end of which the vehicle comes back. Of the ids of three hours it is
    /// three fifths, since many trips last beyond them.
    pub reentry: f32,
    /// Part of the accidents in which one car stands alone.
    pub breakdowns: f32,
    /// Seconds that pass before second 0.
    pub skip: u32,
}

impl Traffic {
    /// The traffic of the official input: this many half expressways and seconds.
    pub fn new(half_expressways: u32, seconds: u32, seed: u64) -> Traffic {
        Traffic {
            half_expressways,
            seconds,
            seed,
            arrivals: 12.65,
            queries: 0.0112,
            query_mix: [50, 10, 40],
            accident_every: 1200,
            cleared_within: (600, 1200),
            reentry: 0.045,
            breakdowns: 0.1,
            skip: 0,
        }
    }

    /// Everything happens often: for short tests.
    #[must_use]
    pub fn dense(self) -> Traffic {
        Traffic { arrivals: 80.0, queries: 0.05, accident_every: 180, cleared_within: (60, 180), reentry: 0.1, ..self }
    }

    /// Whole and half expressways.
    pub fn expressways(&self) -> u32 {
        self.half_expressways.div_ceil(2)
    }

    /// Starts at second 0.
    pub fn start(&self) -> Generator {
        let mut generator = Generator::new(self.clone());
        let mut unseen = Vec::new();
        for _ in 0..self.skip {
            unseen.clear();
            generator.step(&mut unseen);
        }
        generator.n_queries = 0;
        generator.history = History::default();
        generator
    }

    /// The rows of history that the queries ask for, with others beside them; some have none.
    pub fn history(&self) -> History {
        let mut generator = self.start();
        let mut second = Second::default();
        while generator.fill(&mut second) {}
        generator.history
    }
}

/// Traffic on its way.
#[derive(Clone, Debug)]
pub struct Generator {
    traffic: Traffic,
    roads: Vec<Road>,
    /// Seconds since the first car came, before those unseen.
    now: u32,
    next_vid: u32,
    n_queries: u32,
    random: Random,
    /// Vehicles that come back: when, which, where.
    returning: BinaryHeap<Reverse<(u32, u32, u16)>>,
    left: Vec<Left>,
    history: History,
}

impl Generator {
    fn new(traffic: Traffic) -> Generator {
        let roads = (0..traffic.expressways()).map(|xway| Road::new(xway as u16, &traffic)).collect();
        let random = Random::new(mix(traffic.seed));
        Generator {
            roads,
            now: 0,
            next_vid: 100,
            n_queries: 0,
            random,
            returning: BinaryHeap::new(),
            left: Vec::new(),
            history: History::default(),
            traffic,
        }
    }

    /// The next second's rows in place of those of `second`; false at the end.
    pub fn fill(&mut self, second: &mut Second) -> bool {
        let time = self.now - self.traffic.skip;
        if time >= self.traffic.seconds {
            return false;
        }
        second.rows.clear();
        (second.time, second.n_refused) = (time, 0);
        self.step(&mut second.rows);
        true
    }

    /// Cars on all roads.
    pub fn cars(&self) -> usize {
        self.roads.iter().map(Road::cars).sum()
    }

    /// One second, whose rows are added.
    fn step(&mut self, rows: &mut Vec<Row>) {
        let shown = self.now.saturating_sub(self.traffic.skip);
        while self.returning.peek().is_some_and(|Reverse((when, ..))| *when <= self.now) {
            if let Some(Reverse((_, vid, xway))) = self.returning.pop() {
                self.roads[usize::from(xway)].expect(vid);
            }
        }
        for road in &mut self.roads {
            let first = rows.len();
            road.step(self.now, shown, &mut self.next_vid, rows, &mut self.left);
            let reports = first..rows.len();
            for at in reports {
                if self.random.chance(self.traffic.queries) {
                    let query = query(&mut self.random, &self.traffic, rows[at], self.n_queries, &mut self.history);
                    rows.push(query);
                    self.n_queries += 1;
                }
            }
        }
        for left in std::mem::take(&mut self.left) {
            if self.random.chance(self.traffic.reentry) {
                let others = self.traffic.expressways() - 1;
                let away = if others == 0 { 0 } else { 1 + self.random.below(others) };
                let xway = (u32::from(left.xway) + away) % (others + 1);
                let when = self.now + 62 + self.random.below(1000);
                self.returning.push(Reverse((when, left.vid, xway as u16)));
            }
        }
        self.now += 1;
    }
}

impl Iterator for Generator {
    type Item = Second;

    fn next(&mut self) -> Option<Second> {
        let mut second = Second::default();
        self.fill(&mut second).then_some(second)
    }
}

/// A query of the vehicle that reports, and the rows of history it asks for.
fn query(random: &mut Random, traffic: &Traffic, report: Row, number: u32, history: &mut History) -> Row {
    let [balances, expenditures, others] = traffic.query_mix;
    let lot = random.below((balances + expenditures + others).max(1));
    let kind = match lot {
        lot if lot < balances => RowKind::Balance,
        lot if lot < balances + expenditures => RowKind::Expenditure,
        _ => RowKind::TravelTime,
    };
    let (mut xway, mut day) = (report.xway, 0);
    if kind == RowKind::Expenditure {
        day = 1 + random.below(69) as u8;
        // Each vehicle has a past on one expressway; one query in ten asks for some other, one
        // vehicle and day in ten has no row.
        let past = mix(u64::from(report.vid) ^ traffic.seed);
        let known = (past % u64::from(traffic.expressways())) as u16;
        xway = if random.chance(0.9) { known } else { random.below(traffic.expressways()) as u16 };
        let toll = mix(past ^ u64::from(day));
        if !toll.is_multiple_of(10) {
            history.insert(report.vid, day, known, (toll % 99) as u32);
        }
        history.insert(report.vid, day % 69 + 1, known, (mix(toll) % 99) as u32);
    }
    let xway = if kind == RowKind::Balance { 0 } else { xway };
    Row::query(report.time, kind, report.vid, number, xway, day)
}
