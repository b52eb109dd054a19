//! Programs in a database: what SQL sees, what changes with the facts, what is taken down.

use anabranch_datalog::{Program, Value};
use anabranch_engine::{Database, DatabaseOptions, Options, Session};

use crate::host::session;

const SIBLINGS: &str = ".decl parent(child: symbol, of: symbol)\n.input parent\n.decl Sibling(a: symbol, b: symbol)\n\
                        .output Sibling\nSibling(a, b) :- parent(a, p), parent(b, p), a != b.";

fn count(session: &mut Session, sql: &str) -> usize {
    session.query(sql).unwrap().num_rows()
}

#[test]
fn answers_are_views_that_follow_the_facts() {
    let mut session = session();
    let installed = Program::parse(SIBLINGS).unwrap().install(&mut session).unwrap();
    session.execute("INSERT INTO parent VALUES ('ann', 'eve'), ('bob', 'eve'), ('bob', 'eve')").unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM \"Sibling\" WHERE a = 'ann'"), 1);
    session.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM \"Sibling\"").unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM n WHERE n = 2"), 1);
    session.execute("DELETE FROM parent WHERE child = 'ann'").unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM n WHERE n = 0"), 1);
    let error = installed.clone().drop(&mut session).unwrap_err();
    assert!(error.message.contains("cannot be dropped"), "{error}");
    session.execute("DROP MATERIALIZED VIEW n").unwrap();
    installed.drop(&mut session).unwrap();
    assert!(session.relations().is_empty());
}

#[test]
fn a_relation_of_the_database_is_read_where_it_fits() {
    let mut session = session();
    session
        .execute("CREATE TABLE parent (c text, p text); INSERT INTO parent VALUES ('a', 'b'), ('c', 'b'), (NULL, 'b')")
        .unwrap();
    let program = Program::parse(SIBLINGS).unwrap();
    let installed = program.install(&mut session).unwrap();
    assert_eq!(installed.rows(&mut session, "Sibling").unwrap().len(), 2);
    installed.drop(&mut session).unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM parent"), 3, "the table is its user's");
    session.execute("DROP TABLE parent; CREATE TABLE parent (c int, p text)").unwrap();
    let error = program.install(&mut session).unwrap_err();
    assert!(error.message.contains("has not the type of attribute child"), "{error}");
    session.execute("DROP TABLE parent; CREATE TABLE \"Sibling\" (a int)").unwrap();
    let error = program.install(&mut session).unwrap_err();
    assert!(error.message.contains("already exists"), "{error}");
    assert_eq!(session.relations().len(), 1, "what was made before the failure is gone");
}

#[test]
fn smaller_numbers_of_a_table_are_numbers() {
    let mut session = session();
    session.execute("CREATE TABLE e (a int, b real); INSERT INTO e VALUES (1, 1.5), (2, 2.5)").unwrap();
    let text = ".decl e(a: number, b: float)\n.decl s(n: number, m: float)\ns(n, m) :- n = sum a : { e(a, _) }, m = max b : { e(_, b) }.";
    let installed = Program::parse(text).unwrap().install(&mut session).unwrap();
    assert_eq!(installed.rows(&mut session, "s").unwrap(), [[Value::from(3), Value::from(2.5)]]);
}

#[test]
fn a_connection_installs_programs_too() {
    let database = Database::open(DatabaseOptions::default()).unwrap();
    let mut connection = database.connect().unwrap();
    let installed = Program::parse(SIBLINGS).unwrap().install(&mut connection).unwrap();
    let fact = |child: &str| vec![Value::from(child), Value::from("eve")];
    installed.insert(&mut connection, "parent", &[fact("ann"), fact("bob")]).unwrap();
    assert_eq!(connection.query("SELECT * FROM \"Sibling\"").unwrap().num_rows(), 2);
    installed.delete(&mut connection, "parent", &[fact("ann")]).unwrap();
    assert!(installed.rows(&mut connection, "Sibling").unwrap().is_empty());
    installed.drop(&mut connection).unwrap();
}

#[test]
fn a_view_of_a_program_does_not_hide_rows_of_an_open_transaction() {
    let mut session = session();
    Program::parse(SIBLINGS).unwrap().install(&mut session).unwrap();
    session.execute("BEGIN; INSERT INTO parent VALUES ('ann', 'eve'), ('bob', 'eve')").unwrap();
    let error = session.query("SELECT * FROM \"Sibling\"").unwrap_err();
    assert!(error.message.contains("has not seen this transaction's rows"), "{error}");
    session.execute("ROLLBACK").unwrap();
    session.execute("BEGIN").unwrap();
    let error = Program::parse(SIBLINGS).unwrap().install(&mut session).unwrap_err();
    assert!(error.sqlstate() == "25001", "{error}");
}

#[test]
fn facts_of_a_relation_with_rules_have_a_table_beside() {
    let mut session = session();
    let text = ".decl a(x: number)\n.input a\na(1).\na(x) :- b(x).\n.decl b(x: number)\nb(5).";
    let installed = Program::parse(text).unwrap().install(&mut session).unwrap();
    session.execute("INSERT INTO a_input VALUES (7); INSERT INTO b VALUES (6)").unwrap();
    let rows = installed.rows(&mut session, "a").unwrap();
    assert_eq!(rows, [1, 5, 6, 7].map(|n| vec![Value::from(n)]));
    let error = installed.insert(&mut session, "b", &[vec![Value::from("x")]]).unwrap_err();
    assert!(error.message.contains("another type"), "{error}");
}

#[test]
fn long_chains_of_relations_are_cut_into_views() {
    let chain: String = (1..200).map(|i| format!(".decl r{i}(x: number)\nr{i}(x) :- r{}(x).\n", i - 1)).collect();
    let text = format!(".decl r0(x: number)\nr0(1).\n{chain}.output r199");
    let mut session = session();
    let installed = Program::parse(&text).unwrap().install(&mut session).unwrap();
    assert_eq!(installed.rows(&mut session, "r199").unwrap().len(), 1);
    let body: String = (0..99).map(|i| format!("r0(x{i}), ")).collect();
    let wide = format!(".decl r0(x: number)\nr0(1).\n.decl w(x: number)\nw(x0) :- {body}true.");
    let installed = Program::parse(&wide).unwrap();
    let mut other = crate::host::session();
    let installed = installed.install(&mut other).unwrap();
    assert_eq!(installed.rows(&mut other, "w").unwrap().len(), 1);
}

#[test]
fn a_chain_of_many_rounds_is_cut_and_mended() {
    const CHAIN: &str = ".decl edge(a: number, b: number)\n.input edge\n.decl reached(n: number)\n.output reached\n\
                         reached(0).\nreached(b) :- reached(a), edge(a, b).";
    let mut session = Session::new(Options::default()).unwrap();
    Program::parse(CHAIN).unwrap().install(&mut session).unwrap();
    session.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM reached").unwrap();
    session
        .execute("INSERT INTO edge SELECT n, n + 1 FROM (SELECT unnest(generate_series(0, 99998)) AS n) AS numbers")
        .unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM n WHERE n = 100000"), 1);
    session.execute("DELETE FROM edge WHERE a = 99000").unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM n WHERE n = 99001"), 1);
    session.execute("INSERT INTO edge VALUES (7, 99001)").unwrap();
    assert_eq!(count(&mut session, "SELECT * FROM n WHERE n = 100000"), 1);
}
