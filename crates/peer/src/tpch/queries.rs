//! The dataflows, one function a query. Money is in hundredths; products of prices and rates in
//! units of 1e-4 and 1e-6.

use differential_dataflow::operators::{CountTotal, ThresholdTotal};

use super::rows::{cents, dates, day, padded, short, text, texts, whole, year, zip};
use super::{Contents, Rows, Site};

/// The queries that are written here.
pub const QUERIES: [usize; 13] = [1, 3, 5, 6, 9, 11, 12, 13, 15, 17, 18, 21, 22];

/// Builds the dataflow of a query.
///
/// # Panics
/// If the query is not one of [`QUERIES`].
pub(super) fn build(query: usize, site: &mut Site<'_>) {
    match query {
        1 => q1(site),
        3 => q3(site),
        5 => q5(site),
        6 => q6(site),
        9 => q9(site),
        11 => q11(site),
        12 => q12(site),
        13 => q13(site),
        15 => q15(site),
        17 => q17(site),
        18 => q18(site),
        21 => q21(site),
        22 => q22(site),
        other => panic!("query {other} is not written against the peer"),
    }
}

/// The contents as rows of the answer: what a query keeps in the diffs of its answer becomes a
/// cell.
pub(super) fn finished(query: usize, contents: Contents) -> Contents {
    if query != 15 {
        return contents;
    }
    let with_revenue = |(mut row, revenue): (Vec<String>, isize)| {
        row.push(decimal(revenue, 4));
        (row, 1)
    };
    contents.into_iter().map(with_revenue).collect()
}

/// A number of units of `10^-scale`.
fn decimal(value: isize, scale: u32) -> String {
    let unit = 10_i128.pow(scale);
    let value = value as i128;
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{:0width$}", value.abs() / unit, value.abs() % unit, width = scale as usize)
}

fn mean(sum: isize, count: isize) -> String {
    format!("{}", sum as f64 / 100.0 / count as f64)
}

fn q1(site: &mut Site<'_>) {
    let items = site.table("lineitem", |b| {
        let kinds = zip!(short::<1>(b, "l_returnflag"), short::<1>(b, "l_linestatus"));
        let sums = zip!(cents(b, "l_quantity"), cents(b, "l_extendedprice"), cents(b, "l_discount"), cents(b, "l_tax"));
        zip!(kinds, dates(b, "l_shipdate"), sums)
    });
    let last = day(1998, 9, 2);
    let groups = items
        .explode(move |(kind, date, (quantity, price, discount, tax))| {
            let reduced = price * (100 - discount);
            let sums = ((quantity, price), (reduced, reduced * (100 + tax)), (discount, 1));
            (date <= last).then_some((kind, sums))
        })
        .count_total();
    site.answer(groups, |((flag, status), ((quantity, price), (reduced, charge), (discount, count))), diff: &isize| {
        let cells = vec![
            text(flag),
            text(status),
            decimal(*quantity, 2),
            decimal(*price, 2),
            decimal(*reduced, 4),
            decimal(*charge, 6),
            mean(*quantity, *count),
            mean(*price, *count),
            mean(*discount, *count),
            count.to_string(),
        ];
        (cells, *diff)
    });
}

fn q3(site: &mut Site<'_>) {
    let customers = site.table("customer", |b| zip!(whole(b, "c_custkey"), short::<10>(b, "c_mktsegment")));
    let orders = site.table("orders", |b| {
        zip!(whole(b, "o_orderkey"), whole(b, "o_custkey"), dates(b, "o_orderdate"), whole(b, "o_shippriority"))
    });
    let items = site.table("lineitem", |b| {
        zip!(whole(b, "l_orderkey"), dates(b, "l_shipdate"), cents(b, "l_extendedprice"), cents(b, "l_discount"))
    });
    let (segment, date) = (padded("BUILDING"), day(1995, 3, 15));
    let customers = customers.flat_map(move |(customer, kind)| (kind == segment).then_some(customer));
    let orders = orders
        .flat_map(move |(order, customer, day, priority)| (day < date).then_some((customer, (order, day, priority))));
    let items =
        items.explode(move |(order, day, price, discount)| (day > date).then_some((order, price * (100 - discount))));
    let groups = orders
        .semijoin(customers)
        .map(|(_, (order, day, priority))| (order, (day, priority)))
        .arrange_by_key()
        .join_core(items.arrange_by_self(), |order, rest, ()| Some((*order, *rest)))
        .count_total();
    site.answer(groups, |((order, (day, priority)), revenue), diff: &isize| {
        (vec![order.to_string(), decimal(*revenue, 4), written_day(*day), priority.to_string()], *diff)
    });
}

