//! The queries of `tests/slt` once more, each as a materialized view.
//!
//! A view is made as soon as its tables are there, so mostly before their rows; it is kept through
//! the inserts, updates and deletes that follow, and read where the record of its query stands.
//! Queries that no view can be made of (of volatile functions, of settings, with two columns of one
//! name) are left out, as are those in transactions.
//!
//! A statement that the views stand in the way of (DROP, ALTER) is run once they are dropped; then
//! they are made again. So are they where a setting changes that texts depend on.

use std::collections::BTreeMap;

use anabranch_engine::{Options, Outcome, Session};
use sqllogictest::{
    Condition, Connection, DefaultColumnType, QueryExpect, Record, SortMode, StatementExpect, parse_file,
};

use super::format::rows_of;

/// A query of the file.
struct Asked {
    sql: String,
    expected: Vec<String>,
}

/// A session with the views that could be made.
struct Views {
    session: Session,
    /// Queries that are still to come, by their place in the file.
    waiting: BTreeMap<usize, Asked>,
    made: BTreeMap<usize, Asked>,
    is_in_transaction: bool,
}

impl Views {
    fn name(at: usize) -> String {
        format!("slt_view_{at}")
    }

    /// Makes the views that can be made by now.
    fn make(&mut self) {
        if self.is_in_transaction {
            return;
        }
        for (at, asked) in std::mem::take(&mut self.waiting) {
            let create = format!("CREATE MATERIALIZED VIEW {} AS {}", Views::name(at), asked.sql);
            match self.session.execute(&create) {
                Ok(_) => self.made.insert(at, asked),
                Err(_) => self.waiting.insert(at, asked),
            };
        }
    }

    fn drop_all(&mut self) {
        for (at, asked) in std::mem::take(&mut self.made) {
            self.drop_view(at);
            self.waiting.insert(at, asked);
        }
    }

    fn drop_view(&mut self, at: usize) {
        self.session.execute(&format!("DROP MATERIALIZED VIEW {}", Views::name(at))).expect("a view is dropped");
    }

