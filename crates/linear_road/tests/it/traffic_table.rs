//! R6: three hours of traffic of one expressway against the table of properties that were measured
//! on the official sample, or published. Each property is met within a tenth.
//!
//! The official sample is the first 320 s of an empty expressway. Properties of free traffic are
//! taken from these seconds; the others from all three hours.

use anabranch_linear_road::generator::Traffic;
use anabranch_linear_road::row::{Row, RowKind, Second};

const SEGMENT: u32 = 5280;
const HOURS_3: u32 = 10_800;

/// Seconds of the official sample.
const SAMPLE_SECONDS: u32 = 320;

/// Ids below are of cars in accidents.
const ORDINARY_VIDS: u32 = 100;

/// Cars in a segment, and the mean speed of the sample.
const SPEEDS: [(usize, f64); 4] = [(2, 61.7), (17, 57.7), (32, 55.7), (47, 52.4)];

const RATES_OF_HALF_MINUTES: [f64; 10] = [12.8, 23.5, 35.8, 46.4, 56.4, 65.9, 74.0, 82.2, 91.0, 98.2];

const RATES_OF_TEN_MINUTES: [f64; 18] = [
    126.0, 344.0, 535.0, 704.0, 861.0, 998.0, 1123.0, 1237.0, 1332.0, 1408.0, 1465.0, 1514.0, 1551.0, 1577.0, 1587.0,
    1593.0, 1611.0, 1619.0,
];

/// Mean and deviation of numbers.
#[derive(Clone, Copy, Default)]
struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.n += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    fn variance(&self) -> f64 {
        self.squares / self.n - self.mean().powi(2)
    }

    fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// A vehicle: its last trip, and what is known of those before.
#[derive(Clone, Default)]
struct Car {
    entered: Option<Row>,
    last: Option<Row>,
    /// Reports of the trip.
    n_reports: u32,
    n_trips: u32,
    /// Speeds of free traffic, from the third report on.
    speeds: Moments,
}

/// A trip that ended with a lane-4 report, or without one.
struct Trip {
    entered: Row,
    last: Row,
    before_last: Option<Row>,
}

/// All that the table names.
#[derive(Default)]
struct Measured {
    rows_of_seconds: Vec<u64>,
    reports_of_seconds: Vec<u64>,
    queries: [u64; 3],
    cars: Vec<Car>,
    /// First ids in the order in which they came.
    new_vids: Vec<u32>,
    /// Feet behind the upstream border, and miles an hour, of first reports.
    first_feet: Vec<u32>,
    first_speeds: Moments,
    second_feet: Moments,
    second_speeds: Moments,
    /// Of free traffic, from the third report on.
    free_speeds: Moments,
    free_speed_counts: Vec<f64>,
    /// Feet made in 30 s, and those of the reported speed.
    feet: f64,
    feet_of_speeds: f64,
    /// Miles an hour by cars in the segment.
    by_density: Vec<Moments>,
    /// Miles an hour by direction, segment and minute, of cars that are in no accident.
    by_place: Vec<Moments>,
    lanes: [f64; 3],
    next_lanes: [[f64; 3]; 3],
    trips: Vec<Trip>,
    reports_of_accident_cars: Vec<Row>,
    away: Vec<u32>,
}

/// Feet that a car has driven in its segment.
fn within(row: &Row) -> u32 {
    let feet = row.position % SEGMENT;
    if row.direction == 0 { feet } else { SEGMENT - feet }
}

fn place_of(direction: u8, segment: u8, time: u32) -> usize {
    (usize::from(direction) * 100 + usize::from(segment)) * HOURS_3 as usize / 60 + time as usize / 60
}

