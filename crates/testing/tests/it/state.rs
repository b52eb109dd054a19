//! State that leaves: views over append-only tables with watermarks, held against the same views
//! over tables without.
//!
//! Law: freeing changes no answer. A view over timely rows has the same rows whether the state
//! behind it is freed or not; one that emits on window close has those of closed windows.

use anabranch_arrangement::MergeEffort;
use anabranch_engine::{Options, Rows, Session, Sharing};
use anabranch_testing::rng::{Rng, cases};
use arrow::array::{Array, ArrayRef};
use arrow::util::display::array_value_to_string;

/// How far the watermarks are behind.
const DELAY: i64 = 5;

/// A query over `bid (k, x, t)` and `ask (k, x, t)`, and the relations whose windows it reads, if
/// its rows have a `window_end`.
struct Form {
    sql: &'static str,
    windows_of: &'static [&'static str],
}

const fn form(sql: &'static str, windows_of: &'static [&'static str]) -> Form {
    Form { sql, windows_of }
}

const BID: &[&str] = &["bid"];
const BOTH: &[&str] = &["bid", "ask"];

const FORMS: &[Form] = &[
    form(
        "SELECT window_start, window_end, k, count(*) AS n, sum(x) AS s, min(x) AS least, max(x) AS most, avg(x) AS mean
         FROM TUMBLE(bid, t, 4) GROUP BY window_start, window_end, k",
        BID,
    ),
    form("SELECT window_end, count(DISTINCT x) AS d, max(x) AS m FROM HOP(bid, t, 3, 9) GROUP BY window_end", BID),
    form("SELECT window_start, window_end, k, max(x) AS m FROM HOP(bid, t, 4, 6) GROUP BY window_start, window_end, k", BID),
    form("SELECT window_start, window_end, sum(x) AS s FROM CUMULATE(bid, t, 3, 9) GROUP BY window_start, window_end", BID),
    form(
        "SELECT window_end, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS p, array_agg(x ORDER BY x, k) AS all_x
         FROM TUMBLE(bid, t, 5) GROUP BY window_end",
        BID,
    ),
    form("SELECT window_end, min(x) FILTER (WHERE k = 1) AS m, string_agg(k::text, '' ORDER BY k) AS s
         FROM TUMBLE(bid, t, 5) GROUP BY window_end", BID),
    form("SELECT t, count(*) AS n, max(x) AS m FROM bid GROUP BY t", &[]),
    form("SELECT DISTINCT window_end, k FROM TUMBLE(bid, t, 4)", BID),
    form(
        "SELECT window_end, k, x, n FROM (SELECT window_end, k, x, row_number() OVER (PARTITION BY window_end ORDER BY x DESC, k) AS n
         FROM TUMBLE(bid, t, 4)) AS r WHERE n <= 2",
        BID,
    ),
    form(
        "SELECT window_end, k, x, n FROM (SELECT window_end, k, x, rank() OVER (PARTITION BY window_end ORDER BY x DESC) AS n
         FROM TUMBLE(bid, t, 4)) AS r WHERE n <= 2",
        BID,
    ),
    form(
        "SELECT k, x, n FROM (SELECT k, x, dense_rank() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM bid) AS r WHERE n <= 2",
        &[],
    ),
    form(
        "SELECT k, x, n FROM (SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM bid) AS r WHERE n <= 3",
        &[],
    ),
    form("SELECT k, x, t FROM bid ORDER BY x DESC, t FETCH FIRST 3 ROWS WITH TIES", &[]),
    form("SELECT window_end, k, x, sum(x) OVER (PARTITION BY window_end ORDER BY x, k) AS s FROM TUMBLE(bid, t, 4)", BID),
    form("SELECT k, x, t, lag(x) OVER w AS before, lag(x, 3, 0) OVER w AS third FROM bid WINDOW w AS (PARTITION BY k ORDER BY t, x)", &[]),
    form("SELECT k, x, t, lead(x, 2) OVER w AS later, lag(t) OVER w AS before FROM bid WINDOW w AS (PARTITION BY k ORDER BY t)", &[]),
    form("SELECT k, x, t, sum(x) OVER (PARTITION BY k ORDER BY t RANGE 3 PRECEDING) AS s FROM bid", &[]),
    form("SELECT k, x, t, max(x) OVER w AS most, count(*) OVER w AS n FROM bid WINDOW w AS (ORDER BY t RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)", &[]),
    form("SELECT k, x, t, sum(x) OVER (PARTITION BY k ORDER BY t, x ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s FROM bid", &[]),
    form("SELECT k, x, t, min(x) OVER (ORDER BY t GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS m, lag(x, 2) OVER (ORDER BY t) AS l FROM bid", &[]),
    form("SELECT k, x, t, sum(x) OVER (PARTITION BY k ORDER BY t) AS s, first_value(x) OVER (PARTITION BY k ORDER BY t DESC) AS f FROM bid", &[]),
    form("SELECT t, count(*) AS n, sum(d) AS d FROM (SELECT t, x - lag(x) OVER (PARTITION BY k ORDER BY t, x) AS d FROM bid) AS g GROUP BY t", &[]),
    form("SELECT t, max(s) AS s FROM (SELECT t, sum(x) OVER (PARTITION BY k ORDER BY t) AS s FROM bid) AS g GROUP BY t", &[]),
    form(
        "SELECT window_end, sum(d) AS d FROM TUMBLE((SELECT t, x - lag(x) OVER (PARTITION BY k ORDER BY t, x) AS d FROM bid), t, 4) GROUP BY window_end",
        BID,
    ),
    form(
        "SELECT b.window_end, b.k, b.x, a.x AS ax FROM TUMBLE(bid, t, 4) AS b
         JOIN TUMBLE(ask, t, 4) AS a ON b.k = a.k AND b.window_end = a.window_end",
        BOTH,
    ),
    form(
        "SELECT b.k, b.x, b.t, a.x AS ax FROM TUMBLE(bid, t, 4) AS b
         LEFT JOIN TUMBLE(ask, t, 4) AS a ON b.k = a.k AND b.window_start = a.window_start",
        &[],
    ),
    form(
        "SELECT b.k, b.x, a.x AS ax FROM TUMBLE(bid, t, 4) AS b
         FULL JOIN TUMBLE(ask, t, 6) AS a ON b.k = a.k AND b.window_end = a.window_end",
        &[],
    ),
    form(
        "SELECT a.k, b.x FROM TUMBLE(ask, t, 4) AS a RIGHT JOIN TUMBLE(bid, t, 4) AS b ON b.window_end = a.window_end AND a.x < b.x",
        &[],
    ),
    form("SELECT k, x, t FROM bid AS b WHERE EXISTS (SELECT 1 FROM ask AS a WHERE a.k = b.k AND a.t = b.t)", &[]),
    form("SELECT k, x, t FROM bid AS b WHERE NOT EXISTS (SELECT 1 FROM ask AS a WHERE a.t = b.t AND a.x > b.x)", &[]),
    form("SELECT b.k, b.t, a.t AS at FROM bid AS b JOIN ask AS a ON a.k = b.k AND b.t BETWEEN a.t - 3 AND a.t + 2", &[]),
    form("SELECT b.k, b.t, a.t AS at FROM bid AS b LEFT JOIN ask AS a ON a.k = b.k AND b.t BETWEEN a.t - 3 AND a.t + 2", &[]),
    form("SELECT b.k, b.x, b.t, a.t AS at FROM bid AS b FULL JOIN ask AS a ON a.k = b.k AND b.t BETWEEN a.t - 3 AND a.t + 2", &[]),
    form("SELECT b.k, a.x, b.t, a.t AS at FROM bid AS b RIGHT JOIN ask AS a ON b.t >= a.t - 3 AND b.t < a.t + 2 AND a.x <> b.x", &[]),
    form("SELECT k, x, t FROM bid AS b WHERE EXISTS (SELECT 1 FROM ask AS a WHERE a.k = b.k AND a.t BETWEEN b.t - 4 AND b.t + 1)", &[]),
    form("SELECT k, x, t FROM bid AS b WHERE NOT EXISTS (SELECT 1 FROM ask AS a WHERE a.k = b.k AND a.t > b.t - 2 AND a.t < b.t + 3)", &[]),
    form("SELECT k, x, t, EXISTS (SELECT 1 FROM ask AS a WHERE a.t BETWEEN b.t AND b.t + 2) AS is_near FROM bid AS b", &[]),
    form("SELECT t, count(*) AS n, count(at) AS m FROM (SELECT b.t, a.t AS at FROM bid AS b LEFT JOIN ask AS a ON a.k = b.k AND a.t BETWEEN b.t AND b.t + 3) AS j GROUP BY t", &[]),
    form("SELECT DISTINCT ON (k) k, x, t FROM bid ORDER BY k, t DESC, x", &[]),
    form("SELECT k, x, t FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x DESC, t) AS n FROM bid) AS r WHERE n BETWEEN 2 AND 3", &[]),
    form("SELECT b.k, b.t, a.x FROM bid AS b JOIN ask AS a ON a.k = b.k AND b.t >= a.t AND b.t < a.t + 4 WHERE a.x > 2", &[]),
    form(
        "SELECT b.k, b.x, m.window_end FROM bid AS b
         JOIN (SELECT max(x) AS x, window_end FROM TUMBLE(bid, t, 4) GROUP BY window_end) AS m ON b.x = m.x
         WHERE b.t BETWEEN m.window_end - 4 AND m.window_end",
        &[],
    ),
    form(
        "SELECT window_end, count(*) AS n FROM TUMBLE((SELECT k, t FROM bid UNION ALL SELECT k, t FROM ask), t, 4) GROUP BY window_end",
        &[],
    ),
    form("SELECT window_start, k FROM TUMBLE(bid, t, 4) EXCEPT SELECT window_start, k FROM TUMBLE(ask, t, 4)", &[]),
    form("SELECT window_start, k FROM TUMBLE(bid, t, 4) INTERSECT ALL SELECT window_start, k FROM TUMBLE(ask, t, 4)", &[]),
    form(
        "SELECT most, count(*) AS n FROM (SELECT window_end, k, max(x) AS most FROM TUMBLE(bid, t, 4) GROUP BY window_end, k) AS m GROUP BY most",
        &[],
    ),
    form("SELECT k, window_start, window_end, count(*) AS n FROM SESSION(bid PARTITION BY k, t, 3) GROUP BY k, window_start, window_end", &[]),
    form("SELECT k, x, t, window_start, window_end FROM SESSION(bid, t, 2)", &[]),
    form("SELECT k, window_end, min(x) AS least FROM SESSION(bid PARTITION BY k, t, 5) GROUP BY k, window_end", &[]),
    form("SELECT b.k, b.x, b.t, a.x AS ax FROM bid AS b ASOF LEFT JOIN ask AS a ON b.k = a.k AND b.t < a.t AND a.t <= b.t + 4", &[]),
    form("SELECT b.k, b.x, b.t, a.x AS ax FROM bid AS b ASOF JOIN ask AS a ON b.k = a.k AND b.t < a.t", &[]),
    form("SELECT b.k, b.x, b.t, a.x AS ax FROM bid AS b ASOF LEFT JOIN ask AS a ON b.k = a.k AND b.t <= a.t", &[]),
    form("SELECT b.k, b.x, b.t, a.x AS ax FROM bid AS b ASOF LEFT JOIN ask AS a ON b.k = a.k AND b.t > a.t AND a.t >= b.t - 3", &[]),
    form(
        "SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
         MEASURES FIRST(t) AS first, LAST(t) AS last, count(*) AS n, MATCH_NUMBER() AS m
         PATTERN (A B+) DEFINE B AS x < PREV(x)) AS m",
        &[],
    ),
    form(
        "SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
         MEASURES A.t AS at, B.x AS bx, PREV(A.x, 2) AS before, NEXT(B.x, 2) AS after
         AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{1,2}? C) DEFINE B AS B.x > A.x, C AS C.x <= NEXT(C.x)) AS m",
        &[],
    ),
    form(
        "SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY t, x, k
         MEASURES FIRST(t) AS first, LAST(t) AS last, CLASSIFIER() AS c
         PATTERN (A (B | C)* D) WITHIN 7 DEFINE A AS x > 1, B AS x = 2, C AS x > 3, D AS x < 2) AS m",
        &[],
    ),
    form("SELECT b.k, b.x, b.t, a.x AS ax, a.t AS at FROM bid AS b ASOF JOIN ask AS a ON b.k = a.k AND b.t >= a.t", &[]),
    form("SELECT b.k, b.x, b.t, a.x AS ax FROM bid AS b ASOF LEFT JOIN ask AS a ON b.k = a.k AND b.t > a.t", &[]),
    form("SELECT b.k, b.x, b.t, a.x AS ax FROM bid AS b ASOF JOIN ask AS a ON b.k = a.k AND b.t <= a.t", &[]),
    form(
        "SELECT window_end, max(n) AS n FROM (SELECT window_end, k, count(*) AS n FROM HOP(bid, t, 2, 6) GROUP BY window_end, k) AS c GROUP BY window_end",
        BID,
    ),
];

