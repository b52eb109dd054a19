//! Expressways at work: one operator, a [`Road`] for each expressway of the shard.
//!
//! Law: an expressway's notifications and charges are a function of its rows. Minutes are final
//! when they are over, so nothing of a minute is used in that minute; evidence of accidents is
//! looked for after all rows of a second.
//!
//! ```text
//!     report ── trip? crossing? ── charge for the segment left ── toll, accident of the segment entered
//!        └───── speeds of the segment and minute;  stopped cars by place ── evidence
//! ```
//!
//! State: 32 bytes a vehicle that reported in the last minute or stands still; of each segment five
//! minutes of speeds; with accounts of its own, 12 bytes a vehicle ever seen. Cost of a report: one
//! look-up in a hash table.

use std::sync::Arc;

use anabranch_engine::frame::{Arrived, Given, Instance, UserOperator};
use anabranch_shards::split::BRANCH;
use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use super::KeptRows;
use super::accounts::Account;
use super::columns::{ANSWER, CHARGE, PART, ROW};
use super::hasher::Table;
use crate::row::{EXIT, RowKind};
use crate::rules::{GAP_SECONDS_MAX, STOPPED_REPORTS, ZONE_SEGMENTS, mean_of_means, minute, toll};

/// Reports (and balance queries, where accounts are kept by expressway) in; notifications, charges
/// and parts of balances out, with their branch.
pub struct Roads {
    /// Places of the columns of a row; last that of the branch.
    places: Vec<Option<usize>>,
    keep: KeptRows,
}

impl Roads {
    /// Over branches with these columns.
    pub fn new(columns: &[String], keep: KeptRows) -> Roads {
        let place = |name: &str| columns.iter().position(|column| column == name);
        Roads { places: ROW.into_iter().chain([BRANCH]).map(place).collect(), keep }
    }
}

impl UserOperator for Roads {
    fn name(&self) -> &str {
        "roads"
    }

    fn output(&self, inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        let is = |place: &Option<usize>, data_type: DataType| {
            place.is_some_and(|place| inputs[0].get(place) == Some(&data_type))
        };
        let (branch, row) = self.places.split_last().ok_or("no columns")?;
        if !row.iter().all(|place| is(place, DataType::Int32)) || !is(branch, DataType::Int64) {
            return Err(format!("rows have the columns {}, and a branch", ROW.join(", ")));
        }
        let answer = ANSWER.map(|name| (name.to_owned(), DataType::Int32));
        Ok([(BRANCH.to_owned(), DataType::Int64)].into_iter().chain(answer).collect())
    }

    fn start(&self) -> Box<dyn Instance> {
        let places = self.places.iter().map(|place| place.unwrap_or_default()).collect();
        Box::new(Driving { places, keep: self.keep, roads: Vec::new(), out: Out::default() })
    }
}

/// The expressways of a shard.
struct Driving {
    places: Vec<usize>,
    keep: KeptRows,
    /// By branch; those of other shards stay empty.
    roads: Vec<Option<Box<Road>>>,
    out: Out,
}

/// A position report.
#[derive(Clone, Copy, Debug)]
struct Report {
    time: u32,
    vid: u32,
    speed: u8,
    lane: u8,
    direction: u8,
    segment: u8,
    position: u32,
}

impl Instance for Driving {
    fn advance(&mut self, _upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
        let rows = &inputs[0];
        if rows.is_empty() {
            return Ok(());
        }
        let number = |at: usize| rows.columns()[self.places[at]].as_primitive::<Int32Type>().values().as_ref();
        let columns: [&[i32]; ROW.len()] = std::array::from_fn(number);
        let branches = rows.columns()[self.places[ROW.len()]].as_primitive::<Int64Type>().values();
        let times = rows.times();
        let mut first = 0;
        while first < rows.len() {
            let end = first + times[first..].partition_point(|time| *time <= times[first]);
            self.second(times[first] as u32, first..end, &columns, branches)?;
            first = end;
        }
        self.out.give(out);
        Ok(())
    }

    fn size_bytes(&self) -> usize {
        self.roads.iter().flatten().map(|road| road.size_bytes()).sum()
    }
}

