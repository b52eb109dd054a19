"""Types, constants of them, the tables of a batch and their changes."""

import random

COLUMNS = {
    "a": [("id", "int"), ("i", "int"), ("l", "big"), ("t", "text"), ("n", "num"), ("d", "date")],
    "b": [("id", "int"), ("i", "int"), ("f", "float"), ("t", "text"), ("s", "ts"), ("o", "bool")],
    "c": [("id", "int"), ("l", "big"), ("n", "num"), ("m", "numeric"), ("v", "interval"), ("o", "bool")],
    "e": [("id", "int"), ("i", "int"), ("h", "small"), ("r", "ints"), ("j", "json"), ("z", "tz"), ("d", "date")],
}
NAMES = {
    "int": "integer", "big": "bigint", "small": "smallint", "text": "text", "num": "numeric(8,2)", "numeric": "numeric",
    "float": "double precision", "date": "date", "ts": "timestamp", "tz": "timestamptz", "bool": "boolean", "interval": "interval",
    "ints": "integer[]", "json": "jsonb",
}
NUMBERS = ["int", "big", "small", "num", "numeric", "float"]
WHOLE = ["int", "big", "small"]
ORDERED = ["int", "big", "small", "num", "numeric", "float", "text", "date", "ts", "tz", "interval", "bool"]
RANK = {"small": 0, "int": 1, "big": 2, "num": 3, "numeric": 4, "float": 5}
WORDS = ["", "a", "ab", "abc", "Abc", "b", "ba", "x1", "1", "12", "a%", "a_b", "äö", " a ", "zz"]


class Chance(random.Random):
    """Random choices by weight."""

    def one(self, *weighted):
        values, weights = weighted[0::2], weighted[1::2]
        return self.choices(values, weights)[0]


def literal(chance: Chance, kind: str) -> str:
    """A constant of a type, as text that both sides read alike."""
    pick = chance.random
    if pick() < 0.05 and kind != "json":
        return f"NULL::{NAMES[kind]}"
    if kind == "int":
        return str(chance.randint(-3, 6))
    if kind == "big":
        return f"{chance.randint(-3, 6)}::bigint"
    if kind == "small":
        return f"{chance.randint(0, 5)}::smallint"
    if kind == "num":
        return f"{chance.randint(-300, 900) / 100:.2f}::numeric(8,2)"
    if kind == "numeric":
        return f"{chance.randint(-3000, 9000) / 1000:.3f}"
    if kind == "float":
        return f"{chance.choice([0.5, 1.5, -2.25, 3, 0, 1e3, 0.1])}::double precision"
    if kind == "text":
        return f"'{chance.choice(WORDS)}'"
    if kind == "date":
        return f"DATE '2024-0{chance.randint(1, 3)}-{chance.randint(1, 28):02}'"
    if kind == "ts":
        return f"TIMESTAMP '2024-0{chance.randint(1, 3)}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:30:00'"
    if kind == "tz":
        return f"TIMESTAMPTZ '2024-0{chance.randint(1, 3)}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:30:00+00'"
    if kind == "bool":
        return chance.choice(["true", "false"])
    if kind == "interval":
        return f"INTERVAL '{chance.choice(['1 day', '2 hours', '90 minutes', '3 days 4 hours', '10 seconds'])}'"
    if kind == "ints":
        return f"ARRAY[{', '.join(str(chance.randint(0, 4)) for _ in range(chance.randint(1, 3)))}]"
    return chance.choice(["'{\"a\": 1}'::jsonb", "'[1, 2]'::jsonb", "'3'::jsonb", "'{\"a\": {\"b\": \"x\"}, \"c\": null}'::jsonb"])


def cell(chance: Chance, kind: str) -> str:
    """A value of a row."""
    if chance.random() < 0.15:
        return "NULL"
    if kind == "json":
        return chance.choice(["'{\"a\": 1, \"b\": [1, 2]}'", "'{\"a\": \"x\"}'", "'[3, 4]'", "'\"s\"'", "'{}'", "'null'"])
    if kind == "interval":
        return f"INTERVAL '{chance.choice(['1 day', '2 hours', '90 minutes', '25 hours', '3 days'])}'"
    text = literal(chance, kind)
    return "NULL" if text.startswith("NULL") else text


def definitions() -> list[str]:
    statements = []
    for table, columns in COLUMNS.items():
        statements.append(f"DROP TABLE IF EXISTS {table} CASCADE")
        statements.append(f"CREATE TABLE {table} ({', '.join(f'{name} {NAMES[kind]}' for name, kind in columns)})")
    return statements


class Changes:
    """Random changes of the tables; ids are unique."""

    def __init__(self, seed: str) -> None:
        self.chance = Chance(seed)
        self.ids = {table: [] for table in COLUMNS}
        self.next = 1

    def rows(self, table: str, count: int) -> str:
        rows = []
        for _ in range(count):
            cells = [str(self.next)] + [cell(self.chance, kind) for _, kind in COLUMNS[table][1:]]
            self.ids[table].append(self.next)
            self.next += 1
            rows.append(f"({', '.join(cells)})")
        return f"INSERT INTO {table} VALUES {', '.join(rows)}"

    def round(self, first: bool) -> list[str]:
        statements = []
        for table in COLUMNS:
            ids = self.ids[table]
            if first:
                statements.append(self.rows(table, self.chance.randint(3, 7)))
                continue
            if self.chance.random() < 0.6:
                statements.append(self.rows(table, self.chance.randint(1, 3)))
            for _ in range(self.chance.randint(0, 2)):
                if ids:
                    name, kind = self.chance.choice(COLUMNS[table][1:])
                    statements.append(f"UPDATE {table} SET {name} = {cell(self.chance, kind)} WHERE id = {self.chance.choice(ids)}")
            if ids and self.chance.random() < 0.5:
                gone = ids.pop(self.chance.randrange(len(ids)))
                statements.append(f"DELETE FROM {table} WHERE id = {gone}")
        return statements
