//! Programs of SQL: those that are cut from queries, and those that a person writes.

use anabranch_engine::{Interrupt, Options, Session};
use anabranch_plan::program::{read, text};
use anabranch_shards::planned::{PlannedShards, read_program};
use anabranch_shards::{Layout, Move, Shards};
use anabranch_testing::row::{Contents, Row};
use anabranch_testing::tpch::{Interleaved, TABLES, Table, queries};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Schema};

use crate::support::{same_as_one_shard, source};

/// The smallest at which keys are unique.
const SCALE: f64 = 0.01;

/// Rows of all types, with NULLs, for queries of every node.
const TABLES_OF_ROWS: &str = "
create table views (ad bigint, who text, cost numeric(10,2), seen timestamp, part double precision, tags text[],
  wide numeric(38,10));
create table coded (ad bigint, code char(4), cost numeric(10,2));
create table ads (ad bigint, campaign text, price numeric, since date);
insert into views select case when i % 17 = 0 then null else i % 7 end, case when i % 19 = 0 then null else 'u' || i % 11 end,
  (i % 13) * 1.25, timestamp '2020-01-01' + i * interval '1 hour', (i % 5) / 4.0, array['t' || i % 3, 'it''s'], 9e26 + i
  from generate_series(1, 300) as g(i);
insert into ads select i, 'c' || i % 3, i * 1.5, date '2020-01-01' + i::int from generate_series(0, 6) as g(i);
insert into coded select i % 7, 'c' || i % 3, (i % 13) * 1.25 from generate_series(1, 200) as g(i);
";

