//! `SPLIT` in FROM: each row in its branches, as it comes and goes.
//!
//! The oracle joins rows with a list of the branches, in the same session.

use anabranch_engine::{Options, Session};
use anabranch_testing::rng::{Rng, cases};

const CREATE: &str = "CREATE TABLE t (id int PRIMARY KEY, k int, x int, s text);";

/// Routes in a split of so many branches, NULL where a column is.
fn route(rng: &mut Rng, width: i64) -> String {
    match rng.below(3) {
        0 => format!("abs(k) % {width}"),
        1 => format!("CASE WHEN x > 3 THEN NULL WHEN id % 2 = 0 THEN {} ELSE (k * k + x * x) % {width} END", width - 1),
        _ => format!("id % {width}"),
    }
}

/// Conditions of rows for all branches.
const BROADCASTS: &[&str] =
    &["s = 'all'", "x IS NULL", "k = 3 OR s IS NULL", "false", "NULL", "k > (SELECT avg(k) FROM t)"];

/// The same rows by a list of branches.
fn listed(route: &str, broadcast: &str, width: i64) -> String {
    format!(
        "SELECT t.*, g.n AS branch FROM t JOIN generate_series(0, {width} - 1) AS g(n)
         ON ({broadcast}) IS TRUE OR (({broadcast}) IS NOT TRUE AND g.n = {route})"
    )
}

fn change(rng: &mut Rng, id: &mut i64) -> String {
    match rng.below(5) {
        0 => format!("DELETE FROM t WHERE id % {} = 0", rng.between(2, 5)),
        1 => format!("UPDATE t SET k = k + 1, s = 'all' WHERE id % 5 = {}", rng.between(0, 4)),
        _ => {
            let rows: Vec<String> = (0..=rng.below(15))
                .map(|_| {
                    *id += 1;
                    let mut cell = |text: String| if rng.chance(15) { "NULL".to_owned() } else { text };
                    let (k, x) = (cell((*id * 7 % 11 - 4).to_string()), cell((*id % 9 - 4).to_string()));
                    let s = cell(if *id % 6 == 0 { "'all'".to_owned() } else { format!("'s{}'", *id % 3) });
                    format!("({id}, {k}, {x}, {s})")
                })
                .collect();
            format!("INSERT INTO t VALUES {}", rows.join(", "))
        }
    }
}

fn answer(session: &mut Session, query: &str) -> Vec<String> {
    let rows = session.query(query).unwrap_or_else(|error| panic!("{query}: {}", error.message));
    let text = |batch: &arrow::array::RecordBatch, row: usize| {
        let cell = |column: &arrow::array::ArrayRef| {
            arrow::util::display::array_value_to_string(column, row).expect("values have texts")
        };
        batch.columns().iter().map(cell).collect::<Vec<_>>().join(", ")
    };
    let mut all: Vec<String> =
        rows.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch, row))).collect();
    all.sort();
    all
}

fn run(session: &mut Session, script: &str) {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)));
}

fn session(workers: usize) -> Session {
    let mut session = Session::new(Options { workers, ..Options::default() }).expect("a session begins");
    run(&mut session, CREATE);
    session
}

/// Law: a split has each row in the branches that its route and its broadcast say, for every number
/// of workers, and follows what comes and goes.
#[test]
fn rows_are_in_their_branches() {
    cases("splits", 30, |rng| {
        let width = *rng.pick(&[1, 2, 5, 16]);
        let (route, broadcast) = (route(rng, width), *rng.pick(BROADCASTS));
        let split = format!("SELECT * FROM SPLIT(TABLE t, {route}, {width}, {broadcast})");
        let counted = format!("SELECT branch, count(*) AS n, max(x) AS hi FROM ({split}) AS p GROUP BY branch");
        let oracle = listed(&route, broadcast, width);
        let mut session = session(*rng.pick(&[0, 1, 2, 2, 5, 8]));
        run(&mut session, &format!("CREATE MATERIALIZED VIEW v AS {split}; CREATE MATERIALIZED VIEW w AS {counted}"));
        let mut id = 0;
        for _ in 0..5 {
            run(&mut session, &change(rng, &mut id));
            let expected = answer(&mut session, &oracle);
            assert_eq!(answer(&mut session, "SELECT * FROM v"), expected, "{split}");
            assert_eq!(answer(&mut session, &split), expected, "{split}");
            let expected = format!("SELECT branch, count(*), max(x) FROM ({oracle}) AS p GROUP BY branch");
            assert_eq!(answer(&mut session, "SELECT * FROM w"), answer(&mut session, &expected), "{counted}");
        }
        run(&mut session, "DELETE FROM t");
        assert!(answer(&mut session, "SELECT * FROM v").is_empty(), "{split}");
        assert!(answer(&mut session, "SELECT * FROM w").is_empty(), "{split}");
    });
}

/// Law: the union of all branches is the input, less rows without a route, where nothing is
/// broadcast; and what is broadcast is in each branch.
#[test]
fn the_union_of_branches_is_the_input() {
    cases("unions of splits", 20, |rng| {
        const WIDTH: i64 = 4;
        let route = route(rng, WIDTH);
        let mut session = session(*rng.pick(&[0, 1, 2, 2, 5, 8]));
        let branch = |n: i64| format!("SELECT id, k, x, s FROM SPLIT(t, {route}, {WIDTH}) WHERE branch = {n}");
        let union = (0..WIDTH).map(branch).collect::<Vec<_>>().join(" UNION ALL ");
        let to_all = format!("SELECT branch, id FROM SPLIT(t, {route}, {WIDTH}, s = 'all') WHERE s = 'all'");
        run(&mut session, &format!("CREATE MATERIALIZED VIEW v AS {union}; CREATE MATERIALIZED VIEW w AS {to_all}"));
        let mut id = 0;
        for _ in 0..5 {
            run(&mut session, &change(rng, &mut id));
            let routed = answer(&mut session, &format!("SELECT * FROM t WHERE ({route}) IS NOT NULL"));
            assert_eq!(answer(&mut session, "SELECT * FROM v"), routed, "{union}");
            let each = "SELECT g.n, t.id FROM t, generate_series(0, 3) AS g(n) WHERE s = 'all'";
            let each = answer(&mut session, each);
            assert_eq!(answer(&mut session, "SELECT * FROM w"), each, "{to_all}");
        }
    });
}
