//! AS OF, and how much history is kept.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Changes, ManualClock, Options, Outcome, Session};

use crate::support::{ask, batch_lines, fail, run, whole};

/// A session whose commits have the times that the clock is set to.
fn timed(workers: usize) -> (Session, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1_000));
    let options = Options { workers, clock: clock.clone(), ..Options::default() };
    (Session::new(options).unwrap(), clock)
}

/// Commits at 2000, 3000, 4000 with all history kept.
fn filled(workers: usize) -> Session {
    let (mut session, clock) = timed(workers);
    run(&mut session, "set retain_history = '1 hour'");
    run(
        &mut session,
        "create table t (k int primary key, v int not null); create table names (k int primary key, n text)",
    );
    run(&mut session, "create materialized view sums as select v, count(*) as c from t group by v");
    for (time, change) in [
        (2_000, "insert into t values (1, 10), (2, 20)"),
        (3_000, "insert into t values (3, 10)"),
        (3_500, "insert into names values (1, 'one'), (3, 'three')"),
        (4_000, "delete from t where k = 1"),
    ] {
        clock.set(time);
        run(&mut session, change);
    }
    session
}

#[test]
fn a_select_as_of_a_time_reads_what_was() {
    for workers in 0..3 {
        let mut session = filled(workers);
        assert_eq!(ask(&mut session, "select k from t order by k as of 2000"), ["1", "2"]);
        assert_eq!(ask(&mut session, "select k from t order by k as of 3999"), ["1", "2", "3"]);
        assert_eq!(ask(&mut session, "select k from t where k = 1 as of 2500 + 400"), ["1"]);
        assert_eq!(ask(&mut session, "select k from t where k = 1"), Vec::<String>::new());
        assert_eq!(
            ask(&mut session, "select * from sums order by v as of timestamp '1970-01-01 00:00:00.003'"),
            ["10 2", "20 1"]
        );
        assert_eq!(ask(&mut session, "select k from t as of '1970-01-01 00:00:00.001500'"), Vec::<String>::new());
        let join = "select t.k, n from t left join names on t.k = names.k order by t.k";
        assert_eq!(ask(&mut session, &format!("{join} as of 3000")), ["1 null", "2 null", "3 null"]);
        assert_eq!(ask(&mut session, &format!("{join} as of 3500")), ["1 one", "2 null", "3 three"]);
        assert_eq!(ask(&mut session, join), ["2 null", "3 three"]);
    }
}

#[test]
fn the_error_tells_the_range_that_can_be_read() {
    let (mut session, clock) = timed(0);
    run(&mut session, "create table t (k int)");
    for time in [2_000, 3_000] {
        clock.set(time);
        run(&mut session, "insert into t values (1)");
    }
    let text = "select * from t as of 2000";
    let error = fail(&mut session, text).render(text);
    assert!(error.contains("table \"t\" cannot be read as of 2000"), "{error}");
    let range = "as of 3000 (1970-01-01 00:00:00.003000) to 3000 (1970-01-01 00:00:00.003000), the last commit";
    assert!(error.contains(range) && error.contains("retain_history"), "{error}");
    let text = "select * from t as of 3001";
    assert!(fail(&mut session, text).render(text).contains("SHOW TIME"));
    for text in ["select * from t as of k", "select * from t as of interval '1 day'", "select * from t as of null"] {
        fail(&mut session, text);
    }
    assert!(fail(&mut session, "create view v as select * from t as of 3000").render("").contains("AS OF"));
    let text = "select * from t as of 3000 where k > 1";
    assert!(fail(&mut session, text).render(text).contains("AS OF comes last"));
    assert_eq!(ask(&mut session, "show time"), ["3000 1970-01-01T00:00:00.003"]);
    assert_eq!(ask(&mut session, "select count(*) as of from t"), ["2"]);
}

#[test]
fn history_is_kept_as_long_as_asked() {
    let (mut session, clock) = timed(0);
    run(&mut session, "create table t (k int)");
    run(&mut session, "set retain_history = '1 ms'");
    for time in 2..60 {
        clock.set(time * 500);
        run(&mut session, &format!("insert into t values ({time})"));
    }
    let last = session.time();
    assert_eq!(ask(&mut session, &format!("select count(*) from t as of {}", last - 1_000)), ["56"]);
    fail(&mut session, &format!("select count(*) from t as of {}", last - 1_001));
    assert_eq!(ask(&mut session, "show retain_history"), ["1 ms"]);
}

#[test]
fn a_subscription_as_of_a_time_begins_there() {
    for workers in 0..3 {
        let mut session = filled(workers);
        let outcomes = run(&mut session, "subscribe (select v, count(*) as c from t group by v) as of 2000 up to 5000");
        let Some(Outcome::Subscription(subscription)) = outcomes.into_iter().next() else { panic!() };
        let mut changes = Vec::new();
        while changes.len() < 6 {
            match session.next_changes(&subscription, Duration::from_secs(10)).unwrap() {
                Changes::Rows(batch) => changes.extend(batch_lines(&whole(&batch))),
                Changes::Progress(_) => {}
                other => panic!("{other:?} after {changes:?}"),
            }
        }
        assert_eq!(
            changes,
            ["2000 1 10 1", "2000 1 20 1", "3000 -1 10 1", "3000 1 10 2", "4000 -1 10 2", "4000 1 10 1"]
                .map(String::from)
        );
    }
}
