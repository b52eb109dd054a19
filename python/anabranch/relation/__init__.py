"""Relations: questions that are built, and asked when rows are wanted.

A relation is the text of a query and its columns. Each method writes a longer text and has the
engine plan it, so that unknown names and wrong types are errors of the line that writes them.

Reading order: ``question`` (what all relations share); the methods in ``columns``, ``groups``,
``joins``, ``shapes``, ``reading``, ``keeping``; ``whole`` puts them together; ``stored`` has the
relations that the catalog knows by name.
"""

from __future__ import annotations

from .groups import GroupBy
from .stored import Source, Table, View
from .whole import Relation

__all__ = ["Relation", "Table", "View", "Source", "GroupBy"]
