#!/usr/bin/env python3
"""Compares the queries of docs/graphs.md, kept current as views, with networkx after each of 50
changes of random graphs.

Usage: python tests/compare/graphs.py [--anabranch target/release/anabranch] [--workers N] [--seed
N]

The queries are read from the documentation. Where networkx has an algorithm under another
definition (label propagation in rounds, ranks after a number of rounds), the definition of LDBC
Graphalytics is written out over networkx's graph. The script ends with a line `N passed, N failed`,
a case a view, and exits with 1 when a view differs.
"""

import argparse
import collections
import decimal
import pathlib
import random
import re
import subprocess
import sys

import networkx as nx
import numpy as np

from results import json_values

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHANGES = 50
START = 1
RANK_ROUNDS = 20
LABEL_ROUNDS = 10

# Each view: its heading in the documentation, the relation that it reads, and its answer by
# networkx.
VIEWS = {
    "reach": ("Reach", "edges", lambda g: [(node,) for node in reached(g)]),
    "hops": ("Fewest edges", "edges", lambda g: lengths(g, None)),
    "distances": ("Least weight", "edges", lambda g: lengths(g, "weight")),
    "components": ("Connected components", "edges", lambda g: labelled(nx.weakly_connected_components(g))),
    "strong": ("Strongly connected components", "edges", lambda g: labelled(nx.strongly_connected_components(g))),
    "ranks": ("PageRank", "edges", lambda g: ranks(g)),
    "communities": ("Communities by label propagation", "edges", lambda g: communities(g)),
    "clustering": ("Local clustering coefficients", "edges", lambda g: clustering(g)),
    "clustering_both": ("Local clustering coefficients", "both_ways", lambda g: undirected_clustering(g)),
    "cores": ("Cores", "edges", lambda g: [(node,) for node in nx.k_core(undirected(g), 2)]),
    "triangles": ("Triangles", "edges", lambda g: cliques(g, 3)),
    "fours": ("Cliques of four", "edges", lambda g: cliques(g, 4)),
}


def undirected(graph: nx.DiGraph) -> nx.Graph:
    simple = nx.Graph(graph)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    return simple


def reached(graph: nx.DiGraph) -> set[int]:
    return {START} | (nx.descendants(graph, START) if START in graph else set())


def lengths(graph: nx.DiGraph, weight: str | None) -> list[tuple]:
    if START not in graph:
        return [(START, 0)]
    return list(nx.shortest_path_length(graph, START, weight=weight).items())


def labelled(components) -> list[tuple]:
    return [(node, min(component)) for component in components for node in component]


def ranks(graph: nx.DiGraph) -> list[tuple]:
    """The power iteration over networkx's matrix, for a fixed number of rounds."""
    nodes = list(graph)
    if not nodes:
        return []
    matrix = np.asarray(nx.google_matrix(graph, alpha=0.85, nodelist=nodes, weight=None))
    rank = np.full(len(nodes), 1 / len(nodes))
    for _ in range(RANK_ROUNDS):
        rank = rank @ matrix
    return list(zip(nodes, rank.tolist()))


def communities(graph: nx.DiGraph) -> list[tuple]:
    labels = {node: node for node in graph}
    for _ in range(LABEL_ROUNDS):
        new = {}
        for node in graph:
            votes = collections.Counter(labels[other] for other in graph.successors(node))
            votes.update(labels[other] for other in graph.predecessors(node))
            new[node] = min(votes, key=lambda label: (-votes[label], label))
        labels = new
    return list(labels.items())


def clustering(graph: nx.DiGraph) -> list[tuple]:
    answer = []
    for node in graph:
        near = (set(graph.predecessors(node)) | set(graph.successors(node))) - {node}
        if near:
            among = graph.subgraph(near)
            arcs = among.number_of_edges() - nx.number_of_selfloops(among)
            answer.append((node, arcs / max(len(near) * (len(near) - 1), 1)))
    return answer


def undirected_clustering(graph: nx.DiGraph) -> list[tuple]:
    simple = undirected(graph)
    return [(node, share) for node, share in nx.clustering(simple).items() if simple.degree(node) > 0]


def cliques(graph: nx.DiGraph, size: int) -> list[tuple]:
    return [tuple(sorted(clique)) for clique in nx.enumerate_all_cliques(undirected(graph)) if len(clique) == size]


