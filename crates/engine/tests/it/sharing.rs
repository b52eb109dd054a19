//! Queries that share arrangements, what is shown of it, and what is freed.

use crate::support::{ask, fail, run, session, with_workers};
use anabranch_engine::Session;

const TABLES: &str = "create table orders (id int primary key, customer int not null, total int not null);
     create table customers (id int primary key, name text not null);
     insert into customers values (1, 'ann'), (2, 'bob'), (3, 'cyd');
     insert into orders values (10, 1, 5), (11, 1, 7), (12, 2, 1)";

/// Joins with a filter below.
const BIG: &str = "select o.id, c.name from orders o join customers c on c.id = o.customer where o.total > 2";
const SUMS: &str = "select c.name, sum(o.total) as s from orders o join customers c on c.id = o.customer
     where o.total > 2 group by c.name";

fn arrangements(session: &mut Session) -> usize {
    session.wait().unwrap();
    session.arrangements().len()
}

fn bytes(session: &mut Session) -> usize {
    session.wait().unwrap();
    session.arrangements().iter().map(|stats| stats.bytes).sum()
}

#[test]
fn what_two_views_have_in_common_is_there_once_and_goes_with_the_last() {
    with_workers(|session| {
        run(session, TABLES);
        let base = arrangements(session);
        run(session, &format!("create materialized view big as {BIG}"));
        let with_one = arrangements(session);
        run(session, &format!("create materialized view big2 as {BIG} and c.name <> 'bob'"));
        run(session, &format!("create materialized view twin as {BIG}"));
        let with_twin = arrangements(session);
        run(session, "insert into orders values (13, 3, 9)");
        assert_eq!(ask(session, "select * from big2 order by id"), ["10 ann", "11 ann", "13 cyd"]);
        assert_eq!(ask(session, "select * from twin order by id"), ["10 ann", "11 ann", "13 cyd"]);
        // The twin is the same dataflow, under another name.
        run(session, "drop materialized view big");
        assert_eq!(arrangements(session), with_twin);
        run(session, "update customers set name = 'dan' where id = 1; delete from orders where id = 11");
        assert_eq!(ask(session, "select * from big2 order by id"), ["10 dan", "13 cyd"]);
        assert_eq!(ask(session, "select * from twin order by id"), ["10 dan", "13 cyd"]);
        run(session, "drop materialized view big2");
        assert_eq!(arrangements(session), with_one);
        assert_eq!(ask(session, "select * from twin order by id"), ["10 dan", "13 cyd"]);
        run(session, "drop materialized view twin");
        assert_eq!(arrangements(session), base);
    });
}

#[test]
fn parts_of_a_query_that_are_shared_arrange_the_columns_that_all_of_it_wants() {
    with_workers(|session| {
        run(
            session,
            "create table parts (id int not null, kind text not null);
             create table items (part int not null, quantity int not null, price int not null);
             insert into parts values (1, 'box'), (2, 'box'), (3, 'bag');
             insert into items values (1, 1, 10), (1, 9, 90), (2, 5, 50), (2, 3, 30), (2, 4, 40), (3, 1, 10), (3, 7, 70)",
        );
        let of_items = |session: &mut Session| {
            session.wait().unwrap();
            session.arrangements().iter().filter(|stats| stats.rows == 7).count()
        };
        let before = of_items(session);
        // The averages want quantities by part, the join around them prices too.
        run(
            session,
            "create materialized view few as select sum(i.price) as price from items i, parts p
             where p.id = i.part and p.kind = 'box'
             and i.quantity < (select avg(quantity) from items where part = p.id)",
        );
        assert_eq!(of_items(session), before + 1);
        assert_eq!(ask(session, "select * from few"), ["40"]);
        run(session, "delete from items where part = 2 and quantity = 5");
        assert_eq!(ask(session, "select * from few"), ["40"]);
        run(session, "insert into items values (2, 20, 200)");
        assert_eq!(ask(session, "select * from few"), ["80"]);
    });
}

