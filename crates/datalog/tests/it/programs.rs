//! The programs in `tests/programs`: each with what it prints, in the file beside it. `UPDATE=1`
//! writes what they print now; the answers of documented examples are those of the documentation.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_datalog::{Folders, Host, Program, render};

use crate::host::{ModelHost, session};

fn folder() -> PathBuf {
    Path::new("tests/programs").to_path_buf()
}

/// What a program prints, or the error that it ends with.
fn printed(text: &str, host: &mut impl Host) -> String {
    let folders = Folders { facts: folder().join("facts"), output: None };
    let mut out = vec![];
    let ran = Program::parse(text).and_then(|program| program.run(host, &folders, &mut out, &mut |_| {}));
    let mut out = String::from_utf8(out).unwrap();
    if let Err(error) = ran {
        out.push_str(&render("program", text, &error));
        out.push('\n');
    }
    out
}

fn check(run: impl Fn(&str) -> String) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "dl"));
    paths.sort();
    assert!(paths.len() >= 15, "the programs are there");
    let mut wrong = vec![];
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let out = run(&text);
        let expected = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &out).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != out {
            wrong.push(format!("{}:\n{out}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documented_programs_print_what_is_documented_in_the_model() {
    check(|text| printed(text, &mut ModelHost::new()));
}

#[test]
fn documented_programs_print_what_is_documented_in_the_engine() {
    check(|text| printed(text, &mut session()));
}
