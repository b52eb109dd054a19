//! Growth: what a verb costs at n, 2n and 4n rows. A verb that is linear-logarithmic costs a little
//! more than four times as much for four times the rows; a quadratic verb sixteen times.

use anabranch_engine::{Options, Session};
use nix::time::{ClockId, clock_gettime};

/// The most that four times the rows may cost, beside once the rows. The least of three measurements
/// counts, since other programs disturb them.
const GROWTH_MAX: f64 = 8.0;

/// CPU time of this thread so far, in seconds: a session without workers runs on it.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Unix has clocks of threads");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

fn run(session: &mut Session, script: &str) {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)));
}

/// The least CPU time of `change` in a session in which `setup` has run.
fn cost(setup: &str, change: &str) -> f64 {
    let cost_once = || {
        let mut session =
            Session::new(Options { workers: 0, ..Options::default() }).expect("a session without threads begins");
        run(&mut session, setup);
        let before = seconds();
        run(&mut session, change);
        // (The answer waits until all is computed.)
        run(&mut session, "SELECT count(*) FROM v");
        seconds() - before
    };
    (0..3).map(|_| cost_once()).fold(f64::INFINITY, f64::min)
}

/// Checks that the cost grows with the rows, not with their square.
fn grows_with_rows(name: &str, n: u64, setup: impl Fn(u64) -> String, change: impl Fn(u64) -> String) {
    let costs = [n, 2 * n, 4 * n].map(|n| cost(&setup(n), &change(n)));
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