#[test]
fn without_sharing_each_view_has_its_own() {
    let mut session = session(0);
    run(&mut session, TABLES);
    run(&mut session, "set sharing = off");
    let base = arrangements(&mut session);
    run(&mut session, &format!("create materialized view a as {SUMS}"));
    run(&mut session, &format!("create materialized view b as {SUMS}"));
    // Only the views' own arrangements are read by other queries.
    assert_eq!(arrangements(&mut session), base + 2);
    assert_eq!(ask(&mut session, "select * from b order by name"), ["ann 12"]);
    assert_eq!(ask(&mut session, "show sharing"), ["off"]);
    assert!(fail(&mut session, "set sharing = maybe").render("").contains("on or off"));
}

#[test]
fn an_aggregate_is_shared_by_the_conditions_above_it() {
    with_workers(|session| {
        run(session, TABLES);
        let having =
            |n: i32| format!("select customer, sum(total) as s from orders group by customer having sum(total) > {n}");
        run(session, &format!("create materialized view a as {}", having(2)));
        let with_one = arrangements(session);
        run(session, &format!("create materialized view b as {}", having(0)));
        assert_eq!(arrangements(session), with_one + 1);
        run(session, "insert into orders values (14, 2, 3)");
        assert_eq!(ask(session, "select * from a order by customer"), ["1 12", "2 4"]);
        assert_eq!(ask(session, "select * from b order by customer"), ["1 12", "2 4"]);
        run(session, "drop materialized view a");
        run(session, "delete from orders where customer = 1");
        assert_eq!(ask(session, "select * from b order by customer"), ["2 4"]);
    });
}

/// The sums are in the aggregate's state already: they are arranged only for who looks into them.
#[test]
fn what_an_aggregate_shares_is_not_kept_twice_and_told_to_who_comes_later() {
    with_workers(|session| {
        run(session, "create table t (g int not null, x int not null)");
        let sums = "select g, sum(x) as s, count(*) as n from t group by g";
        run(session, &format!("create materialized view by_n as select n, sum(s) as s from ({sums}) as u group by n"));
        let commit = |session: &mut Session, round: i32| {
            let rows = "select k * 7 % 5000, k % 13 - 6 from unnest(generate_series";
            let (from, to) = (round * 2000, round * 2000 + 1999);
            run(session, &format!("insert into t {rows}({from}, {to})) as s(k)"));
            run(session, &format!("delete from t where g % 11 = {round}"));
        };
        let check = |session: &mut Session| {
            for (view, query) in [
                ("by_n", format!("select n, sum(s) from ({sums}) as u group by n")),
                ("few", format!("{sums} having count(*) < 4")),
            ] {
                run(session, "set sharing = off");
                let direct = ask(session, &format!("select * from ({query}) as q order by 1"));
                run(session, "set sharing = on");
                assert!(direct.len() > 1);
                assert_eq!(ask(session, &format!("select * from ({query}) as q order by 1")), direct, "{query}");
                if session.query(&format!("select 1 from {view} limit 1")).is_ok() {
                    assert_eq!(ask(session, &format!("select * from {view} order by 1")), direct, "{view}");
                }
            }
        };
        (0..12).for_each(|round| commit(session, round));
        session.wait().unwrap();
        let all = session.arrangements();
        let mut of_groups: Vec<bool> =
            all.iter().filter(|stats| stats.rows > 4000).map(|stats| stats.bytes > 0).collect();
        of_groups.sort_unstable();
        // (The table has rows of its own, the aggregate has its own.)
        assert_eq!(of_groups, [false, true], "{all:?}");
        run(session, &format!("create materialized view few as {sums} having count(*) < 4"));
        check(session);
        for round in 12..20 {
            commit(session, round % 11);
            if round % 3 == 0 {
                check(session);
            }
        }
        run(session, "drop materialized view by_n");
        commit(session, 3);
        check(session);
    });
}

#[test]
fn explain_tells_what_is_shared_with_how_many() {
    let mut session = session(0);
    run(&mut session, TABLES);
    let before = ask(&mut session, &format!("explain {SUMS}")).join("\n");
    assert!(before.contains("to be shared, arranged by"), "{before}");
    run(&mut session, &format!("create materialized view a as {SUMS}"));
    let most = SUMS.replace("sum(", "max(");
    let after = ask(&mut session, &format!("explain {most}")).join("\n");
    assert!(after.contains("uses the shared arrangement by") && after.contains("(shared with 1, "), "{after}");
}

