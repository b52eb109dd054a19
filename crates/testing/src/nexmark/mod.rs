//! Nexmark: an auction house as three streams, their rows in process, and queries over them.
//!
//! Of 50 events one is a person, three are auctions, and 46 are bids. Every event has its time, a
//! tenth of a millisecond after the event before. A row is a function of its event's number, so
//! parts of the streams can be made in any order, and are the same in every run. Shapes follow the
//! generator of Apache Beam: half of the bids go to a hot auction, three quarters come from a hot
//! bidder, prices are spread over six powers of ten.
//!
//! Reading order: this page (relations), `rows` (their contents), [`queries`].
//!
//! Source: Tucker, Tufte, Papadimos, Maier, *NEXMark: A Benchmark for Queries over Data Streams*
//! (2008), as Apache Beam and Flink extended it.

pub mod queries;
mod rows;

use arrow::array::RecordBatch;

/// Events of each kind in a row of 50: person, auctions, bids.
pub const EVENTS_PER_ROUND: u64 = 50;

/// A relation of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// People who sell or bid.
    Person,
    /// What is sold, by whom, and until when.
    Auction,
    /// Offers.
    Bid,
    /// 10,000 keys with a text each, for the join with rows that do not change.
    Side,
}

impl Stream {
    /// The relation's name.
    pub fn name(self) -> &'static str {
        match self {
            Stream::Person => "person",
            Stream::Auction => "auction",
            Stream::Bid => "bid",
            Stream::Side => "side",
        }
    }

    /// Its columns, as a statement says them.
    fn columns(self) -> &'static str {
        match self {
            Stream::Person => {
                "id bigint not null, name text not null, email_address text not null, \
                 credit_card text not null, city text not null, state text not null, \
                 date_time timestamp not null, extra text not null"
            }
            Stream::Auction => {
                "id bigint not null, item_name text not null, description text not null, \
                 initial_bid bigint not null, reserve bigint not null, date_time timestamp not null, \
                 expires timestamp not null, seller bigint not null, category bigint not null, \
                 extra text not null"
            }
            Stream::Bid => {
                "auction bigint not null, bidder bigint not null, price bigint not null, \
                 channel text not null, url text not null, date_time timestamp not null, \
                 extra text not null"
            }
            Stream::Side => "key bigint not null, value text not null",
        }
    }

    /// The statement that makes the relation: a stream with a watermark four seconds behind, which
    /// keeps no rows itself unless `keeps`.
    pub fn create(self, keeps: bool) -> String {
        let (name, columns) = (self.name(), self.columns());
        let options = if keeps { "" } else { " with (retain = 'none')" };
        match self {
            Stream::Side => format!("create table {name} ({columns}, primary key (key))"),
            _ => format!(
                "create table {name} ({columns}, \
                 watermark for date_time as date_time - interval '4 seconds') append only{options}"
            ),
        }
    }

    /// The rows of the events `from..upto`, in order of time. (The side relation has all of its
    /// rows in each.)
    ///
    /// # Panics
    /// Never: generated columns fit their schema.
    pub fn rows(self, from: u64, upto: u64) -> RecordBatch {
        match self {
            Stream::Person => rows::persons(from, upto),
            Stream::Auction => rows::auctions(from, upto),
            Stream::Bid => rows::bids(from, upto),
            Stream::Side => rows::side(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids() {
        let n = |stream: Stream| stream.rows(100, 10_100).num_rows();
        assert_eq!((n(Stream::Person), n(Stream::Auction), n(Stream::Bid)), (200, 600, 9_200));
    }

    #[test]
    fn rows_do_not_depend_on_how_events_are_cut() {
        for stream in [Stream::Person, Stream::Auction, Stream::Bid] {
            let whole = stream.rows(0, 1_000);
            let parts = [stream.rows(0, 333), stream.rows(333, 1_000)];
            let joined = arrow::compute::concat_batches(&whole.schema(), &parts).expect("one schema");
            assert_eq!(whole, joined);
        }
    }
}