impl Driving {
    fn second(
        &mut self,
        time: u32,
        rows: std::ops::Range<usize>,
        columns: &[&[i32]; ROW.len()],
        branches: &[i64],
    ) -> Result<(), String> {
        let [kinds, vids, speeds, _, lanes, directions, segments, positions, queries, _] = columns;
        let mut standing = Vec::new();
        let mut asked = Vec::new();
        for row in rows {
            let branch = branches[row];
            if kinds[row] != i32::from(RowKind::Report.number()) {
                asked.push((branch, vids[row], queries[row]));
                continue;
            }
            let report = Report {
                time,
                vid: vids[row] as u32,
                speed: speeds[row] as u8,
                lane: lanes[row] as u8,
                direction: directions[row] as u8,
                segment: segments[row] as u8,
                position: positions[row] as u32,
            };
            if report.segment > 99 || report.direction > 1 {
                return Err(format!("vehicle {} reports from segment {}", report.vid, report.segment));
            }
            let road = road(&mut self.roads, branch, self.keep);
            road.begin(time, branch);
            if road.report(report, branch, &mut self.out) {
                standing.push((branch, report));
            }
        }
        for (branch, report) in standing {
            road(&mut self.roads, branch, self.keep).look_for_evidence(&report);
        }
        for (branch, vid, query) in asked {
            let account = road(&mut self.roads, branch, self.keep).account(vid as u32);
            let (last, balance) = account.map_or((-1, 0), |account| (account.last as i32, account.balance as i32));
            self.out.row(time, branch, PART, vid, query, [last, balance], [time as i32, 0]);
        }
        Ok(())
    }
}

fn road(roads: &mut Vec<Option<Box<Road>>>, branch: i64, keep: KeptRows) -> &mut Road {
    let place = branch as usize;
    if roads.len() <= place {
        roads.resize_with(place + 1, || None);
    }
    roads[place].get_or_insert_with(|| Box::new(Road::new(keep)))
}

/// A vehicle as it reported last.
#[derive(Clone, Copy, Debug)]
struct Vehicle {
    time: u32,
    position: u32,
    /// The toll that it was told of and has not paid; [`NO_TOLL`] for none.
    announced: u32,
    /// Sum and number of the speeds that it reported from this segment in this minute.
    speeds: u16,
    n_speeds: u8,
    n_identical: u8,
    lane: u8,
    direction: u8,
    segment: u8,
}

const NO_TOLL: u32 = u32::MAX;

impl Vehicle {
    fn is_stopped(&self) -> bool {
        self.lane != EXIT && self.n_identical >= STOPPED_REPORTS
    }

    fn place(&self) -> Place {
        (self.lane, self.direction, self.position)
    }

    /// The mean speed in sixtieths of a mile an hour: whole for up to six reports.
    fn mean(&self) -> u64 {
        u64::from(self.speeds) * 60 / u64::from(self.n_speeds)
    }
}

/// Lane, direction, position.
type Place = (u8, u8, u32);

/// Minutes of which the mean speed is the mean.
const MINUTES: usize = 5;

/// A segment in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Of past minutes, in turn: sum of the vehicles' means in sixtieths, vehicles.
    past: [(u64, u32); MINUTES],
    /// Of this minute.
    now: (u64, u32),
    /// In force in this minute: mean speed, toll outside of zones.
    speed: i32,
    toll: u32,
    /// Whether an accident existed in the minute before, and whether there is evidence in this one.
    accident: bool,
    evidence: bool,
}

/// One expressway.
struct Road {
    minute: u32,
    vehicles: Table<u32, Vehicle>,
    segments: Vec<Segment>,
    stopped: Table<Place, Vec<u32>>,
    accounts: Option<Table<u32, Account>>,
}

impl Road {
    fn new(keep: KeptRows) -> Road {
        let empty = Segment { speed: -1, ..Segment::default() };
        Road {
            minute: 1,
            vehicles: Table::default(),
            segments: vec![empty; 200],
            stopped: Table::default(),
            accounts: (keep == KeptRows::ByExpressway).then(Table::default),
        }
    }

    /// Second `time` begins.
    fn begin(&mut self, time: u32, branch: i64) {
        let now = minute(time);
        if self.minute == now {
            return;
        }
        // (After so many empty minutes there is nothing left to forget.)
        for minute in self.minute.max(now.saturating_sub(MINUTES as u32 + 1)) + 1..=now {
            self.segments.iter_mut().for_each(|segment| segment.next_minute(minute));
        }
        self.minute = now;
        // A vehicle that has been silent for longer begins a new trip, whatever it did before.
        // Expressways take turns.
        if (i64::from(now) + branch) % 2 == 0 {
            self.vehicles.retain(|_, vehicle| vehicle.time + GAP_SECONDS_MAX >= time || vehicle.is_stopped());
        }
    }

