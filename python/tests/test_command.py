"""The command of the wheel: the program's, and statements with functions of a Python file."""

import json
import subprocess
import sys


def run(*words, text=None):
    return subprocess.run([sys.executable, "-m", "anabranch", *words], capture_output=True, text=True, timeout=120, input=text)


def test_it_is_the_program(tmp_path):
    done = run("-c", "SELECT 1 + 1 AS two", "--csv")
    assert (done.returncode, done.stdout.split()) == (0, ["two", "2"]), done.stderr
    assert run(str(tmp_path / "shop"), "-c", "CREATE TABLE t (x int); INSERT INTO t VALUES (7)").returncode == 0
    assert run(str(tmp_path / "shop"), "-c", "SELECT x FROM t", "--csv").stdout.split() == ["x", "7"]
    assert run("-c", "SELEC").returncode == 1
    assert "serve" in run("--help").stdout


def test_functions_are_loaded(tmp_path):
    (tmp_path / "f.py").write_text("import anabranch as ab\n@ab.udf\ndef twice(x: int) -> int: return 2 * x\ndb.register('twice', twice)\n")
    done = run("--load", str(tmp_path / "f.py"), "-c", "SELECT twice(21) AS x", "--json")
    assert json.loads(done.stdout) == {"x": 42}, done.stderr
    assert run("--load", str(tmp_path / "f.py"), "-c", "SELECT thrice(21)").returncode == 1
