WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT $1)
  links (src bigint, dst bigint) AS (SELECT DISTINCT e.src, e.dst FROM edges e),
  nodes (node bigint, degree bigint) AS (
    SELECT n.node, count(l.dst)
    FROM (SELECT l.src AS node FROM links l UNION SELECT l.dst FROM links l) AS n
    LEFT JOIN links l ON l.src = n.node
    GROUP BY n.node),
  total (nodes bigint) AS (SELECT count(*) FROM nodes),
  given (node bigint, share bigint) AS (
    SELECT node, sum(share) FROM (
      SELECT l.dst AS node, 85 * r.rank / (100 * r.degree) AS share
      FROM ranks r JOIN links l ON l.src = r.node) AS shares
    GROUP BY node),
  lost (share bigint) AS (
    SELECT 85 * coalesce(sum(r.rank), 0)::bigint / (100 * max(t.nodes))
    FROM total t LEFT JOIN ranks r ON r.degree = 0),
  ranks (node bigint, degree bigint, rank bigint) AS (
    SELECT n.node, n.degree, CASE
      WHEN r.node IS NULL THEN 1000000000000000 / t.nodes
      ELSE 150000000000000 / t.nodes + lost.share + coalesce(g.share, 0) END
    FROM nodes n CROSS JOIN total t CROSS JOIN lost
    LEFT JOIN ranks r ON r.node = n.node LEFT JOIN given g ON g.node = n.node)
SELECT node, rank * 0.000000000000001 AS rank FROM ranks
