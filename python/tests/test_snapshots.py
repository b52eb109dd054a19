"""Places for snapshots: named once, remembered, and refused where there is nothing to keep."""
import sys
import time
import warnings

import anabranch as ab
import pytest


def test_a_place_is_named_once(tmp_path):
    place = tmp_path / "snapshots"
    with ab.connect(tmp_path / "shop", snapshots=f"file://{place}") as db:
        db.execute("CREATE TABLE t (a int)")
        db.execute("INSERT INTO t VALUES (1)")
    assert f"next file://{place}/" in (tmp_path / "shop" / "MANIFEST").read_text()
    with ab.connect(tmp_path / "shop") as db:
        assert db.sql("SELECT a FROM t").item() == 1
    assert f"next file://{place}/" in (tmp_path / "shop" / "MANIFEST").read_text()
    with ab.connect(tmp_path / "shop", snapshots="folder") as db:
        assert db.sql("SELECT a FROM t").item() == 1
    assert "next" not in (tmp_path / "shop" / "MANIFEST").read_text()


def test_what_is_no_place_is_refused(tmp_path):
    with pytest.raises(ab.Error, match="s4://x is no place for snapshots"):
        ab.connect(tmp_path / "shop", snapshots="s4://x")
    with pytest.raises(ab.ProgrammingError, match="in memory"):
        ab.connect(snapshots="file:///tmp/x")


def wait_for_failure(db):
    deadline = time.monotonic() + 20
    while db.snapshot_failure is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "nothing is lost" in db.snapshot_failure


def test_a_place_that_fails_is_told_once_and_loses_nothing(tmp_path):
    (tmp_path / "file").write_text("no folder")
    # (The first call that finds the failure tells of it: it may be one of connect's own.)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with ab.connect(tmp_path / "shop", snapshots=f"file://{tmp_path / 'file'}") as db:
            wait_for_failure(db)
            db.execute("CREATE TABLE t (a int)")
            db.execute("INSERT INTO t VALUES (1)")
    told = [str(one.message) for one in told if one.category is ab.SnapshotWarning]
    assert len(told) == 1 and "nothing is lost" in told[0]
    with ab.connect(tmp_path / "shop", snapshots="folder") as db:
        assert db.sql("SELECT a FROM t").item() == 1
        assert db.snapshot_failure is None


def test_warnings_that_are_errors_fail_no_statement(tmp_path):
    (tmp_path / "file").write_text("no folder")
    unraisable = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with ab.connect(tmp_path / "shop", snapshots=f"file://{tmp_path / 'file'}") as db:
                wait_for_failure(db)
                db.execute("CREATE TABLE t (a int)")
                assert db.sql("SELECT count(*) FROM t").item() == 0
    finally:
        sys.unraisablehook = hook
    assert [told.exc_type for told in unraisable] == [ab.SnapshotWarning]
