//! The rules as functions: minutes, tolls, zones, and the mean of means.
//!
//! Source: Linear Road (VLDB 2004), with the readings of its validator.

/// The minute of a second; the first one is 1.
pub fn minute(time: u32) -> u32 {
    time / 60 + 1
}

/// Reports further apart than so many seconds belong to different trips.
pub(crate) const GAP_SECONDS_MAX: u32 = 60;

/// Identical reports that make a vehicle a stopped one.
pub(crate) const STOPPED_REPORTS: u8 = 4;

/// Segments upstream of an accident that are warned of it.
pub(crate) const ZONE_SEGMENTS: u8 = 4;

/// The toll in cents of a segment with so many vehicles in the minute before, this mean speed (-1
/// for none), outside of the zones of accidents.
///
/// ```
/// # use anabranch_linear_road::rules::toll;
/// assert_eq!([toll(51, 39), toll(60, 30), toll(75, 0), toll(150, 39)], [2, 200, 1250, 20_000]);
/// assert_eq!([toll(50, 30), toll(60, 40)], [0, 0]);
/// ```
pub fn toll(vehicles: u32, mean_speed: i32) -> u32 {
    match vehicles.checked_sub(50) {
        Some(beyond) if beyond > 0 && mean_speed < 40 => beyond.saturating_mul(beyond).saturating_mul(2),
        _ => 0,
    }
}

/// How far downstream of `segment` an accident in segment `accident` lies, if `segment` is in its
/// zone.
pub fn ahead(direction: u8, segment: u8, accident: u8) -> Option<u8> {
    let distance = match direction {
        0 => accident.checked_sub(segment)?,
        _ => segment.checked_sub(accident)?,
    };
    (distance <= ZONE_SEGMENTS).then_some(distance)
}

/// The floor of the mean of some fractions, and whether the mean is whole; -1 of none.
///
/// Numerators and denominators are of at most five minutes of one segment: exact in 128 bits as
/// long as denominators stay below a million.
pub(crate) fn mean_of_means(fractions: impl IntoIterator<Item = (u64, u64)>) -> (i32, bool) {
    let (mut above, mut below, mut n) = (0u128, 1u128, 0u128);
    for (numerator, denominator) in fractions {
        let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
        above = above * denominator + numerator * below;
        below *= denominator;
        n += 1;
    }
    match n {
        0 => (-1, false),
        n => ((above / (below * n)) as i32, above % (below * n) == 0),
    }
}
