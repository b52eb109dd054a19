WITH MUTUALLY RECURSIVE
  links (a bigint, b bigint) AS (SELECT DISTINCT e.src, e.dst FROM edges e),
  cut (a bigint, b bigint) AS (
    SELECT c.a, c.b FROM cut c
    UNION (
      WITH MUTUALLY RECURSIVE
        kept (a bigint, b bigint) AS (
          SELECT l.a, l.b FROM links l
          WHERE NOT EXISTS (SELECT 1 FROM cut c WHERE c.a = l.a AND c.b = l.b)),
        ahead (node bigint, label bigint) AS (
          SELECT node, min(label) FROM (
            SELECT l.a AS node, l.a AS label FROM links l
            UNION ALL SELECT l.b, l.b FROM links l
            UNION ALL SELECT k.b, p.label FROM ahead p JOIN kept k ON k.a = p.node) AS found
          GROUP BY node),
        back (node bigint, label bigint) AS (
          SELECT node, min(label) FROM (
            SELECT l.a AS node, l.a AS label FROM links l
            UNION ALL SELECT l.b, l.b FROM links l
            UNION ALL SELECT k.a, p.label FROM back p JOIN kept k ON k.b = p.node) AS found
          GROUP BY node)
      SELECT k.a, k.b FROM kept k
        JOIN ahead pa ON pa.node = k.a JOIN ahead pb ON pb.node = k.b
        JOIN back ra ON ra.node = k.a JOIN back rb ON rb.node = k.b
      WHERE pa.label <> pb.label OR ra.label <> rb.label))
(WITH MUTUALLY RECURSIVE
  labels (node bigint, component bigint) AS (
    SELECT node, min(component) FROM (
      SELECT l.a AS node, l.a AS component FROM links l
      UNION ALL SELECT l.b, l.b FROM links l
      UNION ALL
      SELECT l.b, p.component FROM labels p JOIN links l ON l.a = p.node
      WHERE NOT EXISTS (SELECT 1 FROM cut c WHERE c.a = l.a AND c.b = l.b)) AS found
    GROUP BY node)
SELECT node, component FROM labels)
