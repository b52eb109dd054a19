//! Growth: what a verb costs at n, 2n and 4n rows. A verb that is linear-logarithmic costs a little
//! more than four times as much for four times the rows; a quadratic verb sixteen times.

use std::ops::RangeInclusive;
use std::sync::Arc;

use anabranch_engine::{Options, Session};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use nix::time::{ClockId, clock_gettime};

/// The most that four times the rows may cost, beside once the rows.
pub(super) const GROWTH_MAX: f64 = 8.0;

/// Measurements of a cost, at least and at most.
const ROUNDS: RangeInclusive<usize> = 3..=10;

/// The costs at several sizes, the last of which should cost at most `growth_max` times as much as
/// the first. The least of several measurements counts, since other programs disturb them; more
/// are made as long as it costs more.
pub(super) fn costs_at<T: Copy, const N: usize>(sizes: [T; N], growth_max: f64, cost: impl Fn(T) -> f64) -> [f64; N] {
    let mut least = [f64::INFINITY; N];
    for round in 1..=*ROUNDS.end() {
        for (least, size) in least.iter_mut().zip(sizes) {
            *least = cost(size).min(*least);
        }
        if ROUNDS.contains(&round) && least[N - 1] <= growth_max * least[0] {
            break;
        }
    }
    least
}

/// CPU time of this thread so far, in seconds: a session without workers runs on it.
pub(super) fn seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Unix has clocks of threads");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

fn run(session: &mut Session, script: &str) {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)));
}

/// The CPU time of `change` in a session in which `setup` has run.
fn cost(setup: &str, change: &str) -> f64 {
    cost_of(setup, |session| run(session, change))
}

fn cost_of(setup: &str, change: impl Fn(&mut Session)) -> f64 {
    let mut session =
        Session::new(Options { workers: 0, ..Options::default() }).expect("a session without threads begins");
    run(&mut session, setup);
    let before = seconds();
    change(&mut session);
    // (The answer waits until all is computed.)
    run(&mut session, "SELECT count(*) FROM v");
    seconds() - before
}

/// Checks that the cost grows with the rows, not with their square.
fn grows_with_rows(name: &str, n: u64, setup: impl Fn(u64) -> String, change: impl Fn(u64) -> String) {
    let costs = costs_at([n, 2 * n, 4 * n], GROWTH_MAX, |n| cost(&setup(n), &change(n)));
    println!("{name}: {n} rows and twice and four times as many: {costs:.3?} CPU s");
    assert!(costs[2] <= GROWTH_MAX * costs[0], "{name} grows faster than its rows: {costs:?} CPU s at {n} x 1, 2, 4");
}

/// A multiple of `i` that visits all residues: rows in shuffled order.
const SHUFFLED: &str = "(i * 7919) % ";

const QUOTES: &str = "CREATE TABLE trade (k bigint, t bigint); CREATE TABLE quote (k bigint, t bigint, p bigint);";

fn asof(condition: &str) -> String {
    format!(
        "{QUOTES} CREATE MATERIALIZED VIEW v AS SELECT a.t, q.p FROM trade a ASOF JOIN quote q ON a.k = q.k AND {condition};"
    )
}

/// Rows of one key on both sides, in one commit each.
fn trades_and_quotes(n: u64) -> String {
    format!(
        "INSERT INTO trade SELECT 1, i FROM generate_series(1, {n}) AS g(i);
         INSERT INTO quote SELECT 1, i, i FROM generate_series(1, {n}) AS g(i);"
    )
}

#[test]
fn asof_joins_of_one_key() {
    for condition in ["a.t >= q.t", "a.t < q.t"] {
        grows_with_rows(condition, 10_000, |_| asof(condition), trades_and_quotes);
    }
}

#[test]
fn asof_joins_of_shuffled_rows_first_built() {
    let rows = |n: u64| {
        format!(
            "{QUOTES}
             INSERT INTO trade SELECT 1, {SHUFFLED}{n} FROM generate_series(1, {n}) AS g(i);
             INSERT INTO quote SELECT 1, {SHUFFLED}{n}, i FROM generate_series(1, {n}) AS g(i);"
        )
    };
    let build = |_| asof("a.t >= q.t").replace(QUOTES, "");
    grows_with_rows("as-of join first built", 10_000, rows, build);
}

