"""Smaller methods beside Polars: windows at an offset, structs, plans, envelopes, read-only
databases."""

import json

import pytest

import anabranch as ab

pl = pytest.importorskip("polars")


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


@pytest.mark.parametrize("closed", ["right", "left", "both", "none"])
@pytest.mark.parametrize("offset", [None, "-2i", "0i", "1i", "-5i"])
def test_rolling_windows_are_those_of_polars(db, offset, closed):
    rows = [("a", t, x) for t, x in [(1, 1), (2, 2), (4, 3), (4, 4), (9, 5)]] + [("b", 3, 6), ("b", 4, 7)]
    frame = pl.DataFrame(rows, schema=["k", "t", "x"], orient="row")
    ours = db.values(rows, {"k": str, "t": int, "x": int}).rolling(
        "t", period=3, offset=None if offset is None else int(offset[:-1]), closed=closed, group_by="k").agg(
        n=ab.len(), s=ab.col("x").sum(), m=ab.col("x").max())
    theirs = frame.sort("k", "t").rolling("t", period="3i", offset=offset, closed=closed, group_by="k").agg(
        n=pl.len(), s=pl.col("x").sum(), m=pl.col("x").max())
    assert sorted(ours, key=str) == sorted(theirs.rows(), key=str)


def test_structs_are_taken_apart(db):
    r = db.values([(1, 2, "x")], {"a": int, "b": int, "c": str})
    s = r.select(ab.struct("a", "b").alias("s"), "c")
    assert s.unnest("s").columns == ["a", "b", "c"] and s.unnest("s").fetchall() == [(1, 2, "x")]
    with pytest.raises(ab.TypeMismatch, match='column "c" is text'):
        s.unnest("c")
    with pytest.raises(ab.DuplicateName):
        r.select(ab.struct("a").alias("s"), "a").unnest("s")


def test_plans_are_objects(db):
    t = db.create_table("t", {"k": int, "x": int})
    t.insert([(1, 1), (2, 2)])
    u = t.join(t, on="k").group_by("k").agg(n=ab.len())
    plan = json.loads(u.explain(format="json"))

    def steps(nodes):
        return [node["step"].split()[0] for node in nodes] + [s for node in nodes for s in steps(node["inputs"])]

    assert len(plan["plan"]) == 1 and steps(plan["plan"])[0] == "Aggregate" and steps(plan["plan"]).count("Scan") == 2
    assert "rows" in u.explain(analyze=True)
    with pytest.raises(ab.ProgrammingError, match="text or json"):
        u.explain(format="xml")


def test_upserts_are_told_by_key(db):
    t = db.create_table("t", {"k": int, "n": int}, primary_key="k")
    with t.subscribe(envelope="upsert", idle="300ms") as told:
        t.insert([(1, 1), (2, 2)])
        t.upsert([(1, 5)])
        t.delete(ab.col("k") == 2)
        batches = [change.batch for change in told]
    assert batches[0].columns == ["time", "state", "k", "n"]
    assert [row[1:] for batch in batches for row in batch] == [
        ("upsert", 1, 1), ("upsert", 2, 2), ("upsert", 1, 5), ("delete", 2, None)]
    with pytest.raises(ab.ProgrammingError, match="needs a key"):
        t.select("n").subscribe(envelope="upsert")
    with pytest.raises(ab.UnknownName):
        t.subscribe(envelope="upsert", key="m")


def test_a_database_for_reading_refuses_writes(tmp_path):
    with ab.connect(tmp_path / "d") as db:
        t = db.create_table("t", {"k": int})
        t.insert([(1,)])
    with ab.connect(tmp_path / "d", read_only=True) as db:
        t = db.table("t")
        assert t.fetchall() == [(1,)] and t.filter(ab.col("k") > 0).live().row_count() == 1
        mine = db.values([(1, "x")], {"k": int, "s": str})
        assert t.join(mine, on="k").fetchall() == [(1, "x")]
        writes = [
            lambda: t.insert([(2,)]), lambda: t.delete(ab.col("k") == 1), lambda: db.execute("INSERT INTO t VALUES (2)"),
            lambda: db.sql("WITH x AS (SELECT 2) INSERT INTO t SELECT * FROM x"), lambda: db.create_table("u", {"k": int}),
            lambda: db.create_view("v", t), lambda: db.drop("t"), lambda: db.execute("SELECT 1; DROP TABLE t"),
            lambda: db.execute("EXPLAIN ANALYZE DELETE FROM t"), lambda: db.executemany("INSERT INTO t VALUES (?)", [(2,)]),
        ]
        for write in writes:
            with pytest.raises(ab.ReadOnlyError):
                write()
        with db.transaction() as tx, pytest.raises(ab.ReadOnlyError):
            tx.insert("t", [(3,)])
        assert db.sql('SELECT count(*) AS "delete" FROM t').item() == 1


def test_parameters_are_bound_later(db):
    t = db.create_table("t", {"k": int, "s": str})
    t.insert([(1, "a"), (2, "it's /*$least*/NULL"), (3, "c")])
    r = t.filter((ab.col("k") > ab.param("least", int)) | (ab.col("s") == ab.param("s", str))).sort(ab.col("k") * -1)
    assert r.bind(least=1, s="a").select("k").sort("k").fetchall() == [(1,), (2,), (3,)]
    assert r.bind(least=2).bind(s=None).fetchall() == [(3, "c")]
    view = r.bind(least=1, s="x").create_view("v")
    assert sorted(view) == [(2, "it's /*$least*/NULL"), (3, "c")]
    for ask in (r.fetchall, r.row_count, lambda: r.bind(s="x").create_view("w"), lambda: r.changes(), lambda: r.live()):
        with pytest.raises(ab.ProgrammingError, match="has no value"):
            ask()
    with pytest.raises(ab.ProgrammingError, match="there is no parameter more"):
        r.bind(more=1)
    assert t.filter(ab.col("s") == "it's /*$least*/NULL").row_count() == 1


def test_the_order_by_an_expression_is_no_column(db):
    t = db.create_table("t", {"k": int})
    t.insert([(1,), (2,)])
    r = t.sort(ab.col("k") * -1)
    assert r.create_view("v").columns == ["k"] == r.live().columns == r.alias("x").columns
    assert db.sql("SELECT * FROM r").columns == ["k"] == r.sql("SELECT * FROM self").columns
    assert [len(row) for batch in r.changes(idle="100ms") for row in batch] == [3, 3]
    assert r.fetchall() == [(2,), (1,)]
