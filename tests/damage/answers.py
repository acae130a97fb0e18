"""What a table answers: to questions of every kind, each by rows as texts, or by what it was refused with."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.errors import HudiError
from hudimeta.types import META_COLUMNS
from tests.damage.harm import kind_of
from tests.damage.subjects import Subject

__all__ = ["LONGEST_S", "Answers", "Refused", "answers", "as_many", "attempt", "difference", "opened", "questions_of", "told"]

LONGEST_S, LONGEST_WAIT_S = 20, 200
"""What a step of a trial may take at most, where it computes for half of that, or where others have the machine."""

Answers = dict[str, Any]
"""What each question came to: rows as sorted texts, or a `Refused`."""
_TRIED = {"hoodie.write.lock.wait_time_ms": "2000", "hudimeta.learn": "false"}
"""A lease whose damage cannot be told from another writer's is waited for, less long than a step may take. Advice rests on what
was asked, so questions are not noted: a table that is only there for comparison is asked others.
"""


@dataclass(frozen=True)
class Refused:
    """An error of ours, by the name of its class."""

    error: str
    text: str = field(compare=False, default="")


class Hangs(Exception):
    """A step took longer than it may."""


def opened(place: Path, subject: Subject) -> Table:
    """The table, as whoever acts on it or asks it opens it."""
    return Table(str(place), {**subject.options, **_TRIED})


def questions_of(subject: Subject) -> Mapping[str, Callable[[Table], pa.Table]]:
    """What is asked of a table, by name; the snapshot comes first."""
    questions: dict[str, Callable[[Table], pa.Table]] = {"snapshot": lambda t: t.scan().to_table()}
    for where in subject.predicates:
        questions[f"where {where}"] = lambda t, where=where: t.scan(where=where).to_table()
    for moment in subject.moments:
        questions[f"as of {moment}"] = lambda t, moment=moment: t.scan(as_of=moment).to_table()
    questions["read optimized"] = lambda t: t.scan(query_type="read_optimized").to_table()
    if subject.moments:
        has_history = any(kind_of(path) == "history manifest" for path in subject.files)
        begin, end = "000" if has_history else subject.moments[0], subject.moments[-1]
        questions["incremental"] = lambda t: t.scan(query_type="incremental", begin=begin, end=end).to_table()
        if subject.cdc:
            questions["changes"] = lambda t: t.scan(query_type="cdc", begin="000", end=end).to_table()
    return questions


def answers(place: Path, subject: Subject, asked: Iterable[str] | None = None) -> Answers:
    """What a table answers.

    Args:
        place: Where it lies.
        subject: What it was.
        asked: Which of `questions_of`; all when None.
    """
    questions = questions_of(subject)
    names = list(questions if asked is None else asked)
    table = attempt(lambda: opened(place, subject))
    if isinstance(table, Exception):
        return {name: _as_answer(table) for name in names}
    return {name: _as_answer(attempt(lambda ask=questions[name]: ask(table))) for name in names}


def _as_answer(found: Any) -> Any:
    if isinstance(found, HudiError):
        return Refused(type(found).__name__, str(found))
    if isinstance(found, Exception):
        return found
    data = found.drop_columns([column for column in META_COLUMNS if column in found.column_names])
    return tuple(data.column_names), tuple(sorted(repr(tuple(row.values())) for row in data.to_pylist()))


def attempt(step: Callable[[], Any]) -> Any:
    """What a step came to, or what it raised."""
    began, worked = time.monotonic(), time.process_time()

    def too_long(signum: int, frame: Any) -> None:
        if time.process_time() - worked < LONGEST_S / 2 and time.monotonic() - began < LONGEST_WAIT_S:
            signal.alarm(LONGEST_S)  # others have the machine
            return
        raise Hangs(f"longer than {time.monotonic() - began:.0f} s in {frame.f_code.co_filename}:{frame.f_lineno}")

    earlier = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LONGEST_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return step()
    except Exception as error:
        return error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


def told(error: Exception) -> str:
    """An error with the place in the engine that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/hudimeta/" in frame.filename] or list(frames)
    where = f"{ours[-1].filename.rpartition('/hudimeta/')[2]}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} {str(error)[:160]} at {where}"


def as_many(found: Any, right: list[Any]) -> bool:
    """Whether there are as many rows of the same columns."""
    return isinstance(found, tuple) and all(
        isinstance(one, tuple) and found[0] == one[0] and len(found[1]) == len(one[1]) for one in right
    )


def between(found: Any, right: list[Any]) -> bool:
    """Whether each row is one of the right answers', none twice: of a service that was refused half way."""
    if not isinstance(found, tuple):
        return False
    columns, rows = found
    known = {row for one in right if isinstance(one, tuple) and one[0] == columns for row in one[1]}
    return len(set(rows)) == len(rows) and known.issuperset(rows)


def difference(found: Any, expected: Any) -> str:
    """In what an answer is not the expected one."""
    if not (isinstance(found, tuple) and isinstance(expected, tuple)):
        return f"answered, expected {str(expected)[:120]}"
    if found[0] != expected[0]:
        return f"columns {found[0]} instead of {expected[0]}"
    missing, extra = set(expected[1]) - set(found[1]), set(found[1]) - set(expected[1])
    few = f", such as {sorted(missing)[:1]} and {sorted(extra)[:1]}"
    return f"{len(found[1])} rows instead of {len(expected[1])}, {len(missing)} missing, {len(extra)} other{few}"