const QUERIES: &[&str] = &[
    "select a.ad, count(v.ad) from ads a left join views v on a.ad = v.ad group by a.ad",
    "select window_start, ad, sum(cost), count(*), max(part) from hop(views, seen, interval '6 hours', interval '1 day') group by 1, 2",
    "select window_start, window_end, avg(cost), count(distinct who) from cumulate(views, seen, interval '6 hours', interval '1 day') group by 1, 2",
    "select ad, code::text, length(code), code || '|' from coded where code = 'c1'",
    "select code::text, count(*) from coded group by code union all select campaign, 0 from ads",
    "select v.ad, a.campaign from coded v join ads a on v.code = a.campaign where v.cost > 14",
    "select 1 / count(*) as r, count(*) filter (where ad = 1) * 1.0 / count(*) from views",
    "select ln(count(*)), (select count(*) from ads) / count(*) from views",
    "select ad, count(*), sum(cost), avg(cost), min(who), max(seen), bool_or(cost > 12) from views where cost > 2 group by ad",
    "select count(*), sum(part), avg(part), stddev(part) from views",
    "select campaign, count(distinct who) as n from views join ads using (ad) group by campaign having count(*) > 3",
    "select * from views order by cost desc, seen limit 3",
    "select who as cost, cost as who from views order by cost desc, who desc limit 4 offset 2",
    "select distinct who, ad from views where seen < '2020-01-05'",
    "select who, cost, rank() over (partition by who order by cost), sum(cost) over (partition by who order by seen rows 2 preceding) from views",
    "select who, row_number() over (order by seen) from views",
    "select who, rank() over (order by cost desc) as r, ad from views order by cost desc fetch first 3 rows with ties",
    "select who, ad, n from (select *, dense_rank() over (partition by who order by ad) as n from views) t where n <= 2",
    "select who, window_start, window_end, count(*) from session(views partition by who, seen, interval '12 hours') group by 1, 2, 3",
    "select ad, seen, window_end from session((select * from views where cost > 3), seen, interval '2 hours')",
    "select * from views match_recognize (partition by who order by seen measures first(d.seen) as since, last(d.cost) as low, count(*) as n, match_number() as number after match skip to last u pattern (s d+ u) define d as d.cost < prev(d.cost), u as u.cost > prev(u.cost))",
    "select m.ad, m.n * 2 as twice, m.mean from (select * from views where cost > 2) as v match_recognize (partition by ad order by seen desc nulls first, who measures count(b.*) as n, avg(b.part) as mean, next(last(a.seen, 1), 2) as seen after match skip past last row pattern (a (b | c){1,3}? d*) within interval '3 days' define b as sum(b.part) < 2 and b.who <> 'u1', c as classifier() = 'c' and first(a.cost) is not null) as m where m.n > 0",
    "select * from ads match_recognize (order by ad measures max(a.price) as price, sum(a.ad) as total after match skip to next row pattern (a b) define b as b.campaign > a.campaign or a.price is null)",
    "select since, window_start, window_end from session(ads partition by campaign, since, interval '3 days')",
    "select v.ad, v.seen, w.seen as before from views v asof join views w on v.ad = w.ad and v.seen > w.seen",
    "select v.ad, v.who, w.seen as next from views v asof left join (select * from views where cost > 9) w on v.who = w.who and v.seen <= w.seen and w.seen <= v.seen + interval '3 hours'",
    "select v.ad, a.ad as latest, a.price from views v asof join ads a on v.ad >= a.ad",
    "select case when ad % 2 = 0 then interval '1 day' else interval '24 hours' end as i, count(*) from views group by 1",
    "select who from views where cost > (select avg(cost) from views) and ad not in (select ad from ads where campaign = 'c1')",
    "select ad from views union select ad from ads",
    "select ad from views intersect select ad from ads where campaign <> 'c0'",
    "select ad, cost::int from views except all select ad, price::int from ads",
    "select campaign from ads a where exists (select 1 from views v where v.ad = a.ad and v.cost > 14)",
    "select a.campaign, v.who from ads a left join views v on v.ad = a.ad and v.cost > 14.5 and v.who <> a.campaign",
    "select a.campaign, v.who from views v full join ads a on v.ad = a.ad and v.part = 1",
    "select ad, unnest(tags) as tag, count(*) from views group by 1, 2",
    "select v.ad, u.tag, b.n from views v, unnest(v.tags) as u(tag) join (select tags[1] as first, count(*) as n from views group by 1) b on b.first = u.tag",
    "select who, cost from (select *, row_number() over (partition by who order by cost desc, seen) as n from views) t where n <= 2",
    "select extract(hour from seen) as hour, -cost as less, cost * 2 + 1, part / 3, ad % 3, cost::text || 'x', who like 'u1%', seen + interval '1 day' from views",
    "select case when cost > 5 then 'dear' when cost is null then 'none' else 'cheap' end as how, count(*) from views group by 1",
    "select v.ad, v.who, (select max(price) from ads a where a.ad = v.ad) as price from views v where v.cost between 3 and 7",
    "select coalesce(ad, -1) as ad, string_agg(who, ',' order by seen), array_agg(cost order by seen) from views group by 1",
    "select percentile_cont(0.5) within group (order by part), median(cost) from views",
    "select since, count(*) filter (where campaign = 'c1') from ads group by since",
    "with t as (select ad, sum(cost) as s from views group by ad) select a.ad, b.ad from t a join t b on a.s > b.s",
    "select v.who, x.a from views v cross join (values (1), (2)) as x(a) where v.ad = x.a",
    "select 1 as one from views where cost < 0",
    "select avg(ad)::int, -avg(ad), avg(ad) * 2, round(avg(ad)), avg(part)::int from views",
    "select who from views where who::bytea = '\\x7531' or who::bytea = '\\x7532'",
    "select avg(wide), sum(ad) from views group by who",
    "select case when ad < 3 then price else ad end, coalesce(price, ad), greatest(price, ad) from ads",
    "select who, ad in (select ad from ads where campaign = 'c1') from views where who is not null",
    "select ad, (select max(concat_ws('-', a.campaign, 'z')) from ads a where a.ad > v.ad) from views v",
    "select branch, count(*) as n, sum(cost) from split(views, ad % 4, 4) group by branch",
    "select branch, who, campaign from split(table views, ad, 7, who is null) as p join ads using (ad) where branch < 3",
    "select ad, who from views where cost > all (select price from ads where campaign <> 'c2')",
    "select ad, who from views v where part < any (select price / 9 from ads a where a.ad <> v.ad)",
    "select who, cost > all (select price from ads where campaign = who) as dear, ad < some (select ad from ads) from views",
    "select who, exists (select 1 from ads a where a.price > v.cost) as is_dear from views v where cost > 1",
    "select who, max(seen - timestamp '2020-01-03') as late, greatest(interval '1 day', seen - timestamp '2020-01-09') from views group by who, seen",
    "select sum(seen - timestamp '2020-01-01') as s, avg(seen - timestamp '2020-01-01') as a from views",
    "select ad, ad # 3 as x, who from views where ad = any(array[1::smallint, 2]) and (ad = 1) = (cost > 2)",
    "select who, rank() over () as r, -cost as cost from views order by 2, -cost, who limit 5",
    "select upper(who), length(who), substring(who, 2), round(cost), abs(ad - 3), date_trunc('day', seen), to_char(seen, 'YYYY-MM') from views",
];

