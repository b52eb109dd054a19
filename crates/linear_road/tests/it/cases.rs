//! Small inputs with the answers that the rules give, worked out by hand.

use anabranch_linear_road::answer::TollAnswer;
use anabranch_linear_road::row::{Row, RowKind};

/// An input, and its answers in ascending order.
pub struct Case {
    pub name: &'static str,
    pub rows: Vec<Row>,
    pub answers: Vec<TollAnswer>,
}

/// A position in feet, `into` a segment.
pub fn at(segment: u32, into: u32) -> u32 {
    segment * 5280 + into
}

/// One report on expressway 0.
pub fn report(time: u32, vid: u32, speed: u8, lane: u8, direction: u8, position: u32) -> Row {
    Row::report(time, vid, speed, 0, lane, direction, position)
}

pub fn balance(time: u32, vid: u32, query: u32) -> Row {
    Row::query(time, RowKind::Balance, vid, query, 0, 0)
}

/// Reports of one car in one place.
fn stands(vid: u32, lane: u8, direction: u8, position: u32, times: impl IntoIterator<Item = u32>) -> Vec<Row> {
    times.into_iter().map(|time| report(time, vid, 0, lane, direction, position)).collect()
}

fn every_30(from: u32, to: u32) -> impl Iterator<Item = u32> {
    (from..=to).step_by(30)
}

fn free(vid: u32, time: u32, speed: i32) -> TollAnswer {
    TollAnswer::Toll { vid, time, speed, toll: 0 }
}

fn warned(time: u32, vid: u32, segment: u8, direction: u8) -> TollAnswer {
    TollAnswer::Accident { time, vid, segment, xway: 0, direction }
}

/// `n` cars from vehicle 1000 on that report twice in minute 1 from segment 10, and their entries.
fn crowd(n: u32, speed: u8) -> (Vec<Row>, Vec<TollAnswer>) {
    let reports = |vid: u32| [report(1, vid, speed, 1, 0, at(10, 100)), report(31, vid, speed, 1, 0, at(10, 900))];
    ((0..n).flat_map(|car| reports(1000 + car)).collect(), (0..n).map(|car| free(1000 + car, 1, -1)).collect())
}

/// Two cars that stand at one place of segment 50 in lane 1: evidence in seconds 125 to 230.
fn accident(direction: u8) -> (Vec<Row>, Vec<TollAnswer>) {
    let place = at(50, 2000);
    let gone = if direction == 0 { place + 500 } else { place - 500 };
    let mut rows = stands(1, 1, direction, place, every_30(20, 230));
    rows.extend(stands(2, 1, direction, place, every_30(35, 215)));
    rows.push(report(260, 1, 9, 1, direction, gone));
    rows.push(report(245, 2, 9, 1, direction, gone));
    (rows, vec![free(1, 20, -1), free(2, 35, -1)])
}

fn case(name: &'static str, rows: Vec<Row>, mut answers: Vec<TollAnswer>) -> Case {
    answers.sort_unstable();
    Case { name, rows, answers }
}

/// Adds entries of fresh cars in one segment each: (time, vehicle, segment, warned of).
fn with_entries(
    name: &'static str,
    direction: u8,
    (mut rows, mut answers): (Vec<Row>, Vec<TollAnswer>),
    entries: &[(u32, u32, u32, i32, Option<u8>)],
) -> Case {
    for &(time, vid, segment, speed, accident) in entries {
        rows.push(report(time, vid, 50, 1, direction, at(segment, 2500)));
        answers.push(free(vid, time, speed));
        answers.extend(accident.map(|accident| warned(time, vid, accident, direction)));
    }
    case(name, rows, answers)
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut cases = tolls();
    cases.extend(accidents());
    cases.extend(accounts());
    cases
}

