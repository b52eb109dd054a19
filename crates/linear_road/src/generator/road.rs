//! One expressway: cars enter, drive with the traffic around them, stand in accidents, and leave.

use crate::random::{Random, mix};
use crate::row::{EXIT, Row};

use super::Traffic;

/// Feet of a segment.
const SEGMENT: i32 = 5280;

/// Feet that a car makes in 30 s for each mile an hour that it reports.
const FEET_PER_MPH: f32 = 1.04 * 44.0;

/// Ids of cars in the accidents of the whole input, before ordinary ids are taken.
const ACCIDENT_VIDS: std::ops::Range<u32> = 3..100;

/// Mean speed in miles per hour by cars in a segment; straight lines in between.
const SPEEDS: [(f32, f32); 7] =
    [(2.0, 61.7), (17.0, 57.7), (32.0, 55.7), (47.0, 52.4), (100.0, 43.0), (160.0, 33.0), (220.0, 26.0)];

/// Cars in a segment for which the mean speed is looked up; more go no slower.
const DENSITY_MAX: usize = 221;

/// New cars of each half minute of the first ten, as parts of the mean rate. The first five minutes
/// are those of the official sample; the next five make up for them.
const FIRST_ARRIVALS: [f32; 20] = [
    1.01, 0.85, 0.97, 0.85, 0.81, 0.76, 0.66, 0.67, 0.74, 0.63, 1.205, 1.205, 1.205, 1.205, 1.205, 1.205, 1.205, 1.205,
    1.205, 1.205,
];

/// Parts of the lanes 1, 2, 3 that follow on each of them, of 100.
const NEXT_LANE: [[u32; 2]; 3] = [[34, 74], [21, 80], [28, 68]];

/// A car that has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub vid: u32,
    pub xway: u16,
}

/// One car on the road.
#[derive(Clone, Copy, Debug)]
struct Car {
    vid: u32,
    /// Feet from the west end.
    position: i32,
    /// How much faster it is than others, in miles per hour.
    haste: f32,
    /// It stands until this second, at the position where it is.
    stands_until: u32,
    /// Where it wants to go.
    target: u8,
    direction: u8,
    lane: u8,
    /// Reports so far, as far as they matter.
    n_reports: u8,
}

impl Car {
    fn segment(&self) -> u8 {
        (self.position / SEGMENT) as u8
    }

    /// Feet to the downstream end of its segment.
    fn room(&self) -> i32 {
        let within = self.position % SEGMENT;
        if self.direction == 0 { SEGMENT - within } else { within + 1 }
    }

    fn moved(&self, feet: i32) -> i32 {
        let position = if self.direction == 0 { self.position + feet } else { self.position - feet };
        position.clamp(0, 100 * SEGMENT - 1)
    }
}

/// An accident that lies ahead, or is there.
#[derive(Clone, Copy, Debug)]
struct Accident {
    direction: u8,
    segment: u8,
    from: u32,
    until: u32,
}

/// The cars of one expressway.
#[derive(Clone, Debug)]
pub(super) struct Road {
    xway: u16,
    directions: u32,
    arrivals: f32,
    accident_every: u32,
    cleared_within: (u32, u32),
    breakdowns: f32,
    random: Random,
    /// By second of 30 in which they report.
    cars: Vec<Vec<Car>>,
    /// Cars by direction and segment, as they reported last.
    density: [[u16; 100]; 2],
    /// Mean speeds by density.
    speeds: [f32; DENSITY_MAX],
    /// How much of the speed accidents leave, by direction and segment.
    slowed: [[f32; 100]; 2],
    accidents: Vec<Accident>,
    /// Parts of new cars that are still to come.
    due: f32,
    /// Vehicles that come back.
    expected: Vec<u32>,
    /// Cars of accidents that have entered in this second.
    fresh: Vec<Car>,
    /// The second car of an accident: when, and the car as it enters.
    second_cars: Vec<(u32, Car)>,
    accident_vids: std::ops::Range<u32>,
}

impl Road {
    pub fn new(xway: u16, traffic: &Traffic) -> Road {
        let is_half = u32::from(xway) * 2 + 1 == traffic.half_expressways;
        let mut speeds = [0.0; DENSITY_MAX];
        speeds.iter_mut().enumerate().for_each(|(density, speed)| *speed = mean_speed(density as f32));
        Road {
            xway,
            directions: if is_half { 1 } else { 2 },
            arrivals: if is_half { traffic.arrivals / 2.0 } else { traffic.arrivals },
            accident_every: traffic.accident_every.max(1),
            cleared_within: traffic.cleared_within,
            breakdowns: traffic.breakdowns,
            random: Random::new(mix(traffic.seed).wrapping_add(u64::from(xway) + 1)),
            cars: vec![Vec::new(); 30],
            density: [[0; 100]; 2],
            speeds,
            slowed: [[1.0; 100]; 2],
            accidents: Vec::new(),
            due: 0.0,
            expected: Vec::new(),
            fresh: Vec::new(),
            second_cars: Vec::new(),
            accident_vids: if xway == 0 { ACCIDENT_VIDS } else { 0..0 },
        }
    }

