"""One damage: what reads say over it, what a write or service does over it, and what is left when the damage is undone.

A read may answer rightly or raise a HudiError. A write or service may succeed or raise one; what is read afterwards is what
an undamaged table answers before or after the same act. With the damage undone every answer is there again.

Over the damage everything is asked that looks at a damaged file, or at its folder where its size changed; what does not has the
answer of an undamaged table, since it reads the same bytes. After the act, and with the damage undone, nothing is asked again
where the bytes of the table are those of an earlier round, but for the lock, which no read looks at. Otherwise the snapshot and
`OTHERS` further questions by dice are asked, and everything in one of `WHOLE` rounds: what a trial leaves out others ask. What
an undamaged table answers after an act is found out where the answer is not the one of before, once for each question.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hudimeta.errors import CommitOutcomeUnknown, HudiError
from tests.damage.acts import ACTS
from tests.damage.answers import Answers, Refused, answers, as_many, attempt, between, difference, opened, questions_of, told
from tests.damage.building import files_below, lay_out
from tests.damage.harm import HARMS, kind_of
from tests.damage.subjects import Subject
from tests.damage.touched import Touched, tracing

__all__ = ["Outcome", "Trials"]

OTHERS, WHOLE = 2, 4
_LOCKS = ".hoodie/.locks/"
Known = Callable[[Iterable[str]], "Answers"]
"""Answers to questions, found out when they are needed; none of an act that is refused."""


@dataclass
class _Afterwards:
    """A table after an act.

    Attributes:
        files: Content by path; None where the act is refused on an undamaged table.
        answers: What was asked of it so far.
    """

    files: Mapping[str, bytes] | None
    answers: Answers = field(default_factory=dict)


@dataclass
class Outcome:
    """What came of one damage.

    Attributes:
        subject, kind, path, harm, act: What was done to what.
        detected: Some read or act named a damage.
        half_done: An act was refused after it had published something, or before it.
        faults: What must not be: (class of fault, what happened).
    """

    subject: str
    kind: str
    path: str
    harm: str
    act: str
    detected: bool = False
    half_done: bool = False
    faults: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        faults = "; ".join(f"{kind}: {text}" for kind, text in self.faults)
        return f"{self.subject}/{self.path} [{self.kind}], {self.harm}, {self.act}: {faults or 'nothing wrong'}"


class Trials:
    """Runs damages of tables.

    Args:
        home: A folder for copies, quick if possible.
    """

    def __init__(self, home: Path) -> None:
        self.home, self._number = home, 0
        self._before: Callable[[str], Answers] = cache(self._answers_before)
        self._afterwards: Callable[[str, str], _Afterwards] = cache(self._afterwards_of)
        self._touched: Callable[[str], Mapping[str, Touched]] = cache(self._touched_before)
        self._subjects: dict[str, Subject] = {}

    def run(self, subject: Subject, seed: int, kinds: frozenset[str] | None = None, act: str | None = None) -> Outcome | None:
        """One damage, chosen by a seed.

        Args:
            subject: The table; the same bytes whenever it has the same name.
            seed: Chooses everything.
            kinds: Of files to damage; all when None.
            act: What is done over the damage; chosen when None.

        Returns:
            What came of it; None when the dice chose what cannot be done.
        """
        subject = self._subjects.setdefault(subject.name, subject)
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
        with self._laid_out(subject.files) as place:
            for one, content in change.items():
                (place / one).write_bytes(content)
            self._judge(outcome, subject, place, change, dice)
        return outcome

    def _judge(self, outcome: Outcome, subject: Subject, place: Path, change: Mapping[str, bytes], dice: random.Random) -> None:
        damaged = {**subject.files, **change}
        meets = [name for name, touched in self._touched(subject.name).items() if touched.meets(change, subject.files)]
        found = {**self._before(subject.name), **answers(place, subject, meets)}
        self._compare(outcome, "read over damage", found, (lambda _: self._before(subject.name),))
        done = attempt(lambda: ACTS[outcome.act].do(opened(place, subject), subject))
        if isinstance(done, Exception) and not isinstance(done, HudiError):
            outcome.faults.append(("other exception", f"{outcome.act}: {told(done)}"))
        outcome.detected |= isinstance(done, Exception)
        outcome.half_done = isinstance(done, HudiError) and ACTS[outcome.act].publishes_early
        allowed, left = self._allowed(outcome, done), files_below(place)
        if not _reads_alike(left, damaged):
            found = answers(place, subject, _asked(subject, dice))
        self._compare(outcome, "read after act", found, allowed)
        undone = {path: subject.files[path] for path, content in change.items() if left.get(path) == content}
        for path, content in undone.items():
            (place / path).write_bytes(content)
        if _reads_alike({**left, **undone}, subject.files):
            found = self._before(subject.name)
        elif undone:
            found = answers(place, subject, _asked(subject, dice))
        self._compare(outcome, "read with damage undone", found, allowed, may_refuse=False)

    def _allowed(self, outcome: Outcome, done: object) -> tuple[Known, ...]:
        """What may be read after the act: as before it, as after it, or either."""
        act = ACTS[outcome.act]

        def before(_: Iterable[str]) -> Answers:
            return self._before(outcome.subject)

        def after(names: Iterable[str]) -> Answers:
            return self._answers_after(outcome.subject, outcome.act, names)

        if not isinstance(done, Exception) and act.changes and self._afterwards(outcome.subject, outcome.act).files is not None:
            return (after,)
        if isinstance(done, Exception) and act.changes and not act.publishes_early and not _in_doubt(done):
            return (before,)
        return (before, after)

    def _compare(
        self, outcome: Outcome, when: str, found: Answers, allowed: Sequence[Known], *, may_refuse: bool = True
    ) -> None:
        for question, answer in found.items():
            right = []
            for known in allowed:
                right += [one[question] for one in (known(found),) if question in one]
                if answer in right:
                    break
            if answer in right or (
                outcome.half_done and question == "read optimized" and self._half_way(outcome, answer, right)
            ):
                continue
            if isinstance(answer, Refused) and any(isinstance(one, Refused) for one in right):
                continue  # a clean that did not get to its end has removed files of a moment that it takes away
            if isinstance(answer, Refused):
                outcome.detected = True
                if not may_refuse:
                    outcome.faults.append(("refused though undone", f"{when}, {question}: {answer.text}"))
            elif isinstance(answer, Exception):
                outcome.faults.append(("other exception", f"{when}, {question}: {told(answer)}"))
            else:
                expected = next(iter(right), None)
                outcome.faults.append(("wrong answer", f"{when}, {question}: {difference(answer, expected)}"))

    def _half_way(self, outcome: Outcome, answer: object, right: list[object]) -> bool:
        """Of file slices some are compacted: their base files hold what the snapshot has, or had when that was planned."""
        states = self._before(outcome.subject) | self._answers_after(outcome.subject, outcome.act, ("snapshot",))
        snapshots = [state for name, state in states.items() if name == "snapshot" or name.startswith("as of")]
        return as_many(answer, right) or between(answer, right + snapshots)

    def _answers_before(self, name: str) -> Answers:
        with self._laid_out(self._subjects[name].files) as place:
            return answers(place, self._subjects[name])

    def _touched_before(self, name: str) -> dict[str, Touched]:
        """What each question looks at, asked by itself in a table of its own, so that nobody knows anything yet."""
        found, subject = {}, self._subjects[name]
        for question in questions_of(subject):
            with self._laid_out(subject.files) as place, tracing(place) as touched:
                answers(place, subject, (question,))
            found[question] = touched
        return found

    def _afterwards_of(self, name: str, act: str) -> _Afterwards:
        subject = self._subjects[name]
        with self._laid_out(subject.files) as place:
            done = attempt(lambda: ACTS[act].do(opened(place, subject), subject))
            if isinstance(done, HudiError):
                return _Afterwards(None)
            if isinstance(done, Exception):
                raise done
            left = files_below(place)
        same = {path for path, content in left.items() if subject.files.get(path) == content}
        return _Afterwards({path: subject.files[path] if path in same else content for path, content in left.items()})

    def _answers_after(self, name: str, act: str, names: Iterable[str]) -> Answers:
        """What an undamaged table answers after an act; nothing when the act is refused on it."""
        afterwards, subject = self._afterwards(name, act), self._subjects[name]
        if afterwards.files is None:
            return {}
        if missing := [name for name in names if name not in afterwards.answers]:
            with self._laid_out(afterwards.files) as place:
                afterwards.answers |= answers(place, subject, missing)
        return afterwards.answers

    @contextmanager
    def _laid_out(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        self._number += 1
        place = self.home / f"t{self._number}"
        lay_out(files, place)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _asked(subject: Subject, dice: random.Random) -> list[str] | None:
    """The questions of a round; None for all of them."""
    first, *others = questions_of(subject)
    if dice.randrange(WHOLE) == 0 or len(others) <= OTHERS:
        return None
    return [first, *dice.sample(others, OTHERS)]


def _reads_alike(some: Mapping[str, bytes], others: Mapping[str, bytes]) -> bool:
    return all(path.startswith(_LOCKS) or some.get(path) == others.get(path) for path in some.keys() | others.keys())


def _in_doubt(error: Exception) -> bool:
    return isinstance(error, CommitOutcomeUnknown)