impl Measured {
    fn of(traffic: &Traffic) -> Measured {
        let mut measured = Measured::default();
        (measured.by_density, measured.free_speed_counts) = (vec![Moments::default(); 1000], vec![0.0; 256]);
        measured.by_place = vec![Moments::default(); 2 * 100 * HOURS_3 as usize / 60];
        let (mut density, mut next_query) = ([[0usize; 100]; 2], 0);
        let (mut generator, mut second) = (traffic.start(), Second::default());
        while generator.fill(&mut second) {
            measured.rows_of_seconds.push(second.rows.len() as u64);
            let reports = second.rows.iter().filter(|row| row.kind == RowKind::Report);
            measured.reports_of_seconds.push(reports.clone().count() as u64);
            for row in &second.rows {
                if row.kind == RowKind::Report {
                    measured.report(row, &mut density);
                } else {
                    assert_eq!(row.query, next_query, "numbers of queries ascend over all types");
                    next_query += 1;
                    measured.queries[usize::from(row.kind.number()) - 2] += 1;
                }
            }
        }
        measured
    }

    fn report(&mut self, row: &Row, density: &mut [[usize; 100]; 2]) {
        let vid = row.vid as usize;
        if vid >= self.cars.len() {
            self.cars.resize_with(vid + 1000, Car::default);
        }
        let mut car = std::mem::take(&mut self.cars[vid]);
        let place = |row: &Row| (usize::from(row.direction), usize::from(row.segment));
        if vid < ORDINARY_VIDS as usize {
            self.reports_of_accident_cars.push(*row);
        }
        let before = car.last.filter(|last| last.lane != 4 && row.time - last.time <= 60);
        if let Some(last) = before {
            let (direction, segment) = place(&last);
            density[direction][segment] -= 1;
        }
        let (direction, segment) = place(row);
        if row.lane != 4 {
            density[direction][segment] += 1;
        }
        match before {
            None => {
                if let (Some(entered), Some(last)) = (car.entered, car.last) {
                    self.away.push(row.time - last.time);
                    if last.lane != 4 {
                        let (direction, segment) = place(&last);
                        density[direction][segment] -= 1;
                        self.trips.push(Trip { entered, last, before_last: None });
                    }
                } else {
                    self.new_vids.push(row.vid);
                }
                assert_eq!(row.lane, 0, "the first report is in lane 0: {row:?}");
                (car.entered, car.n_reports, car.n_trips) = (Some(*row), 0, car.n_trips + 1);
                self.first_feet.push(within(row));
                self.first_speeds.add(f64::from(row.speed));
            }
            Some(last) => {
                assert_ne!(row.lane, 0, "one report only is in lane 0: {row:?}");
                self.later_report(&mut car, &last, row, density[direction][segment]);
            }
        }
        (car.last, car.n_reports) = (Some(*row), car.n_reports + 1);
        self.cars[vid] = car;
    }

    fn later_report(&mut self, car: &mut Car, last: &Row, row: &Row, density: usize) {
        if row.lane == 4 {
            let entered = car.entered.unwrap();
            self.trips.push(Trip { entered, last: *row, before_last: Some(*last) });
            return;
        }
        let lane = usize::from(row.lane) - 1;
        self.lanes[lane] += 1.0;
        if row.vid < ORDINARY_VIDS {
            return;
        }
        let feet = f64::from(row.position.abs_diff(last.position));
        if car.n_reports == 1 {
            self.second_feet.add(feet);
            self.second_speeds.add(f64::from(row.speed));
            return;
        }
        self.next_lanes[usize::from(last.lane) - 1][lane] += 1.0;
        self.feet += feet;
        self.feet_of_speeds += f64::from(row.speed) * 44.0;
        self.by_place[place_of(row.direction, row.segment, row.time)].add(f64::from(row.speed));
        self.by_density[density.min(999)].add(f64::from(row.speed));
        if row.time < SAMPLE_SECONDS {
            car.speeds.add(f64::from(row.speed));
            self.free_speeds.add(f64::from(row.speed));
            self.free_speed_counts[usize::from(row.speed)] += 1.0;
        }
    }

    /// The speed below which this part of the reports of free traffic lies.
    fn free_speed(&self, part: f64) -> f64 {
        let mut left = part * self.free_speed_counts.iter().sum::<f64>();
        let speed = self.free_speed_counts.iter().position(|n| {
            left -= n;
            left < 0.0
        });
        speed.unwrap() as f64
    }

