"""From the text of a script to its steps, by the grammar of Spark's scripts.

What does not fit the grammar is left to Spark, which says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hudimeta.sql.cursor import BETWEEN_WORDS, Cursor, Unread, Word
from hudimeta.sql.script import Assign, Block, Choice, Declare, For, Handler, Jump, Loop, Run, Script, Step

__all__ = ["script"]

_TOKEN = re.compile(
    rf"(?P<blank>{BETWEEN_WORDS}+)|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>`(?:[^`]|``)*`)|(?P<word>\w+)|(?P<mark>.)",
    re.DOTALL,
)
_NAMES = ("word", "name")
_OPEN, _CLOSE = ("(", "[", "CASE"), (")", "]", "END")
_LABELLED = ("BEGIN", "WHILE", "REPEAT", "LOOP", "FOR")
_OF_DECLARATIONS = ("DEFAULT", "=")


def script(cursor: Cursor) -> Script:
    """BEGIN … END as a whole statement. Raises Unread for what Spark does not take."""
    reader = _Reader(cursor.text)
    reader.expect("BEGIN")
    body = reader.block("")
    reader.accept(";")
    reader.finish()
    return Script(body)


class _Reader(Cursor):
    """A place among the tokens of a script, which sqlglot does not cut: a script is no statement to it."""

    def __init__(self, text: str) -> None:
        tokens = (m for m in _TOKEN.finditer(text) if m.lastgroup != "blank")
        super().__init__(text, [Word(m.group(), m.lastgroup or "", *m.span()) for m in tokens])
        self.labels: list[tuple[str, bool]] = []
        """Of the blocks and loops around, and whether each is a loop."""

    # Steps

    def block(self, label: str) -> Block:
        """What follows BEGIN, with its END."""
        steps: list[Step] = []
        handlers: list[Handler] = []
        states: dict[str, str] = {}
        begun = False
        while not self.accept("END"):
            if not self.accept("DECLARE"):
                steps.append(self._step())
                begun = True
                continue
            if begun:
                raise Unread
            self._declaration(steps, handlers, states)
        self._end_label(label)
        return Block(label, tuple(steps), tuple(handlers))

    def _declaration(self, steps: list[Step], handlers: list[Handler], states: dict[str, str]) -> None:
        """What follows DECLARE.

        Args:
            steps: Of the block; a variable's is added.
            handlers: Of the block; a handler is added.
            states: SQLSTATEs in quotes, of the conditions that were declared, by name.
        """
        if self.peek(1) == "HANDLER" and self.peek() in ("EXIT", "CONTINUE"):
            handlers.append(self._handler(states))
        elif self.peek(1) == "CONDITION":
            name = self._name().upper()
            self.expect("CONDITION")
            states[name] = self._state() if self.accept("FOR") else "'45000'"
        else:
            if handlers:
                raise Unread
            steps.append(self._variables())
        self.expect(";")

    def _variables(self) -> Declare:
        if self.accept("OR"):
            self.expect("REPLACE")
        if self.peek() in ("VARIABLE", "VAR") and self.peek(1) not in (*_OF_DECLARATIONS, ";"):
            self.at += 1
        names = [self._name()]
        while self.accept(","):
            names.append(self._name())
        kind = "" if self.peek() == ";" else self.until(";")
        return Declare(tuple(names), kind)

    def _handler(self, states: dict[str, str]) -> Handler:
        goes_on = self.accept("CONTINUE")
        if not goes_on:
            self.expect("EXIT")
        self.expect("HANDLER", "FOR")
        conditions = [self._condition(states)]
        while self.accept(","):
            conditions.append(self._condition(states))
        steps = (self.block(""),) if self.accept("BEGIN") else (self._simple(),)
        return Handler(tuple(conditions), goes_on, steps)

    def _condition(self, states: dict[str, str]) -> str:
        if self.accept("NOT", "FOUND"):
            return "NOT FOUND"
        if self.peek() == "SQLSTATE":
            return self._state()
        name = self._name().upper()
        while self.accept("."):
            name += f".{self._name().upper()}"
        return states.get(name, name)

    def _state(self) -> str:
        """SQLSTATE [VALUE] and its text, in quotes."""
        self.expect("SQLSTATE")
        self.accept("VALUE")
        token = self.next()
        if token.upper or token.kind in _NAMES:
            raise Unread
        return f"'{self.text[token.start + 1 : token.end - 1].upper()}'"

    def _step(self) -> Step:
        step = self._labelled() or self._flow() or self._simple()
        self.expect(";")
        return step

    def _simple(self) -> Step:
        """A statement without its semicolon."""
        if self.accept("SET"):
            self.accept("VARIABLE") or self.accept("VAR")
            text = self.until(";")
            return Run(f"SET {text}") if text.lower().startswith(("hoodie.", "hudimeta.", "spark.")) else Assign(text)
        return Run(self._statement())

    def _labelled(self) -> Step | None:
        label = ""
        if self._is_name() and self.peek(1) == ":" and self.peek(2) in _LABELLED:
            label = self._name()
            self.expect(":")
        read: Mapping[str, Callable[[str], Step]] = {
            "BEGIN": self.block,
            "WHILE": self._while,
            "REPEAT": self._repeat,
            "LOOP": self._loop,
            "FOR": self._for,
        }
        found = read.get(self.peek())
        if found is None:
            return None
        word = self.next().upper
        self.labels.append((label.lower(), word != "BEGIN"))
        step = found(label)
        self.labels.pop()
        return step

    def _flow(self) -> Step | None:
        if self.accept("IF"):
            return self._if()
        if self.accept("CASE"):
            return self._case()
        again = self.peek() == "ITERATE"
        if self.peek() in ("LEAVE", "ITERATE") and self._is_name(1) and self.peek(2) == ";":
            self.at += 1
            label = self._name()
            if not any(one == label.lower() and (is_loop or not again) for one, is_loop in self.labels):
                raise Unread
            return Jump(again, label)
        return None

    def _if(self) -> Choice:
        conditions, branches = [self.until("THEN")], []
        while True:
            self.expect("THEN")
            branches.append(self._steps("ELSEIF", "ELSE", "END"))
            if not self.accept("ELSEIF"):
                break
            conditions.append(self.until("THEN"))
        return self._chosen("", conditions, branches, "IF")

    def _case(self) -> Choice:
        subject = "" if self.peek() == "WHEN" else self.until("WHEN")
        conditions, branches = [], []
        while self.accept("WHEN"):
            conditions.append(self.until("THEN"))
            self.expect("THEN")
            branches.append(self._steps("WHEN", "ELSE", "END"))
        if not conditions:
            raise Unread
        return self._chosen(subject, conditions, branches, "CASE")

    def _chosen(self, subject: str, conditions: list[str], branches: list[tuple[Step, ...]], word: str) -> Choice:
        branches.append(self._steps("END") if self.accept("ELSE") else ())
        self.expect("END", word)
        cases = " ".join(f"WHEN ({condition}) THEN {number}" for number, condition in enumerate(conditions))
        of = f"({subject}) " if subject else ""
        return Choice(f"CASE {of}{cases} ELSE {len(conditions)} END", tuple(branches))

    def _while(self, label: str) -> Loop:
        condition = self.until("DO")
        self.expect("DO")
        return Loop(label, condition, "", self._round(label, "WHILE"))

    def _repeat(self, label: str) -> Loop:
        steps = self._steps("UNTIL")
        self.expect("UNTIL")
        condition = self.until("END")
        self.expect("END", "REPEAT")
        self._end_label(label)
        return Loop(label, "", condition, steps)

    def _loop(self, label: str) -> Loop:
        return Loop(label, "", "", self._round(label, "LOOP"))

    def _for(self, label: str) -> For:
        name = ""
        if self._is_name() and self.peek(1) == "AS":
            name = self._name()
            self.expect("AS")
        query = self.until("DO")
        self.expect("DO")
        return For(label, name, query, self._round(label, "FOR"))

    def _round(self, label: str, word: str) -> tuple[Step, ...]:
        steps = self._steps("END")
        self.expect("END", word)
        self._end_label(label)
        return steps

    def _steps(self, *ends: str) -> tuple[Step, ...]:
        """At least one step, up to one of these words."""
        steps = [self._step()]
        while self.peek() not in ends:
            steps.append(self._step())
        return tuple(steps)

    # Tokens

    def until(self, *ends: str) -> str:
        """The text up to one of these words outside of parentheses and CASE. Raises Unread where none comes, or no text."""
        begin, depth = self.at, 0
        while not (depth == 0 and self.peek() in ends):
            word = self.next().upper
            depth += (word in _OPEN) - (word in _CLOSE)
            if word == ";" or depth < 0:
                raise Unread
        return self.between(begin, self.at)

    def _statement(self) -> str:
        """The text up to the semicolon."""
        begin = self.at
        while self.peek() != ";":
            self.next()
        return self.between(begin, self.at)

    def _is_name(self, ahead: int = 0) -> bool:
        here = self.at + ahead
        return here < len(self.words) and self.words[here].kind in _NAMES

    def _name(self) -> str:
        """A name as it is written."""
        token = self.next()
        if token.kind not in _NAMES:
            raise Unread
        return self.text[token.start : token.end]

    def _end_label(self, label: str) -> None:
        """The label after END, which may be left out, but be no other."""
        if self._is_name() and self.peek() != ";" and self._name().lower() != label.lower():
            raise Unread
