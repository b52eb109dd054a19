//! What is known of a stream of events before it runs: properties choose operators (Trill 4.3).
//!
//! Law: a property that is derived holds for every input that has the declared ones. A wrong
//! property gives wrong answers, so each rule has a test that a wrong rule fails. What is not known
//! is left out: that only costs time.
//!
//! | property | what holds | what it saves |
//! |---|---|---|
//! | constant duration `d` | every event lasts `d` ticks, known as it starts | expiry is a queue of sums, not a heap or an ordered state |
//! | append-only | that, for ever: nothing is taken out | least and greatest are one value a group, not all values in order; a join keeps no pairs |
//! | constant hop `h` | starts lie on a grid of `h` ticks | with a duration of no more, nothing overlaps: a window is forgotten when it is out |
//! | unique key | at each time, no two rows in force have equal values of some columns | `distinct` is nothing to do |
//! | sorted | rows come in order of time | reading history moves time with the rows, so results come while it is read |
//! | sorted by `c` | an event that begins later has no lesser `c` (and none is NULL) | of append-only streams a merge join: what the other side has passed is forgotten |
//! | interval-free | no event's end is known as it starts | shown only |
//! | bounded | the input ends | results over all of it, refined as it is read |

use datafusion_expr::Expr;

use crate::ir::{Node, Plan};
use crate::temporal::{FOREVER, Verb};
use anabranch_spec::asof::Strategy;

/// Properties of a stream of events. The default knows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Properties {
    /// Every event lasts so many ticks, known as it starts: there are no end edges. [`FOREVER`] for
    /// events that never end.
    pub duration: Option<i64>,
    /// All starts lie on a grid of so many ticks.
    pub hop: Option<i64>,
    /// Ends come as end edges only, if at all.
    pub interval_free: bool,
    /// Rows come in order of their times, end edges too.
    pub sorted: bool,
    /// The stream ends.
    pub bounded: bool,
    /// Columns in which no two rows in force at one time are equal; no columns: there is never more
    /// than one row.
    pub unique: Option<Vec<usize>>,
    /// Columns in which an event that begins later has no lesser value than one that begins
    /// earlier, and none is NULL; whole numbers with a sign, dates or times.
    pub sorted_by: Vec<usize>,
}

impl Properties {
    /// What is known of a plan's events.
    pub fn of(plan: &Plan) -> Properties {
        match &plan.node {
            // Rows are left out or computed; lifetimes stay.
            Node::Stage { input, project, .. } => {
                let known = Properties::of(input);
                let unique = known.unique.as_ref().and_then(|key| passed(key, input, project));
                let sorted_by = known.sorted_by.iter().filter_map(|column| passed(&[*column], input, project));
                Properties { unique, sorted_by: sorted_by.flatten().collect(), ..known }
            }
            Node::Unnest { input, .. } => Properties { unique: None, sorted_by: vec![], ..Properties::of(input) },
            // (The start of an event rises with it.)
            Node::Temporal { verb: Verb::Bounds { .. }, inputs } => {
                let mut known = inputs.first().map(|input| Properties::of(input)).unwrap_or_default();
                known.sorted_by.extend(plan.schema.fields().len().checked_sub(2));
                known
            }
            Node::Union { inputs } => {
                inputs.iter().map(|input| Properties::of(input)).reduce(Properties::both).unwrap_or_default()
            }
            Node::Temporal { verb, inputs } => match inputs.as_slice() {
                [left, right] => Properties::of(left).matched(&Properties::of(right), verb, left.schema.fields().len()),
                _ => inputs.first().map(|input| Properties::of(input)).unwrap_or_default().after(verb),
            },
            _ => Properties::default(),
        }
    }

