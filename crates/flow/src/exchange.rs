//! CountedRoute between workers: each row goes to the worker that owns the hash of its key, or all
//! to one.
//!
//! Law: equal keys meet on one worker, whatever worker they start on. Cost: one pass to hash (kept
//! with the batch for the operator behind), one to scatter; with a single worker nothing is done at
//! all. Row errors stay out of the way on worker 0. Source: Quill's re-shard; timely's exchange is
//! the carrier.

use std::sync::Arc;

use anabranch_batch::{Batch, partition};
use timely::communication::Push;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::progress::Stamp;

use crate::account::MoveCounter;
use crate::parcel::Parcel;
use crate::sizes::size_bytes;

/// Where rows go, and who counts them.
#[derive(Clone, Debug)]
pub struct CountedRoute {
    /// Where.
    pub route: Route,
    /// If they are rows of an operator.
    pub counter: Option<Arc<MoveCounter>>,
}

/// Where rows go.
#[derive(Clone, Debug)]
pub enum Route {
    /// To the worker that owns the hash of these columns. No columns: all rows go to one worker.
    ByKey(Vec<usize>),
    /// To the worker of this index.
    ToWorker(usize),
}

/// Exchange along the route of a movement.
pub fn along(movement: CountedRoute) -> DistributorPact<Box<dyn FnOnce(usize) -> Scatter>> {
    DistributorPact(Box::new(move |_peers| Scatter { movement }))
}

/// Exchange by the hash of the columns. No columns: everything goes to one worker.
pub fn by_key(columns: Vec<usize>) -> DistributorPact<Box<dyn FnOnce(usize) -> Scatter>> {
    along(CountedRoute { route: Route::ByKey(columns), counter: None })
}

/// Scatters batches along a route.
pub struct Scatter {
    movement: CountedRoute,
}

impl CountedRoute {
    /// Rows go to a worker.
    fn count(&self, rows: &Batch, worker: usize) {
        if let Some(counter) = &self.counter {
            counter.send(worker, rows.len(), || size_bytes(std::slice::from_ref(rows)));
        }
    }
}

impl Distributor<Parcel> for Scatter {
    fn partition<T: Clone, P: Push<Message<T, Parcel>>>(
        &mut self,
        parcel: &mut Parcel,
        stamp: &Stamp<T>,
        pushers: &mut [P],
    ) {
        match std::mem::take(parcel) {
            Parcel::Empty => {}
            Parcel::Rows(batch) => {
                assert!(batch.present().is_none(), "parcels hold compact batches");
                let columns = match &self.movement.route {
                    Route::ByKey(columns) => columns,
                    Route::ToWorker(index) => {
                        self.movement.count(&batch, *index);
                        return Message::push_at(&mut Parcel::Rows(batch), stamp.clone(), &mut pushers[*index]);
                    }
                };
                let shards = partition(&batch.with_key(columns), pushers.len());
                for (worker, (shard, pusher)) in shards.into_iter().zip(pushers).enumerate() {
                    if !shard.is_empty() {
                        self.movement.count(&shard, worker);
                        Message::push_at(&mut Parcel::Rows(shard), stamp.clone(), pusher);
                    }
                }
            }
            Parcel::Errors(batch) => {
                Message::push_at(&mut Parcel::Errors(batch), stamp.clone(), &mut pushers[0]);
            }
        }
    }

    /// Nothing is held back between calls.
    fn flush<T: Clone, P: Push<Message<T, Parcel>>>(&mut self, _stamp: &Stamp<T>, _pushers: &mut [P]) {}
}
