//! Movement between workers: each row goes to the worker that owns the hash of its key.
//!
//! Law: equal keys meet on one worker, whatever worker they start on. Cost: one pass to hash (kept with the batch for
//! the operator behind), one to scatter; with a single worker nothing is done at all. Row errors stay out of the way on
//! worker 0. Source: Quill's re-shard; timely's exchange is the carrier.

use anabranch_batch::partition;
use timely::communication::Push;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::progress::Stamp;

use crate::parcel::Parcel;

/// Exchange by the hash of the columns. No columns: everything goes to one worker.
pub fn by_key(columns: Vec<usize>) -> DistributorPact<Box<dyn FnOnce(usize) -> ByKey>> {
    DistributorPact(Box::new(move |_peers| ByKey { columns }))
}

/// Scatters batches by key hash.
pub struct ByKey {
    columns: Vec<usize>,
}

impl Distributor<Parcel> for ByKey {
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
                let shards = partition(&batch.with_key(&self.columns), pushers.len());
                for (shard, pusher) in shards.into_iter().zip(pushers) {
                    if !shard.is_empty() {
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
