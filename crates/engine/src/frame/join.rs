//! Verbs of two frames that are matched by keys.
//!
//! Inside groups the keys of the group are matched too. NULL keys match nothing.

use std::sync::Arc;

use anabranch_plan::temporal::Verb;
use anabranch_plan::{Nulls, Plan};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, cast, lit};

use super::expression::{self, Resolved, col};
use super::query::{Frame, FrameState, columns_of, schema_of, temporal};
use super::rows::{computed, input_for};
use crate::error::Error;

/// Which rows of a join come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Pairs.
    Inner,
    /// And left rows while they have no pair, with NULLs on the right.
    Left,
    /// And right rows while they have no pair, with NULLs on the left.
    Full,
}

impl Frame {
    /// Pairs of rows with equal keys, while both are in force: columns of this frame, then of the
    /// other; a name that is taken gets the suffix `_right`.
    #[must_use]
    pub fn join(
        &self,
        other: &Frame,
        left_on: impl IntoIterator<Item = Expr>,
        right_on: impl IntoIterator<Item = Expr>,
        how: How,
    ) -> Frame {
        self.join_with(other, left_on.into_iter().collect(), right_on.into_iter().collect(), how, None)
    }

    /// As [`join`](Frame::join), of the pairs for which `predicate`, over the columns of the
    /// result, is true.
    #[must_use]
    pub fn join_where(
        &self,
        other: &Frame,
        left_on: impl IntoIterator<Item = Expr>,
        right_on: impl IntoIterator<Item = Expr>,
        how: How,
        predicate: Expr,
    ) -> Frame {
        self.join_with(other, left_on.into_iter().collect(), right_on.into_iter().collect(), how, Some(predicate))
    }

    /// Rows while the other frame has none with their key.
    #[must_use]
    pub fn where_not_exists(
        &self,
        other: &Frame,
        left_on: impl IntoIterator<Item = Expr>,
        right_on: impl IntoIterator<Item = Expr>,
    ) -> Frame {
        let (left_on, right_on): (Vec<Expr>, Vec<Expr>) =
            (left_on.into_iter().collect(), right_on.into_iter().collect());
        self.then_with(other, |left, right| absent(left, right, &left_on, &right_on, Nulls::Differ))
    }

    /// Rows while the other frame has none with their key for which `predicate` is true, over the
    /// columns of both as in [`join_where`](Frame::join_where). Equal rows are treated alike.
    #[must_use]
    pub fn where_not_exists_where(
        &self,
        other: &Frame,
        left_on: impl IntoIterator<Item = Expr>,
        right_on: impl IntoIterator<Item = Expr>,
        predicate: Expr,
    ) -> Frame {
        let joined = self.join_where(other, left_on, right_on, How::Inner, predicate);
        match self.own_names(other, Missing::Right) {
            Ok(names) => self.without(&joined, &names),
            Err(error) => Frame::failed(error),
        }
    }

    fn join_with(&self, other: &Frame, left_on: Vec<Expr>, right_on: Vec<Expr>, how: How, pred: Option<Expr>) -> Frame {
        let inner = self.then_with(other, |left, right| inner(left, right, &left_on, &right_on));
        let inner = match &pred {
            Some(predicate) => inner.filter(predicate.clone()),
            None => inner,
        };
        let mut frame = inner.clone();
        if how != How::Inner {
            let missing = self.unmatched(other, &inner, (&left_on, &right_on), pred.is_some(), Missing::Right);
            frame = frame.union(&missing);
        }
        if how == How::Full {
            let missing = other.unmatched(self, &inner, (&right_on, &left_on), pred.is_some(), Missing::Left);
            frame = frame.union(&missing);
        }
        frame
    }

