//! Aggregates of windows that overlap: those over slices and those over rows agree.
//!
//! The oracle joins rows with a list of windows by comparing times, in a session of its own.

use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};

const CREATE: &str = "CREATE TABLE t (id int PRIMARY KEY, k int, x bigint, d numeric(9, 2), b boolean, ts bigint);";

/// Calls that combine.
const CALLS: &[&str] = &[
    "count(*)",
    "count(x)",
    "sum(x)",
    "sum(d)",
    "avg(x)",
    "min(x)",
    "max(d)",
    "bool_or(b)",
    "bool_and(b)",
    "bit_xor(x)",
    "count(*) FILTER (WHERE b)",
    "sum(x) FILTER (WHERE x > 0)",
];

/// A windowed table, and the sizes of its windows.
struct Form {
    call: String,
    size: i64,
    /// Windows begin at multiples of this, from an offset on.
    slide: i64,
    offset: i64,
    /// Windows of one start end at multiples of this.
    step: i64,
}

fn form(rng: &mut Rng) -> Form {
    let (slide, offset) = (rng.between(1, 6), rng.between(0, 4));
    if rng.chance(30) {
        let size = slide * rng.between(2, 4);
        return Form {
            call: format!("CUMULATE(t, ts, {slide}, {size}, {offset})"),
            size,
            slide: size,
            offset,
            step: slide,
        };
    }
    let size = rng.between(1, 4 * slide);
    Form { call: format!("HOP(t, ts, {slide}, {size}, {offset})"), size, slide, offset, step: size }
}

fn calls(rng: &mut Rng) -> String {
    let n = 1 + rng.below(4);
    let chosen = rng.subset(CALLS.len(), n);
    let named = chosen.iter().enumerate().map(|(n, at)| format!("{} AS c{n}", CALLS[*at]));
    named.collect::<Vec<_>>().join(", ")
}

/// The same rows by windows that are listed.
fn listed(form: &Form, columns: &str, calls: &str) -> String {
    let Form { size, slide, offset, step, .. } = form;
    format!(
        "SELECT {columns}, {calls} FROM t JOIN (
             SELECT s * {slide} + {offset} AS window_start, s * {slide} + {offset} + e AS window_end
             FROM generate_series(-60, 60) AS a(s), generate_series({step}, {size}, {step}) AS b(e)) AS w
         ON t.ts >= w.window_start AND t.ts < w.window_end GROUP BY {columns}"
    )
}

fn change(rng: &mut Rng, id: &mut i64) -> String {
    let null_or = |rng: &mut Rng, text: String| if rng.chance(15) { "NULL".to_owned() } else { text };
    match rng.below(5) {
        0 => format!("DELETE FROM t WHERE id % {} = 0", rng.between(2, 5)),
        1 => format!("UPDATE t SET x = x + 1, ts = ts + {} WHERE id % 3 = 1", rng.between(-3, 3)),
        _ => {
            let mut rows = Vec::new();
            for _ in 0..=rng.below(12) {
                *id += 1;
                let x = rng.between(-9, 9).to_string();
                let d = format!("{}.{:02}", rng.between(-99, 99), rng.below(100));
                let b = rng.chance(50).to_string();
                let ts = rng.between(-20, 20).to_string();
                let (k, x, d) = (rng.below(3), null_or(rng, x), null_or(rng, d));
                rows.push(format!("({id}, {k}, {x}, {d}, {}, {})", null_or(rng, b), null_or(rng, ts)));
            }
            format!("INSERT INTO t VALUES {}", rows.join(", "))
        }
    }
}

fn answer(session: &mut Session, query: &str) -> Vec<String> {
    let rows = session.query(query).unwrap_or_else(|error| panic!("{query}: {}", error.message));
    let text = |batch: &arrow::array::RecordBatch, row: usize| {
        let cells = batch.columns().iter();
        let cell = |column: &arrow::array::ArrayRef| {
            arrow::util::display::array_value_to_string(column, row).expect("values have texts")
        };
        cells.map(cell).collect::<Vec<_>>().join(", ")
    };
    let mut all: Vec<String> =
        rows.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch, row))).collect();
    all.sort();
    all
}

fn run(session: &mut Session, script: &str) {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)));
}

#[test]
fn aggregates_of_slices_are_those_of_rows() {
    cases("aggregates of slices", 60, |rng| {
        let form = form(rng);
        let columns = *rng.pick(&["window_start, window_end", "k, window_start, window_end", "window_end", "k"]);
        let calls = calls(rng);
        let sliced = format!("SELECT {columns}, {calls} FROM {} GROUP BY {columns}", form.call);
        let mut session = Session::new(Options { workers: 0, ..Options::default() }).expect("a session begins");
        run(&mut session, CREATE);
        run(&mut session, &format!("CREATE MATERIALIZED VIEW v AS {sliced}"));
        let mut id = 0;
        for _ in 0..6 {
            run(&mut session, &change(rng, &mut id));
            let expected = answer(&mut session, &listed(&form, columns, &calls));
            assert_eq!(answer(&mut session, "SELECT * FROM v"), expected, "{sliced}");
            assert_eq!(answer(&mut session, &sliced), expected, "{sliced}");
        }
    });
}

fn explained(query: &str) -> String {
    let mut session = Session::new(Options { workers: 0, ..Options::default() }).expect("a session begins");
    run(&mut session, CREATE);
    answer(&mut session, &format!("EXPLAIN {query}")).join("\n")
}

#[test]
fn only_calls_that_combine_are_computed_from_slices() {
    let of =
        |calls: &str| explained(&format!("SELECT k, window_end, {calls} FROM HOP(t, ts, 2, 6) GROUP BY k, window_end"));
    assert_eq!(of("count(*), avg(x)").matches("Aggregate").count(), 2);
    for calls in ["count(DISTINCT x)", "count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "sum(x::float8)"] {
        assert_eq!(of(calls).matches("Aggregate").count(), 1, "{calls}");
    }
    let by_time = explained("SELECT ts, window_end, count(*) FROM HOP(t, ts, 2, 6) GROUP BY ts, window_end");
    assert_eq!(by_time.matches("Aggregate").count(), 1);
}

#[test]
fn a_sum_beyond_bigint_in_a_slice_is_no_error_of_its_windows() {
    let mut session = Session::new(Options { workers: 0, ..Options::default() }).expect("a session begins");
    run(&mut session, "CREATE TABLE t (x bigint, ts bigint)");
    run(
        &mut session,
        "CREATE MATERIALIZED VIEW v AS SELECT window_end, sum(x) AS s FROM HOP(t, ts, 2, 4) GROUP BY window_end",
    );
    let most = i64::MAX;
    run(&mut session, &format!("INSERT INTO t VALUES ({most}, 0), ({most}, 1), (-{most}, 2), (-{most}, 3)"));
    let refused = session.query("SELECT * FROM v WHERE window_end = 2").expect_err("the first window is out of range");
    assert!(refused.message.contains("out of range"), "{}", refused.message);
    run(&mut session, "DELETE FROM t WHERE ts = 0; DELETE FROM t WHERE ts = 2");
    assert_eq!(
        answer(&mut session, "SELECT * FROM v"),
        [format!("2, {most}"), "4, 0".to_owned(), format!("6, -{most}")]
    );
}
