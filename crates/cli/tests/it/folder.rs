//! Databases in folders: opened, checked, dumped.

use std::sync::Arc;

use anabranch_engine::store::{LocalDisk, Store, StoreOptions};

use crate::support::Place;

#[test]
fn a_folder_holds_what_was_done_before() {
    let place = Place::new();
    place.run(&["shop", "-c", "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)"]).good();
    place.run(&["shop", "-c", "CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS s FROM t"]).good();
    assert_eq!(
        place.run(&["shop", "--csv", "-c", "SELECT * FROM t ORDER BY a; SELECT * FROM m"]).good(),
        "a,b\n1,x\n2,\ns\n3\n"
    );
    let checked = place.run(&["check", "shop"]);
    assert!(checked.good().starts_with("shop is sound\n"), "{}", checked.out);
    assert!(checked.out.contains("2 rows  CREATE TABLE t"), "{}", checked.out);
}

#[test]
fn a_source_goes_on_where_it_was() {
    let place = Place::new();
    place.write("in.csv", "a\n1\n2\n3\n");
    place
        .run(&[
            "shop",
            "-c",
            "CREATE SOURCE s WITH (connector = 'file', path = 'in.csv')",
            "-c",
            "SELECT count(*) FROM s",
        ])
        .good();
    std::fs::remove_file(place.path().join("in.csv")).unwrap();
    // Read to its end: the file is needed no more.
    assert_eq!(place.run(&["shop", "--csv", "-c", "SELECT sum(a) AS a FROM s"]).good(), "a\n6\n");
}

#[test]
fn a_dump_makes_the_database_again() {
    let place = Place::new();
    place.write("in.csv", "a,w\n1,x\n2,y\n");
    let make = "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'it''s'), (2, NULL);
        CREATE SOURCE s WITH (connector = 'file', path = 'in.csv'); CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS s FROM s";
    place.run(&["shop", "-q", "-c", make, "-c", "SELECT * FROM m"]).good();
    place.run(&["dump", "shop", "-o", "shop.sql"]).good();
    place.run(&["copy", "-q", "-f", "shop.sql"]).good();
    let ask = ["--csv", "-c", "SELECT * FROM t ORDER BY a; SELECT * FROM m; SELECT * FROM s ORDER BY a"];
    let asked = |folder: &str| place.run(&[&[folder], &ask[..]].concat()).good().to_string();
    assert_eq!(asked("copy"), asked("shop"));
    let tables = place.run(&["dump", "shop", "--sources-as-tables"]);
    place.write("tables.sql", tables.good());
    std::fs::remove_file(place.path().join("in.csv")).unwrap();
    place.run(&["third", "-q", "-f", "tables.sql"]).good();
    assert_eq!(asked("third"), asked("shop"));
}

#[test]
fn a_damaged_file_is_named() {
    let place = Place::new();
    place
        .run(&["shop", "-q", "-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"])
        .good();
    let log = place.path().join("shop/000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    for arguments in [&["check", "shop"][..], &["dump", "shop"], &["shop", "-c", "SELECT 1"]] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("file 000001.log of the database in shop is damaged at byte"), "{}", ran.err);
    }
}

#[test]
fn a_folder_that_is_no_database_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("letters")).unwrap();
    place.write("letters/a.txt", "dear");
    assert!(place.run(&["letters", "-c", "SELECT 1"]).err.contains("letters is not a database: it holds a.txt"));
    assert_eq!(place.run(&["check", "nowhere"]).code, 1);
    assert!(!place.path().join("nowhere").exists());
}

/// Writes a snapshot, as the engine does when the log has grown.
fn write_snapshot(place: &Place, folder: &str) {
    let disk = LocalDisk::existing(&place.path().join(folder)).unwrap();
    let (store, _) = Store::open(Arc::new(disk), StoreOptions::default()).unwrap();
    store.snapshot().unwrap();
    store.close().unwrap();
}

#[test]
fn a_database_is_restored_from_its_snapshots_alone() {
    let place = Place::new();
    let url = format!("file://{}", place.path().join("backup").display());
    let make = "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL);
        CREATE MATERIALIZED VIEW m AS SELECT sum(a) AS s FROM t; CREATE VIEW v AS SELECT s + 1 AS s FROM m";
    place.run(&["shop", "--snapshots", &url, "-q", "-c", make]).good();
    write_snapshot(&place, "shop");
    place.run(&["shop", "-q", "-c", "INSERT INTO t VALUES (100, 'behind the snapshot')"]).good();
    std::fs::remove_dir_all(place.path().join("shop")).unwrap();
    let restored = place.run(&["restore", &url, "again"]);
    assert!(restored.good().starts_with(&format!("again is restored from snapshot 1 in {url}/")), "{}", restored.out);
    assert!(restored.out.contains("is not there"), "{}", restored.out);
    let ask = ["again", "--csv", "-c", "INSERT INTO t VALUES (4, 'y'); SELECT * FROM v; SELECT count(*) FROM t"];
    assert!(place.run(&ask).good().ends_with("s\n8\ncount\n3\n"));
    // What is there stays.
    let refused = place.run(&["restore", &url, "again"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("again holds a database, and nothing is put in its place"), "{}", refused.err);
    assert_eq!(place.run(&["again", "--csv", "-c", "SELECT s FROM m"]).good(), "s\n7\n");
    // A place that has nothing, and a damaged snapshot.
    let nowhere = place.run(&["restore", &format!("{url}/nowhere"), "third"]);
    assert!(nowhere.err.contains("there is nothing"), "{}", nowhere.err);
    assert!(!place.path().join("third").exists() && !place.path().join("backup/nowhere").exists());
    let name = std::fs::read_dir(place.path().join("backup")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(name.join("000001.snapshot")).unwrap();
    bytes[100] ^= 1;
    std::fs::write(name.join("000001.snapshot"), bytes).unwrap();
    let damaged = place.run(&["restore", &url, "third"]);
    assert_eq!(damaged.code, 1);
    assert!(damaged.err.contains("snapshot 000001.snapshot in file://"), "{}", damaged.err);
    assert!(damaged.err.contains("There is none before it."), "{}", damaged.err);
    // The folder of a database has more than its snapshot.
    let folder = format!("file://{}", place.path().join("again").display());
    let refused = place.run(&["restore", &folder, "third"]);
    assert!(refused.err.contains("it is the folder of a database"), "{}", refused.err);
}