    pub fn cars(&self) -> usize {
        self.cars.iter().map(Vec::len).sum()
    }

    /// A vehicle that comes back with the next second.
    pub fn expect(&mut self, vid: u32) {
        self.expected.push(vid);
    }

    /// Second `now` of the traffic, written with the time `shown`.
    pub fn step(&mut self, now: u32, shown: u32, next_vid: &mut u32, rows: &mut Vec<Row>, left: &mut Vec<Left>) {
        self.begin_accidents(now, shown, next_vid, rows);
        let phase = (now % 30) as usize;
        let mut cars = std::mem::take(&mut self.cars[phase]);
        let mut at = 0;
        let mut n_old = cars.len();
        while at < n_old {
            let before = cars[at].segment();
            let (report, stays) = self.drive(&mut cars[at], now, shown);
            let car = cars[at];
            rows.extend(report);
            if stays {
                if car.segment() != before {
                    let density = &mut self.density[usize::from(car.direction)];
                    density[usize::from(before)] -= 1;
                    density[usize::from(car.segment())] += 1;
                }
                at += 1;
                continue;
            }
            self.density[usize::from(car.direction)][usize::from(before)] -= 1;
            left.push(Left { vid: car.vid, xway: self.xway });
            n_old -= 1;
            cars.swap_remove(at);
        }
        cars.append(&mut self.fresh);
        for vid in std::mem::take(&mut self.expected) {
            let car = self.newcomer(vid);
            cars.push(self.enter(car, shown, rows));
        }
        self.due += self.arrivals * FIRST_ARRIVALS.get(now as usize / 30).unwrap_or(&1.0);
        while self.due >= 1.0 {
            self.due -= 1.0;
            let car = self.newcomer(*next_vid);
            *next_vid += 1;
            cars.push(self.enter(car, shown, rows));
        }
        self.cars[phase] = cars;
    }

    /// Accidents begin, hinder, and end.
    fn begin_accidents(&mut self, now: u32, shown: u32, next_vid: &mut u32, rows: &mut Vec<Row>) {
        let seconds = std::mem::take(&mut self.second_cars);
        let (due, later): (Vec<_>, Vec<_>) = seconds.into_iter().partition(|(when, _)| *when <= now);
        self.second_cars = later;
        due.into_iter().for_each(|(_, car)| self.enter_at(car, shown, rows));
        for direction in 0..self.directions {
            // The two directions have their accidents half an interval apart.
            let offset = self.accident_every * direction / 2 + self.accident_every / 6;
            if now % self.accident_every == offset {
                self.begin_accident(now, shown, direction as u8, next_vid, rows);
            }
        }
        let n_accidents = self.accidents.len();
        self.accidents.retain(|accident| now < accident.until);
        let begins = self.accidents.iter().any(|accident| accident.from == now);
        if begins || self.accidents.len() < n_accidents {
            self.slow_down(now);
        }
    }

    fn begin_accident(&mut self, now: u32, shown: u32, direction: u8, next_vid: &mut u32, rows: &mut Vec<Row>) {
        let segment = 5 + self.random.below(90) as u8;
        let (least, greatest) = self.cleared_within;
        let stands = 30 + least + self.random.below(greatest.saturating_sub(least) + 1);
        let is_alone = self.random.chance(self.breakdowns);
        let mut vid = || match self.accident_vids.next() {
            Some(vid) => vid,
            None => {
                *next_vid += 1;
                *next_vid - 1
            }
        };
        let vids = [vid(), vid()];
        let mut car = self.newcomer(vids[0]);
        let towards = self.random.below(30) as u8;
        car.direction = direction;
        car.target = if direction == 0 { (segment + towards).min(99) } else { segment.saturating_sub(towards) };
        car.position = entrance(direction, segment, 407);
        car.stands_until = now + stands;
        self.enter_at(car, shown, rows);
        if !is_alone {
            self.second_cars.push((now + 25, Car { vid: vids[1], ..car }));
            self.accidents.push(Accident { direction, segment, from: now + 55, until: now + stands });
        }
    }

    /// Cars slow down where an accident is, and in the two segments before it.
    fn slow_down(&mut self, now: u32) {
        self.slowed = [[1.0; 100]; 2];
        for accident in self.accidents.iter().filter(|accident| accident.from <= now) {
            for (distance, part) in [(0i32, 0.5), (1, 0.6), (2, 0.8)] {
                let away = if accident.direction == 0 { -distance } else { distance };
                let segment = i32::from(accident.segment) + away;
                if (0..100).contains(&segment) {
                    self.slowed[usize::from(accident.direction)][segment as usize] = part;
                }
            }
        }
    }

