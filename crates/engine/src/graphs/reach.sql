WITH RECURSIVE reach (node) AS (
  SELECT $1::bigint
  UNION
  SELECT e.dst FROM reach r JOIN edges e ON e.src = r.node)
SELECT node FROM reach
