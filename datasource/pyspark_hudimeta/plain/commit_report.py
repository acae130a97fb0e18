"""What the last write of a DataFrame did: Spark runs the commit in a process of its own and hands nothing back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudimeta.commit.report import CommitReport

__all__ = ["last_commit"]


def last_commit(path: str, options: Mapping[str, str] | None = None) -> CommitReport:
    """The report of a table's newest commit, as its metadata has it.

    Args:
        path: The table's folder or URI, which this process must be able to read.
        options: Options of the table.

    Raises:
        TableNotFound: There is no table.
        TableError: It has no commit yet.
    """
    from hudimeta import Table

    return Table(path, options).report()
