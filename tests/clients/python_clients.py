"""psycopg 3, asyncpg and SQLAlchemy against a server.

Each check is a function that gets the server's address and raises when something is wrong.
"""
import asyncio
import datetime
import decimal
import json
import ssl
import threading
import time
import uuid

import asyncpg
import psycopg
import sqlalchemy as sa
from psycopg import sql

NAMES = "k int PRIMARY KEY, s text, n numeric(10, 2), f double precision, b boolean, d date, t timestamp, z timestamptz"
ROW = (1, "é'\\", decimal.Decimal("12.50"), 1.5, True, datetime.date(2024, 2, 29),
       datetime.datetime(2024, 2, 29, 12, 30, 0, 123456),
       datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc))
NULLS = (2,) + (None,) * 7


def connect(at, **options):
    return psycopg.connect(host="127.0.0.1", port=at.port, user=at.user, password=at.password, dbname="anabranch",
                           sslmode="verify-ca" if at.ca else "prefer", sslrootcert=at.ca, **options)


def fresh(connection, name, columns=NAMES):
    connection.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
    connection.execute(f"CREATE TABLE {name} ({columns})")


def psycopg_values(at):
    """Values of all types go in and come out as they were, as text and binary."""
    with connect(at, autocommit=True) as connection:
        fresh(connection, "py_values")
        for row in (ROW, NULLS):
            connection.execute("INSERT INTO py_values VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)
        for binary in (False, True):
            rows = connection.cursor(binary=binary).execute("SELECT * FROM py_values ORDER BY k").fetchall()
            assert rows == [ROW, NULLS], rows
            found = connection.cursor(binary=binary).execute(
                "SELECT k FROM py_values WHERE d = %b AND f = %b AND s = %b", (ROW[5], ROW[3], ROW[1])).fetchall()
            assert found == [(1,)], found
        lists = connection.cursor(binary=True).execute("SELECT ARRAY[1, 2, NULL]::int[], ARRAY['a', 'b']").fetchone()
        assert lists == ([1, 2, None], ["a", "b"]), lists
        span = connection.execute("SELECT interval '1 day 2 hours'").fetchone()[0]
        assert span == datetime.timedelta(days=1, hours=2), span
        blob = connection.cursor(binary=True).execute("SELECT %b::bytea", (b"\x00\xff",)).fetchone()[0]
        assert blob == b"\x00\xff", blob
        key = uuid.uuid4()
        assert connection.execute("SELECT %s::uuid::text", (key,)).fetchone()[0] == str(key)


def psycopg_prepared(at):
    """A prepared statement gives the answer for each value."""
    with connect(at, autocommit=True) as connection:
        fresh(connection, "py_prepared", "k int PRIMARY KEY, v text")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO py_prepared VALUES (%s, %s)", [(n, f"v{n}") for n in range(100)])
        for n in range(100):
            row = connection.execute("SELECT v FROM py_prepared WHERE k = %s", (n,), prepare=True).fetchone()
            assert row == (f"v{n}",), row


def psycopg_pipeline(at):
    """Statements sent together are answered in order."""
    with connect(at, autocommit=True) as connection:
        fresh(connection, "py_pipeline", "k int PRIMARY KEY")
        with connection.pipeline():
            for n in range(20):
                connection.execute("INSERT INTO py_pipeline VALUES (%s)", (n,))
            answer = connection.execute("SELECT count(*) FROM py_pipeline")
        assert answer.fetchone() == (20,)
        # What is sent together takes effect whole or not at all.
        try:
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO py_pipeline VALUES (%s)", [(30,), (31,), (1,)])
        except psycopg.errors.UniqueViolation:
            pass
        else:
            raise AssertionError("a key that is there was taken twice")
        assert connection.execute("SELECT count(*) FROM py_pipeline").fetchone() == (20,)
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO py_pipeline VALUES (%s)", [(n,) for n in range(100, 2100)])
        assert connection.execute("SELECT count(*) FROM py_pipeline").fetchone() == (2020,)


def psycopg_transactions(at):
    """Commit, rollback, errors and their codes, and two writers of one table."""
    with connect(at) as one, connect(at) as other:
        one.autocommit = True
        fresh(one, "py_tx", "k int PRIMARY KEY, v int")
        one.autocommit = False
        one.execute("INSERT INTO py_tx VALUES (1, 1)")
        assert other.execute("SELECT count(*) FROM py_tx").fetchone() == (0,)
        other.rollback()
        one.commit()
        one.execute("INSERT INTO py_tx VALUES (2, 2)")
        one.rollback()
        assert one.execute("SELECT k FROM py_tx").fetchall() == [(1,)]
        one.rollback()
        try:
            one.execute("INSERT INTO py_tx VALUES (1, 1)")
            one.commit()
            raise AssertionError("a key was there twice")
        except psycopg.errors.UniqueViolation as error:
            told = (error.diag.schema_name, error.diag.table_name, error.diag.constraint_name)
            assert told == ("public", "py_tx", "py_tx_pkey"), told
            one.rollback()
        try:
            one.execute("SELECT x FROM nowhere")
            raise AssertionError("a relation was made up")
        except psycopg.errors.UndefinedTable as error:
            assert error.diag.statement_position == "15", error.diag.statement_position
        assert one.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        one.rollback()
        one.execute("UPDATE py_tx SET v = v + 1")
        other.execute("UPDATE py_tx SET v = v + 10")
        one.commit()
        try:
            other.commit()
            raise AssertionError("a lost update")
        except psycopg.errors.SerializationFailure:
            other.rollback()


def psycopg_cancel(at):
    """A statement that runs is cancelled from beside."""
    with connect(at, autocommit=True) as connection:
        fresh(connection, "py_cancel", "k int")
        threading.Timer(0.5, connection.cancel).start()
        started = time.monotonic()
        try:
            for _ in connection.cursor().stream("SUBSCRIBE py_cancel"):
                pass
            raise AssertionError("a subscription of a table ended")
        except psycopg.errors.QueryCanceled:
            assert time.monotonic() - started < 10
        assert connection.execute("SELECT 1").fetchone() == (1,)


def psycopg_subscribe(at):
    """Changes come while another writes."""
    with connect(at, autocommit=True) as reader, connect(at, autocommit=True) as writer:
        fresh(writer, "py_feed", "k int, v int")
        writer.execute("CREATE MATERIALIZED VIEW py_sums AS SELECT k, sum(v) AS v FROM py_feed GROUP BY k")
        writer.execute("INSERT INTO py_feed VALUES (1, 5)")
        seen = []
        for _, diff, k, v in reader.cursor().stream("SUBSCRIBE py_sums"):
            seen.append((diff, k, v))
            if len(seen) == 1:
                writer.execute("INSERT INTO py_feed VALUES (1, 2)")
            if len(seen) == 3:
                break
        assert seen == [(1, 1, 5), (-1, 1, 5), (1, 1, 7)], seen
        writer.execute("DROP TABLE py_feed CASCADE")


def psycopg_copy(at):
    """COPY in and out, in text, csv and binary, and from a query."""
    with connect(at, autocommit=True) as connection:
        fresh(connection, "py_copy", "k int, s text")
        rows = [(1, "a\tb"), (2, None), (3, "x\\y\n")]
        with connection.cursor().copy("COPY py_copy FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        with connection.cursor().copy("COPY py_copy (k, s) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "text"])
            for k, s in rows:
                copy.write_row((k + 10, s))
        with connection.cursor().copy("COPY py_copy FROM STDIN (FORMAT csv)") as copy:
            copy.write('21,"a,""b"""\n22,\n')
        assert connection.execute("SELECT count(*) FROM py_copy").fetchone() == (8,)
        for form in ("text", "binary"):
            query = sql.SQL("COPY (SELECT k, s FROM py_copy WHERE k < 10 ORDER BY k) TO STDOUT (FORMAT {})")
            with connection.cursor().copy(query.format(sql.SQL(form))) as copy:
                copy.set_types(["int4", "text"])
                assert list(copy.rows()) == rows
        try:
            with connection.cursor().copy("COPY py_copy FROM STDIN") as copy:
                copy.write("1\ta\nx\tb\n")
            raise AssertionError("a letter was read as a number")
        except psycopg.errors.InvalidTextRepresentation:
            pass
        assert connection.execute("SELECT count(*) FROM py_copy").fetchone() == (8,)


