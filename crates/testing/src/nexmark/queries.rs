//! The queries q0 to q22, in our dialect and in DuckDB's.
//!
//! Texts follow the SQL that Flink publishes. Where that reads the clock (q12), the time of the
//! event stands instead. Ties that the published text leaves open are broken by further columns, so
//! that an answer is a function of the rows. DuckDB has no window table functions, so its texts
//! make windows by `time_bucket`, and sessions by gaps between rows.

use super::Stream;

/// A query.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// From 0 to 22.
    pub number: usize,
    /// What is asked.
    pub about: &'static str,
    /// The relations that are read.
    pub streams: &'static [Stream],
    /// Whether the query keeps no state.
    pub is_stateless: bool,
    /// In our dialect.
    pub ours: &'static str,
    /// In DuckDB's dialect, where that differs.
    duckdb: Option<&'static str>,
}

impl Query {
    /// In DuckDB's dialect.
    pub fn duckdb(&self) -> &'static str {
        self.duckdb.unwrap_or(self.ours)
    }
}

const fn stateless(number: usize, about: &'static str, ours: &'static str, duckdb: Option<&'static str>) -> Query {
    Query { number, about, streams: &[Stream::Bid], is_stateless: true, ours, duckdb }
}

const fn over(
    streams: &'static [Stream],
    number: usize,
    about: &'static str,
    ours: &'static str,
    duckdb: Option<&'static str>,
) -> Query {
    Query { number, about, streams, is_stateless: false, ours, duckdb }
}

const BID: &[Stream] = &[Stream::Bid];
const SALES: &[Stream] = &[Stream::Auction, Stream::Bid];
const SELLERS: &[Stream] = &[Stream::Person, Stream::Auction];

