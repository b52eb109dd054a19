//! The demo, into a pipe.

use crate::support::*;

#[test]
fn any_script_with_sources_and_views_is_a_demo() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("data")).unwrap();
    place.write("data/a.csv", (0..5_000).fold("id,kind\n".to_string(), |text, i| text + &format!("{i},k{}\n", i % 7)));
    place.write(
        "flights.sql",
        "CREATE SOURCE s WITH (connector = 'file', path = 'examples/data/a.csv', rate = 'max');\n\n\
         -- Which kinds are there? Few.\n\
         CREATE MATERIALIZED VIEW kinds AS SELECT kind, count(*) AS n FROM s GROUP BY kind;\n\n\
         CREATE MATERIALIZED VIEW top AS SELECT kind, max(id) AS id FROM s GROUP BY kind ORDER BY id DESC LIMIT 2;\n",
    );
    let ran = place.run(&["demo", "--data", "data"]);
    let out = ran.good();
    assert!(out.contains("path = 'data/a.csv'"), "the script is shown: {out}");
    assert!(out.contains("2 standing queries installed in "), "{out}");
    assert!(out.contains("Which kinds are there?  (kinds)\n kind |   n\n------+-----\n k0   | 715\n"), "{out}");
    assert!(out.contains("top\n kind |   id\n------+------\n k1   | 4999\n k0   | 4998\n(2 rows)\n"), "{out}");
    assert!(out.contains("5,000 rows of s in "), "{out}");
}

#[test]
fn a_demo_without_data_says_where_to_run_it() {
    let ran = Place::new().run(&["demo"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error: cannot read examples/flights.sql"), "{}", ran.err);
    assert!(ran.err.contains("hint: Run it from the root of the repository"), "{}", ran.err);
}
