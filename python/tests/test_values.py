"""Acceptance 3 to 7, 12, 14, 15: values as Polars has them, departures, types there and back,
names."""

import datetime as dt
import random
from decimal import Decimal

import pytest

import anabranch as ab
from anabranch import testing as at

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


FRAME = pl.DataFrame({"i": [7, -7, 2, None], "j": [2, 2, -3, 1], "f": [0.5, 1.5, 2.5, None], "s": ["a", None, "b", "a"],
                      "d": [dt.date(2026, 11, 23), dt.date(2026, 11, 29), None, dt.date(2024, 2, 29)]})


@pytest.mark.parametrize("f", [
    lambda x, c: x.select(c("i").filter(c("i") > 100).sum()), lambda x, c: x.select(c("i").sum(), c("f").mean().alias("m")),
    lambda x, c: x.select(c("i") // c("j")), lambda x, c: x.select(c("i") % c("j")), lambda x, c: x.select(c("i") / c("j")),
    lambda x, c: x.select(c("f").round()), lambda x, c: x.select((c("f") * 1.1).round(1)), lambda x, c: x.select(c("s").count()),
    lambda x, c: x.select(c("s").len().cast(int)), lambda x, c: x.select(c("s").n_unique().cast(int)), lambda x, c: x.select(c("d").dt.weekday().cast(int)),
    lambda x, c: x.select(c("d").dt.week().cast(int)), lambda x, c: x.select(c("d").dt.year().cast(int), c("d").dt.ordinal_day().cast(int).alias("o")),
    lambda x, c: x.sort("i", "j").select("i"), lambda x, c: x.sort("i", descending=True, nulls_last=True).select("i"),
    lambda x, c: x.select(c("i").is_in([7, 2])), lambda x, c: x.select(c("i").fill_null(c("j"))), lambda x, c: x.select(c("s") + "!"),
    lambda x, c: x.select(c("i").abs(), c("j").sign().alias("g")), lambda x, c: x.select((c("i") > 0) & (c("j") > 0)),
    lambda x, c: x.select((c("i") > 0) | (c("j") > 0)), lambda x, c: x.select(~(c("i") > 0)), lambda x, c: x.select(c("f").floor(), c("f").ceil().alias("h")),
    lambda x, c: x.select(c("s").str.to_uppercase(), c("s").str.len_chars().cast(int).alias("n")), lambda x, c: x.drop_nulls().select("i"),
    lambda x, c: x.with_columns(k=c("i") * 2).select("k", "j"), lambda x, c: x.rename({"i": "z"}).select("z"),
    lambda x, c: x.group_by("s").agg(c("i").sum(), c("j").max().alias("m")).sort("s"), lambda x, c: x.filter(c("s") == "a").select("i"),
    lambda x, c: x.select(c("i").cast(str)), lambda x, c: x.select(c("f").cast(int)), lambda x, c: x.select(c("f").std(), c("f").var().alias("v")),
    lambda x, c: x.select(c("i").clip(0, 3)), lambda x, c: x.select(c("s").replace({"a": "z"})), lambda x, c: x.unique(["s"]).select("s").sort("s"),
])
def test_methods_have_the_values_of_polars(db, f):
    t = db.relation(FRAME)
    key = lambda row: tuple((v is not None, v) if not isinstance(v, float) else (True, v) for v in row)  # noqa: E731
    ours, theirs = f(t, ab.col), f(FRAME, pl.col)
    assert ours.columns == theirs.columns
    for a, b in zip(sorted(ours, key=key), sorted(theirs.rows(), key=key), strict=True):
        assert a == pytest.approx(b, nan_ok=True) if all(isinstance(v, (int, float)) for v in a) else a == b


def test_departures(db):
    t = db.relation({"k": [1, 2, 2], "x": [1, 0, 2**62]})
    with pytest.raises(ab.DataError, match="division by zero"):
        t.select(10 // ab.col("x")).fetchall()
    with pytest.raises(ab.DataError, match="out of range"):
        t.select(ab.col("x") * 4).fetchall()
    with pytest.raises(ab.ProgrammingError, match="rows have no order"):
        t.group_by("k").agg(ab.col("x").first())
    with pytest.raises(ab.ProgrammingError, match="rows have no order"):
        t.with_columns(y=ab.col("x").shift())
    with pytest.raises(ab.ProgrammingError, match="rows have no order"):
        t.with_row_index()
    assert t.head(2).fetchall() == [(1, 1), (2, 0)]
    asof = db.relation({"t": [5]}).join_asof(db.relation({"t": [3, 3], "v": [9, 4]}), on="t")
    assert asof.fetchall() == [(5, 4)]
    assert t.select(ab.len()).dtypes == ["bigint"] and t.select(ab.col("x").n_unique()).dtypes == ["bigint"]
    assert db.values([(Decimal("0.10"),), (Decimal("0.20"),)], {"d": "numeric(8,2)"}).select(ab.col("d").sum()).item() == Decimal("0.30")
    with pytest.raises(TypeError):
        ab.col("x").quantile(0.5)
    with pytest.raises(TypeError):
        ab.col("x").rank()


VALUES = {
    "boolean": [True, False, None], "smallint": [-2**15, 2**15 - 1, None], "integer": [-2**31, 2**31 - 1, None],
    "bigint": [-2**63, 2**63 - 1, None], "double precision": [1.5, -1e300, None], "numeric(10,2)": [Decimal("12.34"), Decimal("-99999999.99"), None],
    "text": ["", "ä𝄞", None], "bytea": [b"", b"\x00\xff", None], "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
    "time": [dt.time(0, 0), dt.time(23, 59, 59, 999999), None], "timestamp": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    "timestamptz": [dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc), None],
    "bigint[]": [[1, None], [], None], "text[]": [["a", ""], [], None],
}


@pytest.mark.parametrize("of", VALUES)
def test_types_there_and_back(db, of):
    values = VALUES[of]
    t = db.create_table("t", {"n": int, "v": of})
    assert t.dtypes[1] == of
    t.insert(list(enumerate(values)))
    back = lambda r: [row[1] for row in sorted(r)]  # noqa: E731
    assert back(t) == values
    frame, table = t.pl(), t.arrow()
    t.truncate()
    t.insert(frame)
    assert back(t) == values
    t.truncate()
    t.insert(table)
    assert back(t) == values
    t.truncate()
    t.insert({"n": [0, 1, 2], "v": values})
    assert back(t) == values
    empty = db.relation(frame.head(0))
    assert empty.columns == ["n", "v"] and empty.fetchall() == [] and empty.pl().shape == (0, 2)


def test_numpy_and_pandas_there_and_back(db):
    t = db.create_table("t", {"i": int, "f": float, "s": str, "at": "timestamp"})
    frame = pd.DataFrame({"i": [1, 2], "f": [0.5, np.nan], "s": ["a", None], "at": pd.to_datetime(["2026-01-01", None])})
    t.insert(frame)
    assert sorted(t) == [(1, 0.5, "a", dt.datetime(2026, 1, 1)), (2, None, None, None)]
    again = t.sort("i").df()
    assert list(again["i"]) == [1, 2] and again["f"].isna().tolist() == [False, True] and again["s"].tolist()[0] == "a"
    arrays = t.sort("i").numpy()
    assert arrays["i"].tolist() == [1, 2] and arrays["f"].mask.tolist() == [False, True]
    assert db.relation(np.array([[1, 2], [3, 4]])).fetchall() == [(1, 2), (3, 4)]
    assert db.relation({"x": np.array([1.0, np.nan])}).select(ab.col("x").is_null().sum()).item() in (0, 1)
    assert pa.table(t.collect()).num_rows == 2


def test_a_value_out_of_range_takes_in_no_row(db):
    t = db.create_table("t", {"x": "smallint"})
    with pytest.raises(ab.DataError) as caught:
        t.insert([(1,), (70_000,)])
    assert t.row_count() == 0 and "70000" in str(caught.value)
    with pytest.raises(ab.DataError):
        t.insert(pl.DataFrame({"x": [1, 70_000]}))
    assert t.row_count() == 0
    with pytest.raises(ab.DataError):
        t.insert([("nine",)])


def test_a_view_after_a_thousand_changes_is_its_query(db):
    chance = random.Random(1)
    t = db.create_table("t", {"k": int, "g": str, "x": int}, primary_key="k")
    views = [t.group_by("g").agg(n=ab.len(), s=ab.col("x").sum(), m=ab.col("x").max()).create_view("a"),
             t.sort("x", "k", descending=True).head(5).create_view("b"),
             t.join(t.rename({"k": "l", "g": "h", "x": "y"}), left_on="x", right_on="l").create_view("c")]
    for _ in range(250):
        t.upsert([(chance.randrange(60), chance.choice("abc"), chance.randrange(60)) for _ in range(1)])
        t.upsert({"k": [k := chance.randrange(60)], "g": ["z"], "x": [k]})
        t.update(lambda r: r.k == chance.randrange(60), x=lambda r: r.x + 1)
        t.delete(lambda r: r.k == chance.randrange(60))
    for view in views:
        at.assert_current(view)


def test_an_unknown_name_is_an_error_of_its_line(db):
    t = db.create_table("t", {"amount": int, "region": str})
    for wrong in (lambda: t.select("amont"), lambda: t.filter(ab.col("amont") > 1), lambda: t.group_by("amont"), lambda: t.sort("amont"),
                  lambda: t.filter(lambda r: r.amont > 1), lambda: t.join(t, on="amont"), lambda: t["amont"]):
        with pytest.raises(ab.UnknownName, match='no column "amont"') as caught:
            wrong()
        assert caught.value.sqlstate == "42703" and 'did you mean "amount"?' in caught.value.hint
    with pytest.raises(ab.UnknownName, match="sql_expr"):
        t.filter("amount > 1")
    with pytest.raises(ab.UnknownName) as caught:
        db.sql("SELECT amont\nFROM t")
    assert caught.value.line == 1 and caught.value.column == 8


@pytest.mark.parametrize("f", [
    lambda r: r.x > 1 and r.x < 3, lambda r: not r.x, lambda r: 1 < r.x < 3, lambda r: r.x if r.x else 0, lambda r: max(r.x, 1), lambda r: len(r.s),
    lambda r: int(r.x), lambda r: float(r.x), lambda r: [v for v in r.x], lambda r: f"{r.x}", lambda r: {r.x: 1}, lambda r: r.x.nothing(), lambda r: None,
    lambda r: 3 in r.x, lambda r: divmod(r.x, 2),
])
def test_what_cannot_be_traced_says_why(db, f):
    t = db.create_table("t", {"x": int, "s": str})
    with pytest.raises(ab.TraceError) as caught:
        t.select(y=f)
    assert caught.value.hint


def test_what_is_traced(db):
    t = db.values([(4, "ab")], {"x": int, "s": str})
    import math
    made = t.map(lambda r: {"a": abs(-r.x), "b": round(r.x / 3, 1), "c": np.sqrt(r.x), "d": r["x"] * math.pi, "e": sum(r.x + i for i in range(3))})
    assert made.fetchall()[0] == pytest.approx((4, 1.3, 2.0, 4 * math.pi, 15))


frame_of_module = pl.DataFrame({"x": [1, 2, 3]})


def test_names_of_python_variables(db):
    assert db.sql("SELECT sum(x) FROM frame_of_module").item() == 6
    frame_of_test = {"x": [5]}
    with pytest.raises(ab.UnknownName, match="frame_of_test"):
        db.sql("SELECT * FROM frame_of_test")
    frame_of_module = pl.DataFrame({"x": [10]})  # noqa: F841 (locals before globals)
    r = db.sql("SELECT sum(x) FROM frame_of_module")
    assert r.item() == 10
    frame_of_module = None  # noqa: F841
    assert r.item() == 10
    frame_of_module = pl.DataFrame({"x": [10]})  # noqa: F841
    db.create_table("frame_of_module", {"x": int})
    assert db.sql("SELECT count(*) FROM frame_of_module").item() == 0
    db.drop("frame_of_module")
    db.set("replacement_scans", False)
    with pytest.raises(ab.UnknownName):
        db.sql("SELECT sum(x) FROM frame_of_module")


def test_a_filtered_column_is_no_column(db):
    t = db.values([(1,)], {"x": int})
    with pytest.raises(ab.ProgrammingError, match="another length"):
        t.select(ab.col("x").filter(ab.col("x") > 0))