    /// A car with this id somewhere at an entrance.
    fn newcomer(&mut self, vid: u32) -> Car {
        let random = &mut self.random;
        let (origin, target, direction) = loop {
            let origin = random.below(100) as u8;
            let target = (50.0 + 20.0 * random.normal()).clamp(0.0, 99.0) as u8;
            let direction = if origin == target { random.below(2) as u8 } else { u8::from(target < origin) };
            if u32::from(direction) < self.directions {
                break (origin, target, direction);
            }
        };
        let behind = 230 + random.below(316) as i32;
        let haste = 6.8 * random.normal();
        let position = entrance(direction, origin, behind);
        Car { vid, position, haste, stands_until: 0, target, direction, lane: 0, n_reports: 0 }
    }

    /// The car's first report, now.
    fn enter(&mut self, car: Car, shown: u32, rows: &mut Vec<Row>) -> Car {
        let speed = (26.4 + 4.0 * self.random.normal()).clamp(14.0, 34.0) as u8;
        rows.push(Row::report(shown, car.vid, speed, self.xway, 0, car.direction, car.position as u32));
        self.density[usize::from(car.direction)][usize::from(car.segment())] += 1;
        Car { n_reports: 1, ..car }
    }

    /// A car of an accident enters.
    fn enter_at(&mut self, car: Car, shown: u32, rows: &mut Vec<Row>) {
        let car = self.enter(car, shown, rows);
        self.fresh.push(car);
    }

    /// The car's next report, if it makes one, and whether it stays on the road.
    fn drive(&mut self, car: &mut Car, now: u32, shown: u32) -> (Option<Row>, bool) {
        let report = |car: &Car, speed: u8, xway: u16| {
            Row::report(shown, car.vid, speed, xway, car.lane, car.direction, car.position as u32)
        };
        if now < car.stands_until {
            if car.lane == 0 {
                (car.lane, car.position) = (1, car.moved(1305));
            }
            car.n_reports = 2;
            return (Some(report(car, 0, self.xway)), true);
        }
        let segment = car.segment();
        let (speed, feet) = match car.n_reports {
            0 | 1 => {
                let feet = (1305.0 + 370.0 * self.random.normal()).clamp(300.0, 2600.0);
                ((33.0 + 3.0 * self.random.normal()).clamp(20.0, 45.0), feet)
            }
            _ => {
                let speed = self.speed(car, segment);
                (speed, speed * FEET_PER_MPH)
            }
        };
        let leaves = segment == car.target && (car.n_reports >= 2 || feet as i32 >= 300);
        if leaves && feet as i32 >= car.room() - 490 {
            if self.random.chance(0.13) {
                return (None, false);
            }
            let ahead = 1 + self.random.below(980) as i32;
            car.position = car.moved((car.room() - ahead).max(0));
            car.lane = EXIT;
            let speed = (49.0 + 5.0 * self.random.normal()).clamp(20.0, 75.0) as u8;
            return (Some(report(car, speed.min(100), self.xway)), false);
        }
        car.lane = self.lane(car.lane);
        car.position = car.moved(feet as i32);
        car.n_reports = 2;
        (Some(report(car, (speed + 0.5) as u8, self.xway)), true)
    }

    /// Miles per hour of a car in a segment.
    fn speed(&mut self, car: &Car, segment: u8) -> f32 {
        let (direction, segment) = (usize::from(car.direction), usize::from(segment));
        let density = usize::from(self.density[direction][segment]).min(DENSITY_MAX - 1);
        let mean = self.speeds[density];
        // In a jam cars differ less.
        let part = mean / 57.0;
        // (A car's speeds deviate by 2.5 with what changing traffic adds.)
        let speed = mean + part * (car.haste + 2.1 * self.random.normal());
        (speed.clamp(43.0 * part, 75.0) * self.slowed[direction][segment]).max(5.0)
    }

    fn lane(&mut self, lane: u8) -> u8 {
        let lot = self.random.below(100);
        let [one, two] = if lane == 0 { [25, 75] } else { NEXT_LANE[usize::from(lane.clamp(1, 3)) - 1] };
        if lot < one { 1 } else { 2 + u8::from(lot >= two) }
    }
}

/// The position so many feet behind the border at which cars enter a segment.
fn entrance(direction: u8, segment: u8, feet: i32) -> i32 {
    match direction {
        0 => i32::from(segment) * SEGMENT + feet,
        _ => (i32::from(segment) + 1) * SEGMENT - feet,
    }
}

/// Mean speed by density: straight lines between measured points.
fn mean_speed(density: f32) -> f32 {
    let (first, last) = (SPEEDS[0], SPEEDS[SPEEDS.len() - 1]);
    if density <= first.0 {
        return first.1;
    }
    let around = SPEEDS.windows(2).find(|around| density <= around[1].0);
    around.map_or(last.1, |around| {
        let ((from, fast), (to, slow)) = (around[0], around[1]);
        fast + (slow - fast) * (density - from) / (to - from)
    })
}
