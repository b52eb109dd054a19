//! How shards are numbered, and among which of them rows move.
//!
//! Shards are seen as P processes of n threads: shard `p * n + l` is thread `l` of process `p`. One
//! process is the ordinary case. A layout of several runs in as many processes
//! ([`Shards::run_in`](crate::Shards::run_in)), or in one, whose threads exchange batches only.

use std::fmt;
use std::sync::Arc;

use anabranch_batch::{hash, route};
use anabranch_engine::Error;

/// The shards of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Global shards; at least one.
    processes: usize,
    /// Local shards of each process; at least one.
    threads: usize,
}

/// Among which shards rows move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardScope {
    /// Among all.
    Flat,
    /// Among the shards of each process.
    Local,
    /// Among processes; a row stays at its local number.
    Global,
}

/// A named group of shards: a place for rows to go to, such as the shards of one socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardGroup {
    /// Its name, for plans and messages.
    name: Arc<str>,
    /// The shards, ascending, each once.
    shards: Arc<[usize]>,
}

/// Which shards of the scope receive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// All.
    Same,
    /// The first so many; the others stay empty. Only of [`ShardScope::Flat`].
    Shards(usize),
    /// Those of a group; the others stay empty. Only of [`ShardScope::Flat`].
    Group(ShardGroup),
}

/// How far a movement reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Among which shards.
    pub scope: ShardScope,
    /// To which of them.
    pub to: To,
}

impl Move {
    /// Among all shards.
    pub const FLAT: Move = Move { scope: ShardScope::Flat, to: To::Same };
    /// Within each process.
    pub const LOCAL: Move = Move { scope: ShardScope::Local, to: To::Same };
    /// Between processes.
    pub const GLOBAL: Move = Move { scope: ShardScope::Global, to: To::Same };

    /// To the first shards only.
    pub fn to_shards(shards: usize) -> Move {
        Move { scope: ShardScope::Flat, to: To::Shards(shards) }
    }

    /// To the shards of a group only.
    pub fn to_group(group: &ShardGroup) -> Move {
        Move { scope: ShardScope::Flat, to: To::Group(group.clone()) }
    }

    /// Rows of this layout can move so far.
    ///
    /// # Errors
    /// `Invalid` when there are not so many shards, or when shards are chosen of another movement
    /// than one among all.
    pub(crate) fn check(&self, layout: Layout) -> Result<(), Error> {
        let there = layout.shards();
        match &self.to {
            To::Same => Ok(()),
            To::Shards(_) if self.scope != ShardScope::Flat => {
                Err(Error::invalid("a number of shards is said of movement among all of them only"))
            }
            To::Shards(shards) if *shards == 0 || *shards > there => {
                Err(Error::invalid(format!("rows cannot move to {shards} shards: there are {there}")))
            }
            To::Shards(_) => Ok(()),
            To::Group(_) if self.scope != ShardScope::Flat => {
                Err(Error::invalid("a group of shards is said of movement among all of them only"))
            }
            To::Group(group) => group.check(there),
        }
    }
}

impl To {
    /// The shards that are chosen of so many, ascending.
    pub(crate) fn chosen(&self, there: usize) -> Vec<usize> {
        match self {
            To::Same => (0..there).collect(),
            To::Shards(shards) => (0..*shards).collect(),
            To::Group(group) => group.shards.to_vec(),
        }
    }

    /// Whether all rows come to one shard, if this is said of movement among so many.
    pub(crate) fn is_one(&self) -> bool {
        match self {
            To::Same => false,
            To::Shards(shards) => *shards == 1,
            To::Group(group) => group.shards.len() == 1,
        }
    }

    /// Whether all rows come to the first shard.
    pub(crate) fn is_first(&self) -> bool {
        self.is_one() && self.chosen(1) == [0]
    }
}

impl ShardGroup {
    /// The shards of these numbers, in any order. Numbers are held against the layout when a
    /// movement to the group is built.
    pub fn new(name: &str, shards: impl IntoIterator<Item = usize>) -> ShardGroup {
        let mut shards: Vec<usize> = shards.into_iter().collect();
        shards.sort_unstable();
        shards.dedup();
        ShardGroup { name: name.into(), shards: shards.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its shards, ascending.
    pub fn shards(&self) -> &[usize] {
        &self.shards
    }

    fn check(&self, there: usize) -> Result<(), Error> {
        let name = &self.name;
        match self.shards.last() {
            None => Err(Error::invalid(format!("group \"{name}\" has no shards"))
                .with_hint("Name the shards that rows are to move to.")),
            Some(last) if *last >= there => {
                Err(Error::invalid(format!("group \"{name}\" names shard {last}: there are {there}"))
                    .with_hint(format!("Shards are numbered 0 to {}.", there - 1)))
            }
            Some(_) => Ok(()),
        }
    }
}

impl fmt::Display for ShardGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards = self.shards.iter().map(ToString::to_string).collect::<Vec<_>>();
        write!(f, "group {} ({})", self.name, shards.join(", "))
    }
}

