//! Bad programs and their messages, in `tests/bad.txt`. `UPDATE=1` writes the messages of now.

use std::fs;
use std::path::Path;

use anabranch_datalog::{Program, render};

#[test]
fn bad_programs_are_told_what_is_wrong_and_what_to_write() {
    let path = Path::new("tests/bad.txt");
    let text = fs::read_to_string(path).unwrap();
    let mut out = String::new();
    let mut n_cases = 0;
    for case in text.split("==== ").skip(1) {
        let (title, rest) = case.split_once('\n').unwrap();
        let program = rest.split("\n---- ").next().unwrap().trim_end();
        let error = Program::parse(program).and_then(|program| program.check());
        let error = error.expect_err(&format!("{title} is refused"));
        assert!(error.position.is_some(), "{title} has a place: {error}");
        out.push_str(&format!("==== {title}\n{program}\n---- \n{}\n\n", render("bad.dl", program, &error)));
        n_cases += 1;
    }
    assert!(n_cases >= 50, "the cases are there");
    match std::env::var_os("UPDATE") {
        Some(_) => fs::write(path, out).unwrap(),
        None => assert_eq!(text, out),
    }
}
