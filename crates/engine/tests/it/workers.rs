//! Sessions beside each other on one thread.

use crate::support::{ask, run, session};

/// The kinds of operators that have had steps.
fn kinds(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.split(' ').next()).collect()
}

/// The lengths of steps were once kept per thread: each session showed the steps of all.
#[test]
fn two_sessions_of_one_thread_show_their_own_steps() {
    let (mut busy, mut quiet) = (session(0), session(0));
    run(&mut busy, "CREATE TABLE t (g int, v int); CREATE MATERIALIZED VIEW s AS SELECT g, sum(v) FROM t GROUP BY g");
    run(&mut quiet, "CREATE TABLE u (a int)");
    // To count anew in one session leaves the other's counts alone.
    quiet.reset_steps();
    let before = ask(&mut quiet, "SHOW STEPS");
    run(&mut busy, "INSERT INTO t VALUES (1, 2), (1, 3)");
    assert_eq!(ask(&mut busy, "SELECT * FROM s"), ["1 5"]);
    let steps = ask(&mut busy, "SHOW STEPS");
    assert!(kinds(&steps).contains(&"Arrange"), "{steps:?}");
    assert_eq!((before, ask(&mut quiet, "SHOW STEPS")), (vec![], vec![]), "the busy session's steps are its own");
}
