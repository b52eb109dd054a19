#!/usr/bin/env python3
"""Snapshots of a database at an S3 server (moto): written, read, replaced, and what is told when
they cannot be.

Usage: snapshots.py --anabranch PROGRAM

Ends with `N passed, N failed`.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

import boto3
import psycopg

# Two of these make a log of more than 64 MiB, after which a snapshot is due.
ROWS = 700_000
INSERT = "INSERT INTO t SELECT n, 'a text that is a little longer ' || n FROM generate_series(%s, %s) AS g(n)"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(endpoint, key="test"):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    credentials = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "secret"} if key else {}
    # (Where no machine tells of a role.)
    nowhere = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}
    return {**kept, **credentials, **nowhere, "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": endpoint}


@contextlib.contextmanager
def s3():
    """An S3 server with a bucket `backups`; yields its address and a client."""
    port = free_port()
    program = pathlib.Path(sys.executable).with_name("moto_server")
    process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(endpoint, timeout=5).close()
                break
            time.sleep(0.1)
        client = boto3.client("s3", endpoint_url=endpoint, region_name="eu-central-1", aws_access_key_id="test",
                              aws_secret_access_key="secret")
        client.create_bucket(Bucket="backups", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield endpoint, client
    finally:
        process.kill()
        process.wait()


class Served:
    """A server over the database in a folder."""

    def __init__(self, program, folder, env, *more):
        self.port = free_port()
        self.log = pathlib.Path(folder).with_suffix(".log")
        command = [program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", folder, "--log", "info", *more]
        self.process = subprocess.Popen(command, env=env, stderr=open(self.log, "w"))

    def connect(self):
        for _ in range(1200):
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(psycopg.OperationalError):
                return psycopg.connect(host="127.0.0.1", port=self.port, user="ann", dbname="any", autocommit=True)
            time.sleep(0.05)
        raise AssertionError("the server does not answer: " + self.log.read_text())

    def wait_for(self, words, seconds=60):
        for _ in range(seconds * 10):
            if words in self.log.read_text():
                return
            time.sleep(0.1)
        raise AssertionError(f"{words!r} is not in the log: {self.log.read_text()}")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)


def objects(client):
    listed = client.list_objects_v2(Bucket="backups", Prefix="shops/")
    return [(entry["Key"], entry["Size"]) for entry in listed.get("Contents", [])]


def wait_until(what, seconds=60):
    for _ in range(seconds * 10):
        if what():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to be")


def fill(connection, first):
    """Rows of two halves, which make a log after which a snapshot is due."""
    for half in range(2):
        start = first + half * ROWS
        connection.execute(INSERT % (start + 1, start + ROWS))


def written_and_read(program, folder, endpoint, client):
    """Snapshots go to the bucket, replace each other there, and a killed server comes back."""
    env, data = environment(endpoint), folder / "shop"
    served = Served(program, data, env, "--snapshots", "s3://backups/shops/")
    with served.connect() as connection:
        connection.execute("CREATE TABLE t (k bigint, v text)")
        fill(connection, 0)
        wait_until(lambda: [key for key, _ in objects(client) if key.endswith("/000001.snapshot")])
        # The next one is due once the log is as large as the snapshot.
        fill(connection, 2 * ROWS)
        fill(connection, 4 * ROWS)
        wait_until(lambda: [key for key, _ in objects(client)] and all(
            key.endswith("/000002.snapshot") for key, _ in objects(client)))
        connection.execute("INSERT INTO t VALUES (-1, 'behind the snapshot')")
    served.end(signal.SIGKILL)
    assert not list(data.glob("*.snapshot")), list(data.iterdir())
    # It is found without being named.
    served = Served(program, data, env)
    with served.connect() as connection:
        row = connection.execute("SELECT count(*), sum(k), min(v) FROM t").fetchone()
        total = 6 * ROWS
        assert row[0] == total + 1 and row[1] == total * (total + 1) // 2 - 1, row
    served.end()
    checked = subprocess.run([program, "check", data], env=env, text=True, capture_output=True)
    assert checked.returncode == 0 and "s3://backups/shops/" in checked.stdout, checked
    dumped = subprocess.run([program, "dump", data], env=env, text=True, capture_output=True)
    assert dumped.returncode == 0 and dumped.stdout.count("\n") > 6 * ROWS, dumped.stderr
    # The place alone is the database as of its last snapshot.
    restored = subprocess.run([program, "restore", "s3://backups/shops", folder / "again"], env=env, text=True,
                              capture_output=True)
    assert restored.returncode == 0 and "restored from snapshot 2 in s3://backups/shops/" in restored.stdout, restored
    asked = subprocess.run([program, folder / "again", "--csv", "-c", "SELECT count(*), min(k) FROM t"], env=env,
                           text=True, capture_output=True)
    rows = int(asked.stdout.split("\n")[1].split(",")[0])
    # (The second snapshot was written while rows came.)
    assert 4 * ROWS <= rows <= 6 * ROWS and asked.stdout.endswith(",1\n"), asked
    assert len(objects(client)) == 1, "the place is as it was"
    # Where the store is not reached, nothing opens and nothing is changed.
    before = sorted((path.name, path.read_bytes()) for path in data.glob("MANIFEST"))
    away = environment(f"http://127.0.0.1:{free_port()}")
    for command in (["check", data], ["dump", data], [data, "-c", "SELECT 1"]):
        failed = subprocess.run([program, *command], env=away, text=True, capture_output=True)
        assert failed.returncode == 1 and "the object store cannot be reached" in failed.stderr, failed
    assert before == sorted((path.name, path.read_bytes()) for path in data.glob("MANIFEST"))
    # Back into the folder.
    shell = subprocess.run([program, data, "--snapshots", "folder", "-c", "SELECT count(*) FROM t"], env=env, text=True,
                           capture_output=True)
    assert shell.returncode == 0 and str(6 * ROWS + 1) in shell.stdout, shell


def told(program, folder, endpoint, _client):
    """A bucket that is missing, no credentials and a store that is away are told; commits go on."""
    cases = [("missing", environment(endpoint), "s3://nowhere/x", "bucket nowhere does not exist"),
             ("nobody", environment(endpoint, key=None), "s3://backups/x", "there are no credentials"),
             ("away", environment(f"http://127.0.0.1:{free_port()}"), "s3://backups/x",
              "the object store cannot be reached")]
    for name, env, place, words in cases:
        served = Served(program, folder / name, env, "--snapshots", place)
        with served.connect() as connection:
            connection.execute("CREATE TABLE t (k bigint, v text)")
            connection.execute("INSERT INTO t VALUES (1, 'a')")
            served.wait_for(words, 120)
            assert "nothing is lost" in served.log.read_text()
        served.end()
        shell = subprocess.run([program, folder / name, "-c", "SELECT v FROM t", "--csv"], env=env, text=True,
                               capture_output=True)
        assert shell.returncode == 0 and shell.stdout == "v\na\n", shell
    refused = subprocess.run([program, folder / "wrong", "--snapshots", "s4://x", "-c", "SELECT 1"], text=True,
                             capture_output=True)
    assert refused.returncode == 1 and "s4://x is no place for snapshots" in refused.stderr, refused


def failing_meanwhile(program, folder, endpoint, client):
    """The bucket goes while the server runs: the log grows, and the next snapshot goes to the new
    bucket."""
    client.create_bucket(Bucket="short", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    env, data = environment(endpoint), folder / "short"
    served = Served(program, data, env, "--snapshots", "s3://short")
    with served.connect() as connection:
        connection.execute("CREATE TABLE t (k bigint, v text)")
        client.delete_bucket(Bucket="short")
        fill(connection, 0)
        served.wait_for("bucket short does not exist")
        client.create_bucket(Bucket="short", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        fill(connection, 2 * ROWS)
        served.wait_for("snapshots are written again")
        assert client.list_objects_v2(Bucket="short")["KeyCount"] == 1
    served.end(signal.SIGKILL)
    shell = subprocess.run([program, data, "-c", "SELECT count(*) AS n FROM t", "--csv"], env=env, text=True,
                           capture_output=True)
    assert shell.stdout == f"n\n{4 * ROWS}\n", shell


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", required=True, type=pathlib.Path)
    program = parser.parse_args().anabranch.absolute()
    passed = failed = 0
    with s3() as (endpoint, client):
        for check in (written_and_read, told, failing_meanwhile):
            folder = pathlib.Path(tempfile.mkdtemp())
            started = time.monotonic()
            try:
                check(program, folder, endpoint, client)
                passed += 1
                print(f"ok   {check.__name__} ({time.monotonic() - started:.0f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL {check.__name__}", flush=True)
                traceback.print_exc()
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
