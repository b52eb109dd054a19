//! Random files, and files that coverage leads to (`cargo bolero test`, `make soak`): opening never
//! panics, believes no length before its bytes are there, and opens what it has opened once more.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use arrow::array::{ArrayRef, BooleanArray, Decimal128Array, Int64Array, ListArray, StringViewArray};
use arrow::datatypes::Int32Type;

use crate::commit::{Commit, Created, Fact, Framing, TAG_CREATED};
use crate::disk::Disk;
use crate::frame::{FileHeader, FrameHeader, HEADER_BYTES, LOG_MAGIC, SNAPSHOT_MAGIC, seal};
use crate::manifest::{MANIFEST, Manifest, segment_name, snapshot_name};
use crate::simulated::SimulatedDisk;
use crate::store::{Store, StoreOptions, Threads};
use crate::{Contents, StoreError};

fn options() -> StoreOptions {
    StoreOptions { threads: Threads::None, ..StoreOptions::default() }
}

fn write(disk: &SimulatedDisk, name: &str, bytes: &[u8]) {
    let file = disk.create(name).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
}

/// A database whose manifest names that snapshot and the first segment of the log.
fn database(manifest: Manifest) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    manifest.write(&disk).unwrap();
    disk
}

/// What contents say, down to the last row.
fn all_of(contents: &Contents) -> Result<Vec<(Created, i64)>, StoreError> {
    let mut all = Vec::new();
    for object in contents.objects() {
        let mut n_rows = 0;
        contents.rows(object.id, |batch| {
            n_rows += (0..batch.len()).map(|row| batch.diffs().get(row)).fold(0, i64::wrapping_add);
            Ok::<(), StoreError>(())
        })?;
        all.push((object, n_rows));
    }
    Ok(all)
}

/// Opens it twice, with a commit between; what the first opening found is there in the second.
fn open(disk: &SimulatedDisk) {
    let Ok((store, contents)) = Store::open(Arc::new(disk.clone()), options()) else { return };
    let before = all_of(&contents);
    let id = contents.id_max().checked_add(1);
    drop(contents);
    let created = id.map(|id| Created { id, text: "CREATE TABLE t (a int)".to_string() });
    let commit = Commit { time: 1, created: created.iter().cloned().collect(), ..Commit::default() };
    let taken = store.append(&commit).and_then(|ticket| ticket.wait());
    store.close().unwrap();
    let (_, contents) = Store::open(Arc::new(disk.clone()), options()).unwrap();
    let (Ok(before), Ok(after)) = (before, all_of(&contents)) else { return };
    let kept: Vec<_> = after.iter().filter(|(object, _)| Some(object.id) != id).cloned().collect();
    assert_eq!(kept, before);
    assert_eq!(taken.is_ok() && id.is_some(), after.len() > kept.len());
}

/// Frames around bodies: the first two bytes of each are its length, whose highest bit says that
/// the frame is the last of its commit. Checksums and chains are right.
fn frames(mut bytes: &[u8], header: FileHeader, magic: [u8; 8]) -> (Vec<u8>, u64, u32) {
    let (mut file, mut sequence, mut chain) = (header.to_bytes(magic), header.first_sequence - 1, header.chain);
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = u16::from_le_bytes(*length);
        let (body, rest) = rest.split_at(usize::from(length & 0x7fff).min(rest.len()));
        bytes = rest;
        let mut frame = vec![0; HEADER_BYTES];
        frame.extend(body);
        frame.resize(frame.len().next_multiple_of(8), 0);
        sequence += 1;
        let is_last = length & 0x8000 != 0 || bytes.is_empty();
        chain = seal(&mut frame, FrameHeader { sequence, synced: sequence - 1, time: 1, is_last, chain });
        file.extend(frame);
    }
    (file, sequence, chain)
}

#[test]
fn any_bytes_may_stand_in_a_segment() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let disk = database(Manifest { segment: 1, ..Manifest::default() });
        // (Behind a header that is right: few bytes would be one.)
        let header = FileHeader { number: 1, first_sequence: 1, chain: 0 };
        write(&disk, &segment_name(1), &[&header.to_bytes(LOG_MAGIC), bytes].concat());
        open(&disk);
    });
}

