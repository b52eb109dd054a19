//! Temporal map-reduce: a query over each group of rows, wherever they lie.
//!
//! Law: the result is that of one shard. Steps before it, such as filters, run where rows come (the
//! map); rows go to the shard of their group's hash; the query runs over each group there (the
//! reduce). Where [`check`](Shards::check) accepts the query without it, nothing moves: rows that
//! are packed or already lie by a part of the key, and queries that look at each row by itself.
//! Source: Trill (Chandramouli et al., VLDB 2014), 6: GroupApply as two-stage temporal map-reduce,
//! and sorted and packed inputs that avoid its shuffle.

use anabranch_engine::frame::Frame;

use crate::layout::Move;
use crate::program::Shards;

impl Shards {
    /// A query over the rows of each group of equal `columns` by themselves; the columns stay, and
    /// are the key.
    #[must_use]
    pub fn group_apply<'a>(&self, columns: impl IntoIterator<Item = &'a str>, body: impl Fn(Frame) -> Frame) -> Shards {
        let keyed = self.rekey(columns);
        let unmoved = keyed.query(&body);
        match unmoved.check() {
            Ok(()) => unmoved,
            Err(_) => keyed.redistribute(Move::FLAT).query(body),
        }
    }
}
