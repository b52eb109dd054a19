//! Memory of windowed SQL over streams that do not end: `state-endless ROWS FORM [unshared |
//! twice]`, one form a process.
//!
//! Rows come in commits of 10,000, 100 a tick, some out of order, with 1,000 keys; relations are
//! append-only, have a watermark and keep nothing. The view adds up the lengths of what the form
//! yields as text, so that each column is asked for and the state is all there is; *twice* there
//! are two such views, which share parts. A form passes if what the process holds in the last
//! quarter is no more than in the second one, give or take a tenth and eight megabytes (two of
//! fewer than four million rows). `ROWS` of 100 million take some minutes a form.

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anabranch_engine::{Error, Options, Session, Sharing};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};

const COMMIT_ROWS: usize = 10_000;
const ROWS_PER_TICK: i64 = 100;
/// How often memory is looked at.
const LOOKS: usize = 20;

/// Forms, and their queries over `bid (k, x, t)` and `ask (k, x, t)`.
const FORMS: &[(&str, &str)] = &[
    ("tumble", "SELECT window_end, k, max(x), sum(x), count(*) FROM TUMBLE(bid, t, 500) GROUP BY window_end, k"),
    ("hop", "SELECT window_end, k, max(x), count(*) FROM HOP(bid, t, 100, 500) GROUP BY window_end, k"),
    ("cumulate", "SELECT window_end, k, sum(x) FROM CUMULATE(bid, t, 100, 500) GROUP BY window_start, window_end, k"),
    ("percentile", "SELECT window_end, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM TUMBLE(bid, t, 200) GROUP BY window_end"),
    ("distinct", "SELECT window_end, count(DISTINCT x) FROM TUMBLE(bid, t, 500) GROUP BY window_end"),
    ("select distinct", "SELECT DISTINCT window_end, k FROM TUMBLE(bid, t, 500)"),
    (
        "top-k",
        "SELECT window_end, x FROM (SELECT window_end, x, row_number() OVER (PARTITION BY window_end ORDER BY x DESC) AS n
         FROM TUMBLE(bid, t, 200)) AS r WHERE n <= 3",
    ),
    (
        "places of ties",
        "SELECT window_end, k, x, n FROM (SELECT window_end, k, x, dense_rank() OVER (PARTITION BY window_end ORDER BY x DESC) AS n
         FROM TUMBLE(bid, t, 200)) AS r WHERE n <= 3",
    ),
    (
        "first rows of keys",
        "SELECT k, x, t, n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x DESC, t) AS n FROM bid) AS r WHERE n <= 5",
    ),
    (
        "last rows of keys, tied",
        "SELECT k, x, n FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY t DESC) AS n FROM bid) AS r WHERE n <= 5",
    ),
    (
        "neighbours",
        "SELECT k, x - lag(x) OVER w AS d, lead(t) OVER w AS later FROM bid WINDOW w AS (PARTITION BY k ORDER BY t, x)",
    ),
    (
        "frames",
        "SELECT k, sum(x) OVER (PARTITION BY k ORDER BY t ROWS 3 PRECEDING) AS s,
                max(x) OVER (PARTITION BY k ORDER BY t GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS m FROM bid",
    ),
    ("over", "SELECT window_end, sum(x) OVER (PARTITION BY window_end, k) FROM TUMBLE(bid, t, 200)"),
    (
        "join of windows",
        "SELECT b.window_end, b.x FROM TUMBLE(bid, t, 500) AS b JOIN TUMBLE(ask, t, 500) AS a
         ON b.k = a.k AND b.x = a.x AND b.window_end = a.window_end",
    ),
    (
        "left join of windows",
        "SELECT b.window_end, a.x FROM TUMBLE(bid, t, 500) AS b LEFT JOIN TUMBLE(ask, t, 500) AS a
         ON b.k = a.k AND b.x = a.x AND b.window_end = a.window_end",
    ),
    ("ranges", "SELECT k, x, sum(x) OVER (PARTITION BY k ORDER BY t RANGE 5 PRECEDING) AS s FROM bid"),
    ("interval join", "SELECT b.x FROM bid AS b JOIN ask AS a ON b.k = a.k AND b.x = a.x AND b.t BETWEEN a.t - 300 AND a.t + 100"),
    ("as-of join", "SELECT b.x, a.x AS ax FROM bid AS b ASOF JOIN ask AS a ON b.k = a.k AND b.t >= a.t"),
    ("as-of join forward", "SELECT b.x, a.x AS ax FROM bid AS b ASOF JOIN ask AS a ON b.k = a.k AND b.t <= a.t"),
    (
        "as-of join within a tolerance",
        "SELECT b.x, a.x AS ax FROM bid AS b ASOF LEFT JOIN ask AS a ON b.k = a.k AND b.t <= a.t AND a.t <= b.t + 20",
    ),
    (
        "sessions",
        "SELECT k, window_start, window_end, count(*) FROM SESSION(bid PARTITION BY k, t, 5) GROUP BY k, window_start, window_end",
    ),
    (
        "row patterns",
        "SELECT m.k, m.f, m.l, m.n FROM bid MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES FIRST(t) AS f, LAST(t) AS l, count(*) AS n
         PATTERN (A B+) DEFINE B AS x < PREV(x)) AS m",
    ),
    (
        "greatest of windows",
        "SELECT b.k FROM bid AS b JOIN (SELECT max(x) AS x, window_end FROM TUMBLE(bid, t, 200) GROUP BY window_end) AS m
         ON b.x = m.x AND b.t BETWEEN m.window_end - 200 AND m.window_end",
    ),
    (
        "closing",
        "SELECT * FROM (SELECT window_end, k, max(x) FROM TUMBLE(bid, t, 500) GROUP BY window_end, k) AS q
         WHERE window_end <= (SELECT max(watermark) FROM \"watermark of bid\")",
    ),
    // The control: pairs of a key and a value are ever more, and nothing bounds them.
    ("growing control", "SELECT DISTINCT k, x FROM bid"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let form = arguments.get(2).and_then(|wanted| FORMS.iter().find(|(name, _)| name == wanted));
    let (Some(rows), Some((name, sql))) = (arguments.get(1).and_then(|rows| rows.parse().ok()), form) else {
        let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: state-endless ROWS FORM [unshared | twice], where FORM is one of: {}", names.join(", "));
        return ExitCode::FAILURE;
    };
    let way = arguments.get(3).map_or("", String::as_str);
    let sharing = if way == "unshared" { Sharing::Off } else { Sharing::Full };
    match measure(sql, rows, sharing, way == "twice") {
        Ok(held) => {
            // (The least of a quarter: what is on its way comes and goes; what is kept stays. Runs
            // that are not merged yet are some MB, of which a short stream must not be said to be
            // flat.)
            let unmerged_mb = if rows < 4_000_000 { 2.0 } else { 8.0 };
            let quarter = |from: usize| held[from..from + LOOKS / 4].iter().copied().fold(f64::INFINITY, f64::min);
            let (second, last) = (quarter(LOOKS / 4), quarter(LOOKS - LOOKS / 4));
            let is_flat = last <= 1.1 * second + unmerged_mb;
            let verdict = if is_flat { "flat" } else { "GROWS" };
            println!("{name}: {second:.1} MB in the second quarter, {last:.1} MB in the last: {verdict}");
            if is_flat { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{name}: {}", error.message);
            ExitCode::FAILURE
        }
    }
}

/// What the process holds, in MB beyond what it held before, at equal distances.
fn measure(sql: &str, rows: usize, sharing: Sharing, is_twice: bool) -> Result<Vec<f64>, Error> {
    let mut session = Session::new(Options { workers: 0, sharing, ..Options::default() })?;
    for relation in ["bid", "ask"] {
        session.execute(&format!(
            "CREATE TABLE {relation} (k bigint, x bigint, t bigint, WATERMARK FOR t AS t - 50) APPEND ONLY WITH (retain = 'none')"
        ))?;
    }
    session.execute(&format!("CREATE MATERIALIZED VIEW v AS SELECT sum(length(q::text)) AS n FROM ({sql}) AS q"))?;
    if is_twice {
        session.execute(&format!(
            "CREATE MATERIALIZED VIEW w AS SELECT sum(length(q::text)) AS n, 'twice' AS way FROM ({sql}) AS q"
        ))?;
    }
    let n_commits = rows.div_ceil(2 * COMMIT_ROWS).max(LOOKS);
    let (before, began) = (resident_mb(), Instant::now());
    let mut held = Vec::new();
    for commit in 0..n_commits {
        for (relation, seed) in [("bid", 1), ("ask", 2)] {
            session.insert(relation, &batch(commit, seed))?;
        }
        if (commit + 1) % (n_commits / LOOKS) == 0 && held.len() < LOOKS {
            session.query("SELECT * FROM v")?;
            held.push(resident_mb() - before);
        }
    }
    println!("{} rows in {:.1} s", 2 * n_commits * COMMIT_ROWS, began.elapsed().as_secs_f64());
    Ok(held)
}

/// The rows of a commit.
fn batch(commit: usize, seed: u64) -> RecordBatch {
    let rows = || (commit * COMMIT_ROWS) as i64..((commit + 1) * COMMIT_ROWS) as i64;
    let mixed = |row: i64, salt: u64| {
        let mut bits = (row as u64 ^ (seed << 40) ^ (salt << 50)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits ^= bits >> 29;
        (bits.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as i64
    };
    let column = |of: &dyn Fn(i64) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows().map(of))) };
    let columns = [
        ("k", column(&|row| mixed(row, 1) % 1_000)),
        ("x", column(&|row| mixed(row, 2) % 100_000)),
        ("t", column(&|row| row / ROWS_PER_TICK + mixed(row, 3) % 40)),
    ];
    RecordBatch::try_from_iter(columns).expect("columns are of one length")
}

/// Resident memory of the process.
fn resident_mb() -> f64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * 4096.0 / 1e6
}
