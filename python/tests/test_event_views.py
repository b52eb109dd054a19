"""Events as views: kept current with the tables behind them, read and joined in SQL."""

import random

import pytest

import anabranch as ab


@pytest.fixture(params=[0, 2])
def db(request):
    with ab.connect(workers=request.param) as db:
        yield db


def readings(db):
    return db.create_table("readings", {"sensor": str, "at": int, "x": int}, watermark=("at", 2), append_only=True)


def test_a_view_of_events_follows_the_watermark(db):
    t = readings(db)
    sums = t.events(time="at").tumbling(10).group_by("sensor").agg(total=ab.col("x").sum())
    view = db.create_view("sums", sums, snapshot=True)
    names = db.create_table("names", {"sensor": ["a"], "name": ["hall"]})
    named = db.sql("SELECT name, total FROM sums JOIN names USING (sensor)").create_view("named")
    assert view.columns == ["sensor", "total"] and view.fetchall() == []
    t.insert([("a", 3, 5), ("a", 7, 6), ("b", 9, 1)])
    assert view.fetchall() == []
    t.insert([("b", 13, 1), ("a", 13, 2)])
    assert sorted(view) == [("a", 11), ("b", 1)] and named.fetchall() == [("hall", 11)]
    assert view.filter(ab.col("total") > 5).join(names, on="sensor").select("name").fetchall() == [("hall",)]


def test_changes_of_a_view_of_events_add_up(db):
    t = readings(db)
    view = db.create_view("n", t.events(time="at").tumbling(5).agg(n=ab.len()), snapshot=True)
    total = {}
    with view.changes(idle="300ms") as changes:
        for at in range(0, 40, 3):
            t.insert([("a", at, 1)])
        for batch in changes:
            for _, diff, n in batch:
                total[n] = total.get(n, 0) + diff
    assert [n for n, diff in total.items() if diff] == [n for (n,) in view]


def test_contents_by_commits_equal_sql(db):
    t = db.create_table("t", {"k": int, "g": int, "x": int}, primary_key="k")
    view = db.create_view("v", t.events().group_by("g").agg(n=ab.len(), x=ab.col("x").sum()), snapshot=True)
    rng = random.Random(4)
    for _ in range(40):
        if rng.random() < 0.7:
            t.upsert([(rng.randrange(9), rng.randrange(3), rng.randrange(50))])
        else:
            t.delete(ab.col("k") == rng.randrange(9))
        assert sorted(view) == sorted(db.sql("SELECT g, count(*), CAST(sum(x) AS bigint) FROM t GROUP BY g"))


def test_history_and_view_are_one_query(db):
    t = readings(db)
    query = t.events(time="at").quantize(10).group_by("sensor").agg(n=ab.len()).alter_duration(None)
    live = query.relation(snapshot=True)
    rows = [("ab"[i % 2], i, i) for i in range(30)]
    for i in range(0, 30, 4):
        t.insert(rows[i:i + 4])
    t.insert([("a", 100, 0)])
    wanted = sorted(row[2:] for row in query.run({"readings": rows}))
    assert wanted and sorted(live) == wanted


def test_a_relation_of_events_has_all_of_them(db):
    t = readings(db)
    query = t.events(time="at").tumbling(10).group_by("sensor").agg(n=ab.len())
    live, view = query.relation(), db.create_view("v", query)
    rows = [("ab"[i % 2], i, i) for i in range(60)]
    for i in range(0, 60, 7):
        t.insert(rows[i:i + 7])
    t.insert([("a", 200, 0)])
    assert live.columns == ["start", "end", "sensor", "n"] == view.columns
    wanted = sorted(query.run({"readings": rows}))
    assert wanted and sorted(live) == wanted == sorted(view)
    assert db.sql("SELECT count(*) FROM v WHERE \"end\" - start = 10").fetchone() == (len(wanted),)


def test_an_event_without_an_end_has_none_until_it_is_known(db):
    t = db.create_table("t", {"k": int, "x": int}, primary_key="k")
    live = t.events().relation()
    t.insert([(1, 5), (2, 6)])
    assert sorted(row[1:] for row in live) == [(None, 1, 5), (None, 2, 6)]
    t.upsert([(1, 7)])
    rows = sorted(live, key=lambda row: (row[2], row[3]))
    assert [row[2:] for row in rows] == [(1, 5), (1, 7), (2, 6)]
    assert rows[0][1] == rows[1][0] > rows[0][0] and [rows[1][1], rows[2][1]] == [None, None]
    t.delete(ab.col("k") == 2)
    assert [row[2:] for row in live if row[1] is None] == [(1, 7)]