def psycopg_cursors(at):
    """A server-side cursor gives its rows in parts."""
    with connect(at) as connection:
        with connection.cursor(name="some") as cursor:
            cursor.itersize = 10
            cursor.execute("SELECT n FROM generate_series(1, 35) AS g(n) ORDER BY n")
            assert [row[0] for row in cursor] == list(range(1, 36))


def psycopg_read_only(at):
    """A user who may only read is refused writes."""
    if not at.reader:
        return
    options = dict(host="127.0.0.1", port=at.port, user=at.reader, password=at.password, dbname="anabranch",
                   autocommit=True)
    with psycopg.connect(**options) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        try:
            connection.execute("CREATE TABLE py_refused (a int)")
            raise AssertionError("a reader wrote")
        except psycopg.errors.ReadOnlySqlTransaction:
            pass
        for reads in ("SELECT * FROM read_csv('/etc/passwd', delim => ':')", "COPY (SELECT * FROM '/etc/x.csv') TO STDOUT"):
            try:
                connection.execute(reads)
                raise AssertionError("a reader read a file of the server")
            except psycopg.errors.InsufficientPrivilege:
                pass
    try:
        psycopg.connect(**{**options, "password": "wrong"})
        raise AssertionError("a wrong password was taken")
    except psycopg.OperationalError as error:
        assert "password authentication failed" in str(error), error


