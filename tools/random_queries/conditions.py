"""Random conditions, aggregates and window functions."""

import re

from data import NUMBERS, ORDERED, RANK, literal
from values import Scope, Values


class Conditions(Values):
    """Values that rows are chosen by, and values of several rows."""

    def condition(self, scope: Scope, depth: int) -> str:
        self.size += 1
        pick = self.chance.random()
        if depth <= 0 or self.size > 60 or pick < 0.4:
            return self.comparison(scope, depth - 1)
        if pick < 0.55:
            return f"({self.condition(scope, depth - 1)} {self.chance.one('AND', 3, 'OR', 2)} {self.condition(scope, depth - 1)})"
        if pick < 0.6:
            return f"NOT ({self.condition(scope, depth - 1)})"
        if pick < 0.75:
            return self.other_test(scope, depth - 1)
        return self.subquery_test(scope, depth - 1)

    def comparison(self, scope: Scope, depth: int) -> str:
        columns = [kind for _, kind in scope.own if kind in ORDERED] or ["int"]
        kind = self.chance.choice(columns)
        operator = self.chance.one("=", 5, "<", 2, "<>", 2, ">=", 2, "<=", 1, "IS DISTINCT FROM", 1, "IS NOT DISTINCT FROM", 1)
        left, right = kind, kind
        if kind in RANK and self.chance.random() < 0.2 and "DISTINCT" not in operator:
            right = self.chance.choice(NUMBERS)
        return f"{self.value(left, scope, depth)} {operator} {self.value(right, scope, depth)}"

    def other_test(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        kind = self.chance.choice([kind for _, kind in scope.own if kind in ORDERED] or ["int"])
        no = self.chance.choice(["", "NOT "])
        return self.chance.choice([
            lambda: f"{v(kind)} IS {no}NULL",
            lambda: f"{v(kind)} {no}BETWEEN {v(kind)} AND {v(kind)}",
            lambda: f"{v(kind)} {no}IN ({literal(self.chance, kind)}, {v(kind)}, {literal(self.chance, kind)})",
            lambda: f"{v('text')} {no}LIKE '{self.chance.choice(['a%', '%b', '_b%', '%', '', 'A%'])}'",
            lambda: f"{v('text')} {self.chance.choice(['~', '!~', '~*'])} '{self.chance.choice(['^a', 'b$', '[0-9]', 'a.c', '^$'])}'",
            lambda: f"({v('bool')}) IS {no}{self.chance.choice(['TRUE', 'FALSE', 'UNKNOWN'])}",
            lambda: f"({v('int')}, {v('text')}) = ({v('int')}, {v('text')})",
            lambda: f"({v('int')}, {v('text')}) < ({v('int')}, {v('text')})",
            lambda: f"{v('int')} = ANY ({v('ints')})",
            lambda: f"{v('int')} <> ALL ({v('ints')})",
            lambda: f"{v('ints')} @> {v('ints')}",
            lambda: f"{v('ints')} && {v('ints')}",
            lambda: f"{v('json')} @> '{{\"a\": 1}}'",
            lambda: f"{v('json')} ? 'a'",
            lambda: f"starts_with({v('text')}, 'a')",
            lambda: f"({v('ts')}, {v('ts')}) OVERLAPS ({v('ts')}, {v('ts')})",
        ])()

    def subquery_test(self, scope: Scope, depth: int) -> str:
        no = self.chance.choice(["", "NOT "])
        pick = self.chance.random()
        if pick < 0.35:
            return f"{no}EXISTS ({self.rows(scope, depth, [self.chance.choice(['int', 'text'])])})"
        kinds = [self.chance.choice(["int", "big", "text", "num", "date", "float"])]
        if pick < 0.7:
            return f"{self.value(kinds[0], scope, 0)} {no}IN ({self.rows(scope, depth, kinds)})"
        if pick < 0.8:
            kinds = ["int", self.chance.choice(["int", "text"])]
            left = ", ".join(self.value(kind, scope, 0) for kind in kinds)
            return f"({left}) {no}IN ({self.rows(scope, depth, kinds)})"
        operator = self.chance.choice(["<", "=", ">=", "<>"])
        return f"{self.value(kinds[0], scope, 0)} {operator} {self.chance.choice(['ANY', 'ALL'])} ({self.rows(scope, depth, kinds)})"

    def call(self, kind: str, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        distinct = self.chance.one("", 5, "DISTINCT ", 1)
        if kind == "big":
            text = self.chance.choice([lambda: "count(*)", lambda: f"count({distinct}{v(self.chance.choice(ORDERED))})", lambda: f"sum({distinct}{v('int')})"])()
        elif kind == "int":
            text = self.chance.choice([lambda: f"{self.chance.choice(['min', 'max'])}({v('int')})", lambda: f"bit_or({v('int')})"])()
        elif kind == "numeric":
            text = self.chance.choice([
                lambda: f"sum({distinct}{v('numeric')})", lambda: f"sum({v('num')})", lambda: f"avg({distinct}{v('numeric')})", lambda: f"avg({v('num')})",
                lambda: f"max({v('numeric')})", lambda: f"sum({v('big')})::numeric", lambda: f"avg({v('int')})::numeric(20,6)"])()
        elif kind == "float":
            text = self.chance.choice([
                lambda: f"sum({v('float')})", lambda: f"avg({v('float')})", lambda: f"stddev_pop({v('float')})", lambda: f"corr({v('float')}, {v('float')})",
                lambda: f"regr_count({v('float')}, {v('float')})::double precision"])()
        elif kind == "text":
            text = self.chance.choice([
                lambda: f"min({v('text')})", lambda: f"max({v('text')})",
                lambda: (lambda item: f"string_agg({item}, ',' ORDER BY {item})")(v("text")),
                lambda: (lambda item: f"array_agg({item} ORDER BY {item})::text")(v("int"))])()
        elif kind == "bool":
            text = f"{self.chance.choice(['bool_and', 'bool_or', 'every'])}({v('bool')})"
        elif kind == "interval":
            text = f"{self.chance.choice(['min', 'max'])}({v('interval')})" if self.chance.random() < 0.7 else f"sum({v('interval')})"
        elif kind in ("small", "num", "date", "ts", "tz"):
            text = f"{self.chance.choice(['min', 'max'])}({v(kind)})"
        else:
            raise KeyError(kind)
        if self.chance.random() < 0.15:
            text = f"{text} FILTER (WHERE {self.condition(scope, 0)})" if "::" not in text.split(")")[-1] else text
        return text

    def scalar(self, kind: str, scope: Scope, depth: int) -> str:
        if self.chance.random() < 0.2 and kind in ORDERED:
            return f"({self.rows(scope, depth, [kind])} ORDER BY 1 LIMIT 1)" if self.chance.random() < 0.5 else f"(SELECT max(x{''}) FROM ({self.rows(scope, depth, [kind])}) AS q(x))".replace(
                "max", "min" if kind == "bool" else "max") if kind != "bool" else f"({self.rows(scope, depth, [kind])} ORDER BY 1 LIMIT 1)"
        tables, own = self.tables(scope, depth)
        inner = Scope(scope.inner(), own)
        arguments = Scope(own, own) if self.chance.random() < 0.85 else inner
        return f"(SELECT {self.call(kind, arguments, 0)} FROM {tables} WHERE {self.condition(inner, depth)})"

    def window(self, scope: Scope, unique: list[str]) -> tuple[str, str]:
        """A window function over a total order, and its type."""
        by = f"PARTITION BY {self.value(self.chance.choice(['int', 'text', 'bool']), scope, 0)} " if self.chance.random() < 0.6 else ""
        direction = self.chance.one("", 3, " DESC", 2, " NULLS FIRST", 1, " DESC NULLS LAST", 1)
        key_kind = self.chance.choice(["int", "big", "text", "num", "date", "float"])
        key = self.value(key_kind, scope, 0)
        total = f"ORDER BY {key}{direction}, {', '.join(unique)}"
        loose = f"ORDER BY {key}{direction}"
        pick = self.chance.random()
        kind = self.chance.choice(["int", "text", "num", "date"])
        if pick < 0.15:
            return f"row_number() OVER ({by}{total})", "big"
        if pick < 0.3:
            name = self.chance.choice(["rank", "dense_rank"])
            return f"{name}() OVER ({by}{loose})", "big"
        if pick < 0.36:
            name = self.chance.choice(["percent_rank", "cume_dist"])
            return f"{name}() OVER ({by}{loose})", "float"
        if pick < 0.4:
            return f"ntile({self.chance.randint(1, 4)}) OVER ({by}{total})", "int"
        if pick < 0.55:
            name = self.chance.choice(["lag", "lead"])
            extra = self.chance.one("", 3, ", 2", 1, ", 0", 1)
            return f"{name}({self.value(kind, scope, 0)}{extra}) OVER ({by}{total})", kind
        frame = self.frame(key_kind)
        if pick < 0.7:
            name = self.chance.choice(["first_value({})", "last_value({})", "nth_value({}, 2)"])
            frame, order = (frame, total) if not frame.startswith("RANGE") or "PRECEDING" not in frame.replace("UNBOUNDED PRECEDING", "") else ("", total)
            if re.search(r"\d", frame) and frame.startswith("RANGE"):
                frame = ""
            return f"{name.format(self.value(kind, scope, 0))} OVER ({by}{order} {frame})", kind
        call_kind = self.chance.choice(["big", "int", "numeric", "float", "bool"])
        call = self.call(call_kind, scope, 0)
        while "DISTINCT" in call or "::" in call.rsplit(")", 1)[-1]:
            call = self.call(call_kind, scope, 0)
        order = loose if frame.startswith(("RANGE", "GROUPS")) or not frame else total
        return f"{call} OVER ({by}{order} {frame})", call_kind

    def frame(self, key_kind: str) -> str:
        if self.chance.random() < 0.3:
            return ""
        unit = self.chance.choice(["ROWS", "RANGE", "GROUPS"])
        n = lambda: str(self.chance.randint(0, 2))  # noqa: E731
        if unit == "RANGE" and key_kind in ("text",):
            offset = None
        elif unit == "RANGE" and key_kind == "date":
            offset = lambda: "INTERVAL '10 days'"  # noqa: E731
        else:
            offset = n
        starts = ["UNBOUNDED PRECEDING", "CURRENT ROW"] + ([f"{offset()} PRECEDING", f"{offset()} FOLLOWING"] if offset else [])
        start = self.chance.choice(starts)
        ends = ["UNBOUNDED FOLLOWING"] + ([] if start.endswith("FOLLOWING") else ["CURRENT ROW"])
        if offset:
            ends.append(f"{offset()} FOLLOWING")
            if start == "UNBOUNDED PRECEDING" or start.endswith(" PRECEDING"):
                ends.append(f"{offset()} PRECEDING")
        exclude = self.chance.one("", 6, " EXCLUDE CURRENT ROW", 1, " EXCLUDE GROUP", 1, " EXCLUDE TIES", 1, " EXCLUDE NO OTHERS", 1)
        return f"{unit} BETWEEN {start} AND {self.chance.choice(ends)}{exclude}"
