"""What hudimeta says in a process of Spark's own, without the trace of that process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException

__all__ = ["without_trace"]

_SAID = re.compile(
    r"(?:_FAILED_TO_ANALYZE_IN_PYTHON|PYTHON_DATA_SOURCE_ERROR)\][\s\S]*\b\w+: (HUDIMETA_\w+: .+?)(?: SQLSTATE:|$)",
    re.MULTILINE,
)
"""The last line of a trace of a table function that has refused its arguments, or of a table that cannot be read."""


@contextmanager
def without_trace() -> Iterator[None]:
    """Raise what hudimeta has said, where the error of Spark inside holds that in a trace."""
    try:
        yield
    except AnalysisException as error:
        found = _SAID.search(str(error))
        if found is None:
            raise
        raise AnalysisException(found.group(1)) from None