    /// Rows of this frame without a pair, in the form of the joined ones. With a predicate, rows
    /// are without a pair when no joined row has all their columns: equal rows are treated alike.
    fn unmatched(
        &self,
        other: &Frame,
        joined: &Frame,
        (on, other_on): (&[Expr], &[Expr]),
        has_predicate: bool,
        missing: Missing,
    ) -> Frame {
        let names = match self.own_names(other, missing) {
            Ok(names) => names,
            Err(error) => return Frame::failed(error),
        };
        let alone = if has_predicate {
            self.without(joined, &names)
        } else {
            self.then_with(other, |left, right| absent(left, right, on, other_on, Nulls::Differ))
        };
        let columns = match joined.schema() {
            Ok(schema) => schema,
            Err(error) => return Frame::failed(error),
        };
        alone.select(columns.fields().iter().map(|field| {
            let own = names.iter().find(|(_, inner)| inner == field.name());
            let value = match own {
                Some((own, _)) => col(own),
                None => cast(lit(ScalarValue::Null), field.data_type().clone()),
            };
            value.alias(field.name())
        }))
    }

    /// Rows of this frame while no joined row has all their columns, which are called so in the
    /// join.
    fn without(&self, joined: &Frame, names: &[(String, String)]) -> Frame {
        let matched = joined.select(names.iter().map(|(own, inner)| col(inner).alias(own)));
        let all: Vec<Expr> = names.iter().map(|(own, _)| col(own)).collect();
        self.then_with(&matched, |left, right| absent(left, right, &all, &all, Nulls::Equal))
    }

    /// This frame's columns and what they are called in a join with the other, of which this is the
    /// left side when the right is missing.
    fn own_names(&self, other: &Frame, missing: Missing) -> Result<Vec<(String, String)>, Error> {
        let (own, other) = (self.state()?, other.state()?);
        let own_columns = columns_of(own.schema());
        let names = match missing {
            Missing::Right => own_columns.into_iter().map(|(name, _)| (name.clone(), name)).collect(),
            Missing::Left => {
                let renamed = right_names(other, own);
                let group = own.group.iter().map(|name| (name.clone(), name.clone()));
                group.chain(renamed).collect()
            }
        };
        Ok(names)
    }
}

/// The side of a join that a row has no partner on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Left,
    Right,
}

/// The right side's columns, but for the group's, and what they are called in the join.
fn right_names(left: &FrameState, right: &FrameState) -> Vec<(String, String)> {
    let taken: Vec<String> = columns_of(left.schema()).into_iter().map(|(name, _)| name).collect();
    let own = columns_of(right.schema()).into_iter().map(|(name, _)| name);
    own.filter(|name| !right.group.contains(name))
        .map(|name| {
            let joined = if taken.contains(&name) { format!("{name}_right") } else { name.clone() };
            (name, joined)
        })
        .collect()
}

fn inner(left: &FrameState, right: &FrameState, left_on: &[Expr], right_on: &[Expr]) -> Result<Arc<Plan>, Error> {
    paired(left, right, left_on, right_on, |left_key, right_key| Verb::Join { left_key, right_key })
}

/// A verb that yields columns of the left side, then of the right, under the names of a join.
pub(super) fn paired(
    left: &FrameState,
    right: &FrameState,
    left_on: &[Expr],
    right_on: &[Expr],
    verb: impl FnOnce(Vec<usize>, Vec<usize>) -> Verb,
) -> Result<Arc<Plan>, Error> {
    let keyed = Keyed::new(left, right, left_on, right_on)?;
    let (ours, theirs) = (columns_of(&keyed.left.schema), columns_of(&keyed.right.schema));
    // Every column by a name of its own, then those that are wanted by the names that are wanted.
    let place = |side: &str, at: usize| format!("@{side} {at}");
    let all: Vec<(String, DataType)> =
        (ours.iter().enumerate().map(|(at, column)| (place("left", at), column.1.clone())))
            .chain(theirs.iter().enumerate().map(|(at, column)| (place("right", at), column.1.clone())))
            .collect();
    let verb = verb(keyed.left_key, keyed.right_key);
    let joined = temporal(verb, vec![keyed.left, keyed.right], schema_of(&all)?);
    let mut columns = Vec::new();
    for (name, _) in columns_of(left.schema()) {
        columns.push((name.clone(), place("left", left.position(&name)?)));
    }
    for (name, joined) in right_names(left, right) {
        columns.push((joined, place("right", right.position(&name)?)));
    }
    let named = columns.into_iter().map(|(name, place)| {
        let resolved = expression::resolve(&col(&place), &joined.schema)?;
        Ok(Resolved { name, ..resolved })
    });
    computed(&joined, named.collect::<Result<_, Error>>()?)
}

