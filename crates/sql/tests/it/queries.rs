//! What plans promise, beyond their text.

use anabranch_plan::{Node, Plan};
use anabranch_sql::ErrorKind;
use anabranch_sql::statement::ObjectKind;
use anabranch_sql::{Catalog, Relation};

use crate::support::TestCatalog;

const TABLES: &str = "
create table t (a bigint primary key, b integer, c text);
create table u (a bigint, b integer);
create view v (x, y) as select a, b + 1 from t;
create view w as select x from v where y > 1;
";

fn contains(plan: &Plan, part: &Plan) -> usize {
    usize::from(plan == part) + plan.inputs().iter().map(|input| contains(input, part)).sum::<usize>()
}

#[test]
fn the_top_limit_is_the_readers_in_a_query_and_the_plans_in_a_view() {
    let catalog = TestCatalog::of(TABLES);
    let text = "select a from t order by b limit 3";
    let planned = catalog.query(text).unwrap();
    assert_eq!((planned.finish.limit, planned.visible), (Some(3), 1));
    assert_eq!(planned.plan.schema.fields().len(), 2, "the order's column is there, invisible");
    let planned = catalog.view(text).unwrap();
    assert!(planned.finish.is_trivial());
    assert_eq!(planned.plan.schema.fields().len(), 1);
    assert!(matches!(&planned.plan.node, Node::Stage { input, .. } if matches!(input.node, Node::TopK { .. })));
    let planned = catalog.view("select a from t order by b").unwrap();
    assert!(matches!(planned.plan.node, Node::Scan { .. }), "an order alone means nothing to a view");
}

#[test]
fn equal_parts_are_equal_whatever_their_aliases() {
    let catalog = TestCatalog::of(TABLES);
    let planned = catalog
        .query("select p.n, q.m from (select c, count(*) as n from t x group by c) p join (select y.c, count(*) m from t y group by y.c) q on p.c = q.c")
        .unwrap();
    let Node::Join { left, right, .. } = &planned.plan.node else { panic!() };
    assert_eq!(left, right);
    let cte = catalog
        .query("with x as (select b, max(a) as m from t group by b) select * from x p, x q where p.m = q.b")
        .unwrap();
    let scan = catalog.query("select a, b from t").unwrap();
    assert_eq!(contains(&cte.plan, &scan.plan), 2);
}

#[test]
fn views_are_planned_in_place() {
    let catalog = TestCatalog::of(TABLES);
    let planned = catalog.query("select x from w").unwrap();
    assert_eq!(planned.plan.relations(), ["t"]);
    assert_eq!(planned.plan.schema.field(0).name(), "x");
}

#[test]
fn a_view_that_reaches_itself_is_refused() {
    let mut catalog = TestCatalog::of(TABLES);
    let w = catalog.relation("w").unwrap();
    catalog.add(Relation {
        name: "t".into(),
        kind: ObjectKind::View,
        watermark: None,
        watermark_relation: None,
        view_query: Some("select x as a, x as b, 'c' as c from w".into()),
        ..w
    });
    let error = catalog.query("select * from w").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("refers to itself"), "{error}");
}

#[test]
fn views_take_no_clock_and_no_chance() {
    let catalog = TestCatalog::of(TABLES);
    for text in [
        "select now() from t",
        "select a from t where random() > 0.5",
        "select current_date",
        "select a, (select now()) from t",
    ] {
        assert_eq!(catalog.view(text).unwrap_err().kind, ErrorKind::Unsupported, "{text}");
        catalog.query(text).unwrap();
    }
}

#[test]
fn a_view_has_no_column_twice() {
    let catalog = TestCatalog::of(TABLES);
    let error = catalog.view("select t.a, u.a from t join u on t.a = u.a").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Duplicate);
    catalog.query("select t.a, u.a from t join u on t.a = u.a").unwrap();
}

#[test]
fn names_are_unique_inside_a_plan() {
    let catalog = TestCatalog::of(TABLES);
    let planned =
        catalog.view("select x.a, y.a as a2, x.b + y.b as s from t x join t y on x.b = y.b and x.a < y.a").unwrap();
    fn check(plan: &Plan) {
        let names: Vec<_> = plan.schema.fields().iter().map(|f| f.name()).collect();
        assert!((1..names.len()).all(|n| !names[..n].contains(&names[n])), "{names:?}");
        assert!(plan.schema.iter().all(|(qualifier, _)| qualifier.is_none()));
        plan.inputs().iter().for_each(|input| check(input));
    }
    check(&planned.plan);
}
