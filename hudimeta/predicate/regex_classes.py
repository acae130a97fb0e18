"""Characters and classes of characters in RE2's words: what Java's names for them stand for."""

from __future__ import annotations

import re

__all__ = ["CATEGORY", "CLASSES", "CONTROLS", "LINE_ENDS", "POSIX", "complement", "literal_pattern", "one", "span"]

LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z_0-9",
    "s": r" \t\n\x{B}\f\r",
    "h": r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
    "v": r"\n\x{B}\f\r\x{85}\x{2028}\x{2029}",
}
POSIX = {"Lower", "Upper", "ASCII", "Alpha", "Digit", "Alnum", "Punct", "Graph", "Print", "Blank", "Cntrl", "XDigit", "Space"}
CATEGORY = re.compile(r"(?:Is)?(L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)")
CONTROLS = {"t": 0x9, "n": 0xA, "r": 0xD, "f": 0xC, "a": 0x7, "e": 0x1B}


def literal_pattern(text: str) -> str:
    """A text as a pattern of RE2's that matches it and nothing else."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def complement(inside: str) -> str:
    """What a class leaves out, as the inside of another one."""
    spans: list[tuple[int, int]] = []
    for low, high in re.findall(r"(\\x\{[0-9A-F]+\}|\\[tnrf]|[^\\])(?:-(\\x\{[0-9A-F]+\}|[^\\]))?", inside):
        spans.append((_code_of(low), _code_of(high or low)))
    found, at = "", 0
    for first, last in sorted(spans):
        found += _hex(at, first - 1) if first > at else ""
        at = last + 1
    return found + _hex(at, 0x10FFFF)


def _code_of(written: str) -> int:
    if written.startswith("\\x"):
        return int(written[3:-1], 16)
    return CONTROLS[written[1]] if written.startswith("\\") else ord(written)


def _hex(first: int, last: int) -> str:
    return f"\\x{{{first:X}}}" + (f"-\\x{{{last:X}}}" if last > first else "")


def one(code: int, flags: frozenset[str]) -> str:
    """One character, in either case of ASCII with the flag `i`."""
    character = chr(code)
    if "i" in flags and character.isascii() and character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    return literal_pattern(character)


def span(first: int, last: int, flags: frozenset[str]) -> str:
    """A range of a class; with the flag `i`, the letters of ASCII whose other case is in it as well."""
    found = _hex(first, last)
    if "i" in flags:
        for low, high in ((0x41, 0x5A), (0x61, 0x7A)):
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                found += _hex(begin ^ 0x20, end ^ 0x20)
    return found