fn tolls() -> Vec<Case> {
    let entering = |name, n: u32, speed: u8, entries: &[(u32, u32, TollAnswer)]| {
        let (mut rows, mut answers) = crowd(n, speed);
        for (time, segment, answer) in entries {
            let TollAnswer::Toll { vid, .. } = answer else { unreachable!() };
            rows.push(report(*time, *vid, 60, 1, 0, at(*segment, 40)));
            answers.push(*answer);
        }
        case(name, rows, answers)
    };
    let told = |vid, time, speed, toll| TollAnswer::Toll { vid, time, speed, toll };
    let mut cases = vec![
        // NOV of the minute of 130 counts only the car of 65.
        entering("worked case 1", 60, 30, &[(65, 10, told(7, 65, 30, 200)), (130, 10, told(8, 130, 45, 0))]),
        entering("50 cars are free", 50, 30, &[(65, 10, told(7, 65, 30, 0))]),
        entering("51 cars cost 2", 51, 30, &[(65, 10, told(7, 65, 30, 2))]),
        entering("at 40 mph it is free", 60, 40, &[(65, 10, told(7, 65, 40, 0))]),
        entering("at 39 mph it is not", 60, 39, &[(65, 10, told(7, 65, 39, 200))]),
        entering("the own minute does not count", 60, 30, &[(59, 10, told(7, 59, -1, 0))]),
        entering("the own segment only", 60, 30, &[(65, 11, told(7, 65, -1, 0)), (66, 9, told(8, 66, -1, 0))]),
        entering(
            "five minutes count, the sixth forgets",
            60,
            30,
            &[(359, 10, told(7, 359, 30, 0)), (420, 10, told(8, 420, 60, 0))],
        ),
    ];
    let rows = vec![
        report(0, 1, 10, 1, 0, at(3, 0)),
        report(30, 1, 20, 1, 0, at(3, 500)),
        report(5, 2, 50, 1, 0, at(3, 700)),
        report(70, 3, 60, 0, 0, at(3, 10)),
        report(125, 4, 60, 1, 0, at(3, 10)),
        // Minute 4 is empty of reports: it is skipped.
        report(245, 5, 60, 1, 0, at(3, 10)),
    ];
    let answers = vec![free(1, 0, -1), free(2, 5, -1), free(3, 70, 32), free(4, 125, 46), free(5, 245, 50)];
    cases.push(case("worked case 2: the mean of means", rows, answers));
    let (rows, answers) = crowd(60, 30);
    let rows = rows.into_iter().map(|row| Row { lane: 0, ..row }).chain([report(65, 7, 60, 1, 0, at(10, 40))]);
    let answers = answers.into_iter().chain([told(7, 65, 30, 200)]).collect();
    cases.push(case("ramps count", rows.collect(), answers));
    let rows =
        vec![report(0, 1, 30, 1, 0, at(5, 0)), report(30, 1, 30, 4, 0, at(6, 9)), report(0, 2, 30, 4, 0, at(8, 0))];
    cases.push(case("lane 4 is not told", rows, vec![free(1, 0, -1)]));
    let rows = vec![report(0, 1, 30, 1, 0, at(5, 0)), report(30, 1, 30, 1, 0, at(5, 1000))];
    cases.push(case("inside a segment nothing is told", rows, vec![free(1, 0, -1)]));
    let rows = vec![report(0, 1, 30, 1, 0, at(5, 0)), report(61, 1, 30, 1, 0, at(5, 1000))];
    cases.push(case("after a gap it is told again", rows, vec![free(1, 0, -1), free(1, 61, 30)]));
    let rows = vec![report(0, 1, 30, 1, 0, at(5, 0)), report(60, 1, 30, 1, 0, at(5, 1000))];
    cases.push(case("60 seconds are no gap", rows, vec![free(1, 0, -1)]));
    let rows = vec![
        report(0, 1, 30, 1, 0, at(5, 0)),
        report(30, 1, 30, 4, 0, at(5, 5000)),
        report(60, 1, 30, 0, 0, at(5, 5100)),
    ];
    cases.push(case("a new trip after lane 4", rows, vec![free(1, 0, -1), free(1, 60, 30)]));
    let rows = vec![report(0, 1, 30, 1, 0, at(5, 0)), report(30, 1, 30, 1, 1, at(5, 0))];
    cases.push(case("the other direction is a new trip", rows, vec![free(1, 0, -1), free(1, 30, -1)]));
    cases
}