impl Layout {
    /// So many shards in one process.
    pub fn flat(shards: usize) -> Layout {
        Layout { processes: 1, threads: shards.max(1) }
    }

    /// So many processes of so many threads; none counts as one.
    pub fn grid(processes: usize, threads: usize) -> Layout {
        Layout { processes: processes.max(1), threads: threads.max(1) }
    }

    /// Number of shards.
    pub fn shards(self) -> usize {
        self.processes * self.threads
    }

    /// Number of processes.
    pub fn processes(self) -> usize {
        self.processes
    }

    /// Shards of each process.
    pub fn threads(self) -> usize {
        self.threads
    }

    /// The process of a shard.
    pub fn process(self, shard: usize) -> usize {
        shard / self.threads
    }

    /// The shards that rows of `shard` may move to, ascending.
    pub fn peers(self, shard: usize, scope: ShardScope) -> Vec<usize> {
        let (process, local) = (shard / self.threads, shard % self.threads);
        match scope {
            ShardScope::Flat => (0..self.shards()).collect(),
            ShardScope::Local => (0..self.threads).map(|local| process * self.threads + local).collect(),
            ShardScope::Global => (0..self.processes).map(|process| process * self.threads + local).collect(),
        }
    }

    /// The shard that a row of `shard` with this key hash moves to.
    ///
    /// Processes go by other bits of the hash than threads do: a global movement followed by a
    /// local one uses all shards, and is the flat one.
    pub fn route(self, shard: usize, hash: u64, to: &Move) -> usize {
        match &to.to {
            To::Same => {}
            To::Shards(shards) => return route(hash, (*shards).clamp(1, self.shards())),
            To::Group(group) => return group.shards[route(hash, group.shards.len())],
        }
        let process = route(hash, self.processes);
        let local = (((hash::spread(hash) >> 32) * self.threads as u64) >> 32) as usize;
        match to.scope {
            ShardScope::Flat => process * self.threads + local,
            ShardScope::Local => self.process(shard) * self.threads + local,
            ShardScope::Global => process * self.threads + shard % self.threads,
        }
    }

    /// The shards of several hashes, as [`route`](Layout::route) gives them.
    pub fn routes(self, shard: usize, hashes: &[u64], to: &Move, shards: &mut [u32]) {
        // (Within a process the choice of the process is none, and the loop is a short one.)
        let first = match (&to.to, to.scope) {
            (To::Same, ShardScope::Flat) if self.processes == 1 => Some(0),
            (To::Same, ShardScope::Local) => Some(self.process(shard) * self.threads),
            _ => None,
        };
        let of_each = hashes.iter().zip(shards);
        match first {
            Some(first) => of_each.for_each(|(hash, shard)| {
                let local = ((hash::spread(*hash) >> 32) * self.threads as u64) >> 32;
                *shard = (first as u64 + local) as u32;
            }),
            None => of_each.for_each(|(hash, there)| *there = self.route(shard, *hash, to) as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hashes_go_where_each_goes() {
        let group = ShardGroup::new("some", [1, 4]);
        let moves = [Move::FLAT, Move::LOCAL, Move::GLOBAL, Move::to_shards(3), Move::to_group(&group)];
        for layout in [Layout::flat(5), Layout::grid(2, 3), Layout::grid(3, 2)] {
            for to in &moves {
                let hashes: Vec<u64> = (0..300).map(hash::hash_word).collect();
                let mut shards = vec![0; hashes.len()];
                layout.routes(4, &hashes, to, &mut shards);
                assert!(hashes.iter().zip(shards).all(|(hash, shard)| layout.route(4, *hash, to) == shard as usize));
            }
        }
    }

    #[test]
    fn global_then_local_is_flat_and_uses_every_shard() {
        let layout = Layout::grid(2, 3);
        let mut rows = [0; 6];
        for key in 0..600u64 {
            let hash = hash::hash_word(key);
            let between = layout.route(1, hash, &Move::GLOBAL);
            let there = layout.route(between, hash, &Move::LOCAL);
            assert_eq!(there, layout.route(1, hash, &Move::FLAT));
            assert_eq!(between % 3, 1);
            rows[there] += 1;
        }
        assert!(rows.iter().all(|&rows| rows > 60), "{rows:?}");
    }
}
