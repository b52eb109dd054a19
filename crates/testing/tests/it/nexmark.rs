//! The queries of Nexmark: kept current commit by commit, and asked once at the end.

use anabranch_engine::{Options, Session};
use anabranch_testing::nexmark::Stream;
use anabranch_testing::nexmark::queries::QUERIES;
use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;

const EVENTS: u64 = 6_000;

fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let line = |batch: &RecordBatch, row: usize| {
        let cells = batch.columns().iter();
        let cells = cells.map(|column| array_value_to_string(column, row).expect("values have texts"));
        cells.collect::<Vec<_>>().join(" ")
    };
    let mut all: Vec<String> =
        batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| line(batch, row))).collect();
    all.sort_unstable();
    all
}

#[test]
fn views_have_the_answers_of_queries_asked_once() {
    let mut session = Session::new(Options { workers: 0, ..Options::default() }).expect("a session begins");
    for stream in [Stream::Person, Stream::Auction, Stream::Bid, Stream::Side] {
        session.execute(&stream.create(true)).unwrap_or_else(|error| panic!("{}: {}", stream.name(), error.message));
    }
    session.insert("side", &Stream::Side.rows(0, 0)).expect("rows fit their relation");
    for query in &QUERIES {
        let create = format!("create materialized view q{} as {}", query.number, query.ours);
        session.execute(&create).unwrap_or_else(|error| panic!("q{}: {}", query.number, error.message));
    }
    for from in (0..EVENTS).step_by(700) {
        for stream in [Stream::Person, Stream::Auction, Stream::Bid] {
            let rows = stream.rows(from, (from + 700).min(EVENTS));
            session.insert(stream.name(), &rows).expect("rows fit their relation");
        }
    }
    for query in &QUERIES {
        let kept = session.query(&format!("select * from q{}", query.number)).expect("a view can be read");
        let asked = session.query(query.ours).unwrap_or_else(|error| panic!("q{}: {}", query.number, error.message));
        assert!(kept.num_rows() > 0, "q{} has no rows", query.number);
        assert_eq!(lines(&kept.batches), lines(&asked.batches), "q{}", query.number);
    }
}
