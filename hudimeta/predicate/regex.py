r"""Regular expressions as Java reads them, rewritten for RE2, which takes time in proportion to the text whatever the pattern.

Spark matches with `java.util.regex`. A pattern is parsed here by Java's rules and written again so that RE2 finds the same: `.`
leaves out all of Java's line ends, `\s` has the vertical tab, `(?i)` folds ASCII letters only, and `$` also stands before a
line end that ends the text. What RE2 cannot do in linear time (looking around, back references, possessive quantifiers) and
what has another meaning there is refused when the predicate is bound, before any file is read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from hudimeta.errors import PredicateError
from hudimeta.predicate.regex_classes import CATEGORY, CLASSES, CONTROLS, LINE_ENDS, POSIX, complement, one, span

__all__ = ["Regex", "parse_regex"]

_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,9})(,(\d{0,9}))?\}")
_HINTS = {
    "(?=": "looks ahead",
    "(?!": "looks ahead",
    "(?<=": "looks back",
    "(?<!": "looks back",
    "(?>": "is an atomic group",
}
_ALLOWED = "a Java regular expression without looking around, back references and possessive quantifiers"
_ADVICE = "Rewrite it, or read without it and let Spark filter the rows."
MAX_PATTERN, MAX_NESTING = 10_000, 100


@dataclass(frozen=True)
class Regex:
    r"""A pattern of Java's, understood.

    Attributes:
        pattern: As written.
        groups: How many groups capture.
        names: Names of groups, with their numbers.
        nullable: True when it can match the empty text.
        anchored: True when what it matches depends on what is around (`^`, `$`, `\b`).
        ended: True when a `$` is in it, so that texts that end with a line end are matched twice over.
        ended_in: Groups in which a `$` stands, 0 being the whole.
        loops_on_nothing: True when a part that can match nothing is repeated: what its groups hold then is not settled.
        write: (group to capture, what `$` becomes) to the pattern in RE2's words; every group captures where it is None.
    """

    pattern: str
    groups: int
    names: tuple[tuple[str, int], ...]
    nullable: bool
    anchored: bool
    ended: bool
    ended_in: frozenset[int]
    loops_on_nothing: bool
    write: Callable[[int | None, str], str]


@dataclass(frozen=True)
class _Part:
    """A piece of a pattern, on its way.

    Attributes:
        write: As that of :class:`Regex`.
        nullable, anchored, ended, ended_in, loops: As there.
        looping: The piece may be repeated.
    """

    write: Callable[[int | None, str], str]
    nullable: bool = False
    anchored: bool = False
    ended: bool = False
    ended_in: frozenset[int] = frozenset()
    loops: bool = False
    looping: bool = True


@functools.lru_cache(maxsize=256)
def parse_regex(pattern: str) -> Regex:
    """Read a pattern by Java's rules.

    Raises:
        ConfigError: Naming what is malformed, or what cannot be matched in linear time.
    """
    if len(pattern) > MAX_PATTERN:
        raise PredicateError(pattern[:60] + "…", f"at most {MAX_PATTERN} characters", _ADVICE, what="regular expression")
    parser = _Parser(pattern)
    part = parser.alternatives(frozenset(), 0)
    if parser.at < len(pattern):
        raise parser.refuse("has a ) too many")
    return Regex(
        pattern,
        parser.groups,
        tuple(parser.names.items()),
        part.nullable,
        part.anchored,
        part.ended,
        part.ended_in | ({0} if part.ended else frozenset()),
        part.loops,
        part.write,
    )


def _fixed(text: str, *, anchored: bool = False) -> _Part:
    """What is written the same way always; of no length when `anchored`."""
    return _Part(lambda _group, _end: text, nullable=anchored, anchored=anchored, looping=not anchored)


_NOTHING = _Part(lambda _group, _end: "", nullable=True, looping=False)


class _Parser:
    """One pattern from left to right. `flags` holds `i` and `s` where they are on."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.groups, self.names = 0, dict[str, int]()

    def refuse(self, why: str, *, advice: str = "") -> PredicateError:
        where = f"It {why} at character {self.at + 1}."
        return PredicateError(self.pattern, _ALLOWED, f"{where} {advice}".rstrip(), what="regular expression")

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self) -> str:
        if self.at >= len(self.pattern):
            raise self.refuse("breaks off")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self, flags: frozenset[str], depth: int) -> _Part:
        """Everything up to the closing parenthesis, which stays."""
        if depth > MAX_NESTING:
            raise self.refuse(f"has groups nested more than {MAX_NESTING} deep")
        branches: list[_Part] = []
        while True:
            branch, flags = self.sequence(flags, depth)
            branches.append(branch)
            if not self.peek("|"):
                break
            self.at += 1
        if len(branches) == 1:
            return branches[0]
        return _Part(
            lambda group, end: "|".join(branch.write(group, end) for branch in branches),
            nullable=any(branch.nullable for branch in branches),
            anchored=any(branch.anchored for branch in branches),
            ended=any(branch.ended for branch in branches),
            ended_in=frozenset[int]().union(*(branch.ended_in for branch in branches)),
            loops=any(branch.loops for branch in branches),
        )

    def sequence(self, flags: frozenset[str], depth: int) -> tuple[_Part, frozenset[str]]:
        parts: list[_Part] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            changed = self.flag_change(flags)
            if changed is not None:
                flags = changed
                continue
            if parts and parts[-1].ended:
                raise self.refuse("goes on after a $", advice=_ADVICE)
            atoms = self.atoms(flags, depth)
            parts += [*atoms[:-1], self.quantified(atoms[-1])]
        whole = _Part(
            lambda group, end: "".join(part.write(group, end) for part in parts),
            nullable=all(part.nullable for part in parts),
            anchored=any(part.anchored for part in parts),
            ended=any(part.ended for part in parts),
            ended_in=frozenset[int]().union(*(part.ended_in for part in parts)),
            loops=any(part.loops for part in parts),
        )
        return whole, flags

    def flag_change(self, flags: frozenset[str]) -> frozenset[str] | None:
        """The flags after `(?i)` and the like; None when no such thing is next."""
        found = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?\)").match(self.pattern, self.at)
        if not found:
            return None
        flags = self.with_flags(flags, found[1], found[2] or "")
        self.at = found.end()
        return flags

    def with_flags(self, flags: frozenset[str], on: str, off: str) -> frozenset[str]:
        unknown = set(on + off) - {"i", "s"}
        if unknown:
            raise self.refuse(f"has the flag {sorted(unknown)[0]!r}, of which only i and s can be had", advice=_ADVICE)
        return (flags | set(on)) - set(off)

    def quantified(self, part: _Part) -> _Part:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if not found:
            if self.peek("{"):
                raise self.refuse("has a { that begins no quantifier")
            return part
        self.at = found.end()
        if not part.looping or part.ended:
            raise self.refuse("repeats what is no text", advice=_ADVICE)
        if self.peek("+"):
            raise self.refuse("has a possessive quantifier", advice=_ADVICE)
        text = found[0]
        lazy = "?" if self.peek("?") else ""
        self.at += len(lazy)
        if _QUANTIFIER.match(self.pattern, self.at):
            raise self.refuse("has two quantifiers in a row")
        least = int(found[1]) if found[1] else 1 if text == "+" else 0
        if found[3] and int(found[3]) < least:
            raise self.refuse("has a quantifier whose limits are exchanged")
        loops = part.loops or (part.nullable and text != "?")
        return replace(
            part,
            write=lambda group, end: f"(?:{part.write(group, end)}){text}{lazy}",
            nullable=part.nullable or least == 0,
            loops=loops,
        )

    def atoms(self, flags: frozenset[str], depth: int) -> list[_Part]:
        r"""The next atom; several for `\Q…\E`."""
        character = self.take()
        if character == "(":
            return [self.group(flags, depth + 1)]
        if character == "[":
            return [_fixed(self.char_class(flags))]
        if character == ".":
            return [_fixed("(?s:.)" if "s" in flags else f"[^{LINE_ENDS}]")]
        if character == "^":
            return [_fixed(r"\A", anchored=True)]
        if character == "$":
            return [self.end()]
        if character == "\\":
            return self.escape(flags)
        if character in "*+?{":
            raise self.refuse(f"has a {character} that repeats nothing")
        return [_fixed(one(ord(character), flags))]

    def end(self) -> _Part:
        return _Part(lambda _group, end: end, nullable=True, anchored=True, ended=True, looping=False)

    def group(self, flags: frozenset[str], depth: int) -> _Part:
        start = self.at - 1
        for opening, why in _HINTS.items():
            if self.pattern.startswith(opening, start):
                raise self.refuse(why, advice=_ADVICE)
        number, name = 0, re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.at)
        with_flags = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]*))?:").match(self.pattern, self.at)
        if name or not self.peek("?"):
            self.groups += 1
            number = self.groups
        if name:
            if name[1] in self.names:
                raise self.refuse(f"names two groups {name[1]!r}")
            self.names[name[1]] = number
            self.at = name.end()
        elif with_flags:
            flags = self.with_flags(flags, with_flags[1], with_flags[2] or "")
            self.at = with_flags.end()
        elif self.peek("?"):
            raise self.refuse("has a group of an unknown kind")
        inner = self.alternatives(flags, depth)
        if not self.peek(")"):
            raise self.refuse("lacks a )")
        self.at += 1

        def write(group: int | None, end: str) -> str:
            opening = "(?:" if not number or group not in (None, number) else "(" if group is None else "(?P<found>"
            return f"{opening}{inner.write(group, end)})"

        held = inner.ended_in | ({number} if inner.ended and number else frozenset())
        return replace(inner, write=write, ended_in=held)

    def escape(self, flags: frozenset[str]) -> list[_Part]:
        character = self.take()
        if character == "Q":
            close = self.pattern.find("\\E", self.at)
            quoted = self.pattern[self.at : close if close >= 0 else None]
            self.at = close + 2 if close >= 0 else len(self.pattern)
            return [_fixed(one(ord(each), flags)) for each in quoted] or [_NOTHING]
        if character == "E":
            return [_NOTHING]
        if character in "bB":
            if self.peek("{"):
                raise self.refuse(f"has a \\{character}{{", advice=_ADVICE)
            return [_fixed("\\" + character, anchored=True)]
        if character in "Az":
            return [_fixed("\\" + character, anchored=True)]
        if character == "Z":
            return [self.end()]
        if character in "123456789k":
            raise self.refuse("refers back to a group", advice=_ADVICE)
        class_ = self.named_class(character, flags)
        if class_ is not None:
            return [_fixed(f"[{class_}]")]
        return [_fixed(one(self.code(character), flags))]

    def named_class(self, character: str, flags: frozenset[str]) -> str | None:
        r"""`\d`, `\p{Lu}` and the like as the inside of a class; None for other escapes."""
        if character.lower() in CLASSES:
            inside = CLASSES[character.lower()]
            return inside if character.islower() else complement(inside)
        if character not in "pP":
            return None
        found = re.compile(r"\{([A-Za-z]+)\}|([A-Za-z])").match(self.pattern, self.at)
        name = (found[1] or found[2]) if found else ""
        category = CATEGORY.fullmatch(name)
        if not found or "i" in flags or not (name in POSIX or category):
            raise self.refuse(f"has \\{character}{{{name}}}, a class that is not known here", advice=_ADVICE)
        self.at = found.end()
        if category:
            return f"\\{character}{{{category[1]}}}"
        return f"[:{'^' if character == 'P' else ''}{name.lower()}:]"

    def code(self, character: str) -> int:
        """The code point that an escape stands for."""
        if character in CONTROLS:
            return CONTROLS[character]
        if character == "c":
            return ord(self.take()) ^ 64
        found = None
        if character == "0":
            found = re.compile(r"([0-3]?[0-7]{1,2})").match(self.pattern, self.at)
        elif character == "u":
            found = re.compile(r"([0-9a-fA-F]{4})").match(self.pattern, self.at)
        elif character == "x":
            found = re.compile(r"\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2})").match(self.pattern, self.at)
        elif not (character.isascii() and character.isalpha()):
            return ord(character)
        value = int(found[1] or found[2], 8 if character == "0" else 16) if found else -1
        if found is None or value > 0x10FFFF or 0xD800 <= value < 0xE000:
            raise self.refuse(f"has \\{character}, which is no character", advice=_ADVICE)
        self.at = found.end()
        return value

    def char_class(self, flags: frozenset[str]) -> str:
        """A class after its bracket, to its end."""
        negated = self.peek("^")
        self.at += negated
        inside, first = "", True
        while first or not self.peek("]"):
            first = False
            if self.peek("[") or self.peek("&&"):
                raise self.refuse("has a class within a class, or a && in it", advice=_ADVICE)
            item = self.class_item(flags)
            if isinstance(item, str):
                inside += item
                continue
            last = item
            if self.peek("-") and not self.peek("-]"):
                self.at += 1
                end = self.class_item(flags) if not self.peek("[") else ""
                if isinstance(end, str) or end < item:
                    raise self.refuse("has a range in a class that is none")
                last = end
            inside += span(item, last, flags)
        self.at += 1
        return f"[{'^' if negated else ''}{inside}]"

    def class_item(self, flags: frozenset[str]) -> int | str:
        character = self.take()
        if character != "\\":
            return ord(character)
        character = self.take()
        if character in "QE" or character in "123456789bBAzZGRXkN":
            raise self.refuse(f"has \\{character} in a class", advice=_ADVICE)
        named = self.named_class(character, flags)
        return named if named is not None else self.code(character)
