SELECT q.node, f.dst AS found
FROM asked q JOIN edges e ON e.src = q.node JOIN edges f ON f.src = e.dst
