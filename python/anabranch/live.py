"""Live results: changes as batches with their times and diffs."""

from __future__ import annotations

import asyncio
import logging
import threading
import time as _time
import weakref
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Sequence, Union



from . import sqltext as q
from .durations import seconds
from .errors import (Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError, UnknownName,
                     unknown_column)
from .expr import listed
from .rows import Batch

__all__ = ["Changes", "Subscription", "Change", "Progress", "Handle"]

_log = logging.getLogger("anabranch")
_FOREVER = 3600.0


class Change(NamedTuple):
    """Changes of one time."""

    batch: Batch


class Progress(NamedTuple):
    """All changes before this time were given."""

    time: int


class Changes:
    """The changes of a query: an iterator, an async iterator and a context manager.

    Each batch has the columns ``time`` and ``diff`` before the query's; all changes of one time are
    in one batch, what leaves before what comes. Rows there at the start are the first batch, unless
    ``snapshot=False``.

    ``buffer`` bounds what is held for a slow reader, in bytes (or ``"1MB"``). More is summed up at
    the latest of its times (``overflow="coalesce"``), or ends the subscription with
    ``OperationalError`` 53400 (``overflow="error"``).

    >>> import anabranch as ab
    >>> db = ab.connect()
    >>> t = db.create_table("t", {"n": int})
    >>> _ = t.insert([(1,)])
    >>> [b.fetchall()[0][1:] for b in t.changes(idle="50ms")]
    [(1, 1)]
    """

    def __init__(
        self, relation: Any, *, snapshot: bool = True, as_of: Optional[int] = None, up_to: Optional[int] = None,
        idle: Any = None, buffer: Union[int, str, None] = None, overflow: str = "coalesce", columns: Sequence[str] = ("time", "diff"),
        progress: bool = False, _keys: Sequence[str] = (),
    ) -> None:
        if overflow not in ("coalesce", "error"):
            raise ProgrammingError(f"overflow is coalesce or error, not {overflow!r}")
        if len(columns) != 2:
            raise ProgrammingError("columns are two names, those of time and diff")
        for name in columns:
            if name in relation.columns:
                raise ProgrammingError(f'column "{name}" is in the way of the changes\'',
                                       hint='changes(columns=("_time", "_diff"))')
        self._relation = relation
        self._idle = None if idle is None else seconds(idle)
        self._waiting: Deque[Any] = deque()
        options = ["SNAPSHOT" if snapshot else "SNAPSHOT = false"] if not snapshot else []
        if progress:
            options.append("PROGRESS")
        text = f"SUBSCRIBE ({relation._unordered()})"
        if relation._from is not None and not relation._order:
            text = f"SUBSCRIBE {relation._from}"
        if _keys:
            text += f" ENVELOPE UPSERT (KEY ({', '.join(map(q.name, _keys))}))"
        if options:
            text += f" WITH ({', '.join(options)})"
        if as_of is not None:
            text += f" AS OF {int(as_of)}"
        if up_to is not None:
            text += f" UP TO {int(up_to)}"
        relation._db._check_bound(text)
        outcome = _subscribed(relation._db, text, buffer, overflow)
        self._native: Any = outcome[3]
        self._names = [columns[0], "state" if _keys else columns[1], *self._native.schema().names[2:]]
        self._finalizer = weakref.finalize(self, self._native.close)
        self._finalizer.atexit = False
        self._ended = False
        self._pending: Deque[Any] = deque()

    def _take(self, timeout: float) -> Optional[Any]:
        """What comes next: a batch, a time, or None when nothing came in time."""
        if self._waiting:
            return self._waiting.popleft()
        if self._ended:
            return None
        kind, value = self._native.next(timeout)
        if kind == "rows":
            for part in _by_time(value):
                self._waiting.append(Batch(part.project(list(range(len(self._names))), self._names)))
            return self._waiting.popleft()
        if kind == "progress":
            return Progress(value)
        if kind == "end":
            if self._relation._db.closed:
                self._ended = True
                raise InterfaceError("the database is closed")
            self._ended = True
        return None

    def _wait(self, timeout: float) -> bool:
        """Whether something came within the time; it is forgotten."""
        came = self._take(timeout) is not None
        self._waiting.clear()
        return came

    def _accept(self, item: Any) -> Any:
        return item if isinstance(item, Batch) else None

    def __iter__(self) -> "Changes":
        return self

    def __next__(self) -> Any:
        quiet = _time.monotonic()
        while True:
            if self._ended and not self._waiting:
                raise StopIteration
            wait = _FOREVER if self._idle is None else max(0.0, self._idle - (_time.monotonic() - quiet))
            item = self._take(wait)
            if item is not None:
                accepted = self._accept(item)
                if accepted is not None:
                    return accepted
                continue
            if self._idle is not None and not self._ended and _time.monotonic() - quiet >= self._idle:
                self.close()
                raise StopIteration

    def __aiter__(self) -> "Changes":
        return self

    async def __anext__(self) -> Any:
        loop = asyncio.get_running_loop()
        waiter = _waiter(self._relation._db)
        try:
            return await waiter.next(self, loop)
        except StopIteration:
            raise StopAsyncIteration from None
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """Takes the query back; iteration then ends."""
        self._ended = True
        self._finalizer.detach()
        self._native.close()

    def __enter__(self) -> "Changes":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    async def __aenter__(self) -> "Changes":
        return self

    async def __aexit__(self, *exc: Any) -> None:
        self.close()


