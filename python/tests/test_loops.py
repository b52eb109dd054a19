"""Recursion: one variable and several, limits, and changes of what a loop reads."""

import random

import pytest

import anabranch as ab

networkx = pytest.importorskip("networkx")  # (the oracle of reachability)


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


def test_reachability_follows_random_changes(db):
    chance = random.Random(5)
    edge = db.create_table("edge", {"a": int, "b": int})
    step = lambda r: r.union(r.join(edge, left_on="b", right_on="a").select("a", b="b_right")).unique()  # noqa: E731
    reach = ab.iterate(step, r=edge.unique()).create_view("reach")
    graph = networkx.DiGraph()
    for _ in range(25):
        a, b = chance.randrange(8), chance.randrange(8)
        if graph.has_edge(a, b):
            edge.delete((ab.col("a") == a) & (ab.col("b") == b))
            graph.remove_edge(a, b)
        else:
            edge.insert([(a, b)])
            graph.add_edge(a, b)
        wanted = {(x, y) for x in graph for z in graph.successors(x) for y in {z, *networkx.descendants(graph, z)}}
        assert set(reach) == wanted and reach.row_count() == len(wanted)


def test_several_variables_step_together(db):
    one, two = db.values([(1,)], {"x": int}), db.values([(2,)], {"x": int})
    swapped = ab.iterate(lambda a, b: {"a": b, "b": a}, a=one, b=two, limit=3, on_limit="return")
    assert (swapped.a.item(), swapped.b.item()) == (2, 1)


def test_limits(db):
    n = db.values([(100,)], {"n": int})
    halves = lambda n: n.select(n=ab.col("n") // 2)  # noqa: E731
    assert ab.iterate(halves, n=n).item() == 0
    assert ab.iterate(halves, n=n, limit=3, on_limit="return").item() == 12
    assert ab.iterate(halves, n=n, limit=7).item() == 0
    with pytest.raises(ab.OperationalError, match="does not reach a fixed point"):
        ab.iterate(halves, n=n, limit=6).fetchall()


def test_what_is_wrong_with_a_body_is_said(db):
    n = db.values([(100,)], {"n": int})
    with pytest.raises(ab.ProgrammingError, match="begins with columns"):
        ab.iterate(lambda n: n.select(ab.col("n").cast(str)), n=n)
    with pytest.raises(ab.ProgrammingError, match="body of iterate gave NoneType"):
        ab.iterate(lambda n: None, n=n)
    with pytest.raises(ab.ProgrammingError, match="needs a variable"):
        ab.iterate(lambda: None)
