WITH
  arcs (a, b) AS (SELECT DISTINCT e.src, e.dst FROM edges e WHERE e.src <> e.dst),
  links (a, b) AS (SELECT a, b FROM arcs UNION SELECT b, a FROM arcs),
  degrees (node, degree) AS (SELECT a, count(*) FROM links GROUP BY a),
  closed (node, arcs) AS (
    SELECT l.a, count(*)
    FROM links l JOIN arcs ON arcs.a = l.b JOIN links m ON m.a = l.a AND m.b = arcs.b
    GROUP BY l.a)
SELECT d.node, coalesce(c.arcs, 0) / greatest(d.degree * (d.degree - 1), 1)::numeric AS coefficient
FROM degrees d LEFT JOIN closed c ON c.node = d.node
