"""Types as users meet them: mypy --strict over the programs, and the stub against the compiled
half."""

import subprocess
import sys

import pytest

from test_programs import PROGRAMS

pytest.importorskip("mypy")

# What mypy cannot see: decorators of classes (7) leave the class as it was; `class Socket(list)`
# has no argument (10).
KNOWN = {7: "call-arg", 10: "type-arg"}
# The programs are as short as programs of users: some functions in them have no annotations.
LEFT_OUT = ["no-untyped-def", "no-untyped-call", "import-untyped"]


def test_programs_are_typed(tmp_path):
    import anabranch

    for number, text in PROGRAMS.items():
        path = tmp_path / f"program_{number}.py"
        codes = LEFT_OUT + ([KNOWN[number]] if number in KNOWN else [])
        path.write_text(f'# mypy: disable-error-code="{",".join(codes)}"\n' + "# " + text)
    root = anabranch.__file__.rsplit("/", 2)[0]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), *map(str, tmp_path.glob("program_*.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={"MYPYPATH": root, "PATH": ""}, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_is_complete(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "anabranch._native"], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_there_and_documented():
    import anabranch as ab

    for name in ab.__all__:
        value = getattr(ab, name)
        if callable(value) or isinstance(value, type):
            assert (value.__doc__ or "").strip(), name


def test_docstrings_run():
    import doctest
    import importlib
    import pkgutil

    import anabranch as ab

    failed = 0
    for module in pkgutil.iter_modules(ab.__path__):
        if module.name in ("__main__", "_native"):
            continue
        failed += doctest.testmod(importlib.import_module(f"anabranch.{module.name}")).failed
    failed += doctest.testmod(ab).failed
    assert not failed
