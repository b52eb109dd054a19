//! SELECT campaign, date_trunc('day', seen) AS day, count(*) AS views, avg(cost) AS cost,
//! max(price) AS price FROM views JOIN ads USING(ad) WHERE cost > 2 GROUP BY campaign,
//! date_trunc('day', seen)

use anabranch_engine::Error;
use anabranch_shards::{Layout, Move, Shards};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

/// The program; the rows of each relation are pushed into the source of its name.
pub fn program(layout: Layout) -> Shards {
    let views = Shards::source(
        "views",
        Schema::new(vec![
            Field::new("ad", DataType::Int64, true),
            Field::new("cost", DataType::Decimal128(10, 2), true),
            Field::new("seen", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        ]),
        layout,
    );
    let ads = Shards::source(
        "ads",
        Schema::new(vec![
            Field::new("ad", DataType::Int64, true),
            Field::new("campaign", DataType::Utf8View, true),
            Field::new("price", DataType::Utf8View, true)
                .with_metadata([("anabranch.type".to_owned(), "numeric".to_owned())].into()),
        ]),
        layout,
    );
    let s3 = ads.broadcast(Move::FLAT);
    let s4 = views.sql_with(&s3, r#"
    SELECT other.campaign, date_trunc('day', shard.seen) AS "day", count(*) AS views, sum(shard.cost) AS cost_sum, count(shard.cost) AS cost_count, max(other.price) AS price
    FROM shard
    JOIN other ON shard.ad = other.ad
    WHERE shard.cost > '2.00'::numeric(10,2)
    GROUP BY other.campaign, date_trunc('day', shard.seen)
"#);
    let s6 = s4.rekey(["campaign", "day"]).redistribute(Move::FLAT);
    s6.sql(r#"
    SELECT campaign, "day", sum(views) AS views, (sum(cost_sum)::numeric / nullif(sum(cost_count), 0)) AS cost, max(price) AS price
    FROM shard
    GROUP BY campaign, "day"
"#)
}

fn main() -> Result<(), Error> {
    let program = program(Layout::flat(2));
    program.check()?;
    println!("{}", program.explain()?);
    Ok(())
}