fn session(rng: &mut Rng) -> Session {
    let merge_effort = if rng.chance(60) { MergeEffort::EAGER } else { MergeEffort::default() };
    let sharing = if rng.chance(70) { Sharing::Full } else { Sharing::Off };
    let workers = *rng.pick(&[0, 0, 2]);
    Session::new(Options { workers, merge_effort, sharing, ..Options::default() }).expect("a session begins")
}

fn run(session: &mut Session, script: &str) {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)));
}

/// The rows of an answer as sorted lines.
fn ask(session: &mut Session, sql: &str) -> Vec<String> {
    let rows: Rows = session.query(sql).unwrap_or_else(|error| panic!("{sql}: {}", error.render(sql)));
    let mut lines = Vec::new();
    for batch in &rows.batches {
        let value = |column: &ArrayRef, row: usize| match column.is_null(row) {
            true => "null".to_owned(),
            false => array_value_to_string(column, row).expect("values can be shown"),
        };
        let line = |row: usize| batch.columns().iter().map(|column| value(column, row)).collect::<Vec<_>>().join(" ");
        lines.extend((0..batch.num_rows()).map(line));
    }
    lines.sort_unstable();
    lines
}

/// A view of both sessions.
struct View {
    name: String,
    form: &'static Form,
    is_closing: bool,
}

