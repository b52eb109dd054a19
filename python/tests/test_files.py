"""Files: csv, json lines and parquet, read by questions, kept by views, written again, and followed
while they grow."""

import json

import pytest

import anabranch as ab

pl = pytest.importorskip("polars")


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.csv").write_text("k,x\na,1\nb,2\n")
    (tmp_path / "b.csv").write_text("k,x\na,3\n")
    (tmp_path / "rows.json").write_text("\n".join(json.dumps({"k": k, "x": x}) for k, x in [("a", 1), ("c", None)]) + "\n")
    pl.DataFrame({"k": ["a", "b"], "x": [1, 2]}).write_parquet(tmp_path / "rows.parquet")
    return tmp_path


def test_files_are_relations(db, folder):
    assert sorted(db.read_csv(folder / "a.csv")) == [("a", 1), ("b", 2)]
    assert db.read_csv(folder / "*.csv").group_by("k").agg(x=ab.col("x").sum()).sort("k").fetchall() == [("a", 4), ("b", 2)]
    assert db.read_csv([folder / "a.csv", folder / "b.csv"], schema={"k": str, "x": int}).row_count() == 3
    assert sorted(db.read_json(folder / "rows.json"), key=repr) == [("a", 1), ("c", None)]
    assert db.read_parquet(folder / "rows.parquet", columns=["x"]).sort("x").fetchall() == [(1,), (2,)]
    with pytest.raises(ab.Error):
        db.read_csv(folder / "nothing.csv").fetchall()


def test_what_is_written_can_be_read(db, folder):
    rows = db.values([("a", 1, 1.5), ("b", None, None)], {"k": str, "n": int, "x": float})
    for write, read, name in [("write_csv", "read_csv", "o.csv"), ("write_json", "read_json", "o.json"), ("write_parquet", "read_parquet", "o.parquet")]:
        getattr(rows, write)(folder / name)
        again = getattr(db, read)(folder / name)
        assert sorted(again.select("k", "n", "x"), key=repr) == sorted(rows, key=repr)


def test_a_followed_folder_takes_new_lines_and_files(db, folder):
    source = db.read_csv(folder / "*.csv", live=True, poll="20ms", schema={"k": str, "x": int})
    total = source.group_by("k").agg(x=ab.col("x").sum()).create_view("total")
    assert total.wait_for(lambda rows: dict(rows.fetchall()) == {"a": 4, "b": 2})
    with open(folder / "a.csv", "a") as file:
        file.write("b,10\n")
    (folder / "c.csv").write_text("k,x\nc,7\n")
    assert total.wait_for(lambda rows: dict(rows.fetchall()) == {"a": 4, "b": 12, "c": 7})
    assert source.state == "running" and source.progress is None
    source.stop()
    with open(folder / "a.csv", "a") as file:
        file.write("b,1000\n")
    assert source.state == "done"
    assert dict(total) == {"a": 4, "b": 12, "c": 7}
    with pytest.raises(ab.NotSupportedError, match="one path"):
        db.read_csv([folder / "a.csv", folder / "b.csv"], live=True)


def test_a_live_source_goes_on_where_it_was(folder, tmp_path):
    home = tmp_path / "home"
    with ab.connect(home) as db:
        lines = db.create_source("lines", "file", schema={"k": str, "x": int}, path=folder / "*.csv", follow=True, poll="20 ms")
        lines.group_by("k").agg(x=ab.col("x").sum()).create_view("total")
        lines.wait(timeout="10s")
        assert sorted(db.sql("SELECT * FROM total")) == [("a", 4), ("b", 2)]
    with open(folder / "a.csv", "a") as file:
        file.write("b,10\n")
    (folder / "c.csv").write_text("k,x\nc,7\n")
    with ab.connect(home) as db:
        total = db.table("total")
        assert total.wait_for(lambda rows: dict(rows.fetchall()) == {"a": 4, "b": 12, "c": 7})
