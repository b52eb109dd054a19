//! R5: the counts of the official sample.

use anabranch_linear_road::answer::TollAnswer;
use anabranch_linear_road::history::History;
use anabranch_linear_road::reference::answers;

use crate::support::sample;

#[test]
fn r5_the_official_sample_gives_its_counts() {
    // (The data is not part of the repository: without it there is nothing to compare.)
    let Some(seconds) = sample("official_first320s.dat") else { return };
    let answers = answers(seconds, History::default());
    let tolls = answers.iter().filter(|answer| matches!(answer, TollAnswer::Toll { toll: 0, .. })).count();
    let accidents: Vec<(u32, u8)> = answers
        .iter()
        .filter_map(|answer| match answer {
            TollAnswer::Accident { time, segment, direction: 0, .. } => Some((*time, *segment)),
            _ => None,
        })
        .collect();
    let balances = answers.iter().filter(|answer| matches!(answer, TollAnswer::Balance { balance: 0, .. })).count();
    assert_eq!((tolls, accidents.len(), balances, answers.len()), (9147, 267, 114, 9147 + 267 + 114));
    assert!(accidents.iter().all(|(time, segment)| *time >= 180 && *segment == 8));
}

#[test]
fn r5_the_smoke_file_is_read() {
    let Some(seconds) = sample("datafile20seconds.dat") else { return };
    let rows: usize = seconds.iter().map(|second| second.rows.len()).sum();
    assert_eq!(rows, 280);
}