fn accidents() -> Vec<Case> {
    let mut cases = vec![
        with_entries(
            "worked case 3: minutes 4 and 5 are warned",
            0,
            accident(0),
            &[(179, 10, 50, 0, None), (180, 11, 50, 5, Some(50)), (299, 12, 50, 8, Some(50)), (300, 13, 50, 11, None)],
        ),
        with_entries(
            "the zone eastbound",
            0,
            accident(0),
            &[(200, 10, 46, -1, Some(50)), (201, 11, 45, -1, None), (202, 12, 51, -1, None)],
        ),
        with_entries(
            "the zone westbound",
            1,
            accident(1),
            &[(200, 10, 54, -1, Some(50)), (201, 11, 55, -1, None), (202, 12, 49, -1, None)],
        ),
    ];
    let (rows, answers) = accident(0);
    let other = [report(200, 10, 50, 1, 1, at(50, 2500))];
    let answers = answers.into_iter().chain([free(10, 200, -1)]).collect();
    cases.push(case("the other direction is not warned", rows.into_iter().chain(other).collect(), answers));

    let alone = stands(1, 1, 0, at(50, 2000), every_30(20, 290));
    cases.push(with_entries("one stopped car", 0, (alone, vec![free(1, 20, -1)]), &[(200, 10, 50, 0, None)]));

    let mut three = stands(1, 1, 0, at(50, 2000), every_30(20, 80));
    three.extend(stands(2, 1, 0, at(50, 2000), every_30(35, 95)));
    let entered = vec![free(1, 20, -1), free(2, 35, -1)];
    cases.push(with_entries("three reports are none", 0, (three, entered.clone()), &[(125, 10, 50, 0, None)]));

    let mut lanes = stands(1, 1, 0, at(50, 2000), every_30(20, 230));
    lanes.extend(stands(2, 2, 0, at(50, 2000), every_30(35, 215)));
    cases.push(with_entries("different lanes", 0, (lanes, entered.clone()), &[(200, 10, 50, 0, None)]));

    let mut ramp = stands(1, 4, 0, at(50, 2000), every_30(20, 230));
    ramp.extend(stands(2, 4, 0, at(50, 2000), every_30(35, 215)));
    cases.push(with_entries("lane 4 never counts", 0, (ramp, vec![]), &[(200, 10, 50, 0, None)]));

    let mut gap = stands(1, 1, 0, at(50, 2000), [20, 50, 80, 141, 171]);
    gap.extend(stands(2, 1, 0, at(50, 2000), every_30(35, 215)));
    let entered = vec![free(1, 20, -1), free(2, 35, -1), free(1, 141, 0)];
    cases.push(with_entries("a gap starts counting again", 0, (gap, entered), &[(250, 10, 50, 0, None)]));

    let place = |segment: u32| at(segment, 2000);
    let pair = |vid: u32, segment: u32| {
        let mut rows = stands(vid, 1, 0, place(segment), every_30(20, 170));
        rows.extend(stands(vid + 1, 1, 0, place(segment), every_30(25, 175)));
        rows
    };
    let rows: Vec<Row> = pair(1, 97).into_iter().chain(pair(3, 99)).collect();
    let entered = vec![free(1, 20, -1), free(2, 25, -1), free(3, 20, -1), free(4, 25, -1)];
    cases.push(with_entries(
        "the nearest downstream only, clipped at the end",
        0,
        (rows, entered),
        &[(190, 10, 96, -1, Some(97)), (191, 11, 98, -1, Some(99)), (192, 12, 97, 0, Some(97))],
    ));

    // In an accident's zone tolls are 0.
    let (mut rows, mut answers) = accident(0);
    for vid in 1000..1060 {
        rows.extend([report(130, vid, 30, 1, 0, at(48, 100)), report(160, vid, 30, 1, 0, at(48, 900))]);
        answers.push(free(vid, 130, -1));
    }
    cases.push(with_entries("no toll in a zone", 0, (rows, answers), &[(190, 10, 48, 30, Some(50))]));
    cases
}

