//! What is known of a stream of events before it runs: properties choose operators (Trill 4.3).
//!
//! Law: a property that is derived holds for every input that has the declared ones. A wrong property gives wrong answers, so each rule has a test that a
//! wrong rule fails. What is not known is left out: that only costs time.

use crate::ir::{Node, Plan};
use crate::temporal::{FOREVER, Verb};

/// Properties of a stream of events. The default knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Properties {
    /// Every event lasts so many ticks, known as it starts: there are no end edges. [`FOREVER`] for events that never end.
    pub duration: Option<i64>,
    /// All starts lie on a grid of so many ticks.
    pub hop: Option<i64>,
}

impl Properties {
    /// What is known of a plan's events.
    pub fn of(plan: &Plan) -> Properties {
        match &plan.node {
            // Rows are left out or computed; lifetimes stay.
            Node::Stage { input, .. } | Node::Unnest { input, .. } => Properties::of(input),
            Node::Union { inputs } => {
                inputs.iter().map(|input| Properties::of(input)).reduce(Properties::both).unwrap_or_default()
            }
            Node::Temporal { verb, inputs } => {
                let input = inputs.first().map(|input| Properties::of(input)).unwrap_or_default();
                input.after(verb)
            }
            _ => Properties::default(),
        }
    }

    /// What holds after a verb if these hold before.
    fn after(self, verb: &Verb) -> Properties {
        match verb {
            Verb::Bounds { .. } => self,
            // (A grid that is moved is a grid.)
            Verb::Shift { .. } => self,
            Verb::Duration { ticks } => Properties { duration: Some(*ticks), ..self },
            Verb::Hopping(windows) => Properties {
                duration: (windows.size % windows.period == 0).then_some(windows.size),
                hop: Some(windows.period),
            },
            Verb::Quantize { progress, .. } => Properties { duration: None, hop: Some(*progress) },
            Verb::Extend { ticks } => {
                let longer = |duration: i64| match duration {
                    FOREVER => Some(FOREVER),
                    duration => duration.checked_add(*ticks).filter(|duration| *duration > 0 && *duration < FOREVER),
                };
                Properties { duration: self.duration.and_then(longer), ..self }
            }
            // Ends move, starts stay; an event that lasts less than the limit may be an open one.
            Verb::ClipDuration { limit } => {
                Properties { duration: self.duration.map(|duration| duration.min(*limit)), ..self }
            }
            _ => Properties::default(),
        }
    }

    /// What holds when both streams flow together.
    fn both(self, other: Properties) -> Properties {
        Properties {
            duration: self.duration.filter(|_| self.duration == other.duration),
            // (Two grids of one period may be offset.)
            hop: None,
        }
    }
}

/// As `EXPLAIN` shows them.
impl std::fmt::Display for Properties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let duration = self.duration.map(|ticks| match ticks {
            FOREVER => "append-only".to_string(),
            ticks => format!("constant duration {ticks}"),
        });
        let hop = self.hop.map(|hop| format!("constant hop {hop}"));
        write!(f, "{}", duration.into_iter().chain(hop).collect::<Vec<_>>().join(", "))
    }
}
