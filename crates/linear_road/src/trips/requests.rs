//! Made-up requests of a day: clusters of homes, work and shops, rush hours, trips of three
//! kilometres and more.
//!
//! Law: the requests are a function of the seed; days of all seeds are of one city. Shape of the
//! day and of the city follow what is published of Copenhagen's taxis; spreads are tuned so that
//! serial savings come near to the published ones.

use super::{Point, Request};
use crate::random::{Random, mix};

/// Requests of a whole day.
pub(crate) const A_DAY: u32 = 251_000;

/// Everything random in the city follows from it.
const CITY_SEED: u64 = 1;

/// Metres of the square.
const SIDE: f64 = 20_000.0;

/// Least metres of a trip.
const TRIP_MIN: f64 = 3_000.0;

/// A cluster: centre, spread in metres, weight.
type Cluster = (Point, f64, f64);

struct City {
    homes: Vec<Cluster>,
    works: Vec<Cluster>,
    shops: Vec<Cluster>,
}

impl City {
    fn new(random: &mut Random) -> City {
        let mut some = |n: usize, spread: f64| -> Vec<Cluster> {
            let mut cluster = |at: usize| {
                let point = Point { x: within(random, 0.1, 0.9), y: within(random, 0.1, 0.9) };
                (point, spread, 1.0 / (at as f64 + 1.0))
            };
            (0..n).map(&mut cluster).collect()
        };
        City { homes: some(14, 2200.0), works: some(4, 1500.0), shops: some(4, 600.0) }
    }
}

fn within(random: &mut Random, low: f32, high: f32) -> f64 {
    f64::from(random.between(low, high)) * SIDE
}

fn near(random: &mut Random, clusters: &[Cluster]) -> Point {
    if random.chance(0.35) {
        return Point { x: within(random, 0.0, 1.0), y: within(random, 0.0, 1.0) };
    }
    let all: f64 = clusters.iter().map(|(_, _, weight)| weight).sum();
    let mut lot = f64::from(random.unit()) * all;
    let chosen = clusters.iter().find(|(_, _, weight)| {
        lot -= weight;
        lot < 0.0
    });
    let (centre, spread, _) = chosen.unwrap_or(&clusters[0]);
    let offset = |random: &mut Random| f64::from(random.normal()) * spread;
    let (x, y) = (centre.x + offset(random), centre.y + offset(random));
    Point { x: x.clamp(0.0, SIDE), y: y.clamp(0.0, SIDE) }
}

/// How busy an hour of the day is, the morning's peak being 1 and some.
fn busy(hour: f64) -> f64 {
    let bell = |at: f64, spread: f64| (-((hour - at) / spread).powi(2) / 2.0).exp();
    0.04 + bell(7.83, 0.6) + 0.75 * bell(16.33, 0.9) + 0.12 * bell(12.5, 4.0)
}

/// The requests of a day, each of `1 / part` of them kept, in order of time. Another seed is
/// another day of the same city.
pub fn day(seed: u64, part: u32) -> Vec<Request> {
    let city = City::new(&mut Random::new(mix(CITY_SEED)));
    let mut random = Random::new(mix(seed));
    let n = A_DAY / part.max(1);
    let mut times: Vec<i64> = (0..n).map(|_| moment(&mut random)).collect();
    times.sort_unstable();
    let request = |(id, time): (usize, i64)| {
        let (origin, destination) = trip(&mut random, &city, time);
        Request { id: id as i64, time, origin, destination }
    };
    times.into_iter().enumerate().map(request).collect()
}

/// A second of the day, drawn by how busy it is.
fn moment(random: &mut Random) -> i64 {
    loop {
        let time = random.below(86_400);
        let height = f64::from(random.unit()) * 1.2;
        if height < busy(f64::from(time) / 3600.0) {
            return i64::from(time);
        }
    }
}

fn trip(random: &mut Random, city: &City, time: i64) -> (Point, Point) {
    let hour = time / 3600;
    let (from, to) = match (hour, random.below(10)) {
        (6..=9, 0..=7) => (&city.homes, &city.works),
        (14..=18, 0..=7) => (&city.works, &city.homes),
        (_, lot) if lot.is_multiple_of(2) => (&city.homes, &city.shops),
        _ => (&city.shops, &city.homes),
    };
    loop {
        let (origin, destination) = (near(random, from), near(random, to));
        if origin.distance(destination) >= TRIP_MIN {
            return (origin, destination);
        }
    }
}
