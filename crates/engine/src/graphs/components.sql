WITH MUTUALLY RECURSIVE
  links (a bigint, b bigint) AS (
    SELECT e.src, e.dst FROM edges e UNION SELECT e.dst, e.src FROM edges e),
  labels (node bigint, component bigint) AS (
    SELECT node, min(component) FROM (
      SELECT l.a AS node, l.a AS component FROM links l
      UNION ALL
      SELECT l.b, c.component FROM labels c JOIN links l ON l.a = c.node) AS found
    GROUP BY node)
SELECT node, component FROM labels