fn contents(rows: &anabranch_engine::Rows) -> Contents {
    let of_batch = |batch: &arrow::array::RecordBatch| {
        (0..batch.num_rows()).map(|row| (Row::of_columns(batch.columns(), row), 1)).collect::<Vec<_>>()
    };
    rows.batches.iter().flat_map(of_batch).collect()
}

/// The query as a program.
fn explained(session: &mut Session, language: &str, query: &str) -> String {
    let rows = session
        .query(&format!("explain (format {language}) {query}"))
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    let lines: Vec<String> = rows
        .batches
        .iter()
        .flat_map(|batch| batch.column(0).as_string_view().iter().map(|line| line.unwrap().to_owned()))
        .collect();
    lines.join("\n") + "\n"
}

/// The program of a query yields the query's rows, in any number of shards, and is read as it was
/// written.
fn holds(session: &mut Session, query: &str) {
    let program = explained(session, "python", query);
    let expected = contents(&session.query(query).unwrap());
    let steps = read_program(&program).unwrap_or_else(|error| panic!("{program}{error}"));
    let comments: String =
        program.lines().take_while(|line| line.starts_with('#')).map(|line| line[1..].to_owned() + "\n").collect();
    let again = text::python(&steps, &comments.lines().map(str::trim).collect::<Vec<_>>().join("\n"));
    assert_eq!(again, program);
    for shards in [1, 2, 3] {
        let fails = |error| panic!("{query}, {shards} shards\n{program}{error:?}");
        let planned = PlannedShards::new(&steps, session, Layout::flat(shards)).unwrap_or_else(fails);
        planned
            .program
            .check()
            .unwrap_or_else(|error| panic!("{program}{error:?}\n{}", planned.program.explain().unwrap()));
        let (outcome, _) = planned.run(&Interrupt::new()).unwrap();
        let rows = outcome.rows().unwrap();
        assert!(
            contents(&rows).is_close(&expected, 1e-9),
            "{query}, {shards} shards\n{program}{}",
            contents(&rows).difference(&expected)
        );
    }
}

#[test]
fn queries_are_cut_into_programs_that_yield_their_rows() {
    let mut session = Session::new(Options::default()).unwrap();
    session.execute(TABLES_OF_ROWS).unwrap();
    QUERIES.iter().for_each(|query| holds(&mut session, query));
}

/// The Rust form compiles: it is one of the examples.
#[test]
fn the_rust_form_is_an_example() {
    let tables = "create table views (ad bigint, cost numeric(10,2), seen timestamp);
        create table coded (ad bigint, code char(4), cost numeric(10,2));
create table ads (ad bigint, campaign text, price numeric);
        insert into views select i, i, null from generate_series(1, 100) as g(i)";
    let mut session = Session::new(Options::default()).unwrap();
    session.execute(tables).unwrap();
    let query = "select campaign, date_trunc('day', seen) as day, count(*) as views, avg(cost) as cost, \
        max(price) as price from views join ads using (ad) where cost > 2 group by campaign, date_trunc('day', seen)";
    let written = explained(&mut session, "rust", query);
    // (It is laid out for readers: spaces and line ends differ.)
    let words = |text: &str| text.split_whitespace().collect::<String>().replace(",)", ")");
    let example = include_str!("../../examples/planned_query.rs");
    assert_eq!(words(&written), words(example), "{written}");
}

