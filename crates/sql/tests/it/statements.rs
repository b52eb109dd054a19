//! Every statement parses to what it means, and what cannot work is refused with the way out.

use anabranch_sql::statement::{CopyEnd, ObjectKind, Show, Statement};
use anabranch_sql::{ErrorKind, parse};
use arrow::datatypes::{DataType, TimeUnit};

fn one(text: &str) -> Statement {
    let mut parsed = parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    assert_eq!(parsed.len(), 1, "{text}");
    parsed.remove(0).statement
}

#[test]
fn a_table_has_columns_types_defaults_and_a_key() {
    let text = "CREATE TABLE IF NOT EXISTS public.T (Id bigint, \"Name\" varchar(20) NOT NULL DEFAULT 'x', at timestamptz, \
                price numeric(10,2) DEFAULT 0, d double precision, PRIMARY KEY (id, at)) WITH (retain = 'all', 'Batch.Rows' = 10)";
    let Statement::CreateTable(table) = one(text) else { panic!() };
    assert_eq!(table.name, "t");
    assert!(table.if_not_exists);
    let names: Vec<&str> = table.columns.iter().map(|c| c.name().as_str()).collect();
    assert_eq!(names, ["id", "Name", "at", "price", "d"]);
    assert_eq!(table.columns[1].data_type(), &DataType::Utf8View);
    assert_eq!(table.columns[2].data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    assert_eq!(table.columns[3].data_type(), &DataType::Decimal128(10, 2));
    let nullable: Vec<bool> = table.columns.iter().map(|c| c.is_nullable()).collect();
    assert_eq!(nullable, [false, false, false, true, true]);
    assert_eq!(table.primary_key, [0, 2]);
    assert_eq!(table.defaults.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, true, false]);
    assert_eq!(table.options, [("retain".into(), "all".into()), ("batch.rows".into(), "10".into())]);
}

#[test]
fn a_source_takes_options_in_any_spelling() {
    let Statement::CreateSource(source) =
        one("create source f with (connector = 'file', path '/x y.csv', Format = csv, header, rate = -1.5)")
    else {
        panic!()
    };
    assert!(source.columns.is_empty());
    let options: Vec<(&str, &str)> = source.options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        options,
        [("connector", "file"), ("path", "/x y.csv"), ("format", "csv"), ("header", "true"), ("rate", "-1.5")]
    );
}

#[test]
fn a_view_keeps_its_text() {
    let text = "create or replace materialized view v (x, y) as  select a, 'as' from t -- end\n;";
    let Statement::CreateView(view) = one(text) else { panic!() };
    assert!(view.materialized && view.or_replace && !view.if_not_exists);
    assert_eq!(view.column_names, ["x", "y"]);
    assert_eq!(view.query_text, "select a, 'as' from t");
}

#[test]
fn an_index_may_go_without_a_name() {
    let Statement::CreateIndex(index) = one("create index on t (a, \"B\")") else { panic!() };
    assert_eq!((index.name, index.relation.as_str()), (None, "t"));
    assert_eq!(index.columns, ["a", "B"]);
    let Statement::CreateIndex(index) = one("create index if not exists i on t using btree (a desc)") else { panic!() };
    assert_eq!(index.name.as_deref(), Some("i"));
}

#[test]
fn an_index_on_an_expression_has_parts() {
    let Statement::CreateIndex(index) = one("create index i on t (lower(t.name) desc, (a + b), c)") else { panic!() };
    assert!(index.columns.is_empty());
    let parts: Vec<String> = index.parts.iter().map(ToString::to_string).collect();
    assert_eq!(parts, ["lower(name)", "((a + b))", "c"]);
}

#[test]
fn changes_parse() {
    let Statement::Insert(insert) = one("insert into t (a, b) values (1, default), (2, 'x')") else { panic!() };
    assert_eq!((insert.table.as_str(), insert.columns.len()), ("t", 2));
    let Statement::Update(update) = one("update t set a = a + 1, b = default where c is null") else { panic!() };
    assert_eq!(update.assignments.len(), 2);
    assert!(update.selection.is_some());
    let Statement::Delete(delete) = one("delete from t") else { panic!() };
    assert!(delete.selection.is_none());
    let Statement::CopyFrom(copy) =
        one("copy t (a, b) from '/tmp/x.csv' with (format csv, header true, delimiter '|', null '')")
    else {
        panic!()
    };
    assert_eq!(copy.from, CopyEnd::Path("/tmp/x.csv".into()));
    assert_eq!(copy.options.plain[3], ("null".to_string(), String::new()));
    let Statement::CopyFrom(copy) = one("copy t from stdin csv header") else { panic!() };
    assert_eq!(copy.from, CopyEnd::Client);
    assert_eq!(copy.options.plain.len(), 2);
}

