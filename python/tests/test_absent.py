"""Acceptance 9: with none of the optional packages, all works that needs none; what needs one says
so."""

import subprocess
import sys

import pytest

from test_programs import PROGRAMS

PACKAGES = ("pyarrow", "pandas", "polars", "numpy", "IPython", "altair", "anywidget")
BLOCK = "import sys\nfor name in %r: sys.modules[name] = None\n" % (PACKAGES,)


def run(text, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(BLOCK + text)
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("number", [n for n, text in sorted(PROGRAMS.items()) if not any(p in text for p in PACKAGES)])
def test_programs_without_frames(number, tmp_path):
    done = run("# " + PROGRAMS[number], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_needs_a_package_says_so(tmp_path):
    done = run(
        "import anabranch as ab\n"
        "db = ab.connect()\n"
        "t = db.values([(1, 'a', None)], {'x': int, 's': str, 'f': float})\n"
        "for method, package in (('pl', 'polars'), ('df', 'pandas'), ('arrow', 'pyarrow'), ('numpy', 'numpy')):\n"
        "    try:\n"
        "        getattr(t, method)()\n"
        "    except ModuleNotFoundError as error:\n"
        "        assert f'pip install {package}' in str(error), error\n"
        "    else:\n"
        "        raise SystemExit(method)\n"
        "@ab.udf\n"
        "def shout(s: str) -> str: return s + '!'\n"
        "@ab.udf(returns=int)\n"
        "def twice(x: ab.Array): return [2 * v for v in x]\n"
        "assert t.select(shout('s'), twice('x')).fetchall() == [('a!', 2)]\n"
        "assert t.to_dicts() == [{'x': 1, 's': 'a', 'f': None}]\n"
        "print(t)\n", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
