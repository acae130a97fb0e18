"""Several statements in one text: between semicolons, and scripts in BEGIN … END with the flow that Spark's scripts have.

Only the frame of a script is read here: which statement follows which, and under what condition. Statements, conditions and
values stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hudimeta.sql.cursor import COMMENT, FIRST_WORD, LINE_COMMENT

__all__ = [
    "Assign",
    "Block",
    "Choice",
    "Declare",
    "For",
    "Handler",
    "Jump",
    "Loop",
    "Run",
    "Script",
    "Step",
    "split",
    "texts_of",
]

_PIECE = re.compile(rf"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|{LINE_COMMENT}|{COMMENT}|;|[^'\"`;/-]+|.", re.DOTALL)


@dataclass(frozen=True)
class Run:
    """A statement. text: As it was written."""

    text: str


@dataclass(frozen=True)
class Declare:
    """Local variables.

    Attributes:
        names: As they are written.
        kind: Their type and DEFAULT value; "" without both.
    """

    names: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Assign:
    """SET of variables. text: What follows SET, or SET VARIABLE."""

    text: str


@dataclass(frozen=True)
class Choice:
    """IF or CASE: one of several lists of steps.

    Attributes:
        number: An expression whose value is the number of the list to take.
        branches: The lists; the last is that of ELSE, empty without one.
    """

    number: str
    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Loop:
    """WHILE, REPEAT or LOOP.

    Attributes:
        label: "" without one.
        before: The condition that must hold before each round; "" without one.
        after: The condition that ends the loop after a round; "" without one.
        steps: Of a round.
    """

    label: str
    before: str
    after: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class For:
    """FOR: a round for each row of a query.

    Attributes:
        label: "" without one.
        name: The variable that holds a row as a struct; "" without one. Its columns are variables too.
        query: The query.
        steps: Of a round.
    """

    label: str
    name: str
    query: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Jump:
    """LEAVE or ITERATE. again: True for ITERATE. label: Of the block or loop."""

    again: bool
    label: str


@dataclass(frozen=True)
class Handler:
    """What is done about errors of the block that it stands in.

    Attributes:
        conditions: SQLEXCEPTION, NOT FOUND, names of errors in upper case, SQLSTATEs in quotes.
        goes_on: True for CONTINUE, False for EXIT, which leaves the block.
        steps: What is done.
    """

    conditions: tuple[str, ...]
    goes_on: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Block:
    """BEGIN … END. label: "" without one."""

    label: str
    steps: tuple[Step, ...]
    handlers: tuple[Handler, ...] = field(default=())


Step: TypeAlias = Run | Declare | Assign | Choice | Loop | For | Jump | Block


@dataclass(frozen=True)
class Script:
    """A script. body: Its outermost block."""

    body: Block


def texts_of(steps: Sequence[Step]) -> Iterator[str]:
    """All statements and queries of steps, those within others too."""
    for step in steps:
        if isinstance(step, Run):
            yield step.text
        elif isinstance(step, Choice):
            for branch in step.branches:
                yield from texts_of(branch)
        elif isinstance(step, (Loop, For, Block)):
            yield from (step.query,) if isinstance(step, For) else ()
            yield from texts_of(step.steps)
            for handler in step.handlers if isinstance(step, Block) else ():
                yield from texts_of(handler.steps)


def split(text: str) -> Iterator[str]:
    """The statements between semicolons, without those that stand in texts, names and comments; BEGIN … END is one."""
    begin = 0
    for piece in _PIECE.finditer(text):
        first = FIRST_WORD.match(text, begin)
        if piece.group() == ";" and (first is None or first[1].upper() != "BEGIN"):
            yield from _unless_empty(text[begin : piece.start()])
            begin = piece.end()
    yield from _unless_empty(text[begin:])


def _unless_empty(text: str) -> Iterator[str]:
    bare = "".join(p.group() for p in _PIECE.finditer(text) if not p.group().startswith(("--", "/*")))
    if bare.strip():
        yield text.strip()
