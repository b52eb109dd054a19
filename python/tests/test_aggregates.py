"""Aggregates of Python: traced, by row, by batch; in expressions and in SQL; their law."""

import random

import pytest

import anabranch as ab
from anabranch import testing as at


@ab.udaf(returns=float)
class vwap:
    def initial(self): return (0.0, 0)
    def accumulate(self, s, price, qty): return (s[0] + price * qty, s[1] + qty)
    def retract(self, s, price, qty): return (s[0] - price * qty, s[1] - qty)
    def merge(self, a, b): return (a[0] + b[0], a[1] + b[1])
    def finish(self, s): return s[0] / s[1]


@ab.udaf(returns=str)
class letters:
    """The letters of all texts, in order: by row, with rows that can be taken out."""

    def initial(self): return ()
    def accumulate(self, s, text): return tuple(sorted(s + tuple(text)))

    def retract(self, s, text):
        left = list(s)
        for letter in text:
            left.remove(letter)
        return tuple(left)

    def finish(self, s): return "".join(s)


@ab.udaf(returns=int)
class span:
    """Greatest less least: without retract, so rows are kept."""

    def initial(self): return None
    def accumulate(self, s, x): return (x, x) if s is None else (min(s[0], x), max(s[1], x))
    def finish(self, s): return None if s is None else s[1] - s[0]


@ab.udaf(returns=int, mode="batch")
class total:
    def initial(self): return 0

    def accumulate(self, states, places, xs):
        for place, x in zip(places, xs):
            states[place] += x
        return states

    def retract(self, states, places, xs):
        for place, x in zip(places, xs):
            states[place] -= x
        return states

    def merge(self, a, b): return a + b
    def finish(self, s): return s


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


def test_how_they_run():
    assert [f.mode for f in (vwap, letters, span, total)] == ["traced", "row", "row", "batch"]


def test_a_traced_aggregate_is_written_as_sums(db):
    t = db.create_table("t", {"sym": str, "price": float, "qty": int})
    t.insert([("a", 10.0, 1), ("a", 13.0, 2), ("b", 1.0, 1), ("b", None, 5)])
    by = t.group_by("sym").agg(p=vwap("price", "qty"))
    assert "sum(" in by.sql_query().lower()
    assert sorted(by) == [("a", 12.0), ("b", 1.0)]
    db.register("vwap", vwap)
    assert sorted(db.sql("SELECT sym, vwap(price, qty) FROM t GROUP BY sym")) == [("a", 12.0), ("b", 1.0)]
    assert db.sql("SELECT vwap(price, qty) FILTER (WHERE sym = 'a') FROM t").item() == 12.0
    assert sorted(db.sql("SELECT DISTINCT sym, vwap(price, qty) OVER (PARTITION BY sym) AS p FROM t")) == [("a", 12.0), ("b", 1.0)]
    assert db.sql("SELECT 'vwap(1, 2)' AS x -- vwap(\n").item() == "vwap(1, 2)"
    assert db.sql("SELECT vwap(price + 1, (qty)) AS p FROM t WHERE sym = 'a'").item() == 13.0


def test_integer_division_in_sql_is_that_of_python(db):
    @ab.udaf(returns=float)
    class mean_of_halves:
        def initial(self): return (0.0, 0)
        def accumulate(self, s, x): return (s[0] + x / 2, s[1] + 1)
        def finish(self, s): return s[0] / s[1]

    t = db.create_table("t", {"x": int})
    t.insert([(1,), (2,)])
    db.register("mean_of_halves", mean_of_halves)
    assert mean_of_halves.mode == "traced"
    assert t.select(m=mean_of_halves("x")).item() == 0.75
    assert db.sql("SELECT mean_of_halves(x) FROM t").item() == 0.75


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_all_kinds_follow_random_changes(workers):
    chance = random.Random(3)
    with ab.connect(workers=workers) as db:
        t = db.create_table("t", {"k": int, "g": int, "s": str, "x": int}, primary_key="k")
        for f in (letters, span, total):
            db.register(f.name, f)
        v = t.group_by("g").agg(l=letters("s"), d=span("x"), n=total("x")).create_view("v")
        w = db.sql("SELECT g, letters(s) AS l, span(x) AS d, total(x) FILTER (WHERE x > 3) AS n FROM t GROUP BY g").create_view("w")
        rows = {}
        for _ in range(40):
            k = chance.randrange(12)
            if k in rows and chance.random() < 0.4:
                t.delete(keys={"k": [k]})
                del rows[k]
            else:
                rows[k] = (k, chance.randrange(3), chance.choice(["ab", "ba", "c", None]), chance.choice([1, 5, 9, None]))
                t.upsert([rows[k]])
            def values(i, g): return [r[i] for r in rows.values() if r[1] == g and r[i] is not None]
            def wanted(least):
                out = []
                for g in sorted({r[1] for r in rows.values()}):
                    xs = values(3, g)
                    out.append((g, "".join(sorted("".join(values(2, g)))), max(xs) - min(xs) if xs else None,
                                sum(x for x in xs if x > least)))
                return out
            assert sorted(v) == wanted(-1)
            assert sorted(w) == wanted(3)


def test_check_udaf_finds_a_wrong_retract():
    @ab.udaf(returns=int)
    class wrong:
        def initial(self): return 0
        def accumulate(self, s, x): return s + x
        def retract(self, s, x): return s - 2 * x
        def finish(self, s): return s

    assert wrong.mode == "row"
    at.check_udaf(vwap, [(1.0, 2), (3.0, 4)])
    at.check_udaf(letters, ["ab", "c"])
    with pytest.raises(AssertionError, match="retract of"):
        at.check_udaf(wrong, [1, 2])


def test_what_cannot_be_traced_is_said():
    with pytest.raises(ab.TraceError):
        @ab.udaf(returns=int, mode="traced")
        class largest:
            def initial(self): return 0
            def accumulate(self, s, x): return max(s, x)
            def finish(self, s): return s
    with pytest.raises(ab.ProgrammingError, match="no method"):
        @ab.udaf(returns=int)
        class nothing:
            pass


def test_an_exception_is_the_error_of_its_group(db):
    @ab.udaf(returns=int)
    class picky:
        def initial(self): return ()
        def accumulate(self, s, x): return s + (x,)
        def finish(self, s):
            if 13 in s:
                raise ValueError("no thirteen")
            return len(s)

    t = db.create_table("t", {"g": str, "x": int})
    t.insert([("a", 1), ("b", 13), ("b", 2)])
    v = t.group_by("g").agg(n=picky("x")).create_view("v")
    with pytest.raises(ab.RowError, match="picky\\(\\) raised ValueError: no thirteen") as caught:
        v.fetchall()
    assert "Traceback" in caught.value.traceback
    t.delete(lambda r: r.x == 13)
    assert sorted(v) == [("a", 1), ("b", 1)]
