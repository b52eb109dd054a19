//! Facts from files and answers to files.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_datalog::{Folders, Program, Progress};
use anabranch_engine::Error;

use crate::host::session;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anabranch-datalog-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(folder: &Path, text: &str) -> Result<(String, Vec<Progress>), Error> {
    let folders = Folders { facts: folder.to_path_buf(), output: Some(folder.join("out")) };
    let (mut out, mut progress) = (vec![], vec![]);
    let program = Program::parse(text)?;
    program.run(&mut session(), &folders, &mut out, &mut |next| progress.push(next))?;
    Ok((String::from_utf8(out).unwrap(), progress))
}

#[test]
fn facts_come_in_and_answers_go_out_in_all_formats() {
    let folder = folder("formats");
    fs::write(folder.join("a.facts"), "1\tx y\n2\t\n").unwrap();
    fs::write(folder.join("b.csv"), "n,skipped,s\r\n3,_,\"q\"\"t,\r\nu\"\r\n").unwrap();
    fs::write(folder.join("l.facts"), "[1, [a, b, nil]]|$Two([-2, nil], x\"y)\n").unwrap();
    let text = ".type L = [n: number, t: S]\n.type S = [a: symbol, b: symbol, c: S]\n.type P = [n: number, t: P]\n\
        .type T = One {} | Two {p: P, s: symbol}\n\
        .decl a(n: number, s: symbol)\n.input a\n\
        .decl b(s: symbol, n: unsigned)\n.input b(IO=file, filename=\"b.csv\", headers=true, rfc4180=true, columns=\"2:0\")\n\
        .decl l(l: L, t: T)\n.input l(delimiter=\"|\")\n\
        .decl o(n: number, s: symbol)\no(n, s) :- a(n, s).\no(utoi(n), s) :- b(s, n).\n\
        .output o, l\n.output o(filename=\"sub/o2.csv\", delimiter=\";\", headers=true)\n.output l(IO=stdout)\n\
        .output o(filename=\"o3.csv\", rfc4180=true)\n.printsize o";
    let (out, progress) = run(&folder, text).unwrap();
    assert_eq!(
        out,
        "---------------\nl\nl\tt\n===============\n[1, [a, b, nil]]\t$Two([-2, nil], x\"y)\n===============\no\t3\n"
    );
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).unwrap();
    assert_eq!(read("o.csv"), "1\tx y\n2\t\n3\tq\"t,\nu\n");
    assert_eq!(read("sub/o2.csv"), "n;s\n1;x y\n2;\n3;q\"t,\nu\n");
    assert_eq!(read("o3.csv"), "\"1\",\"x y\"\n\"2\",\"\"\n\"3\",\"q\"\"t,\nu\"\n");
    assert_eq!(read("l.csv"), "[1, [a, b, nil]]\t$Two([-2, nil], x\"y)\n");
    assert!(progress.contains(&Progress::Read { relation: "a".to_owned(), facts: 2 }));
    assert!(progress.contains(&Progress::Written { relation: "o".to_owned(), rows: 3 }));
}

#[test]
fn facts_that_do_not_fit_are_told_with_file_and_line() {
    let folder = folder("bad");
    let program = |of: &str| format!(".type R = [a: number, r: R]\n.decl a(n: {of}, s: symbol)\n.input a\n.output a");
    for (of, facts, message) in [
        ("number", "1\tx\n2x\ty\n", "a.facts:2: '2x' is no number (attribute n of a)"),
        ("number", "1\n", "a.facts:1: the line has 1 fields, but attribute s of a wants another"),
        ("number", "1\tx\ty\n", "a.facts:1: the line has 3 fields, but relation a has 2 attributes"),
        ("unsigned", "-1\tx\n", "a.facts:1: -1 is not an unsigned number (attribute n of a)"),
        ("float", "e\tx\n", "a.facts:1: 'e' is no float (attribute n of a)"),
        ("R", "[1, [2, nil]\tx\n", "a.facts:1: a record is not closed, or has too many values (attribute n of a)"),
        ("R", "[1, 2]\tx\n", "a.facts:1: '2]' is no record (attribute n of a)"),
    ] {
        fs::write(folder.join("a.facts"), facts).unwrap();
        let error = run(&folder, &program(of)).unwrap_err();
        assert!(error.message.ends_with(message), "{}", error.message);
    }
    fs::remove_file(folder.join("a.facts")).unwrap();
    let error = run(&folder, &program("number")).unwrap_err();
    assert!(error.message.contains("cannot open") && error.hint.unwrap().contains("-F"));
    let deep = format!("{}nil{}\tx\n", "[1, ".repeat(100_000), "]".repeat(100_000));
    fs::write(folder.join("a.facts"), deep).unwrap();
    assert!(run(&folder, &program("R")).unwrap_err().message.contains("nested more than"));
}

#[test]
fn parameters_that_are_not_there_are_refused_by_name() {
    for (parameters, message, hint) in [
        ("IO=sqlite", "IO=sqlite is not supported", "IO=file and IO=stdin are"),
        ("compress=true", "compressed files are not supported", "gunzip"),
        ("filname=\"x\"", "there is no parameter filname", "Did you mean filename?"),
        ("columns=\"a\"", "columns are \"a\"", "from 0"),
        ("headers=yes", "headers is yes", "true or false"),
        ("delimiter=\"\"", "the delimiter is empty", ""),
    ] {
        let error = run(&folder("parameters"), &format!(".decl a(n: number)\n.input a({parameters})")).unwrap_err();
        assert_eq!(error.message, message);
        assert!(error.position.is_some() && error.hint.unwrap_or_default().contains(hint));
    }
}
