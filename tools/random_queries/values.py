"""Random expressions of each type, over the columns in reach."""

from data import NAMES, ORDERED, Chance, literal


class Scope:
    """Columns in reach: (text, type); `own` are those of the innermost query."""

    def __init__(self, outer=(), own=()):
        self.outer, self.own = list(outer), list(own)

    def all(self):
        return self.outer + self.own

    def inner(self):
        return self.outer + self.own


class Values:
    """Expressions; conditions and queries are those of the class that is made of this one."""

    def __init__(self, seed: str) -> None:
        self.chance = Chance(seed)
        self.names = 0
        self.size = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"


    def column(self, kind: str, scope: Scope) -> str | None:
        near = [text for text, own in scope.own if own == kind]
        far = [text for text, own in scope.outer if own == kind]
        if near and (not far or self.chance.random() < 0.75):
            return self.chance.choice(near)
        return self.chance.choice(far) if far else None

    def value(self, kind: str, scope: Scope, depth: int) -> str:
        self.size += 1
        pick = self.chance.random()
        if depth <= 0 or pick < 0.45 or self.size > 60:
            column = self.column(kind, scope) if self.chance.random() < 0.9 else None
            if column is None and depth > -3 and self.size < 60 and self.chance.random() < 0.5:
                return getattr(self, f"{kind}_value")(scope, min(depth, 0) - 1)
            return column or literal(self.chance, kind)
        if pick < 0.52:
            return self.case(kind, scope, depth - 1)
        if pick < 0.58:
            inner = [self.value(kind, scope, depth - 1) for _ in range(2)]
            if kind in ORDERED and self.chance.random() < 0.3:
                return f"{self.chance.choice(['greatest', 'least', 'nullif'])}({inner[0]}, {inner[1]})"
            return f"coalesce({inner[0]}, {inner[1]})"
        if pick < 0.66 and depth > 1 and kind not in ("ints", "json"):
            return self.scalar(kind, scope, depth - 1)
        return getattr(self, f"{kind}_value")(scope, depth - 1)

    def case(self, kind: str, scope: Scope, depth: int) -> str:
        other = f" ELSE {self.value(kind, scope, depth)}" if self.chance.random() < 0.7 else ""
        if self.chance.random() < 0.3:
            by = self.chance.choice(["int", "text", "bool"])
            return f"CASE {self.value(by, scope, depth)} WHEN {literal(self.chance, by)} THEN {self.value(kind, scope, depth)}{other} END"
        return f"CASE WHEN {self.condition(scope, depth)} THEN {self.value(kind, scope, depth)}{other} END"

    def arithmetic(self, kind: str, scope: Scope, depth: int) -> str:
        return f"({self.value(kind, scope, depth)} {self.chance.one('+', 4, '-', 4, '*', 2)} {self.value(kind, scope, depth)})"

    def int_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("int", scope, depth),
            lambda: f"({v('int')} % {self.chance.choice([2, 3, 7])})",
            lambda: f"({v('int')} / {self.chance.choice([2, 3, -2])})",
            lambda: f"(- {v('int')})",
            lambda: f"abs({v('int')})",
            lambda: f"length({v('text')})",
            lambda: f"strpos({v('text')}, {v('text')})",
            lambda: f"({v('date')} - {v('date')})",
            lambda: f"cardinality({v('ints')})",
            lambda: f"array_length({v('ints')}, 1)",
            lambda: f"({v('ints')})[{self.chance.randint(0, 3)}]",
            lambda: f"array_position({v('ints')}, {v('int')})",
            lambda: f"extract({self.chance.choice(['year', 'month', 'day', 'dow', 'doy', 'week', 'quarter'])} FROM {v('date')})::int",
            lambda: f"({v('bool')})::int",
            lambda: f"({v('num')})::int",
            lambda: f"({v('big')})::int",
            lambda: f"({v('int')} & {v('int')})",
            lambda: f"({v('int')} # {v('int')})",
            lambda: f"ascii({v('text')})",
            lambda: f"num_nulls({v('int')}, {v('text')})",
        ])()

    def big_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("big", scope, depth),
            lambda: f"({v('big')} + {v('int')})",
            lambda: f"({v('int')})::bigint",
            lambda: f"({v('float')})::bigint",
            lambda: f"mod({v('big')}, {self.chance.choice([2, 5])})",
            lambda: f"round({v('float')})::bigint",
            lambda: f"div({v('numeric')}, 2)::bigint",
        ])()

    def small_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([lambda: f"({v('small')} + {v('small')})", lambda: f"abs({v('small')})", lambda: f"(({v('int')}) % 100)::smallint"])()

    def num_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('num')} + {v('num')})::numeric(8,2)",
            lambda: f"({v('int')})::numeric(8,2)",
            lambda: f"round({v('numeric')}, 1)::numeric(8,2)",
            lambda: f"abs({v('num')})",
        ])()

    def numeric_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("numeric", scope, depth),
            lambda: f"({v('num')} * {v('num')})",
            lambda: f"({v('num')} + {v('int')})",
            lambda: f"round({v('numeric')}, {self.chance.randint(-1, 3)})",
            lambda: f"trunc({v('numeric')})",
            lambda: f"floor({v('numeric')})",
            lambda: f"({v('numeric')} / {self.chance.choice(['3', '7', '-2', '1.25'])})",
            lambda: f"({v('int')})::numeric",
            lambda: f"({v('numeric')} % 2)",
            lambda: f"sign({v('numeric')})",
            lambda: f"extract(epoch FROM {v('interval')})",
        ])()

    def float_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("float", scope, depth),
            lambda: f"({v('int')})::double precision",
            lambda: f"({v('float')} / {self.chance.choice([2, 4, 0.5])})",
            lambda: f"sqrt(abs({v('float')}))",
            lambda: f"floor({v('float')})",
            lambda: f"({v('num')})::double precision",
            lambda: f"({v('float')} * {v('int')})",
            lambda: f"power({v('float')}, 2)",
            lambda: f"date_part('{self.chance.choice(['hour', 'day', 'epoch', 'month'])}', {v('ts')})::double precision",
        ])()

    def text_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        small = lambda: self.chance.randint(-2, 4)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('text')} || {v('text')})",
            lambda: f"upper({v('text')})",
            lambda: f"lower({v('text')})",
            lambda: f"left({v('text')}, {small()})",
            lambda: f"right({v('text')}, {small()})",
            lambda: f"substr({v('text')}, {small()}, {abs(small())})",
            lambda: f"replace({v('text')}, {v('text')}, {v('text')})",
            lambda: f"({v('int')})::text",
            lambda: f"({v('date')})::text",
            lambda: f"({v('bool')})::text",
            lambda: f"({v('interval')})::text",
            lambda: f"({v('ts')})::text",
            lambda: f"({v('ints')})::text",
            lambda: f"concat({v('text')}, {v('int')})",
            lambda: f"concat_ws(',', {v('text')}, {v('int')}, {v('text')})",
            lambda: f"lpad({v('text')}, {abs(small())}, 'xy')",
            lambda: f"btrim({v('text')}, 'a ')",
            lambda: f"split_part({v('text')}, 'b', {self.chance.choice([1, 2, -1])})",
            lambda: f"reverse({v('text')})",
            lambda: f"repeat({v('text')}, {small()})",
            lambda: f"initcap({v('text')})",
            lambda: f"md5({v('text')})",
            lambda: f"regexp_replace({v('text')}, '[ab]+', '<\\&>', 'g')",
            lambda: f"translate({v('text')}, 'ab', 'x')",
            lambda: f"to_char({v('date')}, '{self.chance.choice(['YYYY-MM-DD', 'Mon DD', 'IYYY-IW', 'Day', 'DDD'])}')",
            lambda: f"to_char({v('num')}, '{self.chance.choice(['FM990.00', '9999.9', 'S000', '999D99MI'])}')",
            lambda: f"array_to_string({v('ints')}, '-', '*')",
            lambda: f"({v('json')} ->> 'a')",
            lambda: f"({v('json')} -> 'a')::text",
            lambda: f"jsonb_typeof({v('json')})",
            lambda: f"quote_literal({v('text')})",
            lambda: f"format('%s-%s', {v('text')}, {v('int')})",
            lambda: f"pg_typeof({v(self.chance.choice(['int', 'numeric', 'text', 'date']))})::text",
        ])()

    def date_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('date')} + {v('int')})",
            lambda: f"({v('date')} - {v('int')})",
            lambda: f"({v('ts')})::date",
            lambda: f"({v('date')} + INTERVAL '1 month')::date",
            lambda: f"make_date(2024, {self.chance.randint(1, 12)}, {self.chance.randint(1, 28)})",
        ])()

    def ts_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('ts')} + {v('interval')})",
            lambda: f"({v('ts')} - {v('interval')})",
            lambda: f"({v('date')} + {v('interval')})",
            lambda: f"date_trunc('{self.chance.choice(['hour', 'day', 'week', 'month', 'quarter'])}', {v('ts')})",
            lambda: f"({v('date')})::timestamp",
            lambda: f"({v('ts')} + INTERVAL '1 month')",
            lambda: f"({v('tz')} AT TIME ZONE 'UTC')",
            lambda: f"date_bin('15 minutes', {v('ts')}, TIMESTAMP '2024-01-01')",
        ])()

    def tz_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([lambda: f"({v('tz')} + {v('interval')})", lambda: f"({v('ts')} AT TIME ZONE 'UTC')", lambda: f"date_trunc('day', {v('tz')})"])()

    def interval_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('ts')} - {v('ts')})",
            lambda: f"({v('interval')} + {v('interval')})",
            lambda: f"({v('interval')} * {self.chance.choice([2, 0.5, -1])})",
            lambda: f"make_interval(hours => {v('int')})",
            lambda: f"(- {v('interval')})",
        ])()

    def bool_value(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth)})"

    def ints_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"ARRAY[{v('int')}, {v('int')}]",
            lambda: f"({v('ints')} || {v('ints')})",
            lambda: f"array_append({v('ints')}, {v('int')})",
            lambda: f"array_remove({v('ints')}, {v('int')})",
            lambda: f"({v('ints')})[1:2]",
            lambda: self.array_of_query(scope, depth),
        ])()

    def array_of_query(self, scope: Scope, depth: int) -> str:
        tables, own = self.tables(scope, 0)
        inner = Scope(scope.inner(), own)
        item = self.value("int", inner, 0)
        return f"ARRAY(SELECT {item} FROM {tables} WHERE {self.condition(inner, min(depth, 1))} ORDER BY 1)"

    def json_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('json')} -> 'a')",
            lambda: f"({v('json')} -> 0)",
            lambda: f"to_jsonb({v('int')})",
            lambda: f"jsonb_build_object('k', {v('int')}, 't', {v('text')})",
            lambda: f"jsonb_build_array({v('int')}, {v('text')})",
        ])()
