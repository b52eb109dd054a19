//! What lies where, as far as a program says it.
//!
//! A placement has two parts, since shards are threads of processes: how rows are spread *across*
//! processes, and *within* each. Law: contents of a process are the union over its threads where
//! they are split, and those of any thread where they are replicated; the same holds of the stream
//! and processes.

use std::fmt;

use crate::layout::{Move, ShardScope, To};

/// How rows are spread over one level of shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Each row in one shard, any.
    Arbitrary,
    /// Rows that are equal in these columns in one shard, which their hash says.
    ByKey(Vec<String>, To),
    /// Rows of equal numbers in this column in one shard, that of the number.
    ByNumber(String),
    /// As `ByNumber`, in the shards of a list by turns.
    Placed {
        /// The column.
        column: String,
        /// The list.
        shards: Vec<usize>,
    },
    /// Rows of a source, by ranges of a column of it.
    Packed {
        /// The source: another one has other ranges.
        source: String,
        /// The column.
        column: String,
    },
    /// Each row in each shard.
    Replicated,
    /// All rows in the first shard.
    One,
}

/// Where the rows of a stream lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Over processes.
    pub across: Spread,
    /// Over the threads of each process.
    pub within: Spread,
}

impl Spread {
    /// Whether each row lies in one shard.
    pub fn is_split(&self) -> bool {
        *self != Spread::Replicated
    }

    /// Whether all rows of each of these keys lie together.
    pub fn keeps_together(&self, key: &[String]) -> bool {
        match self {
            Spread::One => true,
            Spread::ByKey(columns, _) => columns.iter().all(|column| key.contains(column)),
            Spread::ByNumber(column) | Spread::Placed { column, .. } | Spread::Packed { column, .. } => {
                key.contains(column)
            }
            Spread::Arbitrary | Spread::Replicated => false,
        }
    }

    /// What is left to say once only these columns are known to stay.
    #[must_use]
    pub fn kept(self, key: &[String]) -> Spread {
        match self {
            Spread::ByKey(columns, _) if columns.iter().any(|column| !key.contains(column)) => Spread::Arbitrary,
            Spread::ByNumber(column) | Spread::Placed { column, .. } | Spread::Packed { column, .. }
                if !key.contains(&column) =>
            {
                Spread::Arbitrary
            }
            other => other,
        }
    }
}

impl Placement {
    /// Nothing is known.
    pub const ARBITRARY: Placement = Placement { across: Spread::Arbitrary, within: Spread::Arbitrary };

    /// The parts that a movement decides anew.
    pub fn touched(&self, scope: ShardScope) -> Vec<&Spread> {
        match scope {
            ShardScope::Flat => vec![&self.across, &self.within],
            ShardScope::Local => vec![&self.within],
            ShardScope::Global => vec![&self.across],
        }
    }

    /// After a movement that gives the levels it touches this spread.
    #[must_use]
    pub fn moved(&self, reach: &Move, spread: Spread) -> Placement {
        let spread = match &reach.to {
            to if to.is_first() => Spread::One,
            // (In one shard, rows of any key lie together: a key of no columns says so.)
            to if to.is_one() => Spread::ByKey(vec![], to.clone()),
            _ => spread,
        };
        let Placement { across, within } = self.clone();
        match reach.scope {
            ShardScope::Flat => Placement { across: spread.clone(), within: spread },
            ShardScope::Local => Placement { across, within: spread },
            ShardScope::Global => Placement { across: spread, within },
        }
    }

    /// After [`Spread::kept`] of both levels.
    #[must_use]
    pub fn kept(self, key: &[String]) -> Placement {
        Placement { across: self.across.kept(key), within: self.within.kept(key) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Arbitrary => write!(f, "arbitrary"),
            Spread::ByKey(columns, To::Same) => write!(f, "by key ({})", columns.join(", ")),
            Spread::ByKey(columns, To::Shards(n)) => write!(f, "by key ({}) in {n} shards", columns.join(", ")),
            Spread::ByKey(columns, To::Group(group)) if columns.is_empty() => write!(f, "in {group}"),
            Spread::ByKey(columns, To::Group(group)) => write!(f, "by key ({}) in {group}", columns.join(", ")),
            Spread::ByNumber(column) => write!(f, "by number ({column})"),
            Spread::Placed { column, shards } => {
                let shards = shards.iter().map(ToString::to_string).collect::<Vec<_>>();
                write!(f, "by number ({column}) in shards {}", shards.join(", "))
            }
            Spread::Packed { column, .. } => write!(f, "packed by ({column})"),
            Spread::Replicated => write!(f, "replicated"),
            Spread::One => write!(f, "in one shard"),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.across == self.within {
            true => write!(f, "{}", self.across),
            false => write!(f, "{} across processes, {} within", self.across, self.within),
        }
    }
}