    /// Takes a report. Whether its vehicle is a stopped one.
    fn report(&mut self, report: Report, branch: i64, out: &mut Out) -> bool {
        let before = self.vehicles.get(&report.vid).copied();
        let recent = before.filter(|before| report.time - before.time <= GAP_SECONDS_MAX);
        let is_new_trip = recent
            .is_none_or(|before| (before.lane == EXIT && report.lane != EXIT) || before.direction != report.direction);
        let is_crossing = is_new_trip || recent.is_some_and(|before| before.segment != report.segment);
        let mut vehicle = self.seen(&report, before, recent);
        self.note_stopped(&vehicle, before, report.vid);
        if is_new_trip {
            vehicle.announced = NO_TOLL;
        }
        if is_crossing {
            let cents = if vehicle.announced == NO_TOLL { 0 } else { vehicle.announced };
            vehicle.announced = NO_TOLL;
            self.charge(&report, cents, branch, out);
            if report.lane != EXIT {
                vehicle.announced = self.notify(&report, branch, out);
            }
        }
        self.vehicles.insert(report.vid, vehicle);
        vehicle.is_stopped()
    }

    /// The vehicle after a report, whose speed is added to the segment's.
    fn seen(&mut self, report: &Report, before: Option<Vehicle>, recent: Option<Vehicle>) -> Vehicle {
        let mut vehicle = Vehicle {
            time: report.time,
            position: report.position,
            announced: before.map_or(NO_TOLL, |before| before.announced),
            speeds: u16::from(report.speed),
            n_speeds: 1,
            n_identical: 1,
            lane: report.lane,
            direction: report.direction,
            segment: report.segment,
        };
        if let Some(before) = recent.filter(|before| before.place() == vehicle.place()) {
            vehicle.n_identical = before.n_identical.saturating_add(1);
        }
        let (sum, vehicles) = &mut self.segments[place(report.direction, report.segment)].now;
        let same = before.filter(|before| {
            minute(before.time) == self.minute
                && (before.direction, before.segment) == (report.direction, report.segment)
        });
        match same {
            Some(before) => {
                *sum -= before.mean();
                vehicle.speeds += before.speeds;
                vehicle.n_speeds += before.n_speeds;
            }
            None => *vehicles += 1,
        }
        *sum += vehicle.mean();
        vehicle
    }

    fn note_stopped(&mut self, vehicle: &Vehicle, before: Option<Vehicle>, vid: u32) {
        let was = before.filter(Vehicle::is_stopped).map(|before| before.place());
        let is = vehicle.is_stopped().then(|| vehicle.place());
        if was == is {
            return;
        }
        if let Some(place) = was
            && let Some(vids) = self.stopped.get_mut(&place)
        {
            vids.retain(|other| *other != vid);
            if vids.is_empty() {
                self.stopped.remove(&place);
            }
        }
        if let Some(place) = is {
            self.stopped.entry(place).or_default().push(vid);
        }
    }

    /// Two stopped vehicles at one place, after all rows of the second, are an accident.
    fn look_for_evidence(&mut self, report: &Report) {
        let here = self.stopped.get(&(report.lane, report.direction, report.position));
        if here.is_some_and(|vids| vids.len() > 1 && vids.contains(&report.vid)) {
            self.segments[place(report.direction, report.segment)].evidence = true;
        }
    }

    fn charge(&mut self, report: &Report, cents: u32, branch: i64, out: &mut Out) {
        match &mut self.accounts {
            None => out.row(report.time, branch, CHARGE, report.vid as i32, 0, [0, cents as i32], [0, 0]),
            Some(accounts) => {
                let account = accounts.entry(report.vid).or_insert(Account { last: 0, balance: 0 });
                *account = Account { last: report.time, balance: account.balance + cents };
            }
        }
    }

    /// Tells a vehicle what the segment costs that it has entered. Returns the toll.
    fn notify(&self, report: &Report, branch: i64, out: &mut Out) -> u32 {
        let Report { time, vid, direction, segment, .. } = *report;
        let entered = &self.segments[place(direction, segment)];
        let accident = self.nearest_accident(direction, segment);
        let toll = if accident.is_some() { 0 } else { entered.toll };
        let whose = [branch as i32, i32::from(direction)];
        out.row(time, branch, 0, vid as i32, 0, [entered.speed, toll as i32], whose);
        if let Some(accident) = accident {
            out.row(time, branch, 1, vid as i32, 0, [i32::from(accident), 0], whose);
        }
        toll
    }

    /// The nearest segment downstream, within the zone, with an accident in force.
    fn nearest_accident(&self, direction: u8, segment: u8) -> Option<u8> {
        let mut ahead = (0..=ZONE_SEGMENTS).filter_map(|distance| match direction {
            0 => segment.checked_add(distance).filter(|ahead| *ahead <= 99),
            _ => segment.checked_sub(distance),
        });
        ahead.find(|ahead| self.segments[place(direction, *ahead)].accident)
    }

    fn account(&self, vid: u32) -> Option<Account> {
        self.accounts.as_ref()?.get(&vid).copied()
    }