fn written_day(days: i32) -> String {
    let year = year(days);
    let month = (1..=12).rev().find(|month| day(year, *month, 1) <= days).unwrap_or(1);
    format!("{year}-{month:02}-{:02}", days - day(year, month, 1) + 1)
}

/// The nations of a region, with their names.
fn nations_of<'s>(site: &mut Site<'s>, region: &'static str) -> Rows<'s, (u32, [u8; 25])> {
    let regions = site.table("region", |b| zip!(whole(b, "r_regionkey"), short::<25>(b, "r_name")));
    let nations = site
        .table("nation", |b| zip!(whole(b, "n_regionkey"), zip!(whole(b, "n_nationkey"), short::<25>(b, "n_name"))));
    let regions = regions.flat_map(move |(key, name)| (name == padded(region)).then_some(key));
    nations.semijoin(regions).map(|(_, nation)| nation)
}

fn q5(site: &mut Site<'_>) {
    let nations = nations_of(site, "ASIA");
    let customers = site.table("customer", |b| zip!(whole(b, "c_nationkey"), whole(b, "c_custkey")));
    let orders = site.table("orders", |b| zip!(whole(b, "o_custkey"), whole(b, "o_orderkey"), dates(b, "o_orderdate")));
    let items = site.table("lineitem", |b| {
        zip!(whole(b, "l_orderkey"), whole(b, "l_suppkey"), cents(b, "l_extendedprice"), cents(b, "l_discount"))
    });
    let suppliers = site.table("supplier", |b| zip!(whole(b, "s_suppkey"), whole(b, "s_nationkey")));
    let (from, to) = (day(1994, 1, 1), day(1995, 1, 1));
    let keys = nations.clone().map(|(nation, _)| nation);
    let customers = customers.semijoin(keys).map(|(nation, customer)| (customer, nation));
    let orders = orders
        .flat_map(move |(customer, order, day)| (day >= from && day < to).then_some((customer, order)))
        .join_map(customers, |_, order, nation| (*order, *nation));
    let groups = items
        .explode(|(order, supplier, price, discount)| Some(((order, supplier), price * (100 - discount))))
        .arrange_by_key()
        .join_core(orders.arrange_by_key(), |_, supplier, nation| Some((*supplier, *nation)))
        .map(|pair| (pair, ()))
        .arrange_by_key()
        .join_core(suppliers.arrange_by_self(), |(_, nation), (), ()| Some((*nation, ())))
        .arrange_by_key()
        .join_core(nations.arrange_by_key(), |_, (), name| Some(*name))
        .count_total();
    site.answer(groups, |(name, revenue), diff: &isize| (vec![text(name), decimal(*revenue, 4)], *diff));
}

fn q6(site: &mut Site<'_>) {
    let items = site.table("lineitem", |b| {
        let rest = zip!(cents(b, "l_quantity"), cents(b, "l_extendedprice"), cents(b, "l_discount"));
        zip!(dates(b, "l_shipdate"), rest)
    });
    let (from, to) = (day(1994, 1, 1), day(1995, 1, 1));
    let sum = items
        .explode(move |(day, (quantity, price, discount))| {
            let wanted = day >= from && day < to && (5..=7).contains(&discount) && quantity < 2400;
            wanted.then_some(((), price * discount))
        })
        .count_total();
    site.answer(sum, |((), revenue), diff: &isize| (vec![decimal(*revenue, 4)], *diff));
}

