//! The rules in the plainest code: one row at a time, maps of everything, means from scratch.
//!
//! Law: what must be answered is a function of the rows; rows of one second may come in any order.
//! Each expected answer says in which ways another one is right too. Cost is of no concern; old
//! minutes are forgotten so that whole inputs can be checked.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::answer::TollAnswer;
use crate::history::History;
use crate::row::{EXIT, Row, RowKind, Second};
use crate::rules::{GAP_SECONDS_MAX, STOPPED_REPORTS, ahead, mean_of_means, minute, toll};

/// An answer that must be given, and what is right as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The primary answer.
    pub answer: TollAnswer,
    /// What may differ.
    pub tolerance: Tolerance,
}

/// What may differ from a primary answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// Nothing.
    Exact,
    /// The mean speed is a whole number: one mile an hour less or more is right too.
    Speed,
    /// Two cars of an accident reported in one second, and one of them moved: whether the accident
    /// was there is open.
    Accident,
    /// Pairs of result time and balance that were current in the last minute. A pair without
    /// crossings is right at all times of the range.
    Current {
        /// Pairs beside the primary one.
        pairs: Vec<(u32, u32)>,
        /// Times at which the balance was 0 for want of a crossing.
        none: Option<(u32, u32)>,
    },
    /// The answer is another system's, and its rows are unknown: a mean speed may be whole, and
    /// balances follow an account that is not seen.
    Unseen,
}

/// Expressway, direction, segment.
type Segment = (u16, u8, u8);
/// Expressway, lane, direction, position.
type Place = (u16, u8, u8, u32);

fn segment(row: &Row) -> Segment {
    (row.xway, row.direction, row.segment)
}

fn place(row: &Row) -> Place {
    (row.xway, row.lane, row.direction, row.position)
}

/// What is known of a vehicle on the road.
#[derive(Clone, Debug)]
struct Vehicle {
    last: Row,
    n_identical: u8,
    announced: Option<u32>,
}

/// The state after some seconds.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    history: History,
    vehicles: HashMap<u32, Vehicle>,
    /// By segment and minute: the sum and the number of each vehicle's speeds.
    speeds: HashMap<(Segment, u32), HashMap<u32, (u64, u64)>>,
    /// Means by segment and minute in which they are in force.
    means: HashMap<(Segment, u32), (i32, bool)>,
    /// Vehicles whose latest report is of a stopped one.
    stopped: HashMap<Place, BTreeSet<u32>>,
    /// Minutes in which there was evidence of an accident.
    accidents: HashSet<(Segment, u32)>,
    /// Minutes in which there was, in one order of the rows of a second.
    doubtful: HashSet<(Segment, u32)>,
    /// By vehicle: time of each crossing, and the balance from there on. Crossings of more than a
    /// minute ago are one.
    accounts: HashMap<u32, Vec<(u32, u32)>>,
    counts: ReferenceCounts,
}

/// What was seen and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferenceCounts {
    /// Position reports.
    pub reports: u64,
    /// Queries of each type: 2, 3, 4.
    pub queries: [u64; 3],
    /// Sum of the tolls announced.
    pub announced: u64,
    /// Sum of the tolls charged.
    pub charged: u64,
    /// Sum of the tolls announced and forgotten at a new trip.
    pub forfeited: u64,
}

impl Reference {
    /// Nothing has been seen; expenditures are looked up in `history`.
    pub fn new(history: History) -> Reference {
        Reference { history, ..Reference::default() }
    }

    /// What was seen and done.
    pub fn counts(&self) -> ReferenceCounts {
        self.counts
    }

    /// The sum of tolls that are announced and neither charged nor forgotten.
    pub fn pending_tolls(&self) -> u64 {
        self.vehicles.values().filter_map(|vehicle| vehicle.announced).map(u64::from).sum()
    }

    /// Takes a second's rows, and adds the answers to them.
    pub fn second(&mut self, second: &Second, out: &mut Vec<Expected>) {
        if second.time.is_multiple_of(60) {
            self.forget(minute(second.time));
        }
        let moved = self.stopped_before(second);
        for row in &second.rows {
            match row.kind {
                RowKind::Report => self.report(row, out),
                RowKind::Balance => self.counts.queries[0] += 1,
                RowKind::Expenditure => self.counts.queries[1] += 1,
                RowKind::TravelTime => self.counts.queries[2] += 1,
            }
        }
        self.gather_evidence(second, &moved);
        for row in &second.rows {
            match row.kind {
                RowKind::Balance => out.push(self.balance(row)),
                RowKind::Expenditure => {
                    let balance = self.history.get(row.vid, row.day, row.xway);
                    let answer = |balance| TollAnswer::Expenditure { time: row.time, query: row.query, balance };
                    out.extend(balance.map(answer).map(exact));
                }
                RowKind::Report | RowKind::TravelTime => {}
            }
        }
    }