fn absent(
    left: &FrameState,
    right: &FrameState,
    left_on: &[Expr],
    right_on: &[Expr],
    nulls: Nulls,
) -> Result<Arc<Plan>, Error> {
    let keyed = Keyed::new(left, right, left_on, right_on)?;
    keyed.left_rows(left, |left_key, right_key| Verb::WhereNotExists { left_key, right_key, nulls })
}

/// Two plans with their keys as columns.
pub(super) struct Keyed {
    pub left: Arc<Plan>,
    pub right: Arc<Plan>,
    pub left_key: Vec<usize>,
    pub right_key: Vec<usize>,
}

impl Keyed {
    /// Keys of the groups and then those given, of the same types on both sides.
    pub(super) fn new(
        left: &FrameState,
        right: &FrameState,
        left_on: &[Expr],
        right_on: &[Expr],
    ) -> Result<Keyed, Error> {
        if left_on.len() != right_on.len() {
            return Err(Error::invalid(format!(
                "the two sides are compared by {} and {} keys",
                left_on.len(),
                right_on.len()
            )));
        }
        let group: Vec<Expr> = left.group.iter().map(|name| col(name)).collect();
        let keys = |on: &[Expr]| group.iter().chain(on).cloned().collect::<Vec<_>>();
        let (left, left_key) = with_keys(left, &keys(left_on))?;
        let (right, right_key) = with_keys(right, &keys(right_on))?;
        for (&left_at, &right_at) in left_key.iter().zip(&right_key) {
            let (ours, theirs) = (left.schema.field(left_at), right.schema.field(right_at));
            if ours.data_type() != theirs.data_type() {
                return Err(Error::invalid(format!(
                    "{} and {} are compared, but of types {} and {}",
                    ours.name(),
                    theirs.name(),
                    ours.data_type(),
                    theirs.data_type()
                ))
                .with_hint("Cast one of them to the type of the other."));
            }
        }
        Ok(Keyed { left, right, left_key, right_key })
    }

    /// A verb that yields rows of the left side, without the keys that were computed for it.
    pub(super) fn left_rows(
        self,
        left: &FrameState,
        verb: impl FnOnce(Vec<usize>, Vec<usize>) -> Verb,
    ) -> Result<Arc<Plan>, Error> {
        let schema = self.left.schema.clone();
        let yielded = temporal(verb(self.left_key, self.right_key), vec![self.left, self.right], schema);
        if yielded.schema.fields().len() == left.schema().fields().len() {
            return Ok(yielded);
        }
        let kept = columns_of(left.schema());
        let kept = kept.iter().map(|(name, _)| expression::resolve(&col(name), &yielded.schema));
        computed(&yielded, kept.collect::<Result<_, _>>()?)
    }
}

/// All columns, then the keys that are none of them; with the places of the keys.
fn with_keys(state: &FrameState, keys: &[Expr]) -> Result<(Arc<Plan>, Vec<usize>), Error> {
    let input = input_for(state, keys)?;
    let mut columns = columns_of(state.schema())
        .iter()
        .map(|(name, _)| expression::resolve(&col(name), &input.schema))
        .collect::<Result<Vec<Resolved>, _>>()?;
    let n_columns = columns.len();
    let mut places = Vec::new();
    for key in keys {
        let key = expression::resolve(key, &input.schema)?;
        let place = columns.iter().position(|column| column.expr == key.expr).unwrap_or_else(|| {
            let name = format!("@key {}", columns.len());
            columns.push(Resolved { name, ..key });
            columns.len() - 1
        });
        places.push(place);
    }
    let plan = if columns.len() == n_columns { state.plan.clone() } else { computed(&input, columns)? };
    Ok((plan, places))
}
