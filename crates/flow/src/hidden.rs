//! Times that no reader of a dataflow tells apart, for operators that choose the times they look
//! at.
//!
//! Law: [`Hidden::shown`] gives for a time the first one from it on that some reader may see.
//!
//! Imports move some rows over hidden times (see [`crate::import::Horizon`]), others not: those
//! that came before the horizon was known. So contents at a hidden time may be wrong, even
//! negative. Most operators do not mind: they answer at each time by what has come. A loop does:
//! over such contents it might have no end.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use anabranch_batch::Time;

/// Intervals without their bounds: the times after the first and before the second are hidden.
type Intervals = RefCell<Vec<(Time, Time)>>;

/// Tells those who listen which times are hidden. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct HiddenTimes(Rc<RefCell<Vec<Weak<Intervals>>>>);

/// What one listener was told.
#[derive(Debug)]
pub struct Hidden(Rc<Intervals>);

impl HiddenTimes {
    /// The times after the first and before the second are hidden from now on.
    pub fn hide(&self, after: Time, until: Time) {
        for listener in self.0.borrow().iter().filter_map(Weak::upgrade) {
            listener.borrow_mut().push((after, until));
        }
    }

    /// Starts to listen.
    pub fn listen(&self) -> Hidden {
        let intervals = Rc::default();
        self.0.borrow_mut().push(Rc::downgrade(&intervals));
        Hidden(intervals)
    }
}

impl Hidden {
    /// The time itself, or the end of the hidden times that it is among.
    pub fn shown(&self, time: Time) -> Time {
        let intervals = self.0.borrow();
        let end_of = |time: &Time| {
            let around = |(after, until): &&(Time, Time)| after < time && time < until;
            intervals.iter().find(around).map(|(_, until)| *until)
        };
        // (Each step goes to the end of an interval, so there are as many at most.)
        std::iter::successors(Some(time), end_of).last().expect("the first is the time itself")
    }

    /// No time before `upto` will be asked for.
    pub fn forget_before(&self, upto: Time) {
        self.0.borrow_mut().retain(|(_, until)| *until > upto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_times_are_passed_over_one_interval_after_the_other() {
        let times = HiddenTimes::default();
        let hidden = times.listen();
        [(2, 9), (9, 15), (8, 12)].into_iter().for_each(|(after, until)| times.hide(after, until));
        assert_eq!([2, 3, 9, 10, 15, 16].map(|time| hidden.shown(time)), [2, 15, 15, 15, 15, 16]);
        hidden.forget_before(12);
        assert_eq!([3, 10].map(|time| hidden.shown(time)), [3, 15]);
    }
}
