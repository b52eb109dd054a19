//! Splits in programs, and the ways to split, as data.
//!
//! Law: all forms of a split yield the same branches. Source: SCSQ (Zeitler's thesis, Uppsala 2011,
//! papers IV and V).

/// A split in a program. Expressions are texts of SQL over the input's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedSplit {
    /// Branches.
    pub width: u32,
    /// The branch of a row.
    pub route: String,
    /// Whether a row goes to all branches.
    pub broadcast: Option<String>,
    /// How rows are split.
    pub form: SplitForm,
    /// The shards that branches lie in, by turns; `None` for all.
    pub places: Option<Vec<usize>>,
    /// How branches become one stream.
    pub merge: MergeOrder,
}

/// How rows are split. A `share` is the part of the rows that are broadcast, from 0 to 1, as cost
/// models take it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitForm {
    /// The form that the cost model of the program's layout chooses.
    Auto {
        /// Part of the rows that are broadcast.
        share: f64,
    },
    /// In one step.
    Flat,
    /// By a tree of fan-outs 2, 4, 8 ..
    Exp,
    /// By the widest tree whose nodes cost no more than its root.
    Max {
        /// Part of the rows that are broadcast.
        share: f64,
    },
    /// Whole windows to splitters chosen at random.
    Para(ParaOptions),
    /// The cheapest form in one process.
    Local {
        /// Part of the rows that are broadcast.
        share: f64,
    },
}

/// Options of a parallel split: a router hands whole windows to splitters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParaOptions {
    /// Number of splitters. `None`: as many as `rate` needs, and at most one in each shard.
    pub splitters: Option<u32>,
    /// Rows of a window, at most. `None`: doubled while the router's rate grows.
    pub window: Option<u32>,
    /// Seed of the router's choice of a splitter for each window.
    pub seed: u64,
    /// Wanted rate, in rows a second. `None`: the greatest that the shards reach.
    pub rate: Option<f64>,
    /// Rate of one splitter of one branch, in rows a second. `None`: by measured constants.
    pub rate_of_one: Option<f64>,
    /// Part of the rows that are broadcast, from 0 to 1.
    pub share: f64,
}

impl ParaOptions {
    /// All of them chosen.
    pub const CHOSEN: ParaOptions =
        ParaOptions { splitters: None, window: None, seed: 0, rate: None, rate_of_one: None, share: SplitForm::SHARE };

    /// Refuses numbers that say nothing.
    ///
    /// # Errors
    /// The option, and the numbers that it takes.
    pub fn check(&self) -> Result<(), String> {
        let counts = [("splitters", self.splitters), ("window", self.window)];
        if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
            return Err(format!("{name} of a split is 0: it is a number from 1"));
        }
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let rates = [("rate", self.rate), ("rate_of_one", self.rate_of_one)];
        let wrong = rates.into_iter().find_map(|(name, rate)| Some((name, rate.filter(|rate| !is_rate(*rate))?)));
        if let Some((name, rate)) = wrong {
            return Err(format!("{name} of a split is {rate}: it is a number of rows a second, above 0"));
        }
        match (0.0..=1.0).contains(&self.share) {
            true => Ok(()),
            false => Err(format!("a share of {} is none: it is a number from 0 to 1", self.share)),
        }
    }
}

impl Default for ParaOptions {
    fn default() -> Self {
        ParaOptions::CHOSEN
    }
}

impl SplitForm {
    /// The part of the rows that are broadcast, where none is said.
    pub const SHARE: f64 = 0.01;

    /// The form of splits that name none.
    pub const AUTO: SplitForm = SplitForm::Auto { share: SplitForm::SHARE };

    /// All of them, the usual one first.
    pub const ALL: [SplitForm; 6] = [
        SplitForm::AUTO,
        SplitForm::Flat,
        SplitForm::Exp,
        SplitForm::Max { share: SplitForm::SHARE },
        SplitForm::Para(ParaOptions::CHOSEN),
        SplitForm::Local { share: SplitForm::SHARE },
    ];

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            SplitForm::Auto { .. } => "auto",
            SplitForm::Flat => "flat",
            SplitForm::Exp => "exp",
            SplitForm::Max { .. } => "max",
            SplitForm::Para(_) => "para",
            SplitForm::Local { .. } => "local",
        }
    }

    /// The part of the rows that are broadcast; `None` of forms that do not depend on it.
    pub fn share(self) -> Option<f64> {
        match self {
            SplitForm::Auto { share } | SplitForm::Max { share } | SplitForm::Local { share } => Some(share),
            SplitForm::Para(para) => Some(para.share),
            SplitForm::Flat | SplitForm::Exp => None,
        }
    }

    /// The form with another share, if it depends on one.
    #[must_use]
    pub fn with_share(self, share: f64) -> SplitForm {
        match self {
            SplitForm::Auto { .. } => SplitForm::Auto { share },
            SplitForm::Max { .. } => SplitForm::Max { share },
            SplitForm::Local { .. } => SplitForm::Local { share },
            SplitForm::Para(para) => SplitForm::Para(ParaOptions { share, ..para }),
            SplitForm::Flat | SplitForm::Exp => self,
        }
    }
}

/// In which order rows of branches are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOrder {
    /// In any.
    Any,
    /// In order of time, in one shard.
    Time,
}

impl MergeOrder {
    /// All of them.
    pub const ALL: [MergeOrder; 2] = [MergeOrder::Any, MergeOrder::Time];

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            MergeOrder::Any => "merge",
            MergeOrder::Time => "merge_by_time",
        }
    }
}