#[test]
fn asof_joins_from_which_half_is_deleted() {
    let rows = |n| asof("a.t >= q.t") + &trades_and_quotes(n);
    grows_with_rows("as-of join, half deleted", 10_000, rows, |_| "DELETE FROM quote WHERE t % 2 = 0;".into());
}

#[test]
fn sessions_of_one_key() {
    // Gaps that hold a tenth of all rows, and all rows.
    for share in [10, 1] {
        let view = |n: u64| {
            let gap = n / share;
            format!(
                "CREATE TABLE hit (k bigint, t bigint);
                 CREATE MATERIALIZED VIEW v AS SELECT k, t, window_start, window_end FROM SESSION(hit PARTITION BY k, t, {gap});"
            )
        };
        let rows = |n: u64| format!("INSERT INTO hit SELECT 1, i FROM generate_series(1, {n}) AS g(i);");
        grows_with_rows("sessions", 5_000, view, rows);
    }
}

/// Verbs with state, over rows `(k, x, t)` of `a` and `b`; `t` is different in every row of each.
const STATEFUL: &[(&str, &str)] = &[
    ("sums", "SELECT k, sum(x), count(*) AS n, avg(x) AS mean FROM a GROUP BY k"),
    ("least and greatest", "SELECT k, min(x), max(t) FROM a GROUP BY k"),
    ("count of distinct values", "SELECT k, count(DISTINCT x) FROM a GROUP BY k"),
    ("percentile", "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM a GROUP BY k"),
    ("list", "SELECT k, count(*) FROM (SELECT k, array_agg(t ORDER BY t) FROM a GROUP BY k, t / 10) AS l GROUP BY k"),
    ("groups of one row", "SELECT t, sum(x) FROM a GROUP BY t"),
    ("distinct rows", "SELECT DISTINCT k, x FROM a"),
    (
        "first rows",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x, t) AS n FROM a) AS r WHERE n <= 3",
    ),
    (
        "first places of ties",
        "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY x) AS n FROM a) AS r WHERE n <= 3",
    ),
    (
        "first groups of ties",
        "SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY k ORDER BY t DESC) AS n FROM a) AS r WHERE n <= 3",
    ),
    ("inner join", "SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k AND a.t = b.t"),
    ("left join", "SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND a.t = b.t"),
    ("full join", "SELECT a.x, b.x AS y FROM a FULL JOIN b ON a.k = b.k AND a.t = b.t"),
    ("semi join", "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.t = a.t)"),
    ("anti join", "SELECT * FROM a WHERE t NOT IN (SELECT t FROM b WHERE x > 3)"),
    ("except", "SELECT k, t FROM a EXCEPT SELECT k, t FROM b"),
    ("intersect", "SELECT k, t FROM a INTERSECT ALL SELECT k, t FROM b"),
    ("tumbling windows", "SELECT window_end, k, max(x) FROM TUMBLE(a, t, 50) GROUP BY window_end, k"),
    ("hopping windows", "SELECT window_end, k, count(*) FROM HOP(a, t, 10, 100) GROUP BY window_end, k"),
    ("sessions", "SELECT k, window_end, count(*) FROM SESSION(a PARTITION BY k, t, 30) GROUP BY k, window_end"),
    ("as-of join", "SELECT a.t, b.x FROM a ASOF JOIN b ON a.k = b.k AND a.t >= b.t"),
    ("as-of join forward", "SELECT a.t, b.x FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t < b.t"),
    ("right join", "SELECT a.x, b.x AS y FROM a RIGHT JOIN b ON a.k = b.k AND a.t = b.t"),
    ("mark join", "SELECT t, t IN (SELECT t FROM b WHERE x > 3) AS found FROM a"),
    ("scalar subquery", "SELECT t, (SELECT sum(b.x) FROM b WHERE b.t = a.t) AS y FROM a"),
    ("union", "SELECT k, t FROM a UNION SELECT k, t FROM b"),
    ("intersect of sets", "SELECT k, x FROM a INTERSECT SELECT k, x FROM b"),
    ("cumulating windows", "SELECT window_end, k, sum(x) FROM CUMULATE(a, t, 10, 100) GROUP BY window_end, k"),
    ("frames of rows", "SELECT t, sum(x) OVER (PARTITION BY k ORDER BY t ROWS 5 PRECEDING) AS s FROM a"),
    ("frames of ranges", "SELECT t, max(x) OVER (PARTITION BY k ORDER BY t RANGE 100 PRECEDING) AS s FROM a"),
    ("running sums", "SELECT t, sum(x) OVER (PARTITION BY k ORDER BY t) AS s FROM a"),
    ("sums of whole partitions", "SELECT t, sum(x) OVER (PARTITION BY k) AS s FROM a"),
    (
        "neighbours",
        "SELECT t, lag(x) OVER (PARTITION BY k ORDER BY t) AS before, lead(x, 3) OVER (PARTITION BY k ORDER BY t) AS later FROM a",
    ),
    (
        "ranks",
        "SELECT t, rank() OVER (PARTITION BY k ORDER BY x) AS r, ntile(4) OVER (PARTITION BY k ORDER BY x, t) AS q FROM a",
    ),
    ("mode and disjunction", "SELECT k, mode() WITHIN GROUP (ORDER BY x) AS m, bool_or(x > 5) AS o FROM a GROUP BY k"),
    (
        "row patterns",
        "SELECT m.k, m.n FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES count(up.*) AS n
         PATTERN (strt up+) DEFINE up AS x > PREV(x)) AS m",
    ),
    ("join within a band", "SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 2 AND a.t + 2"),
    (
        "left join within a band",
        "SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND b.t > a.t AND b.t - a.t <= 3 AND b.x > 500",
    ),
    ("join of neighbours without a key", "SELECT a.x, b.x AS y FROM a JOIN b ON abs(a.t - b.t) <= 2"),
    (
        "semi join within a band",
        "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.t >= a.t - 3 AND b.t < a.t)",
    ),
    ("count within a band", "SELECT t, (SELECT count(*) FROM b WHERE b.t BETWEEN a.t - 3 AND a.t) AS n FROM a"),
    ("sets of groups", "SELECT k, x, sum(t), grouping(k, x) FROM a GROUP BY GROUPING SETS ((k, x), (k), ())"),
    ("cube", "SELECT k, t, count(*) FROM a GROUP BY CUBE (k, t)"),
    ("filter by the clock", "SELECT k, sum(x) FROM a WHERE to_timestamp(t) < now() - INTERVAL '1 day' GROUP BY k"),
    (
        "recursion",
        "WITH RECURSIVE r (t, k) AS (SELECT t, k FROM a WHERE t % 10 = 1
         UNION SELECT a.t, r.k FROM r JOIN a ON a.t = r.t + 1 WHERE a.t % 10 <> 1) SELECT k, count(*) FROM r GROUP BY k",
    ),
    ("joins of three", "SELECT a.k, count(*) AS n FROM a JOIN b ON a.t = b.t JOIN a c ON b.t = c.t GROUP BY a.k"),
];

