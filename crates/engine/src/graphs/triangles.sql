WITH links (a, b) AS (
  SELECT e.src, e.dst FROM edges e WHERE e.src < e.dst
  UNION SELECT e.dst, e.src FROM edges e WHERE e.dst < e.src)
SELECT ab.a, ab.b, bc.b AS c
FROM links ab JOIN links bc ON bc.a = ab.b JOIN links ac ON ac.a = ab.a AND ac.b = bc.b