def asyncpg_all(at):
    """Prepared statements, types, transactions, cursors and the reset of a pool."""
    asyncio.run(asyncpg_steps(at))


def asyncpg_copy(at):
    """COPY of records."""
    asyncio.run(asyncpg_copy_steps(at))


def asyncpg_options(at):
    context = False
    if at.ca:
        context = ssl.create_default_context(cafile=at.ca)
        context.check_hostname = False
    return dict(host="127.0.0.1", port=at.port, user=at.user, password=at.password, database="anabranch", ssl=context)


async def asyncpg_copy_steps(at):
    connection = await asyncpg.connect(**asyncpg_options(at))
    await connection.execute("DROP TABLE IF EXISTS apg_copy")
    await connection.execute("CREATE TABLE apg_copy (k int PRIMARY KEY, s text)")
    copied = await connection.copy_records_to_table("apg_copy", records=[(50, "x"), (51, None)], columns=["k", "s"])
    assert copied == "COPY 2", copied
    await connection.close()


async def asyncpg_steps(at):
    options = asyncpg_options(at)
    connection = await asyncpg.connect(**options)
    await connection.execute("DROP TABLE IF EXISTS apg")
    await connection.execute(f"CREATE TABLE apg ({NAMES})")
    await connection.execute("INSERT INTO apg VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", *ROW)
    row = await connection.fetchrow("SELECT * FROM apg WHERE k = $1", 1)
    assert tuple(row) == ROW, row
    async with connection.transaction():
        await connection.executemany("INSERT INTO apg (k, s) VALUES ($1, $2)", [(n, str(n)) for n in range(10, 20)])
    assert await connection.fetchval("SELECT count(*) FROM apg") == 11
    try:
        async with connection.transaction():
            await connection.execute("INSERT INTO apg (k) VALUES (99)")
            await connection.execute("INSERT INTO apg (k) VALUES (1)")
        raise AssertionError("a key was there twice")
    except asyncpg.UniqueViolationError:
        pass
    assert await connection.fetchval("SELECT count(*) FROM apg") == 11
    async with connection.transaction():
        seen = [row["k"] async for row in connection.cursor("SELECT k FROM apg ORDER BY k", prefetch=3)]
    assert seen == [1, *range(10, 20)], seen
    # (Types that asyncpg does not know are looked up in the catalog.)
    assert await connection.fetchval("SELECT indkey FROM pg_index WHERE indrelid = 'apg'::regclass") == [1]
    # (Values go in by the types that the server tells of parameters.)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await connection.execute("DROP TABLE IF EXISTS apg_told")
    await connection.execute("CREATE TABLE apg_told (u uuid, j jsonb)")
    key = uuid.uuid4()
    await connection.execute("INSERT INTO apg_told VALUES ($1, $2)", key, {"a": [1, None]})
    assert await connection.fetchval("SELECT j FROM apg_told WHERE u = $1", key) == {"a": [1, None]}
    assert await connection.fetchval("SELECT count(*) FROM apg_told WHERE u = ANY($1)", [key, uuid.uuid4()]) == 1
    await connection.reload_schema_state()
    assert await connection.fetchval("SELECT ARRAY[1, 2]::bigint[]") == [1, 2]
    await connection.close()
    pool = await asyncpg.create_pool(min_size=1, max_size=2, **options)
    for _ in range(3):
        async with pool.acquire() as one:
            assert await one.fetchval("SELECT 1 + $1::int", 1) == 2
    await pool.close()