/// Those of [`STATEFUL`] whose answers change in more rows with each commit.
const MOVED_BY_EACH_COMMIT: &[&str] = &["sums of whole partitions", "ranks"];

/// How rows come.
#[derive(Clone, Copy, Debug)]
enum Coming {
    /// In one commit, all of one key, in order.
    AtOnce,
    /// In four commits, of fifty keys, shuffled.
    Shuffled,
}

impl Coming {
    fn rows(self, n: u64) -> String {
        let insert = |key: &str, time: &str, from: u64, upto: u64| {
            let rows = format!("SELECT {key}, i % 1000, {time} FROM generate_series({from}, {upto}) AS g(i)");
            format!("INSERT INTO a {rows}; INSERT INTO b {rows};")
        };
        match self {
            Coming::AtOnce => insert("1", "i", 1, n),
            Coming::Shuffled => {
                // (A prime beyond all rows, so that no two of them have one time.)
                let time = "(i * 7919) % 100003";
                (0..4).map(|part| insert("i % 50", time, part * n / 4 + 1, (part + 1) * n / 4)).collect()
            }
        }
    }
}

/// Bytes that arrangements hold once `n` rows have come.
fn state_bytes(setup: &str, rows: &str) -> usize {
    let mut session =
        Session::new(Options { workers: 0, ..Options::default() }).expect("a session without threads begins");
    run(&mut session, setup);
    run(&mut session, rows);
    run(&mut session, "SELECT count(*) FROM v");
    session.arrangements().iter().map(|stats| stats.bytes).sum()
}

