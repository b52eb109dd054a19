"""Sharded programs at work, and the datasets that they leave behind."""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Union

from . import _native
from .errors import InterfaceError, ProgrammingError
from .rows import Rows
from .runs import _fitted, _input_of, _opened, _parts
from .shards import Shards
from .values import Event

__all__ = ["Dataset", "Datasets", "RunProgress", "ShardRun", "SourceProgress"]


class SourceProgress(NamedTuple):
    """How far an input of a run is: rows pushed, for each shard before which time (in ticks) no row
    comes, and which part of a bounded input was read (None if that is not known)."""

    name: str
    rows: int
    frontiers: List[int]
    share: Optional[float]


class RunProgress(NamedTuple):
    """How far a run is. No further event of the result lies before ``frontier`` (in ticks);
    ``queued`` messages wait at shards; ``row_errors`` rows are in error; ``failed`` is what has
    ended the run."""

    frontier: int
    sources: List[SourceProgress]
    queued: int
    row_errors: int
    failed: Optional[str]


class ShardRun:
    """A sharded program at work, a thread a shard; ``shards.start()`` makes one. A context manager
    that closes it.

    >>> import anabranch as ab
    >>> views = ab.Events.input("views", {"ad": int, "at": int}, time="at").shards(2)
    >>> with views.rekey("ad").redistribute().query(lambda s: s.agg(n=ab.len())).start() as run:
    ...     run.push("views", [(7, 1), (7, 1)])
    ...     run.advance("views", 5)
    ...     sorted(row[1:] for row in run.changes())
    [(1, 1, 7, 2), (2, -1, 7, 2)]
    """

    def __init__(self, shards: Shards, wire: bool, addresses: Optional[List[str]]) -> None:
        self._shards = shards
        self._taken = False
        self._subscriber: Optional[Callable[[Rows], Any]] = None
        self._native = _native.ShardRun(shards._native, wire, addresses)
        self._finalizer = weakref.finalize(self, self._native.close)
        try:
            for name, relation in shards._relations.items():
                self._native.fill(name, relation.collect()._native)
                self._native.advance(name, 2**63 - 1)
        except BaseException:
            self.close()
            raise

    def push(self, input: str, data: Any, *, shard: Optional[int] = None) -> None:  # noqa: A002
        """Gives rows to a shard of an input, or spread over all: a frame, tuples, dicts, or
        ``ab.Event`` objects, which need a shard; in any order between two advances."""
        of = _input_of(self._shards, input)
        if isinstance(data, (list, tuple)) and data and isinstance(data[0], Event):
            if shard is None:
                raise ProgrammingError("events are pushed into a shard", hint="push(.., shard=0): the end of a row into the shard of its start")
            self._native.push_events(of.name, shard, *_parts(of, data, self._shards._instants))
            return self._tell()
        if of.time is None:
            raise ProgrammingError(f'input "{input}" does not say which column is the time',
                                   hint="Events.input(.., time=..), or push ab.Event objects")
        rows = _fitted(_opened(data, of), of)
        if len(rows):
            self._native.push(input, rows, shard)
        self._tell()

    def _ticks(self, time: Any) -> int:
        from .events import instant

        return instant(time, self._shards._instants)

    def advance(self, input: str, time: Any, *, shard: Optional[int] = None) -> None:  # noqa: A002
        """Promises that no row before ``time`` will come into a shard of an input, or into any."""
        self._native.advance(_input_of(self._shards, input).name, self._ticks(time), shard)
        self._tell()

    def advance_all(self, time: Any) -> None:
        """``advance`` for all inputs."""
        self._native.advance_all(self._ticks(time))
        self._tell()

    def idle(self, input: str, shard: int) -> None:  # noqa: A002
        """Nothing comes into a shard for now: its promises are those of the input's others, until
        something is pushed into it or it is advanced."""
        self._native.idle(_input_of(self._shards, input).name, shard)

    def limit_bytes(self, bytes: int) -> None:  # noqa: A002
        """Bounds the bytes of rows under way, 64 MiB at first: a push waits for room."""
        self._native.limit_bytes(bytes)

    def subscribe(self, take: Callable[[Rows], Any]) -> None:
        """Has ``take`` called with what comes out, as ``changes`` gives it, by the calls that push,
        advance, wait and finish: on their thread, with all that is there by then. ``changes`` and
        ``finish`` return nothing of it any more. Before a time is complete it may come in several
        changes. Rows in error are raised by the call that hears of them; what it was to do is done.

        >>> import anabranch as ab
        >>> views = ab.Events.input("views", {"ad": int, "at": int}, time="at").shards(2)
        >>> heard = []
        >>> with views.rekey("ad").redistribute().query(lambda s: s.agg(n=ab.len())).start() as run:
        ...     run.subscribe(lambda rows: heard.extend(rows))
        ...     run.push("views", [(7, 1), (7, 1)])
        ...     _ = run.finish()
        ...     run.progress().sources[0].rows
        2
        >>> sorted(row[1:] for row in heard)
        [(1, 1, 7, 2), (2, -1, 7, 2)]
        """
        self._taken, self._subscriber = True, take
        self._tell()

    def _tell(self) -> None:
        if self._subscriber is not None:
            self._hand(self._native.ready(self._shards._instants))

    def _hand(self, native: Any) -> Rows:
        """Gives rows to the subscriber, if there is one, and else back."""
        rows = Rows(native)
        if self._subscriber is None or not len(rows):
            return rows
        self._subscriber(rows)
        return Rows(native.slice(0, 0))

    def progress(self) -> RunProgress:
        """How far the run is: its result and inputs, what waits, rows in error, what has ended it.
        Any thread may ask, also while another one waits for the shards."""
        frontier, sources, queued, row_errors, failed = self._native.progress()
        return RunProgress(frontier, [SourceProgress(*of) for of in sources], queued, row_errors, failed)

    def changes(self) -> Rows:
        """What has come out since the last call, once the shards have done all that they can:
        ``shard``, ``time``, ``diff``, the columns."""
        self._taken = True
        return self._hand(self._native.changes(self._shards._instants, False))

    def finish(self) -> Rows:
        """Ends all inputs; as ``changes``."""
        self._taken = True
        return self._hand(self._native.changes(self._shards._instants, True))

    def lifetimes(self) -> Rows:
        """Ends all inputs; all events: ``start``, ``end`` (NULL: never), the columns."""
        self._check_untaken("lifetimes()")
        return Rows(self._native.lifetimes(self._shards._instants))

    def rows(self) -> Rows:
        """Ends all inputs; the rows in force in the end."""
        self._check_untaken("rows()")
        return Rows(self._native.rows())

    def _check_untaken(self, what: str) -> None:
        if self._taken:
            raise ProgrammingError(f"{what} needs all that came out, and changes() has taken a part", hint="call one of the two")
        self._taken = True

    def frontiers(self) -> List[int]:
        """For each shard, before which time, in ticks, no further event of it lies; as of the last
        call of ``changes``."""
        return self._native.frontiers()

    def profile(self) -> Rows:
        """What each step has done in each shard: rows, batches, what was hashed and moved, CPU
        time, what waits, how far it is behind. ``db.relation(run.profile())`` asks it."""
        return Rows(self._native.profile())

    def to_memory(self, datasets: "Datasets", name: str) -> Shards:
        """Ends all inputs, and keeps the result by a name: the beginning of other programs. The run
        is over."""
        self._native.to_memory(datasets._native, name)
        return datasets[name]

    def to_store(self, folder: Union[str, os.PathLike]) -> Shards:
        """Ends all inputs, and writes the result to a folder, a file a shard. The run is over."""
        self._native.to_store(os.fspath(folder))
        return Shards.stored(folder)

    def to_binary(self, paths: Sequence[Union[str, os.PathLike]]) -> None:
        """Ends all inputs, and writes shard i to file i, in the wire form. The run is over."""
        self._native.to_binary([os.fspath(path) for path in paths])

    def play_binary(self, input: str, shard: int, path: Union[str, os.PathLike]) -> None:  # noqa: A002
        """Reads a file of ``to_binary`` into a shard of an input, to its end."""
        self._native.play_binary(_input_of(self._shards, input).name, shard, os.fspath(path))

    def close(self) -> None:
        """Stops the run. Closing again does nothing."""
        self._finalizer.detach()
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self._native.closed

    def __enter__(self) -> "ShardRun":
        if self.closed:
            raise InterfaceError("the run is over")
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a run cannot be pickled; start one in each process")