fn q9(site: &mut Site<'_>) {
    let parts = site.table("part", |b| zip!(whole(b, "p_partkey"), texts(b, "p_name")));
    let items = site.table("lineitem", |b| {
        let keys = zip!(whole(b, "l_partkey"), whole(b, "l_suppkey"), whole(b, "l_orderkey"));
        zip!(keys, cents(b, "l_quantity"), cents(b, "l_extendedprice"), cents(b, "l_discount"))
    });
    let offers = site
        .table("partsupp", |b| zip!(zip!(whole(b, "ps_partkey"), whole(b, "ps_suppkey")), cents(b, "ps_supplycost")));
    let orders = site.table("orders", |b| zip!(whole(b, "o_orderkey"), dates(b, "o_orderdate")));
    let suppliers = site.table("supplier", |b| zip!(whole(b, "s_suppkey"), whole(b, "s_nationkey")));
    let nations = site.table("nation", |b| zip!(whole(b, "n_nationkey"), short::<25>(b, "n_name")));
    let parts = parts.flat_map(|(part, name)| name.contains("green").then_some(part));
    let orders = orders.map(|(order, day)| (order, year(day) as u16));
    let groups = items
        .explode(|((part, supplier, order), quantity, price, discount)| {
            Some(((part, (supplier, order)), (price * (100 - discount), quantity)))
        })
        .arrange_by_key()
        .join_core(parts.arrange_by_self(), |part, (supplier, order), ()| Some(((*part, *supplier), *order)))
        .arrange_by_key()
        .join_core(offers.arrange_by_key(), |(_, supplier), order, cost| Some((*order, *supplier, *cost)))
        .inner_profit()
        .arrange_by_key()
        .join_core(orders.arrange_by_key(), |_, supplier, year| Some((*supplier, *year)))
        .arrange_by_key()
        .join_core(suppliers.arrange_by_key(), |_, year, nation| Some((*nation, *year)))
        .arrange_by_key()
        .join_core(nations.arrange_by_key(), |_, year, name| Some((*name, *year)))
        .count_total();
    site.answer(groups, |((name, year), profit), diff: &isize| {
        (vec![text(name), year.to_string(), decimal(*profit, 4)], *diff)
    });
}

/// Revenue and quantity in the diff, cost in the row: the profit in the diff.
trait Profit<'s> {
    fn inner_profit(self) -> Rows<'s, (u32, u32)>;
}

impl<'s> Profit<'s> for Rows<'s, (u32, u32, isize), (isize, isize)> {
    fn inner_profit(self) -> Rows<'s, (u32, u32)> {
        use differential_dataflow::AsCollection;
        use timely::dataflow::operators::vec::Map;
        let stream = self.inner.map(|((order, supplier, cost), time, (revenue, quantity))| {
            ((order, supplier), time, revenue - cost * quantity)
        });
        stream.as_collection()
    }
}

fn q11(site: &mut Site<'_>) {
    let offers = site.table("partsupp", |b| {
        let rest = zip!(whole(b, "ps_availqty"), cents(b, "ps_supplycost"));
        zip!(whole(b, "ps_suppkey"), whole(b, "ps_partkey"), rest)
    });
    let suppliers = site.table("supplier", |b| zip!(whole(b, "s_nationkey"), whole(b, "s_suppkey")));
    let nations = site.table("nation", |b| zip!(whole(b, "n_nationkey"), short::<25>(b, "n_name")));
    let nations = nations.flat_map(|(nation, name)| (name == padded("GERMANY")).then_some(nation));
    let suppliers = suppliers.semijoin(nations).map(|(_, supplier)| supplier);
    let parts_below = (10_000.0 * site.scale) as isize;
    let values = offers
        .explode(|(supplier, part, (quantity, cost))| Some(((supplier, part), cost * quantity as isize)))
        .arrange_by_key()
        .join_core(suppliers.arrange_by_self(), |_, part, ()| Some(((), *part)))
        .reduce(move |(), parts, output: &mut Vec<((u32, isize), isize)>| {
            let total: isize = parts.iter().map(|(_, value)| *value).sum();
            let wanted = parts.iter().filter(|(_, value)| value * parts_below > total);
            output.extend(wanted.map(|(part, value)| ((**part, *value), 1)));
        });
    site.answer(values, |((), (part, value)), diff: &isize| (vec![part.to_string(), decimal(*value, 2)], *diff));
}

fn q12(site: &mut Site<'_>) {
    let orders = site.table("orders", |b| zip!(whole(b, "o_orderkey"), short::<15>(b, "o_orderpriority")));
    let items = site.table("lineitem", |b| {
        let days = zip!(dates(b, "l_shipdate"), dates(b, "l_commitdate"), dates(b, "l_receiptdate"));
        zip!(whole(b, "l_orderkey"), short::<10>(b, "l_shipmode"), days)
    });
    let (from, to) = (day(1994, 1, 1), day(1995, 1, 1));
    let modes: [[u8; 10]; 2] = [padded("MAIL"), padded("SHIP")];
    let items = items.flat_map(move |(order, mode, (shipped, committed, received))| {
        let late = committed < received && shipped < committed && received >= from && received < to;
        (late && modes.contains(&mode)).then_some((order, mode))
    });
    let groups = orders
        .explode(|(order, priority)| {
            let high = priority.starts_with(b"1-URGENT") || priority.starts_with(b"2-HIGH");
            Some((order, if high { (1, 0) } else { (0, 1) }))
        })
        .arrange_by_self()
        .join_core(items.arrange_by_key(), |_, (), mode| Some(*mode))
        .count_total();
    site.answer(groups, |(mode, (high, low)), diff: &isize| {
        (vec![text(mode), high.to_string(), low.to_string()], *diff)
    });
}

