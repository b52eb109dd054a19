"""A server that is asked, and answers compared."""

import decimal
import re

import psycopg

NUMERIC_OIDS = {20, 21, 23, 700, 701, 1700}


def canonical(text: str | None, number: bool) -> str:
    if text is None:
        return "NULL"
    if number:
        try:
            value = decimal.Decimal(text)
        except decimal.InvalidOperation:
            return text
        if not value.is_finite():
            return str(value)
        value = decimal.Context(prec=10).create_decimal(value)
        if value == 0:
            return "0"
        return format(value.normalize(), "f") if abs(value.adjusted()) < 30 else str(value.normalize())
    return text


class Side:
    def __init__(self, where: str) -> None:
        self.where = where
        self.connection = psycopg.connect(where, autocommit=True).pgconn
        for setting in ["SET TimeZone = 'UTC'", "SET statement_timeout = 10000"]:
            self.connection.exec_(setting.encode())

    def ask(self, sql: str):
        """Sorted rows, or the error."""
        result = self.connection.exec_(sql.encode())
        if result.status not in (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK):
            message = (result.error_message or self.connection.error_message or b"").decode().strip()
            if self.connection.status != psycopg.pq.ConnStatus.OK:
                self.connection = psycopg.connect(self.where, autocommit=True).pgconn
                message = "CONNECTION LOST " + message
            return None, message
        numbers = [result.ftype(column) in NUMERIC_OIDS for column in range(result.nfields)]
        rows = []
        for row in range(result.ntuples):
            cells = []
            for column in range(result.nfields):
                value = result.get_value(row, column)
                cells.append(canonical(None if value is None else value.decode(), numbers[column]))
            rows.append(cells)
        return sorted(rows), ""


def close(left, right) -> bool:
    """Equal but for the last digits of numbers."""
    if left == right:
        return True
    if len(left) != len(right):
        return False
    for one, other in zip(left, right):
        for x, y in zip(one, other):
            if x != y:
                try:
                    p, q = float(x), float(y)
                except ValueError:
                    return False
                if abs(p - q) > 1e-8 * max(1.0, abs(p), abs(q)):
                    return False
    return True


def shape(message: str) -> str:
    """A message without its names and numbers."""
    line = message.splitlines()[0] if message else "?"
    return re.sub(r"\d+", "#", re.sub(r'"[^"]*"|\'[^\']*\'', "..", line))[:150]
