//! What a database holds, as the files say: objects, facts, and where the rows of each relation
//! lie.
//!
//! Law: contents are what all commits make of an empty database, one after the other. Rows stay on
//! disk until they are asked for, relation by relation; what is in memory is an entry a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Times, wire};

use crate::commit::{
    Created, FLAG_SIGNED, Fact, Section, TAG_COVERED, TAG_CREATED, TAG_FACT, TAG_REMOVED, TAG_ROWS, read_fact, sections,
};
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::frame::{FileHeader, FrameEnd, FrameReader, LOG_MAGIC, SNAPSHOT_MAGIC, u32_at, u64_at};
use crate::manifest::{Manifest, number_of, segment_name, snapshot_name};

/// Rows of the batches that are given back, about.
const BLOCK_ROWS: usize = 1 << 16;

/// See the [module](self).
#[derive(Clone, Default)]
pub struct Contents {
    place: String,
    /// Objects that are there, in the order in which they were made.
    pub(crate) objects: BTreeMap<u64, LogEntry>,
    n_created: u64,
    facts: BTreeMap<(u64, String), Vec<u8>>,
    /// Files in which rows lie.
    files: Vec<ContentsFile>,
    time: i64,
    id_max: u64,
    n_commits: u64,
}

/// An object.
#[derive(Clone)]
pub(crate) struct LogEntry {
    /// Objects are made in this order.
    place_in_order: u64,
    text: String,
    rows: Vec<Place>,
    /// Whether some diffs are not +1.
    is_signed: bool,
}

/// A file in which rows lie.
#[derive(Clone)]
struct ContentsFile {
    place: String,
    name: String,
    file: Arc<dyn DiskFile>,
}

/// Where a batch lies.
#[derive(Clone, Copy)]
struct Place {
    file: u32,
    at: u64,
    length: u64,
}

/// How far the log goes that contents were read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Number of the last segment.
    pub segment: u64,
    /// Whether the segment is there, with a header that is whole.
    pub is_made: bool,
    /// Where the next frame goes.
    pub offset: u64,
    /// Sequence of the last frame that counts.
    pub sequence: u64,
    pub chain: u32,
    /// Bytes behind that were lost with the power, and are to be cut off.
    pub torn_bytes: u64,
    /// Bytes of all segments.
    pub bytes: u64,
}

impl LogEnd {
    /// The end of an empty database's log.
    pub fn of_empty() -> LogEnd {
        LogEnd::before(&Manifest { segment: 1, ..Manifest::default() })
    }

    /// The header of the segment, if it is to be made.
    pub fn header(&self) -> FileHeader {
        FileHeader { number: self.segment, first_sequence: self.sequence + 1, chain: self.chain }
    }

    /// The end of a log without segments.
    pub fn before(manifest: &Manifest) -> LogEnd {
        LogEnd {
            segment: manifest.segment,
            is_made: false,
            offset: 0,
            sequence: manifest.sequence,
            chain: manifest.chain,
            torn_bytes: 0,
            bytes: 0,
        }
    }
}

impl Contents {
    /// Objects in the order in which they were made.
    pub fn objects(&self) -> Vec<Created> {
        let mut objects: Vec<(u64, Created)> = self
            .objects
            .iter()
            .map(|(id, entry)| (entry.place_in_order, Created { id: *id, text: entry.text.clone() }))
            .collect();
        objects.sort_by_key(|(place, _)| *place);
        objects.into_iter().map(|(_, created)| created).collect()
    }

    /// A fact of an object, or of the database (object 0).
    pub fn fact(&self, object: u64, name: &str) -> Option<&[u8]> {
        self.facts.get(&(object, name.to_string())).map(Vec::as_slice)
    }

    /// All facts, by object and name.
    pub fn facts(&self) -> impl Iterator<Item = (u64, &str, &[u8])> {
        self.facts.iter().map(|((object, name), value)| (*object, name.as_str(), value.as_slice()))
    }

    /// The folder.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Time of the last commit; 0 before all.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// The greatest id that any object ever had.
    pub fn id_max(&self) -> u64 {
        self.id_max
    }

    /// Commits read, those of the snapshot as one.
    pub fn n_commits(&self) -> u64 {
        self.n_commits
    }

