//! TPC-H in small: what the 22 views have become, change by change, is what the same questions
//! asked afresh answer.
//!
//! Both sides are ours here, so this needs no other database; `tests/compare/tpch.py` compares with
//! DuckDB.

use anabranch_engine::{Options, Rows, Session};
use anabranch_testing::row::{Contents, Row};
use anabranch_testing::tpch::changes::PHASES;
use anabranch_testing::tpch::{INDEXES, Interleaved, TABLES, Table, queries};

/// The smallest at which the generator keeps the primary keys (with ten suppliers it gives a part
/// one of them twice).
const SCALE: f64 = 0.01;

fn contents(rows: &Rows) -> Contents {
    let of_batch = |batch: &arrow::array::RecordBatch| {
        let row = |index| (Row::of_columns(batch.columns(), index), 1);
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    rows.batches.iter().flat_map(of_batch).collect()
}

fn session_with_views(workers: usize) -> Session {
    let mut session = Session::new(Options { workers, ..Options::default() }).expect("workers start");
    let tables = TABLES.iter().map(|table| table.create.to_string());
    let views = (1..=22).map(|n| format!("create materialized view q{n:02} as {}", queries::query(n, SCALE)));
    for statement in tables.chain(INDEXES.map(String::from)).chain(views) {
        session.execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    session
}

fn views_equal_questions(workers: usize, batch_rows: usize) {
    let mut session = session_with_views(workers);
    let tables: Vec<&'static Table> = TABLES.iter().collect();
    for (table, batch) in Interleaved::new(&tables, SCALE, batch_rows, 11) {
        session.insert(table.name, &batch).expect("generated rows fit their table");
    }
    let mut answered = 0;
    for phase in PHASES {
        for statement in phase.statements {
            session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
        for n in 1..=22 {
            let view = session.query(&format!("select * from q{n:02}")).expect("views can be read");
            let afresh = session.query(&queries::query(n, SCALE)).expect("questions can be asked");
            let (view, afresh) = (contents(&view), contents(&afresh));
            assert!(
                view == afresh,
                "query {n} after {}: the view has (+) and lacks (-):\n{}",
                phase.name,
                view.difference(&afresh)
            );
            answered += usize::from(!view.is_empty());
        }
    }
    assert!(answered > 44, "only {answered} of 88 answers have rows");
}

#[test]
fn tpch_views_equal_questions_on_the_callers_thread() {
    views_equal_questions(0, 1000);
}

#[test]
fn tpch_views_equal_questions_on_two_workers() {
    views_equal_questions(2, 9000);
}