/// Two sessions that get the same rows: one whose state is freed, one that keeps all and is given
/// timely rows only.
struct Pair {
    freed: Session,
    kept: Session,
    views: Vec<View>,
    n_views: usize,
    /// Watermarks of `bid` and `ask`.
    marks: [Option<i64>; 2],
}

const RELATIONS: [&str; 2] = ["bid", "ask"];

impl Pair {
    fn new(rng: &mut Rng, retain: &str) -> Pair {
        let mut pair = Pair { freed: session(rng), kept: session(rng), views: vec![], n_views: 0, marks: [None; 2] };
        for name in RELATIONS {
            let columns = "k bigint, x bigint, t bigint";
            run(
                &mut pair.freed,
                &format!(
                    "CREATE TABLE {name} ({columns}, WATERMARK FOR t AS t - {DELAY}) APPEND ONLY WITH (retain = '{retain}')"
                ),
            );
            run(&mut pair.kept, &format!("CREATE TABLE {name} ({columns})"));
        }
        pair
    }

    fn create(&mut self, rng: &mut Rng) {
        let form = rng.pick(FORMS);
        let is_closing = !form.windows_of.is_empty() && rng.chance(60);
        let name = format!("v{}", self.n_views);
        self.n_views += 1;
        let emit = if is_closing { " EMIT ON WINDOW CLOSE" } else { "" };
        run(&mut self.freed, &format!("CREATE MATERIALIZED VIEW {name} AS {}{emit}", form.sql));
        run(&mut self.kept, &format!("CREATE MATERIALIZED VIEW {name} AS {}", form.sql));
        self.views.push(View { name, form, is_closing });
    }

