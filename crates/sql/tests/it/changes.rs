//! INSERT, DELETE and UPDATE plan to rows of the table's own columns and types.

use anabranch_plan::explain::explain;
use anabranch_plan::{Node, Plan};
use anabranch_sql::statement::Statement;
use anabranch_sql::{ErrorKind, Planned, Planner, Result, parse};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

use crate::support::{NOW, TestCatalog};

const TABLES: &str = "
create table t (a bigint primary key, b integer default 7, c text default 'none', d numeric(10,2), e date, at timestamp default now());
create table s (x integer, y text);
create view v as select a from t;
";

fn plan(text: &str) -> Result<Planned> {
    let catalog = TestCatalog::of(TABLES);
    let planner = Planner::as_of(&catalog, NOW);
    match parse(text)?.remove(0).statement {
        Statement::Insert(insert) => planner.plan_insert(&insert),
        Statement::Delete(delete) => planner.plan_delete(&delete),
        Statement::Update(update) => planner.plan_update(&update),
        other => panic!("{other:?}"),
    }
}

fn types(plan: &Plan) -> Vec<DataType> {
    plan.schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

fn row_types() -> Vec<DataType> {
    let catalog = TestCatalog::of(TABLES);
    let table = anabranch_sql::Catalog::relation(&catalog, "t").unwrap();
    table.schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

#[test]
fn values_become_constant_rows_of_the_tables_types() {
    let planned =
        plan("insert into t (a, d, e) values (1, '2.345', '2024-01-31'), (2, null, null), (3.5, 4, date '2020-02-02')")
            .unwrap();
    assert_eq!(types(&planned.plan), row_types());
    let text = explain(&planned.plan, &|_| None);
    let Node::Constant { rows } = &planned.plan.node else { panic!("{text}") };
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0][0], ScalarValue::Int64(Some(1)));
    assert_eq!(rows[0][1], ScalarValue::Int32(Some(7)));
    assert_eq!(rows[0][2], ScalarValue::Utf8View(Some("none".into())));
    assert_eq!(rows[0][3], ScalarValue::Decimal128(Some(235), 10, 2));
    assert_eq!(rows[0][5], ScalarValue::TimestampMicrosecond(Some(NOW), None));
    assert_eq!(rows[2][0], ScalarValue::Int64(Some(4)), "a fraction is rounded");
}

#[test]
fn default_can_be_written() {
    let planned = plan("insert into t values (1, default, default), (2, 3, 'x')").unwrap();
    let Node::Constant { rows } = &planned.plan.node else { panic!() };
    assert_eq!(rows[0][1], ScalarValue::Int32(Some(7)));
    assert_eq!(rows[1][2], ScalarValue::Utf8View(Some("x".into())));
    assert!(rows[1][3].is_null());
}

#[test]
fn a_query_can_be_inserted() {
    let planned = plan("insert into t (c, a) select y, x from s where x > 3 order by x limit 2").unwrap();
    assert_eq!(types(&planned.plan), row_types());
    assert!(planned.finish.is_trivial());
    assert!(explain(&planned.plan, &|_| None).contains("TopK 2 order by x"));
}

#[test]
fn delete_yields_whole_rows() {
    let planned = plan("delete from t where b in (select x from s)").unwrap();
    assert_eq!(types(&planned.plan), row_types());
    let planned = plan("delete from t").unwrap();
    assert!(matches!(planned.plan.node, Node::Scan { .. }));
}

#[test]
fn update_yields_old_columns_then_new_columns() {
    let planned = plan("update t set b = b * 2.6, c = default, d = (select max(x) from s) where a < 5").unwrap();
    let twice: Vec<DataType> = row_types().into_iter().chain(row_types()).collect();
    assert_eq!(types(&planned.plan), twice);
    let planned = plan("update t set a = a + 1").unwrap();
    assert_eq!(types(&planned.plan), twice);
}

#[test]
fn wrong_changes_are_refused() {
    for (text, kind, message) in [
        ("insert into nothing values (1)", ErrorKind::UnknownName, "relation \"nothing\" does not exist"),
        ("insert into v values (1)", ErrorKind::Invalid, "cannot INSERT into \"v\": it is a view"),
        ("insert into t (a, zz) values (1, 2)", ErrorKind::UnknownName, "column \"zz\" of table \"t\" does not exist"),
        ("insert into t (a, a) values (1, 2)", ErrorKind::Duplicate, "column \"a\" specified more than once"),
        ("insert into s values (1, 'x', 3)", ErrorKind::Invalid, "INSERT has more expressions than target columns"),
        ("insert into s (x, y) values (1)", ErrorKind::Invalid, "INSERT has more target columns than expressions"),
        ("insert into s values (1), (2, 'x')", ErrorKind::Syntax, "VALUES lists must all be the same length"),
        (
            "insert into t (a, e) values (1, true)",
            ErrorKind::Type,
            "column \"e\" is of type date but expression is of type boolean",
        ),
        ("update t set zz = 1", ErrorKind::UnknownName, "column \"zz\" of table \"t\" does not exist"),
        ("update v set a = 1", ErrorKind::Invalid, "cannot UPDATE \"v\": it is a view"),
        ("delete from v", ErrorKind::Invalid, "cannot DELETE from \"v\": it is a view"),
        ("delete from t where zz", ErrorKind::UnknownName, "column \"zz\" does not exist"),
    ] {
        let error = plan(text).map(|p| explain(&p.plan, &|_| None)).expect_err(text);
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{text}");
    }
}