    /// Vehicles that report in this second and were stopped before it, by place.
    fn stopped_before(&self, second: &Second) -> HashMap<Place, BTreeSet<u32>> {
        let mut before: HashMap<Place, BTreeSet<u32>> = HashMap::new();
        for row in second.rows.iter().filter(|row| row.kind == RowKind::Report) {
            if let Some(vehicle) = self.vehicles.get(&row.vid)
                && self.stopped.get(&place(&vehicle.last)).is_some_and(|stopped| stopped.contains(&row.vid))
            {
                before.entry(place(&vehicle.last)).or_default().insert(row.vid);
            }
        }
        before
    }

    fn report(&mut self, row: &Row, out: &mut Vec<Expected>) {
        self.counts.reports += 1;
        let speeds = self.speeds.entry((segment(row), minute(row.time))).or_default();
        let (sum, n) = speeds.entry(row.vid).or_default();
        *sum += u64::from(row.speed);
        *n += 1;

        let before = self.vehicles.remove(&row.vid);
        let gap = before.as_ref().is_none_or(|before| row.time - before.last.time > GAP_SECONDS_MAX);
        let is_new_trip = gap
            || before.as_ref().is_some_and(|Vehicle { last, .. }| {
                (last.lane == EXIT && row.lane != EXIT) || last.xway != row.xway || last.direction != row.direction
            });
        let is_crossing = is_new_trip || before.as_ref().is_some_and(|before| before.last.segment != row.segment);
        self.note_stopped(row, &before, gap);
        let mut announced = before.as_ref().and_then(|before| before.announced);
        if is_new_trip {
            self.counts.forfeited += u64::from(announced.take().unwrap_or(0));
        }
        if is_crossing {
            let charge = announced.take().unwrap_or(0);
            self.counts.charged += u64::from(charge);
            let account = self.accounts.entry(row.vid).or_default();
            let balance = account.last().map_or(0, |(_, balance)| *balance);
            account.push((row.time, balance + charge));
            let old = account.iter().filter(|(time, _)| time + 60 < row.time).count();
            account.drain(..old.saturating_sub(1));
            if row.lane != EXIT {
                announced = Some(self.notify(row, out));
            }
        }
        let n_identical = self.identical(row, &before, gap);
        self.vehicles.insert(row.vid, Vehicle { last: *row, n_identical, announced });
    }

    fn identical(&self, row: &Row, before: &Option<Vehicle>, gap: bool) -> u8 {
        match before {
            Some(before) if !gap && place(&before.last) == place(row) => before.n_identical.saturating_add(1),
            _ => 1,
        }
    }

    fn note_stopped(&mut self, row: &Row, before: &Option<Vehicle>, gap: bool) {
        if let Some(before) = before {
            self.stopped.entry(place(&before.last)).or_default().remove(&row.vid);
        }
        if row.lane != EXIT && self.identical(row, before, gap) >= STOPPED_REPORTS {
            self.stopped.entry(place(row)).or_default().insert(row.vid);
        }
    }

    /// Tells a vehicle what the segment costs that it has entered. Returns the toll.
    fn notify(&mut self, row: &Row, out: &mut Vec<Expected>) -> u32 {
        let now = minute(row.time);
        let (speed, is_whole) = self.mean_speed(segment(row), now);
        let vehicles = self.speeds.get(&(segment(row), now - 1)).map_or(0, HashMap::len) as u32;
        let accident = self.nearest(row, &self.accidents);
        let certain = self.nearest(row, &self.doubtful).is_none();
        let toll = if accident.is_some() { 0 } else { toll(vehicles, speed) };
        self.counts.announced += u64::from(toll);
        let tolerance = match (certain, is_whole) {
            (false, _) => Tolerance::Accident,
            (true, true) => Tolerance::Speed,
            (true, false) => Tolerance::Exact,
        };
        out.push(Expected { answer: TollAnswer::Toll { vid: row.vid, time: row.time, speed, toll }, tolerance });
        let Row { time, vid, xway, direction, .. } = *row;
        let doubtful = self.nearest(row, &self.doubtful);
        if let Some(segment) = accident.or(doubtful) {
            let tolerance = if certain { Tolerance::Exact } else { Tolerance::Accident };
            out.push(Expected { answer: TollAnswer::Accident { time, vid, segment, xway, direction }, tolerance });
        }
        toll
    }

