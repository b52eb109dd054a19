//! Rows of parts, moved to where a node needs them.

use super::cut::Cutter;
use super::part::{Part, leaf};
use super::{MoveKind, MoveScope, MoveTargets, StepAction};
use crate::JoinKind;
use crate::placement::{self, PlacementRule, PlanPlacement};

impl Cutter<'_, '_> {
    /// Both sides of a join, moved so that rows that match lie together.
    pub(super) fn brought_together(
        &mut self,
        kind: JoinKind,
        (ours, left_key): (Part, &[usize]),
        (theirs, right_key): (Part, &[usize]),
    ) -> (Part, Part) {
        let copies_right = !matches!(kind, JoinKind::Right | JoinKind::Full);
        let copies_left = matches!(kind, JoinKind::Inner | JoinKind::Right);
        let hashes = !left_key.is_empty() && kind != JoinKind::LeftAntiNullAware;
        let right_copies = if copies_right { theirs.rows * self.how.shards } else { f64::INFINITY };
        let left_copies = if copies_left { ours.rows * self.how.shards } else { f64::INFINITY };
        // (What lies by a part of its keys stays, and the other side follows it.)
        let follow = |place: &PlanPlacement, from: &[usize], to: &[usize]| -> Option<Vec<usize>> {
            let PlanPlacement::Together { rule: PlacementRule::Hash(None), columns } = place else { return None };
            columns.iter().map(|column| from.iter().position(|key| key == column).map(|at| to[at])).collect()
        };
        let after_left = follow(&ours.place, left_key, right_key);
        let after_right = follow(&theirs.place, right_key, left_key);
        let hashed = match (hashes, &after_left, &after_right) {
            (false, ..) => f64::INFINITY,
            (_, Some(_), _) => theirs.rows,
            (_, _, Some(_)) => ours.rows,
            _ => ours.rows + theirs.rows,
        };
        if hashed <= right_copies && hashed <= left_copies && hashed.is_finite() {
            return match (after_left, after_right) {
                (Some(columns), _) => {
                    let theirs = self.by_columns(&theirs, &columns);
                    (ours, theirs)
                }
                (_, Some(columns)) => (self.by_columns(&ours, &columns), theirs),
                _ => (self.by_columns(&ours, left_key), self.by_columns(&theirs, right_key)),
            };
        }
        if right_copies.is_finite() && right_copies <= left_copies {
            let theirs = self.copied(&theirs);
            return (ours, theirs);
        }
        if left_copies.is_finite() {
            return (self.copied(&ours), theirs);
        }
        (self.in_one(&ours), self.in_one(&theirs))
    }

    /// The part, with rows of equal values in these columns together.
    pub(super) fn within(&mut self, part: Part, columns: &[usize]) -> Part {
        match placement::is_within(&part.place, columns) || part.place == PlanPlacement::Replicated {
            true => part,
            false if columns.is_empty() => self.in_one(&part),
            false => self.by_columns(&part, columns),
        }
    }

    pub(super) fn by_columns(&mut self, part: &Part, columns: &[usize]) -> Part {
        let place = PlanPlacement::Together { rule: PlacementRule::Hash(None), columns: columns.to_vec() };
        if part.place == place || columns.is_empty() {
            return part.clone();
        }
        let names = part.block.names.clone();
        let step = self.step(part);
        let columns = columns.iter().map(|at| names[*at].clone()).collect();
        let step = self.push("s", StepAction::Rekey { input: step, columns });
        self.moved(step, MoveKind::Redistribute, MoveTargets::All, names, place, part.rows)
    }

    pub(super) fn in_one(&mut self, part: &Part) -> Part {
        if part.place == PlanPlacement::One {
            return part.clone();
        }
        let (names, step) = (part.block.names.clone(), self.step(part));
        self.moved(step, MoveKind::Reshard, MoveTargets::First(1), names, PlanPlacement::One, part.rows)
    }

    pub(super) fn copied(&mut self, part: &Part) -> Part {
        let (names, step) = (part.block.names.clone(), self.step(part));
        self.moved(step, MoveKind::Broadcast, MoveTargets::All, names, PlanPlacement::Replicated, part.rows)
    }

    fn moved(
        &mut self,
        input: usize,
        kind: MoveKind,
        to: MoveTargets,
        names: Vec<String>,
        place: PlanPlacement,
        rows: f64,
    ) -> Part {
        let action = StepAction::Move { input, kind, scope: MoveScope::Flat, to };
        let step = self.steps.iter().position(|step| step.action == action);
        let step = step.unwrap_or_else(|| self.push("s", action));
        leaf(step, names, place, rows)
    }
}
