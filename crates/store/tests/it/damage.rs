//! Files that are not what was written.

use std::sync::Arc;

use anabranch_store::{Disk, SimulatedDisk, Store, StoreError, check};

use crate::model::{Model, Rng, run, small};

/// A closed database with a snapshot and some segments behind it, and what it holds.
fn database(rng: &mut Rng) -> (SimulatedDisk, Model) {
    let disk = SimulatedDisk::new();
    let (store, _) = Store::open(Arc::new(disk.clone()), small()).unwrap();
    let mut state = Model::default();
    for step in 0..40 {
        let commit = state.random_commit(rng);
        state.apply(&commit);
        store.append(&commit).unwrap();
        if step == 20 {
            store.snapshot().unwrap();
        }
    }
    store.close().unwrap();
    (disk, state)
}

#[test]
fn any_byte_that_changed_in_a_closed_database_is_found_and_its_file_is_named() {
    run(12, |rng| {
        let (disk, state) = database(rng);
        let names: Vec<String> = disk.names().unwrap();
        assert!(names.len() >= 3, "{names:?}");
        for _ in 0..300 {
            let name = &names[rng.below(names.len())];
            let offset = rng.below(disk.contents(name).unwrap().len());
            let flip = 1 << rng.below(8);
            disk.damage(name, offset, flip);
            match check(&disk) {
                Err(StoreError::Damaged { file, .. } | StoreError::Version { file, .. }) => assert_eq!(file, *name),
                Err(error) => panic!("{name} at {offset}: {error}"),
                Ok(_) => panic!("{name} at {offset}: nothing was found"),
            }
            disk.damage(name, offset, flip);
        }
        let (_, contents) = Store::open(Arc::new(disk), small()).unwrap();
        assert_eq!(Model::of(&contents), state);
    });
}

/// A blank in the place of the last line's end was none of the numbers, and passed.
#[test]
fn any_bit_of_the_manifest_that_changed_is_found() {
    run(3, |rng| {
        let (disk, _) = database(rng);
        for offset in 0..disk.contents("MANIFEST").unwrap().len() {
            for bit in 0..8 {
                disk.damage("MANIFEST", offset, 1 << bit);
                let found = check(&disk).err();
                let Some(StoreError::Damaged { file, .. } | StoreError::Version { file, .. }) = &found else {
                    panic!("bit {bit} at {offset}: {found:?}");
                };
                assert_eq!(file, "MANIFEST");
                disk.damage("MANIFEST", offset, 1 << bit);
            }
        }
        check(&disk).unwrap();
    });
}

#[test]
fn a_file_that_is_missing_is_named() {
    run(10, |rng| {
        let (disk, _) = database(rng);
        let names: Vec<String> = disk.names().unwrap();
        let name = &names[rng.below(names.len())];
        disk.remove(name).unwrap();
        let error = check(&disk).unwrap_err();
        match &error {
            // Without the last segments, the one before ends too early.
            StoreError::Damaged { file, .. } => assert!(file == name || file.ends_with(".log"), "{error}"),
            error => panic!("{error}"),
        }
    });
}

#[test]
fn damage_before_frames_that_knew_it_on_disk_is_not_taken_for_a_torn_tail() {
    run(40, |rng| {
        let disk = SimulatedDisk::new();
        let (store, _) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        let mut state = Model::default();
        let mut ends = vec![0];
        for _ in 0..4 {
            let commit = state.random_commit(rng);
            state.apply(&commit);
            store.append(&commit).unwrap().wait().unwrap();
            ends.push(disk.contents("000001.log").unwrap().len());
        }
        // Not closed: the process was killed.
        let killed = disk.crash(|bound| bound - 1);
        if killed.contents("000002.log").is_some() {
            return;
        }
        let (first, last) = (ends[1].max(41), ends[3]);
        killed.damage("000001.log", 40 + rng.below(first - 40), 4);
        let error = check(&killed).unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { file, offset: 40, .. } if file == "000001.log"), "{error}");
        // The last commit alone cannot be told from a torn tail: no reader saw it on disk.
        let torn = disk.crash(|bound| bound - 1);
        torn.damage("000001.log", last + rng.below(ends[4] - last), 4);
        assert!(check(&torn).unwrap().torn_bytes > 0);
    });
}

#[test]
fn garbage_gives_errors_and_never_panics() {
    run(60, |rng| {
        let (disk, _) = database(rng);
        let names: Vec<String> = disk.names().unwrap();
        for _ in 0..20 {
            let name = &names[rng.below(names.len())];
            let mut bytes = disk.contents(name).unwrap();
            match rng.below(5) {
                0 => bytes.truncate(rng.below(bytes.len())),
                1 => {
                    let (from, to) = (rng.below(bytes.len()), rng.below(bytes.len()));
                    let length = rng.below(bytes.len() - from.max(to));
                    bytes.copy_within(from..from + length, to);
                }
                2 => bytes.extend((0..rng.below(200)).map(|_| rng.bits() as u8)),
                3 => bytes.clear(),
                _ => {
                    for _ in 0..1 + rng.below(20) {
                        let at = rng.below(bytes.len());
                        bytes[at] = [0, 1, 0x7f, 0x80, 0xff, rng.bits() as u8][rng.below(6)];
                    }
                }
            }
            reseal(&mut bytes, rng);
            let other = SimulatedDisk::new();
            for kept in &names {
                let contents = if kept == name { bytes.clone() } else { disk.contents(kept).unwrap() };
                other.create(kept).unwrap().write_at(0, &contents).unwrap();
            }
            if let Ok((store, contents)) = Store::open(Arc::new(other), small()) {
                for object in contents.objects() {
                    let _ = contents.rows(object.id, |_| Ok::<(), StoreError>(()));
                }
                drop(store);
            }
        }
    });
}

/// Gives some frames right checksums again, so that what is behind the checksums is reached as
/// well.
fn reseal(bytes: &mut [u8], rng: &mut Rng) {
    let mut at = 40;
    while rng.chance(70) && at + 40 <= bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let end = at + 40 + length;
        if end > bytes.len() {
            return;
        }
        let checksum = crc32fast::hash(&bytes[at + 4..end]);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        if end + 40 <= bytes.len() {
            bytes[end + 36..end + 40].copy_from_slice(&checksum.to_le_bytes());
        }
        at = end;
    }
}