/// What no program has is refused by its name.
#[test]
fn queries_that_are_no_programs_are_refused() {
    let mut session = Session::new(Options::default()).unwrap();
    session.execute(TABLES_OF_ROWS).unwrap();
    let refused = [
        ("select 1 as one", "reads no relation"),
        ("select ad, sum(cost) over (order by cost range 2 preceding) from views", "RANGE"),
        (
            "with recursive t(n) as (select ad from ads union select n + 1 from t where n < 9) select n from t",
            "Recursive",
        ),
        ("select ad from views union all select 7", "literal rows"),
        ("select who, cost from views where cost > 2 limit 0", "reads no relation"),
        ("select ad from views where random() < 2", "random()"),
        (
            "select ad from views where ad in (select ad from ads where gen_random_uuid() is not null)",
            "gen_random_uuid()",
        ),
    ];
    for (query, word) in refused {
        let error = session.query(&format!("explain (format python) {query}")).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000", "{query}: {error}");
        assert!(error.message.contains(word), "{query}: {error}");
    }
    let error = session.query("explain (format python) select ad from views where ad = $1").unwrap_err();
    assert!(error.sqlstate() == "42P02" && error.message.contains("there is no parameter $1"), "{error}");
    for language in ["python", "rust"] {
        let analyzed = format!("explain (analyze, format {language}) select ad from views");
        let error = session.query(&analyzed).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000", "{error}");
        assert!(error.message.contains(language) && error.hint.unwrap().contains("anabranch plan FILE --profile"));
    }
}

/// A17, and more: of all 22.
#[test]
fn tpch_as_programs() {
    let mut session = Session::new(Options::default()).unwrap();
    TABLES.iter().for_each(|table| drop(session.execute(table.create).unwrap()));
    let tables: Vec<&'static Table> = TABLES.iter().collect();
    for (table, batch) in Interleaved::new(&tables, SCALE, 20_000, 11) {
        session.insert(table.name, &batch).unwrap();
    }
    for number in 1..=22 {
        holds(&mut session, &queries::query(number, SCALE));
    }
}

#[test]
fn programs_of_sql_over_changing_rows_equal_one_shard() {
    same_as_one_shard("sql counts", |layout| {
        source("l", layout)
            .sql("select k, count(*) as n, max(x) as m from shard group by k")
            .rekey(["k"])
            .redistribute(Move::FLAT)
            .sql("select k, sum(n) as n, max(m) as m from shard group by k having sum(n) > 2")
    });
    same_as_one_shard("sql join", |layout| {
        let left = source("l", layout).rekey(["k"]).redistribute(Move::FLAT);
        let right = source("r", layout).rekey(["k"]).redistribute(Move::FLAT);
        left.sql_with(&right, "select shard.k, shard.x, other.j from shard left join other on shard.k = other.k")
    });
    same_as_one_shard("sql of all", |layout| {
        source("l", layout)
            .sql("select count(*) as n, sum(x) as x from shard")
            .reshard(Move::to_shards(1))
            .sql("select sum(n) as n, sum(x) as x from shard")
    });
    same_as_one_shard("sql first rows", |layout| {
        source("l", layout)
            .sql("select k, x from shard order by x desc, k limit 4")
            .reshard(Move::to_shards(1))
            .sql("select k, x from shard order by x desc, k limit 3")
    });
    same_as_one_shard("sql copies", |layout| {
        let right = source("r", layout).sql("select j from shard where j > 1").broadcast(Move::FLAT);
        source("l", layout).sql_with(&right, "select k, x from shard where j not in (select j from other)")
    });
}

