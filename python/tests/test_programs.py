"""Acceptance 1: the twelve programs of the specification run verbatim."""

import pathlib
import re
import subprocess
import sys

import pytest

from conftest import skip_if_absent

TEXT = (pathlib.Path(__file__).parent / "programs.txt").read_text()
PROGRAMS = {int(part.split(" ", 1)[0]): part for part in re.split(r"(?m)^# (?=\d+ )", TEXT) if part.strip()}


@pytest.mark.parametrize("number", sorted(PROGRAMS))
def test_program(number, tmp_path):
    path = tmp_path / f"program_{number}.py"
    path.write_text("# " + PROGRAMS[number])
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    skip_if_absent(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
