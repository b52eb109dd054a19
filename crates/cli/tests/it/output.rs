//! The formats.

use crate::support::*;

const VALUES: &str = "SELECT * FROM (VALUES (1, 2.50, 'a, \"b\"', DATE '2013-01-01', true), \
                      (20, -1.00, NULL, NULL, false), (3, NULL, '', DATE '2000-02-29', NULL)) AS t(n, d, s, day, ok) ORDER BY n";

#[test]
fn tables_are_aligned() {
    let expected = "
  n |     d | s      | day        | ok
----+-------+--------+------------+-------
  1 |  2.50 | a, \"b\" | 2013-01-01 | true
  3 |  NULL |        | 2000-02-29 | NULL
 20 | -1.00 | NULL   | NULL       | false
(3 rows)
";
    assert_eq!(Place::new().run(&["-c", VALUES]).good(), &expected[1..]);
}

#[test]
fn csv_tells_null_from_empty() {
    assert_eq!(
        Place::new().run(&["--csv", "-c", VALUES]).good(),
        "n,d,s,day,ok\n1,2.50,\"a, \"\"b\"\"\",2013-01-01,true\n3,,\"\",2000-02-29,\n20,-1.00,,,false\n"
    );
}

#[test]
fn json_comes_as_an_array_or_as_lines() {
    let first = "{\"n\":1,\"d\":2.50,\"s\":\"a, \\\"b\\\"\",\"day\":\"2013-01-01\",\"ok\":true}";
    let second = "{\"n\":3,\"d\":null,\"s\":\"\",\"day\":\"2000-02-29\",\"ok\":null}";
    let third = "{\"n\":20,\"d\":-1.00,\"s\":null,\"day\":null,\"ok\":false}";
    let place = Place::new();
    assert_eq!(place.run(&["--json", "-c", VALUES]).good(), format!("[{first},\n {second},\n {third}]\n"));
    assert_eq!(place.run(&["--format", "jsonl", "-c", VALUES]).good(), format!("{first}\n{second}\n{third}\n"));
    assert_eq!(place.run(&["--json", "-c", "SELECT 1 AS a WHERE false"]).good(), "[]\n");
}

#[test]
fn markdown_is_a_table() {
    assert_eq!(
        Place::new().run(&["--markdown", "-c", "SELECT 1 AS n, 'a|b' AS s"]).good(),
        "| n | s |\n|---:|---|\n| 1 | a\\|b |\n"
    );
}

#[test]
fn plain_values_have_tabs_between_them() {
    let sql = "SELECT 1 AS n, 'a b' AS s UNION ALL SELECT 2, NULL ORDER BY n";
    assert_eq!(Place::new().run(&["--format", "plain", "-c", sql]).good(), "1\ta b\n2\t\n");
}

#[test]
fn times_print_as_in_postgresql() {
    let sql = "SELECT TIMESTAMP '2013-01-01 05:15:00.5' AS a, TIME '05:15:00' AS b, INTERVAL '1 day 2 hours' AS c";
    assert_eq!(
        Place::new().run(&["--csv", "-c", sql]).good(),
        "a,b,c\n2013-01-01 05:15:00.5,05:15:00,1 day 02:00:00\n"
    );
}
