"""Matching, taking out, replacing and splitting by a regular expression, all by RE2 (Arrow's kernels), as Java would."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.regex import Regex, parse_regex

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context

__all__ = ["regexp_extract", "regexp_replace", "search", "split"]

_FINAL_LINE_END = r"[\n\r\x{85}\x{2028}\x{2029}]\z"
_ADVICE = "Rewrite it, or read without it and let Spark filter the rows."
_MARKS = range(0xE000, 0xF8FF)
"""Private characters, of which five that no text holds mark what was matched."""


def search(texts: pa.Array, pattern: str) -> Any:
    """Whether a pattern is found anywhere in each text."""
    import pyarrow.compute as pc

    def run(some: pa.Array, end: str) -> Any:
        return pc.match_substring_regex(some, regex.write(None, end))

    regex = parse_regex(pattern)
    return _with_ends(regex, texts, lambda line_end: rf"(?:\z|{line_end}\z)", run)


def _with_ends(regex: Regex, texts: pa.Array, end: Callable[[str], str], run: Callable[[pa.Array, str], Any]) -> Any:
    """Run over texts that end with a line end with another meaning of `$`, which stands before and after that one."""
    import pyarrow.compute as pc

    try:
        if not len(texts):  # Arrow reads a pattern only where there is a text
            run(pa.array([""]), r"\z")
        result = run(texts, r"\z")
        if not regex.ended:
            return result
        two = pc.fill_null(pc.ends_with(texts, "\r\n"), False)
        one = pc.and_(pc.fill_null(pc.match_substring_regex(texts, _FINAL_LINE_END), False), pc.invert(two))
        for here, line_end in ((one, _FINAL_LINE_END.removesuffix(r"\z")), (two, r"\r\n")):
            if pc.any(here).as_py():
                result = pc.if_else(here, run(texts, end(line_end)), result)
    except pa.ArrowInvalid as error:
        raise PredicateError(
            regex.pattern, "one that RE2 can hold", f"{error}. {_ADVICE}", what="regular expression"
        ) from error
    return result


def _refuse(regex: Regex, why: str) -> PredicateError:
    return PredicateError(regex.pattern, "one that RE2 matches as Java does", f"{why} {_ADVICE}", what="regular expression")


def regexp_extract(_context: Context, args: list[Any]) -> Any:
    """A group of the first match; empty when nothing matches or the group took no part."""
    import pyarrow.compute as pc

    texts, pattern, group = args[0], args[1], args[2] if len(args) > 2 else 1
    if pattern is None or group is None:
        return pa.nulls(len(texts), texts.type)
    regex = parse_regex(pattern)
    if not 0 <= group <= regex.groups:
        raise PredicateError(group, f"0 to {regex.groups}", what="group of regexp_extract")
    if group and regex.loops_on_nothing:
        raise _refuse(regex, "It repeats what can be nothing, and what a group holds then is not settled.")
    if group in regex.ended_in and not (group == 0 and _ends_at_last(regex)):
        raise _refuse(regex, f"A $ stands in group {group}, which is taken out.")

    def run(some: pa.Array, end: str) -> Any:
        if group:
            written = regex.write(group, end)
        elif regex.ended:
            written = f"(?P<found>{regex.write(0, '')}){end}"
        else:
            written = f"(?P<found>{regex.write(0, end)})"
        return pc.struct_field(pc.extract_regex(some, written), "found")

    found = _with_ends(regex, texts, lambda line_end: rf"(?:\z|{line_end}\z)", run)
    return pc.if_else(pc.is_valid(texts), pc.fill_null(found, ""), pa.scalar(None, texts.type))


def _ends_at_last(regex: Regex) -> bool:
    """True when one `$`, at the very end of the pattern, is all that there is."""
    return regex.ended_in == {0} and regex.write(0, "\0").find("\0") == len(regex.write(0, "\0")) - 1


def regexp_replace(_context: Context, args: list[Any]) -> Any:
    """Every match replaced; `$1` or `${name}` in the replacement is a group, a backslash takes the next character as it is."""
    import pyarrow.compute as pc

    texts, pattern, replacement = args
    if pattern is None or replacement is None:
        return pa.nulls(len(texts), texts.type)
    regex = parse_regex(pattern)
    pieces = _pieces(regex, replacement)
    if regex.loops_on_nothing and any(isinstance(piece, int) and piece for piece in pieces):
        raise _refuse(regex, "It repeats what can be nothing, and what a group holds then is not settled.")
    rewritten = "".join(rf"\{piece}" if isinstance(piece, int) else piece.replace("\\", r"\\") for piece in pieces)
    if regex.nullable and pieces:
        if regex.anchored:
            raise _refuse(regex, "It can match the empty text, at places that depend on what is around.")
        nothing = "".join(piece for piece in pieces if isinstance(piece, str))
        return _replace_nullable(texts, regex, rewritten, nothing)

    def run(some: pa.Array, end: str) -> Any:
        kept = regex.groups + 1 if "(" in end else None  # the line end that a $ looked at goes back
        if kept and kept > 9:
            raise _refuse(regex, "It has more than eight groups and a $.")
        return pc.replace_substring_regex(some, regex.write(None, end), rewritten + (rf"\{kept}" if kept else ""))

    if regex.ended and not _ends_at_last(regex):
        raise _refuse(regex, "A $ stands elsewhere than at its end.")
    return _with_ends(regex, texts, lambda line_end: rf"(?:\z|({line_end})\z)", run)


def _pieces(regex: Regex, replacement: str) -> list[str | int]:
    """Texts and numbers of groups that a replacement consists of."""
    found: list[str | int] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        at += 1
        if character == "\\" and at < len(replacement):
            found.append(replacement[at])
            at += 1
        elif character == "$":
            number, at = _group_at(regex, replacement, at)
            found.append(number)
        elif character == "\\":
            raise PredicateError(replacement, "one whose \\ has a character after it", what="replacement")
        else:
            found.append(character)
    return found


def _group_at(regex: Regex, replacement: str, at: int) -> tuple[int, int]:
    """The group that is named after a `$`, and where the text goes on."""
    allowed = f"one that names groups up to {min(regex.groups, 9)} as $1 or ${{name}}, and \\$ for a dollar"
    if replacement.startswith("{", at):
        close = replacement.find("}", at)
        number = dict(regex.names).get(replacement[at + 1 : close])
        at = close + 1
    else:
        digits = at
        while at < len(replacement) and replacement[at] in "0123456789" and (
            at == digits or int(replacement[digits : at + 1]) <= regex.groups
        ):  # fmt: skip
            at += 1
        number = int(replacement[digits:at]) if at > digits else None
    if number is None or number > min(regex.groups, 9):
        raise PredicateError(replacement, allowed, what="replacement")
    return number, at


def _replace_nullable(texts: pa.Array, regex: Regex, rewritten: str, nothing: str) -> pa.Array:
    """Replace what may be nothing: Java finds nothing once more right after each match, where RE2 finds no more.

    Every match is marked first. A match of something is then followed by one of nothing unless the next match follows at once.
    """
    import pyarrow.compute as pc

    free = (chr(code) for code in _MARKS if not pc.any(pc.match_substring(texts, chr(code))).as_py())
    begin, middle, end, first, last = (next(free) for _ in range(5))
    marked = pc.replace_substring_regex(texts, regex.write(None, ""), rf"{begin}\0{middle}{rewritten}{end}")
    some = pc.replace_substring_regex(marked, f"{begin}[^{middle}]+{middle}([^{end}]*){end}", rf"{first}\1{last}")
    apart = pc.replace_substring(pc.replace_substring(pc.replace_substring(some, last + first, ""), last, nothing), first, "")
    return pc.replace_substring_regex(apart, f"{begin}{middle}([^{end}]*){end}", r"\1")


def split(_context: Context, args: list[Any]) -> Any:
    """The pieces between matches; with a positive limit no more than that many."""
    import pyarrow.compute as pc

    texts, pattern, limit = args[0], args[1], args[2] if len(args) > 2 else -1
    if pattern is None or limit is None:
        return pa.nulls(len(texts), pa.list_(pa.string()))
    regex = parse_regex(pattern)
    if regex.nullable or regex.anchored:
        raise _refuse(regex, "A text is split only where something is matched, whatever is around.")
    if limit == 1:
        return pa.ListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), texts, mask=texts.is_null())
    most = limit - 1 if limit > 0 else None
    return pc.split_pattern_regex(texts, regex.write(None, ""), max_splits=most).cast(pa.list_(pa.string()))
