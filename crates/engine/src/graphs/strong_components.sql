WITH RECURSIVE ways (a, b) AS (
  SELECT e.src, e.src FROM edges e
  UNION SELECT e.dst, e.dst FROM edges e
  UNION SELECT w.a, e.dst FROM ways w JOIN edges e ON e.src = w.b)
SELECT w.a AS node, min(w.b) AS component
FROM ways w JOIN ways back ON back.a = w.b AND back.b = w.a
GROUP BY w.a
