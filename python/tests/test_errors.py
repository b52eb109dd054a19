"""Errors of the engine reach the exception of their SQLSTATE, with position and hint."""

import pytest

import anabranch as ab
from anabranch import errors


@pytest.fixture(scope="module")
def db():
    with ab.connect() as db:
        db.execute(
            "CREATE TABLE t (k int PRIMARY KEY, n int NOT NULL, s varchar(3), d numeric(4,2), CHECK (n < 1000));"
            "INSERT INTO t VALUES (1, 1, 'a', 1); CREATE VIEW v AS SELECT * FROM t")
        yield db


@pytest.mark.parametrize("statement, sqlstate, kind, position", [
    ("SELECT 1 +", "42601", ab.SqlSyntaxError, 10),
    ("SELECT * FROM nothing", "42P01", ab.UnknownName, 14),
    ("SELECT kk FROM t", "42703", ab.UnknownName, 7),
    ("SELECT nofunc(k) FROM t", "42883", ab.UnknownName, 7),
    ("SET nosuch = 1", "42704", ab.UnknownName, None),
    ("CREATE TABLE t (a int)", "42P07", ab.DuplicateName, None),
    ("CREATE TABLE u (a int, a int)", "42701", ab.DuplicateName, 23),
    ("SELECT k, sum(n) FROM t", "42803", ab.GroupingError, 7),
    ("SELECT t.k FROM t, t AS u WHERE k = 1", "42702", ab.ProgrammingError, 32),
    ("DROP TABLE t", "2BP01", ab.ProgrammingError, None),
    ("SELECT (SELECT n FROM (VALUES (1), (2)) x(n))", "21000", ab.ProgrammingError, None),
    ("EXECUTE p", "26000", ab.ProgrammingError, None),
    ("FETCH 1 FROM c", "34000", ab.ProgrammingError, None),
    ("SELECT 1 / (k - 1) FROM t", "22012", ab.DataError, None),
    ("SELECT CAST('x' AS int)", "22P02", ab.DataError, None),
    ("SELECT CAST('2026-13-01' AS date)", "22008", ab.DataError, None),
    ("SELECT sqrt(-1)", "2201F", ab.DataError, None),
    ("INSERT INTO t VALUES (3, 5, 'abcdef', 1)", "22001", ab.DataError, None),
    ("INSERT INTO t VALUES (3, 5, 'a', 1000)", "22003", ab.DataError, None),
    ("INSERT INTO t VALUES (1, 1, 'a', 1)", "23505", ab.IntegrityError, None),
    ("INSERT INTO t VALUES (2, NULL, 'a', 1)", "23502", ab.IntegrityError, None),
    ("INSERT INTO t VALUES (3, 5000, 'a', 1)", "23514", ab.IntegrityError, None),
    ("SAVEPOINT a", "25P01", ab.OperationalError, None),
    ("COPY t FROM STDIN", "0A000", ab.NotSupportedError, None),
])
def test_statements_raise_the_exception_of_their_state(db, statement, sqlstate, kind, position):
    with pytest.raises(ab.Error) as caught:
        db.execute(statement)
    error = caught.value
    assert (error.sqlstate, type(error), error.position) == (sqlstate, kind, position), error
    if position is not None:
        assert str(error).count("\n") >= 2 and "^" in str(error)


def test_states_that_need_a_situation(db):
    connection = db.connection()
    connection.begin(read_only=True)
    with pytest.raises(ab.ReadOnlyError) as caught:
        connection.execute("INSERT INTO t VALUES (9, 1, 'a', 1)")
    assert caught.value.sqlstate == "25006"
    with pytest.raises(ab.OperationalError) as caught:
        connection.execute("SELECT 1")
    assert caught.value.sqlstate == "25P02"
    connection.close()
    with pytest.raises(ab.InterfaceError) as caught:
        connection.execute("SELECT 1")
    assert caught.value.sqlstate == "08003"
    db.execute("SET statement_timeout = '20ms'")
    with pytest.raises(ab.OperationalError) as caught:
        db.execute("SELECT count(*) FROM generate_series(1, 100000) a(x), generate_series(1, 100000) b(y) WHERE x * y = 7")
    db.execute("RESET statement_timeout")
    assert caught.value.sqlstate == "57014" and isinstance(caught.value, ab.Cancelled)


# Each state that the engine tells: its exception.
@pytest.mark.parametrize("state, kind", [
    ("08003", ab.InterfaceError), ("08006", ab.UnavailableError), ("0A000", ab.NotSupportedError), ("21000", ab.ProgrammingError),
    ("22000", ab.DataError), ("22018", ab.ConversionError), ("23505", ab.IntegrityError), ("25001", ab.OperationalError),
    ("25006", ab.ReadOnlyError), ("26000", ab.ProgrammingError), ("2BP01", ab.ProgrammingError), ("34000", ab.ProgrammingError),
    ("3B001", ab.ProgrammingError), ("3D000", ab.ProgrammingError), ("3F000", ab.ProgrammingError), ("40001", ab.SerializationError),
    ("42501", ab.ProgrammingError), ("42601", ab.SqlSyntaxError), ("42704", ab.UnknownName), ("42804", ab.TypeMismatch),
    ("42846", ab.TypeMismatch), ("53100", ab.OperationalError), ("53200", ab.OutOfMemory), ("53300", ab.OperationalError),
    ("53400", ab.OperationalError), ("54000", ab.OperationalError), ("54001", ab.OperationalError), ("55000", ab.OperationalError),
    ("55P03", ab.LockedError), ("57014", ab.Cancelled), ("57P01", ab.OperationalError), ("58000", ab.OperationalError),
    ("58030", ab.UnavailableError), ("58P01", ab.OperationalError), ("XX000", ab.InternalError), ("XX001", ab.InternalError),
])
def test_every_state_has_its_exception(state, kind):
    assert errors.class_of("invalid", state) is kind


@pytest.mark.parametrize("kind, raised", [
    ("invalid", ab.ProgrammingError), ("data", ab.DataError), ("unavailable", ab.UnavailableError), ("closed", ab.InterfaceError),
    ("cancelled", ab.Cancelled), ("internal", ab.InternalError),
])
def test_every_kind_has_its_exception(kind, raised):
    assert errors.class_of(kind, "") is raised


def test_names_of_with_are_no_variables(db):
    r = db.values([(99,)], {"n": int})
    assert r.item() == 99
    made = db.sql("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT max(n) FROM r")
    assert made.item() == 3