    fn drop_one(&mut self, rng: &mut Rng) {
        if self.views.len() > 1 {
            let view = self.views.swap_remove(rng.below(self.views.len()));
            for session in [&mut self.freed, &mut self.kept] {
                run(session, &format!("DROP MATERIALIZED VIEW {}", view.name));
            }
        }
    }

    /// Some rows about a time, in one statement.
    fn insert(&mut self, rng: &mut Rng, now: i64) {
        let which = rng.below(2);
        let before = self.marks[which];
        let (mut all, mut timely) = (Vec::new(), Vec::new());
        for _ in 0..rng.between(1, 6) {
            let (k, x) = (rng.between(0, 2), rng.between(0, 5));
            let time = (!rng.chance(5)).then(|| now + rng.between(-9, 3));
            let shown = time.map_or("NULL".to_owned(), |time| time.to_string());
            let row = format!("({k}, {x}, {shown})");
            if time.is_none_or(|time| before.is_none_or(|mark| time >= mark)) {
                timely.push(row.clone());
            }
            all.push(row);
            self.marks[which] = self.marks[which].max(time.map(|time| time - DELAY));
        }
        let name = RELATIONS[which];
        run(&mut self.freed, &format!("INSERT INTO {name} VALUES {}", all.join(", ")));
        if !timely.is_empty() {
            run(&mut self.kept, &format!("INSERT INTO {name} VALUES {}", timely.join(", ")));
        }
    }

