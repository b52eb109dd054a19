//! Holds: the time from which on each reader reads, and the rows above which ([`Floor`]).
//!
//! Law: every reader has one hold from its creation until it is dropped. Times from the least hold
//! on are told apart.
//!
//! Cost: moving a hold is one store, since each reader moves its hold at every commit. Finding the
//! least hold looks at all of them, once a run and in spare time.

use std::rc::Rc;

use anabranch_batch::Time;

use crate::floor::{Floor, Floors};

/// The holds of all readers.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    holds: Vec<Option<ReaderHold>>,
    /// Places of readers that are gone.
    free: Vec<usize>,
}

#[derive(Debug)]
struct ReaderHold {
    since: Time,
    /// Below which the reader asks for no rows; without, the reader may ask for all.
    floor: Option<Floor>,
    /// Whose it is; for people.
    name: Rc<str>,
}

/// The place of a reader's hold.
#[derive(Debug)]
pub(crate) struct HoldId(usize);

impl Holds {
    pub fn add(&mut self, since: Time, name: &Rc<str>) -> HoldId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.holds.push(None);
            self.holds.len() - 1
        });
        self.holds[place] = Some(ReaderHold { since, floor: None, name: Rc::clone(name) });
        HoldId(place)
    }

    pub fn set_since(&mut self, id: &HoldId, since: Time) {
        self.of(id).since = since;
    }

    pub fn set_floor(&mut self, id: &HoldId, floor: Floor) {
        self.of(id).floor = Some(floor);
    }

    /// The floors of all readers.
    pub fn floors(&self) -> Floors {
        Floors::of_readers(self.all().map(|hold| hold.floor))
    }

    pub fn set_name(&mut self, id: &HoldId, name: &Rc<str>) {
        self.of(id).name = Rc::clone(name);
    }

    pub fn remove(&mut self, id: &HoldId) {
        self.holds[id.0] = None;
        self.free.push(id.0);
    }

    /// The least time that is held.
    pub fn least(&self) -> Option<Time> {
        self.all().map(|hold| hold.since).min()
    }

    /// Who holds the least time, and that time; the first by name where several do.
    pub fn slowest(&self) -> Option<(Time, &Rc<str>)> {
        self.all().map(|hold| (hold.since, &hold.name)).min()
    }

    pub fn len(&self) -> usize {
        self.holds.len() - self.free.len()
    }

    fn all(&self) -> impl Iterator<Item = &ReaderHold> {
        self.holds.iter().flatten()
    }

    fn of(&mut self, id: &HoldId) -> &mut ReaderHold {
        self.holds[id.0].as_mut().expect("a reader has its hold until it is dropped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_hold_is_that_of_readers_that_are_there() {
        let mut holds = Holds::default();
        assert_eq!((holds.len(), holds.least()), (0, None));
        let ids = [(5, "b"), (3, "c"), (3, "a")].map(|(since, name)| holds.add(since, &Rc::from(name)));
        assert_eq!((holds.len(), holds.slowest()), (3, Some((3, &Rc::from("a")))));
        holds.set_since(&ids[2], 9);
        assert_eq!(holds.slowest(), Some((3, &Rc::from("c"))));
        holds.remove(&ids[1]);
        assert_eq!((holds.len(), holds.least()), (2, Some(5)));
        // A new reader takes the place of the one that is gone.
        let late = holds.add(4, &Rc::from("d"));
        holds.set_name(&late, &Rc::from("e"));
        assert_eq!((holds.len(), holds.slowest(), holds.holds.len()), (3, Some((4, &Rc::from("e"))), 3));
        [&ids[0], &ids[2], &late].into_iter().for_each(|id| holds.remove(id));
        assert_eq!((holds.len(), holds.least()), (0, None));
    }
}
