"""Live results: iteration, coroutines, callbacks and subscriptions see the same changes; what ends
them; signals and threads."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import anabranch as ab


@pytest.fixture
def db():
    with ab.connect() as db:
        yield db


@pytest.fixture
def t(db):
    return db.create_table("t", {"k": int, "n": int}, primary_key="k")


def steps(t):
    t.insert([(1, 1), (2, 2)])
    t.upsert([(1, 5)])
    t.delete(lambda r: r.k == 2)


def log(batches):
    return [tuple(row[1:]) for batch in batches for row in batch]


EXPECTED = [(1, 1, 1), (1, 2, 2), (-1, 1, 1), (1, 1, 5), (-1, 2, 2)]


def test_all_ways_to_listen_agree(db, t):
    heard = []
    changes = t.changes(snapshot=False, idle="300ms")
    subscription = t.subscribe(snapshot=False, progress=True, idle="300ms")
    handle = t.on_change(heard.append, snapshot=False)

    async def gather():
        return [batch async for batch in coroutine]

    coroutine = t.changes(snapshot=False, idle="300ms")
    steps(t)
    told = list(subscription)
    asynchronous = log(asyncio.run(gather()))
    logs = [log(changes), log(c.batch for c in told if isinstance(c, ab.Change)), asynchronous, log(heard)]
    handle.cancel()
    for one in logs:
        assert sorted(one) == sorted(EXPECTED) and one[:2] == EXPECTED[:2]
    times = [p.time for p in told if isinstance(p, ab.Progress)]
    assert times == sorted(times) and times
    seen = 0
    for item in told:
        if isinstance(item, ab.Progress):
            seen = item.time
        else:
            assert all(row[0] >= seen for row in item.batch)


def test_changes_add_up_to_a_read(db, t):
    view = t.group_by().agg(s=ab.col("n").sum()).create_view("v")
    with view.changes(idle="200ms") as changes:
        steps(t)
        total = {}
        for batch in changes:
            for _, diff, s in batch:
                total[s] = total.get(s, 0) + diff
    assert {s: d for s, d in total.items() if d} == {view.item(): 1}


def test_what_ends_a_subscription_frees_it(db, t):
    before = db.arrangements().row_count()
    listener = t.group_by("n").agg(c=ab.len())
    one = listener.changes()
    one.close()
    with listener.changes():
        pass
    held = listener.changes()
    del held
    gc.collect()

    async def cancelled():
        changes = listener.changes(snapshot=False)
        task = asyncio.ensure_future(changes.__anext__())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    for _ in range(100):
        if db.arrangements().row_count() == before:
            break
        time.sleep(0.02)
    assert db.arrangements().row_count() == before


def test_a_callback_that_raises_is_reported_and_the_next_comes(db, t):
    heard, errors = [], []

    def raises(batch):
        heard.append(len(batch))
        if len(heard) == 1:
            raise KeyError("first")

    handle = t.on_change(raises, on_error=errors.append, snapshot=False)
    t.insert([(1, 1)])
    t.insert([(2, 2)])
    deadline = time.monotonic() + 10
    while len(heard) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert heard == [1, 1] and isinstance(errors[0], KeyError) and isinstance(handle.error, KeyError)
    handle.cancel()


def test_tables_show_themselves(db, t, capsys):
    t.insert([(1, 1)])
    view = t.select("k", "n").create_view("v")
    text = repr(view)
    assert "k" in text and "bigint" in text and "view · live · 1 row as of" in text
    html = view._repr_html_()
    assert "<table" in html and "live" in html
    db.create_table("h", {"s": str}).insert([("<b>x</b>",)])
    assert "<b>x</b>" not in db.table("h")._repr_html_() and "&lt;b&gt;" in db.table("h")._repr_html_()
    view.show(duration="10ms")
    assert "bigint" in capsys.readouterr().out


def test_graphs_are_svg(db, t, tmp_path):
    graph = t.group_by("n").agg(c=ab.len()).show_graph(tmp_path / "plan.svg")
    assert graph.svg.startswith("<svg") and (tmp_path / "plan.svg").read_text() == graph.svg
    import xml.dom.minidom

    xml.dom.minidom.parseString(graph.svg)


def test_other_threads_run_while_the_engine_works(db):
    t = db.create_table("big", {"x": int})
    t.insert({"x": list(range(100_000))})
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(3):
        db.sql("SELECT count(*) FROM big a JOIN big b ON a.x = b.x").item()
    done.set()
    thread.join()
    assert counted > 10_000


def test_many_threads_use_one_database(db, t):
    failures = []

    def work(i):
        try:
            for j in range(20):
                t.insert([(1000 * i + j, 1)])
                assert db.sql(f"SELECT count(*) FROM t WHERE k / 1000 = {i}").item() == j + 1
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and t.row_count() == 160


HEAVY = "SELECT count(*) AS n FROM t a, t b, t c WHERE a.x + b.x * c.x = 7"


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("call", [
    f"db.sql('{HEAVY}').item()", f"db.sql('{HEAVY}').create_view('v')", "[0 for batch in t.changes()]",
    f"db.execute('INSERT INTO t SELECT n FROM ({HEAVY}) AS q')", "t.select('x').create_view('v').wait_for(lambda rows: False, timeout='1h')",
])
def test_ctrl_c_ends_a_call_at_once(call):
    script = (
        "import anabranch as ab, time, signal, threading, os\n"
        # (A job in the background of a shell is begun with interrupts ignored.)
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "db = ab.connect()\n"
        "t = db.create_table('t', {'x': int})\n"
        "t.insert({'x': list(range(3000))})\n"
        "at = []\n"
        "def fire():\n    at.append(time.monotonic()); os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Timer(0.5, fire).start()\n"
        "try:\n"
        f"    {call}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', time.monotonic() - at[0], t.row_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("interrupted"), done.stdout + done.stderr
    _, took, rows = done.stdout.split()
    # (70 ms were seen on a loaded machine; 200 ms is the promise.)
    assert float(took) < 1 and rows == "3000"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_told():
    script = (
        "import anabranch as ab, os\n"
        "db = ab.connect()\n"
        "t = db.create_table('t', {'x': int})\n"
        "e = ab.Events.input('in', {'x': int, 'at': int}, time='at')\n"
        "run = db.start(e)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for call in (t.row_count, run.finish):\n"
        "        try:\n"
        "            call()\n"
        "        except ab.InterfaceError as error:\n"
        "            assert 'in process' in str(error)\n"
        "        else:\n"
        "            os._exit(3)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "t.insert([(1,)])\n"
        "print(t.row_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "1", done.stderr


def spawned(queue):
    with ab.connect() as db:
        queue.put(db.sql("SELECT 7").item())


def test_spawned_processes_work():
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=spawned, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 7
    child.join(30)
    assert child.exitcode == 0


def test_exit_with_everything_open_is_clean():
    script = (
        "import anabranch as ab, time\n"
        "db = ab.connect()\n"
        "t = db.create_table('t', {'x': int})\n"
        "handle = t.on_change(lambda batch: time.sleep(0.01))\n"
        "changes = t.changes()\n"
        "run = db.start(ab.Events.input('in', {'x': int, 'at': int}, time='at'))\n"
        "t.insert([(1,), (2,)])\n"
        "print('ready')\n"
    )
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.strip() == "ready" and "Traceback" not in done.stderr, done.stderr
    assert time.monotonic() - begin < 20


def test_import_touches_no_optional_package():
    script = (
        "import sys, time\n"
        "begin = time.perf_counter()\n"
        "import anabranch as ab\n"
        "took = time.perf_counter() - begin\n"
        "print([m for m in ('pyarrow', 'pandas', 'polars', 'numpy', 'IPython', 'altair') if m in sys.modules], took)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("[] "), done.stdout + done.stderr


def test_wide_characters_take_two_columns():
    from anabranch.display import table

    with ab.connect(workers=0) as db:
        rows = db.values([("茶", 1), ("e\u0301té", 2), ("coffee", 3)], {"s": str, "n": int}).collect()
        lines = table(rows, width=70).splitlines()
        wide = [line for line in lines if "茶" in line][0]
        accented = [line for line in lines if "te" in line or "t\u00e9" in line][-1]
        assert len(wide) + 1 == len(lines[0]) and len(accented) - 1 == len(lines[0])
        narrow = table(db.values([("茶" * 40,)], {"s": str}).collect(), width=20).splitlines()
        assert "…" in narrow[4]


@pytest.mark.skipif(os.name == "nt", reason="terminals of Unix")
def test_ctrl_c_ends_show_in_a_terminal():
    import pty

    script = (
        "import anabranch as ab, os, signal, threading, time\n"
        "db = ab.connect()\n"
        "t = db.create_table('t', {'x': int}); t.insert([(1,)])\n"
        "v = t.create_view('v'); at = []\n"
        "def fire():\n    t.insert([(2,)]); time.sleep(0.4); at.append(time.monotonic()); os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Timer(0.4, fire).start()\n"
        "v.show(every='50ms')\n"
        "print('ended', time.monotonic() - at[0], v.row_count())\n"
    )
    outer, inner = pty.openpty()
    done = subprocess.Popen([sys.executable, "-c", script], stdout=inner, stderr=inner)
    os.close(inner)
    heard = b""
    while True:
        try:
            part = os.read(outer, 65536)
        except OSError:
            break
        if not part:
            break
        heard += part
    os.close(outer)
    assert done.wait(60) == 0, heard
    drawn, _, ended = heard.decode().partition("ended ")
    assert "2 rows" in drawn and "\x1b[" in drawn, drawn
    took, rows = ended.split()
    assert float(took) < 1 and rows == "2"


def test_a_slow_reader_stays_within_its_buffer(db, t):
    has_bounds = any(name == "subscribe_buffer" for name, _ in db.settings())
    if not has_bounds:
        with pytest.raises(ab.NotSupportedError, match="no bounds"):
            t.changes(overflow="error")
        return
    with t.changes(snapshot=False, buffer=4096, overflow="error") as strict, \
            t.changes(snapshot=False, buffer=4096, idle="300ms") as lenient, \
            t.changes(snapshot=False, idle="300ms") as free:
        for i in range(2000):
            t.upsert([(i % 5, i)])
        with pytest.raises(ab.OperationalError) as caught:
            for _ in strict:
                pass
        assert caught.value.sqlstate == "53400"
        totals = []
        for changes in (lenient, free):
            total = {}
            for batch in changes:
                for _, diff, k, n in batch:
                    total[k, n] = total.get((k, n), 0) + diff
            totals.append({row for row, diff in total.items() if diff})
        assert totals[0] == totals[1] == set(t.fetchall())
    assert dict(db.settings().fetchall())["subscribe_overflow"] == "coalesce"
