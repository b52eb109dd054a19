//! What connections know of the engine without asking it: the last commit, the catalog, and what
//! workers publish.
//!
//! Law: the engine's thread notes a commit, or a change of the catalog, before it answers the
//! statement that made it. So a statement that begins after that answer finds the commit here; and
//! an answer as of the noted time, given once the noted receipt is due, shows only what lasts.
//!
//! Cost: one lock, held for some copies of pointers. The catalog is copied once a version, when a
//! connection plans for the first time since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_batch::Time;

use super::sealed::Receipt;
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::cluster::{ArrangementId, Publication};
use crate::sharing::Sharing;

/// Arrangements that are published at a time, at most.
const PUBLICATIONS_MAX: usize = 256;

/// What is noted, for all connections of an engine.
pub(crate) struct Latest {
    state: Mutex<Noted>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Noted {
    moment: EngineMoment,
    facts: Option<Arc<CatalogFacts>>,
    publications: BTreeMap<ArrangementId, Arc<Publication>>,
}

/// Where the engine stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineMoment {
    /// Time of the last commit.
    pub time: Time,
    /// The catalog's version.
    pub version: u64,
    /// When all up to that time, and that version, lasts.
    pub receipt: Receipt,
}

/// The catalog at one version, and what else of the engine plans depend on.
#[derive(Debug)]
pub(crate) struct CatalogFacts {
    pub catalog: Catalog,
    pub sharing: Sharing,
}

impl Latest {
    pub fn new(clock: Arc<dyn Clock>) -> Latest {
        Latest { state: Mutex::default(), clock }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes where the engine stands.
    pub fn note(&self, moment: EngineMoment) {
        self.lock().moment = moment;
    }

    /// Where the engine stands.
    pub fn moment(&self) -> EngineMoment {
        self.lock().moment.clone()
    }

    /// The catalog at a version, if it is known.
    pub fn facts(&self, version: u64) -> Option<Arc<CatalogFacts>> {
        self.lock().facts.clone().filter(|facts| facts.catalog.version() == version)
    }

    /// Makes a catalog known.
    pub fn know(&self, facts: Arc<CatalogFacts>) {
        self.lock().facts = Some(facts);
    }

    /// Forgets the catalog, since what plans depend on beside it has changed.
    pub fn forget_facts(&self) {
        self.lock().facts = None;
    }

    /// What workers publish of an arrangement, if they do.
    pub fn publication(&self, arrangement: ArrangementId) -> Option<Arc<Publication>> {
        self.lock().publications.get(&arrangement).filter(|publication| !publication.has_ended()).cloned()
    }

    /// Whether one more arrangement may be published. Those that have ended are forgotten.
    pub fn has_room(&self, arrangement: ArrangementId) -> bool {
        let publications = &mut self.lock().publications;
        publications.retain(|_, publication| !publication.has_ended());
        publications.len() < PUBLICATIONS_MAX && !publications.contains_key(&arrangement)
    }

    /// An arrangement is published from now on.
    pub fn published(&self, arrangement: ArrangementId, publication: Arc<Publication>) {
        self.lock().publications.insert(arrangement, publication);
    }

    /// Now, by the engine's clock.
    pub fn now_micros(&self) -> i64 {
        self.clock.now_micros()
    }
}
