"""DB-API 2.0: the rules of PEP 249 that programs rely on."""

import datetime as dt

import pytest

import anabranch.dbapi as db


@pytest.fixture
def connection():
    connection = db.connect()
    connection.cursor().execute("CREATE TABLE t (k int PRIMARY KEY, v text, at timestamp)")
    connection.commit()
    yield connection
    connection.close()


def test_globals_and_exceptions():
    assert (db.apilevel, db.threadsafety, db.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(db.Warning, Exception) and issubclass(db.InterfaceError, db.Error)
    for kind in (db.DataError, db.OperationalError, db.IntegrityError, db.InternalError, db.ProgrammingError, db.NotSupportedError):
        assert issubclass(kind, db.DatabaseError) and getattr(db.Connection, kind.__name__) is kind


def test_rows_and_descriptions(connection):
    cursor = connection.cursor()
    assert cursor.description is None and cursor.rowcount == -1
    cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "a", dt.datetime(2026, 1, 1)), (2, None, None), (3, "c", None)])
    assert cursor.rowcount == 3
    cursor.execute("SELECT k, v, at FROM t ORDER BY k")
    assert [d[0] for d in cursor.description] == ["k", "v", "at"] and len(cursor.description[0]) == 7
    assert cursor.description[0][1] == db.NUMBER and cursor.description[1][1] == db.STRING and cursor.description[2][1] == db.DATETIME
    assert cursor.rowcount == 3 and cursor.fetchone() == (1, "a", dt.datetime(2026, 1, 1))
    assert cursor.fetchmany() == [(2, None, None)] and cursor.rownumber == 2
    assert cursor.fetchall() == [(3, "c", None)] and cursor.fetchone() is None and cursor.fetchall() == []
    assert list(cursor.execute("SELECT k FROM t WHERE v = $name", {"name": "c"})) == [(3,)]


def test_transactions_begin_by_themselves(connection):
    cursor = connection.cursor()
    cursor.execute("INSERT INTO t VALUES (1, 'a', NULL)")
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
    cursor.execute("INSERT INTO t VALUES (1, 'a', NULL)")
    connection.commit()
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (1,)
    connection.autocommit = True
    cursor.execute("INSERT INTO t VALUES (2, 'a', NULL)")
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_errors_have_their_classes(connection):
    cursor = connection.cursor()
    with pytest.raises(db.ProgrammingError):
        cursor.execute("SELEC 1")
    connection.rollback()
    with pytest.raises(db.ProgrammingError):
        cursor.execute("SELECT nothing FROM t")
    connection.rollback()
    cursor.execute("INSERT INTO t VALUES (1, 'a', NULL)")
    with pytest.raises(db.IntegrityError):
        cursor.execute("INSERT INTO t VALUES (1, 'b', NULL)")
    connection.rollback()
    with pytest.raises(db.ProgrammingError):
        connection.cursor().fetchone()
    with pytest.raises(db.DataError):
        cursor.execute("SELECT 1 / 0").fetchall()


def test_closed_is_closed(connection):
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(db.InterfaceError):
        cursor.execute("SELECT 1")
    other = connection.cursor()
    connection.close()
    connection.close()
    for call in (connection.cursor, connection.commit, lambda: other.execute("SELECT 1")):
        with pytest.raises(db.InterfaceError):
            call()


def test_a_cursor_of_a_database_commits_each_statement():
    import anabranch as ab

    with ab.connect() as database:
        database.create_table("t", {"n": int})
        cursor = database.cursor()
        cursor.execute("INSERT INTO t VALUES (?)", [7])
        assert database.table("t").item() == 7