/// What EXPLAIN shows of a semi join: distinct keys, unless there is an index by them and it may be
/// used.
#[test]
fn keys_are_looked_for_in_distinct_keys_or_in_an_index() {
    let mut session = session(0);
    run(&mut session, TABLES);
    let exists = "select name from customers c where exists (select 1 from orders o where o.customer = c.id)";
    let behind = "select o.id, c.name from customers c join orders o on c.id = o.customer where o.total > 2";
    let mut explain = |change: &str, query: &str| {
        run(&mut session, change);
        ask(&mut session, &format!("explain {query}")).join("\n")
    };
    assert!(explain("", exists).contains("Distinct"));
    assert!(!explain("create index on orders (customer)", exists).contains("Distinct"));
    assert!(!explain("", behind).contains("Stage where"));
    assert!(explain("set sharing = off", exists).contains("Distinct"));
    assert!(explain("", behind).contains("Stage where"));
}

#[test]
fn a_table_made_anew_under_the_same_name_shares_nothing_with_the_old() {
    let mut session = session(0);
    run(&mut session, TABLES);
    let subscribe = format!("subscribe ({SUMS})");
    let _subscription = run(&mut session, &subscribe);
    run(&mut session, "drop table orders cascade; drop table customers cascade");
    run(&mut session, TABLES);
    run(&mut session, &format!("create materialized view a as {SUMS}"));
    assert_eq!(ask(&mut session, "select * from a"), ["ann 12"]);
}

#[test]
fn show_arrangements_names_what_is_shared_and_the_slowest_reader() {
    let mut session = session(0);
    run(&mut session, TABLES);
    run(&mut session, &format!("create materialized view sums as {SUMS}"));
    run(&mut session, "insert into orders values (15, 1, 4)");
    let rows = ask(&mut session, "show arrangements");
    assert!(rows.iter().any(|row| row.starts_with("orders id orders 4 ")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("Stage")), "{rows:#?}");
    assert!(rows.iter().all(|row| !row.ends_with(' ')), "every arrangement has a slowest reader: {rows:#?}");
    run(&mut session, &format!("create materialized view again as {SUMS}"));
    let rows = ask(&mut session, "show arrangements");
    assert!(rows.iter().any(|row| row.starts_with("again, sums ") && row.contains(" again, sums ")), "{rows:#?}");
}

#[test]
fn memory_comes_back_when_the_last_reader_goes() {
    let mut session = session(0);
    run(&mut session, "create table t (k int not null, g int not null, v text not null)");
    run(
        &mut session,
        "insert into t select k, k % 1000, 'value ' || k::text from unnest(generate_series(1, 50000)) as s(k)",
    );
    let base = bytes(&mut session);
    let view = "select a.g, count(*) from t a join t b on a.k = b.k where a.g < 900 group by a.g";
    run(&mut session, &format!("create materialized view one as {view}"));
    run(&mut session, &format!("create materialized view two as {view} having count(*) > 1"));
    let full = bytes(&mut session);
    assert!(full > base + base / 4, "{full} {base}");
    run(&mut session, "drop materialized view one");
    assert!(bytes(&mut session) > base + base / 4);
    run(&mut session, "drop materialized view two");
    assert_eq!(bytes(&mut session), base);
}

#[test]
fn steps_are_counted() {
    let mut session = session(1);
    run(&mut session, TABLES);
    run(&mut session, &format!("create materialized view sums as {SUMS}"));
    ask(&mut session, "select * from sums");
    let steps = ask(&mut session, "show steps");
    assert!(
        ["Join", "Arrange", "Answer"].iter().all(|kind| steps.iter().any(|row| row.starts_with(kind))),
        "{steps:#?}"
    );
}

