WITH MUTUALLY RECURSIVE ways (node bigint, hops bigint) AS (
  SELECT node, min(hops) FROM (
    SELECT $1::bigint AS node, 0::bigint AS hops
    UNION ALL
    SELECT e.dst, w.hops + 1 FROM ways w JOIN edges e ON e.src = w.node) AS found
  GROUP BY node)
SELECT node, hops FROM ways
