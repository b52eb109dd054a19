//! What is searched for matches, and what is found.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef};

use crate::ordered::instants::Instants;

/// Rows of a partition that are searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchRange {
    /// The partition, among all rows.
    pub from: usize,
    pub to: usize,
    /// The first row that a match may begin at, the first that none may, and where matches end at
    /// the latest.
    pub start: usize,
    pub stop: usize,
    pub end: usize,
    /// Matches that begin before.
    pub n_matches: i64,
    /// The least word such that what changes from there on changes none of these.
    pub clean_from: u64,
}

/// All rows of all versions.
pub(super) struct Rows {
    /// By input column; those that no expression reads are missing.
    pub columns: BTreeMap<usize, ArrayRef>,
    /// The first order column, where matches are bounded.
    pub instants: Option<(Instants, ArrayRef)>,
    /// The word of each row; without any, no cut is looked for.
    pub words: Vec<u64>,
}

impl Rows {
    /// The time of a row, where matches are bounded.
    pub fn instant(&self, row: usize) -> Option<i64> {
        let (instants, column) = self.instants.as_ref()?;
        column.is_valid(row).then(|| instants.at(row))
    }

    /// The end of the rows that may be in a match that begins at `start`.
    pub fn end_within(&self, start: usize, to: usize, within: Option<u64>) -> usize {
        let (Some(within), Some((instants, column))) = (within, &self.instants) else { return to };
        if column.is_null(start) {
            return start + 1;
        }
        let first = instants.at(start);
        let (mut low, mut high) = (start + 1, to);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_near = column.is_valid(middle) && instants.at(middle).abs_diff(first) < within;
            if is_near { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// How the search of a span ended.
pub(super) struct SpanEnd {
    /// The row from which it would have gone on.
    pub at: usize,
    /// The least word such that what changes from there on changes no match up to there; `None` if
    /// any change may, since a row at the end was wanted.
    pub clean_from: Option<u64>,
    /// Matches up to there.
    pub n_matches: i64,
    /// Places to go on from, besides.
    pub cuts: Vec<Cut>,
}

/// Matches found.
#[derive(Default)]
pub(super) struct Found {
    pub matches: Vec<FoundMatch>,
    pub labels: Vec<usize>,
    /// Span and message.
    pub errors: Vec<(usize, String)>,
}

/// A match.
pub(super) struct FoundMatch {
    /// The number of its span.
    pub span: usize,
    pub start: usize,
    /// Its labels among all.
    pub labels: Range<usize>,
    /// From 1.
    pub number: i64,
}

impl Found {
    /// Forgets what was found in some spans.
    pub fn forget(&mut self, spans: &Range<usize>) {
        self.matches.retain(|found| !spans.contains(&found.span));
        self.errors.retain(|(span, _)| !spans.contains(span));
    }
}

/// Rows from one cut to the next, at least.
pub(super) const CUT_ROWS: usize = if cfg!(test) { 2 } else { 32 };

/// A place from which a search goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub word: u64,
    /// The least word such that what changes from there on changes no match before the cut: it is
    /// greater where searches before have read beyond.
    pub clean_from: u64,
    /// The word of the first row that matches from there on read.
    pub from_word: u64,
    /// Rows from the first with that word up to the cut.
    pub n_back: usize,
    /// Matches before, if they are numbered.
    pub n_matches: i64,
}
