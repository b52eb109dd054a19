//! Disks that are full, deny, or do not answer.

use std::sync::Arc;

use anabranch_store::{Faults, SimulatedDisk, Store, StoreError};

use crate::model::{Model, run, small};

#[test]
fn a_commit_without_room_is_refused_and_later_ones_go_on() {
    run(100, |rng| {
        let disk = SimulatedDisk::new();
        let (store, _) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        let mut state = Model::default();
        let mut n_refused = 0;
        for _ in 0..60 {
            let capacity_bytes = rng.chance(50).then(|| rng.below(60_000) as u64);
            disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
            let commit = state.random_commit(rng);
            match store.append(&commit) {
                Ok(ticket) => {
                    ticket.wait().unwrap();
                    state.apply(&commit);
                }
                Err(StoreError::Full { .. }) => n_refused += 1,
                Err(error) => panic!("{error}"),
            }
            if rng.chance(10) {
                let _ = store.snapshot();
            }
        }
        assert!(n_refused > 0 && store.failed().is_none());
        disk.set_faults(Faults::default());
        let disk = disk.crash(|bound| rng.below(bound));
        let (_, contents) = Store::open(Arc::new(disk), small()).unwrap();
        assert_eq!(Model::of(&contents), state, "refused commits are not there, the others are");
    });
}

#[test]
fn after_a_sync_that_failed_nothing_is_taken_until_it_is_opened_again() {
    run(50, |rng| {
        let disk = SimulatedDisk::new();
        let (store, _) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        let mut states = vec![Model::default()];
        for _ in 0..5 {
            let mut next = states.last().unwrap().clone();
            let commit = next.random_commit(rng);
            next.apply(&commit);
            store.append(&commit).unwrap().wait().unwrap();
            states.push(next);
        }
        let mut next = states.last().unwrap().clone();
        let commit = next.random_commit(rng);
        next.apply(&commit);
        states.push(next);
        disk.set_faults(Faults { sync_fails: true, ..Faults::default() });
        let Ok(ticket) = store.append(&commit) else { return };
        let Err(error) = ticket.wait() else { return };
        assert!(matches!(error, StoreError::Failed { .. }), "{error}");
        assert_eq!(store.append(&commit).unwrap_err(), error);
        assert_eq!(store.failed(), Some(error));
        let disk = disk.crash(|bound| rng.below(bound));
        let (_, contents) = Store::open(Arc::new(disk), small()).unwrap();
        let found = Model::of(&contents);
        assert!(states[5..].contains(&found), "what was acknowledged is there");
    });
}

#[test]
fn a_disk_that_denies_is_read() {
    let disk = SimulatedDisk::new();
    let (store, _) = Store::open(Arc::new(disk.clone()), small()).unwrap();
    let state = Model::default();
    let mut rng = crate::model::Rng::of(7);
    let commit = state.random_commit(&mut rng);
    store.append(&commit).unwrap().wait().unwrap();
    store.close().unwrap();
    disk.set_faults(Faults { is_denied: true, ..Faults::default() });
    let (store, contents) = Store::open(Arc::new(disk.clone()), small()).unwrap();
    assert_eq!(contents.objects().len(), 1);
    let error = store.append(&commit).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    drop(store);
    disk.set_faults(Faults::default());
    Store::open(Arc::new(disk), small()).unwrap();
}