    fn check(&mut self) {
        for View { name, form, is_closing } in &self.views {
            let mut wanted = format!("SELECT * FROM {name}");
            if *is_closing {
                let marks = form.windows_of.iter().map(|relation| {
                    let mark = self.marks[usize::from(*relation == "ask")];
                    // (Without rows there is no watermark, and nothing is closed.)
                    mark.map_or("false".to_owned(), |mark| format!("window_end <= {mark}"))
                });
                wanted = format!("{wanted} WHERE {}", marks.collect::<Vec<_>>().join(" AND "));
            }
            let found = ask(&mut self.freed, &format!("SELECT * FROM {name}"));
            assert_eq!(found, ask(&mut self.kept, &wanted), "{} (closing: {is_closing})", form.sql);
        }
    }
}

#[test]
fn freeing_changes_no_answer() {
    cases("freed state", 40, |rng| {
        let retain = *rng.pick(&["all", "none"]);
        let mut pair = Pair::new(rng, retain);
        (0..rng.between(1, 4)).for_each(|_| pair.create(rng));
        let mut now = 0;
        for _ in 0..rng.between(10, 30) {
            now += rng.between(0, 6);
            pair.insert(rng, now);
            if rng.chance(40) {
                pair.check();
            }
            if retain == "all" && rng.chance(15) {
                pair.create(rng);
            }
            if rng.chance(10) {
                pair.drop_one(rng);
            }
        }
        pair.check();
    });
}

#[test]
fn explain_names_what_bounds_a_join() {
    let mut session = Session::new(Options::default()).expect("a session begins");
    run(
        &mut session,
        "CREATE TABLE bid (k bigint, t bigint, WATERMARK FOR t AS t - 5) APPEND ONLY;
         CREATE TABLE ask (k bigint, t bigint, until bigint, WATERMARK FOR t AS t - 5) APPEND ONLY;
         CREATE TABLE name (k bigint, name text)",
    );
    let mut remark = |condition: &str| {
        let plan =
            session.query(&format!("EXPLAIN SELECT b.k FROM bid AS b JOIN {condition}")).expect("a plan is shown");
        let lines = plan.batches[0].column(0).clone();
        let first = array_value_to_string(&lines, 0).expect("a line is text");
        first.split_once("  -- ").map(|(_, remark)| remark.to_owned()).unwrap_or_default()
    };
    let both = "state bounded by t and until (watermarks of ask, bid)";
    assert_eq!(remark("ask AS a ON b.k = a.k AND b.t BETWEEN a.t AND a.until"), both);
    let kept = "state kept (left and right): no condition is bounded by a watermark";
    assert_eq!(remark("ask AS a ON b.k = a.k"), kept);
    // Rows of a table that may change stay, and may meet any row.
    assert_eq!(remark("name AS n ON b.k = n.k"), kept);
    // Later asks have later times, so bids go; a bid may come long after an ask.
    let one = "state kept (right): no condition is bounded by a watermark";
    assert_eq!(remark("ask AS a ON b.k = a.k AND b.t >= a.t"), one);
}

/// Memory of a process of its own, so that others do not disturb it. `ENDLESS_ROWS` asks for more
/// rows (100 million take some minutes a form). What grows shall grow over four times the rows too:
/// resident memory differs by some MB from look to look, which is much beside a short stream.
fn endless(form: &str) -> (bool, String) {
    let asked = std::env::var("ENDLESS_ROWS").ok().and_then(|rows| rows.parse().ok());
    let rows: u64 = asked.unwrap_or(1_000_000);
    match endless_of(form, rows) {
        (true, said) => (true, said),
        (false, _) => endless_of(form, 4 * rows),
    }
}

fn endless_of(form: &str, rows: u64) -> (bool, String) {
    let rows = rows.to_string();
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_state-endless")).args([rows.as_str(), form]).output();
    let run = run.expect("the program starts");
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    (run.status.success(), said)
}

#[test]
fn memory_of_windows_is_flat() {
    for form in ["tumble", "hop", "closing", "top-k", "join of windows", "interval join", "as-of join"] {
        let (is_flat, said) = endless(form);
        assert!(is_flat, "{said}");
    }
}

#[test]
fn memory_of_frames_is_flat() {
    for form in ["neighbours", "frames", "ranges"] {
        let (is_flat, said) = endless(form);
        assert!(is_flat, "{said}");
    }
}

#[test]
fn memory_of_sessions_and_patterns_is_flat() {
    for form in ["as-of join forward", "as-of join within a tolerance", "sessions", "row patterns"] {
        let (is_flat, said) = endless(form);
        assert!(is_flat, "{said}");
    }
}

/// The control: where a form grows, the program says so.
#[test]
fn memory_that_grows_is_found() {
    let (is_flat, said) = endless("growing control");
    assert!(!is_flat && said.contains("GROWS"), "{said}");
}