#[test]
fn questions_parse() {
    for text in
        ["select 1", "with x as (select 1) select * from x", "values (1)", "table t", "(select 1) union (select 2)"]
    {
        let Statement::Select { text: kept, .. } = one(text) else { panic!("{text}") };
        assert_eq!(kept, text);
    }
    let Statement::Subscribe(subscribe) = one("subscribe to v with (snapshot = false, progress) up to 17") else {
        panic!()
    };
    assert!(!subscribe.snapshot && subscribe.progress);
    assert_eq!(subscribe.up_to, Some(17));
    assert_eq!(subscribe.query.to_string(), "SELECT * FROM \"v\"");
    let Statement::Subscribe(subscribe) = one("subscribe (select a from t)") else { panic!() };
    assert!(subscribe.snapshot && !subscribe.progress);
    for text in ["explain select 1", "explain (costs off) select 1", "explain v", "explain create view x as select 1"] {
        assert!(matches!(one(text), Statement::Explain(_)), "{text}");
    }
}

#[test]
fn show_describe_drop_and_set_parse() {
    let show = |text: &str| match one(text) {
        Statement::Show(show) => show,
        other => panic!("{other:?}"),
    };
    assert_eq!(show("show tables"), Show::Tables);
    assert_eq!(show("show materialized views"), Show::MaterializedViews);
    assert_eq!(show("show indexes on t"), Show::Indexes { on: Some("t".into()) });
    assert_eq!(show("show indexes"), Show::Indexes { on: None });
    assert_eq!(show("show columns from t"), Show::Columns { relation: "t".into() });
    assert_eq!(show("show create materialized view v"), Show::Create { relation: "v".into() });
    assert_eq!(show("show all"), Show::Setting { name: None });
    assert_eq!(show("show latency"), Show::Setting { name: Some("latency".into()) });
    assert!(matches!(one("describe t"), Statement::Describe { name } if name == "t"));
    let Statement::Drop(drop) = one("drop materialized view if exists a, b cascade") else { panic!() };
    assert_eq!(drop.kind, ObjectKind::MaterializedView);
    assert!(drop.if_exists && drop.cascade);
    assert_eq!(drop.names, ["a", "b"]);
    assert!(
        matches!(one("set latency = '10s'"), Statement::Set { name, value: Some(value), .. } if name == "latency" && value == "10s")
    );
    assert!(matches!(one("set latency to 5"), Statement::Set { value: Some(value), .. } if value == "5"));
}

#[test]
fn what_cannot_work_names_the_way_out() {
    for (text, word) in [
        ("alter schema s rename to t", "sequences can be altered"),
        ("alter table t add foreign key (a) references u (a) on update set default", "SET NULL"),
        ("create trigger x after insert on t execute function f()", "SUBSCRIBE"),
        ("create sink s from v with (a = b)", "SUBSCRIBE"),
        ("create unique index on t (lower(a))", "GENERATED ALWAYS AS"),
        ("insert or replace into t values (1)", "ON CONFLICT (key) DO UPDATE"),
        ("insert or ignore into t values (1)", "ON CONFLICT DO NOTHING"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.kind, ErrorKind::Unsupported, "{text}: {error}");
        let hint = error.hint.clone().unwrap_or_default();
        assert!(hint.contains(word), "{text}: {hint}");
    }
}

#[test]
fn syntax_errors_have_a_place() {
    for (text, message, position) in [
        ("select * frm t", "syntax error at or near \"t\"", 13),
        ("selekt 1", "syntax error at or near \"selekt\"", 0),
        ("select 1;\n  select (", "syntax error at end of input", 20),
        ("create table t (a int,)", "syntax error at or near \")\"", 22),
        ("create tabel t (a int)", "syntax error at or near \"tabel\"", 7),
        ("select 'abc", "unterminated quoted string", 7),
        ("select 1; select 2 /* abc; select 3", "unterminated /* comment", 19),
        ("select $x$ abc", "unterminated dollar-quoted string", 7),
        ("create table t (a int, a text)", "column \"a\" is specified more than once", 23),
        ("drop t", "syntax error at or near \"t\"", 5),
        ("select 1 1", "syntax error at or near \"1\"", 9),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!((error.message.as_str(), error.position), (message, Some(position)), "{text}");
    }
}

#[test]
fn syntax_errors_have_hints() {
    for (text, hint) in [("select * form t", "FROM"), ("select `id` from t", "double quotes")] {
        let error = parse(text).expect_err(text);
        assert!(error.hint.clone().unwrap_or_default().contains(hint), "{text}: {error:?}");
    }
}

#[test]
fn a_script_is_parsed_statement_by_statement() {
    let text = "create table t (a int); -- one\ninsert into t values (1);\nselect ';' from t";
    let parsed = parse(text).unwrap();
    let pieces: Vec<&str> = parsed.iter().map(|p| &text[p.range.clone()]).collect();
    assert_eq!(pieces, ["create table t (a int)", "insert into t values (1)", "select ';' from t"]);
    assert!(parse(" ;; -- nothing\n").unwrap().is_empty());
}