fn q13(site: &mut Site<'_>) {
    let customers = site.table("customer", |b| whole(b, "c_custkey"));
    let orders = site.table("orders", |b| zip!(whole(b, "o_custkey"), texts(b, "o_comment")));
    let orders = orders.flat_map(|(customer, comment)| {
        let special = comment.find("special").is_some_and(|at| comment[at + 7..].contains("requests"));
        (!special).then_some(customer)
    });
    // Every order has a customer, and a customer is there once: its row counts as one more order.
    let groups = orders.concat(customers).count_total().map(|(_, count)| count - 1).count_total();
    site.answer(groups, |(count, customers), diff: &isize| (vec![count.to_string(), customers.to_string()], *diff));
}

fn q15(site: &mut Site<'_>) {
    let suppliers = site.table("supplier", |b| {
        let rest = zip!(texts(b, "s_name"), texts(b, "s_address"), texts(b, "s_phone"));
        zip!(whole(b, "s_suppkey"), rest)
    });
    let items = site.table("lineitem", |b| {
        let rest = zip!(cents(b, "l_extendedprice"), cents(b, "l_discount"));
        zip!(whole(b, "l_suppkey"), dates(b, "l_shipdate"), rest)
    });
    let (from, to) = (day(1996, 1, 1), day(1996, 4, 1));
    let best = |(): (), parts: &[(&u32, isize)], output: &mut Vec<(u32, isize)>| {
        let most = parts.iter().map(|(_, revenue)| *revenue).max().unwrap_or_default();
        output.extend(parts.iter().filter(|(_, revenue)| *revenue == most).map(|(supplier, _)| (**supplier, most)));
    };
    // The greatest of each of many groups first, so that a change looks at few.
    let top = items
        .explode(move |(supplier, day, (price, discount))| {
            (day >= from && day < to).then_some((((supplier % 1000) as u16, supplier), price * (100 - discount)))
        })
        .reduce(move |_, parts, output| best((), parts, output))
        .map(|(group, supplier)| ((group % 100) as u8, supplier))
        .reduce(move |_, parts, output| best((), parts, output))
        .map(|(_, supplier)| ((), supplier))
        .reduce(move |_, parts, output| best((), parts, output))
        .map(|((), supplier)| supplier);
    let rows = top
        .arrange_by_self()
        .join_core(suppliers.arrange_by_key(), |supplier, (), rest| Some((*supplier, rest.clone())));
    site.answer(rows, |(supplier, (name, address, phone)), revenue: &isize| {
        // The revenue is the diff.
        let cells = vec![supplier.to_string(), name.to_string(), address.to_string(), phone.to_string()];
        (cells, *revenue)
    });
}

fn q17(site: &mut Site<'_>) {
    let parts =
        site.table("part", |b| zip!(whole(b, "p_partkey"), short::<10>(b, "p_brand"), short::<10>(b, "p_container")));
    let items = site
        .table("lineitem", |b| zip!(whole(b, "l_partkey"), zip!(cents(b, "l_quantity"), cents(b, "l_extendedprice"))));
    let (brand, container) = (padded("Brand#23"), padded("MED BOX"));
    let parts = parts.flat_map(move |(part, b, c)| (b == brand && c == container).then_some(part));
    let sum = items
        .semijoin(parts)
        .reduce(|_, items, output: &mut Vec<(isize, isize)>| {
            let count: isize = items.iter().map(|(_, n)| *n).sum();
            let quantity: isize = items.iter().map(|((quantity, _), n)| quantity * n).sum();
            let few = items.iter().filter(|((q, _), _)| q * count * 5 < quantity);
            output.push((few.map(|((_, price), n)| price * n).sum(), 1));
        })
        .explode(|(_, price)| (price != 0).then_some(((), price)))
        .count_total();
    site.answer(sum, |((), price), diff: &isize| (vec![format!("{}", *price as f64 / 700.0)], *diff));
}