/// All queries, in order.
pub const QUERIES: [Query; 23] = [
    stateless(0, "all bids", "select auction, bidder, price, date_time, extra from bid", None),
    stateless(
        1,
        "prices in another currency",
        "select auction, bidder, 0.908 * price as price, date_time, extra from bid",
        None,
    ),
    stateless(2, "bids on some auctions", "select auction, price from bid where auction % 123 = 0", None),
    over(
        SELLERS,
        3,
        "sellers in some states",
        "select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id
         where a.category = 10 and p.state in ('OR', 'ID', 'CA')",
        None,
    ),
    over(
        SALES,
        4,
        "mean price of a category",
        "select category, avg(final) as mean from (
             select max(b.price) as final, a.category from auction a join bid b on a.id = b.auction
             where b.date_time between a.date_time and a.expires group by a.id, a.category) as q
         group by category",
        None,
    ),
    over(
        BID,
        5,
        "auctions with most bids of the last ten seconds",
        "select a.auction, a.num from (
             select auction, count(*) as num, window_start, window_end
             from hop(bid, date_time, interval '2 seconds', interval '10 seconds')
             group by auction, window_start, window_end) as a
         join (select max(num) as most, window_start, window_end from (
                 select auction, count(*) as num, window_start, window_end
                 from hop(bid, date_time, interval '2 seconds', interval '10 seconds')
                 group by auction, window_start, window_end) as c
             group by window_start, window_end) as m
         on a.window_start = m.window_start and a.window_end = m.window_end and a.num >= m.most",
        Some(
            "with counted as (
                 select auction, count(*) as num, window_start from (
                     select auction, unnest([time_bucket(interval '2 seconds', date_time) - i * interval '2 seconds'
                                             for i in range(5)]) as window_start from bid)
                 group by auction, window_start)
             select c.auction, c.num from counted c
             join (select max(num) as most, window_start from counted group by window_start) as m
             on c.window_start = m.window_start and c.num >= m.most",
        ),
    ),
    over(
        SALES,
        6,
        "mean price of a seller's last ten auctions",
        "select seller, final, avg(final) over (partition by seller order by date_time, id
             rows between 10 preceding and current row) as mean
         from (select a.id, a.seller, b.price as final, b.date_time, row_number() over (
                   partition by a.id order by b.price desc, b.date_time, b.bidder) as place
               from auction a join bid b on a.id = b.auction
               where b.date_time between a.date_time and a.expires) as q
         where place <= 1",
        None,
    ),
    over(
        BID,
        7,
        "highest bid of each ten seconds",
        "select b.auction, b.price, b.bidder, b.date_time from bid b
         join (select max(price) as price, window_end from tumble(bid, date_time, interval '10 seconds')
               group by window_start, window_end) as m
         on b.price = m.price and b.date_time between m.window_end - interval '10 seconds' and m.window_end",
        Some(
            "select b.auction, b.price, b.bidder, b.date_time from bid b
             join (select max(price) as price,
                          time_bucket(interval '10 seconds', date_time) + interval '10 seconds' as window_end
                   from bid group by window_end) as m
             on b.price = m.price and b.date_time between m.window_end - interval '10 seconds' and m.window_end",
        ),
    ),
    over(
        SELLERS,
        8,
        "people who sell within ten seconds of their registration",
        "select p.id, p.name, p.window_start from (
             select id, name, window_start, window_end from tumble(person, date_time, interval '10 seconds')
             group by id, name, window_start, window_end) as p
         join (select seller, window_start, window_end from tumble(auction, date_time, interval '10 seconds')
               group by seller, window_start, window_end) as a
         on p.id = a.seller and p.window_start = a.window_start and p.window_end = a.window_end",
        Some(
            "select p.id, p.name, p.window_start from (
                 select distinct id, name, time_bucket(interval '10 seconds', date_time) as window_start from person) as p
             join (select distinct seller, time_bucket(interval '10 seconds', date_time) as window_start
                   from auction) as a
             on p.id = a.seller and p.window_start = a.window_start",
        ),
    ),
    over(
        SALES,
        9,
        "winning bids",
        "select id, item_name, description, initial_bid, reserve, opened, expires, seller, category,
                auction, bidder, price, date_time
         from (select a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time as opened,
                   a.expires, a.seller, a.category, b.auction, b.bidder, b.price, b.date_time, row_number() over (
                   partition by a.id order by b.price desc, b.date_time, b.bidder) as place
               from auction a join bid b on a.id = b.auction
               where b.date_time between a.date_time and a.expires) as q
         where place <= 1",
        None,
    ),
    stateless(
        10,
        "bids for files of a day and a minute",
        "select auction, bidder, price, date_time, extra, to_char(date_time, 'YYYY-MM-DD') as day,
                to_char(date_time, 'HH24:MI') as minute from bid",
        Some(
            "select auction, bidder, price, date_time, extra, strftime(date_time, '%Y-%m-%d') as day,
                    strftime(date_time, '%H:%M') as minute from bid",
        ),
    ),
    over(
        BID,
        11,
        "bids of a bidder's session",
        "select bidder, count(*) as n, window_start, window_end
         from session(bid partition by bidder, date_time, interval '10 seconds')
         group by bidder, window_start, window_end",
        Some(
            "select bidder, count(*) as n, min(date_time) as window_start,
                    max(date_time) + interval '10 seconds' as window_end
             from (select bidder, date_time, sum(begins) over (partition by bidder order by date_time
                          rows unbounded preceding) as number
                   from (select bidder, date_time, case when date_time - lag(date_time) over (
                             partition by bidder order by date_time) <= interval '10 seconds' then 0 else 1 end as begins
                         from bid))
             group by bidder, number",
        ),
    ),
    over(
        BID,
        12,
        "bids of a bidder in ten seconds",
        "select bidder, count(*) as n, window_start, window_end
         from tumble(bid, date_time, interval '10 seconds') group by bidder, window_start, window_end",
        Some(
            "select bidder, count(*) as n, time_bucket(interval '10 seconds', date_time) as window_start,
                    time_bucket(interval '10 seconds', date_time) + interval '10 seconds' as window_end
             from bid group by bidder, window_start",
        ),
    ),
    over(
        &[Stream::Bid, Stream::Side],
        13,
        "bids with a column of rows that do not change",
        "select b.auction, b.bidder, b.price, b.date_time, s.value from bid b
         join side s on b.auction % 10000 = s.key",
        None,
    ),
    stateless(
        14,
        "bids of some prices, by part of the day",
        "select auction, bidder, 0.908 * price as price,
                case when extract(hour from date_time) between 8 and 18 then 'day'
                     when extract(hour from date_time) <= 6 or extract(hour from date_time) >= 20 then 'night'
                     else 'other' end as part,
                date_time, extra, length(extra) - length(replace(extra, 'c', '')) as c_counts
         from bid where 0.908 * price > 1000000 and 0.908 * price < 50000000",
        None,
    ),
    over(
        BID,
        15,
        "bids of a day",
        "select to_char(date_time, 'YYYY-MM-DD') as day, count(*) as total,
                count(*) filter (where price < 10000) as low,
                count(*) filter (where price >= 10000 and price < 1000000) as middle,
                count(*) filter (where price >= 1000000) as high,
                count(distinct bidder) as bidders,
                count(distinct bidder) filter (where price < 10000) as low_bidders,
                count(distinct bidder) filter (where price >= 10000 and price < 1000000) as middle_bidders,
                count(distinct bidder) filter (where price >= 1000000) as high_bidders,
                count(distinct auction) as auctions,
                count(distinct auction) filter (where price < 10000) as low_auctions,
                count(distinct auction) filter (where price >= 10000 and price < 1000000) as middle_auctions,
                count(distinct auction) filter (where price >= 1000000) as high_auctions
         from bid group by to_char(date_time, 'YYYY-MM-DD')",
        Some(
            "select strftime(date_time, '%Y-%m-%d') as day, count(*) as total,
                    count(*) filter (where price < 10000) as low,
                    count(*) filter (where price >= 10000 and price < 1000000) as middle,
                    count(*) filter (where price >= 1000000) as high,
                    count(distinct bidder) as bidders,
                    count(distinct bidder) filter (where price < 10000) as low_bidders,
                    count(distinct bidder) filter (where price >= 10000 and price < 1000000) as middle_bidders,
                    count(distinct bidder) filter (where price >= 1000000) as high_bidders,
                    count(distinct auction) as auctions,
                    count(distinct auction) filter (where price < 10000) as low_auctions,
                    count(distinct auction) filter (where price >= 10000 and price < 1000000) as middle_auctions,
                    count(distinct auction) filter (where price >= 1000000) as high_auctions
             from bid group by day",
        ),
    ),
    over(
        BID,
        16,
        "bids of a channel and day",
        "select channel, to_char(date_time, 'YYYY-MM-DD') as day, max(to_char(date_time, 'HH24:MI')) as minute,
                count(*) as total,
                count(*) filter (where price < 10000) as low,
                count(*) filter (where price >= 10000 and price < 1000000) as middle,
                count(*) filter (where price >= 1000000) as high,
                count(distinct bidder) as bidders,
                count(distinct bidder) filter (where price < 10000) as low_bidders,
                count(distinct bidder) filter (where price >= 10000 and price < 1000000) as middle_bidders,
                count(distinct bidder) filter (where price >= 1000000) as high_bidders,
                count(distinct auction) as auctions,
                count(distinct auction) filter (where price < 10000) as low_auctions,
                count(distinct auction) filter (where price >= 10000 and price < 1000000) as middle_auctions,
                count(distinct auction) filter (where price >= 1000000) as high_auctions
         from bid group by channel, to_char(date_time, 'YYYY-MM-DD')",
        Some(
            "select channel, strftime(date_time, '%Y-%m-%d') as day, max(strftime(date_time, '%H:%M')) as minute,
                    count(*) as total,
                    count(*) filter (where price < 10000) as low,
                    count(*) filter (where price >= 10000 and price < 1000000) as middle,
                    count(*) filter (where price >= 1000000) as high,
                    count(distinct bidder) as bidders,
                    count(distinct bidder) filter (where price < 10000) as low_bidders,
                    count(distinct bidder) filter (where price >= 10000 and price < 1000000) as middle_bidders,
                    count(distinct bidder) filter (where price >= 1000000) as high_bidders,
                    count(distinct auction) as auctions,
                    count(distinct auction) filter (where price < 10000) as low_auctions,
                    count(distinct auction) filter (where price >= 10000 and price < 1000000) as middle_auctions,
                    count(distinct auction) filter (where price >= 1000000) as high_auctions
             from bid group by channel, day",
        ),
    ),
    over(
        BID,
        17,
        "bids of an auction and day",
        "select auction, to_char(date_time, 'YYYY-MM-DD') as day, count(*) as total,
                count(*) filter (where price < 10000) as low,
                count(*) filter (where price >= 10000 and price < 1000000) as middle,
                count(*) filter (where price >= 1000000) as high,
                min(price) as least, max(price) as most, avg(price) as mean, sum(price) as sum
         from bid group by auction, to_char(date_time, 'YYYY-MM-DD')",
        Some(
            "select auction, strftime(date_time, '%Y-%m-%d') as day, count(*) as total,
                    count(*) filter (where price < 10000) as low,
                    count(*) filter (where price >= 10000 and price < 1000000) as middle,
                    count(*) filter (where price >= 1000000) as high,
                    min(price) as least, max(price) as most, avg(price) as mean, sum(price) as sum
             from bid group by auction, day",
        ),
    ),
    over(
        BID,
        18,
        "a bidder's last bid on an auction",
        "select auction, bidder, price, channel, url, date_time, extra
         from (select *, row_number() over (partition by bidder, auction order by date_time desc) as place from bid) as q
         where place <= 1",
        None,
    ),
    over(
        BID,
        19,
        "the ten highest bids on an auction",
        "select auction, bidder, price, date_time, place
         from (select *, row_number() over (partition by auction order by price desc, date_time, bidder) as place
               from bid) as q
         where place <= 10",
        None,
    ),
    over(
        SALES,
        20,
        "bids with their auctions of a category",
        "select b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, a.item_name, a.description,
                a.initial_bid, a.reserve, a.date_time as opened, a.expires, a.seller, a.category
         from bid b join auction a on b.auction = a.id where a.category = 10",
        None,
    ),
    stateless(
        21,
        "bids with the number of their channel",
        "select auction, bidder, price, channel,
                case when lower(channel) = 'apple' then '0' when lower(channel) = 'google' then '1'
                     when lower(channel) = 'facebook' then '2' when lower(channel) = 'baidu' then '3'
                     else substring(url from 'channel_id=([^&]*)') end as channel_id
         from bid
         where substring(url from 'channel_id=([^&]*)') is not null
            or lower(channel) in ('apple', 'google', 'facebook', 'baidu')",
        Some(
            "select auction, bidder, price, channel,
                    case when lower(channel) = 'apple' then '0' when lower(channel) = 'google' then '1'
                         when lower(channel) = 'facebook' then '2' when lower(channel) = 'baidu' then '3'
                         else regexp_extract(url, 'channel_id=([^&]*)', 1) end as channel_id
             from bid
             where regexp_matches(url, 'channel_id=([^&]*)')
                or lower(channel) in ('apple', 'google', 'facebook', 'baidu')",
        ),
    ),
    stateless(
        22,
        "parts of a bid's address",
        "select auction, bidder, price, channel, split_part(url, '/', 4) as dir1,
                split_part(url, '/', 5) as dir2, split_part(url, '/', 6) as dir3 from bid",
        None,
    ),
];
