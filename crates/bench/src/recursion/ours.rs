//! Our side of the recursive programs: SQL text over tables of pairs.

use anabranch_engine::Error;

use crate::standing::Tables;

/// The relations and the query of each program.
const TEXTS: [(&str, &[&str], &str); 6] = [
    (
        "reach",
        &["edges", "roots"],
        "WITH RECURSIVE reach (n) AS (
             SELECT a FROM roots UNION SELECT e.b FROM reach r JOIN edges e ON e.a = r.n)
         SELECT n AS a, n AS b FROM reach",
    ),
    (
        "bfs",
        &["edges", "roots"],
        "WITH MUTUALLY RECURSIVE bfs (n bigint, d bigint) AS (
             SELECT n, min(d) FROM (
                 SELECT a AS n, 0::bigint AS d FROM roots
                 UNION ALL SELECT e.b, f.d + 1 FROM bfs f JOIN edges e ON e.a = f.n) p
             GROUP BY n)
         SELECT n AS a, d AS b FROM bfs",
    ),
    (
        "components",
        &["edges"],
        "WITH MUTUALLY RECURSIVE
             both_ways (a bigint, b bigint) AS (SELECT a, b FROM edges UNION ALL SELECT b, a FROM edges),
             label (n bigint, l bigint) AS (
             SELECT n, min(l) FROM (
                 SELECT a AS n, a AS l FROM both_ways
                 UNION ALL SELECT e.b, c.l FROM label c JOIN both_ways e ON e.a = c.n) p
             GROUP BY n)
         SELECT n AS a, l AS b FROM label",
    ),
    (
        "closure",
        &["edges"],
        "WITH RECURSIVE paths (a, b) AS (
             SELECT a, b FROM edges UNION SELECT p.a, e.b FROM paths p JOIN edges e ON e.a = p.b)
         SELECT a, b FROM paths",
    ),
    (
        "same-generation",
        &["parents"],
        "WITH RECURSIVE pairs (a, b) AS (
             SELECT x.a, y.a FROM parents x JOIN parents y ON x.b = y.b
             UNION SELECT x.a, y.a FROM pairs p JOIN parents x ON x.b = p.a JOIN parents y ON y.b = p.b)
         SELECT a, b FROM pairs",
    ),
    (
        "points-to",
        &["new", "assign", "load", "store"],
        "WITH MUTUALLY RECURSIVE known (a bigint, b bigint) AS (
             SELECT a, b FROM new
             UNION SELECT s.a, k.b FROM assign s JOIN known k ON k.a = s.b
             UNION SELECT l.a, q.b FROM load l JOIN known p ON p.a = l.b JOIN known q ON q.a = p.b
             UNION SELECT p.b, k.b FROM store s JOIN known p ON p.a = s.a JOIN known k ON k.a = s.b)
         SELECT a, b FROM known",
    ),
];

/// Makes the tables and the view of a program.
///
/// # Errors
/// What the engine refuses.
pub fn ours(program: &str) -> Result<Tables, Error> {
    let (_, relations, query) =
        TEXTS.iter().find(|(name, ..)| *name == program).expect("every program has a text of ours");
    let mut tables = Tables::new(relations)?;
    tables.keep("answer", query)?;
    Ok(tables)
}
