WITH links (a, b) AS (
  SELECT e.src, e.dst FROM edges e WHERE e.src < e.dst
  UNION SELECT e.dst, e.src FROM edges e WHERE e.dst < e.src)
SELECT ab.a, ab.b, bc.b AS c, cd.b AS d
FROM links ab JOIN links bc ON bc.a = ab.b JOIN links ac ON ac.a = ab.a AND ac.b = bc.b
  JOIN links cd ON cd.a = bc.b JOIN links ad ON ad.a = ab.a AND ad.b = cd.b
  JOIN links bd ON bd.a = ab.b AND bd.b = cd.b