/// One key with many rows on both sides once made all its pairs in one step.
#[test]
fn one_key_with_a_million_matches_lets_others_work() {
    let mut session = session(0);
    run(
        &mut session,
        "create table a (k int not null, x int not null); create table b (k int not null, y int not null)",
    );
    run(&mut session, "insert into a select 1, x from unnest(generate_series(1, 1000)) as s(x)");
    run(&mut session, "insert into b select 1, y from unnest(generate_series(1, 2000)) as s(y)");
    session.reset_steps();
    run(
        &mut session,
        "create materialized view pairs as select count(*) as n, sum(a.x + b.y) as s from a join b on a.k = b.k",
    );
    assert_eq!(ask(&mut session, "select * from pairs"), ["2000000 3002000000"]);
    let joins = session.steps().into_iter().find(|stats| stats.operator == "Join").unwrap();
    assert!(joins.count >= 15, "{joins:?}");
    run(&mut session, "delete from a where x > 10; insert into b values (1, 0)");
    assert_eq!(ask(&mut session, "select n from pairs"), ["20010"]);
}

#[test]
fn the_import_of_a_large_table_lets_others_work() {
    let mut session = session(0);
    run(&mut session, "create table t (k int not null)");
    run(&mut session, "insert into t select k from unnest(generate_series(1, 200000)) as s(k)");
    session.reset_steps();
    run(&mut session, "create materialized view n as select count(*) as n, sum(k) as s from t where k % 2 = 0");
    assert_eq!(ask(&mut session, "select * from n"), ["100000 10000100000"]);
    assert_eq!(ask(&mut session, "select count(*) from t"), ["200000"]);
    let imports = session.steps().into_iter().find(|stats| stats.operator == "Import").unwrap();
    assert!(imports.count >= 6, "{imports:?}");
    assert_eq!(session.query("select k from t").unwrap().num_rows(), 200_000);
}

#[test]
fn an_index_serves_queries_with_conditions() {
    with_workers(|session| {
        run(session, TABLES);
        run(session, "create index by_customer on orders (customer)");
        let base = arrangements(session);
        let plan = ask(session, &format!("explain {BIG}")).join("\n");
        assert!(plan.contains("where left.total > 2") || plan.contains("where right.total > 2"), "{plan}");
        assert!(plan.contains("uses index by_customer (customer)"), "{plan}");
        run(session, &format!("create materialized view big as {BIG}"));
        run(session, &format!("create materialized view bigger as {}", BIG.replace("> 2", "> 6")));
        run(
            session,
            "create materialized view some as select c.name, o.id from customers c left join orders o on c.id = o.customer and o.total <= 5",
        );
        // No orders are arranged but by the index: what is new are the answers.
        assert_eq!(arrangements(session), base + 3);
        run(session, "insert into orders values (13, 3, 9), (14, 3, 2); delete from orders where id = 10");
        assert_eq!(ask(session, "select * from big order by id"), ["11 ann", "13 cyd"]);
        assert_eq!(ask(session, "select * from bigger order by id"), ["11 ann", "13 cyd"]);
        assert_eq!(ask(session, "select * from some order by name, id"), ["ann null", "bob 12", "cyd 14"]);
        // What keeps a small part only has an arrangement of that part.
        let few = ask(session, &format!("explain {}", BIG.replace("> 2", "= 7"))).join("\n");
        assert!(!few.contains("by_customer"), "{few}");
        run(session, "drop index by_customer");
        run(session, "update orders set total = 1 where id = 13");
        assert_eq!(ask(session, "select * from big order by id"), ["11 ann"]);
    });
}

#[test]
fn an_idle_worker_merges_what_insertions_left() {
    let mut session = session(2);
    run(&mut session, "create table t (k int not null); create materialized view sums as select sum(k) from t");
    for _ in 0..3 {
        run(&mut session, "insert into t select k from unnest(generate_series(1, 30000)) as s(k)");
    }
    let start = std::time::Instant::now();
    let rows = |session: &mut Session| session.arrangements().iter().map(|stats| stats.rows).max();
    // (Equal rows of three commits become one, on each worker. A commit of one row pays for four
    // rows of merging; but merging in spare time that was done before readers let go of the last
    // commit goes on only with the next one.)
    while rows(&mut session) > Some(31_000) {
        assert!(start.elapsed().as_secs() < 60, "{:?} rows", rows(&mut session));
        std::thread::sleep(std::time::Duration::from_millis(100));
        run(&mut session, "insert into t values (0)");
    }
    assert_eq!(ask(&mut session, "select * from sums"), [format!("{}", 3 * 30_000 * 30_001_i64 / 2)]);
}
