WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT $1)
  links (a bigint, b bigint) AS (
    SELECT DISTINCT e.src, e.dst FROM edges e
    UNION ALL SELECT DISTINCT e.dst, e.src FROM edges e),
  votes (node bigint, label bigint, votes bigint) AS (
    SELECT l.a, coalesce(c.label, l.a), count(*)
    FROM links l LEFT JOIN labels c ON c.node = l.b
    GROUP BY l.a, coalesce(c.label, l.a)),
  labels (node bigint, label bigint) AS (
    SELECT DISTINCT ON (node) node, label FROM votes ORDER BY node, votes DESC, label)
SELECT node, label FROM labels
