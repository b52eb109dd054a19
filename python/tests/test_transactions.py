"""Transactions of several statements, and connections with settings of their own."""

import pytest

import anabranch as ab


@pytest.fixture
def db():
    with ab.connect() as db:
        db.create_table("t", {"k": int, "n": int}, primary_key="k")
        yield db


def test_a_transaction_is_one_commit(db):
    log = db.table("t").changes(snapshot=False)
    with db.transaction() as tx:
        tx.insert("t", [(1, 1)])
        tx.upsert("t", [(2, 2), (1, 5)])
        assert tx.table("t").row_count() == 2 and tx.in_transaction
        assert db.table("t").row_count() == 0
    assert sorted(db.table("t")) == [(1, 5), (2, 2)]
    batch = next(log)
    assert sorted(row[1:] for row in batch) == [(1, 1, 5), (1, 2, 2)]
    log.close()


def test_a_block_that_raises_is_rolled_back(db):
    with pytest.raises(KeyError):
        with db.transaction() as tx:
            tx.insert("t", [(1, 1)])
            raise KeyError("no")
    assert db.table("t").row_count() == 0


def test_the_second_of_two_that_conflict_is_refused_and_run_again(db):
    db.insert("t", [(1, 0)])
    tries = []

    def add(tx):
        n = tx.sql("SELECT n FROM t WHERE k = 1").item()
        tries.append(n)
        if len(tries) == 1:
            db.update("t", lambda r: r.k == 1, n=10)
        tx.update("t", lambda r: r.k == 1, n=n + 1)
        return n

    assert db.run_transaction(add) == 10
    assert tries == [0, 10] and db.sql("SELECT n FROM t").item() == 11

    def conflicts(tx):
        n = tx.sql("SELECT n FROM t WHERE k = 1").item()
        db.update("t", lambda r: r.k == 1, n=n + 1)
        tx.update("t", lambda r: r.k == 1, n=0)

    with pytest.raises(ab.SerializationError) as caught:
        db.run_transaction(conflicts, retries=1)
    assert caught.value.sqlstate == "40001"


def test_a_read_only_transaction_refuses_writes(db):
    with db.transaction(read_only=True) as tx:
        assert tx.table("t").row_count() == 0
        with pytest.raises(ab.ReadOnlyError):
            tx.insert("t", [(1, 1)])
        tx.rollback()
    assert db.table("t").row_count() == 0


def test_a_closed_connection_says_so_and_rolls_back(db):
    connection = db.connection()
    connection.begin()
    connection.insert("t", [(1, 1)])
    connection.close()
    connection.close()
    with pytest.raises(ab.InterfaceError, match="connection is closed"):
        connection.table("t")
    assert db.table("t").row_count() == 0 and not db.closed
