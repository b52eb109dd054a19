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

/// Traffic of one direction, in which answers of all kinds come up with some seeds, such as 4.
const MADE: [&str; 7] = ["linear-road", "--dense", "--expressways", "0.5", "--minutes", "5", "--seed"];

#[test]
fn rows_history_and_answers_are_files_that_judge_each_other() {
    let place = Place::new();
    let files = ["4", "--write-rows", "rows", "--write-history", "past", "--output", "ours"];
    place.run(&[&MADE[..], &files].concat()).good();
    let of_file = ["linear-road", "--input", "rows", "--history", "past"];
    place.run(&[&of_file[..], &["--output", "again", "--keep", "expressway", "--check"]].concat()).good();
    let judged: [&[&str]; 3] = [
        &[&of_file[..], &["--judge", "again"]].concat(),
        &[&MADE[..], &["4", "--judge", "ours"]].concat(),
        &["linear-road", "--judge", "again", "--against", "ours"],
    ];
    for arguments in judged {
        let ran = place.run(arguments);
        assert!(ran.good().ends_with("all right\n"), "{arguments:?}: {}", ran.out);
        for kind in ["tolls", "accidents", "balances", "expenditures"] {
            let line = ran.out.lines().find(|line| line.starts_with(kind)).unwrap();
            let counts: Vec<u64> = line.split_whitespace().skip(1).map(|count| count.parse().unwrap()).collect();
            assert!(counts[0] > 5 && counts[0] == counts[1] + counts[2], "{line}");
        }
    }
    // (Traffic of another seed has other answers.)
    let ran = place.run(&[&MADE[..], &["5", "--judge", "ours"]].concat());
    assert!(ran.code == 1 && ran.out.ends_with("not right\n"), "{}", ran.out);
}

#[test]
fn answers_that_are_wrong_missing_extra_twice_or_late_are_told() {
    let place = Place::new();
    place.write("ours", "0,7,65,65.5,30,200\n0,8,65,65.5,30,200\n2,70,70.5,1,65,0\n3,70,70.5,2,44\n");
    let theirs = "0,7,65,71,31,200\n0,7,65,66,31,200\n0,9,65,66,30,200\n2,70,70.5,1,40,0\n3,70,70.5,2,45\n";
    place.write("theirs", theirs);
    let ran = place.run(&["linear-road", "--judge", "theirs", "--against", "ours"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "theirs against the answers of ours");
    let expected = [
        "answers         expected      equal tolerated   wrong missing   extra   twice    late",
        "tolls                  2          0         1       0       1       1       1       1",
        "accidents              0          0         0       0       0       0       0       0",
        "balances               1          0         1       0       0       0       0       0",
        "expenditures           1          0         0       1       0       0       0       0",
    ];
    assert_eq!(lines[2..7], expected, "{}", ran.out);
    assert!(ran.out.contains("missing: Toll { vid: 8, time: 65, speed: 30, toll: 200 }"), "{}", ran.out);
    assert!(ran.out.ends_with("not right\n"), "{}", ran.out);
}

#[test]
fn files_that_are_no_answers_are_named_with_line_and_way_out() {
    let place = Place::new();
    place.write("good", "1,65,66,7,8\n");
    place.write("bad", "1,65,66,7,8\n1,65,66,0,8,1,7\n");
    let wrong: [(&[&str], i32, &[&str]); 7] = [
        (&["--judge", "nowhere"], 1, &["cannot read nowhere"]),
        (
            &["--judge", "bad", "--against", "good"],
            1,
            &["cannot read bad: line 2: an output of type 1 has 5 fields", "--form retail"],
        ),
        (
            &["--judge", "good", "--against", "bad", "--form", "retail"],
            1,
            &["cannot read good: line 1", "--form official"],
        ),
        (&["--judge", "good", "--input", "bad"], 1, &["cannot read bad: line 1: a row has 15 fields"]),
        (&["--against", "good"], 2, &["--judge"]),
        (&["--judge", "good", "--check"], 2, &["cannot be used with"]),
        (&["--input", "rows", "--write-rows", "out"], 2, &["cannot be used with"]),
    ];
    for (arguments, code, words) in wrong {
        let ran = place.run(&[&["linear-road"], arguments].concat());
        let is_told = words.iter().all(|word| ran.err.contains(word));
        assert!(ran.code == code && is_told, "{arguments:?}: {} {}", ran.code, ran.err);
    }
    let ran = place.run(&["linear-road", "--minutes", "1", "--write-rows", "no/where"]);
    assert!(ran.code == 1 && ran.err.contains("cannot write no/where"), "{}", ran.err);
}
