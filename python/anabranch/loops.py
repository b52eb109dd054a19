"""Recursion: relations that are computed from themselves, to the fixed point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import sqltext as q
from .errors import ProgrammingError
from .relation import Relation

__all__ = ["iterate"]


def iterate(body: Callable, *, limit: Optional[int] = None, on_limit: str = "error", **start: Relation) -> Any:
    """The variables at the fixed point of ``body``, which begins with ``start`` and is kept current
    in views.

    Parameters
    ----------
    body
        Called once with a relation for each variable; gives the next value of each: a relation for
        one variable, a dict of relations for several. Duplicates are its own to remove
        (``unique``).
    limit
        How often ``body`` may be applied; without it a loop that finds no fixed point does not end.
    on_limit
        ``"error"``: an answer that needs more is an error (SQLSTATE 54000). ``"return"``: what is
        there then.
    start
        The first value of each variable.

    Returns
    -------
    Relation
        The variable; of several variables a namespace that has them as attributes.

    >>> import anabranch as ab
    >>> db = ab.connect()
    >>> edge = db.values([(1, 2), (2, 3)], {"a": int, "b": int})
    >>> step = lambda r: r.union(r.join(edge, left_on="b", right_on="a").select("a", b="b_right")).unique()
    >>> sorted(ab.iterate(step, r=edge))
    [(1, 2), (1, 3), (2, 3)]
    """
    if not start:
        raise ProgrammingError("iterate needs a variable with its first value", hint="iterate(body, r=relation)")
    if on_limit not in ("error", "return"):
        raise ProgrammingError(f"on_limit is error or return, not {on_limit!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ProgrammingError(f"limit is a number of rounds from 1, not {limit!r}", sqlstate="22023")
    for name, relation in start.items():
        if not isinstance(relation, Relation):
            raise ProgrammingError(f"the first value of {name} is a {type(relation).__name__}, not a relation",
                                   hint="db.values(..) or db.relation(..) makes one")
    db = next(iter(start.values()))._db
    variables = {name: db._variable_of(relation) for name, relation in start.items()}
    following = _following(body, variables)
    for name, relation in following.items():
        _check(name, start[name], relation)
    prefix = _prefix(start, variables, following, limit, on_limit)
    holds = [held for r in (*start.values(), *following.values(), *variables.values()) for held in r._holds]
    made = {}
    for name, variable in variables.items():
        text = f"{prefix} SELECT {variable._list()} FROM {_found(variable, variables)}"
        made[name] = Relation(db, text, holds=holds)
    return next(iter(made.values())) if len(made) == 1 else SimpleNamespace(**made)


def _following(body: Callable, variables: Mapping[str, Relation]) -> Dict[str, Relation]:
    """The next value of each variable."""
    given = body(**variables) if len(variables) > 1 else _one(body, variables)
    if isinstance(given, Relation) and len(variables) == 1:
        return {next(iter(variables)): given}
    if not isinstance(given, Mapping) or set(given) != set(variables):
        wanted = "a relation" if len(variables) == 1 else "a dict with " + ", ".join(variables)
        raise ProgrammingError(f"the body of iterate gave {type(given).__name__}", hint=f"it gives {wanted}")
    for name, value in given.items():
        if not isinstance(value, Relation):
            raise ProgrammingError(f"the next value of {name} is a {type(value).__name__}, not a relation")
    return dict(given)


def _one(body: Callable, variables: Mapping[str, Relation]) -> Any:
    (variable,) = variables.values()
    return body(variable)


def _check(name: str, first: Relation, following: Relation) -> None:
    """The next value has the columns of the first one, by place."""
    before, after = [str(of) for of in first.dtypes], [str(of) for of in following.dtypes]
    if before != after:
        raise ProgrammingError(
            f"variable {name} begins with columns ({', '.join(before)}), its next value has ({', '.join(after)})",
            sqlstate="42804", hint="select and cast(..) bring one into the form of the other")


def _prefix(
    start: Mapping[str, Relation], variables: Mapping[str, Relation], following: Mapping[str, Relation],
    limit: Optional[int], on_limit: str,
) -> str:
    """The loop. In its first round the mark is empty and variables take their first values; the
    mark is last.

    Bindings see those before them as they are in the same round. So several variables are read as
    copies of the round before, which come first: ``body`` gives all next values at once.
    """
    mark = q.name("_py_started")
    copies: List[str] = []
    bindings: List[str] = []
    for name, variable in variables.items():
        columns = ", ".join(f"{q.name(n)} {of}" for n, of in variable.schema.items())
        later, first, found = following[name], start[name], _found(variable, variables)
        if found != variable._from:
            copies.append(f"{variable._from} ({columns}) AS (SELECT {variable._list()} FROM {found})")
        bindings.append(
            f"{found} ({columns}) AS ("
            f"SELECT {later._list()} FROM {later._source()} WHERE EXISTS (SELECT 1 FROM {mark}) UNION ALL "
            f"SELECT {first._list()} FROM {first._source()} WHERE NOT EXISTS (SELECT 1 FROM {mark}))")
    bindings.append(f"{mark} ({q.name('x')} bigint) AS (SELECT 1)")
    bound = ""
    if limit is not None:
        word = "ERROR" if on_limit == "error" else "RETURN"
        # (The round that gives the first values is none of the body's; with an error, neither is
        # the last one, which finds that nothing has changed.)
        bound = f"({word} AT RECURSION LIMIT {limit + 1 + (on_limit == 'error')}) "
    return f"WITH MUTUALLY RECURSIVE {bound}{', '.join(copies + bindings)}"


def _found(variable: Relation, variables: Mapping[str, Relation]) -> str:
    """What a variable is called as it is found; one alone is read as it is."""
    name = variable._from or ""
    return name if len(variables) == 1 else name[:-1] + '_next"'
