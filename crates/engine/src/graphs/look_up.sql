SELECT q.node, count(*) AS degree FROM asked q JOIN edges e ON e.src = q.node GROUP BY q.node
