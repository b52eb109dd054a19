"""Tests that need an optional package are skipped where it is absent."""

import re

import pytest

OPTIONAL = {
    "IPython", "altair", "anywidget", "ibis", "mypy", "nbclient", "nbformat", "numpy", "pandas", "polars", "psycopg", "pyarrow",
}


def skip_if_absent(stderr):
    """Skips the test of a program that ended for want of an optional package."""
    absent = re.search(r"^ModuleNotFoundError: No module named '(\w+)", stderr, re.M)
    if absent and absent[1] in OPTIONAL:
        pytest.skip(absent[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in OPTIONAL:
            pytest.skip(str(error))
        raise
