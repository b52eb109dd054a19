//! COPY of files: the line of a row that is refused.

use std::sync::Arc;

use anabranch_engine::{Options, Session};
use anabranch_file::FileConnector;

use crate::support::*;

#[test]
fn the_line_of_a_key_that_is_taken_is_told() {
    let folder = Folder::new();
    let mut session = Session::new(Options::default()).unwrap();
    session.register_connector("file", Arc::new(FileConnector));
    session.execute("CREATE TABLE t (k int PRIMARY KEY, s text UNIQUE); INSERT INTO t VALUES (5, 'old')").unwrap();
    let many: String = (10..9_000).map(|k| format!("{k},\n")).collect();
    let many = format!("k,s\n{many}5,\n");
    let cases = [
        ("a.csv", "k,s\n1,\"a\nb\"\n\n2,c\n2,d\n", "", 6),
        ("b.csv", "k,s\nx,a\n1,b\nx,c\n2,old\n", "WITH (on_error = 'skip')", 5),
        ("c.json", "{\"k\": 1}\n\n{\"k\": 1}\n", "", 3),
        ("d.txt", "1\ta\n1\tb\n", "", 2),
        ("e.csv", many.as_str(), "", 8992),
        ("f.csv", "k,s\n5,a\n", "", 2),
        ("g.csv", r"k,s|5,a|1,b|5,c|1,d|", "WHERE k < 5", 5),
    ];
    for (name, text, options, line) in cases {
        let path = folder.write(name, text.replace('|', "\n"));
        let error = session.execute(&format!("COPY t FROM '{path}' {options}")).unwrap_err();
        let place = format!("COPY t, line {line}");
        assert_eq!((error.sqlstate(), error.context()), ("23505", Some(place.as_str())), "{name}: {error:?}");
        assert!(error.detail.is_some(), "{error:?}");
    }
}