def test_events_of_a_view_of_sql(db):
    t = db.create_table("t", {"k": int, "g": int, "x": int}, primary_key="k")
    totals = t.group_by("g").agg(s=ab.col("x").sum()).create_view("totals")
    view = db.create_view("v", totals.events().group_by("s").agg(n=ab.len()), snapshot=True)
    rng = random.Random(7)
    for _ in range(20):
        t.upsert([(rng.randrange(5), rng.randrange(3), rng.randrange(4))])
        wanted = db.sql("SELECT s, count(*) FROM (SELECT sum(x) AS s FROM t GROUP BY g) AS q GROUP BY s").fetchall()
        assert sorted(view) == sorted(wanted)


def test_progressive_answers_become_exact():
    e = ab.Events.input("in", {"g": str, "x": int, "at": int}, time="at")
    rows = [("abc"[i % 3], i, i) for i in range(30_000)]
    with ab.connect() as db:
        query = e.group_by("g").agg(n=ab.len(), x=ab.col("x").sum())
        answers = list(db.progressive(query, {"in": rows}, steps=3))
        assert len(answers) == 3 and [a.share for a in answers] == sorted(a.share for a in answers)
        assert answers[-1].share == 1 and answers[0].share < 1
        assert sorted(answers[-1].rows) == sorted((g, 10_000, sum(r[1] for r in rows if r[0] == g)) for g in "abc")
        assert sum(n for _, n, _ in answers[0].rows) < 30_000
        assert next(iter(db.progressive(query, {"in": []}, 2))).rows.fetchall() == []
        with pytest.raises(ab.ProgrammingError, match="looks at time"):
            db.progressive(e.tumbling(10).agg(n=ab.len()), {"in": rows})
        with pytest.raises(ab.ProgrammingError, match='no input "out"'):
            db.progressive(query, {"out": rows})
        with pytest.raises(ab.ProgrammingError, match='no source for input "in"'):
            db.progressive(query, {})
        stopped = db.progressive(query, {"in": rows}, 5)
        next(stopped)
        stopped.close()


def test_dropping_works_both_ways(db):
    t = readings(db)
    events = t.events(time="at").filter(ab.col("x") > 1)
    view = db.create_view("v", events)
    with pytest.raises(ab.DuplicateName):
        db.create_view("v", events)
    with pytest.raises(ab.Error) as caught:
        db.drop("readings")
    assert caught.value.sqlstate == "2BP01"
    view.drop()
    db.create_view("v", events)
    db.drop("readings", cascade=True)
    assert [n for n, *_ in db.relations()] == []


def test_what_cannot_be_followed_says_so(db):
    pushed = ab.Events.input("in", {"x": int, "at": int}, time="at")
    with pytest.raises(ab.NotSupportedError, match='"in" is no relation'):
        db.create_view("v", pushed)
    plain = db.create_table("plain", {"x": int, "at": int})
    with pytest.raises(ab.NotSupportedError, match="no relation that events can follow"):
        db.create_view("v", plain.events(time="at"))
    readings(db)
    with pytest.raises(ab.ProgrammingError, match="snapshot=True is of events"):
        db.create_view("v", db.table("readings"), snapshot=True)
    with pytest.raises(ab.ProgrammingError, match='a column is named "start"'):
        db.create_view("v", db.table("readings").events(time="at").select(start="x"))
    with ab.connect() as other, pytest.raises(ab.ProgrammingError, match="another database"):
        other.create_view("v", db.table("readings").events(time="at"))


def test_a_function_that_raises_is_the_error_of_the_view(db):
    t = readings(db)
    t.insert([("a", 1, 1)])

    @ab.udf
    def bad(x: int) -> int:
        raise ValueError("no")

    with pytest.raises(ab.RowError, match="bad.* raised ValueError"):
        db.create_view("b", t.events(time="at", duration=None).select(y=bad("x")))
    assert db.table("readings").row_count() == 1


def test_events_of_a_table_that_another_process_has_made(tmp_path):
    with ab.connect(tmp_path / "d") as db:
        readings(db)
        db.create_table("changed", {"at": int}, watermark=("at", 0))
    with ab.connect(tmp_path / "d") as db:
        assert db.table("readings").append_only and not db.table("changed").append_only
        assert list(db.table("readings").events(time="at")._inputs) == ["readings"]
        assert list(db.table("changed").events(time="at")._inputs) == ["rows"]
        with pytest.raises(ab.ProgrammingError, match="cannot be kept"):
            db.create_view("v", db.table("readings").events(time="at"))
