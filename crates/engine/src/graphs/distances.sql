WITH MUTUALLY RECURSIVE ways (node bigint, distance bigint) AS (
  SELECT node, min(distance) FROM (
    SELECT $1::bigint AS node, 0::bigint AS distance
    UNION ALL
    SELECT e.dst, w.distance + e.weight FROM ways w JOIN edges e ON e.src = w.node) AS found
  GROUP BY node)
SELECT node, distance FROM ways
