SELECT q.src, e.dst AS a, f.dst AS b, g.dst AS c, q.dst
FROM asked q
  JOIN edges e ON e.src = q.src JOIN edges f ON f.src = e.dst
  JOIN edges g ON g.src = f.dst JOIN edges h ON h.src = g.dst
WHERE least(h.dst, q.dst) = greatest(h.dst, q.dst)