    fn size_bytes(&self) -> usize {
        self.vehicles.capacity() * (size_of::<(u32, Vehicle)>() + 1)
            + self.segments.len() * size_of::<Segment>()
            + self.accounts.as_ref().map_or(0, |accounts| accounts.capacity() * (size_of::<(u32, Account)>() + 1))
    }
}

fn place(direction: u8, segment: u8) -> usize {
    usize::from(direction) * 100 + usize::from(segment)
}

impl Segment {
    /// The minute before `minute` is over.
    fn next_minute(&mut self, minute: u32) {
        let vehicles = self.now.1;
        self.past[(minute as usize - 1) % MINUTES] = std::mem::take(&mut self.now);
        let defined = self.past.iter().filter(|(_, vehicles)| *vehicles > 0);
        (self.speed, _) = mean_of_means(defined.map(|(sum, vehicles)| (*sum, 60 * u64::from(*vehicles))));
        self.toll = toll(vehicles, self.speed);
        self.accident = std::mem::take(&mut self.evidence);
    }
}

/// Rows on their way out.
#[derive(Default)]
struct Out {
    times: Vec<i64>,
    branches: Vec<i64>,
    columns: [Vec<i32>; ANSWER.len()],
}

impl Out {
    #[allow(clippy::too_many_arguments)]
    fn row(&mut self, time: u32, branch: i64, kind: i32, vid: i32, query: i32, what: [i32; 2], whose: [i32; 2]) {
        self.times.push(i64::from(time));
        self.branches.push(branch);
        let values = [kind, vid, query, what[0], what[1], whose[0], whose[1]];
        self.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }

    fn give(&mut self, out: &mut Given) {
        let branches = Arc::new(Int64Array::from(std::mem::take(&mut self.branches))) as ArrayRef;
        let columns =
            self.columns.iter_mut().map(|column| Arc::new(Int32Array::from(std::mem::take(column))) as ArrayRef);
        out.points([branches].into_iter().chain(columns).collect(), std::mem::take(&mut self.times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vehicles that enter in a second, and for how long each goes on, in seconds.
    const ENTERING: u32 = 2;
    const ON_THE_ROAD: u32 = 480;

    /// Bytes after each minute of traffic that is always the same: vehicles enter, report every 30
    /// seconds, and leave.
    fn bytes_by_minute(keep: KeptRows, minutes: u32) -> Vec<usize> {
        let mut driving = Driving { places: vec![], keep, roads: vec![], out: Out::default() };
        let mut bytes = Vec::new();
        for time in 0..60 * minutes {
            let ages = (0..ON_THE_ROAD).step_by(30).filter(|age| *age <= time);
            let on_the_road: Vec<(u32, u32)> =
                ages.flat_map(|age| (0..ENTERING).map(move |lane| (age, ENTERING * (time - age) + lane))).collect();
            let column = |of: &dyn Fn(u32, u32) -> u32| -> Vec<i32> {
                on_the_road.iter().map(|(age, vid)| of(*age, *vid) as i32).collect()
            };
            let segment = |age: u32| 10 + age / 60;
            let lane = |age: u32| if age == 0 { 0 } else { 1 };
            let none = column(&|_, _| 0);
            let columns = [
                none.clone(),
                column(&|_, vid| vid),
                column(&|_, _| 30),
                none.clone(),
                column(&|age, _| lane(age)),
                none.clone(),
                column(&|age, _| segment(age)),
                column(&|age, _| segment(age) * 5280 + age % 60 * 80),
                none.clone(),
                none,
            ];
            let branches = vec![0; on_the_road.len()];
            let columns = std::array::from_fn(|at| columns[at].as_slice());
            driving.second(time, 0..on_the_road.len(), &columns, &branches).unwrap();
            driving.out = Out::default();
            if time % 60 == 59 {
                bytes.push(driving.size_bytes());
            }
        }
        bytes
    }

    #[test]
    fn r7_memory_levels_off_but_for_accounts() {
        let statistics = bytes_by_minute(KeptRows::ByVehicle, 60);
        // (What a table has room for varies with the places of those that have left.)
        let most = |bytes: &[usize]| bytes.iter().max().copied();
        assert!(most(&statistics[35..]) <= most(&statistics[10..35]), "{statistics:?}");
        // Accounts are for ever: so many bytes a vehicle that was ever seen. (The table doubles.)
        let with_accounts = bytes_by_minute(KeptRows::ByExpressway, 60);
        let seen = (60 * 60 * ENTERING) as usize;
        let bytes = with_accounts[59] - statistics[59];
        assert!((12 * seen..=40 * seen).contains(&bytes), "{bytes} bytes of {seen} vehicles");
    }
}
