//! Sources: turns, waiting, rates, failures.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Error, ErrorKind, ManualClock, Options, Poll, Session, SourceState, StepStatus};

use crate::support::{Scripted, Silent, ask, fail, pairs, run, with_workers};

const PENDING: Duration = Duration::from_millis(1);

#[test]
fn a_select_waits_for_the_sources_behind_it() {
    with_workers(|session| {
        let polls = vec![
            Ok(Poll::Rows(pairs(&[(1, "a"), (2, "b")]))),
            Ok(Poll::Pending { retry_after: PENDING }),
            Ok(Poll::Rows(pairs(&[(3, "c")]))),
        ];
        session.register_connector("test", Arc::new(Scripted::new(polls)));
        run(
            session,
            "CREATE SOURCE s WITH (connector = 'test'); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s",
        );
        assert_eq!(ask(session, "SELECT n FROM n"), ["3"]);
        assert_eq!(ask(session, "SELECT k FROM s WHERE v = 'c'"), ["3"]);
        assert_eq!(ask(session, "SHOW SOURCES"), ["s test done 3 0 null null"]);
        assert_eq!(session.sources()[0].state, SourceState::Done);
    });
}

#[test]
fn without_waiting_a_select_sees_what_has_come() {
    with_workers(|session| {
        let polls = (0..3).map(|i| Ok(Poll::Rows(pairs(&[(i, "a")])))).collect();
        session.register_connector("test", Arc::new(Scripted::new(polls)));
        run(session, "SET wait_for_sources = off; CREATE SOURCE s WITH (connector = 'test')");
        assert_eq!(ask(session, "SELECT count(*) FROM s"), ["0"]);
        while session.sources()[0].rows == 0 {
            session.step().unwrap();
        }
        assert_eq!(ask(session, "SELECT count(*) FROM s"), ["1"]);
        session.wait().unwrap();
        assert_eq!(ask(session, "SELECT count(*) FROM s"), ["3"]);
    });
}

#[test]
fn a_source_that_fails_stops_alone() {
    with_workers(|session| {
        let failing = vec![Ok(Poll::Rows(pairs(&[(1, "a")]))), Err(Error::data("file x.csv, line 3: no number"))];
        session.register_connector("failing", Arc::new(Scripted::new(failing)));
        session.register_connector("good", Arc::new(Scripted::new(vec![Ok(Poll::Rows(pairs(&[(1, "a")])))])));
        run(session, "CREATE SOURCE bad WITH (connector = 'failing'); CREATE SOURCE good WITH (connector = 'good')");
        let error = fail(session, "SELECT * FROM bad");
        assert_eq!(error.kind, ErrorKind::Data);
        assert_eq!(error.message, "source \"bad\" failed: file x.csv, line 3: no number");
        assert_eq!(ask(session, "SELECT k FROM good"), ["1"]);
        assert!(session.wait().is_err());
        run(session, "SET wait_for_sources = off");
        let rows = session.query("SELECT k FROM bad").unwrap();
        assert_eq!((rows.num_rows(), rows.notices.len()), (1, 1));
        run(session, "DROP SOURCE bad; SET wait_for_sources = on");
        session.wait().unwrap();
    });
}

#[test]
fn a_rate_is_kept_by_the_clock() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let mut session = Session::new(Options { clock: clock.clone(), ..Options::default() }).unwrap();
    let polls = (0..5).map(|i| Ok(Poll::Rows(pairs(&[(i, "a")])))).collect();
    session.register_connector("test", Arc::new(Scripted::new(polls)));
    run(&mut session, "CREATE SOURCE s WITH (connector = 'test', rate = '10')");
    while session.step().unwrap() == StepStatus::Working {}
    assert_eq!(session.step().unwrap(), StepStatus::Idle { retry_after: Some(Duration::from_millis(100)) });
    assert_eq!(ask(&mut session, "SELECT count(*) FROM s"), ["0"]);
    clock.set(1_250_000);
    while session.step().unwrap() == StepStatus::Working {}
    assert_eq!(ask(&mut session, "SELECT count(*) FROM s"), ["2"]);
}

#[test]
fn a_source_keeps_nothing_when_told_so() {
    with_workers(|session| {
        session.register_connector("test", Arc::new(Scripted::new(vec![Ok(Poll::Rows(pairs(&[(1, "a"), (2, "a")])))])));
        run(
            session,
            "CREATE SOURCE s WITH (connector = 'test', retain = 'none');
             CREATE MATERIALIZED VIEW n AS SELECT v, count(*) AS n FROM s GROUP BY v",
        );
        assert_eq!(ask(session, "SELECT * FROM n"), ["a 2"]);
        assert!(fail(session, "SELECT * FROM s").message.contains("keeps no rows"));
        assert_eq!(ask(session, "SHOW ARRANGEMENTS").len(), 1);
    });
}

#[test]
fn primary_keys_and_wrong_options_of_sources_are_refused() {
    with_workers(|session| {
        session.register_connector("silent", Arc::new(Silent));
        assert!(
            fail(session, "CREATE SOURCE s (k bigint PRIMARY KEY, v text) WITH (connector = 'silent')")
                .message
                .contains("primary key")
        );
        assert!(fail(session, "CREATE SOURCE s WITH (connector = 'silent', rate = 'slow')").message.contains("rate"));
        assert!(
            fail(session, "CREATE SOURCE s WITH (connector = 'silence')")
                .hint
                .unwrap()
                .contains("Did you mean 'silent'?")
        );
        assert!(session.sources().is_empty());
    });
}