def _subscribed(db: Any, text: str, buffer: Union[int, str, None], overflow: str) -> Any:
    """The outcome of SUBSCRIBE, with bounds of its own where some were given."""
    if buffer is None and overflow == "coalesce":
        return db._engine.execute(text)[-1]
    asked = {"subscribe_overflow": overflow, **({} if buffer is None else {"subscribe_buffer": str(buffer)})}
    before = {}
    try:
        for name in asked:
            before[name] = db._run(f"SHOW {name}").all()[0][-1]
    except UnknownName:
        raise NotSupportedError("subscriptions of this engine have no bounds of their own",
                                hint="what is not taken waits in the engine") from None
    # (One script: no other thread's subscription gets these bounds.)
    bounds = "".join(f"SET {name} = {q.text(value)}; " for name, value in asked.items())
    undone = "; ".join(f"SET {name} = {q.text(str(value))}" for name, value in before.items())
    try:
        return db._engine.execute(f"{bounds}{text}; {undone}")[len(asked)]
    except Error:
        db._engine.execute(undone)
        raise


def _by_time(rows: Any) -> List[Any]:
    """The rows of each time, in order."""
    times = rows.list(0)
    parts, at = [], 0
    for i in range(1, len(times) + 1):
        if i == len(times) or times[i] != times[at]:
            parts.append(rows.slice(at, i - at))
            at = i
    return parts


class Subscription(Changes):
    """Changes as ``Change(batch)``, and with ``progress`` ``Progress(time)``.

    With ``envelope="upsert"`` each key that changed is told once a time: the columns are ``time``,
    ``state`` (``upsert``, ``delete``, or ``key_violation`` where the key has several rows), the
    key, and the other columns.
    """

    def __init__(self, relation: Any, *, progress: bool = False, envelope: Optional[str] = None, key: Any = None, **kw: Any) -> None:
        if envelope not in (None, "upsert"):
            raise ProgrammingError(f"envelope is None or upsert, not {envelope!r}")
        keys: Sequence[str] = ()
        if envelope == "upsert":
            keys = listed(key) or list(getattr(relation, "primary_key", []))
            if not keys:
                raise ProgrammingError("the envelope upsert needs a key", hint='subscribe(envelope="upsert", key="id")')
            for one in keys:
                if one not in relation.schema:
                    raise unknown_column(one, relation.schema)
        elif key is not None:
            raise ProgrammingError('key is for envelope="upsert"')
        super().__init__(relation, progress=progress, _keys=keys, **kw)

    def _accept(self, item: Any) -> Any:
        return Change(item) if isinstance(item, Batch) else item


# -- async: one waiting thread a database ----------------------------------------------------------