    /// All trips that are over, also those that ended without a report in lane 4.
    fn ended(&self) -> impl Iterator<Item = Trip> {
        let is_over = |last: &Row| last.lane != 4 && last.time + 60 < HOURS_3 && last.vid >= ORDINARY_VIDS;
        let vanished = self.cars.iter().filter_map(move |car| {
            let last = car.last.filter(is_over)?;
            Some(Trip { entered: car.entered?, last, before_last: None })
        });
        let copy = |trip: &Trip| Trip { entered: trip.entered, last: trip.last, before_last: trip.before_last };
        self.trips.iter().map(copy).chain(vanished).filter(|trip| trip.entered.vid >= ORDINARY_VIDS)
    }
}

/// Properties found and published: those that differ by more than a tenth are told together.
#[derive(Default)]
struct Table(Vec<(String, f64, f64)>);

impl Table {
    fn row(&mut self, name: impl Into<String>, found: f64, published: f64) {
        self.0.push((name.into(), found, published));
    }

    fn check(self) {
        let is_near = |row: &&(String, f64, f64)| (row.1 / row.2 - 1.0).abs() <= 0.1;
        self.0.iter().for_each(|(name, found, published)| println!("{name:<44} {found:>12.3} {published:>12.3}"));
        let off: Vec<_> = self.0.iter().filter(|row| !is_near(row)).collect();
        assert!(off.is_empty(), "(property, found, published): {off:#?}");
    }
}

fn ratio(part: usize, all: usize) -> f64 {
    part as f64 / all as f64
}

#[test]
fn r6_three_hours_have_the_properties_of_the_table() {
    let measured = Measured::of(&Traffic::new(2, HOURS_3, 1));
    let mut table = Table::default();
    rates(&measured, &mut table);
    reports(&measured, &mut table);
    lanes(&measured, &mut table);
    trips(&measured, &mut table);
    accidents(&measured, &mut table);
    table.check();
}

fn rates(measured: &Measured, table: &mut Table) {
    let mean = |seconds: &[u64]| seconds.iter().sum::<u64>() as f64 / seconds.len() as f64;
    let all: u64 = measured.rows_of_seconds.iter().sum();
    table.row("rows, millions", all as f64 / 1e6, 12.0);
    for (at, (seconds, published)) in measured.reports_of_seconds.chunks(30).zip(RATES_OF_HALF_MINUTES).enumerate() {
        table.row(format!("reports a second, half minute {at}"), mean(seconds), published);
    }
    for (at, (seconds, published)) in measured.rows_of_seconds.chunks(600).zip(RATES_OF_TEN_MINUTES).enumerate() {
        table.row(format!("rows a second, ten minutes {at}"), mean(seconds), published);
    }
    let most = *measured.rows_of_seconds[9000..].iter().max().unwrap();
    table.row("rows a second at the end, at most", most as f64, 1685.0);
    let queries: u64 = measured.queries.iter().sum();
    table.row("queries, percent of rows", queries as f64 * 100.0 / all as f64, 1.1);
    for (kind, (n, published)) in measured.queries.iter().zip([50.0, 10.0, 40.0]).enumerate() {
        table.row(format!("queries of type {}, percent", kind + 2), *n as f64 * 100.0 / queries as f64, published);
    }
    let ordinary: Vec<u32> = measured.new_vids.iter().copied().filter(|vid| *vid >= ORDINARY_VIDS).collect();
    assert!(ordinary.is_sorted() && ordinary[0] == ORDINARY_VIDS, "new ids ascend from 100");
    table.row("vehicles, thousands", measured.new_vids.len() as f64 / 1e3, 136.0);
    table.row("new vehicles a second", ratio(ordinary.len(), HOURS_3 as usize), 12.65);
    let on_the_road = *measured.reports_of_seconds.last().unwrap() as f64 * 30.0;
    table.row("cars at the end, thousands", on_the_road / 1e3, 50.0);
    // (As many cars come as leave: then cars on the road are arrivals times the duration of a
    // trip.)
    let minutes = on_the_road / 12.65 / 60.0;
    assert!(minutes > 60.0, "trips of over an hour: {minutes}");
}

