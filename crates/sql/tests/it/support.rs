//! A catalog made of statements, and golden files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anabranch_plan::explain::{explain, order};
use anabranch_sql::statement::{ObjectKind, Statement};
use anabranch_sql::{Catalog, Planned, Planner, Relation, Result, parse, planned_columns};
use arrow::datatypes::Schema;

/// A fixed present: 2024-02-29 12:00:00 UTC.
pub const NOW: i64 = 1_709_208_000_000_000;

/// Relations by name.
#[derive(Default)]
pub struct TestCatalog {
    relations: BTreeMap<String, Relation>,
    defaults: BTreeMap<String, Vec<Option<anabranch_sql::ast::Expr>>>,
}

impl Catalog for TestCatalog {
    fn relation(&self, name: &str) -> Option<Relation> {
        self.relations.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.relations.keys().cloned().collect()
    }

    fn defaults(&self, table: &str) -> Vec<Option<anabranch_sql::ast::Expr>> {
        self.defaults.get(table).cloned().unwrap_or_default()
    }

    /// A table is indexed by its primary key, as in a session.
    fn is_indexed(&self, relation: &str, columns: &[usize]) -> bool {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        self.relations.get(relation).is_some_and(|relation| {
            let mut key = relation.primary_key.clone();
            key.sort_unstable();
            !key.is_empty() && key == columns
        })
    }
}

impl TestCatalog {
    /// Runs `CREATE TABLE`, `CREATE VIEW` and `CREATE MATERIALIZED VIEW` statements.
    pub fn of(script: &str) -> Self {
        let mut catalog = Self::default();
        for parsed in parse(script).unwrap() {
            catalog.apply(parsed.statement);
        }
        catalog
    }

    pub fn apply(&mut self, statement: Statement) {
        match statement {
            Statement::CreateTable(table) => {
                self.defaults.insert(table.name.clone(), table.defaults);
                let holder = table.watermark.as_ref().map(|_| format!("watermark of {}", table.name));
                if let (Some(name), Some(watermark)) = (&holder, &table.watermark) {
                    let of_column = table.columns.iter().find(|column| *column.name() == watermark.column);
                    let column = of_column.unwrap().clone().with_name("watermark");
                    self.add(Relation {
                        name: name.clone(),
                        kind: ObjectKind::Table,
                        schema: Arc::new(Schema::new(vec![column])),
                        primary_key: vec![],
                        watermark: None,
                        watermark_relation: None,
                        view_query: None,
                    });
                }
                self.add(Relation {
                    name: table.name,
                    kind: ObjectKind::Table,
                    schema: planned_columns(&Arc::new(Schema::new(table.columns))),
                    primary_key: table.primary_key,
                    watermark: table.watermark,
                    watermark_relation: holder,
                    view_query: None,
                });
            }
            Statement::CreateView(view) => {
                let planned = Planner::as_of(self, NOW).plan_create_view(&view).unwrap();
                self.add(Relation {
                    name: view.name,
                    kind: if view.materialized { ObjectKind::MaterializedView } else { ObjectKind::View },
                    schema: planned.plan.arrow_schema(),
                    primary_key: vec![],
                    watermark: None,
                    watermark_relation: None,
                    view_query: (!view.materialized).then_some(view.query_text),
                });
            }
            other => panic!("not for a catalog: {other:?}"),
        }
    }

    pub fn add(&mut self, relation: Relation) {
        self.relations.insert(relation.name.clone(), relation);
    }

    pub fn remove(&mut self, name: &str) {
        let holder = self.relations.remove(name).and_then(|relation| relation.watermark_relation);
        holder.iter().for_each(|name| self.remove(name));
    }

    pub fn query(&self, text: &str) -> Result<Planned> {
        match parse(text)?.pop().unwrap().statement {
            Statement::Select { query, .. } => Planner::as_of(self, NOW).plan_query(&query),
            other => panic!("not a query: {other:?}"),
        }
    }

    pub fn view(&self, text: &str) -> Result<Planned> {
        match parse(text)?.pop().unwrap().statement {
            Statement::Select { query, .. } => Planner::as_of(self, NOW).plan_view(&query),
            other => panic!("not a query: {other:?}"),
        }
    }

    /// The plan of a query as text, with what is left to its reader.
    pub fn show(&self, text: &str) -> String {
        match self.query(text) {
            Ok(planned) => shown(&planned),
            Err(error) => error.render(text) + "\n",
        }
    }
}

pub fn shown(planned: &Planned) -> String {
    let mut out = String::new();
    let fields = planned.plan.schema.fields();
    let names: Vec<&str> = fields.iter().take(planned.visible).map(|f| f.name().as_str()).collect();
    out.push_str(&format!("-> {}\n", names.join(", ")));
    let finish = &planned.finish;
    if !finish.is_trivial() {
        let limit = finish.limit.map(|n| format!(" limit {n}")).unwrap_or_default();
        let offset = if finish.offset > 0 { format!(" offset {}", finish.offset) } else { String::new() };
        let keys = order(&planned.plan.schema, &finish.order);
        out.push_str(&format!("Finish order by {keys}{limit}{offset}\n"));
    }
    out + &explain(&planned.plan, &|_| None)
}

/// Compares with a file under `tests/plans`; `UPDATE=1` rewrites it.
pub fn golden(name: &str, actual: &str) {
    let path = PathBuf::from("tests/plans").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs; run with UPDATE=1 and read the diff. It is now:\n{actual}",
        path.display()
    );
}

/// The eight tables of TPC-H.
pub const TPCH: &str = "
create table region (r_regionkey bigint primary key, r_name text not null, r_comment text);
create table nation (n_nationkey bigint primary key, n_name text not null, n_regionkey bigint not null, n_comment text);
create table supplier (s_suppkey bigint primary key, s_name text not null, s_address text not null, s_nationkey bigint not null,
  s_phone text not null, s_acctbal numeric(15,2) not null, s_comment text not null);
create table customer (c_custkey bigint primary key, c_name text not null, c_address text not null, c_nationkey bigint not null,
  c_phone text not null, c_acctbal numeric(15,2) not null, c_mktsegment text not null, c_comment text not null);
create table part (p_partkey bigint primary key, p_name text not null, p_mfgr text not null, p_brand text not null,
  p_type text not null, p_size integer not null, p_container text not null, p_retailprice numeric(15,2) not null, p_comment text not null);
create table partsupp (ps_partkey bigint not null, ps_suppkey bigint not null, ps_availqty integer not null,
  ps_supplycost numeric(15,2) not null, ps_comment text not null, primary key (ps_partkey, ps_suppkey));
create table orders (o_orderkey bigint primary key, o_custkey bigint not null, o_orderstatus text not null,
  o_totalprice numeric(15,2) not null, o_orderdate date not null, o_orderpriority text not null, o_clerk text not null,
  o_shippriority integer not null, o_comment text not null);
create table lineitem (l_orderkey bigint not null, l_partkey bigint not null, l_suppkey bigint not null, l_linenumber integer not null,
  l_quantity numeric(15,2) not null, l_extendedprice numeric(15,2) not null, l_discount numeric(15,2) not null,
  l_tax numeric(15,2) not null, l_returnflag text not null, l_linestatus text not null, l_shipdate date not null,
  l_commitdate date not null, l_receiptdate date not null, l_shipinstruct text not null, l_shipmode text not null,
  l_comment text not null, primary key (l_orderkey, l_linenumber));
";