def documented(heading: str, relation: str) -> str:
    """The query under a heading, over a relation of edges."""
    text = (ROOT / "docs" / "graphs.md").read_text()
    part = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    query = part and re.search(r"```sql\n(.*?)\n```", part[1], re.DOTALL)
    if not query:
        sys.exit(f"docs/graphs.md has no query under \"{heading}\"")
    return re.sub(r"\bedges\b", relation, query[1])


def changes(numbers: random.Random) -> list[tuple[list[tuple], list[tuple]]]:
    """For each change the edges that come and those that go. Graphs grow dense and thin again."""
    edges: dict[tuple[int, int], int] = {}
    made = []
    for change in range(CHANGES):
        wanted = 10 + 90 * (1 - abs(2 * change / CHANGES - 1))
        new, gone = [], []
        for _ in range(numbers.randrange(1, 9)):
            if edges and numbers.random() < len(edges) / (2 * wanted):
                ends = numbers.choice(sorted(edges))
                gone.append((*ends, edges.pop(ends)))
            else:
                ends = (numbers.randrange(15), numbers.randrange(15))
                if ends not in edges and all(ends != (src, dst) for src, dst, _ in gone):
                    edges[ends] = numbers.randrange(10)
                    new.append((*ends, edges[ends]))
        made.append((new, gone))
    return made


def script(made: list[tuple[list[tuple], list[tuple]]]) -> str:
    text = "CREATE TABLE edges (src bigint, dst bigint, weight bigint);\n"
    text += "CREATE VIEW both_ways AS SELECT src, dst FROM edges UNION SELECT dst, src FROM edges;\n"
    for name, (heading, relation, _) in VIEWS.items():
        text += f"CREATE MATERIALIZED VIEW {name} AS {documented(heading, relation)};\n"
    for new, gone in made:
        # (An edge may come and go in one change: what comes is written first.)
        text += "BEGIN;\n"
        for edge in new:
            text += f"INSERT INTO edges VALUES {edge};\n"
        for src, dst, weight in gone:
            text += f"DELETE FROM edges WHERE src = {src} AND dst = {dst} AND weight = {weight};\n"
        text += "COMMIT;\n"
        for name in VIEWS:
            text += f"SELECT '{name}' AS __view;\nSELECT * FROM {name};\n"
    return text


def answers_of_anabranch(binary: str, workers: int, text: str) -> list[dict[str, list[tuple]]]:
    """The rows of each view after each change."""
    command = [binary, "--json", "--workers", str(workers), "-f", "-"]
    run = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"anabranch ended with {run.returncode}\n{run.stderr}")
    answers: list[dict[str, list[tuple]]] = []
    rows: list[tuple] = []
    first = next(iter(VIEWS))
    for row in json_values(run.stdout):
        if "__view" in row:
            if row["__view"] == first:
                answers.append({})
            rows = answers[-1].setdefault(row["__view"], [])
        else:
            rows.append(tuple(decimal.Decimal(str(value)) for value in row.values()))
    return answers


def agree(expected: list[tuple], found: list[tuple]) -> bool:
    """Whether rows are the same, shares and ranks within 10^-12."""
    if len(expected) != len(found):
        return False
    near = lambda a, b: a == b or abs(float(a) - float(b)) < 1e-12
    return all(
        len(left) == len(right) and all(map(near, left, right)) for left, right in zip(sorted(expected), sorted(found))
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--anabranch", default=str(ROOT / "target" / "release" / "anabranch"))
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    made = changes(random.Random(options.seed))
    answers = answers_of_anabranch(options.anabranch, options.workers, script(made))
    if len(answers) != len(made):
        sys.exit(f"{len(answers)} answers after {len(made)} changes")
    wrong: dict[str, str] = {}
    rows = collections.Counter()
    graph = nx.DiGraph()
    for change, ((new, gone), found) in enumerate(zip(made, answers)):
        graph.add_weighted_edges_from(new)
        graph.remove_edges_from([(src, dst) for src, dst, _ in gone])
        graph.remove_nodes_from(list(nx.isolates(graph)))
        for name, (_, _, answer) in VIEWS.items():
            expected = answer(graph)
            rows[name] += len(expected)
            if name not in wrong and not agree(expected, found.get(name, [])):
                wrong[name] = f"after change {change}: expected {sorted(expected)}, found {sorted(found.get(name, []))}"
    for name in VIEWS:
        print(f"{'FAILED' if name in wrong else 'ok':6} {name} ({rows[name]} rows, {CHANGES} changes)", *[wrong[name]] if name in wrong else [])
    print(f"{len(VIEWS) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
