"""Events: rows with lifetimes on the data's own time, and queries over them that run on history and
live.

The verbs have the names of ``docs/verbs``. An ``Events`` is a question, built and checked as it is
written; ``run`` answers it at once, ``db.start`` keeps it at work while rows are pushed. Ticks are
those of the time column: microseconds of a timestamp, the numbers themselves otherwise (``unit``
says what one is).

Reading order: ``times``, ``context``, ``base`` (what all events share); the verbs in ``verbs``,
``groups``, ``joins``; ``whole`` puts them together, with inputs and answers.
"""

from __future__ import annotations

from ..patterns import Pattern, reg
from ..runs import Run
from ..values import Event
from .base import Input
from .groups import EventGroups
from .times import FOREVER, end, instant, start, window_end, window_start
from .verbs import reg_name
from .whole import Events, of_relation

__all__ = ["Events", "Pattern", "Run", "Event", "reg", "start", "end", "window_start", "window_end"]
