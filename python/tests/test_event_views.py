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
    view = db.create_view("sums", sums)
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
    view = db.create_view("n", t.events(time="at").tumbling(5).agg(n=ab.len()))
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
    view = db.create_view("v", t.events().group_by("g").agg(n=ab.len(), x=ab.col("x").sum()))
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
    with pytest.raises(ab.NotSupportedError, match="in force at its frontier"):
        readings(db).events(time="at").relation()
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
