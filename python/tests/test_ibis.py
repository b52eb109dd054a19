"""The backend for Ibis, and Narwhals over it."""

import datetime
from decimal import Decimal

import pytest

import anabranch as ab

ibis = pytest.importorskip("ibis")
pa = pytest.importorskip("pyarrow")
_ = ibis._


@pytest.fixture
def con():
    from anabranch.ibis import backend

    with ab.connect() as db:
        con = backend(db)
        con.create_table("t", pa.table({
            "k": ["a", "b", "a", None], "x": [1, 2, 3, 4], "y": [1.5, 2.5, None, 4.0], "n": [Decimal("1.25"), None, Decimal("2.5"), None],
            "ts": [datetime.datetime(2026, 1, i + 1, i, 30) for i in range(4)]}))
        yield con


def rows(expr):
    return sorted((tuple(row.values()) for row in expr.to_pyarrow().to_pylist()), key=repr)


@pytest.mark.parametrize("make, expected", [
    (lambda t: t.filter(_.x > 1).group_by("k").agg(n=_.count(), s=_.x.sum()), [("a", 1, 3), ("b", 1, 2), (None, 1, 4)]),
    (lambda t: t.group_by("k").having(_.count() > 1).agg(m=_.y.mean()), [("a", 1.5)]),
    (lambda t: t.order_by(_.x.desc()).limit(2).select("x"), [(3,), (4,)]),
    (lambda t: t.mutate(r=ibis.row_number().over(group_by=_.k, order_by=_.x)).select("x", "r"), [(1, 0), (2, 0), (3, 1), (4, 0)]),
    (lambda t: t.mutate(c=_.x.cumsum(order_by=_.ts)).select("c"), [(1,), (10,), (3,), (6,)]),
    (lambda t: t.select(s=ibis.struct({"p": _.x, "q": _.k})).filter(_.s["p"] == 1).select(p=_.s["p"], s="s"), [(1, {"p": 1, "q": "a"})]),
    (lambda t: t.agg(f=_.k.first(order_by=_.ts), l=_.k.last(order_by=_.ts)), [("a", "a")]),
    (lambda t: t.select(a=_.k.try_cast("int64")), [(None,)] * 4),
    (lambda t: t.select(d=_.ts.date(), m=_.ts.truncate("M"), h=_.ts.hour()).limit(1),
     [(datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1), 0)]),
    (lambda t: t.select("x", "y").mutate(x=_.x.cast("float64")).filter(_.x == 1).pivot_longer(["x", "y"]), [("x", 1.0), ("y", 1.5)]),
    (lambda t: t.filter(_.k.notnull()).pivot_wider(names_from="k", values_from="x", values_agg="sum", id_cols=[], names=["a", "b"]), [(4, 2)]),
    (lambda t: t.join(ibis.memtable({"k": ["a"], "name": ["A"]}), "k").select("x", "name"), [(1, "A"), (3, "A")]),
    (lambda t: t.agg(n=_.n.sum()), [(Decimal("3.75"),)]),
    (lambda t: t.filter(_.x > t.x.mean()).select("x"), [(3,), (4,)]),
])
def test_expressions(con, make, expected):
    assert rows(make(con.table("t"))) == sorted(expected, key=repr)


def test_views_are_kept_current(con):
    view = con.create_view("sums", con.table("t").group_by("k").agg(s=_.x.sum()))
    assert rows(view) == [("a", 4), ("b", 2), (None, 4)]
    con.insert("t", {"k": ["b"], "x": [10], "y": [0.0], "n": [None], "ts": [datetime.datetime(2026, 2, 1)]})
    assert rows(view) == [("a", 4), ("b", 12), (None, 4)]
    assert set(con.list_tables()) >= {"t", "sums"}
    con.drop_view("sums")
    with pytest.raises(ibis.common.exceptions.TableNotFound):
        con.table("sums")


def test_answers_are_pandas_and_arrow(con):
    t = con.table("t")
    assert t.x.sum().execute() == 10
    assert t.order_by("x").execute()["k"].tolist()[:3] == ["a", "b", "a"]
    assert sum(len(batch) for batch in t.to_pyarrow_batches(chunk_size=2)) == 4
    empty = con.create_table("e", schema=ibis.schema({"a": "int64", "b": "string", "c": "decimal(8,2)", "d": "array<int64>"}))
    assert empty.schema() == ibis.schema({"a": "int64", "b": "string", "c": "decimal(8,2)", "d": "array<int64>"})
    assert con.sql("SELECT max(x) AS m FROM t").to_pyarrow().to_pylist() == [{"m": 4}]


def test_rows_of_python_leave_no_tables(tmp_path):
    from anabranch.ibis import Backend

    con = Backend().connect(str(tmp_path / "d"))
    con.create_table("t", {"k": ["a", "b"], "x": [1, 2]})
    con.insert("t", {"k": ["c"], "x": [3]})
    assert rows(con.table("t").join(ibis.memtable({"k": ["a"], "y": [5]}), "k").select("x", "y")) == [(1, 5)]
    assert con.list_tables() == ["t"]
    con.disconnect()
    with ab.connect(tmp_path / "d") as db:
        assert [name for name, *_rest in db.relations()] == ["t"] and db.table("t").row_count() == 3


def test_what_is_not_there_is_refused(con):
    from ibis.common.exceptions import OperationNotDefinedError

    with pytest.raises(OperationNotDefinedError):
        con.table("t").select(h=_.k.hash()).execute()


def test_narwhals_runs_over_it(con):
    nw = pytest.importorskip("narwhals")
    frame = nw.from_native(con.table("t"))
    made = (frame.filter(nw.col("x") > 1).with_columns(z=nw.col("x") * 2).group_by("k")
            .agg(nw.col("z").sum().alias("s"), nw.len().alias("n")).sort("s"))
    assert made.collect().rows() == [("b", 4, 1), ("a", 6, 1), (None, 8, 1)]
    both = frame.join(nw.from_native(con.table("t").group_by("k").agg(top=_.x.max())), on="k", how="left")
    assert sorted(both.select("x", "top").collect().rows()) == [(1, 3), (2, 2), (3, 3), (4, None)]