    /// The rows of a relation as they are now, all at the time of the last commit, in batches of
    /// some ten thousand.
    ///
    /// # Errors
    /// Those of `take`; `Damaged` when a batch cannot be read.
    pub fn rows<E: From<StoreError>>(
        &self,
        relation: u64,
        mut take: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(entry) = self.objects.get(&relation) else { return Ok(()) };
        let take: &mut dyn FnMut(Batch) -> Result<(), E> = &mut take;
        let time = Times::Constant(self.time);
        let (mut block, mut n_rows) = (Vec::new(), 0);
        for place in &entry.rows {
            let batch = self.read(*place)?.with_times(time.clone());
            n_rows += batch.len();
            block.push(batch);
            if n_rows >= BLOCK_ROWS && !entry.is_signed {
                n_rows = 0;
                Batch::concat(&std::mem::take(&mut block)).map_or(Ok(()), &mut *take)?;
            }
        }
        let Some(rest) = Batch::concat(&block) else { return Ok(()) };
        drop(block);
        if !entry.is_signed {
            return take(rest);
        }
        let rest = consolidate(rest);
        let mut at = 0;
        while at < rest.len() {
            let length = BLOCK_ROWS.min(rest.len() - at);
            take(rest.slice(at, length))?;
            at += length;
        }
        Ok(())
    }

    fn read(&self, place: Place) -> Result<Batch, StoreError> {
        let of = &self.files[place.file as usize];
        let mut bytes = vec![0; place.length as usize];
        let read = of.file.read_at(place.at, &mut bytes);
        read.map_err(|error| StoreError::of_io(&of.place, "read", &of.name, &error))?;
        wire::read(&bytes).map_err(|error| StoreError::Damaged {
            place: of.place.clone(),
            file: of.name.clone(),
            offset: place.at,
            detail: error.to_string(),
        })
    }

    /// What the snapshot of the manifest, which lies on `snapshots`, and all segments of the log
    /// make.
    pub(crate) fn load(
        disk: &dyn Disk,
        snapshots: &dyn Disk,
        manifest: &Manifest,
    ) -> Result<(Contents, LogEnd), StoreError> {
        let mut contents = Contents { place: disk.place(), ..Contents::default() };
        contents.load_snapshot(snapshots, manifest)?;
        let mut numbers: Vec<u64> = disk
            .names()
            .map_err(|error| StoreError::of_io(&contents.place, "list", "the files", &error))?
            .iter()
            .filter_map(|name| number_of(name, ".log"))
            .filter(|number| *number >= manifest.segment)
            .collect();
        numbers.sort_unstable();
        let mut end = LogEnd::before(manifest);
        if numbers.is_empty() {
            return Err(missing(disk, &segment_name(manifest.segment)));
        }
        for (idx, number) in numbers.iter().enumerate() {
            let due = manifest.segment + idx as u64;
            if *number != due {
                return Err(missing(disk, &segment_name(due)));
            }
            let is_open = manifest.last == 0 && idx + 1 == numbers.len();
            let tail = if is_open { Tail::MayBeTorn } else { Tail::IsSealed };
            end = contents.load_segment(disk, *number, tail, end)?;
        }
        if end.segment < manifest.last {
            return Err(missing(disk, &segment_name(manifest.last)));
        }
        if end.sequence < manifest.closed {
            let detail = format!("it ends at frame {}, and had {} when it was closed", end.sequence, manifest.closed);
            let (place, file) = (contents.place, segment_name(end.segment));
            return Err(StoreError::Damaged { place, file, offset: end.offset, detail });
        }
        Ok((contents, end))
    }

    /// What the snapshot of the manifest and the sealed segments before `until` make.
    pub(crate) fn load_sealed(
        disk: &dyn Disk,
        snapshots: &dyn Disk,
        manifest: &Manifest,
        until: u64,
    ) -> Result<(Contents, LogEnd), StoreError> {
        let mut contents = Contents { place: disk.place(), ..Contents::default() };
        contents.load_snapshot(snapshots, manifest)?;
        let mut end = LogEnd::before(manifest);
        for number in manifest.segment..until {
            end = contents.load_segment(disk, number, Tail::IsSealed, end)?;
        }
        Ok((contents, end))
    }

    /// What a snapshot alone makes, and the sequence and checksum of the last frame that it holds.
    pub(crate) fn of_snapshot(disk: &dyn Disk, name: &str, number: u64) -> Result<(Contents, (u64, u32)), StoreError> {
        let mut contents = Contents { place: disk.place(), ..Contents::default() };
        let (reader, covered) = contents.read_snapshot(disk, name, number)?;
        match covered {
            Some(covered) => Ok((contents, covered)),
            None => Err(reader.damaged(0, "it does not say which frames it holds")),
        }
    }

