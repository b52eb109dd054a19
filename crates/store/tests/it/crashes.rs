//! The machine stops at any operation; the disk loses what was not synced.

use std::sync::Arc;

use anabranch_store::{Faults, SimulatedDisk, Store, StoreError, Ticket};

use crate::model::{Model, Rng, run, small};

/// A database while it is open: the states after each commit, and how many are known to be on disk.
struct Open {
    states: Vec<Model>,
    n_durable: usize,
    tickets: Vec<(Ticket, usize)>,
}

/// Commits, waits, writes snapshots at random, until something fails or the steps are over.
fn work(store: &Store, open: &mut Open, rng: &mut Rng, n_steps: usize) -> Result<(), StoreError> {
    for _ in 0..n_steps {
        let last = open.states.last().unwrap();
        let commit = last.random_commit(rng);
        let mut next = last.clone();
        next.apply(&commit);
        // While it is being written the machine may stop: then it may be there or not.
        open.states.push(next);
        let ticket = store.append(&commit)?;
        open.tickets.push((ticket, open.states.len() - 1));
        if rng.chance(40) {
            let (ticket, state) = open.tickets[rng.below(open.tickets.len())].clone();
            ticket.wait()?;
            assert!(ticket.is_durable());
            open.n_durable = open.n_durable.max(state);
        }
        if rng.chance(4) {
            store.snapshot()?;
        }
    }
    Ok(())
}

/// Opens, works and stops some times; after each stop there is a state that was, and not one before
/// what was acknowledged.
fn crash_some_times(rng: &mut Rng, n_crashes: usize) {
    let mut disk = SimulatedDisk::new();
    let mut state = Model::default();
    for _ in 0..n_crashes {
        let stops_at = disk.n_operations() + rng.below(120) as u64;
        disk.set_faults(Faults { stops_at: Some(stops_at), ..Faults::default() });
        let mut open = Open { states: vec![state.clone()], n_durable: 0, tickets: vec![] };
        match Store::open(Arc::new(disk.clone()), small()) {
            Ok((store, contents)) => {
                assert_eq!(Model::of(&contents), state, "opening twice gives the same");
                let n_steps = rng.below(60);
                let worked = work(&store, &mut open, rng, n_steps);
                if rng.chance(20) && worked.is_ok() && store.close().is_ok() {
                    open.n_durable = open.states.len() - 1;
                }
            }
            Err(error) => assert!(matches!(error, StoreError::Io { .. }), "{error}"),
        }
        disk = disk.crash(|bound| rng.below(bound));
        let (store, contents) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        let found = Model::of(&contents);
        let place = open.states.iter().rposition(|state| *state == found);
        let place = place.unwrap_or_else(|| panic!("{found:?} is no state that was"));
        assert!(place >= open.n_durable, "commit {} was acknowledged, {place} is there", open.n_durable);
        state = found;
        drop((store, contents));
    }
}

#[test]
fn what_was_acknowledged_is_there_after_any_crash_and_nothing_is_there_in_part() {
    run(100, |rng| crash_some_times(rng, 6));
}

/// As above, where a fuzzer decides (`cargo bolero test`).
#[test]
fn crashes_that_coverage_leads_to_lose_nothing() {
    bolero::check!().with_iterations(20).for_each(|bytes: &[u8]| crash_some_times(&mut Rng::of_bytes(bytes), 1));
}

#[test]
fn a_closed_database_has_everything() {
    run(50, |rng| {
        let disk = SimulatedDisk::new();
        let mut state = Model::default();
        for _ in 0..4 {
            let (store, contents) = Store::open(Arc::new(disk.clone()), small()).unwrap();
            assert_eq!(Model::of(&contents), state);
            let mut open = Open { states: vec![state.clone()], n_durable: 0, tickets: vec![] };
            work(&store, &mut open, rng, 40).unwrap();
            store.close().unwrap();
            state = open.states.last().unwrap().clone();
        }
    });
}

#[test]
fn a_snapshot_holds_what_the_log_held_and_the_log_is_short_again() {
    run(40, |rng| {
        let disk = SimulatedDisk::new();
        let (store, _) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        let mut open = Open { states: vec![Model::default()], n_durable: 0, tickets: vec![] };
        work(&store, &mut open, rng, 60).unwrap();
        store.snapshot().unwrap();
        assert_eq!(store.statistics().log_bytes, 0);
        store.close().unwrap();
        let report = anabranch_store::check(&disk).unwrap();
        assert_eq!(report.n_commits, 1, "the snapshot counts as one commit, and nothing follows");
        assert_eq!(report.files.len(), 3, "{:?}", report.files);
        let (_, contents) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        assert_eq!(Model::of(&contents), *open.states.last().unwrap());
    });
}
