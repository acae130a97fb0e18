"""One damage: what reads say over it, what a write or service does over it, and what is left when the damage is undone.

A read may answer rightly or raise a HudiError. A write or service may succeed or raise one; what is read afterwards is what
an undamaged table answers before or after the same act. With the damage undone every answer is there again.
"""

from __future__ import annotations

import random
import shutil
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.errors import CommitOutcomeUnknown, HudiError
from hudimeta.types import META_COLUMNS
from tests.damage.harm import HARMS, kind_of
from tests.damage.subjects import Subject

__all__ = ["ACTS", "LONGEST_S", "Outcome", "Trials"]

LONGEST_S = 20
"""What a step of a trial may take at most: whoever takes longer hangs."""

Answers = dict[str, Any]
"""What each question came to: rows as sorted texts, or a `_Refused`."""


@dataclass(frozen=True)
class _Refused:
    """An error of ours, by the name of its class."""

    error: str
    text: str = field(compare=False, default="")


class Hangs(Exception):
    """A step took longer than `LONGEST_S`."""


@dataclass
class Outcome:
    """What came of one damage.

    Attributes:
        subject, kind, path, harm, act: What was done to what.
        detected: Some read or act named a damage.
        half_compacted: A compaction was refused after its first plan, or before it.
        faults: What must not be: (class of fault, what happened).
    """

    subject: str
    kind: str
    path: str
    harm: str
    act: str
    detected: bool = False
    half_compacted: bool = False
    faults: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        told = "; ".join(f"{kind}: {text}" for kind, text in self.faults)
        return f"{self.subject}/{self.path} [{self.kind}], {self.harm}, {self.act}: {told or 'nothing wrong'}"


def _first_rows(subject: Subject) -> pa.Table:
    return subject.later.slice(0, 2)


ACTS: Mapping[str, Callable[[Table, Subject], object]] = {
    "upsert": lambda table, subject: table.upsert(subject.later),
    "insert": lambda table, subject: table.insert(subject.later),
    "delete": lambda table, subject: table.delete(_first_rows(subject)),
    "insert_overwrite": lambda table, subject: table.insert_overwrite(_first_rows(subject)),
    "compact": lambda table, subject: table.compact(),
    "clean": lambda table, subject: table.clean(),
    "archive": lambda table, subject: table.archive(),
    "recover": lambda table, subject: table.recover(),
    "validate": lambda table, subject: table.metadata.validate(),
    "prove": lambda table, subject: table.metadata.validate(prove=True),
    "rebuild": lambda table, subject: table.metadata.rebuild(),
    "create_index": lambda table, subject: table.metadata.create_index(
        "later", "secondary_index", subject.later.column_names[0]
    ),
    "drop_index": lambda table, subject: table.metadata.drop_index("column_stats"),
    "alter": lambda table, subject: table.alter(add={"brand_new": pa.int32()}),
}
"""What is done over the damage, by name."""
READ_ONLY = frozenset(("validate",))
_PATIENCE = {"hoodie.write.lock.wait_time_ms": "2000"}
"""A lease whose damage cannot be told from another writer's is waited for; less long than a step may take."""


