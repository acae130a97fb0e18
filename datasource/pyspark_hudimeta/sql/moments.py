"""The moment that an expression after AS OF names."""

from __future__ import annotations

from datetime import date, datetime

from hudimeta.errors import ConfigError
from pyspark_hudimeta.sql.session import Entry, SqlSession, opened

__all__ = ["instant_named"]

_SHORTEST = 14
"""Digits of an instant: seconds, and three more for milliseconds."""


def instant_named(session: SqlSession, entry: Entry, expression: str, *, by_version: bool) -> str:
    """The instant, or the time in the table's zone, that an expression names.

    Args:
        session: Evaluates it.
        entry: Of the table.
        expression: In SQL.
        by_version: It is an instant, and no time.

    Raises:
        ConfigError: It names nothing of a timeline.
    """
    value = session.plain(f"SELECT {expression} AS v", session.parameters).collect()[0].v
    if isinstance(value, datetime):
        zone = opened(session, entry).properties.zone
        shown = f"SELECT unix_millis(cast({expression} AS timestamp)) AS v"
        millis = session.plain(shown, session.parameters).collect()[0].v
        return f"{datetime.fromtimestamp(millis // 1000, zone):%Y%m%d%H%M%S}{millis % 1000:03}"
    if isinstance(value, date):
        return value.isoformat()
    if value is None:
        raise ConfigError("AS OF", expression, "an instant, a date or a time")
    if by_version and (not str(value).isdigit() or len(str(value)) < _SHORTEST):
        hint = "Versions of a Hudi table are its instants: DESCRIBE HISTORY shows them. TIMESTAMP AS OF takes times."
        raise ConfigError("VERSION AS OF", str(value), "an instant of the timeline", hint)
    opened(session, entry).table.snapshot(str(value))  # said here: within a query Spark wraps the error in a trace
    return str(value)