#[test]
fn stateful_verbs_grow_with_their_rows() {
    const N: u64 = 5_000;
    // A state of four times the rows may be somewhat more than four times as large: buffers double.
    const STATE_GROWTH_MAX: f64 = 6.0;
    for (name, query) in STATEFUL {
        let setup = format!(
            "CREATE TABLE a (k bigint, x bigint, t bigint); CREATE TABLE b (k bigint, x bigint, t bigint);
             CREATE MATERIALIZED VIEW v AS {query};"
        );
        for coming in [Coming::AtOnce, Coming::Shuffled] {
            let label = format!("{name}, {coming:?}");
            grows_with_rows(&label, N, |_| setup.clone(), |n| coming.rows(n));
            let bytes = [N, 4 * N].map(|n| state_bytes(&setup, &coming.rows(n)) as f64);
            assert!(
                bytes[1] <= STATE_GROWTH_MAX * bytes[0],
                "the state of {label} grows faster than its rows: {bytes:?}"
            );
        }
    }
}

/// Rows in commits of twenty, of five keys, in order. (No session lasts longer than 200 rows: each
/// row of one is told that it has gone on.)
fn small_commits(session: &mut Session, n: u64) {
    const COMMIT_ROWS: i64 = 20;
    for commit in 0..n as i64 / COMMIT_ROWS {
        let column = |of: fn(i64) -> i64| -> ArrayRef {
            let rows = commit * COMMIT_ROWS..(commit + 1) * COMMIT_ROWS;
            Arc::new(Int64Array::from_iter_values(rows.map(of)))
        };
        let columns =
            [("k", column(|i| i % 5)), ("x", column(|i| i * 7919 % 1000)), ("t", column(|i| i + i / 200 * 100))];
        let rows = RecordBatch::try_from_iter(columns).expect("the columns are equally long");
        for relation in ["a", "b"] {
            session.insert(relation, &rows).expect("the rows fit");
        }
    }
}

/// A commit costs what it changes, however many were before.
#[test]
fn stateful_verbs_cost_a_commit_what_it_changes() {
    const N: u64 = 4_000;
    for (name, query) in STATEFUL.iter().filter(|(name, _)| !MOVED_BY_EACH_COMMIT.contains(name)) {
        let setup = format!(
            "CREATE TABLE a (k bigint, x bigint, t bigint); CREATE TABLE b (k bigint, x bigint, t bigint);
             CREATE MATERIALIZED VIEW v AS {query};"
        );
        let sizes = [N, 2 * N, 4 * N];
        let costs = costs_at(sizes, GROWTH_MAX, |n| cost_of(&setup, |session| small_commits(session, n)));
        println!("{name}: {N} rows in commits of twenty, and twice and four times as many: {costs:.3?} CPU s");
        assert!(costs[2] <= GROWTH_MAX * costs[0], "a commit costs {name} what was before: {costs:?} CPU s");
    }
}

/// The control: a test that finds no growth in this finds none in anything.
#[test]
#[should_panic(expected = "grows faster than its rows")]
fn pairs_of_all_rows_grow_with_their_square() {
    let setup = "CREATE TABLE a (k bigint, x bigint, t bigint); CREATE TABLE b (k bigint, x bigint, t bigint);
         CREATE MATERIALIZED VIEW v AS SELECT a.t, b.t AS u FROM a JOIN b ON a.k = b.k;";
    grows_with_rows("pairs", 1000, |_| setup.to_owned(), |n| Coming::AtOnce.rows(n));
}

