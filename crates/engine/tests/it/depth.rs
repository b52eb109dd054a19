//! Queries that are nested deeply are answered or refused; no depth ends the process. Test threads
//! have stacks of a usual size.

use anabranch_engine::{Error, Rows, Session};

use crate::support::session;

/// Answered, or refused for its depth; whether answered.
fn answered(result: Result<Rows, Error>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => {
            assert!(error.message.contains("nested too deeply"), "{error:?}");
            assert!(error.hint.is_some());
            false
        }
    }
}

fn with_table(workers: usize) -> Session {
    let mut session = session(workers);
    session.execute("CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 2), (3, 4)").unwrap();
    session
}

/// The shapes, each with as many levels as asked for.
fn shapes(n: usize) -> Vec<(&'static str, String)> {
    let chain = |part: &dyn Fn(usize) -> String, by: &str| (0..n).map(part).collect::<Vec<_>>().join(by);
    vec![
        ("casts", format!("SELECT 1{}", "::int".repeat(n))),
        ("casts of a column", format!("SELECT a{} FROM t", "::bigint::int".repeat(n / 2))),
        ("arms", chain(&|_| "SELECT a FROM t".into(), " UNION ALL ")),
        ("constant arms", chain(&|at| format!("SELECT {at}"), " UNION ALL ")),
        ("differences", chain(&|_| "SELECT a FROM t".into(), " EXCEPT ")),
        ("alternatives", format!("SELECT * FROM t WHERE {}", chain(&|at| format!("a = {at}"), " OR "))),
        ("mixed alternatives", format!("SELECT * FROM t WHERE {}", chain(&|at| format!("a + b = {at}"), " OR "))),
        ("conditions", format!("SELECT * FROM t WHERE {}", chain(&|at| format!("a <> b + {at}"), " AND "))),
        ("a sum", format!("SELECT {}", chain(&|_| "1".into(), "+"))),
        ("a sum of columns", format!("SELECT {} FROM t", chain(&|_| "a".into(), "+"))),
        ("a sum in a group", format!("SELECT {} AS s, count(*) FROM t GROUP BY 1", chain(&|_| "a".into(), "+"))),
        ("parentheses", format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n))),
        ("negations", format!("SELECT * FROM t WHERE {} a = 1", "NOT ".repeat(n))),
    ]
}

#[test]
fn deep_queries_are_answered() {
    for workers in [0, 2] {
        let mut session = with_table(workers);
        for (shape, sql) in shapes(40) {
            assert!(answered(session.query(&sql)), "{shape}");
        }
        for (shape, sql) in shapes(400) {
            let is_answered = answered(session.query(&sql));
            assert!(is_answered || ["differences", "parentheses", "negations"].contains(&shape), "{shape}");
        }
    }
}

#[test]
fn no_depth_ends_the_process() {
    for workers in [0, 2] {
        let mut session = with_table(workers);
        for n in [700, 5000] {
            for (_, sql) in shapes(n) {
                answered(session.query(&sql));
            }
        }
        assert_eq!(session.query("SELECT * FROM t").unwrap().num_rows(), 2);
    }
}

#[test]
fn a_small_stack_will_do() {
    let body = || {
        let mut session = with_table(0);
        for n in [15, 20, 30, 60, 65, 400] {
            for (shape, sql) in shapes(n) {
                let is_answered = answered(session.query(&sql));
                assert!(is_answered || n == 400, "{shape}");
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(1_300 << 10).spawn(body).unwrap();
    thread.join().unwrap();
}

#[test]
fn views_stand_on_views() {
    let mut session = with_table(0);
    session.execute("CREATE VIEW v0 AS SELECT a AS x FROM t").unwrap();
    for at in 0..120 {
        let sql = format!("CREATE VIEW v{} AS SELECT x + 1 AS x FROM v{at}", at + 1);
        if let Err(error) = session.execute(&sql) {
            assert!(error.message.contains("nested too deeply"), "{error:?}");
            assert!(at >= 60, "{at}");
            break;
        }
    }
    assert!(answered(session.query("SELECT * FROM v60")));
}

/// What is too deep is found once, not anew at each view around it.
#[test]
fn views_of_all_columns_stand_on_views() {
    let mut session = with_table(0);
    session.execute("CREATE VIEW v0 AS SELECT a AS x FROM t").unwrap();
    let condition = format!("{}x > 0{}", "(".repeat(300), ")".repeat(300));
    let refused = (0..100).find_map(|at| {
        let sql = format!("CREATE VIEW v{} AS SELECT * FROM v{at} WHERE {condition}", at + 1);
        session.execute(&sql).err().map(|error| (at, error))
    });
    let (at, error) = refused.expect("views do not stand on each other without end");
    assert!(at >= 24 && error.message.contains("nested too deeply"), "{at}: {error:?}");
    assert!(answered(session.query("SELECT * FROM v20")));
}

/// The planner looks through a subquery twice for each one around it, and through a query in WITH
/// as often as it is read.
#[test]
fn what_would_be_planned_for_ever_is_refused_before() {
    let mut session = with_table(0);
    let within = |n: usize| format!("SELECT 1 WHERE {}true{}", "EXISTS (SELECT 1 WHERE ".repeat(n), ")".repeat(n));
    let doubled = |n: usize| {
        let double = |at: usize| format!(", d{at} AS (SELECT a FROM d{0} UNION ALL SELECT a FROM d{0})", at - 1);
        let named: String = (1..=n).map(double).collect();
        format!("WITH d0 AS (SELECT a FROM t){named} SELECT count(*) FROM d{n}")
    };
    assert!(answered(session.query(&within(12))) && answered(session.query(&doubled(6))));
    for sql in [within(17), within(100), doubled(14), doubled(40)] {
        assert!(!answered(session.query(&sql)), "{sql}");
    }
}