fn q18(site: &mut Site<'_>) {
    let items = site.table("lineitem", |b| zip!(whole(b, "l_orderkey"), cents(b, "l_quantity")));
    let orders = site.table("orders", |b| {
        let rest = zip!(whole(b, "o_custkey"), dates(b, "o_orderdate"), cents(b, "o_totalprice"));
        zip!(whole(b, "o_orderkey"), rest)
    });
    let customers = site.table("customer", |b| zip!(whole(b, "c_custkey"), short::<25>(b, "c_name")));
    let rows = items
        .explode(|(order, quantity)| Some((order, quantity)))
        .count_total()
        .filter(|(_, quantity)| *quantity > 30_000)
        .join_map(orders, |order, quantity, (customer, day, price)| (*customer, (*order, *day, *price, *quantity)))
        .join_map(customers, |customer, rest, name| (*name, *customer, *rest));
    site.answer(rows, |(name, customer, (order, day, price, quantity)), diff: &isize| {
        let cells = vec![
            text(name),
            customer.to_string(),
            order.to_string(),
            written_day(*day),
            decimal(*price, 2),
            decimal(*quantity, 2),
        ];
        (cells, *diff)
    });
}

fn q21(site: &mut Site<'_>) {
    let items = site.table("lineitem", |b| {
        let days = zip!(dates(b, "l_commitdate"), dates(b, "l_receiptdate"));
        zip!(whole(b, "l_orderkey"), whole(b, "l_suppkey"), days)
    });
    let orders = site.table("orders", |b| zip!(whole(b, "o_orderkey"), short::<1>(b, "o_orderstatus")));
    let suppliers = site
        .table("supplier", |b| zip!(whole(b, "s_nationkey"), zip!(whole(b, "s_suppkey"), short::<25>(b, "s_name"))));
    let nations = site.table("nation", |b| zip!(whole(b, "n_nationkey"), short::<25>(b, "n_name")));
    let nations = nations.flat_map(|(nation, name)| (name == padded("SAUDI ARABIA")).then_some(nation));
    let suppliers = suppliers.semijoin(nations).map(|(_, supplier)| supplier);
    let orders = orders.flat_map(|(order, status)| (&status == b"F").then_some(order));
    let waiting = items
        .map(|(order, supplier, (committed, received))| (order, (supplier, received > committed)))
        .semijoin(orders)
        .reduce(|_, items, output: &mut Vec<(u32, isize)>| {
            // By supplier, in order: exactly one was late, and it was not alone.
            let mut late = items.iter().filter(|((_, late), _)| *late);
            if let (Some(((supplier, _), n)), None) = (late.next(), late.next())
                && items.iter().any(|((other, _), _)| other != supplier)
            {
                output.push((*supplier, *n));
            }
        })
        .map(|(_, supplier)| supplier);
    let groups =
        waiting.arrange_by_self().join_core(suppliers.arrange_by_key(), |_, (), name| Some(*name)).count_total();
    site.answer(groups, |(name, count), diff: &isize| (vec![text(name), count.to_string()], *diff));
}

fn q22(site: &mut Site<'_>) {
    let customers =
        site.table("customer", |b| zip!(whole(b, "c_custkey"), short::<15>(b, "c_phone"), cents(b, "c_acctbal")));
    let orders = site.table("orders", |b| whole(b, "o_custkey"));
    let customers = customers.flat_map(|(customer, phone, balance)| {
        let code = [phone[0], phone[1]];
        let wanted = [b"13", b"31", b"23", b"29", b"30", b"18", b"17"].contains(&&code);
        wanted.then_some((customer, (code, balance)))
    });
    let averages = customers
        .clone()
        .explode(|(_, (_, balance))| (balance > 0).then_some(((), (balance, 1))))
        .count_total()
        .map(|((), sums)| ((), sums));
    let groups = customers
        .antijoin(orders.distinct_total())
        .map(|(_, rest)| ((), rest))
        .join_map(averages, |(), rest, sums| (*rest, *sums))
        .filter(|((_, balance), (sum, count))| balance * count > *sum)
        .explode(|((code, balance), _)| Some((code, (1, balance))))
        .count_total();
    site.answer(groups, |(code, (count, balance)), diff: &isize| {
        (vec![text(code), count.to_string(), decimal(*balance, 2)], *diff)
    });
}