/// Rows behind the end of a partition cost what their frames hold, however many rows are before.
#[test]
fn rows_behind_a_partition_do_not_cost_the_partition() {
    let costs = costs_at([20_000, 80_000], 2.0, |n| {
        let setup = format!(
            "CREATE TABLE quote (k bigint, t bigint, p bigint);
             CREATE MATERIALIZED VIEW v AS
                 SELECT t, sum(p) OVER w, avg(p) OVER (w ROWS 10 PRECEDING), first_value(p) OVER w,
                        max(p) OVER (w RANGE BETWEEN 20 PRECEDING AND CURRENT ROW)
                 FROM quote WINDOW w AS (PARTITION BY k ORDER BY t);
             INSERT INTO quote SELECT 1, i, i FROM generate_series(1, {n}) AS g(i);
             INSERT INTO quote VALUES (1, {n} + 1, 0);"
        );
        let appends: String = (2..202).map(|i| format!("INSERT INTO quote VALUES (1, {n} + {i}, {i});")).collect();
        cost(&setup, &appends)
    });
    println!("200 rows behind 20,000 and 80,000: {costs:.4?} CPU s");
    assert!(costs[1] <= 2.0 * costs[0], "appended rows cost the rows before them: {costs:?} CPU s");
}

/// Changes within a partition cost what the frames reach, however many rows are before and behind.
#[test]
fn changes_within_a_partition_do_not_cost_the_partition() {
    let costs = costs_at([20_000, 80_000], 2.5, |n| {
        let setup = format!(
            "CREATE TABLE quote (k bigint, t bigint, p bigint);
             CREATE INDEX quote_t ON quote (t);
             CREATE MATERIALIZED VIEW v AS
                 SELECT t, avg(p) OVER (w ROWS 10 PRECEDING), lag(p) OVER w, lead(p, 2, 0) OVER w,
                        max(p) OVER w, sum(p) OVER (w RANGE BETWEEN 20 PRECEDING AND 20 FOLLOWING),
                        count(*) OVER (w GROUPS BETWEEN 3 PRECEDING AND 3 FOLLOWING)
                 FROM quote WINDOW w AS (PARTITION BY k ORDER BY t);
             INSERT INTO quote SELECT 1, 2 * i, i % 1000 FROM generate_series(1, {n}) AS g(i);
             INSERT INTO quote VALUES (1, {n} + 1, 0);"
        );
        let rows = |i: usize| n + 2 * (i % 40) + 1;
        let changes: String = (0..100)
            .map(|i| {
                format!("INSERT INTO quote VALUES (1, {}, {i}); DELETE FROM quote WHERE t = {};", rows(i), rows(i / 2))
            })
            .collect();
        cost(&setup, &changes)
    });
    println!("200 changes within 20,000 and 80,000 rows: {costs:.4?} CPU s");
    assert!(costs[1] <= 2.5 * costs[0], "changes cost the rows around them: {costs:?} CPU s");
}

/// Checks that statements cost about the same, however many rows stand beside those that they
/// concern.
fn does_not_grow(name: &str, setup: impl Fn(u64) -> String, statements: &str) {
    let costs = costs_at([10_000, 80_000], 2.0, |n| cost(&setup(n), statements));
    println!("{name}: {costs:.4?} CPU s");
    assert!(costs[1] <= 2.0 * costs[0], "{name} grows with the table: {costs:?} CPU s in 10,000 and 80,000 rows");
}

/// Lines of orders, four each; the view is of another table.
fn lines(n: u64) -> String {
    format!(
        "CREATE TABLE w (x bigint); CREATE MATERIALIZED VIEW v AS SELECT x FROM w;
         CREATE TABLE orders (o bigint PRIMARY KEY); CREATE TABLE chosen (o bigint);
         CREATE TABLE lines (o bigint REFERENCES orders ON DELETE CASCADE, n bigint, x bigint, PRIMARY KEY (o, n));
         INSERT INTO orders SELECT i FROM generate_series(1, {n} / 4) AS g(i);
         INSERT INTO lines SELECT 1 + i / 4, i % 4, i FROM generate_series(0, {n} - 1) AS g(i);
         INSERT INTO chosen SELECT 100 * i FROM generate_series(1, 20) AS g(i);
         SELECT count(*) FROM lines WHERE o = 1;"
    )
}