class Dataset(NamedTuple):
    """A result that is kept: its name, and how much it is."""

    name: str
    shards: int
    events: int
    size_bytes: int


class Datasets:
    """Results that are kept in memory, by name. They do not change; rows stay in their shards.

    >>> import anabranch as ab
    >>> kept = ab.Datasets()
    >>> rows = ab.Events.input("rows", {"k": int, "at": int}, time="at").shards(2)
    >>> counts = rows.rekey("k").redistribute().query(lambda s: s.agg(n=ab.len()))
    >>> with counts.start() as run:
    ...     run.push("rows", [(1, 0), (1, 0), (2, 0)])
    ...     _ = run.to_memory(kept, "counts")
    >>> kept["counts"].query(lambda s: s.filter(ab.col("n") > 1)).run().fetchall()
    [(0, 1, 1, 2)]
    """

    def __init__(self) -> None:
        self._native = _native.Datasets()

    def __getitem__(self, name: str) -> Shards:
        return Shards(self._native.read(name))

    def __delitem__(self, name: str) -> None:
        self._native.drop(name)

    def __iter__(self) -> Iterator[Dataset]:
        return (Dataset(*of) for of in self._native.list())

    def __len__(self) -> int:
        return len(self._native.list())

    def __contains__(self, name: object) -> bool:
        return any(of.name == name for of in self)

    def __repr__(self) -> str:
        return f"<Datasets: {', '.join(of.name for of in self)}>"
