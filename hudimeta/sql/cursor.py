"""Walking through a statement's tokens, as sqlglot cuts them for Spark, with the text between any two of them at hand.

Only the frame of a statement is read here (keywords, names, parentheses); everything inside stays text, so that no dialect
has to be written again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from hudimeta.predicate import with_escaped_quotes

__all__ = ["BETWEEN_WORDS", "COMMENT", "FIRST_WORD", "LINE_COMMENT", "Cursor", "Unread", "Word", "with_backticks", "words_of"]

LINE_COMMENT = r"--(?:[^\n\\]|\\\n|\\(?!\n))*(?:\n|$)"
"""A comment to the end of the line, or of the next one after a backslash."""
_INNER = r"/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/"
COMMENT = rf"/\*(?:{_INNER}|[^*/]|\*(?!/)|/(?!\*))*\*/"
"""A comment in brackets, with others inside of it."""
BETWEEN_WORDS = rf"(?:\s|{LINE_COMMENT}|{COMMENT})"
"""A blank or a comment, as a pattern; its quantifier says how many."""
FIRST_WORD = re.compile(rf"{BETWEEN_WORDS}*([A-Za-z]+)\b")
"""The word that a statement begins with, after blanks and comments."""
_QUOTED = r"'(?:[^'\\]|\\.?)*(?:'|\Z)|\"(?:[^\"\\]|\\.?|\"\")*(?:\"|\Z)|`[^`]*(?:`|\Z)"
"""What is quoted, up to the end where it is never closed: looking for an end from every quote again would take long."""
_CLOSED_NAME = re.compile(r'"(?:[^"]|"")*"')
"""A name between double quotes; what ends in a doubled one has no end."""
_PIECES = re.compile(rf"{_QUOTED}|(?P<line>{LINE_COMMENT})|{COMMENT}", re.DOTALL)
_OPEN, _CLOSE = ("(", "["), (")", "]")
_OPERAND_BEFORE = (")", "]", "}", "?")
"""Marks that end an operand; after all others one comes."""
_OPERAND_AFTER = ("AND", "OR", "NOT", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "CASE", "WHEN", "THEN", "ELSE")
_AFTER_NAME = ("=", "<", ">", "<=", ">=", "<>", "!=", "<=>", ",", ")", "]", ".", "||", "%", "::", "IS", "IN", "BETWEEN", "LIKE")
"""What may follow a column of the name `case`, and no CASE."""
_SIGNS = ("+", "-", "*", "/")


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
        found = self.text.upper() if self.kind in ("word", "mark") else ""
        return "=" if found == "==" else found


def words_of(text: str) -> list[Word]:
    """The tokens of a text. Raises Unread when it cannot be cut."""
    from sqlglot.dialects import Spark
    from sqlglot.errors import SqlglotError

    first = FIRST_WORD.match(text)
    begin, end = first.span(1) if first is not None else (0, 0)
    try:
        # After the first word of some statements, such as SHOW, sqlglot leaves everything uncut.
        tokens = Spark().tokenize(with_escaped_quotes(_on_one_line(text[:begin] + "_" * (end - begin) + text[end:])))
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
            # Some keywords of two words, such as PARTITIONED BY, are one token, in upper case whatever the text says.
            for part in token.text.split():
                at = _place(text, part, start)
                # After a point even a keyword is a name.
                after_point = bool(found) and found[-1].kind == "mark" and found[-1].text == "."
                found.append(Word(part, "name" if after_point else "word", at, at + len(part)))
                start = at + len(part)
        else:
            found.append(Word(token.text, "mark", start, end))
    while found and found[-1].text == ";" and found[-1].kind == "mark":
        found.pop()
    return found


def _place(text: str, part: str, start: int) -> int:
    """Where a word stands that is cut from a token. Raises Unread where the text has it not."""
    found = re.compile(re.escape(part), re.IGNORECASE).search(text, start)
    if found is None:
        raise Unread
    return found.start()


def with_backticks(text: str) -> str:
    """A text with names between backticks where it has them between double quotes, as sessions with ANSI's names have."""

    def name(piece: re.Match[str]) -> str:
        found = piece[0]
        closed = _CLOSED_NAME.fullmatch(found) is not None
        return "`" + found[1:-1].replace('""', '"').replace("`", "``") + "`" if closed else found

    return _PIECES.sub(name, text)


def _on_one_line(text: str) -> str:
    """A text of the same length, without the ends of lines after which comments of Spark go on."""
    if "\\\n" not in text:
        return text
    return _PIECES.sub(lambda m: m[0].replace("\\\n", "  ") if m.lastgroup == "line" else m[0], text)


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
        """A text in quotes, or several side by side, which are one."""
        word = self.next()
        if word.kind != "string":
            self.fail()
        return word.text + (self.string() if self.is_string else "")

    @property
    def is_string(self) -> bool:
        """True where a text in quotes comes next."""
        return not self.done and self.words[self.at].kind == "string"

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
        """The text up to one of these words outside of parentheses and CASE, or to the end. Raises Unread when it is empty.

        Where an operand must come, a word is the name of a column, whatever it says: `x = end`, `when case = 1 then when`.
        """
        begin, inside, is_name = self.at, list[str](), False
        while not self.done:
            word = self.peek()
            is_name = self.words[self.at].kind == "word" and self._is_operand(begin, after_name=is_name)
            if not inside and word in ends and not is_name:
                break
            if word in _OPEN or (word == "CASE" and self._begins_case(begin)):
                inside.append(word)
            elif word in _CLOSE or (word == "END" and inside[-1:] == ["CASE"] and not is_name):
                if not inside:
                    self.fail()
                inside.pop()
            self.at += 1
        return self.between(begin, self.at)

    def _begins_case(self, begin: int) -> bool:
        named = self.at > begin and self.words[self.at - 1].upper == "AS"
        return not named and self.at + 1 < len(self.words) and self.peek(1) not in _AFTER_NAME

    def _is_operand(self, begin: int, *, after_name: bool) -> bool:
        """True where an operand must come: first, after an operator, and after a word that one follows."""
        if self.at == begin:
            return self.at + 1 == len(self.words) or self.peek(1) in (*_AFTER_NAME, *_SIGNS)
        before = self.words[self.at - 1]
        if before.text == "*" and (
            self.at - 1 == begin or self.words[self.at - 2].upper in ("SELECT", "DISTINCT", ",", "(", ".")
        ):
            return False
        if before.kind == "word":
            return not after_name and before.upper in _OPERAND_AFTER
        return before.kind == "mark" and before.text not in _OPERAND_BEFORE

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
