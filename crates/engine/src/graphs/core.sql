WITH MUTUALLY RECURSIVE
  links (a bigint, b bigint) AS (
    SELECT e.src, e.dst FROM edges e WHERE e.src <> e.dst
    UNION SELECT e.dst, e.src FROM edges e WHERE e.src <> e.dst),
  gone (node bigint) AS (
    SELECT l.a FROM links l LEFT JOIN gone g ON g.node = l.b
    GROUP BY l.a HAVING count(*) - count(g.node) < $1)
SELECT DISTINCT l.a AS node FROM links l WHERE NOT EXISTS (SELECT 1 FROM gone g WHERE g.node = l.a)