    /// What holds after a verb of one input (or none) if these hold before.
    fn after(self, verb: &Verb) -> Properties {
        let bounded = self.bounded;
        match verb {
            Verb::Events { declared, .. } => declared.completed(),
            // (A grid that is moved is a grid.)
            Verb::Shift { .. } => self,
            // (Events that last longer may meet others of their key.)
            Verb::Duration { ticks } => {
                let unique = self.unique.filter(|_| self.duration.is_some_and(|duration| *ticks <= duration));
                let interval_free = *ticks == FOREVER;
                Properties { duration: Some(*ticks), interval_free, unique, ..self }
            }
            Verb::Hopping(windows) => Properties {
                duration: windows.reported_ticks(),
                hop: Some(windows.period),
                sorted: self.sorted && self.duration.is_some(),
                bounded,
                sorted_by: self.sorted_by,
                ..Properties::default()
            },
            // The end of a short event moves up to the end of the windows that hold its start.
            Verb::Quantize { windows, progress } => {
                let is_short = |duration: i64| duration <= windows.size - windows.period + 1;
                let is_whole = *progress == windows.period && windows.size % windows.period == 0;
                let duration = self.duration.filter(|duration| is_whole && is_short(*duration)).map(|_| windows.size);
                let hop = Some(*progress);
                let sorted = self.sorted && self.duration.is_some();
                let (interval_free, sorted_by) = (self.interval_free, self.sorted_by);
                Properties { duration, hop, interval_free, sorted, bounded, unique: None, sorted_by }
            }
            Verb::Aggregate { keys, .. } => {
                // (Pieces begin where events begin and where they end, and may be put out as start
                // and end edges.)
                let is_on_grid = |hop: i64| self.duration.is_some_and(|ticks| ticks == FOREVER || ticks % hop == 0);
                let hop = self.hop.filter(|hop| is_on_grid(*hop));
                let unique = Some((0..keys.len()).collect());
                Properties { hop, unique, bounded, ..Properties::default() }
            }
            Verb::PointAtEnd => {
                let ends = self.duration.filter(|duration| *duration != FOREVER);
                let sorted = self.sorted && ends.is_some();
                let hop = self.hop.filter(|_| ends.is_some());
                Properties { duration: Some(1), hop, sorted, bounded, ..Properties::default() }
            }
            Verb::Extend { ticks } => {
                let longer = |duration: i64| match duration {
                    FOREVER => Some(FOREVER),
                    duration => duration.checked_add(*ticks).filter(|duration| *duration > 0 && *duration < FOREVER),
                };
                let sorted = self.sorted && self.duration.is_some() && *ticks >= 0;
                let unique = self.unique.filter(|_| *ticks <= 0);
                Properties { duration: self.duration.and_then(longer), sorted, unique, ..self }
            }
            // Ends move, starts stay; an event that lasts less than the limit may be an open one.
            Verb::ClipDuration { limit } => {
                let duration = self.duration.map(|duration| duration.min(*limit));
                let sorted = self.sorted && duration.is_some();
                Properties { duration, sorted, interval_free: false, ..self }
            }
            Verb::Chop { .. } | Verb::Stitch => Properties { unique: self.unique, bounded, ..Properties::default() },
            // (Sessions make events longer.)
            Verb::Session { .. } => {
                Properties { hop: self.hop, sorted_by: self.sorted_by, bounded, ..Properties::default() }
            }
            Verb::OfChanges => Properties::default(),
            Verb::Lifetime { .. } | Verb::Detect(_) => Properties { bounded, ..Properties::default() },
            _ => Properties::default(),
        }
    }

