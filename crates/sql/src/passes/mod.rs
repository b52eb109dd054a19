//! Every rewrite between text and plan, as tables: what is run, in the order in which it runs, and
//! why.
//!
//! ```text
//! syntax tree     tree     walks over the tree, each with its rewrites by part
//!   DataFusion resolves names; relations that it lacks are planned as extension nodes
//! logical plan    plan     steps over the plan; among them the two tables of `expr` over its expressions,
//!                          DataFusion's types, and its rules by the table in `plan::rules`
//! ```
//!
//! The tables are what the planner runs. Each entry has an example, a query over [`TABLES`], that
//! goes wrong when the entry is left out; a test of `anabranch-testing` answers each with and
//! without its entry.
//!
//! Law: a rewrite without a query that needs it has no place here.

pub(crate) mod expr;
pub(crate) mod pass;
pub(crate) mod plan;
pub(crate) mod tree;

pub use pass::{Loss, PassEntry};

/// The tables of the examples, with their rows.
pub const TABLES: &str = "
create table t (k integer, x integer, s text);
insert into t values (1, 10, 'a'), (1, 10, 'a'), (2, null, 'b'), (3, 30, null);
create table u (k integer, x integer);
insert into u values (1, 10), (2, 5), (4, null);
create table p (id integer primary key, x integer);
insert into p values (1, 10), (2, 20);
create table dept (id integer, name text);
insert into dept values (1, 'a'), (2, 'b');
create table emp (id integer, dept integer);
insert into emp values (7, 1), (8, 2);
create table codes (k integer, c char(5), j jsonb);
insert into codes values (1, 'x', '1');
create table w (k integer, m integer, f double precision, g double precision, r real, n numeric(10,2), d date,
  ts timestamp, tz timestamptz, j text, a integer[]);
insert into w values (-1, -2147483648, 2.5, 0.285, 0.1, 12.75, '2024-01-31', '2024-02-29 10:20:30.5',
  '2024-02-29 10:20:30.5+00', ' 42 ', '{1,2}');
create table lists (id integer primary key, s text, a integer[]);
insert into lists values (1, 'x', '{1,2}');
";

/// All rewrites, in the order in which they run.
pub fn described() -> Vec<PassEntry> {
    tree::described().into_iter().chain(plan::described()).collect()
}
