//! Advisory locks between clients.

use std::thread;
use std::time::{Duration, Instant};

use anabranch_engine::Connection;

use crate::connections::{ask, database, fail, run};
use crate::support;

fn tries(connection: &mut Connection, call: &str) -> bool {
    ask(connection, &format!("SELECT {call}")) == ["true"]
}

#[test]
fn a_lock_is_one_client_s_until_it_is_given_back_as_often() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "SELECT pg_advisory_lock(7), pg_advisory_lock(7)");
    assert!(!tries(&mut there, "pg_try_advisory_lock(7)") && tries(&mut there, "pg_try_advisory_lock(0, 7)"));
    assert!(tries(&mut here, "pg_advisory_unlock(7)") && !tries(&mut there, "pg_try_advisory_lock_shared(7)"));
    assert!(tries(&mut here, "pg_advisory_unlock(7)") && !tries(&mut here, "pg_advisory_unlock(7)"));
    assert!(tries(&mut there, "pg_try_advisory_lock_shared(7)") && tries(&mut here, "pg_try_advisory_lock_shared(7)"));
    assert!(!tries(&mut here, "pg_try_advisory_lock(7)"));
    run(&mut there, "SELECT pg_advisory_unlock_all()");
    assert!(tries(&mut here, "pg_try_advisory_lock(7)"));
    drop(here);
    run(&mut there, "SELECT pg_advisory_lock(7)");
}

#[test]
fn locks_of_a_transaction_go_with_it_and_others_do_not() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "BEGIN; SELECT pg_advisory_xact_lock(1), pg_advisory_lock(2); ROLLBACK");
    assert!(tries(&mut there, "pg_try_advisory_lock(1)") && !tries(&mut there, "pg_try_advisory_lock(2)"));
    run(&mut here, "BEGIN; SELECT pg_try_advisory_xact_lock(3)");
    assert!(!tries(&mut there, "pg_try_advisory_lock(3)"));
    // (A transaction that has failed is over as far as others can see.)
    fail(&mut here, "SELECT 1 / 0");
    assert!(tries(&mut there, "pg_try_advisory_lock(3)"));
    run(&mut here, "ROLLBACK; SELECT pg_advisory_xact_lock(4); SELECT pg_advisory_lock(NULL)");
    assert!(tries(&mut there, "pg_try_advisory_lock(4)"));
    run(&mut here, "SELECT pg_advisory_lock(5); DISCARD ALL");
    assert!(tries(&mut there, "pg_try_advisory_lock(5)"));
}

#[test]
fn a_client_waits_for_a_lock_and_is_not_in_the_way_of_others() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE TABLE t (a int); CREATE SEQUENCE s; SELECT pg_advisory_lock(1)");
    let waiting = thread::spawn(move || {
        let numbers = ask(&mut there, "SELECT nextval('s'), pg_advisory_lock(2), pg_advisory_lock(1)");
        (there, numbers, Instant::now())
    });
    thread::sleep(Duration::from_millis(100));
    // What waits has given back what it had taken before.
    assert!(tries(&mut here, "pg_try_advisory_lock(2)"));
    run(&mut here, "INSERT INTO t VALUES (1)");
    let released = Instant::now();
    run(&mut here, "SELECT pg_advisory_unlock_all()");
    let (mut there, numbers, taken) = waiting.join().unwrap();
    assert!(taken >= released);
    assert_eq!(numbers, ["1  "]);
    assert!(tries(&mut there, "pg_advisory_unlock(2)") && !tries(&mut there, "pg_advisory_unlock(2)"));
}

#[test]
fn waits_end_by_timeouts_interrupts_and_deadlocks() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "SELECT pg_advisory_lock(1)");
    run(&mut there, "SELECT pg_advisory_lock(2); SET lock_timeout = '50ms'");
    assert_eq!(fail(&mut there, "SELECT pg_advisory_lock(1)").sqlstate(), "55P03");
    run(&mut there, "RESET lock_timeout; SET statement_timeout = '50ms'");
    assert_eq!(fail(&mut there, "SELECT pg_advisory_lock(1)").sqlstate(), "57014");
    run(&mut there, "RESET statement_timeout");
    let interrupt = there.interrupt();
    let waiting = thread::spawn(move || {
        let interrupted = fail(&mut there, "SELECT pg_advisory_lock(1)");
        let ended = there.execute("SELECT pg_advisory_lock(1)").err();
        (interrupted, ended)
    });
    thread::sleep(Duration::from_millis(50));
    interrupt.trigger();
    thread::sleep(Duration::from_millis(50));
    // One of the two that wait for each other is told so; the other goes on when that one has gone.
    let ended_here = here.execute("SELECT pg_advisory_lock(2)").err();
    drop(here);
    let (interrupted, ended_there) = waiting.join().unwrap();
    assert_eq!(interrupted.sqlstate(), "57014");
    let ended: Vec<_> = [ended_here, ended_there].into_iter().flatten().collect();
    assert!(ended.len() == 1 && ended[0].sqlstate() == "40P01", "{ended:?}");
}

/// The error is told, and not taken for the wait before it.
#[test]
fn a_statement_that_has_waited_may_fail() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "SELECT pg_advisory_lock(1)");
    let waiting =
        thread::spawn(move || fail(&mut there, "SELECT 1 / length(pg_advisory_lock(1))").sqlstate().to_owned());
    thread::sleep(Duration::from_millis(50));
    run(&mut here, "SELECT pg_advisory_unlock(1)");
    assert_eq!(waiting.join().unwrap(), "22012");
    assert!(tries(&mut here, "pg_try_advisory_lock(1)"));
}

#[test]
fn clients_of_a_session_have_locks_too_and_views_have_none() {
    let mut session = support::session(0);
    let mut other = session.client();
    support::run(&mut session, "SELECT pg_advisory_lock(1)");
    let error = session.as_client(&mut other, |session| support::fail(session, "SELECT pg_advisory_lock(1)"));
    assert_eq!(error.sqlstate(), "55P03");
    support::fail(&mut session, "CREATE MATERIALIZED VIEW v AS SELECT pg_try_advisory_lock(2) AS has");
    support::run(&mut session, "SELECT pg_advisory_unlock_all()");
    session.as_client(&mut other, |session| support::run(session, "SELECT pg_advisory_lock(1)"));
}
