"""A database behind PostgreSQL's protocol: served by this package's own command."""

import datetime
import os
import socket
import subprocess
import sys
import time
from decimal import Decimal

import pytest

import anabranch as ab

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "anabranch", "serve", "--listen", f"127.0.0.1:{port}", "--workers", "1", "--log", "error"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen(command, env=environment, cwd=tmp_path_factory.mktemp("server"))
    address = f"postgresql://ann@127.0.0.1:{port}/anabranch"
    for _ in range(600):
        try:
            psycopg.connect(address).close()
            break
        except psycopg.OperationalError:
            assert server.poll() is None, "the server ended"
            time.sleep(0.05)
    yield address
    server.terminate()
    server.wait(20)


@pytest.fixture
def db(url):
    with ab.connect(url) as db:
        yield db
        for name, (kind, _) in list(db._kinds().items()):
            db.drop(name, cascade=True, if_exists=True)


def test_methods_and_sql_are_those_of_a_local_database(db):
    t = db.create_table("t", {"k": int, "who": str, "eur": "numeric(8,2)"}, primary_key="k")
    t.insert([(1, "ada", Decimal("1.50")), (2, "bo", Decimal("2.25")), (3, None, None)])
    assert t.primary_key == ["k"] and t.dtypes == ["bigint", "text", "numeric(8,2)"]
    by = t.filter(ab.col("eur") > 1).group_by("who").agg(total=ab.col("eur").sum(), n=ab.len())
    assert sorted(by) == [("ada", Decimal("1.50"), 1), ("bo", Decimal("2.25"), 1)]
    view = by.create_view("by_who")
    t.upsert([(1, "ada", Decimal("3.00"))])
    t.delete(ab.col("k") == 2)
    assert view.fetchall() == [("ada", Decimal("3.00"), 1)]
    names = db.values([("ada", "Ada Lovelace")], {"who": str, "name": str})
    assert view.join(names, on="who").select("name", "total").fetchall() == [("Ada Lovelace", Decimal("3.00"))]
    assert db.sql("SELECT count(*) FROM t WHERE k > $least", {"least": 1}).item() == 1
    assert t.sort("k").pl().rows() == [(1, "ada", Decimal("3.00")), (3, None, None)]


def test_values_of_all_types_come_back(db):
    schema = {"b": bool, "i2": "smallint", "i8": int, "f": float, "n": "numeric(12,3)", "nn": "numeric", "s": str, "by": bytes,
              "d": datetime.date, "t": datetime.time, "ts": "timestamp", "tz": "timestamptz", "iv": "interval",
              "a": list[int], "at": list[str], "j": "jsonb", "u": "uuid"}
    rows = [
        (True, -32768, -2**63, float("inf"), Decimal("123456789.125"), Decimal("0.10"), "a'b\"\\\t\n茶", b"\x00\xff'",
         datetime.date(1, 1, 1), datetime.time(23, 59, 59, 999999), datetime.datetime(2026, 1, 1, 1, 2, 3, 456),
         datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), datetime.timedelta(days=3, seconds=5), [1, None, 3],
         ["x,y", '"q"', None], '{"a": 1}', "00000000-0000-0000-0000-000000000001"), (None,) * 17]
    with ab.connect() as local:
        answers = []
        for place in (local, db):
            t = place.create_table("t", schema)
            t.insert(rows)
            answers.append(t.fetchall())
    assert answers[0] == answers[1]
    assert answers[1][0][5] == Decimal("0.10") and answers[1][1] == (None,) * 17


def test_changes_come_as_they_happen(db):
    t = db.create_table("t", {"k": int, "n": int}, primary_key="k")
    t.insert([(1, 1)])
    with t.changes(idle="1s") as changes:
        assert [row[1:] for row in next(changes)] == [(1, 1, 1)]
        t.upsert([(1, 5)])
        assert [row[1:] for row in next(changes)] == [(-1, 1, 1), (1, 1, 5)]


def test_transactions_and_errors(db):
    db.create_table("t", {"k": int}, primary_key="k")
    with db.transaction() as tx:
        tx.execute("INSERT INTO t VALUES (1)")
        tx.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(ab.ProgrammingError), db.transaction() as tx:
        tx.execute("INSERT INTO t VALUES (3)")
        tx.execute("SELECT x FROM nothing")
    assert db.table("t").row_count() == 2
    with pytest.raises(ab.UnknownName) as caught:
        db.sql("SELECT nope FROM t").fetchall()
    assert caught.value.sqlstate == "42703"
    with pytest.raises(ab.IntegrityError):
        db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ab.UnavailableError):
        ab.connect("postgresql://ann@127.0.0.1:1/x")


def test_read_only(url, db):
    db.create_table("t", {"k": int})
    with ab.connect(url, read_only=True) as reader:
        assert reader.table("t").row_count() == 0
        with pytest.raises(ab.ReadOnlyError):
            reader.execute("INSERT INTO t VALUES (1)")


def test_what_needs_this_process_is_refused(db):
    t = db.create_table("t", {"k": int, "at": int}, watermark=("at", 0), append_only=True)

    @ab.udf
    def twice(k: int) -> int:
        return 2 * k

    with pytest.raises(ab.NotSupportedError, match="functions of Python"):
        t.select(twice("k")).fetchall()
    with pytest.raises(ab.NotSupportedError, match="events"):
        db.create_view("v", t.events())