def sqlalchemy_reflection(at):
    """Tables, columns, keys, indexes and views are found; rows go through the ORM's core."""
    url = sa.URL.create("postgresql+psycopg", at.user, at.password, "127.0.0.1", at.port, "anabranch")
    arguments = {"sslmode": "verify-ca", "sslrootcert": at.ca} if at.ca else {}
    engine = sa.create_engine(url, connect_args=arguments)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS sa_items CASCADE")
    metadata = sa.MetaData()
    items = sa.Table("sa_items", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
                     sa.Column("name", sa.String(20), nullable=False), sa.Column("price", sa.Numeric(10, 2)),
                     sa.Column("added", sa.DateTime(timezone=True)), sa.Column("tags", sa.ARRAY(sa.Text)))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        metadata.create_all(connection)
        connection.exec_driver_sql("CREATE INDEX sa_by_name ON sa_items (name)")
        connection.exec_driver_sql("CREATE VIEW sa_names AS SELECT name FROM sa_items")
        connection.exec_driver_sql("CREATE MATERIALIZED VIEW sa_counts AS SELECT count(*) AS n FROM sa_items")
    with engine.begin() as connection:
        connection.execute(items.insert(), [dict(id=1, name="tea", price=decimal.Decimal("3.50"), tags=["a", "b"]),
                                            dict(id=2, name="jam", price=None, tags=None)])
    with engine.connect() as connection:
        rows = connection.execute(sa.select(items.c.name, items.c.price, items.c.tags).order_by(items.c.id)).all()
        assert rows == [("tea", decimal.Decimal("3.50"), ["a", "b"]), ("jam", None, None)], rows
        # (A UNION of views, and a parameter in LIMIT.)
        assert connection.execute(sa.select(items.c.id).order_by(items.c.id).limit(1)).scalars().all() == [1]
    inspector = sa.inspect(engine)
    assert "sa_items" in inspector.get_table_names(), inspector.get_table_names()
    assert "sa_names" in inspector.get_view_names(), inspector.get_view_names()
    assert "sa_counts" in inspector.get_materialized_view_names(), inspector.get_materialized_view_names()
    columns = {column["name"]: column for column in inspector.get_columns("sa_items")}
    assert [str(columns[name]["type"]) for name in ("id", "name", "price")] == \
        ["INTEGER", "VARCHAR(20)", "NUMERIC(10, 2)"], columns
    assert columns["added"]["type"].timezone and not columns["name"]["nullable"], columns
    assert inspector.get_pk_constraint("sa_items")["constrained_columns"] == ["id"]
    indexes = inspector.get_indexes("sa_items")
    assert [(index["name"], index["column_names"]) for index in indexes] == [("sa_by_name", ["name"])], indexes
    assert inspector.get_foreign_keys("sa_items") == [] and inspector.get_unique_constraints("sa_items") == []
    assert inspector.get_check_constraints("sa_items") == []
    assert "name" in inspector.get_view_definition("sa_names")
    assert inspector.has_table("sa_items") and not inspector.has_table("sa_nothing")
    foreign_keys(engine, metadata, items)
    reflected = sa.Table("sa_items", sa.MetaData(), autoload_with=engine)
    assert list(reflected.primary_key.columns.keys()) == ["id"]
    engine.dispose()


def foreign_keys(engine, metadata, items):
    """A table that refers to another is made, found and obeyed."""
    notes = sa.Table("sa_notes", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
                     sa.Column("item", sa.ForeignKey("sa_items.id", ondelete="CASCADE"), nullable=False))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS sa_notes")
        metadata.create_all(connection)
    [key] = sa.inspect(engine).get_foreign_keys("sa_notes")
    assert (key["name"], key["constrained_columns"], key["referred_table"], key["referred_columns"], key["options"]) == \
        ("sa_notes_item_fkey", ["item"], "sa_items", ["id"], {"ondelete": "CASCADE"}), key
    with engine.begin() as connection:
        connection.execute(notes.insert(), [dict(id=1, item=1), dict(id=2, item=2)])
    try:
        with engine.begin() as connection:
            connection.execute(notes.insert(), [dict(id=3, item=9)])
        raise AssertionError("a row refers to nothing")
    except sa.exc.IntegrityError as error:
        assert error.orig.sqlstate == "23503" and error.orig.diag.constraint_name in (None, "sa_notes_item_fkey"), error
    with engine.begin() as connection:
        connection.execute(items.delete().where(items.c.id == 1))
        assert connection.execute(sa.select(notes.c.id)).scalars().all() == [2]


CHECKS = [psycopg_values, psycopg_prepared, psycopg_pipeline, psycopg_transactions, psycopg_cancel, psycopg_subscribe,
          psycopg_copy, psycopg_cursors, psycopg_read_only, asyncpg_all, asyncpg_copy, sqlalchemy_reflection]
