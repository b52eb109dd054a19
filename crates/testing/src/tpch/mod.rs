//! TPC-H: the tables as SQL, their rows in process, the queries, and changes to make to the data.
//!
//! Rows come from the `tpchgen` crate and are the same in every run. Reading order: this page
//! (tables and rows), [`queries`], [`changes`].

pub mod changes;
pub mod queries;

use arrow::array::RecordBatch;
use tpchgen::generators as gens;
use tpchgen_arrow as columns;

use crate::rng::Rng;

/// A table of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The statement that makes it.
    pub create: &'static str,
    /// Rows at scale 1, about.
    pub rows: usize,
    /// Whether its size does not depend on the scale.
    pub fixed: bool,
}

/// The eight tables.
pub const TABLES: [Table; 8] = [
    Table {
        name: "region",
        create: "create table region (r_regionkey bigint not null, r_name text not null, r_comment text, \
                 primary key (r_regionkey))",
        rows: 5,
        fixed: true,
    },
    Table {
        name: "nation",
        create: "create table nation (n_nationkey bigint not null, n_name text not null, n_regionkey bigint not null, \
                 n_comment text, primary key (n_nationkey))",
        rows: 25,
        fixed: true,
    },
    Table {
        name: "supplier",
        create: "create table supplier (s_suppkey bigint not null, s_name text not null, s_address text not null, \
                 s_nationkey bigint not null, s_phone text not null, s_acctbal numeric(15, 2) not null, \
                 s_comment text not null, primary key (s_suppkey))",
        rows: 10_000,
        fixed: false,
    },
    Table {
        name: "customer",
        create: "create table customer (c_custkey bigint not null, c_name text not null, c_address text not null, \
                 c_nationkey bigint not null, c_phone text not null, c_acctbal numeric(15, 2) not null, \
                 c_mktsegment text not null, c_comment text not null, primary key (c_custkey))",
        rows: 150_000,
        fixed: false,
    },
    Table {
        name: "part",
        create: "create table part (p_partkey bigint not null, p_name text not null, p_mfgr text not null, \
                 p_brand text not null, p_type text not null, p_size int not null, p_container text not null, \
                 p_retailprice numeric(15, 2) not null, p_comment text not null, primary key (p_partkey))",
        rows: 200_000,
        fixed: false,
    },
    Table {
        name: "partsupp",
        create: "create table partsupp (ps_partkey bigint not null, ps_suppkey bigint not null, \
                 ps_availqty int not null, ps_supplycost numeric(15, 2) not null, ps_comment text not null, \
                 primary key (ps_partkey, ps_suppkey))",
        rows: 800_000,
        fixed: false,
    },
    Table {
        name: "orders",
        create: "create table orders (o_orderkey bigint not null, o_custkey bigint not null, \
                 o_orderstatus text not null, o_totalprice numeric(15, 2) not null, o_orderdate date not null, \
                 o_orderpriority text not null, o_clerk text not null, o_shippriority int not null, \
                 o_comment text not null, primary key (o_orderkey))",
        rows: 1_500_000,
        fixed: false,
    },
    Table {
        name: "lineitem",
        create: "create table lineitem (l_orderkey bigint not null, l_partkey bigint not null, \
                 l_suppkey bigint not null, l_linenumber int not null, l_quantity numeric(15, 2) not null, \
                 l_extendedprice numeric(15, 2) not null, l_discount numeric(15, 2) not null, \
                 l_tax numeric(15, 2) not null, l_returnflag text not null, l_linestatus text not null, \
                 l_shipdate date not null, l_commitdate date not null, l_receiptdate date not null, \
                 l_shipinstruct text not null, l_shipmode text not null, l_comment text not null, \
                 primary key (l_orderkey, l_linenumber))",
        rows: 6_000_000,
        fixed: false,
    },
];