class Trials:
    """Runs damages of tables.

    Args:
        home: A folder for copies, quick if possible.
    """

    def __init__(self, home: Path) -> None:
        self.home, self._number = home, 0
        self._before: Callable[[str], Answers] = cache(self._answers_before)
        self._after: Callable[[str, str], Answers | None] = cache(self._answers_after)
        self._subjects: dict[str, Subject] = {}

    def run(self, subject: Subject, seed: int, kinds: frozenset[str] | None = None, act: str | None = None) -> Outcome | None:
        """One damage, chosen by a seed.

        Args:
            subject: The table.
            seed: Chooses everything.
            kinds: Of files to damage; all when None.
            act: What is done over the damage; chosen when None.

        Returns:
            What came of it; None when the dice chose what cannot be done.
        """
        self._subjects[subject.name] = subject
        dice = random.Random(f"{subject.name} {seed}")
        by_kind: dict[str, list[str]] = {}
        for path in subject.files:
            by_kind.setdefault(kind_of(path), []).append(path)
        usable = sorted(kind for kind in by_kind if kinds is None or kind in kinds)
        if not usable:
            return None
        path = dice.choice(by_kind[dice.choice(usable)])
        harm = dice.choice(sorted(HARMS))
        change = HARMS[harm](path, subject.files, subject.past, dice)
        act = act or dice.choice(sorted(ACTS))
        if change is None or all(subject.files[one] == content for one, content in change.items()):
            return None
        outcome = Outcome(subject.name, kind_of(path), path, harm, act)
        with self._laid_out(subject) as place:
            for one, content in change.items():
                (place / one).write_bytes(content)
            self._judge(outcome, subject, place, change)
        return outcome

    def _judge(self, outcome: Outcome, subject: Subject, place: Path, change: Mapping[str, bytes]) -> None:
        right = self._before(subject.name)
        self._compare(outcome, "read over damage", _answers(place, subject), (right,))
        done = _attempt(lambda: ACTS[outcome.act](_opened(place, subject), subject))
        if isinstance(done, Exception) and not isinstance(done, HudiError):
            outcome.faults.append(("other exception", f"{outcome.act}: {_told(done)}"))
        outcome.detected |= isinstance(done, Exception)
        # A compaction that is refused has completed the plans before: base files of a moment between the two.
        outcome.half_compacted = isinstance(done, HudiError) and outcome.act == "compact"
        allowed = self._allowed(outcome, subject, done)
        self._compare(outcome, "read after act", _answers(place, subject), allowed)
        for path, content in change.items():
            if (place / path).exists() and (place / path).read_bytes() == content:
                (place / path).write_bytes(subject.files[path])
        self._compare(outcome, "read with damage undone", _answers(place, subject), allowed, may_refuse=False)

    def _allowed(self, outcome: Outcome, subject: Subject, done: object) -> tuple[Answers, ...]:
        before, after = self._before(subject.name), self._after(subject.name, outcome.act)
        if after is None or outcome.act in READ_ONLY:
            return (before,)
        changes_rows = before["snapshot"] != after["snapshot"]
        if not isinstance(done, Exception):
            return (after,) if changes_rows else (before, after)
        return (before,) if changes_rows and not isinstance(done, CommitOutcomeUnknown) else (before, after)

    def _compare(
        self, outcome: Outcome, when: str, found: Answers, allowed: tuple[Answers, ...], *, may_refuse: bool = True
    ) -> None:
        for question, answer in found.items():
            right = [one[question] for one in allowed if question in one]
            if answer in right or (outcome.half_compacted and question == "read optimized" and _as_many(answer, right)):
                continue
            if isinstance(answer, _Refused) and any(isinstance(one, _Refused) for one in right):
                continue  # a clean that did not get to its end has removed files of a moment that it takes away
            if isinstance(answer, _Refused):
                outcome.detected = True
                if not may_refuse:
                    outcome.faults.append(("refused though undone", f"{when}, {question}: {answer.text}"))
            elif isinstance(answer, Exception):
                outcome.faults.append(("other exception", f"{when}, {question}: {_told(answer)}"))
            else:
                expected = next(iter(right), None)
                outcome.faults.append(("wrong answer", f"{when}, {question}: {_difference(answer, expected)}"))

    def _answers_before(self, name: str) -> Answers:
        with self._laid_out(self._subjects[name]) as place:
            return _answers(place, self._subjects[name])

    def _answers_after(self, name: str, act: str) -> Answers | None:
        """What an undamaged table answers after an act; None when the act is refused on it."""
        subject = self._subjects[name]
        with self._laid_out(subject) as place:
            done = _attempt(lambda: ACTS[act](_opened(place, subject), subject))
            if isinstance(done, HudiError):
                return None
            if isinstance(done, Exception):
                raise done
            return _answers(place, subject)

    @contextmanager
    def _laid_out(self, subject: Subject) -> Iterator[Path]:
        self._number += 1
        place = self.home / f"{subject.name}-{self._number}"
        subject.lay_out(place)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _opened(place: Path, subject: Subject) -> Table:
    return Table(str(place), {**subject.options, **_PATIENCE})


def _answers(place: Path, subject: Subject) -> Answers:
    """What a table answers to every question."""
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
    opened = _attempt(lambda: _opened(place, subject))
    if isinstance(opened, Exception):
        return {question: _as_answer(opened) for question in questions}
    return {question: _as_answer(_attempt(lambda ask=ask: ask(opened))) for question, ask in questions.items()}


def _as_answer(found: Any) -> Any:
    if isinstance(found, HudiError):
        return _Refused(type(found).__name__, str(found))
    if isinstance(found, Exception):
        return found
    data = found.drop_columns([column for column in META_COLUMNS if column in found.column_names])
    return tuple(data.column_names), tuple(sorted(repr(tuple(row.values())) for row in data.to_pylist()))


def _attempt(step: Callable[[], Any]) -> Any:
    """What a step came to, or what it raised."""

    def too_long(signum: int, frame: Any) -> None:
        raise Hangs(
            f"longer than {LONGEST_S} s in {frame.f_code.co_qualname if hasattr(frame.f_code, 'co_qualname') else frame}"
        )

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


def _told(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/hudimeta/" in frame.filename] or list(frames)
    where = f"{ours[-1].filename.rpartition('/hudimeta/')[2]}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} {str(error)[:160]} at {where}"


def _as_many(found: Any, right: list[Any]) -> bool:
    """Whether there are as many rows of the same columns."""
    return isinstance(found, tuple) and all(
        isinstance(one, tuple) and found[0] == one[0] and len(found[1]) == len(one[1]) for one in right
    )


def _difference(found: Any, expected: Any) -> str:
    if not (isinstance(found, tuple) and isinstance(expected, tuple)):
        return f"answered, expected {str(expected)[:120]}"
    if found[0] != expected[0]:
        return f"columns {found[0]} instead of {expected[0]}"
    missing, extra = set(expected[1]) - set(found[1]), set(found[1]) - set(expected[1])
    few = f", such as {sorted(missing)[:1]} and {sorted(extra)[:1]}"
    return f"{len(found[1])} rows instead of {len(expected[1])}, {len(missing)} missing, {len(extra)} other{few}"
