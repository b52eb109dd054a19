//! Sequences: numbers of clients beside each other, and databases that go on where they stood.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{Database, DatabaseOptions, DumpOptions, Options, Session, SourceRows, dump_on};

use crate::support::{ask, fail, lines, run};

fn open(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap()
}

#[test]
fn an_opened_database_gives_no_number_again() {
    let disk = SimulatedDisk::default();
    let mut session = open(&disk);
    run(
        &mut session,
        "CREATE SEQUENCE s START 10; CREATE SEQUENCE d INCREMENT -2; CREATE SEQUENCE gone;
         CREATE TABLE t (id bigint DEFAULT nextval('s'), n serial, v text);
         INSERT INTO t (v) VALUES ('a'), ('b');
         SELECT nextval('d'); SELECT nextval('t_n_seq'); ALTER SEQUENCE d INCREMENT -5; DROP SEQUENCE gone",
    );
    assert_eq!(ask(&mut session, "SELECT id, n FROM t ORDER BY id"), ["10 1", "11 2"]);
    drop(session);

    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SELECT nextval('s'), nextval('d')"), ["12 -6"]);
    run(&mut session, "INSERT INTO t (v) VALUES ('c')");
    assert_eq!(ask(&mut session, "SELECT id, n FROM t WHERE v = 'c'"), ["13 4"]);
    assert_eq!(fail(&mut session, "SELECT nextval('gone')").sqlstate(), "42P01");
    assert_eq!(fail(&mut session, "SELECT currval('d2')").sqlstate(), "42P01");
    drop(session);

    // A dump goes on, too.
    let mut script = Vec::new();
    dump_on(&disk, DumpOptions { sources: SourceRows::ReadAgain }, &mut script).unwrap();
    let script = String::from_utf8(script).unwrap();
    let mut copy = Session::new(Options::default()).unwrap();
    run(&mut copy, &script);
    assert_eq!(ask(&mut copy, "SELECT nextval('s'), nextval('d'), nextval('t_n_seq')"), ["14 -11 5"]);
}

#[test]
fn a_sequence_is_told_from_those_whose_names_hold_its_own() {
    let mut session = Session::new(Options::default()).unwrap();
    run(
        &mut session,
        "CREATE SEQUENCE s; CREATE SEQUENCE s_of_things;
         CREATE TABLE t (id bigint DEFAULT nextval('s_of_things'), v int); DROP SEQUENCE s;
         INSERT INTO t (v) SELECT n FROM generate_series(1, 5000) n",
    );
    assert_eq!(ask(&mut session, "SELECT count(DISTINCT id), min(id), max(id) FROM t"), ["5000 1 5000"]);
    assert_eq!(fail(&mut session, "DROP SEQUENCE s_of_things").sqlstate(), "2BP01");
    run(&mut session, "DROP SEQUENCE s_of_things CASCADE; INSERT INTO t (v) VALUES (0)");
    assert_eq!(ask(&mut session, "SELECT id FROM t WHERE v = 0"), ["null"]);
}

#[test]
fn clients_get_different_numbers_and_know_their_own() {
    let database = Database::open(DatabaseOptions::default()).unwrap();
    let mut first = database.connect().unwrap();
    first.execute("CREATE SEQUENCE s; CREATE TABLE t (id bigint DEFAULT nextval('s') PRIMARY KEY, c int)").unwrap();
    let clients = 4;
    let each = 50;
    let threads: Vec<_> = (0..clients)
        .map(|client| {
            let mut connection = database.connect().unwrap();
            std::thread::spawn(move || {
                for _ in 0..each {
                    connection.execute(&format!("INSERT INTO t (c) VALUES ({client})")).unwrap();
                    let own = lines(&connection.query("SELECT currval('s'), lastval()").unwrap());
                    let (current, last) = own[0].split_once(' ').unwrap();
                    assert_eq!(current, last);
                    let found = connection.query(&format!("SELECT c FROM t WHERE id = {current}")).unwrap();
                    assert_eq!(lines(&found), [client.to_string()]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let ids: BTreeSet<String> = lines(&first.query("SELECT id FROM t").unwrap()).into_iter().collect();
    assert_eq!(ids.len(), clients * each);
    // (No statement failed, so no number was lost.)
    assert_eq!(lines(&first.query("SELECT max(id) FROM t").unwrap()), [(clients * each).to_string()]);
    let mut other = database.connect().unwrap();
    assert_eq!(other.query("SELECT currval('s')").unwrap_err().sqlstate(), "55000");
}
