"""Functions of Python: by row, by batch, asynchronous; in expressions and in SQL; what becomes of
NULL and of exceptions."""

from __future__ import annotations

import asyncio
from typing import Optional

import pytest

import anabranch as ab

np = pytest.importorskip("numpy")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@ab.udf
def half(x: int) -> float:
    if x == 13:
        raise ValueError("thirteen brings bad luck")
    return x / 2


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


@pytest.fixture
def t(db):
    t = db.create_table("t", {"k": int, "x": int}, primary_key="k")
    t.insert([(1, 10), (2, None), (3, 7)])
    return t


def test_a_row_function_in_expressions_and_sql(db, t):
    assert t.select("k", y=half("x")).sort("k").fetchall() == [(1, 5.0), (2, None), (3, 3.5)]
    db.register("half", half)
    assert db.sql("SELECT sum(half(x)) FROM t WHERE half(x) > 4").item() == 5.0
    assert half.mode == "row" and half.func(4) == 2.0 and str(half.returns) == "double precision"


def test_views_with_functions_follow_changes(db, t):
    v = t.select("k", y=half("x")).create_view("v")
    t.upsert([(2, 4), (3, None)])
    t.delete(lambda r: r.k == 1)
    assert v.sort("k").fetchall() == [(2, 2.0), (3, None)]


def test_an_exception_is_the_error_of_its_row(db, t):
    v = t.select("k", y=half("x")).create_view("v")
    others = t.group_by().agg(n=ab.len()).create_view("others")
    t.insert([(4, 13), (5, 2)])
    with pytest.raises(ab.RowError) as caught:
        v.fetchall()
    error = caught.value
    assert "function half() raised ValueError: thirteen brings bad luck" in str(error)
    assert "Traceback (most recent call last)" in error.traceback and 'raise ValueError("thirteen' in error.traceback
    assert "\x1f" not in error.message
    assert others.item() == 5
    t.delete(lambda r: r.k == 4)
    assert v.sort("k").fetchall() == [(1, 5.0), (2, None), (3, 3.5), (5, 1.0)]


def test_null_is_passed_where_it_is_asked_for(db, t):
    @ab.udf
    def told(k: int, x: Optional[int]) -> str:
        return f"{k}:{x}"

    assert t.select(s=told("k", "x")).sort("s").fetchall() == [("1:10",), ("2:None",), ("3:7",)]


@pytest.mark.parametrize("kind", [np.ndarray, pl.Series, pa.Array, ab.Array])
def test_batch_functions_get_arrays(db, t, kind):
    seen = []

    def double(x):
        seen.append(type(x))
        if isinstance(x, ab.Array):
            return [v * 2 for v in x]
        if isinstance(x, pa.Array):
            return pa.array([v.as_py() * 2 for v in x])
        return x * 2

    double.__annotations__ = {"x": kind}
    f = ab.udf(double, returns=int)
    assert f.mode == "batch"
    assert t.select("k", y=f("x")).sort("k").fetchall() == [(1, 20), (2, None), (3, 14)]
    assert all(issubclass(s, kind) for s in seen)
    db.register("double", f)
    assert db.sql("SELECT double(x) FROM t WHERE k = 3").item() == 14


def test_a_batch_of_another_length_is_refused(db, t):
    @ab.udf(returns=int)
    def short(x: np.ndarray):
        return x[:0]

    with pytest.raises(ab.DataError, match="gave 0 values for"):
        t.select(y=short("x")).fetchall()


def test_impure_functions_leave_nothing_behind(db, t):
    calls = []

    @ab.udf(pure=False)
    def next_number(k: int) -> int:
        calls.append(k)
        return len(calls)

    v = t.select("k", n=next_number("k")).create_view("v")
    for _ in range(3):
        t.insert([(9, 9)])
        t.delete(lambda r: r.k == 9)
    assert len(v.fetchall()) == 3 and calls.count(9) == 1
    t.truncate()
    assert v.fetchall() == []


def test_async_functions_keep_their_limit(db):
    running, most = 0, 0

    @ab.udf(max_in_flight=8)
    async def slow(x: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return x + 1

    r = db.values({"x": list(range(200))})
    assert r.select(y=slow("x")).select(ab.col("y").sum()).item() == sum(range(1, 201))
    assert 1 < most <= 8


def test_async_functions_try_again_and_time_out(db):
    tries = {}

    @ab.udf(retries=2)
    async def flaky(x: int) -> int:
        tries[x] = tries.get(x, 0) + 1
        if tries[x] < 3:
            raise OSError("not yet")
        return x

    assert db.values({"x": [5]}).select(y=flaky("x")).item() == 5 and tries == {5: 3}

    @ab.udf(timeout="10ms")
    async def never(x: int) -> int:
        await asyncio.sleep(5)
        return x

    with pytest.raises(ab.RowError, match="TimeoutError"):
        db.values({"x": [5]}).select(y=never("x")).fetchall()


def test_a_function_may_not_ask_its_own_database(db, t):
    @ab.udf
    def asks(x: int) -> int:
        return db.sql("SELECT 1").item()

    with pytest.raises(ab.RowError, match="a function asks the database that runs it"):
        t.select(y=asks("x")).fetchall()


def test_what_is_missing_in_a_declaration_is_said():
    with pytest.raises(ab.ProgrammingError, match="type of what f"):
        @ab.udf
        def f(x: int):
            return x
    with pytest.raises(ab.ProgrammingError, match="without annotation"):
        @ab.udf(returns=int)
        def g(x):
            return x
    with pytest.raises(ab.ProgrammingError, match="mixes"):
        @ab.udf(returns=int)
        def h(x: int, y: np.ndarray):
            return x


def test_functions_cannot_be_in_views_that_last(tmp_path):
    with ab.connect(tmp_path / "d") as db:
        t = db.create_table("t", {"x": int})
        t.insert([(4,)])
        assert t.select(y=half("x")).item() == 2.0
        with pytest.raises(ab.NotSupportedError, match="lives in this process only"):
            t.select(y=half("x")).create_view("v")
    with ab.connect(tmp_path / "d") as db:
        assert db.table("t").item() == 4


def test_registered_names_can_be_forgotten(db, t):
    db.register("half", half)
    db.unregister("half")
    with pytest.raises(ab.UnknownName):
        db.sql("SELECT half(x) FROM t")
    with pytest.raises(ab.UnknownName):
        db.unregister("half")


def test_annotations_may_name_what_is_imported_inside_a_function(db, t):
    import numpy as inner

    def scaled(y):
        return y * 2

    scaled.__annotations__ = {"y": "inner.ndarray"}
    f = ab.udf(returns=int)(scaled)
    assert f.mode == "batch" and inner is np