    fn load_snapshot(&mut self, disk: &dyn Disk, manifest: &Manifest) -> Result<(), StoreError> {
        if manifest.snapshot == 0 {
            return Ok(());
        }
        let (reader, covered) = self.read_snapshot(disk, &snapshot_name(manifest.snapshot), manifest.snapshot)?;
        match covered == Some((manifest.sequence, manifest.chain)) {
            true => Ok(()),
            false => Err(reader.damaged(0, "it holds other frames than the manifest says")),
        }
    }

    /// Reads all of a snapshot. Returns where reading has ended, and the last frame of the log that
    /// the snapshot holds.
    fn read_snapshot(
        &mut self,
        disk: &dyn Disk,
        name: &str,
        number: u64,
    ) -> Result<(FrameReader, Option<(u64, u32)>), StoreError> {
        let file = self.open(disk, name)?;
        let (mut reader, header) = FrameReader::open(&disk.place(), name, file, SNAPSHOT_MAGIC)?;
        if header != (FileHeader { number, first_sequence: 1, chain: 0 }) {
            return Err(reader.damaged(0, "it has the number of another snapshot"));
        }
        let mut covered = None;
        loop {
            let at = reader.offset();
            let frame = match reader.next()? {
                Ok(frame) => frame,
                Err(FrameEnd::Clean) => return Err(reader.damaged(at, "it ends early")),
                Err(FrameEnd::Broken(detail)) => return Err(reader.damaged(at, detail)),
            };
            let (is_last, time) = (frame.header.is_last, frame.header.time);
            let changes = self.changes(frame.body_at, frame.body);
            for change in changes.map_err(|detail| reader.damaged(at, detail))? {
                if let Change::Covered { sequence, chain, .. } = change {
                    covered = Some((sequence, chain));
                }
                self.apply(change).map_err(|detail| reader.damaged(at, detail))?;
            }
            if is_last {
                self.time = time;
                self.n_commits += 1;
                break;
            }
        }
        match reader.offset() == reader.size() {
            true => Ok((reader, covered)),
            false => Err(reader.damaged(reader.offset(), "bytes follow its end")),
        }
    }

    fn load_segment(&mut self, disk: &dyn Disk, number: u64, tail: Tail, before: LogEnd) -> Result<LogEnd, StoreError> {
        let name = segment_name(number);
        let file = self.open(disk, &name)?;
        let size = file.size().map_err(|error| StoreError::of_io(&self.place, "read", &name, &error))?;
        let due = LogEnd { segment: number, ..before.clone() }.header();
        let (mut reader, header) = match FrameReader::open(&self.place, &name, file, LOG_MAGIC) {
            Ok(opened) => opened,
            // A segment is made before anything is written to it: without a header nothing was
            // acknowledged that is in it.
            Err(StoreError::Damaged { .. }) if tail == Tail::MayBeTorn && size <= HEADER_TORN_BYTES_MAX => {
                return Ok(LogEnd { segment: number, is_made: false, torn_bytes: size, ..before });
            }
            Err(error) => return Err(error),
        };
        if header != due {
            return Err(reader.damaged(0, "it does not follow the segment before it"));
        }
        let mut end = LogEnd { segment: number, is_made: true, offset: reader.offset(), torn_bytes: 0, ..before };
        // Frames of a commit count when its last one is there.
        let mut pending: Vec<Change> = Vec::new();
        loop {
            let at = reader.offset();
            match reader.next()? {
                Ok(frame) => {
                    let (time, is_last) = (frame.header.time, frame.header.is_last);
                    let changes = self.changes(frame.body_at, frame.body);
                    pending.extend(changes.map_err(|detail| reader.damaged(at, detail))?);
                    if !is_last {
                        continue;
                    }
                    let applied = pending.drain(..).try_for_each(|change| self.apply(change));
                    applied.map_err(|detail| reader.damaged(at, detail))?;
                    self.time = time;
                    self.n_commits += 1;
                    end.offset = reader.offset();
                    (end.sequence, end.chain) = (reader.next_sequence().0 - 1, reader.next_sequence().1);
                }
                Err(FrameEnd::Clean) if pending.is_empty() => break,
                Err(_) if tail == Tail::IsSealed => {
                    return Err(reader.damaged(at, "it ends before its commit does, or what follows is no frame"));
                }
                Err(FrameEnd::Clean) => break,
                Err(FrameEnd::Broken(detail)) => {
                    if reader.was_synced()? {
                        return Err(reader.damaged(at, detail));
                    }
                    break;
                }
            }
        }
        end.torn_bytes = reader.size() - end.offset;
        end.bytes = before.bytes + end.offset;
        Ok(end)
    }

