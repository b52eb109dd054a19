"""Random queries: what rows come from, and whole statements."""

import re

from conditions import Conditions
from data import COLUMNS, NAMES, ORDERED, literal
from values import Scope


class Queries(Conditions):
    """One query for each seed."""

    def tables(self, scope: Scope, depth: int) -> tuple[str, list[tuple[str, str]]]:
        table = self.chance.choice(list(COLUMNS))
        alias = self.name("t")
        text, own = f"{table} AS {alias}", [(f"{alias}.{name}", kind) for name, kind in COLUMNS[table]]
        pick = self.chance.random()
        if pick < 0.3:
            for _ in range(self.chance.one(1, 4, 2, 1)):
                other, alias = self.chance.choice(list(COLUMNS)), self.name("t")
                more = [(f"{alias}.{name}", kind) for name, kind in COLUMNS[other]]
                kind = self.chance.one("JOIN", 3, "LEFT JOIN", 3, "RIGHT JOIN", 1, "FULL JOIN", 1)
                shared = [(x, y) for x, kx in own for y, ky in more if kx == ky and kx in ORDERED]
                left, right = self.chance.choice(shared)
                on = f"{left} = {right}"
                if kind != "FULL JOIN" and self.chance.random() < 0.4:
                    outer = scope.inner() if kind in ("JOIN", "LEFT JOIN") else []
                    on += f" AND {self.condition(Scope(outer, own + more), 1)}"
                text += f" {kind} {other} AS {alias} ON {on}"
                own += more
        elif pick < 0.42 and depth > 0:
            alias = self.name("d")
            kinds = [self.chance.choice(["int", "text", "num"]), self.chance.choice(["big", "date", "int"])]
            shape = self.chance.choice([", LATERAL ({}) AS {}(v, w)", " LEFT JOIN LATERAL ({}) AS {}(v, w) ON true"])
            text += shape.format(self.rows(Scope(scope.inner(), own), depth - 1, kinds), alias)
            own += [(f"{alias}.v", kinds[0]), (f"{alias}.w", kinds[1])]
        elif pick < 0.48:
            alias = self.name("g")
            argument = self.column("int", Scope(scope.inner(), own)) or "2"
            if self.chance.random() < 0.5:
                text += f", generate_series(1, least({argument}, 4)) AS {alias}(v)"
            else:
                arrays = self.column("ints", Scope(scope.inner(), own)) or "ARRAY[1, 2, NULL]"
                text += f" {self.chance.choice(['CROSS JOIN', 'LEFT JOIN'])} unnest({arrays}) AS {alias}(v)"
                text += " ON true" if "LEFT JOIN unnest" in text else ""
            own.append((f"{alias}.v", "int"))
        elif pick < 0.54 and depth > 0:
            alias = self.name("d")
            kinds = [self.chance.choice(["int", "text"]), self.chance.choice(["big", "num", "ts"])]
            text = f"({self.rows(Scope(), depth - 1, kinds)}) AS {alias}(v, w)"
            own = [(f"{alias}.v", kinds[0]), (f"{alias}.w", kinds[1])]
        return text, own

    def rows(self, scope: Scope, depth: int, kinds: list[str]) -> str:
        """A query of columns of these types."""
        pick = self.chance.random()
        if pick < 0.08:
            rows = ", ".join("(" + ", ".join(self.value(kind, scope, 0) for kind in kinds) + ")" for _ in range(self.chance.randint(1, 3)))
            return f"VALUES {rows}" if self.chance.random() < 0.5 else f"SELECT * FROM (VALUES {rows}) AS {self.name('w')}"
        if pick < 0.2:
            word = self.chance.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
            return f"({self.plain(scope, depth, kinds)}) {word} ({self.plain(scope, 0, kinds)})"
        return self.plain(scope, depth, kinds)

    def plain(self, scope: Scope, depth: int, kinds: list[str]) -> str:
        tables, own = self.tables(scope, depth)
        inner = Scope(scope.inner(), own)
        where = f" WHERE {self.condition(inner, depth)}" if self.chance.random() < 0.8 else ""
        pick = self.chance.random()
        grouped = [kind for kind in kinds if kind in ("json", "ints")] == []
        if pick < 0.15 and grouped:
            groups = Scope(own, own)
            key_kind = kinds[0]
            key = self.column(key_kind, groups) or literal(self.chance, key_kind)
            items = [key] + [self.call(kind, groups, 0) for kind in kinds[1:]]
            if not any(key == text for text, _ in own):
                return f"SELECT {', '.join([self.call(kinds[0], groups, 0)] + items[1:])} FROM {tables}{where}"
            having = f" HAVING {self.call('big', groups, 0)} {self.chance.choice(['>', '=', '<='])} {self.chance.randint(0, 3)}" if self.chance.random() < 0.3 else ""
            return f"SELECT {', '.join(items)} FROM {tables}{where} GROUP BY {key}{having}"
        items = [self.value(kind, inner, min(depth, 1)) for kind in kinds]
        order = ", ".join(str(n + 1) for n in range(len(kinds)))
        if pick < 0.3 and "json" not in kinds:
            limit = f" LIMIT {self.chance.randint(0, 3)}" if self.chance.random() < 0.8 else ""
            offset = f" OFFSET {self.chance.randint(0, 2)}" if self.chance.random() < 0.3 else ""
            direction = self.chance.choice(["", " DESC"])
            return f"SELECT {', '.join(items)} FROM {tables}{where} ORDER BY {order.replace(',', direction + ',')}{direction}{limit}{offset}"
        if pick < 0.36 and "json" not in kinds:
            return f"SELECT DISTINCT ON ({items[0]}) {', '.join(items)} FROM {tables}{where} ORDER BY {items[0]}, {order}" if self.constant_free(items[0]) else f"SELECT DISTINCT {', '.join(items)} FROM {tables}{where}"
        distinct = "DISTINCT " if pick < 0.44 else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {tables}{where}"

    @staticmethod
    def constant_free(text: str) -> bool:
        return re.match(r"^[a-z]+\d+\.\w+$", text) is not None

    def top(self) -> str:
        """A whole query. Its columns have names, so that it can be a view."""
        depth = self.chance.one(1, 2, 2, 3, 3, 2)
        pick = self.chance.random()
        if pick < 0.35:
            text = self.wide(depth)
        elif pick < 0.6:
            text = self.grouped(depth)
        elif pick < 0.8:
            text = self.windows(depth)
        elif pick < 0.9:
            kinds = [self.chance.choice(["int", "text", "num", "date", "float", "big"]) for _ in range(self.chance.randint(1, 3))]
            branches = [f"({self.plain(Scope(), depth - 1, kinds)})" for _ in range(self.chance.one(2, 3, 3, 1))]
            text = branches[0]
            for branch in branches[1:]:
                text += f" {self.chance.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT', 'EXCEPT ALL', 'INTERSECT ALL'])} {branch}"
            text = f"SELECT * FROM ({text}) AS q({', '.join(f'x{n}' for n in range(len(kinds)))})"
        else:
            text = self.shared(depth)
        return text

    def items(self, items: list[str]) -> str:
        return ", ".join(f"{item} AS x{n}" for n, item in enumerate(items))

    def wide(self, depth: int) -> str:
        tables, own = self.tables(Scope(), depth)
        scope = Scope((), own)
        kinds = [self.chance.choice(list(NAMES)) for _ in range(self.chance.randint(1, 4))]
        items = [text for text, _ in own[:2]] + [self.value(kind, scope, depth) for kind in kinds]
        return f"SELECT {self.items(items)} FROM {tables} WHERE {self.condition(scope, depth)}"

    def grouped(self, depth: int) -> str:
        tables, own = self.tables(Scope(), depth)
        scope = Scope((), own)
        where = f" WHERE {self.condition(scope, depth)}" if self.chance.random() < 0.6 else ""
        calls = [self.call(self.chance.choice(["big", "int", "numeric", "float", "text", "bool", "date", "ts", "interval", "num"]), scope, 1) for _ in range(self.chance.randint(1, 3))]
        pick = self.chance.random()
        if pick < 0.25:
            return f"SELECT {self.items(calls)} FROM {tables}{where}"
        keys = self.chance.sample([text for text, kind in own if kind in ORDERED], 2)
        having = f" HAVING {self.call('big', scope, 0)} {self.chance.choice(['>', '=', '<='])} {self.chance.randint(0, 3)}" if self.chance.random() < 0.3 else ""
        if pick < 0.8:
            keys = keys[: self.chance.randint(1, 2)]
            return f"SELECT {self.items(keys + calls)} FROM {tables}{where} GROUP BY {', '.join(keys)}{having}"
        sets = self.chance.choice(["ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}), ({1}), ())", "{0}, ROLLUP ({1})"]).format(*keys)
        return f"SELECT {self.items(keys + [f'grouping({keys[0]})'] + calls)} FROM {tables}{where} GROUP BY {sets}{having}"

    def windows(self, depth: int) -> str:
        tables, own = self.tables(Scope(), depth)
        scope = Scope((), own)
        unique = [text for text, kind in own if kind not in ("json",)]
        where = f" WHERE {self.condition(scope, depth - 1)}" if self.chance.random() < 0.4 else ""
        alike = any(text.split(".")[0][0] != "t" for text, _ in own)  # rows may be equal: two functions may order them differently
        calls = [self.window(scope, unique)[0] for _ in range(1 if alike else self.chance.randint(1, 3))]
        inner = f"SELECT {self.items(unique[:3] + calls)} FROM {tables}{where}"
        if self.chance.random() < 0.25:
            n = 3 + self.chance.randrange(len(calls))
            return f"SELECT x0, x1, x{min(n, len(unique[:3]) + len(calls) - 1)} FROM ({inner}) AS q WHERE x{min(n, len(unique[:3]) + len(calls) - 1)} IS NOT NULL"
        return inner

    def shared(self, depth: int) -> str:
        kinds = ["int", self.chance.choice(["text", "num", "big"])]
        rows = self.plain(Scope(), depth - 1, kinds)
        scope = Scope((), [("p.v", kinds[0]), ("p.w", kinds[1]), ("q.v", kinds[0]), ("q.w", kinds[1])])
        kind = self.chance.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        if self.chance.random() < 0.3:
            return f"WITH r(v, w) AS ({rows}) SELECT v, p.w AS x1, q.w AS x2 FROM r AS p {kind} r AS q USING (v)"
        items = [self.value(self.chance.choice(["int", "text", "big", "bool"]), scope, 1) for _ in range(2)]
        return f"WITH r(v, w) AS ({rows}) SELECT {self.items(['p.v', 'q.w'] + items)} FROM r AS p {kind} r AS q ON p.v = q.v"
