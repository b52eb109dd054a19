//! The Linear Road benchmark, into a pipe.

use crate::support::*;

#[test]
fn traffic_is_answered_and_checked() {
    let arguments = ["linear-road", "--expressways", "1.5", "--minutes", "2", "--dense", "--check", "--output", "out"];
    let place = Place::new();
    let ran = place.run(&[&arguments[..], &["--workers", "2", "--skip", "60"]].concat());
    let out = ran.good();
    assert!(out.contains("L = 1.5  2 shards  replay, lag modelled"), "{out}");
    assert!(out.contains("minute   2: "), "{out}");
    assert!(out.contains("all right"), "{out}");
    let answers = std::fs::read_to_string(place.path().join("out")).unwrap();
    assert!(answers.lines().count() > 1000, "{}", answers.lines().count());
    assert!(answers.lines().all(|line| ["0,", "1,", "2,", "3,"].iter().any(|kind| line.starts_with(kind))));
}

#[test]
fn rows_of_a_file_are_answered() {
    let place = Place::new();
    place.write(
        "rows",
        "0,0,107,32,0,0,0,10,53320,-1,-1,-1,-1,-1,-1\n2,1,107,-1,-1,-1,-1,-1,-1,5,-1,-1,-1,-1,-1\n\
         3,1,107,-1,0,-1,-1,-1,-1,6,-1,-1,-1,-1,9\n",
    );
    place.write("past", "107,9,0,44\n");
    let arguments = ["linear-road", "--input", "rows", "--history", "past", "--output", "out", "--form", "retail"];
    place.run(&[&arguments[..], &["--keep", "expressway", "--check"]].concat()).good();
    let answers = std::fs::read_to_string(place.path().join("out")).unwrap();
    // (The time of delivery is the third column.)
    let mut rows: Vec<String> = answers
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields.remove(if line.starts_with('0') { 3 } else { 2 });
            fields.join(",")
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, ["0,107,0,-1,0", "2,1,0,5,0", "3,1,6,44"]);
}

#[test]
fn a_file_that_is_not_in_order_is_named_with_its_line() {
    let place = Place::new();
    place.write("rows", "0,9,107,32,0,0,0,10,53320,-1,-1,-1,-1,-1\n");
    let ran = place.run(&["linear-road", "--input", "rows"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("cannot read rows: line 1: a row has 15 fields, but this one has 14"), "{}", ran.err);
    let wrong: [(&[&str], i32, &str); 5] = [
        (&["--input", "nowhere"], 1, "cannot read nowhere"),
        (&["--input", "rows", "--dense"], 2, "cannot be used with"),
        (&["--input", "rows", "--skip", "5"], 2, "cannot be used with"),
        (&["--skip", "-1"], 2, "a whole number of seconds from 0 to 604800"),
        (&["--skip", "9999999999"], 2, "a whole number of seconds from 0 to 604800"),
    ];
    for (arguments, code, word) in wrong {
        let ran = place.run(&[&["linear-road"], arguments].concat());
        assert!(ran.code == code && ran.err.contains(word), "{arguments:?}: {}", ran.err);
    }
    let ran = place.run(&["linear-road", "--expressways", "0.3"]);
    assert!(ran.code == 2 && ran.err.contains("in steps of 0.5"), "{}", ran.err);
}