fn accounts() -> Vec<Case> {
    let (rows, entered) = crowd(60, 30);
    let route = |name, further: Vec<Row>, answers: Vec<TollAnswer>| {
        let mut rows = rows.clone();
        rows.extend(further);
        let first = TollAnswer::Toll { vid: 7, time: 60, speed: 30, toll: 200 };
        case(name, rows, entered.iter().copied().chain([first]).chain(answers).collect())
    };
    let enters = |time, segment| report(time, 7, 60, 1, 0, at(segment, 40));
    let leaves = |time, segment| report(time, 7, 60, 4, 0, at(segment, 5000));
    let told = |time, query, result_time, balance| TollAnswer::Balance { time, query, result_time, balance };
    let drive = [enters(60, 10), report(90, 7, 60, 1, 0, at(10, 3000)), enters(120, 11)];
    let with = |rows: &[Row]| drive.iter().chain(rows).copied().collect::<Vec<_>>();
    let mut cases = vec![
        route(
            "worked case 4: charged when the segment is left",
            with(&[leaves(150, 11), balance(200, 7, 1), balance(119, 7, 2), balance(120, 7, 3), balance(59, 7, 4)]),
            vec![
                free(7, 120, -1),
                told(200, 1, 120, 200),
                told(119, 2, 60, 0),
                told(120, 3, 120, 200),
                told(59, 4, 59, 0),
            ],
        ),
        route(
            "worked case 4: lane 4 in the next segment charges",
            vec![enters(60, 10), leaves(90, 11), balance(200, 7, 1)],
            vec![told(200, 1, 90, 200)],
        ),
        route(
            "leaving in the same segment is free",
            vec![enters(60, 10), leaves(90, 10), balance(200, 7, 1)],
            vec![told(200, 1, 60, 0)],
        ),
        route(
            "a new trip forgets the toll that was announced",
            vec![enters(60, 10), enters(121, 11), balance(200, 7, 1)],
            vec![free(7, 121, -1), told(200, 1, 121, 0)],
        ),
        route(
            "another expressway keeps the balance",
            with(&[leaves(150, 11), Row::report(240, 7, 50, 1, 0, 0, at(20, 40)), balance(260, 7, 1)]),
            vec![free(7, 120, -1), free(7, 240, -1), told(260, 1, 240, 200)],
        ),
        route("a vehicle that never reported", vec![enters(60, 10), balance(200, 99, 5)], vec![told(200, 5, 200, 0)]),
    ];
    // Tolls of two expressways are added.
    let mut rows = rows.clone();
    rows.extend(rows.clone().into_iter().map(|row| Row { vid: row.vid + 1000, xway: 1, time: row.time + 180, ..row }));
    let mut answers = entered.clone();
    answers.extend((0..60).map(|car| free(2000 + car, 181, -1)));
    rows.extend(with(&[leaves(150, 11)]));
    answers.extend([TollAnswer::Toll { vid: 7, time: 60, speed: 30, toll: 200 }, free(7, 120, -1)]);
    rows.extend([(240, 10), (270, 11)].map(|(time, segment)| Row { xway: 1, ..enters(time, segment) }));
    answers.extend([TollAnswer::Toll { vid: 7, time: 240, speed: 30, toll: 200 }, free(7, 270, -1)]);
    rows.push(balance(300, 7, 9));
    answers.push(told(300, 9, 270, 400));
    cases.push(case("tolls of two expressways are added", rows, answers));
    cases
}