class _Waiter:
    """One thread that waits for the changes of many subscriptions of a database."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._asked: List[Any] = []
        self._thread: Optional[threading.Thread] = None

    async def next(self, changes: Changes, loop: Any) -> Any:
        future = loop.create_future()
        with self._lock:
            self._asked.append((changes, loop, future, _time.monotonic()))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="anabranch waiter", daemon=True)
                self._thread.start()
            self._lock.notify()
        kind, value = await future
        if kind == "stop":
            raise StopAsyncIteration
        if kind == "error":
            raise value
        return value

    def _serve(self) -> None:
        while True:
            with self._lock:
                while not self._asked:
                    if not self._lock.wait(1.0):
                        self._thread = None
                        return
                asked = list(self._asked)
            done = [(one, answer) for one in asked if (answer := self._look(*one)) is not None]
            with self._lock:
                for one, _ in done:
                    self._asked.remove(one)
            for (changes, loop, future, _), answer in done:
                try:
                    loop.call_soon_threadsafe(_settle, future, answer)
                except RuntimeError:
                    changes.close()
            if not done:
                _time.sleep(0.002)

    @staticmethod
    def _look(changes: Changes, loop: Any, future: Any, since: float) -> Optional[tuple]:
        if future.cancelled() or (changes._ended and not changes._waiting):
            return ("stop", None)
        try:
            while (item := changes._take(0.0)) is not None:
                accepted = changes._accept(item)
                if accepted is not None:
                    return ("item", accepted)
        except BaseException as error:  # handed to the task
            return ("error", error)
        if changes._ended:
            return ("stop", None)
        if changes._idle is not None and _time.monotonic() - since >= changes._idle:
            changes.close()
            return ("stop", None)
        return None


def _settle(future: Any, answer: tuple) -> None:
    if not future.done():
        future.set_result(answer)


_waiters: "weakref.WeakKeyDictionary[Any, _Waiter]" = weakref.WeakKeyDictionary()


def _waiter(db: Any) -> _Waiter:
    found = _waiters.get(db)
    if found is None:
        found = _waiters[db] = _Waiter()
    return found


# -- callbacks: one thread a database, in order ----------------------------------------------------


class Handle:
    """A callback that is registered; ``cancel()`` ends it, ``error`` is what it last raised."""

    def __init__(self, changes: Changes, f: Callable, every: float, on_error: Optional[Callable], loop: Any) -> None:
        self._changes, self._f, self._every, self._on_error, self._loop = changes, f, every, on_error, loop
        self._last = 0.0
        self.error: Optional[BaseException] = None
        self.cancelled = False

    def cancel(self) -> None:
        """Calls no more."""
        self.cancelled = True
        self._changes.close()

    def _turn(self) -> bool:
        """Calls once if something came; whether it did."""
        if self.cancelled or (self._every and _time.monotonic() - self._last < self._every):
            return False
        try:
            item = self._changes._take(0.0)
        except InterfaceError:
            self.cancelled = True
            return False
        except Exception as error:
            self._report(error)
            return True
        if item is None or not isinstance(item, Batch):
            self.cancelled = self.cancelled or self._changes._ended
            return item is not None
        self._last = _time.monotonic()
        try:
            if self._loop is not None:
                if asyncio.iscoroutinefunction(self._f):
                    asyncio.run_coroutine_threadsafe(self._f(item), self._loop)
                else:
                    self._loop.call_soon_threadsafe(self._f, item)
            else:
                self._f(item)
        except Exception as error:
            self._report(error)
        return True

    def _report(self, error: BaseException) -> None:
        self.error = error
        _log.error("a callback of on_change raised", exc_info=error)
        if self._on_error is not None:
            try:
                self._on_error(error)
            except Exception:
                _log.exception("on_error raised")


class Callbacks:
    """The thread of a database's callbacks."""

    def __init__(self, most: int) -> None:
        self._handles: List[Handle] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._most = most
        self._thread = threading.Thread(target=self._serve, name="anabranch callbacks", daemon=True)
        self._thread.start()

    def add(self, handle: Handle) -> None:
        """Registers one."""
        with self._lock:
            if len(self._handles) >= self._most:
                raise OperationalError(f"there are {self._most} callbacks", sqlstate="53400", hint="set callbacks_max")
            self._handles.append(handle)

    def _serve(self) -> None:
        while not self._ended.is_set():
            with self._lock:
                self._handles = [h for h in self._handles if not h.cancelled]
                handles = list(self._handles)
            if not sum(h._turn() for h in handles):
                self._ended.wait(0.002)

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(2)


def on_change(
    relation: Any, f: Callable, *, every: Any = "0ms", on_error: Optional[Callable] = None, loop: Any = None,
    snapshot: bool = True, **kw: Any,
) -> Handle:
    """Registers a callback for a relation's changes."""
    if asyncio.iscoroutinefunction(f) and loop is None:
        raise ProgrammingError("a coroutine function needs loop=", hint="on_change(f, loop=asyncio.get_running_loop())")
    db = relation._db
    handle = Handle(Changes(relation, snapshot=snapshot, **kw), f, seconds(every), on_error, loop)
    with db._lock:
        if db._callbacks is None:
            db._callbacks = Callbacks(db._option("callbacks_max"))
    db._callbacks.add(handle)
    return handle


