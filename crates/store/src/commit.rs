//! Commits, and the sections that they are on disk.
//!
//! ```text
//!   section   tag u32 | flags u32 | object u64 | length u64 | bytes, padded to a multiple of 8
//!   removed   no bytes                    created   the statement's text
//!   rows      a batch in wire form        fact      name length u32 | name | value; flag 1: the fact is gone
//!   covered   of snapshots: sequence u64 | chain u32, 0 u32 | greatest id u64
//! ```
//!
//! Sections take effect in the order in which they stand: removals, creations, rows, facts. A
//! commit is one frame, or several if its rows are many; all of it counts, or nothing.

use anabranch_batch::{Batch, Diffs, wire};

use crate::frame::{HEADER_BYTES, u32_at, u64_at};

/// Bytes after which a commit goes on in another frame.
const FRAME_BYTES: usize = 8 << 20;
/// Bytes of a section's header.
const SECTION_BYTES: usize = 24;
/// Rows of a batch in one section, at most: frames count their bytes in 32 bits.
const SECTION_ROWS_MAX: usize = 1 << 20;
const SECTION_BATCH_BYTES_MAX: usize = 1 << 30;

pub(crate) const TAG_REMOVED: u32 = 1;
pub(crate) const TAG_CREATED: u32 = 2;
pub(crate) const TAG_ROWS: u32 = 3;
pub(crate) const TAG_FACT: u32 = 4;
pub(crate) const TAG_COVERED: u32 = 5;
/// The rows have other diffs than +1.
pub(crate) const FLAG_SIGNED: u32 = 1;
/// The fact is gone.
pub(crate) const FLAG_GONE: u32 = 1;

/// What happens at one commit, in this order: objects go, objects come, rows change, facts change.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The commit's time; not before that of the commit before.
    pub time: i64,
    /// Objects that are gone, with their rows and facts.
    pub removed: Vec<u64>,
    /// Objects that are new.
    pub created: Vec<Created>,
    /// Changes of relations' rows, by the relation's id.
    pub rows: Vec<(u64, Batch)>,
    /// Small values by object and name; the last one counts.
    pub facts: Vec<Fact>,
}

/// An object that a statement makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its id, for ever.
    pub id: u64,
    /// The statement that makes it.
    pub text: String,
}

/// A small value that is kept with an object: where a source stands, a setting (of object 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The object's id, or 0 for the database.
    pub object: u64,
    /// What it is.
    pub name: String,
    /// Its value; `None` takes it away.
    pub value: Option<Vec<u8>>,
}

impl Commit {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.created.is_empty() && self.facts.is_empty() && self.rows.is_empty()
    }
}

/// A section that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section<'a> {
    pub tag: u32,
    pub flags: u32,
    pub object: u64,
    /// Where its bytes start in the body.
    pub at: usize,
    pub bytes: &'a [u8],
}

/// Where frames go: each that is complete, and whether it is the commit's last.
type Emit<'a, E> = dyn FnMut(&mut Vec<u8>, bool) -> Result<(), E> + 'a;

/// Takes sections and gives frames, each with room for its header in front.
pub(crate) struct Framing<'a, E> {
    frame: Vec<u8>,
    emit: &'a mut Emit<'a, E>,
}

