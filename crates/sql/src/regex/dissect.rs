//! Where the groups of a pattern lie in its match.
//!
//! The order in which divisions of a match are tried is PostgreSQL's (`regexec.c` says: longest or
//! shortest first, from the left), so the first that works is the one PostgreSQL reports.

use super::program::{Fragment, RegexProgram, Wanted};
use super::syntax::{Node, Preference, Tree, variants};
use super::text::SearchedText;

/// Start and end of each group, by number; `None` where a group took no part.
pub(super) type Groups = Vec<Option<(usize, usize)>>;

pub(super) struct Dissection<'a> {
    pub(super) program: &'a RegexProgram,
    pub(super) text: &'a SearchedText<'a>,
    pub(super) ignores_case: bool,
    pub(super) groups: Groups,
}

impl Dissection<'_> {
    /// Whether the part matches exactly these characters; its groups are told then. The automaton
    /// of the part is known to match.
    pub(super) fn matches(&mut self, tree: &Tree, start: usize, end: usize) -> bool {
        if self.text.is_spent() {
            return false;
        }
        if !tree.is_dissected {
            return true;
        }
        match &tree.node {
            Node::Empty | Node::One(_) | Node::Guard(_) => true,
            Node::Group { index, body } => {
                let matched = self.matches(body, start, end);
                if matched {
                    self.groups[*index] = Some((start, end));
                }
                matched
            }
            Node::Reference { index, .. } => self.is_repeated(*index, start, end),
            Node::Alternate(parts) => parts.iter().any(|part| {
                let fits = self.is_exact(self.program.fragment(part), start, end);
                fits && self.attempt(|this| this.matches(part, start, end))
            }),
            Node::Concat(parts) => {
                let exit = self.program.fragment(tree).exit;
                self.sequence(parts, exit, start, end)
            }
            Node::Repeat { body, min, max } => {
                self.rounds(body, *min as usize, max.map(|max| max as usize), start, end)
            }
        }
    }

    /// Tries something; groups that it told are forgotten if it fails.
    fn attempt(&mut self, trial: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.groups.clone();
        let succeeded = trial(self);
        if !succeeded {
            self.groups = before;
        }
        succeeded
    }

    fn is_exact(&self, fragment: Fragment, start: usize, end: usize) -> bool {
        self.program.ends(fragment, self.text, start, end, Wanted::Last) == [end]
    }

    /// The ends of a part in the order in which they are preferred.
    fn ends(&self, tree: &Tree, start: usize, stop: usize) -> Vec<usize> {
        let mut ends = self.program.ends(self.program.fragment(tree), self.text, start, stop, Wanted::All);
        if tree.prefers != Some(Preference::Shortest) {
            ends.reverse();
        }
        ends
    }

    fn sequence(&mut self, parts: &[Tree], exit: usize, start: usize, end: usize) -> bool {
        let Some((first, rest)) = parts.split_first() else { return start == end };
        if rest.is_empty() {
            return self.matches(first, start, end);
        }
        // (All parts together are known to match, and this one has one length.)
        if matches!(first.node, Node::One(_)) {
            return self.sequence(rest, exit, start + 1, end);
        }
        let behind = self.program.rest(&rest[0], exit);
        self.ends(first, start, end).into_iter().any(|middle| {
            self.is_exact(behind, middle, end)
                && self.attempt(|this| this.matches(first, start, middle) && this.sequence(rest, exit, middle, end))
        })
    }

    /// The rounds of a repetition. (No recursion: there may be one for each character.)
    fn rounds(&mut self, body: &Tree, min: usize, max: Option<usize>, start: usize, end: usize) -> bool {
        if let Node::Reference { index, .. } = &body.node {
            return self.is_repeated_often(*index, min, max, start, end);
        }
        if min == 0 && start == end && body.prefers == Some(Preference::Shortest) {
            return true;
        }
        let least = min.max(1);
        let most = max.unwrap_or(usize::MAX).min((end - start).max(least));
        let before = self.groups.clone();
        // For each round: the ends still to be tried, the next one last.
        let ends = |this: &Self, from: usize| {
            let mut ends = this.ends(body, from, end);
            ends.reverse();
            ends
        };
        let mut open = if most > 0 { vec![ends(self, start)] } else { vec![] };
        let mut taken: Vec<usize> = vec![];
        while let Some(left) = open.last_mut() {
            if self.text.is_spent() {
                return false;
            }
            let Some(at) = left.pop() else {
                open.pop();
                taken.pop();
                continue;
            };
            let round = open.len();
            let from = taken.last().copied().unwrap_or(start);
            if at == end && round >= least {
                taken.push(at);
                if self.verify(body, &taken, start) {
                    return true;
                }
                self.groups.clone_from(&before);
                taken.pop();
            } else if at < end && round < most && (at > from || round < least && least - round >= end - at) {
                taken.push(at);
                let next = ends(self, at);
                open.push(next);
            }
        }
        min == 0 && start == end
    }

    fn verify(&mut self, body: &Tree, taken: &[usize], start: usize) -> bool {
        let from = std::iter::once(start).chain(taken.iter().copied());
        let inside = inside(body);
        for (from, to) in from.zip(taken.iter().copied()) {
            inside.iter().for_each(|index| self.groups[*index] = None);
            if !self.matches(body, from, to) {
                return false;
            }
        }
        true
    }

    /// Whether the characters are those of a group, some times. A group without a text fails even
    /// if wanted no times.
    fn is_repeated_often(&self, index: usize, min: usize, max: Option<usize>, start: usize, end: usize) -> bool {
        let Some((from, to)) = self.groups[index] else { return false };
        let length = to - from;
        if length == 0 || start == end {
            return start == end && (length == 0 || min == 0);
        }
        let n = (end - start) / length;
        n * length == end - start
            && (min..=max.unwrap_or(n)).contains(&n)
            && (0..n).all(|n| self.is_repeated(index, start + n * length, start + (n + 1) * length))
    }

    /// Whether the characters are those of a group.
    fn is_repeated(&self, index: usize, start: usize, end: usize) -> bool {
        let Some((from, to)) = self.groups[index] else { return false };
        let alike = |a: char, b: char| {
            a == b
                || (self.ignores_case
                    && variants(a).into_iter().flatten().any(|a| a == b || variants(b).contains(&Some(a))))
        };
        to - from == end - start
            && (from..to)
                .zip(start..end)
                .all(|(a, b)| self.text.get(a).zip(self.text.get(b)).is_some_and(|(a, b)| alike(a, b)))
    }
}

/// The groups of a part.
fn inside(tree: &Tree) -> Vec<usize> {
    match &tree.node {
        Node::Group { index, body } => std::iter::once(*index).chain(inside(body)).collect(),
        Node::Concat(parts) | Node::Alternate(parts) => parts.iter().flat_map(inside).collect(),
        Node::Repeat { body, .. } => inside(body),
        _ => vec![],
    }
}