    /// The segment of the nearest accident downstream that is in force for a report.
    fn nearest(&self, row: &Row, accidents: &HashSet<(Segment, u32)>) -> Option<u8> {
        let existed = minute(row.time) - 1;
        let is_there = |accident: &u8| accidents.contains(&((row.xway, row.direction, *accident), existed));
        let near = row.segment.saturating_sub(4)..=row.segment.saturating_add(4).min(99);
        near.filter(is_there)
            .filter_map(|accident| Some((ahead(row.direction, row.segment, accident)?, accident)))
            .min()
            .map(|(_, accident)| accident)
    }

    /// The floor of the mean speed in force in a minute, and whether the mean is whole.
    fn mean_speed(&mut self, segment: Segment, now: u32) -> (i32, bool) {
        let speeds = &self.speeds;
        *self.means.entry((segment, now)).or_insert_with(|| {
            let minutes = now.saturating_sub(5).max(1)..now;
            mean_of_means(minutes.filter_map(|minute| {
                let vehicles = speeds.get(&(segment, minute)).filter(|vehicles| !vehicles.is_empty())?;
                // (In sixtieths of a mile an hour, so that the means of up to six reports are
                // whole.)
                let sum: u64 = vehicles.values().map(|(sum, n)| sum * 60 / n).sum();
                Some((sum, 60 * vehicles.len() as u64))
            }))
        })
    }

    /// Looks at the stopped cars that reported, with the state after the whole second.
    fn gather_evidence(&mut self, second: &Second, moved: &HashMap<Place, BTreeSet<u32>>) {
        for row in second.rows.iter().filter(|row| row.kind == RowKind::Report) {
            let none = BTreeSet::new();
            let here = self.stopped.get(&place(row)).unwrap_or(&none);
            if !here.contains(&row.vid) {
                continue;
            }
            let key = (segment(row), minute(row.time));
            if here.len() > 1 {
                self.accidents.insert(key);
            } else if moved.get(&place(row)).is_some_and(|moved| moved.iter().any(|other| *other != row.vid)) {
                self.doubtful.insert(key);
            }
        }
        self.doubtful.retain(|key| !self.accidents.contains(key));
    }

    /// The balance after the whole second, and those that were current in the minute before.
    fn balance(&self, query: &Row) -> Expected {
        let none = Vec::new();
        let account = self.accounts.get(&query.vid).unwrap_or(&none);
        let (result_time, balance) = account.last().copied().unwrap_or((query.time, 0));
        let from = query.time.saturating_sub(60);
        // A pair is current until the next crossing.
        let ends = account.iter().skip(1).map(|(time, _)| *time).chain([u32::MAX]);
        let pairs = account.iter().zip(ends).filter(|(_, end)| *end > from).map(|(pair, _)| *pair).collect();
        let first = account.first().map_or(u32::MAX, |(time, _)| *time);
        let none = (first > from).then_some((from, query.time));
        let answer = TollAnswer::Balance { time: query.time, query: query.query, result_time, balance };
        Expected { answer, tolerance: Tolerance::Current { pairs, none } }
    }

    /// Drops what no later minute asks for.
    fn forget(&mut self, now: u32) {
        self.speeds.retain(|(_, minute), _| minute + 6 > now);
        self.means.retain(|(_, minute), _| *minute >= now);
        self.accidents.retain(|(_, minute)| minute + 2 > now);
        self.doubtful.retain(|(_, minute)| minute + 2 > now);
        self.stopped.retain(|_, vehicles| !vehicles.is_empty());
    }
}

fn exact(answer: TollAnswer) -> Expected {
    Expected { answer, tolerance: Tolerance::Exact }
}

/// The primary answers to an input.
pub fn answers(seconds: impl IntoIterator<Item = Second>, history: History) -> Vec<TollAnswer> {
    let mut reference = Reference::new(history);
    let mut expected = Vec::new();
    seconds.into_iter().for_each(|second| reference.second(&second, &mut expected));
    expected.into_iter().filter(|expected| !is_doubtful_accident(expected)).map(|expected| expected.answer).collect()
}

/// Whether an accident is expected in one order of rows only. (A toll beside it says what holds.)
fn is_doubtful_accident(expected: &Expected) -> bool {
    expected.tolerance == Tolerance::Accident && matches!(expected.answer, TollAnswer::Accident { .. })
}
