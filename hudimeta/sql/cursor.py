"""Walking through a statement's tokens, as sqlglot cuts them for Spark, with the text between any two of them at hand.

Only the frame of a statement is read here (keywords, names, parentheses); everything inside stays text, so that no dialect
has to be written again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from hudimeta.predicate import with_escaped_quotes

__all__ = ["FIRST_WORD", "Cursor", "Unread", "Word", "words_of"]

FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*([A-Za-z]+)\b", re.DOTALL)
"""The word that a statement begins with, after blanks and comments."""
_OPEN, _CLOSE = ("(", "[", "CASE"), (")", "]", "END")


class Unread(Exception):
    """The text is no statement that this package reads. Never leaves it."""


@dataclass(frozen=True, slots=True)
class Word:
    """One token.

    Attributes:
        text: Without quotes.
        kind: "name" (in backticks), "string", "word" or "mark".
        start, end: Its place in the text, end excluded.
    """

    text: str
    kind: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """The word in upper case; "" for what is quoted."""
        return self.text.upper() if self.kind in ("word", "mark") else ""


def words_of(text: str) -> list[Word]:
    """The tokens of a text. Raises Unread when it cannot be cut."""
    from sqlglot.dialects import Spark
    from sqlglot.errors import SqlglotError

    first = FIRST_WORD.match(text)
    begin, end = first.span(1) if first is not None else (0, 0)
    try:
        # After the first word of some statements, such as SHOW, sqlglot leaves everything uncut.
        tokens = Spark().tokenize(with_escaped_quotes(text[:begin] + "_" * (end - begin) + text[end:]))
    except SqlglotError as error:
        raise Unread from error
    found: list[Word] = []
    for token in tokens:
        kind, start, end = token.token_type.name, token.start, token.end + 1
        if first is not None and start == begin:
            found.append(Word(first.group(1), "word", start, end))
        elif kind == "IDENTIFIER":
            found.append(Word(token.text, "name", start, end))
        elif kind.endswith("STRING"):
            found.append(Word(token.text, "string", start, end))
        elif token.text[:1].isalnum() or token.text[:1] == "_":
            # Some keywords of two words, such as PARTITIONED BY, are one token.
            for part in token.text.split():
                at = text.find(part, start)
                found.append(Word(part, "word", at, at + len(part)))
                start = at + len(part)
        else:
            found.append(Word(token.text, "mark", start, end))
    while found and found[-1].text == ";" and found[-1].kind == "mark":
        found.pop()
    return found


class Cursor:
    """A place among the words of a statement.

    Args:
        text: The statement.
        words: Its words, see `words_of`.
    """

    def __init__(self, text: str, words: list[Word] | None = None) -> None:
        self.text = text
        self.words = words_of(text) if words is None else words
        self.at = 0

    @property
    def done(self) -> bool:
        """True after the last word."""
        return self.at >= len(self.words)

    def peek(self, ahead: int = 0) -> str:
        """A word to come, in upper case; "" at the end and for what is quoted."""
        here = self.at + ahead
        return self.words[here].upper if here < len(self.words) else ""

    def next(self) -> Word:
        """The next word. Raises Unread at the end."""
        if self.done:
            self.fail()
        self.at += 1
        return self.words[self.at - 1]

    def accept(self, *words: str) -> bool:
        """Step over these words where they come next."""
        if any(self.peek(number) != word for number, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over these words. Raises Unread where others come."""
        if not self.accept(*words):
            self.fail()

    def fail(self) -> NoReturn:
        """Raise Unread."""
        raise Unread

    def finish(self) -> None:
        """Raise Unread unless everything was read."""
        if not self.done:
            self.fail()

    def string(self) -> str:
        """A text in quotes."""
        word = self.next()
        if word.kind != "string":
            self.fail()
        return word.text

    def identifier(self) -> str:
        """A name, with or without backticks."""
        word = self.next()
        if word.kind not in ("name", "word"):
            self.fail()
        return word.text

    def dotted(self) -> tuple[str, ...]:
        """A name of one or more parts."""
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return tuple(parts)

    def inside(self) -> Cursor:
        """What stands in the parentheses that come next, as a cursor of its own."""
        self.expect("(")
        begin = self.at
        self._skip(1)
        return Cursor(self.text, self.words[begin : self.at - 1])

    def queries(self) -> str:
        """The text of a WITH clause, `WITH [RECURSIVE] name [(columns)] [AS] (query), …`; "" where none comes next."""
        begin = self.at
        if not self.accept("WITH"):
            return ""
        self.accept("RECURSIVE")
        while True:
            self.identifier()
            if self.peek() == "(":
                self.inside()
            if self.peek() in ("MAX", "AS"):  # MAX RECURSION LEVEL n
                self.until("(")
                self.inside()
            if not self.accept(","):
                return self.between(begin, self.at)

    def until(self, *ends: str) -> str:
        """The text up to one of these words outside of parentheses and CASE, or to the end. Raises Unread when it is empty."""
        begin, depth = self.at, 0
        while not self.done and not (depth == 0 and self.peek() in ends):
            word = self.peek()
            depth += (word in _OPEN) - (word in _CLOSE)
            if depth < 0:
                self.fail()
            self.at += 1
        return self.between(begin, self.at)

    def rest(self) -> str:
        """The text up to the end."""
        begin, self.at = self.at, len(self.words)
        return self.between(begin, self.at)

    def between(self, begin: int, end: int) -> str:
        """The text of the words from one number to another. Raises Unread when there are none."""
        if begin >= end:
            self.fail()
        return self.text[self.words[begin].start : self.words[end - 1].end]

    def _skip(self, depth: int) -> None:
        """Step past the parenthesis that closes the open ones."""
        while depth:
            word = self.next().upper
            depth += (word == "(") - (word == ")")