fn reports(measured: &Measured, table: &mut Table) {
    let mut feet = measured.first_feet.clone();
    feet.sort_unstable();
    assert!(feet[0] >= 230 && feet[feet.len() - 1] <= 545, "{} {}", feet[0], feet[feet.len() - 1]);
    table.row("first report, median feet", f64::from(feet[feet.len() / 2]), 407.0);
    table.row("first report, mph", measured.first_speeds.mean(), 26.4);
    table.row("second report, feet further", measured.second_feet.mean(), 1305.0);
    table.row("second report, deviation of feet", measured.second_feet.deviation(), 370.0);
    table.row("second report, mph", measured.second_speeds.mean(), 33.0);
    table.row("free traffic, mph", measured.free_speeds.mean(), 57.0);
    let (mut between, mut inside) = (Moments::default(), Moments::default());
    for speeds in measured.cars.iter().map(|car| &car.speeds).filter(|speeds| speeds.n >= 4.0) {
        between.add(speeds.mean());
        inside.add((speeds.variance() * speeds.n / (speeds.n - 1.0)).sqrt());
    }
    table.row("free traffic, deviation between cars", between.deviation(), 6.8);
    table.row("free traffic, deviation within a car", inside.mean(), 2.5);
    table.row("free traffic, mph of all but 1 %", measured.free_speed(0.01), 43.0);
    table.row("free traffic, mph of 99.9 %", measured.free_speed(0.999), 75.0);
    table.row("feet in 30 s by 44 x mph", measured.feet / measured.feet_of_speeds, 1.04);
    for (cars, published) in SPEEDS {
        table.row(format!("mph at {cars} cars in a segment"), measured.by_density[cars].mean(), published);
    }
}

fn lanes(measured: &Measured, table: &mut Table) {
    let all: f64 = measured.lanes.iter().sum();
    for (lane, (n, published)) in measured.lanes.iter().zip([25.0, 50.0, 25.0]).enumerate() {
        table.row(format!("lane {}, percent", lane + 1), n * 100.0 / all, published);
    }
    let published = [[0.34, 0.40, 0.26], [0.21, 0.59, 0.20], [0.28, 0.40, 0.32]];
    for (lane, (next, published)) in measured.next_lanes.iter().zip(published).enumerate() {
        let all: f64 = next.iter().sum();
        for (to, (n, published)) in next.iter().zip(published).enumerate() {
            table.row(format!("lane {} after {}", to + 1, lane + 1), n / all, published);
        }
    }
}

fn trips(measured: &Measured, table: &mut Table) {
    let ended: Vec<Trip> = measured.ended().collect();
    let exits: Vec<&Trip> = ended.iter().filter(|trip| trip.last.lane == 4).collect();
    table.row("trips that end in lane 4, percent", ratio(exits.len(), ended.len()) * 100.0, 87.0);
    table.row("trips that vanish, percent", 100.0 - ratio(exits.len(), ended.len()) * 100.0, 13.0);
    let mut speeds = Moments::default();
    for Trip { last, before_last, .. } in exits.iter().copied() {
        speeds.add(f64::from(last.speed));
        assert_eq!(last.segment, before_last.unwrap().segment, "a car leaves in the segment of its last report");
        assert!(SEGMENT - within(last) <= 980, "a car leaves in the last 980 feet: {last:?}");
    }
    table.row("leaving, mph", speeds.mean(), 49.0);
    // Trips that are over with the three hours, however long they were.
    let early: Vec<&Trip> = ended.iter().filter(|trip| trip.entered.time < 3600).collect();
    let segments = |trip: &Trip| f64::from(trip.last.segment.abs_diff(trip.entered.segment));
    let mean = early.iter().map(|trip| segments(trip)).sum::<f64>() / early.len() as f64;
    table.row("segments of a trip", mean, 28.7);
    let stay = early.iter().filter(|trip| segments(trip) == 0.0).count();
    table.row("trips that end where they began, percent", ratio(stay, early.len()) * 100.0, 1.0);
    let mut origins = [0f64; 10];
    let entered = measured.cars.iter().filter_map(|car| car.entered).filter(|entered| entered.vid >= ORDINARY_VIDS);
    entered.for_each(|entered| origins[usize::from(entered.segment) / 10] += 1.0);
    let all: f64 = origins.iter().sum();
    for (at, n) in origins.iter().enumerate() {
        table.row(format!("origins in segments {0}0 to {0}9, percent", at), n * 100.0 / all, 10.0);
    }
    let mut targets = Moments::default();
    early.iter().for_each(|trip| targets.add(f64::from(trip.last.segment)));
    table.row("destination, segment", targets.mean(), 50.0);
    table.row("destination, deviation", targets.deviation(), 20.0);
    let vehicles = measured.new_vids.len();
    let back = measured.cars.iter().filter(|car| car.n_trips > 1).count();
    table.row("vehicles that come back, percent", ratio(back, vehicles) * 100.0, 2.6);
    assert!(measured.away.iter().all(|seconds| *seconds > 61), "{:?}", measured.away.iter().min());
    assert!(measured.away.iter().all(|seconds| *seconds <= 61 + 1000 + 30), "{:?}", measured.away.iter().max());
}

