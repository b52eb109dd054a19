#!/usr/bin/env python3
"""The server beside PostgreSQL 15: pgbench against both, by turns, on the same rows.

Usage: serve.py --anabranch PROGRAM [--bin FOLDER] [--seconds N] [--runs N] [--rows N]

Three questions: look-ups by key (prepared, 16 connections); INSERTs of one row with fsync at 32
connections, with five views over the table on our side and none on the other; the aggregate of one
group, which is a view on our side and a query on the other. Then the cost of idle clients. Each
line of the output is an object of JSON. Where PostgreSQL is not installed, a line says so and
nothing is measured.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

LOOK_UP = "\\set k random(1, {rows})\nSELECT v FROM look WHERE k = :k;\n"
INSERT = "\\set k random(1, 1000000000)\nINSERT INTO ins VALUES (:k, :k % 100, 1);\n"
READ_VIEW = "SELECT g, n, s FROM v1 WHERE g = 3;\n"
READ_QUERY = "SELECT g % 10 AS g, count(*) AS n, sum(v) AS s FROM ins WHERE g % 10 = 3 GROUP BY g % 10;\n"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def postgresql(binaries, folder):
    """A server of PostgreSQL with its own settings, fsync included; yields its port."""
    port = free_port()
    as_user = ["su", "postgres", "-c"] if os.geteuid() == 0 else ["sh", "-c"]
    if os.geteuid() == 0:
        subprocess.run(["chown", "postgres", folder], check=True)
    run = lambda command: subprocess.run(as_user + [command], check=True, stdout=subprocess.DEVNULL)
    run(f"{binaries}/initdb -D {folder}/data -A trust -U postgres")
    run(f"{binaries}/pg_ctl -D {folder}/data -w -l {folder}/log -o '-p {port} -k {folder} -c listen_addresses=127.0.0.1' start")
    try:
        yield port
    finally:
        run(f"{binaries}/pg_ctl -D {folder}/data -m fast stop")


@contextlib.contextmanager
def anabranch(program, folder):
    """Our server over a database on disk; yields its port and its process."""
    port = free_port()
    command = [program, "serve", "--listen", f"127.0.0.1:{port}", "--data", f"{folder}/database", "--log", "warn"]
    process = subprocess.Popen(command)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield port, process
    finally:
        process.terminate()
        process.wait(30)


def psql(port, *commands):
    words = [word for command in commands for word in ("-c", command)]
    subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres", *words],
                   check=True, stdout=subprocess.DEVNULL)


def pgbench(binaries, port, script, clients, seconds):
    """Transactions a second, and their mean latency in ms."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        command = [f"{binaries}/pgbench", "-n", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-M", "prepared",
                   "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", file.name, "postgres"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    number = lambda pattern: float(re.search(pattern, told).group(1))
    return number(r"tps = ([\d.]+)"), number(r"latency average = ([\d.]+)")


def compare(question, arguments, ours, theirs, scripts, clients):
    """Both, by turns; the ratio is of the medians."""
    rates = {"anabranch": [], "postgresql": []}
    for _ in range(arguments.runs):
        for name, port, script in (("anabranch", ours, scripts[0]), ("postgresql", theirs, scripts[1])):
            rate, latency = pgbench(arguments.bin, port, script, clients, arguments.seconds)
            rates[name].append(rate)
            print(json.dumps({"question": question, "of": name, "clients": clients, "per_second": round(rate),
                              "latency_ms": latency, "load": os.getloadavg()[0]}), flush=True)
    median = lambda values: sorted(values)[len(values) // 2]
    ratio = median(rates["anabranch"]) / median(rates["postgresql"])
    print(json.dumps({"question": question, "ratio": round(ratio, 3)}), flush=True)


def of_process(pid):
    """Seconds of processor time, and kilobytes of memory."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def log_in(port):
    """A client that has logged in and does nothing."""
    client = socket.create_connection(("127.0.0.1", port))
    body = (196_608).to_bytes(4, "big") + b"user\0idle\0\0"
    client.sendall((len(body) + 4).to_bytes(4, "big") + body)
    told = b""
    while not told.endswith(b"Z\0\0\0\5I"):
        told += client.recv(4096)
    return client


def idle(port, pid, n_clients, seconds):
    """Shares of a core, and memory of each client."""
    memory = of_process(pid)[1]
    clients = [log_in(port) for _ in range(n_clients)]
    time.sleep(0.5)
    (before, after_login) = of_process(pid)
    time.sleep(seconds)
    spent = of_process(pid)[0] - before
    print(json.dumps({"question": "idle clients", "clients": n_clients, "core_percent": round(100 * spent / seconds, 2),
                      "kb_each": round((after_login - memory) / n_clients)}), flush=True)
    for client in clients:
        client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", required=True)
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.bin, "pgbench").exists():
        print("PostgreSQL 15 is not installed here: nothing is measured")
        return 0
    with tempfile.TemporaryDirectory() as there, tempfile.TemporaryDirectory() as here:
        with postgresql(arguments.bin, there) as theirs, anabranch(arguments.anabranch, here) as (ours, process):
            idle(ours, process.pid, 100, arguments.seconds)
            for port in (ours, theirs):
                psql(port, "CREATE TABLE look (k int PRIMARY KEY, v text)",
                     f"INSERT INTO look SELECT n, 'value ' || n FROM generate_series(1, {arguments.rows}) AS g(n)",
                     "CREATE TABLE ins (k bigint, g bigint, v bigint)")
            psql(theirs, "VACUUM ANALYZE look")
            for n in range(1, 6):
                by = f"g % {10 * n}"
                psql(ours, f"CREATE MATERIALIZED VIEW v{n} AS SELECT {by} AS g, count(*) AS n, sum(v) AS s FROM ins GROUP BY {by}")
            look_up = LOOK_UP.format(rows=arguments.rows)
            compare("look-up by key", arguments, ours, theirs, [look_up] * 2, 16)
            compare("insert of a row", arguments, ours, theirs, [INSERT] * 2, 32)
            compare("aggregate of a group", arguments, ours, theirs, [READ_VIEW, READ_QUERY], 4)
    return 0


if __name__ == "__main__":
    sys.exit(main())
