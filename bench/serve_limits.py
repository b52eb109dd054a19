#!/usr/bin/env python3
"""The server under many clients, many prepared statements and a client that sends 1 GB.

Usage: serve_limits.py --anabranch PROGRAM [--clients N] [--statements N] [--megabytes N]

Messages are written as bytes, so no driver stands between. Each line of the output is an object of
JSON. Memory is the resident set of the server's process.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import time

LOOK_UP = "SELECT v FROM t WHERE k = 1"
BLOCK = (b"x" * 999 + b"\n") * 64


def message(letter, body):
    return letter + struct.pack("!I", len(body) + 4) + body


class Client:
    """A client that has logged in."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 120)
        start = struct.pack("!I", 3 << 16) + b"user\0bench\0\0"
        self.socket.sendall(struct.pack("!I", len(start) + 4) + start)
        self.file = self.socket.makefile("rb")
        self.until_ready()

    def send(self, letter, body):
        self.socket.sendall(message(letter, body))

    def receive(self):
        """The letter and the body of a message; no letter once the server has hung up."""
        letter = self.file.read(1)
        if not letter:
            return b"", b""
        return letter, self.file.read(struct.unpack("!I", self.file.read(4))[0] - 4)

    def until_ready(self):
        """The letters of all messages up to ReadyForQuery, and the SQLSTATE of an error."""
        letters, sqlstate = b"", None
        while not letters.endswith(b"Z"):
            letter, body = self.receive()
            if not letter:
                break
            letters += letter
            if letter == b"E":
                fields = body.split(b"\0")
                sqlstate = next(field[1:].decode() for field in fields if field[:1] == b"C")
        return letters.decode(), sqlstate

    def query(self, sql):
        self.send(b"Q", sql.encode() + b"\0")
        return self.until_ready()

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    """A server over a database in memory."""

    def __init__(self, program, folder, options):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        limits = f"connections = {options.clients + 10}\nstatements_max = {options.statements + 10}\n"
        config = pathlib.Path(folder, "server.toml")
        config.write_text(f"[limits]\n{limits}")
        address = f"127.0.0.1:{self.port}"
        command = [program, "serve", "--listen", address, "--config", config, "--log", "warn"]
        self.process = subprocess.Popen(command)
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                break
            time.sleep(0.05)

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def idle_percent(self, seconds):
        before = self.cpu_s()
        time.sleep(seconds)
        return 100 * (self.cpu_s() - before) / seconds


def tell(what, **figures):
    rounded = {name: round(v, 2) if isinstance(v, float) else v for name, v in figures.items()}
    print(json.dumps({"case": what, **rounded}), flush=True)


def many_clients(server, n_clients):
    before, started = server.memory_mb(), time.time()
    clients = [Client(server.port) for _ in range(n_clients)]
    took = time.time() - started
    kb = lambda: 1024 * (server.memory_mb() - before) / n_clients
    tell("log-ins", clients=n_clients, seconds=took, kb_a_client=kb())
    tell("idle", clients=n_clients, percent_of_a_core=server.idle_percent(20))
    started = time.time()
    for client in clients:
        client.send(b"Q", LOOK_UP.encode() + b"\0")
    answers = {client.until_ready()[0] for client in clients}
    assert answers == {"TDCZ"}, answers
    tell("a query of each at once", clients=n_clients, seconds=time.time() - started, kb_a_client=kb())
    for client in clients:
        client.close()
    time.sleep(5)
    tell("clients have left", memory_mb=server.memory_mb())


def many_statements(server, n_statements):
    client, before, started = Client(server.port), server.memory_mb(), time.time()
    for first in range(0, n_statements, 100):
        texts = (f"s{n}\0SELECT v FROM t WHERE k = $1 + {n}\0\0\0" for n in range(first, first + 100))
        client.socket.sendall(b"".join(message(b"P", text.encode()) for text in texts))
        client.send(b"S", b"")
        assert client.until_ready()[1] is None
    took, kb = time.time() - started, 1024 * (server.memory_mb() - before) / n_statements
    tell("prepared statements", statements=n_statements, seconds=took, kb_a_statement=kb)
    client.close()
    time.sleep(5)
    tell("the client has left", memory_mb=server.memory_mb())


def much_at_once(server, other, megabytes):
    client = Client(server.port)
    # The length alone: the server refuses before the rest comes.
    client.socket.sendall(b"Q" + struct.pack("!I", 1 << 30))
    tell("one message", megabytes=1_024, sqlstate=client.until_ready()[1])
    client = Client(server.port)
    client.query("CREATE TABLE big (v text)")
    client.send(b"Q", b"COPY big FROM STDIN\0")
    assert client.receive()[0] == b"G"
    started, cpu, before = time.time(), server.cpu_s(), server.memory_mb()
    most, slowest = before, 0
    for block in range((megabytes << 20) // len(BLOCK)):
        client.send(b"d", BLOCK)
        if block % 500 == 0:
            asked = time.time()
            assert other.query(LOOK_UP)[0] == "TDCZ"
            most, slowest = max(most, server.memory_mb()), max(slowest, time.time() - asked)
    client.send(b"c", b"")
    answer = client.until_ready()
    tell("COPY", megabytes=megabytes, answer=answer, seconds=time.time() - started,
         cpu_s=server.cpu_s() - cpu, memory_mb_while_it_came=most - before,
         memory_mb_after=server.memory_mb() - before, slowest_look_up_ms=1000 * slowest)
    other.query("DROP TABLE big")
    time.sleep(2)
    tell("the table was dropped", memory_mb=server.memory_mb() - before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", required=True, help="the program")
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--megabytes", type=int, default=1_024)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.anabranch, folder, options)
        try:
            other = Client(server.port)
            other.query("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
            tell("alone", memory_mb=server.memory_mb(), percent_of_a_core=server.idle_percent(10))
            many_clients(server, options.clients)
            many_statements(server, options.statements)
            much_at_once(server, other, options.megabytes)
            assert other.query(LOOK_UP)[0] == "TDCZ"
        finally:
            server.process.terminate()
            server.process.wait(60)


if __name__ == "__main__":
    main()
