"""What is let go is gone: views, frames that were named, batches that were held, functions,
runs."""

import gc
import resource
import subprocess
import sys
import weakref

import pytest

import anabranch as ab


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


def grows(work, n):
    """Bytes by which memory grows in the last third of n rounds, beyond the first two."""
    for _ in range(2 * n // 3):
        work()
    before = resident()
    for _ in range(n // 3):
        work()
    return resident() - before


def test_calls_and_batches_leave_nothing():
    with ab.connect() as db:
        t = db.create_table("t", {"k": int, "s": str})
        t.insert([(i, "x" * 50) for i in range(1000)])
        held = []

        def work():
            held.append(t.collect())
            if len(held) > 20:
                held.clear()
            db.sql("SELECT count(*) FROM t WHERE k > ?", [len(held)]).item()

        assert grows(work, 900) < 8_000_000


def test_views_made_and_dropped_leave_nothing():
    with ab.connect() as db:
        t = db.create_table("t", {"k": int, "x": int})
        t.insert([(i % 10, i) for i in range(100)])
        before = db._engine.relations()

        def work():
            view = t.group_by("k").agg(s=ab.col("x").sum()).create_view("v")
            assert view.row_count() == 10
            view.drop()
            frame = {"k": [1, 2], "y": [3, 4]}
            assert db.relation(frame).join(t, on="k").live().row_count() == 20

        grown = grows(work, 300)
        db.flush()
        assert db._engine.relations() == before
        assert grown < 16_000_000


def objects():
    """Weak references to objects that were used and let go. (A frame keeps what its locals were
    when they were looked at.)"""
    db = ab.connect()
    t = db.create_table("t", {"x": int})

    @ab.udf
    def f(x: int) -> int:
        return x

    assert t.select(f("x")).fetchall() == []
    run = db.start(ab.Events.input("in", {"x": int, "at": int}, time="at"))
    changes = t.changes()
    assert db.sql("SELECT count(*) FROM t").item() == 0
    gone = [weakref.ref(o) for o in (db, t, f, run, changes)]
    db.close()
    assert "closed" in repr(db) and "closed" in repr(t)
    return gone


def test_objects_go_with_their_last_reference():
    gone = objects()
    gc.collect()
    assert [ref() for ref in gone] == [None] * 5


def test_subinterpreters_say_so():
    script = (
        "import _xxsubinterpreters as s\n"
        "i = s.create()\n"
        "try:\n"
        "    s.run_string(i, 'import anabranch')\n"
        "except s.RunFailedError as error:\n"
        "    print('ImportError' in str(error) and 'subinterpreter' in str(error))\n"
    )
    if sys.version_info[:2] not in ((3, 10), (3, 11), (3, 12)):
        pytest.skip("the module for subinterpreters has another name")
    setup = "import anabranch\n"
    done = subprocess.run([sys.executable, "-c", setup + script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True", done.stdout + done.stderr