/// Why a program of SQL is refused.
#[test]
fn wrong_programs_of_sql_are_refused() {
    let schema = Schema::new(["k", "x"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    let rows = |name: &str| Shards::source(name, schema.clone(), Layout::flat(2));
    let by_k = |shards: Shards| shards.rekey(["k"]).redistribute(Move::FLAT);
    let counts = "select k, count(*) as n from shard group by k";
    let refused = [
        // Counts of each shard that nothing puts together.
        rows("l").sql(counts),
        // Put together by the wrong aggregate.
        by_k(rows("l").sql(counts)).sql("select k, max(n) as n from shard group by k"),
        // Put together before they lie together.
        rows("l").sql(counts).sql("select k, sum(n) as n from shard group by k"),
        // A filter of partial counts.
        by_k(rows("l").sql("select k, count(*) as n from shard group by k having count(*) > 1"))
            .sql("select k, sum(n) as n from shard group by k"),
        // Rows that match lie anywhere.
        rows("l").sql_with(&rows("r"), "select shard.x from shard join other on shard.k = other.k"),
        // By another column.
        by_k(rows("l")).sql("select x, count(*) as n from shard group by x").sql("select distinct x from shard"),
        // More first rows than each shard had.
        rows("l")
            .sql("select k, x from shard order by x limit 3")
            .reshard(Move::to_shards(1))
            .sql("select k, x from shard order by x limit 4"),
        // In another order.
        rows("l")
            .sql("select k, x from shard order by x limit 3")
            .reshard(Move::to_shards(1))
            .sql("select k, x from shard order by k limit 3"),
        // NOT IN does not know of every NULL.
        by_k(rows("l")).sql_with(&by_k(rows("r")), "select x from shard where k not in (select k from other)"),
        // Each copy would come out.
        rows("l").broadcast(Move::FLAT).sql("select x from shard"),
    ];
    for (number, program) in refused.iter().enumerate() {
        assert!(program.check().is_err(), "program {number}\n{}", program.explain().unwrap());
    }
}

#[test]
fn texts_that_are_no_programs_name_the_line() {
    let wrong = [
        ("", 1, "no steps"),
        ("a = db.shards(\"t\")\nb = a.sort(\"x\")\n", 2, "no verb \"sort\""),
        ("a = db.shards(\"t\")\n\nb = c.rekey(\"x\")\n", 3, "no step \"c\""),
        ("a = db.shards(\"t\").redistribute(scope=\"wide\")\n", 1, "no scope \"wide\""),
        ("a = db.shards(\"t\").query(lambda q: q)\n", 1, "write the query as SQL"),
        ("a = db.shards(\"t\").redistribute(\"local\", \"x\")\n", 1, "other arguments"),
        ("a = db.shards(\"t\").redistribute(\"local\", scope=\"flat\")\n", 1, "two scopes"),
        ("a = db.shards(\"t\").sql()\n", 1, "other arguments"),
        ("a = db.shards(\"t)\n", 1, "no end"),
        ("a = 7\n", 1, "\"7\""),
        ("a = db.shards(\"t\") b\n", 1, "\"b\""),
    ];
    for (text, line, word) in wrong {
        let (at, message) = read(text).unwrap_err();
        assert_eq!(at, line, "{text}: {message}");
        assert!(message.contains(word), "{text}: {message}");
    }
    let right = "# a comment\nimport anabranch\na = (\n  db.shards('t', [\"x\"])\n  .rekey(\"x\").redistribute(scope=\"local\")\n)\nb = a.sql(r\"select '\\d' from shard\")\nresult = a\n";
    let program = read(right).unwrap();
    assert_eq!(program.steps.len(), 3);
    let also = "a = db.shards('t', ['x']).redistribute('local').sql('select x ' 'from shard').collect()\n";
    let plain = "a = db.shards('t', ['x']).redistribute(scope='local').sql('select x from shard')\n";
    assert_eq!(read(also), read(plain));
}
