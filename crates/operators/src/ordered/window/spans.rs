//! Where the frames of rows begin and end.

use std::cmp::Ordering;
use std::ops::Range;

use anabranch_batch::order::{Comparator, Direction};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use anabranch_spec::order::SortKey;
use arrow::array::ArrayRef;

use crate::ordered::versions::Version;

/// For each row, where its peers lie among all rows, itself among them.
pub(super) struct Peers {
    spans: Vec<Range<usize>>,
    /// Each group of peers once, in order.
    groups: Vec<Range<usize>>,
    /// The group of each row.
    group_of: Vec<usize>,
}

impl Peers {
    /// The peers of the versions' rows: what the order's columns do not tell apart.
    pub(super) fn new(versions: &[Version], order: &[SortKey], columns: &[ArrayRef]) -> Peers {
        let keys: Vec<ArrayRef> = order.iter().map(|key| columns[key.column].clone()).collect();
        let directions: Vec<Direction> = order.iter().map(SortKey::direction).collect();
        let comparator = Comparator::new(&keys, &keys, &directions);
        let mut groups: Vec<Range<usize>> = Vec::new();
        for version in versions {
            let mut from = version.from;
            for row in version.from..version.to {
                if row + 1 == version.to || comparator.compare(row, row + 1) != Ordering::Equal {
                    groups.push(from..row + 1);
                    from = row + 1;
                }
            }
        }
        let (mut spans, mut group_of) = (Vec::new(), Vec::new());
        for (number, group) in groups.iter().enumerate() {
            spans.extend(std::iter::repeat_n(group.clone(), group.len()));
            group_of.extend(std::iter::repeat_n(number, group.len()));
        }
        Peers { spans, groups, group_of }
    }

    /// The peers of a row.
    pub(super) fn of(&self, row: usize) -> Range<usize> {
        self.spans[row].clone()
    }
}

/// For each row of a version, from where to where its frame reaches, exclusions not seen. Neither
/// end ever moves back, and none begins before the row `least`.
pub(super) fn spans(
    version: &Version,
    frame: &WindowFrame,
    peers: &Peers,
    order: &[SortKey],
    columns: &[ArrayRef],
    least: usize,
) -> Vec<Range<usize>> {
    let first = |bound| Finder::new(bound, version, peers, order, columns);
    let (start, end) = (first(frame.start), first(frame.end));
    let least = least.max(version.from);
    let mut last = least..least;
    let rows = version.from..version.to;
    rows.map(|row| {
        // (A computed key may move back where its arithmetic is not monotone, as over changes of
        // summer time.)
        let start = start.start(row).max(last.start);
        last = start..end.end(row).max(last.end).max(start);
        last.clone()
    })
    .collect()
}

/// Finds the rows that a bound stands for.
struct Finder<'a> {
    bound: FrameBound,
    version: &'a Version,
    peers: &'a Peers,
    /// The order's first key against the bound's column.
    comparator: Option<Comparator>,
}

impl<'a> Finder<'a> {
    fn new(
        bound: FrameBound,
        version: &'a Version,
        peers: &'a Peers,
        order: &[SortKey],
        columns: &[ArrayRef],
    ) -> Finder<'a> {
        let comparator = match bound {
            FrameBound::Key(column) => {
                let (key, direction) = order[0].pair();
                let (keys, bounds) = ([columns[key].clone()], [columns[column].clone()]);
                Some(Comparator::new(&keys, &bounds, &[direction]))
            }
            _ => None,
        };
        Finder { bound, version, peers, comparator }
    }

    /// The first row of the frame.
    fn start(&self, row: usize) -> usize {
        match self.bound {
            FrameBound::First => self.version.from,
            FrameBound::Last => self.version.to.saturating_sub(1).max(self.version.from),
            FrameBound::Rows(rows) => self.clamp(row as i128 + i128::from(rows)),
            FrameBound::Peers(groups) => self.group(row, groups).map_or_else(|outside| outside, |group| group.start),
            FrameBound::Key(_) => self.search(|row_of_key| self.compare(row_of_key, row) == Ordering::Less),
        }
    }

    /// The row behind the last row of the frame.
    fn end(&self, row: usize) -> usize {
        match self.bound {
            FrameBound::First => (self.version.from + 1).min(self.version.to),
            FrameBound::Last => self.version.to,
            FrameBound::Rows(rows) => self.clamp(row as i128 + i128::from(rows) + 1),
            FrameBound::Peers(groups) => self.group(row, groups).map_or_else(|outside| outside, |group| group.end),
            FrameBound::Key(_) => self.search(|row_of_key| self.compare(row_of_key, row) != Ordering::Greater),
        }
    }

    fn clamp(&self, row: i128) -> usize {
        row.clamp(self.version.from as i128, self.version.to as i128) as usize
    }

    /// The group so many groups on; or the end of the partition beyond which it would lie.
    fn group(&self, row: usize, groups: i64) -> Result<Range<usize>, usize> {
        let number = self.peers.group_of[row] as i128 + i128::from(groups);
        let group = usize::try_from(number).ok().and_then(|number| self.peers.groups.get(number));
        let is_inside = |group: &&Range<usize>| group.start >= self.version.from && group.end <= self.version.to;
        let outside = if groups < 0 { self.version.from } else { self.version.to };
        group.filter(is_inside).cloned().ok_or(outside)
    }

    fn compare(&self, row_of_key: usize, row_of_bound: usize) -> Ordering {
        self.comparator.as_ref().expect("the bound is a key").compare(row_of_key, row_of_bound)
    }

    /// The first row of the partition that is not before.
    fn search(&self, is_before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (self.version.from, self.version.to);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// What is left of a span without the rows that `row` excludes: at most three pieces, ascending,
/// none of them empty.
///
/// Seen from a row, the span is its frame; seen from an element, the rows whose frames reach it.
/// Exclusion is mutual: a row excludes an element if the element, in the row's place, excludes the
/// row.
pub(super) fn pieces(
    span: &Range<usize>,
    row: usize,
    peers: Range<usize>,
    exclude: Exclude,
) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let (before, itself, behind) = match exclude {
        Exclude::Nothing => (span.end, 0..0, span.end),
        Exclude::Row => (row, 0..0, row + 1),
        Exclude::Peers => (peers.start, 0..0, peers.end),
        Exclude::Ties => (peers.start, row.max(span.start)..(row + 1).min(span.end), peers.end),
    };
    let pieces = [span.start..before.min(span.end), itself, behind.max(span.start)..span.end];
    pieces.into_iter().filter(|piece| !piece.is_empty())
}

/// For each row of a version, seen as an element: the rows whose frames reach it.
pub(super) fn holders(version: &Version, spans: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut first, mut last) = (0, 0);
    let rows = version.from..version.to;
    rows.map(|element| {
        while first < spans.len() && spans[first].end <= element {
            first += 1;
        }
        while last < spans.len() && spans[last].start <= element {
            last += 1;
        }
        version.from + first..version.from + last.max(first)
    })
    .collect()
}