fn accidents(measured: &Measured, table: &mut Table) {
    let mut cars: Vec<Vec<Row>> = vec![Vec::new(); ORDINARY_VIDS as usize];
    measured.reports_of_accident_cars.iter().for_each(|row| cars[row.vid as usize].push(*row));
    let mut begun = [0f64; 2];
    let (mut lasting, mut n_pairs) = (Moments::default(), 0);
    let (mut beside_it, mut ahead_of_it) = (Moments::default(), Moments::default());
    for pair in cars[3..].chunks(2) {
        let [first, second] = pair else { continue };
        if first.is_empty() {
            break;
        }
        begun[usize::from(first[0].direction)] += 1.0;
        let standing = |rows: &[Row]| rows.iter().filter(|row| row.speed == 0).copied().collect::<Vec<_>>();
        let (stood, beside) = (standing(first), standing(second));
        assert!(stood.iter().all(|row| row.lane == 1 && row.position == stood[0].position), "{stood:?}");
        // (A breakdown is one car's, an accident two cars'.)
        if second.is_empty() {
            continue;
        }
        n_pairs += 1;
        assert_eq!(second[0].time - first[0].time, 25, "the second car enters 25 s later");
        assert_eq!((first[0].lane, second[0].lane), (0, 0), "both enter by the ramp");
        assert!(beside.iter().all(|row| row.lane == 1 && row.position == stood[0].position), "{beside:?}");
        let cleared = stood[stood.len() - 1].time;
        // (Traffic that has passed an accident is as dense as traffic that comes to it.)
        let Row { direction, segment, .. } = stood[0];
        let ahead = if direction == 0 { segment + 4 } else { segment.wrapping_sub(4) };
        for time in (stood[0].time + 120..cleared).step_by(60).filter(|_| ahead < 100) {
            let speeds = [segment, ahead].map(|segment| measured.by_place[place_of(direction, segment, time)]);
            if speeds.iter().all(|speeds| speeds.n > 0.0) {
                beside_it.add(speeds[0].mean());
                ahead_of_it.add(speeds[1].mean());
            }
        }
        if cleared + 60 < HOURS_3 {
            lasting.add(f64::from(cleared - stood[0].time) / 60.0);
            assert!((9.0..=20.5).contains(&(f64::from(cleared - stood[0].time) / 60.0)), "{stood:?}");
        }
    }
    table.row("accidents and breakdowns, eastbound", begun[0], 9.0);
    table.row("accidents and breakdowns, westbound", begun[1], 9.0);
    println!("{n_pairs} accidents of two cars, cleared after {:.1} minutes", lasting.mean());
    table.row("minutes until an accident is cleared", lasting.mean(), 15.0);
    let (beside, ahead) = (beside_it.mean(), ahead_of_it.mean());
    println!("{beside:.1} mph beside an accident, {ahead:.1} four segments on");
    assert!(beside < 0.8 * ahead, "speeds fall around an accident: {beside} {ahead}");
}