    fn open(&mut self, disk: &dyn Disk, name: &str) -> Result<Arc<dyn DiskFile>, StoreError> {
        let file: Arc<dyn DiskFile> = match disk.open(name) {
            Ok(file) => file.into(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing(disk, name)),
            Err(error) => return Err(StoreError::of_io(&disk.place(), "open", name, &error)),
        };
        self.files.push(ContentsFile { place: disk.place(), name: name.to_string(), file: file.clone() });
        Ok(file)
    }

    /// What a frame says, or what is wrong with it.
    fn changes(&self, body_at: u64, body: &[u8]) -> Result<Vec<Change>, String> {
        sections(body)?.into_iter().map(|section| self.change(body_at, &section)).collect()
    }

    fn change(&self, body_at: u64, section: &Section<'_>) -> Result<Change, String> {
        let Section { tag, flags, object, at, bytes } = *section;
        Ok(match tag {
            TAG_REMOVED => Change::Removed(object),
            TAG_CREATED => {
                let text = std::str::from_utf8(bytes).map_err(|_| "a statement is not UTF-8".to_string())?;
                Change::Created(Created { id: object, text: text.to_string() })
            }
            TAG_ROWS => {
                let file = self.files.len() as u32 - 1;
                let place = Place { file, at: body_at + at as u64, length: bytes.len() as u64 };
                Change::Rows { object, place, is_signed: flags & FLAG_SIGNED != 0 }
            }
            TAG_FACT => Change::Fact(read_fact(section)?),
            TAG_COVERED if bytes.len() == 24 => {
                Change::Covered { sequence: u64_at(bytes, 0), chain: u32_at(bytes, 8), id_max: u64_at(bytes, 16) }
            }
            tag => return Err(format!("a section with tag {tag} is malformed")),
        })
    }

    fn apply(&mut self, change: Change) -> Result<(), String> {
        match change {
            Change::Removed(id) => {
                self.objects.remove(&id).ok_or_else(|| format!("object {id} is removed, but there is none"))?;
                self.facts.retain(|(object, _), _| *object != id);
            }
            Change::Created(Created { id, text }) => {
                let entry = LogEntry { place_in_order: self.n_created, text, rows: Vec::new(), is_signed: false };
                self.n_created += 1;
                self.id_max = self.id_max.max(id);
                if self.objects.insert(id, entry).is_some() {
                    return Err(format!("object {id} is made twice"));
                }
            }
            Change::Rows { object, place, is_signed } => {
                let entry = self.objects.get_mut(&object);
                let entry = entry.ok_or_else(|| format!("rows belong to object {object}, which is not there"))?;
                entry.rows.push(place);
                entry.is_signed |= is_signed;
            }
            Change::Fact(Fact { object, name, value: Some(value) }) => {
                self.facts.insert((object, name), value);
            }
            Change::Fact(Fact { object, name, value: None }) => {
                self.facts.remove(&(object, name));
            }
            Change::Covered { id_max, .. } => self.id_max = self.id_max.max(id_max),
        }
        Ok(())
    }
}

/// A section's meaning.
enum Change {
    Removed(u64),
    Created(Created),
    Rows { object: u64, place: Place, is_signed: bool },
    Fact(Fact),
    Covered { sequence: u64, chain: u32, id_max: u64 },
}

/// A segment of which not more than its header was written may have lost it.
const HEADER_TORN_BYTES_MAX: u64 = 40;

/// Whether a segment may end in what was lost with the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// It is the last one, and the database was not closed.
    MayBeTorn,
    /// It was synced before the next one was made, or the database was closed.
    IsSealed,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents").field("objects", &self.objects()).field("time", &self.time).finish_non_exhaustive()
    }
}

fn missing(disk: &dyn Disk, name: &str) -> StoreError {
    let (place, file) = (disk.place(), name.to_string());
    StoreError::Damaged { place, file, offset: 0, detail: "it is missing".to_string() }
}
