//! Databases in folders: opened, checked, dumped.

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