impl<'a, E> Framing<'a, E> {
    pub fn new(emit: &'a mut Emit<'a, E>) -> Framing<'a, E> {
        Framing { frame: vec![0; HEADER_BYTES], emit }
    }

    pub fn commit(&mut self, commit: &Commit) -> Result<(), E> {
        for id in &commit.removed {
            self.section(TAG_REMOVED, 0, *id, &[])?;
        }
        for created in &commit.created {
            self.section(TAG_CREATED, 0, created.id, created.text.as_bytes())?;
        }
        for (object, batch) in &commit.rows {
            self.rows(*object, batch)?;
        }
        commit.facts.iter().try_for_each(|fact| self.fact(fact))
    }

    pub fn fact(&mut self, fact: &Fact) -> Result<(), E> {
        let mut bytes = Vec::new();
        bytes.extend((fact.name.len() as u32).to_le_bytes());
        bytes.extend(fact.name.as_bytes());
        bytes.extend(fact.value.iter().flatten());
        let flags = if fact.value.is_none() { FLAG_GONE } else { 0 };
        self.section(TAG_FACT, flags, fact.object, &bytes)
    }

    /// The batch's rows, as plain updates without hashes, which are computed again.
    pub fn rows(&mut self, object: u64, batch: &Batch) -> Result<(), E> {
        let batch = batch.clone().flatten().without_key();
        if batch.is_empty() {
            return Ok(());
        }
        let n_bytes = wire::length_in_bytes(&batch);
        if batch.len() > 1 && (batch.len() > SECTION_ROWS_MAX || n_bytes > SECTION_BATCH_BYTES_MAX) {
            let half = batch.len() / 2;
            self.rows(object, &batch.slice(0, half))?;
            return self.rows(object, &batch.slice(half, batch.len() - half));
        }
        let flags = if matches!(batch.diffs(), Diffs::Constant(1)) { 0 } else { FLAG_SIGNED };
        self.header(TAG_ROWS, flags, object, n_bytes);
        wire::write(&batch, &mut self.frame).expect("memory takes what is written");
        self.cut()
    }

    pub fn section(&mut self, tag: u32, flags: u32, object: u64, bytes: &[u8]) -> Result<(), E> {
        self.header(tag, flags, object, bytes.len());
        self.frame.extend(bytes);
        self.frame.resize(self.frame.len().next_multiple_of(8), 0);
        self.cut()
    }

    fn header(&mut self, tag: u32, flags: u32, object: u64, length: usize) {
        self.frame.extend(tag.to_le_bytes());
        self.frame.extend(flags.to_le_bytes());
        self.frame.extend(object.to_le_bytes());
        self.frame.extend((length as u64).to_le_bytes());
    }

    fn cut(&mut self) -> Result<(), E> {
        if self.frame.len() < FRAME_BYTES {
            return Ok(());
        }
        (self.emit)(&mut self.frame, false)?;
        self.frame.clear();
        self.frame.resize(HEADER_BYTES, 0);
        Ok(())
    }

    /// The last frame, which may be empty.
    pub fn finish(mut self) -> Result<(), E> {
        (self.emit)(&mut self.frame, true)
    }
}

/// The sections of a frame's body, or what is wrong with it.
pub(crate) fn sections(body: &[u8]) -> Result<Vec<Section<'_>>, String> {
    let mut sections = Vec::new();
    let mut at = 0;
    while at < body.len() {
        if body.len() - at < SECTION_BYTES {
            return Err("it ends inside a section's header".to_string());
        }
        let (tag, flags, object) = (u32_at(body, at), u32_at(body, at + 4), u64_at(body, at + 8));
        let length = u64_at(body, at + 16);
        at += SECTION_BYTES;
        if length > (body.len() - at) as u64 {
            return Err("a section is longer than its frame".to_string());
        }
        if !(TAG_REMOVED..=TAG_COVERED).contains(&tag) {
            return Err(format!("a section has tag {tag}, which this build does not know"));
        }
        let length = length as usize;
        sections.push(Section { tag, flags, object, at, bytes: &body[at..at + length] });
        at = (at + length.next_multiple_of(8)).min(body.len());
    }
    Ok(sections)
}

/// The fact of a section, or what is wrong with it.
pub(crate) fn read_fact(section: &Section<'_>) -> Result<Fact, String> {
    let malformed = || "a fact is malformed".to_string();
    let (length, rest) = section.bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let (name, value) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(malformed)?;
    let name = String::from_utf8(name.to_vec()).map_err(|_| malformed())?;
    let value = (section.flags & FLAG_GONE == 0).then(|| value.to_vec());
    Ok(Fact { object: section.object, name, value })
}