    fn statement(&mut self, sql: &str, shall_fail: bool) {
        let first = first_word(sql);
        let is_setting = matches!(first.as_str(), "SET" | "RESET" | "DISCARD") && !self.is_in_transaction;
        if is_setting {
            self.drop_all();
        }
        if self.session.execute(sql).is_err() && !shall_fail && !self.is_in_transaction {
            self.drop_all();
            // (What fails then is told by the other tests of the file.)
            let _ = self.session.execute(sql);
        }
        match first.as_str() {
            "BEGIN" | "START" => self.is_in_transaction = true,
            "COMMIT" | "END" | "ROLLBACK" | "ABORT" if !sql.to_uppercase().contains(" TO ") => {
                self.is_in_transaction &= sql.to_uppercase().contains(" AND CHAIN");
            }
            _ => {}
        }
        let is_data = matches!(first.as_str(), "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "TRUNCATE");
        if !is_data || self.made.is_empty() {
            self.make();
        }
    }

    /// What a view has where it differs from the record.
    fn difference(&mut self, at: usize) -> Option<String> {
        if self.is_in_transaction {
            return None;
        }
        let asked = self.made.remove(&at)?;
        let found = match self.session.execute(&format!("SELECT * FROM {}", Views::name(at))) {
            Ok(mut outcomes) => match outcomes.pop() {
                Some(Outcome::Rows(rows)) => Ok(rows_of(&rows.batches)),
                _ => Ok(vec![]),
            },
            Err(error) => Err(error.message),
        };
        self.drop_view(at);
        let lines = |rows: Vec<String>| {
            let mut lines: Vec<String> =
                rows.iter().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            lines.sort_unstable();
            lines
        };
        let wanted = lines(asked.expected);
        match found {
            Ok(rows) => {
                let found = lines(rows.into_iter().map(|row| row.join(" ")).collect());
                (found != wanted)
                    .then(|| format!("{}\nwanted\n{}\nfound\n{}", asked.sql, wanted.join("\n"), found.join("\n")))
            }
            Err(error) => Some(format!("{}\nfails: {error}", asked.sql)),
        }
    }
}

/// The first word of a statement.
fn first_word(sql: &str) -> String {
    let word = sql.split_whitespace().next().unwrap_or_default();
    word.trim_end_matches(';').to_uppercase()
}

/// Whether a record is for this engine, and for its one session.
fn is_for_us(conditions: &[Condition], connection: &Connection) -> bool {
    let is_skipped =
        conditions.iter().any(|condition| matches!(condition, Condition::OnlyIf { label } if label != "anabranch"));
    !is_skipped && matches!(connection, Connection::Default)
}

/// The queries that a view may stand for, by their place.
fn asked(records: &[Record<DefaultColumnType>]) -> BTreeMap<usize, Asked> {
    let query = |(at, record): (usize, &Record<DefaultColumnType>)| {
        let Record::Query { conditions, connection, sql, expected, .. } = record else { return None };
        let QueryExpect::Results { sort_mode, results, .. } = expected else { return None };
        let first = first_word(sql);
        let is_query = matches!(first.as_str(), "SELECT" | "WITH" | "VALUES" | "TABLE") || first.starts_with('(');
        // (A constant may be about a table that is not there yet.)
        let text = sql.to_uppercase();
        // (A loop that a LIMIT ends has no end as a view.)
        let ends = !(text.contains("RECURSIVE") && text.contains("LIMIT"));
        let reads = text.contains("FROM") && ends;
        let is_plain = is_query && reads && !matches!(sort_mode, Some(SortMode::ValueSort));
        let asked = Asked { sql: sql.clone(), expected: results.clone() };
        (is_plain && is_for_us(conditions, connection)).then_some((at, asked))
    };
    records.iter().enumerate().filter_map(query).collect()
}

/// Files whose names mean other tables in the end than when views are made.
const LEFT_OUT: [&str; 1] = ["definitions"];

/// Files of which few queries can be views: of the system's relations and of expressions that stay.
const FEW: [&str; 2] = ["expression_indexes", "system"];

/// Runs a file; panics with the queries whose views have other rows.
pub(super) fn check(name: &str) {
    if LEFT_OUT.contains(&name) {
        return;
    }
    let path = super::folder().join(format!("{name}.slt"));
    let records = parse_file::<DefaultColumnType>(&path).expect("the file parses");
    let session = Session::new(Options { workers: 0, ..Options::default() }).expect("a session begins");
    let waiting = asked(&records);
    let mut views = Views { session, waiting, made: BTreeMap::new(), is_in_transaction: false };
    let (n_asked, mut n_made, mut failures) = (views.waiting.len(), 0, Vec::new());
    views.make();
    for (at, record) in records.iter().enumerate() {
        match record {
            Record::Statement { conditions, connection, sql, expected, .. } if is_for_us(conditions, connection) => {
                views.statement(sql, matches!(expected, StatementExpect::Error(_)));
            }
            Record::Query { conditions, connection, sql, .. } if is_for_us(conditions, connection) => {
                n_made += usize::from(views.made.contains_key(&at) && !views.is_in_transaction);
                failures.extend(views.difference(at));
                views.waiting.remove(&at);
                // (A query may change what comes: the next number of a sequence.)
                let _ = views.session.execute(sql);
            }
            _ => {}
        }
    }
    eprintln!("{name}.slt: {n_made} of {n_asked} queries as views");
    // (4,088 of 4,539 in all: a session that made none would find no fault.)
    assert!(3 * n_made >= n_asked || FEW.contains(&name), "{name}.slt: {n_made} of {n_asked} queries are views");
    assert!(
        failures.is_empty(),
        "{name}.slt: {} of {n_made} views differ\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
