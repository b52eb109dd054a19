"""Places for snapshots: named once, remembered, and refused where there is nothing to keep."""
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
