//! Commits of several times: what no reader reads is added up, what a reader reads is not.

use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::Times;
use anabranch_engine::{Changes, ManualClock, Options, Outcome, Session};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::support::{ask, batch_lines, run, whole};

const VIEW: &str = "create materialized view sums as select k % 2 as parity, sum(v) as s from t group by k % 2";

fn sessions() -> Vec<Session> {
    let session = |workers| {
        let clock = Arc::new(ManualClock::new(1_000));
        let mut session = Session::new(Options { workers, clock, ..Options::default() }).unwrap();
        run(&mut session, "create table t (k bigint, v bigint)");
        session
    };
    (0..3).map(session).collect()
}

/// Rows `(k, 10)` for `k` below `n`, each at a time of its own, the first at `from`, as one commit.
fn commit_times(session: &mut Session, from: i64, n: i64) {
    let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let rows = [("k", column((0..n).collect())), ("v", column(vec![10; n as usize]))];
    let rows = RecordBatch::try_from_iter(rows).unwrap();
    session.ingest("t", &rows, Some(Times::Column((from..from + n).collect())), None).unwrap();
    assert_eq!(session.commit().unwrap(), from + n - 1);
}

#[test]
fn times_that_nobody_reads_leave_no_changes_behind() {
    let mut session = sessions().remove(0);
    run(&mut session, VIEW);
    for from in [2_000, 3_000] {
        commit_times(&mut session, from, 100);
        session.wait().unwrap();
    }
    assert_eq!(ask(&mut session, "select * from sums order by parity"), ["0 1000", "1 1000"]);
    let arrangements = session.query("show arrangements").unwrap();
    let batch = &arrangements.batches[0];
    let relations = batch_lines(&batch.project(&[0]).unwrap());
    let place = relations.iter().position(|relation| relation == "sums").unwrap();
    let rows = batch.column_by_name("rows").unwrap().as_primitive::<Int64Type>().value(place);
    assert!(rows <= 6, "{rows} updates of two rows, which changed twice at times that can be read");
}

#[test]
fn kept_history_is_read_at_every_time_of_a_commit() {
    for mut session in sessions() {
        run(&mut session, "set retain_history = '1 hour'");
        run(&mut session, VIEW);
        run(&mut session, "create view doubled as select parity, 2 * s as s from sums");
        commit_times(&mut session, 2_000, 10);
        assert_eq!(ask(&mut session, "select * from sums order by parity as of 2000"), ["0 10"]);
        assert_eq!(ask(&mut session, "select * from sums order by parity as of 2004"), ["0 30", "1 20"]);
        assert_eq!(ask(&mut session, "select * from doubled order by parity as of 2007"), ["0 80", "1 80"]);
        assert_eq!(ask(&mut session, "select * from sums order by parity"), ["0 50", "1 50"]);
    }
}

/// The view itself is read at commits only, but it is shared with a subscription that shows every
/// time.
#[test]
fn a_subscription_to_a_view_shows_every_time_of_a_commit() {
    for mut session in sessions() {
        run(&mut session, VIEW);
        let Some(Outcome::Subscription(all)) = run(&mut session, "subscribe (select s from sums)").pop() else {
            panic!("a subscription")
        };
        commit_times(&mut session, 2_000, 3);
        let mut seen = Vec::new();
        while seen.len() < 4 {
            match session.next_changes(&all, Duration::from_secs(20)).unwrap() {
                Changes::Rows(batch) => seen.extend(batch_lines(&whole(&batch))),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, ["2000 1 10", "2001 1 10", "2002 -1 10", "2002 1 20"]);
        session.unsubscribe(all);
        commit_times(&mut session, 3_000, 4);
        assert_eq!(ask(&mut session, "select s from sums order by parity"), ["40", "30"]);
    }
}
