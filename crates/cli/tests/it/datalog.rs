//! `anabranch datalog`.

use std::{fs, path::Path};

use crate::support::*;

const PATHS: &str = ".decl edge(a: symbol, b: symbol)\n.input edge\n.decl path(a: symbol, b: symbol)\n.output path\n\
                     path(a, b) :- edge(a, b).\npath(a, c) :- path(a, b), edge(b, c).\n";

#[test]
fn facts_are_read_and_answers_written_printed_or_asked_for() {
    let place = Place::new();
    place.write("path.dl", PATHS);
    fs::create_dir(place.path().join("facts")).unwrap();
    place.write("facts/edge.facts", "a\tb\nb\tc\nc\td\n");
    for workers in ["0", "1", "2"] {
        assert_eq!(place.run(&["datalog", "path.dl", "--workers", workers, "-F", "facts", "-D", "out"]).good(), "");
        let written = fs::read_to_string(place.path().join("out/path.csv")).unwrap();
        assert_eq!(written, "a\tb\na\tc\na\td\nb\tc\nb\td\nc\td\n");
    }
    let printed = place.run(&["datalog", "path.dl", "-F", "facts", "-D", "-"]);
    assert!(printed.good().starts_with("---------------\npath\na\tb\n===============\na\tb\n"));
    let asked = place.run(&["datalog", "path.dl", "-F", "facts", "-q", "path(\"b\", x)", "-q", "edge(x, \"b\")?"]);
    assert_eq!(asked.good(), "c\nd\na\n");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let place = Place::new();
    place.write("path.dl", format!("{PATHS}path(a, b) :- edge(a, _)."));
    let ran = place.run(&["datalog", "path.dl"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("path.dl:7:1: error: variable b in the head is not bound\n"), "{}", ran.err);
    place.write("path.dl", PATHS);
    let ran = place.run(&["datalog", "path.dl"]);
    assert!(ran.code == 1 && ran.err.contains("cannot open ./edge.facts"), "{}", ran.err);
    let ran = place.run(&["datalog", "none.dl"]);
    assert!(ran.code == 1 && ran.err.contains("cannot read none.dl"), "{}", ran.err);
    place.write("edge.facts", "");
    let ran = place.run(&["datalog", "path.dl", "-q", "pth(x)"]);
    assert!(ran.code == 1 && ran.err.contains("query pth(x): relation pth is not declared"), "{}", ran.err);
}

#[test]
fn the_example_answers() {
    // (The program runs in a folder of its own.)
    let folder = Path::new("../../examples/datalog").canonicalize().unwrap();
    let program = folder.join("flights.dl");
    let (program, folder) = (program.to_str().unwrap(), folder.to_str().unwrap());
    let ran = Place::new().run(&["datalog", program, "-F", folder, "-D", "-"]);
    assert!(ran.good().contains("BOS\tSIN\t2\n") && ran.out.contains("SIN\tZRH\n") && ran.out.contains("JFK\t2\n"));
}