/// Indexes on the foreign keys, for the joins that the queries share.
pub const INDEXES: [&str; 10] = [
    "create index nation_region on nation (n_regionkey)",
    "create index supplier_nation on supplier (s_nationkey)",
    "create index customer_nation on customer (c_nationkey)",
    "create index partsupp_part on partsupp (ps_partkey)",
    "create index partsupp_supplier on partsupp (ps_suppkey)",
    "create index orders_customer on orders (o_custkey)",
    "create index lineitem_order on lineitem (l_orderkey)",
    "create index lineitem_part on lineitem (l_partkey)",
    "create index lineitem_supplier on lineitem (l_suppkey)",
    "create index lineitem_part_supplier on lineitem (l_partkey, l_suppkey)",
];

/// Batches of one table's rows.
pub type Batches = Box<dyn Iterator<Item = RecordBatch>>;

impl Table {
    /// Rows at a scale, about.
    pub fn rows_at(&self, scale: f64) -> f64 {
        if self.fixed { self.rows as f64 } else { self.rows as f64 * scale }
    }

    /// The rows at a scale, in order of the primary key, cut into batches. (Batches of line items
    /// hold whole orders and may be a little larger.)
    ///
    /// # Panics
    /// If the table is none of [`TABLES`].
    pub fn batches(&self, scale: f64, batch_rows: usize) -> Batches {
        macro_rules! batches {
            ($columns:ident, $generator:ident) => {
                boxed(columns::$columns::new(gens::$generator::new(scale, 1, 1)).with_batch_size(batch_rows))
            };
        }
        match self.name {
            "region" => batches!(RegionArrow, RegionGenerator),
            "nation" => batches!(NationArrow, NationGenerator),
            "supplier" => batches!(SupplierArrow, SupplierGenerator),
            "customer" => batches!(CustomerArrow, CustomerGenerator),
            "part" => batches!(PartArrow, PartGenerator),
            "partsupp" => batches!(PartSuppArrow, PartSuppGenerator),
            "orders" => batches!(OrderArrow, OrderGenerator),
            "lineitem" => batches!(LineItemArrow, LineItemGenerator),
            name => panic!("TPC-H has no table '{name}'"),
        }
    }
}

fn boxed(batches: impl Iterator<Item = Result<RecordBatch, arrow::error::ArrowError>> + 'static) -> Batches {
    Box::new(batches.map(|batch| batch.expect("generated rows fit their schema")))
}

/// The rows of some tables, interleaved: the next batch comes from a table drawn by the number of
/// rows it has left.
pub struct Interleaved {
    rng: Rng,
    /// Table, rows left (about), batches.
    open: Vec<(&'static Table, f64, Batches)>,
}

impl Interleaved {
    /// The rows of `tables` at a scale; `seed` decides the order.
    pub fn new(tables: &[&'static Table], scale: f64, batch_rows: usize, seed: u64) -> Interleaved {
        let open = |table: &&'static Table| (*table, table.rows_at(scale), table.batches(scale, batch_rows));
        Interleaved { rng: Rng::new(seed), open: tables.iter().map(open).collect() }
    }

    fn draw(&mut self) -> usize {
        let left: f64 = self.open.iter().map(|open| open.1).sum();
        let mut point = self.rng.below(1 << 30) as f64 / f64::from(1 << 30) * left;
        for (index, open) in self.open.iter().enumerate() {
            point -= open.1;
            if point < 0.0 {
                return index;
            }
        }
        self.open.len() - 1
    }
}

impl Iterator for Interleaved {
    type Item = (&'static Table, RecordBatch);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.open.is_empty() {
            let index = self.draw();
            let (table, left, batches) = &mut self.open[index];
            if let Some(batch) = batches.next() {
                *left = (*left - batch.num_rows() as f64).max(1.0);
                return Some((table, batch));
            }
            drop(self.open.remove(index));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaving_loses_no_row() {
        let tables: Vec<&'static Table> = TABLES.iter().collect();
        let mut rows = std::collections::BTreeMap::new();
        let mut switches = 0;
        let mut last = "";
        for (table, batch) in Interleaved::new(&tables, 0.001, 100, 7) {
            *rows.entry(table.name).or_insert(0) += batch.num_rows();
            switches += usize::from(table.name != last);
            last = table.name;
        }
        assert_eq!((rows["orders"], rows["lineitem"], rows["region"]), (1500, 6005, 5));
        assert!(switches > 20, "tables take turns");
    }
}