    /// What holds after a verb of two inputs, of which the first has `n_left` columns.
    fn matched(self, right: &Properties, verb: &Verb, n_left: usize) -> Properties {
        let bounded = self.bounded && right.bounded;
        match verb {
            Verb::Clip { .. } => {
                let Properties { hop, unique, sorted_by, .. } = self;
                Properties { hop, unique, sorted_by, bounded, ..Properties::default() }
            }
            Verb::WhereNotExists { .. } => Properties { unique: self.unique, bounded, ..Properties::default() },
            Verb::Join { left_key, right_key } => {
                let forever = self.duration == Some(FOREVER) && right.duration == Some(FOREVER);
                let unique = unique_pairs(&self, left_key, right, right_key, n_left);
                let interval_free = self.interval_free || right.interval_free;
                let duration = forever.then_some(FOREVER);
                Properties { duration, interval_free, unique, bounded, ..Properties::default() }
            }
            Verb::Asof { right_key, strategy, outer, .. } => {
                // (Only backward are starts those of the left; of several that begin with one
                // match, each is paired.)
                let has_one =
                    right.unique.as_ref().is_some_and(|key| key.iter().all(|column| right_key.contains(column)));
                let is_backward = *strategy == Strategy::Backward;
                let hop = match strategy {
                    Strategy::Backward => self.hop,
                    Strategy::Forward if !outer => right.hop,
                    _ => None,
                };
                let unique = self.unique.filter(|_| is_backward && has_one);
                let sorted_by = if is_backward { self.sorted_by } else { vec![] };
                Properties { duration: Some(1), hop, unique, sorted_by, bounded, ..Properties::default() }
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
            interval_free: self.interval_free && other.interval_free,
            sorted: false,
            bounded: self.bounded && other.bounded,
            unique: None,
            sorted_by: vec![],
        }
    }

    /// With what follows from the others.
    fn completed(&self) -> Properties {
        Properties { interval_free: self.interval_free || self.duration == Some(FOREVER), ..self.clone() }
    }
}

/// The places of key columns among computed ones, if all are passed on.
fn passed(key: &[usize], input: &Plan, project: &[Expr]) -> Option<Vec<usize>> {
    let place = |&column: &usize| {
        let name = input.schema.field(column).name();
        project.iter().position(|expr| matches!(expr, Expr::Column(passed) if passed.name == *name))
    };
    key.iter().map(place).collect()
}

/// A key of the pairs of a join: one side's if each of its rows has at most one partner, else both
/// sides'.
fn unique_pairs(
    left: &Properties,
    left_key: &[usize],
    right: &Properties,
    right_key: &[usize],
    n_left: usize,
) -> Option<Vec<usize>> {
    let moved = |key: &[usize]| key.iter().map(|column| column + n_left).collect::<Vec<_>>();
    let is_in = |key: &[usize], columns: &[usize]| key.iter().all(|column| columns.contains(column));
    let (of_left, of_right) = (left.unique.as_ref()?, right.unique.as_ref()?);
    if is_in(of_right, right_key) {
        return Some(of_left.clone());
    }
    if is_in(of_left, left_key) {
        return Some(moved(of_right));
    }
    Some(of_left.iter().copied().chain(moved(of_right)).collect())
}

impl Properties {
    /// As `EXPLAIN` shows them, for a stream of these columns; empty when nothing is known.
    pub fn remark(&self, plan: &Plan) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.duration.map(|ticks| match ticks {
            FOREVER => "append-only".to_string(),
            ticks => format!("constant duration {ticks}"),
        }));
        parts.extend(self.hop.map(|hop| format!("constant hop {hop}")));
        let names = |columns: &[usize]| {
            let names: Vec<&str> = columns.iter().map(|&column| plan.schema.field(column).name().as_str()).collect();
            names.join(" ")
        };
        parts.extend(self.unique.as_ref().map(|key| match key.as_slice() {
            [] => "at most one row".to_string(),
            key => format!("unique ({})", names(key)),
        }));
        if !self.sorted_by.is_empty() {
            parts.push(format!("sorted by ({})", names(&self.sorted_by)));
        }
        let is_interval_free = self.interval_free && self.duration != Some(FOREVER);
        let known = [(is_interval_free, "interval-free"), (self.sorted, "sorted"), (self.bounded, "bounded")];
        parts.extend(known.iter().filter(|(holds, _)| *holds).map(|(_, name)| (*name).to_string()));
        parts.join(", ")
    }
}