#[test]
fn look_ups_by_the_first_column_of_a_key() {
    for (name, statement) in [
        ("reads", "SELECT x FROM lines WHERE o = {i};"),
        ("lists of values", "SELECT x FROM lines WHERE o IN ({i}, {i} + 1, {i} + 2);"),
        ("updates", "UPDATE lines SET x = x + 1 WHERE o = {i};"),
        ("deletes", "DELETE FROM lines WHERE o = {i};"),
        ("cascades", "DELETE FROM orders WHERE o = {i};"),
    ] {
        let statements: String = (1..=100).map(|i| statement.replace("{i}", &(20 * i).to_string())).collect();
        does_not_grow(name, lines, &statements);
        does_not_grow(&format!("{name} of a transaction"), lines, &format!("BEGIN; {statements} COMMIT;"));
    }
}

#[test]
fn changes_of_rows_that_a_subquery_lists() {
    for (name, statement) in [
        ("deleted rows", "DELETE FROM lines WHERE o IN (SELECT o FROM chosen WHERE o % 1000 = {i});"),
        ("updated rows", "UPDATE lines SET x = x + 1 WHERE o IN (SELECT o FROM chosen WHERE o % 1000 = {i});"),
        ("deleted orders", "DELETE FROM orders WHERE o IN (SELECT o FROM chosen WHERE o % 1000 = {i});"),
    ] {
        let statements: String = (0..10).map(|i| statement.replace("{i}", &(100 * i).to_string())).collect();
        does_not_grow(name, lines, &statements);
    }
}

/// Each statement of a transaction finds what those before it wrote of its key.
#[test]
fn statements_of_one_transaction() {
    let statements = |n: u64, statement: &str| {
        let all: String = (1..=n).map(|i| statement.replace("{i}", &i.to_string())).collect();
        format!("BEGIN; {all} COMMIT;")
    };
    let tables = |_| lines(0).replace("SELECT count(*) FROM lines WHERE o = 1;", "");
    grows_with_rows("rows put in by one transaction", 250, tables, |n| {
        statements(n, "INSERT INTO orders VALUES ({i}); INSERT INTO lines VALUES ({i}, 1, 1);")
    });
    grows_with_rows("rows changed by one transaction", 250, lines_of_orders, |n| {
        statements(n, "UPDATE lines SET x = x + 1 WHERE o = {i} AND n = 1; SELECT x FROM lines WHERE o = {i};")
    });
}

fn lines_of_orders(n: u64) -> String {
    lines(8 * n)
}

/// A table of `n` columns and three rows; the view is of another table.
fn wide(n: u64) -> String {
    let columns = (0..n).map(|at| format!("c{at} int")).collect::<Vec<_>>().join(", ");
    let row = |of: u64| format!("({})", (0..n).map(|at| (at + of).to_string()).collect::<Vec<_>>().join(", "));
    format!(
        "CREATE TABLE u (x bigint); CREATE MATERIALIZED VIEW v AS SELECT x FROM u; CREATE TABLE w ({columns});
         INSERT INTO w VALUES {}, {}, {};",
        row(0),
        row(1),
        row(2)
    )
}

/// Statements about all columns of a table cost the columns, not their square.
#[test]
fn statements_about_many_columns() {
    for (name, statement) in [
        ("all columns", "SELECT * FROM w WHERE c1 = 2;"),
        ("all columns in order", "SELECT * FROM w WHERE c1 < 9 ORDER BY c5 DESC LIMIT 1;"),
        ("a view of all columns", "CREATE MATERIALIZED VIEW of_all AS SELECT * FROM w WHERE c1 < 9;"),
        ("rows of many columns deleted", "DELETE FROM w WHERE c1 = 2;"),
        ("rows of many columns updated", "UPDATE w SET c5 = 7 WHERE c1 = 2;"),
    ] {
        grows_with_rows(name, 1_000, wide, |_| statement.to_string());
    }
    // (The planner's library looks each of them up by its name.)
    grows_with_rows("columns written out", 500, wide, |n| {
        let columns = (0..n).map(|at| format!("c{at}")).collect::<Vec<_>>().join(", ");
        format!("SELECT {columns} FROM w WHERE c1 = 2;")
    });
}
