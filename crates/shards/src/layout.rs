//! How shards are numbered, and among which of them rows move.
//!
//! Shards are seen as P processes of n threads: shard `p * n + l` is thread `l` of process `p`. One
//! process is the ordinary case. A layout of several runs in as many processes
//! ([`Shards::run_in`](crate::Shards::run_in)), or in one, whose threads exchange batches only.

use anabranch_batch::{hash, route};

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

/// Which shards of the scope receive rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// All.
    Same,
    /// The first so many; the others stay empty. Only of [`ShardScope::Flat`].
    Shards(usize),
}

/// How far a movement reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub fn route(self, shard: usize, hash: u64, to: Move) -> usize {
        if let To::Shards(shards) = to.to {
            return route(hash, shards.clamp(1, self.shards()));
        }
        let process = route(hash, self.processes);
        let local = (((hash::spread(hash) >> 32) * self.threads as u64) >> 32) as usize;
        match to.scope {
            ShardScope::Flat => process * self.threads + local,
            ShardScope::Local => self.process(shard) * self.threads + local,
            ShardScope::Global => process * self.threads + shard % self.threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn global_then_local_is_flat_and_uses_every_shard() {
        let layout = Layout::grid(2, 3);
        let mut rows = [0; 6];
        for key in 0..600u64 {
            let hash = hash::hash_word(key);
            let between = layout.route(1, hash, Move::GLOBAL);
            let there = layout.route(between, hash, Move::LOCAL);
            assert_eq!(there, layout.route(1, hash, Move::FLAT));
            assert_eq!(between % 3, 1);
            rows[there] += 1;
        }
        assert!(rows.iter().all(|&rows| rows > 60), "{rows:?}");
    }
}
