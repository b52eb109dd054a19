//! The queries of `tests/slt` as programs: each is read as it was written, and accepted.

use anabranch_engine::{Options, Session};
use anabranch_shards::Layout;
use anabranch_shards::planned::{PlannedShards, read_program};
use arrow::array::AsArray;

/// Queries that are refused when their programs are read or checked: functions that move counters
/// or read a client's settings, lists of plain numerics, partial results whose later steps are
/// planned another way (joins by pairs among them), and casts beside the rows of a function that
/// are named as their columns.
const REFUSED_MAX: usize = 21;

/// Statements and queries of a file that shall succeed: whether it is a query, and the text.
fn records(text: &str) -> Vec<(bool, String)> {
    let mut records = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(head) = lines.next() {
        let is_query = head.starts_with("query ");
        if !(is_query || head.starts_with("statement ")) {
            continue;
        }
        let mut sql = String::new();
        while let Some(line) = lines.next_if(|line| !line.is_empty() && *line != "----") {
            sql += &format!("{line}\n");
        }
        if !head.contains(" error") {
            records.push((is_query, sql));
        }
    }
    records
}

/// What is wrong with the program of a query; `None` if it is right, or the query has none.
fn fault(session: &mut Session, query: &str) -> Option<Result<(), String>> {
    let rows = session.query(&format!("explain (format python) {query}")).ok()?;
    let lines = rows.batches.iter().flat_map(|batch| batch.column(0).as_string_view().iter());
    let program: String = lines.map(|line| line.unwrap().to_owned() + "\n").collect();
    let checked = read_program(&program)
        .and_then(|steps| PlannedShards::new(&steps, session, Layout::flat(2)))
        .and_then(|planned| planned.program.check());
    Some(checked.map_err(|error| format!("{}\n{program}", error.message)))
}

#[test]
fn queries_of_the_records_are_programs_that_are_read_and_accepted() {
    let mut files: Vec<_> = std::fs::read_dir("../../tests/slt").unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut n_programs, mut faults) = (0, Vec::new());
    for file in files {
        let mut session = Session::new(Options::default()).unwrap();
        for (is_query, sql) in records(&std::fs::read_to_string(&file).unwrap()) {
            if !is_query {
                // (What another engine refuses may be refused here too.)
                let _ = session.execute(&sql);
                continue;
            }
            if let Some(found) = fault(&mut session, &sql) {
                n_programs += 1;
                faults.extend(found.err());
            }
        }
    }
    assert!(n_programs > 2_500, "{n_programs} programs");
    assert!(faults.len() <= REFUSED_MAX, "{} of {n_programs} programs:\n{}", faults.len(), faults.join("\n"));
}