/// The body of a frame with all kinds of sections, rows of several types among them.
fn body() -> Vec<u8> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(StringViewArray::from(vec![Some("short"), None, Some("a text of more than twelve bytes")])),
        Arc::new(BooleanArray::from(vec![true, false, true])),
        Arc::new(Decimal128Array::from(vec![1, -2, 3])),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])])),
    ];
    let batch = Batch::new(columns, Times::Constant(1), Diffs::Column(vec![1, -1, 2].into()));
    let commit = Commit {
        time: 1,
        removed: vec![1],
        created: vec![Created { id: 1, text: "CREATE TABLE t (a int)".to_string() }],
        rows: vec![(1, batch)],
        facts: vec![Fact { object: 1, name: "place".to_string(), value: Some(b"here".to_vec()) }],
    };
    let mut bodies = Vec::new();
    let mut emit = |frame: &mut Vec<u8>, _: bool| {
        bodies.extend_from_slice(&frame[HEADER_BYTES..]);
        Ok::<(), StoreError>(())
    };
    let mut framing = Framing::new(&mut emit);
    framing.commit(&commit).and_then(|()| framing.finish()).unwrap();
    bodies
}

#[test]
fn any_bytes_of_a_commit_may_be_others() {
    let right = body();
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut body = right.clone();
        for change in bytes.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % body.len();
            body[at] = change[2];
        }
        let header = FileHeader { number: 1, first_sequence: 1, chain: 0 };
        // A commit that makes what the other one removes.
        let mut first = vec![0; HEADER_BYTES];
        let mut emit = |frame: &mut Vec<u8>, _: bool| {
            first.clone_from(frame);
            Ok::<(), StoreError>(())
        };
        let mut framing = Framing::new(&mut emit);
        framing.section(TAG_CREATED, 0, 1, b"CREATE TABLE t (a int)").and_then(|()| framing.finish()).unwrap();
        let chain = seal(&mut first, FrameHeader { sequence: 1, synced: 0, time: 1, is_last: true, chain: 0 });
        let mut second = [&[0; HEADER_BYTES][..], &body].concat();
        seal(&mut second, FrameHeader { sequence: 2, synced: 1, time: 1, is_last: true, chain });
        let disk = database(Manifest { segment: 1, ..Manifest::default() });
        write(&disk, &segment_name(1), &[header.to_bytes(LOG_MAGIC), first, second].concat());
        open(&disk);
    });
}

#[test]
fn any_bodies_may_stand_in_the_frames_of_a_segment() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let disk = database(Manifest { segment: 1, ..Manifest::default() });
        let header = FileHeader { number: 1, first_sequence: 1, chain: 0 };
        write(&disk, &segment_name(1), &frames(bytes, header, LOG_MAGIC).0);
        open(&disk);
    });
}

#[test]
fn any_bodies_may_stand_in_the_frames_of_a_snapshot() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let header = FileHeader { number: 1, first_sequence: 1, chain: 0 };
        let (file, ..) = frames(bytes, header, SNAPSHOT_MAGIC);
        // (The frames that it says it holds are those that the manifest wants, if its first section
        // is of this kind.)
        let disk = database(Manifest { snapshot: 1, segment: 1, ..Manifest::default() });
        write(&disk, &snapshot_name(1), &file);
        write(&disk, &segment_name(1), &header.to_bytes(LOG_MAGIC));
        open(&disk);
    });
}

#[test]
fn any_bytes_may_stand_in_a_manifest() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let disk = SimulatedDisk::new();
        write(&disk, MANIFEST, bytes);
        let read = Manifest::read(&disk);
        // With the right checksum too.
        let checksum = crc32fast::hash(bytes);
        write(&disk, MANIFEST, &[bytes, format!("checksum {checksum}\n").as_bytes()].concat());
        if let Ok(Some(manifest)) = Manifest::read(&disk)
            && manifest.place.len() + manifest.next_place.len() < 2000
        {
            manifest.write(&disk).unwrap();
            assert_eq!(Manifest::read(&disk).unwrap(), Some(manifest));
        }
        drop(read);
    });
}
