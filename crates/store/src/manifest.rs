//! The manifest: which files make up the database.
//!
//! Law: it is changed by writing another beside it and renaming, so there is always one whole
//! manifest; files that it does not name are left over from a stop and are taken away. It is text,
//! so that a person can read it:
//!
//! ```text
//!   anabranch database
//!   version 1
//!   incarnation 3        how often the database was opened
//!   snapshot 2           its number, or 0 for none
//!   segment 5            number of the first segment of the log
//!   sequence 4711        frames of the log that the snapshot holds
//!   chain 99887766       checksum of the last of them
//!   closed 5200          frames when it was closed
//!   last 7               the last segment when it was closed, or 0: it is open, or was not closed
//!   identity 88776655    of the database, once its snapshots have a place of their own
//!   place s3://b/p/id    where the snapshot lies, unless in the folder
//!   next s3://b/p/id     where the next one goes, unless into the folder
//!   checksum 11223344    of the lines above
//! ```

use crate::disk::Disk;
use crate::error::StoreError;
use crate::frame::VERSION;

pub(crate) const MANIFEST: &str = "MANIFEST";
pub(crate) const MANIFEST_NEW: &str = "MANIFEST.new";
/// There while a database is being restored.
pub(crate) const RESTORING: &str = "RESTORING";
pub(crate) const LOCK: &str = "LOCK";
const TITLE: &str = "anabranch database";

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub incarnation: u64,
    pub snapshot: u64,
    pub segment: u64,
    pub sequence: u64,
    pub chain: u32,
    pub closed: u64,
    pub last: u64,
    pub identity: u64,
    pub place: String,
    pub next_place: String,
}

impl Manifest {
    /// The manifest of a disk, if it has one.
    pub fn read(disk: &dyn Disk) -> Result<Option<Manifest>, StoreError> {
        let place = disk.place();
        let failed = |error| StoreError::of_io(&place, "read", MANIFEST, &error);
        let file = match disk.open(MANIFEST) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = vec![0; file.size().map_err(failed)?.min(4096) as usize];
        file.read_at(0, &mut bytes).map_err(failed)?;
        let damaged = |offset: usize, detail: &str| StoreError::Damaged {
            place: place.clone(),
            file: MANIFEST.to_string(),
            offset: offset as u64,
            detail: detail.to_string(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| damaged(error.valid_up_to(), "it is not text"))?;
        let mut manifest = Manifest::default();
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let (name, value) =
                line.trim_end().split_once(' ').ok_or_else(|| damaged(offset, "a line has no value"))?;
            let number = || value.parse::<u64>().map_err(|_| damaged(offset, "a number was expected"));
            match name {
                "anabranch" => {}
                "version" if number()? != u64::from(VERSION) => {
                    let found = u32::try_from(number()?).unwrap_or(u32::MAX);
                    return Err(StoreError::Version { place, file: MANIFEST.to_string(), found, known: VERSION });
                }
                "version" => {}
                "incarnation" => manifest.incarnation = number()?,
                "snapshot" => manifest.snapshot = number()?,
                "segment" => manifest.segment = number()?,
                "sequence" => manifest.sequence = number()?,
                "chain" => manifest.chain = number()? as u32,
                "closed" => manifest.closed = number()?,
                "last" => manifest.last = number()?,
                "identity" => manifest.identity = number()?,
                "place" => manifest.place = value.to_string(),
                "next" => manifest.next_place = value.to_string(),
                "checksum" => {
                    // (To the last byte: other blanks at its end, or a sign, would pass as a
                    // number.)
                    let is_whole = line == format!("checksum {}\n", crc32fast::hash(&bytes[..offset]))
                        && offset + line.len() == bytes.len()
                        && text.starts_with(TITLE);
                    return if is_whole { Ok(Some(manifest)) } else { Err(damaged(0, "its checksum is wrong")) };
                }
                _ => return Err(damaged(offset, "a line is unknown")),
            }
            offset += line.len();
        }
        Err(damaged(offset, "it ends without a checksum"))
    }

    fn to_text(&self) -> String {
        let Manifest { incarnation, snapshot, segment, sequence, chain, closed, last, .. } = self;
        let mut lines = format!(
            "{TITLE}\nversion {VERSION}\nincarnation {incarnation}\nsnapshot {snapshot}\nsegment {segment}\n\
             sequence {sequence}\nchain {chain}\nclosed {closed}\nlast {last}\n"
        );
        if self.identity != 0 {
            lines += &format!("identity {}\n", self.identity);
        }
        for (name, url) in [("place", &self.place), ("next", &self.next_place)] {
            if !url.is_empty() {
                lines += &format!("{name} {url}\n");
            }
        }
        let checksum = crc32fast::hash(lines.as_bytes());
        format!("{lines}checksum {checksum}\n")
    }

    /// Puts this manifest in place of the one that is there.
    pub fn write(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        let write = || {
            let file = disk.create(MANIFEST_NEW)?;
            file.write_at(0, self.to_text().as_bytes())?;
            file.sync()?;
            disk.rename(MANIFEST_NEW, MANIFEST)?;
            disk.sync_names()
        };
        write().map_err(|error| StoreError::of_io(&disk.place(), "write", MANIFEST, &error))
    }
}

/// The file name of a segment of the log.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// The file name of a snapshot.
pub(crate) fn snapshot_name(number: u64) -> String {
    format!("{number:06}.snapshot")
}

/// The number in a file name of that kind.
pub(crate) fn number_of(name: &str, ending: &str) -> Option<u64> {
    name.strip_suffix(ending)?.parse().ok()
}
