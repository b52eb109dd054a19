SELECT q.node, e.dst AS found FROM asked q JOIN edges e ON e.src = q.node
