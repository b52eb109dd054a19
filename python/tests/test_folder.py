"""Databases in a directory: what was answered is there when it is opened again."""

import subprocess
import sys

import pytest

import anabranch as ab


def test_rows_and_views_come_back(tmp_path):
    where = tmp_path / "shop"
    with ab.connect(where) as db:
        db.sql("CREATE TABLE t (k int PRIMARY KEY, v text)")
        db.table("t").insert([(1, "a"), (2, None)])
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, count(v) AS v FROM t")
        frame = {"k": [3], "v": ["from outside"]}
        db.table("t").insert(frame)
    with ab.connect(str(where)) as db:
        assert db.sql("SELECT n FROM m").item() == 3
        assert db.sql("SELECT v FROM t WHERE k = 3").item() == "from outside"
        assert "shop" in repr(db) and "2 relations" in repr(db)
        db.table("t").insert([(4, "d")])
        assert db.sql("SELECT n FROM m").item() == 4


def test_one_process_has_it_open(tmp_path):
    with ab.connect(tmp_path / "shop"):
        with pytest.raises(ab.Error, match="is open elsewhere"):
            ab.connect(tmp_path / "shop")


def test_a_process_that_dies_loses_nothing(tmp_path):
    script = (
        "import os, anabranch as ab\n"
        f"db = ab.connect({str(tmp_path / 'shop')!r})\n"
        "db.sql('CREATE TABLE t (a int)')\n"
        "db.table('t').insert([(1,), (2,)])\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == 9
    with ab.connect(tmp_path / "shop") as db:
        assert db.sql("SELECT sum(a) FROM t").item() == 3
