"""Events: every verb of docs/verbs, on history and live, with the answers of the pages."""

import datetime as dt
import warnings

import pytest

import anabranch as ab
from anabranch import testing as at


def points(*rows, **kw):
    """An input of events (k, x) at times."""
    return ab.Events.input("in", {"k": str, "x": int, "at": int}, time="at", **kw), [("a", x, t) for x, t in rows]


def asked(events, rows):
    return sorted(events.run({"in": rows}).fetchall(), key=repr)


E, ROWS = points((3, 3), (7, 7), (14, 14))


@pytest.mark.parametrize("made, expected", [
    (lambda e: e.filter(ab.col("x") > 5).select("x"), [(14, 15, 14), (7, 8, 7)]),
    (lambda e: e.filter(lambda r: (r.x > 5) & (r.k == "a")).select("x"), [(14, 15, 14), (7, 8, 7)]),
    (lambda e: e.select("x", y=ab.col("x") // 2), [(14, 15, 14, 7), (3, 4, 3, 1), (7, 8, 7, 3)]),
    (lambda e: e.select("x").with_columns(at=ab.start(), x=ab.col("x") + 1), [(14, 15, 15, 14), (3, 4, 4, 3), (7, 8, 8, 7)]),
    (lambda e: e.select("x").shift(10), [(13, 14, 3), (17, 18, 7), (24, 25, 14)]),
    (lambda e: e.select("x").shift(-3), [(0, 1, 3), (11, 12, 14), (4, 5, 7)]),
    (lambda e: e.select("x").alter_duration(5), [(14, 19, 14), (3, 8, 3), (7, 12, 7)]),
    (lambda e: e.select("x").alter_duration(ab.col("x")), [(14, 28, 14), (3, 6, 3), (7, 14, 7)]),
    (lambda e: e.select("x").alter_duration(None), [(14, None, 14), (3, None, 3), (7, None, 7)]),
    (lambda e: e.select("x").alter_lifetime(ab.start() - 2, 4), [(1, 5, 3), (12, 16, 14), (5, 9, 7)]),
    (lambda e: e.select("x").extend(2), [(14, 17, 14), (3, 6, 3), (7, 10, 7)]),
    (lambda e: e.select("x").alter_duration(9).clip_duration(3), [(14, 17, 14), (3, 6, 3), (7, 10, 7)]),
    (lambda e: e.select("x").alter_duration(4).point_at_end(), [(11, 12, 7), (18, 19, 14), (7, 8, 3)]),
    (lambda e: e.select("x").alter_duration(9).chop(10), [(10, 12, 3), (10, 16, 7), (14, 20, 14), (20, 23, 14), (3, 10, 3), (7, 10, 7)]),
    (lambda e: e.select("x").alter_duration(9).chop(10).stitch(), [(14, 23, 14), (3, 12, 3), (7, 16, 7)]),
    (lambda e: e.tumbling(10).agg(n=ab.len(), x=ab.col("x").sum()), [(10, 20, 2, 10), (20, 30, 1, 14)]),
    (lambda e: e.tumbling(10).agg(ab.col("x").max()).select(ab.window_start(), ab.window_end(), "x"),
     [(10, 20, 0, 10, 7), (20, 30, 10, 20, 14)]),
    (lambda e: e.hopping(10, 5).agg(n=ab.len()), [(10, 15, 2), (15, 20, 2), (20, 25, 1), (5, 10, 1)]),
    (lambda e: e.repetitive_hopping(10, 5).select("x"), [(10, 15, 3), (10, 15, 7), (15, 20, 14), (15, 20, 7), (20, 25, 14), (5, 10, 3)]),
    (lambda e: e.quantize(10).agg(n=ab.len()), [(0, 10, 2), (10, 20, 1)]),
    (lambda e: e.quantize_progressive(10, 10, 5).agg(n=ab.len()), [(0, 5, 1), (10, 20, 1), (5, 10, 2)]),
    (lambda e: e.tumbling(10).emit("early").agg(n=ab.len()), [(14, 21, 1), (3, 7, 1), (7, 11, 2)]),
    (lambda e: e.quantize(10).emit("on_close").agg(n=ab.len()), [(10, 20, 2), (20, 30, 1)]),
    (lambda e: e.select("x").session(5), [(14, 19, 14), (3, 12, 3), (7, 12, 7)]),
    (lambda e: e.group_by("k").agg(n=ab.len()), [(14, 15, "a", 1), (3, 4, "a", 1), (7, 8, "a", 1)]),
    (lambda e: e.alter_duration(5).agg(n=ab.len(), m=ab.col("x").mean()), [(14, 19, 1, 14.0), (3, 7, 1, 3.0), (7, 8, 2, 5.0), (8, 12, 1, 7.0)]),
    (lambda e: e.select("k").alter_duration(5).distinct(), [(14, 19, "a"), (3, 7, "a"), (7, 8, "a"), (8, 12, "a")]),
    (lambda e: e.select("x").union(e.select("x").shift(1)), [(14, 15, 14), (15, 16, 14), (3, 4, 3), (4, 5, 3), (7, 8, 7), (8, 9, 7)]),
    (lambda e: e.select("x").consecutive_pairs(), [(14, 15, 7, 14), (7, 8, 3, 7)]),
    (lambda e: e.select("x").followed_by_immediate(ab.col("x") < 7, ab.col("x") == 7, 5), [(7, 8, 3, 7)]),
    (lambda e: e.sessionize("k", opens=ab.col("x") == 3, closes=ab.col("x") == 14).select("k", "x", "x_right"), [(14, 15, "a", 3, 14)]),
    (lambda e: e.group_apply("k", lambda g: g.session(5)).select("k", "x"), [(14, 19, "a", 14), (3, 12, "a", 3), (7, 12, "a", 7)]),
])
def test_verbs_of_one_input(made, expected):
    assert asked(made(E), ROWS) == expected


AGGREGATES = [
    (ab.len(), 3), (ab.col("x").count(), 3), (ab.col("x").sum(), 24), (ab.col("x").mean(), 8.0), (ab.col("x").min(), 3),
    (ab.col("x").max(), 14), (ab.col("x").median(), 7.0), (ab.col("x").n_unique(), 3), (ab.col("x").product(), 294),
    (ab.col("x").first(), 3), (ab.col("x").last(), 14), (ab.col("x").implode(), [3, 7, 14]),
    (ab.col("x").percentile_cont(0.5), 7.0), (ab.col("x").percentile_disc(0.9), 14), (ab.col("x").var(0), 62 / 3),
    (ab.col("x").sum().filter(ab.col("x") > 3), 21), (ab.col("x").sum() / ab.len(), 8.0), ((ab.col("x") > 3).any(), True),
    ((ab.col("x") > 3).all(), False), (ab.col("x").sum_squares(), 254), (ab.col("x").null_count(), 0),
]


@pytest.mark.parametrize("aggregate, expected", AGGREGATES)
def test_aggregates(aggregate, expected):
    (row,) = E.tumbling(20).agg(v=aggregate).run({"in": ROWS})
    assert row == (20, 40, pytest.approx(expected))


def two(left_schema, right_schema):
    return ab.Events.input("l", {**left_schema, "at": int}, time="at"), ab.Events.input("r", {**right_schema, "at": int}, time="at")


def test_joins_keep_to_lifetimes():
    l, r = two({"k": str, "a": int}, {"k": str, "b": int})
    l, r = l.select("k", "a").alter_duration(10), r.select("k", "b").alter_duration(3)
    rows = {"l": [("x", 1, 0), ("y", 2, 0)], "r": [("x", 7, 5), ("x", 8, 20)]}
    got = lambda e: sorted(e.run(rows).fetchall(), key=repr)  # noqa: E731
    assert got(l.join(r, on="k")) == [(5, 8, "x", 1, 7)]
    assert got(l.join(r, on="k", how="left")) == [(0, 10, "y", 2, None), (0, 5, "x", 1, None), (5, 8, "x", 1, 7), (8, 10, "x", 1, None)]
    assert got(l.join(r, on="k", how="full")) == [(0, 10, "y", 2, None), (0, 5, "x", 1, None), (20, 23, "x", None, 8), (5, 8, "x", 1, 7), (8, 10, "x", 1, None)]
    assert got(l.join(r, on="k", where=lambda l, r: l.a > r.b)) == []
    assert got(l.join(r, left_on="k", right_on="k", where=ab.col("b") == 7)) == [(5, 8, "x", 1, "x", 7)]
    assert got(l.where_not_exists(r, on="k")) == [(0, 10, "y", 2), (0, 5, "x", 1), (8, 10, "x", 1)]
    assert got(l.clip_by(r, on="k")) == [(0, 10, "y", 2), (0, 5, "x", 1)]
    assert got(l.join(r, on="k", suffix="_r")) == [(5, 8, "x", 1, 7)]


def test_as_of_joins_look_both_ways():
    l, r = two({"k": str, "a": int}, {"k": str, "b": int})
    l, r = l.select("k", "a"), r.select("k", "b")
    rows = {"l": [("x", 1, 5)], "r": [("x", 7, 3), ("x", 8, 8)]}
    got = lambda e: e.run(rows).fetchall()  # noqa: E731
    assert got(l.join_asof(r, by="k")) == [(5, 6, "x", 1, 7)]
    assert got(l.join_asof(r, by="k", strategy="forward", tolerance=10)) == [(8, 9, "x", 1, 8)]
    assert got(l.join_asof(r, by="k", strategy="nearest", tolerance=10)) == [(7, 8, "x", 1, 7)]
    assert got(l.join_asof(r, by="k", tolerance=1)) == [(5, 6, "x", 1, None)]
    assert got(l.join_asof(r, by="k", tolerance=1, how="inner")) == []
    with pytest.warns(UserWarning, match="wait for the end"):
        l.join_asof(r, by="k", strategy="forward")


def test_patterns():
    t = ab.Events.input("t", {"sym": str, "change": int, "at": int}, time="at")
    fall = ab.Pattern.event(lambda r: r.change < 0).set("depth", ab.reg("depth") - ab.col("change"))
    rise = ab.Pattern.event(ab.col("change") > 0)
    dip = fall.repeat(2).then(rise).register("depth", 0).within(100)
    rows = [("a", c, i) for i, c in enumerate([-3, -4, 5, -1, 2], 1)]
    assert t.group_apply("sym", lambda g: g.detect(dip)).run({"t": rows}).fetchall() == [(3, 101, "a", 7)]
    either = (rise | ab.Pattern.event(ab.col("change") == -1)).register("n", 0).set("n", ab.reg("n") + 1).within(10)
    assert sorted(r[2] for r in t.detect(either).run({"t": rows})) == [1, 1, 1]
    with pytest.raises(ab.UnknownName, match="no register"):
        t.detect(ab.Pattern.event(ab.col("change") > 0).set("n", ab.reg("m") + 1).register("n", 0).within(3))
    with pytest.raises(ab.ProgrammingError, match="duration"):
        t.alter_duration(ab.col("change")).detect(rise.register("n", 0))


def test_timestamps_are_the_timeline():
    e = ab.Events.input("in", {"x": int, "at": "timestamp"}, time="at")
    day = lambda s: dt.datetime(2026, 1, 1, 0, 0, s)  # noqa: E731
    rows = e.tumbling("10s").agg(n=ab.len()).select("n", ab.window_start()).run({"in": [(1, day(3)), (2, day(7))]})
    assert rows.fetchall() == [(day(10), day(20), 2, day(0))]
    assert rows.columns == ["start", "end", "n", "window_start"]
    with ab.connect() as db, db.start(e.select("x", at=ab.start())) as run:
        run.push("in", [ab.Event.point(day(5), (1, day(5)))])
        run.advance("in", day(9))
        assert run.lifetimes().fetchall() == [(day(5), dt.datetime(2026, 1, 1, 0, 0, 5, 1), 1, day(5))]


def test_a_live_run_has_the_answers_of_history():
    query = E.hopping(10, 5).group_by("k").agg(n=ab.len(), x=ab.col("x").sum())
    history = sorted(query.run({"in": ROWS}).fetchall())
    with ab.connect() as db, db.start(query) as run:
        live = []
        for row in ROWS:
            run.push("in", [row])
            run.advance("in", row[2])
            live += run.lifetimes().fetchall()
        assert live and run.frontier >= 10
        run.finish()
        live += run.lifetimes().fetchall()
    assert sorted(live) == history
    with ab.connect() as db, db.start(query) as run:
        run.play_to_end({"in": ROWS[::-1]})
        assert sorted(run.lifetimes()) == history


def test_late_rows_are_counted_and_reported():
    e = ab.Events.input("in", {"x": int, "at": int}, time="at", on_disorder="drop", reorder_latency=10, report_late=True)
    with ab.connect() as db, db.start(e) as run:
        run.push("in", [(1, 20), (2, 15), (3, 40), (4, 28)])
        assert run.late("in") == (1, 0) and run.late("in").dropped == 1
        assert run.late_rows("in").fetchall() == [(28, 4, 28, None)]
        run.finish()
        assert sorted(r[0] for r in run.lifetimes()) == [15, 20, 40]


def test_refused_rows_leave_the_run_as_it_was():
    with ab.connect() as db, db.start(E) as run:
        run.push("in", [("a", 1, 5)])
        run.advance("in", 10)
        with pytest.raises(ab.DataError, match="comes after the input was complete"):
            run.push("in", [("a", 2, 7)])
        with pytest.raises(ab.ProgrammingError, match='no input "inn"'):
            run.push("inn", [])
        with pytest.raises(ab.UnknownName):
            run.push("in", [{"k": "a", "y": 2, "at": 12}])
        run.push("in", {"at": [12], "x": [3], "k": ["b"]})
        run.finish()
        assert sorted(run.lifetimes()) == [(5, 6, "a", 1, 5), (12, 13, "b", 3, 12)]
        run.close()
        with pytest.raises(ab.InterfaceError, match="run was closed"):
            run.finish()


def test_events_of_a_relation_and_back():
    with ab.connect() as db:
        t = db.create_table("t", {"k": str, "at": int})
        t.insert([("a", 1), ("a", 4), ("b", 20)])
        counted = t.events(time="at").tumbling(10).group_by("k").agg(n=ab.len())
        assert sorted(counted.run()) == [(10, 20, "a", 2), (20, 30, "b", 1)]
        found = db.relation(counted.run())
        assert db.sql("SELECT sum(n) FROM found").item() == 3


def test_functions_of_python_in_events():
    @ab.udf
    def twice(x: int) -> int:
        return 2 * x

    @ab.udaf(returns=int)
    class longest:
        def initial(self): return 0
        def accumulate(self, s, x): return max(s, x)
        def finish(self, s): return s

    @ab.udaf(returns=float)
    class mean:
        def initial(self): return (0.0, 0)
        def accumulate(self, s, x): return (s[0] + x, s[1] + 1)
        def finish(self, s): return s[0] / s[1]

    assert asked(E.select(y=twice("x")), ROWS) == [(14, 15, 28), (3, 4, 6), (7, 8, 14)]
    assert asked(E.tumbling(20).agg(l=longest("x"), m=mean("x")), ROWS) == [(20, 40, 14, 8.0)]


@pytest.mark.parametrize("wrong, kind, text", [
    (lambda: E.filter("xx"), ab.UnknownName, 'no column "xx"'),
    (lambda: E.select(ab.col("x") + ab.col("k")), ab.TypeMismatch, "not defined"),
    (lambda: E.tumbling("1h"), ab.ProgrammingError, "length of a tick"),
    (lambda: E.tumbling(0), ab.ProgrammingError, "positive"),
    (lambda: E.emit("early"), ab.ProgrammingError, "about no windows"),
    (lambda: E.agg("x"), ab.GroupingError, "not aggregated"),
    (lambda: E.select(ab.col("x").sum()), ab.GroupingError, "aggregate"),
    (lambda: E.select(ab.window_start()), ab.ProgrammingError, "no windows"),
    (lambda: E.tumbling(10).agg(ab.col("x").string_agg()), ab.NotSupportedError, "no aggregate of events"),
    (lambda: E.group_apply("k", lambda g: None), ab.ProgrammingError, "gave NoneType"),
    (lambda: ab.Events.input("in", {"x": int, "at": str}, time="at"), ab.ProgrammingError, "holds no times"),
    (lambda: ab.Events.input("in", {"x": int}, time="at"), ab.UnknownName, "no column"),
    (lambda: E.union(E.select("x")), ab.ProgrammingError, "different columns"),
    (lambda: E.relation(snapshot=True), ab.NotSupportedError, "no relation"),
    (lambda: E.run({}), ab.ProgrammingError, "has no rows"),
    (lambda: E.shift("1mo"), ab.ProgrammingError, "months"),
])
def test_errors_come_from_the_line_that_makes_them(wrong, kind, text):
    with warnings.catch_warnings():
        with pytest.raises(kind, match=text):
            wrong()


def test_changelog():
    log = at.changelog(E.select("x").alter_duration(5), [at.row("in", ab.Event.point(3, ("a", 3, 3))), at.advance("in", 20)])
    assert log == ["@3 +1 3", "@8 -1 3"]


def test_a_pattern_without_registers_has_the_columns_of_its_groups():
    rise = ab.Pattern.event(ab.col("x") > 0).then(ab.Pattern.event(ab.col("x") > 1)).within(10)
    rows = {"in": [("a", 1, 1), ("a", 3, 2), ("b", 1, 3)]}
    events = ab.Events.input("in", {"k": str, "at": int, "x": int}, time="at")
    assert events.detect(rise).columns == []
    assert events.group_apply("k", lambda g: g.detect(rise)).run(rows).fetchall() == [(3, 11, "a")]


def test_pairs_of_a_group_have_its_keys_once():
    left = ab.Events.input("l", {"k": int, "x": int, "at": int}, time="at", duration=40)
    right = ab.Events.input("r", {"y": int, "k": int, "at": int}, time="at", duration=90)
    given = {"l": [(1, 10, 5), (2, 20, 6)], "r": [(7, 1, 3), (8, 2, 4)]}
    for join in (lambda a, b: a.join(b, on="k"), lambda a, b: a.join(b, left_on=[], right_on=[]),
                 lambda a, b: a.join(b, left_on=[], right_on=[], where=lambda l, r: (l.k == r.k) & (r.y > 6)),
                 lambda a, b: a.join(b, on="k", how="full").filter(ab.col("x").is_not_null() & ab.col("y").is_not_null())):
        pairs = left.group_apply_with(right, "k", join).select("k", "x", "y", "at", "at_right")
        assert sorted(row[2:] for row in pairs.run(given)) == [(1, 10, 7, 5, 3), (2, 20, 8, 6, 4)]
