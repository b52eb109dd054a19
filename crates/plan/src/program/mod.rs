//! Sharded programs: a plan cut into queries over each shard, and movements between them.
//!
//! A program is plain data: numbered steps, the last one of which is the result. [`cut`](cut())
//! makes one of a plan, [`text`] writes it as Python or Rust, and [`read`] reads the Python form
//! back. What a step does is said in `anabranch-shards`, which runs programs.
//!
//! Law: a cut program's result in any number of shards is the plan's. Source: Quill (Chandramouli
//! et al., VLDB 2016), figure 2: SQL, a readable program, a person who edits it.

mod block;
mod cut;
mod events;
mod join;
mod moves;
mod part;
mod patterns;
mod query;
mod read;
mod read_arguments;
mod read_split;
mod read_tokens;
mod shares;
mod split;
pub mod text;

pub use cut::{Cut, cut};
pub use read::{ReadProgram, read};
pub use split::{MergeOrder, ParaOptions, PlannedSplit, SplitForm};

/// What the rows of a query's inputs are called in its text.
pub const TABLES: [&str; 2] = ["shard", "other"];

/// A sharded program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Inputs before those that read them; the last one is the result.
    pub steps: Vec<PlannedStep>,
}

/// A step of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// What people call it.
    pub name: String,
    /// What is done.
    pub action: StepAction,
}

/// What a step does. Inputs are numbers of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum StepAction {
    /// The rows of a relation, spread over the shards as they come.
    Relation {
        /// Its name.
        relation: String,
        /// The columns that are read; empty for all.
        columns: Vec<String>,
    },
    /// A query over the rows of each shard, which are the tables [`TABLES`].
    Sql {
        /// One or two.
        inputs: Vec<usize>,
        /// What is asked.
        text: String,
    },
    /// The rows of both, shard by shard.
    Union {
        /// Two.
        inputs: [usize; 2],
    },
    /// The key is these columns from now on.
    Rekey {
        /// Of what.
        input: usize,
        /// The columns.
        columns: Vec<String>,
    },
    /// Rows go to other shards.
    Move {
        /// Of what.
        input: usize,
        /// Which.
        kind: MoveKind,
        /// How far.
        scope: MoveScope,
        /// To which of those.
        to: MoveTargets,
    },
    /// Rows go to the shards that an expression names.
    Multicast {
        /// Of what.
        input: usize,
        /// An expression of SQL over the columns: a shard's number, an array of them, or NULL.
        targets: String,
    },
    /// Rows in branches, whose number is the column `branch`, merged again.
    Split {
        /// Of what.
        input: usize,
        /// How.
        split: PlannedSplit,
    },
}

/// Which rows go where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// By the hash of the key.
    Redistribute,
    /// By the hash of all columns.
    Reshard,
    /// A copy to each.
    Broadcast,
}

/// How far rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveScope {
    /// To all shards.
    Flat,
    /// Within the process.
    Local,
    /// To the shards of equal number of other processes.
    Global,
}

/// To which shards rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveTargets {
    /// To all.
    All,
    /// To the first so many.
    First(usize),
    /// To those of a list, which may have a name.
    Group {
        /// Its name.
        name: Option<String>,
        /// The shards.
        shards: Vec<usize>,
    },
}

impl MoveTargets {
    /// What a list without a name is called.
    pub const UNNAMED: &str = "of a list";
}

impl MoveKind {
    /// All of them.
    pub const ALL: [MoveKind; 3] = [MoveKind::Redistribute, MoveKind::Reshard, MoveKind::Broadcast];

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            MoveKind::Redistribute => "redistribute",
            MoveKind::Reshard => "reshard",
            MoveKind::Broadcast => "broadcast",
        }
    }
}

impl MoveScope {
    /// All of them.
    pub const ALL: [MoveScope; 3] = [MoveScope::Flat, MoveScope::Local, MoveScope::Global];

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            MoveScope::Flat => "flat",
            MoveScope::Local => "local",
            MoveScope::Global => "global",
        }
    }
}

impl StepAction {
    /// The steps that it reads.
    pub fn inputs(&self) -> &[usize] {
        match self {
            StepAction::Relation { .. } => &[],
            StepAction::Sql { inputs, .. } => inputs,
            StepAction::Union { inputs } => inputs,
            StepAction::Rekey { input, .. }
            | StepAction::Move { input, .. }
            | StepAction::Multicast { input, .. }
            | StepAction::Split { input, .. } => std::slice::from_ref(input),
        }
    }

    /// The same over steps with other numbers: `places[n]` for n.
    fn renumber(&mut self, places: &[usize]) {
        let inputs: &mut [usize] = match self {
            StepAction::Relation { .. } => &mut [],
            StepAction::Sql { inputs, .. } => inputs,
            StepAction::Union { inputs } => inputs,
            StepAction::Rekey { input, .. }
            | StepAction::Move { input, .. }
            | StepAction::Multicast { input, .. }
            | StepAction::Split { input, .. } => std::slice::from_mut(input),
        };
        inputs.iter_mut().for_each(|input| *input = places[*input]);
    }
}
