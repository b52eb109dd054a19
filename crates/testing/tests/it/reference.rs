//! What docs/sql.md says: each function that is listed answers, and each refusal has its SQLSTATE
//! and PostgreSQL's kind of words.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anabranch_engine::{Error, Options, Session};

use crate::library_words::library_word;

fn root() -> PathBuf {
    Path::new("../..").to_path_buf()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Lines that are no comment.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn session() -> Session {
    let mut session = Session::new(Options::default()).expect("a session starts");
    let script = "CREATE TABLE t (id int, k int, n numeric(8,2), s text, d date, ts timestamp, r int[], j jsonb);
         CREATE TABLE u (id int, k int, s text);
         CREATE VIEW v AS SELECT id FROM t;
         CREATE SEQUENCE numbers; CREATE TABLE numbered (id serial);
         INSERT INTO t VALUES (1, 1, 1.5, 'a', '2024-01-01', '2024-01-01', '{1}', '{}'),
                              (2, 1, 2.5, 'b', '2024-01-02', '2024-01-02', '{2}', '{}')";
    session.execute(script).expect("the tables are made");
    session
}

/// The functions that the table of chapter 9 lists.
fn listed() -> BTreeSet<String> {
    let text = read("docs/sql.md");
    let from = text.find("## 5. Functions").expect("the page has the chapter");
    let to = from + text[from..].find("Refused:").expect("the chapter ends with what is refused");
    let mut names = BTreeSet::new();
    for row in text[from..to].lines().filter(|line| line.starts_with('|')) {
        for name in row.split('`').skip(1).step_by(2) {
            let is_function = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            if is_function {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[test]
fn each_function_that_is_listed_answers() {
    let text = read("tests/functions.txt");
    let examples: Vec<(&str, &str)> =
        lines(&text).map(|line| line.split_once(' ').expect("a name and an example")).collect();
    let known: BTreeSet<String> = examples.iter().map(|(name, _)| (*name).to_owned()).collect();
    let without: Vec<String> = listed().difference(&known).cloned().collect();
    assert!(without.is_empty(), "no example in tests/functions.txt of {without:?}");
    let mut session = session();
    for (name, example) in examples {
        let example = example.trim();
        let sql = match example.starts_with("FROM ") {
            true => format!("SELECT * {example}"),
            false => format!("SELECT {example} AS q FROM (VALUES (1, 2), (3, 5)) AS t(i, j)"),
        };
        let answer = session.query(&sql).unwrap_or_else(|error| panic!("{name}: {sql}: {}", error.render(&sql)));
        assert!(answer.num_rows() > 0, "{name}: {sql} has no row");
    }
}

fn shown(error: &Error) -> String {
    let parts = [Some(&error.message), error.detail.as_ref(), error.hint.as_ref()];
    parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("; ")
}

#[test]
fn each_refusal_has_its_code_and_no_word_of_a_library() {
    let text = read("tests/refusals.txt");
    let mut session = session();
    let mut wrong = Vec::new();
    for line in lines(&text) {
        let (code, sql) = line.split_once(" | ").expect("a code and a statement");
        let error = match session.execute(sql) {
            Ok(_) => {
                wrong.push(format!("{sql}\n    is answered, not refused with {code}"));
                continue;
            }
            Err(error) => error,
        };
        let told = shown(&error);
        if error.sqlstate() != code {
            wrong.push(format!("{sql}\n    has {}, not {code}: {told}", error.sqlstate()));
        }
        if let Some(word) = library_word(&told) {
            wrong.push(format!("{sql}\n    says {word:?}: {told}"));
        }
        if code == "0A000" && error.hint.is_none() {
            wrong.push(format!("{sql}\n    does not say what to write instead: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Columns of a select list that have no name are called as in PostgreSQL, on their own and as
/// columns of a subquery.
#[test]
fn columns_without_a_name_are_called_as_in_postgresql() {
    let mut session = Session::new(Options::default()).expect("a session starts");
    session.execute("CREATE TABLE t (a int, s text, d timestamp, r int[])").expect("the table is made");
    let mut wrong = vec![];
    for line in lines(&read("tests/column_names.txt")) {
        let (name, expression) = line.split_once(" | ").expect("a name and an expression");
        let group = if expression.starts_with("grouping") { " GROUP BY a" } else { "" };
        match session.query(&format!("SELECT {expression} FROM t{group}")) {
            Ok(rows) if rows.schema.field(0).name() == name => {}
            Ok(rows) => wrong.push(format!("{expression}: {} instead of {name}", rows.schema.field(0).name())),
            Err(error) => wrong.push(format!("{expression}: {}", error.message)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
