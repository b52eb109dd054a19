//! Expressions over watermarks, in ticks: units of the column that they bound.

use std::collections::{BTreeMap, BTreeSet};

/// A lower bound of a column's values in changes to come. Rises with the watermarks it is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The watermark of a relation.
    Mark {
        /// Its number in the session.
        id: u64,
        /// The relation, for people.
        relation: String,
    },
    /// No change will come at all.
    Never,
    /// So many ticks later.
    Plus(Box<Bound>, i64),
    /// The last multiple of a size at or before.
    Floor(Box<Bound>, i64),
    /// In another unit: times the first, by the second, rounded down.
    Scaled(Box<Bound>, i64, i64),
    /// The least of several: of what comes from several places.
    Least(Vec<Bound>),
    /// The greatest of several, all of which hold.
    Greatest(Vec<Bound>),
}

impl Bound {
    /// The bound as a number, while the watermarks are these; `None` while there is none.
    pub fn at(&self, mark: &dyn Fn(u64) -> Option<i64>) -> Option<i64> {
        match self {
            Bound::Mark { id, .. } => mark(*id),
            Bound::Never => Some(i64::MAX),
            Bound::Plus(of, ticks) => Some(of.at(mark)?.saturating_add(*ticks)),
            Bound::Floor(of, size) => {
                let value = of.at(mark)?;
                Some(value.saturating_sub(value.rem_euclid(*size)))
            }
            Bound::Scaled(of, times, by) => {
                let scaled = i128::from(of.at(mark)?) * i128::from(*times);
                let rounded = scaled.div_euclid(i128::from(*by));
                Some(i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX }))
            }
            Bound::Least(all) => {
                all.iter().map(|bound| bound.at(mark)).collect::<Option<Vec<i64>>>()?.into_iter().min()
            }
            Bound::Greatest(all) => all.iter().filter_map(|bound| bound.at(mark)).max(),
        }
    }

    /// So many ticks later.
    pub fn plus(self, ticks: i64) -> Bound {
        match (self, ticks) {
            (bound, 0) => bound,
            (Bound::Never, _) => Bound::Never,
            (Bound::Plus(of, more), ticks) => Bound::Plus(of, more.saturating_add(ticks)),
            (bound, ticks) => Bound::Plus(Box::new(bound), ticks),
        }
    }

    /// The least of both.
    pub fn least(self, other: Bound) -> Bound {
        match (self, other) {
            (Bound::Never, bound) | (bound, Bound::Never) => bound,
            (bound, other) if bound == other => bound,
            (bound, other) => Bound::Least(vec![bound, other]),
        }
    }

    /// The greatest of both.
    pub fn greatest(self, other: Bound) -> Bound {
        match self == other {
            true => self,
            false => Bound::Greatest(vec![self, other]),
        }
    }

    /// By how many ticks it is behind the least of its watermarks, at most; below zero where it is
    /// ahead. `None` for one that no watermark moves.
    pub fn lag(&self) -> Option<i64> {
        match self {
            Bound::Mark { .. } => Some(0),
            Bound::Never => None,
            Bound::Plus(of, ticks) => of.lag()?.checked_sub(*ticks),
            Bound::Floor(of, size) => of.lag()?.checked_add(size - 1),
            Bound::Scaled(of, times, 1) => of.lag()?.checked_mul(*times),
            // (What is rounded down loses less than a tick.)
            Bound::Scaled(of, times, by) => of.lag()?.checked_mul(*times)?.div_euclid(*by).checked_add(1),
            Bound::Least(all) => all.iter().map(Bound::lag).collect::<Option<Vec<i64>>>()?.into_iter().max(),
            Bound::Greatest(all) => all.iter().filter_map(Bound::lag).min(),
        }
    }

    /// The relations whose watermarks it is made of.
    pub fn relations(&self) -> BTreeSet<&str> {
        self.marks().into_iter().map(|(_, relation)| relation).collect()
    }

    /// The watermarks that it is made of: their numbers and relations.
    pub fn marks(&self) -> BTreeSet<(u64, &str)> {
        match self {
            Bound::Mark { id, relation } => BTreeSet::from([(*id, relation.as_str())]),
            Bound::Never => BTreeSet::new(),
            Bound::Plus(of, _) | Bound::Floor(of, _) | Bound::Scaled(of, ..) => of.marks(),
            Bound::Least(all) | Bound::Greatest(all) => all.iter().flat_map(Bound::marks).collect(),
        }
    }
}

/// What is promised of the changes of a relation's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Bounds of columns, by their position.
    pub bounds: BTreeMap<usize, Bound>,
    /// The watermark that the relation holds, if that is what it is for.
    pub mark: Option<Bound>,
    /// Whether rows are never taken back.
    pub is_append_only: bool,
    /// Whether the relation has a watermark that bounds nothing, since UPDATE and DELETE are
    /// allowed.
    pub is_changeable: bool,
}

/// Knows what relations promise.
pub trait Promised {
    /// The promises of a relation; `None` for one that promises nothing.
    fn promises(&self, relation: &str) -> Option<&Promises>;
}

impl Promised for BTreeMap<String, Promises> {
    fn promises(&self, relation: &str) -> Option<&Promises> {
        self.get(relation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_follow_their_marks() {
        let mark = |id: u64| Bound::Mark { id, relation: format!("r{id}") };
        let floor = Bound::Floor(Box::new(mark(1).plus(-3)), 10);
        let both = floor.clone().least(mark(2));
        let at = |bound: &Bound, first, second| bound.at(&|id| if id == 1 { first } else { second });
        assert_eq!(
            (at(&floor, Some(25), None), at(&floor, Some(2), None), at(&floor, None, None)),
            (Some(20), Some(-10), None)
        );
        assert_eq!((at(&both, Some(25), Some(17)), at(&both, Some(25), None)), (Some(17), None));
        assert_eq!(at(&floor.clone().greatest(mark(2)), Some(25), None), Some(20));
        assert_eq!(at(&Bound::Scaled(Box::new(mark(1)), 1, 1000), Some(-1), None), Some(-1));
        assert_eq!(floor.clone().least(Bound::Never), floor);
        // Where a watermark is a mark `m`, the bound is at `m - lag` or above.
        let lags = [mark(1), floor.clone(), floor.clone().plus(10), both.clone(), floor.clone().greatest(mark(2))];
        assert_eq!(lags.map(|bound| bound.lag()), [Some(0), Some(12), Some(2), Some(12), Some(0)]);
        assert_eq!((Bound::Never.lag(), Bound::Scaled(Box::new(mark(1)), 1000, 1).lag()), (None, Some(0)));
        assert_eq!(both.marks(), BTreeSet::from([(1, "r1"), (2, "r2")]));
        assert_eq!(both.relations().into_iter().collect::<Vec<_>>(), ["r1", "r2"]);
    }
}
