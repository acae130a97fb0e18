r"""Java's properties text, the format of `hoodie.properties`, and the checksum that guards it.

Layout (`java.util.Properties`): ISO-8859-1 bytes, lines ended by ``\n``, ``\r`` or ``\r\n``.

* A line whose first non-blank character is ``#`` or ``!`` is a comment; blank lines are skipped. Neither can be continued.
* A line that ends in an odd number of backslashes goes on in the next line, whose leading blanks are dropped.
* The key ends at the first unescaped ``=``, ``:`` or blank; then come blanks, at most one ``=`` or ``:``, blanks, the value.
* ``\t \n \r \f`` and ``\uXXXX`` (UTF-16 code units) are escapes; before any other character a backslash is dropped.

The encoder escapes only what would not survive: readers that know no escapes exist, and read plain ``:`` and ``=`` in values.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence

from hudimeta.errors import CorruptFileError

__all__ = ["MAX_PROPERTIES_BYTES", "decode_properties", "encode_properties", "table_checksum"]

MAX_PROPERTIES_BYTES = 4 * 1024 * 1024
"""No table has properties of this size (a schema of a thousand columns takes 100 KB)."""

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_HEX4 = re.compile(r"u[0-9a-fA-F]{4}\Z")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAMED_BACK = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
_KEY_END = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def decode_properties(data: bytes, path: str = "") -> dict[str, str]:
    r"""Read properties text.

    Args:
        data: The whole file.
        path: Its path relative to the table, for the error.

    Returns:
        Values by key in the file's order; of a key that stands twice the last value counts.

    Raises:
        CorruptFileError: a ``\u`` that is not followed by four hexadecimal digits, or more than `MAX_PROPERTIES_BYTES`.
    """
    if len(data) > MAX_PROPERTIES_BYTES:
        raise CorruptFileError(path, 0, f"at most {MAX_PROPERTIES_BYTES} bytes of properties", f"{len(data)} bytes")
    found: dict[str, str] = {}
    for offset, line in _logical_lines(data.decode("latin-1")):
        key_end = _KEY_END.match(line)
        end = key_end.end() if key_end else 0
        separator = _SEPARATOR.match(line, end)
        start = separator.end() if separator else end
        key = _unescape(line[:end], path, offset)
        # A key that stands again moves to its last place, as the value does.
        found.pop(key, None)
        found[key] = _unescape(line[start:], path, offset)
    return found


def encode_properties(properties: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """Write properties text: ASCII, one line per key, in the mapping's order; the inverse of `decode_properties`.

    Args:
        properties: Values by key.
        comments: Lines to stand in front, each after a ``#``; line ends inside one are replaced by blanks.

    Returns:
        The file's bytes, each line ended by a line feed.
    """
    lines = ["#" + _ascii(_LINE_END.sub(" ", comment)) for comment in comments]
    lines += [f"{_escape_key(key)}={_escape_value(value)}" for key, value in properties.items()]
    return "".join(line + "\n" for line in lines).encode("ascii")


def table_checksum(database: str, name: str) -> int:
    """The value of `hoodie.table.checksum`: CRC-32 of ``<database>.<name>``, unsigned; nothing else is covered.

    Args:
        database: `hoodie.database.name`, "" where the table has none.
        name: `hoodie.table.name`.
    """
    return zlib.crc32(f"{database}.{name}".encode())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, without leading blanks, comments and blank lines; each with its offset."""
    joined, start, open_line = "", 0, False
    for offset, natural in _natural_lines(text):
        stripped = natural.lstrip(_BLANKS)
        if not open_line:
            if not stripped or stripped[0] in "#!":
                continue
            joined, start = "", offset
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        open_line = backslashes % 2 == 1
        joined += stripped[:-1] if open_line else stripped
        if not open_line:
            yield start, joined
    if open_line:
        yield start, joined


def _natural_lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for end in _LINE_END.finditer(text):
        yield at, text[at : end.start()]
        at = end.end()
    if at < len(text):
        yield at, text[at:]


def _unescape(text: str, path: str, offset: int) -> str:
    if "\\" not in text:
        return text

    def replace(found: re.Match[str]) -> str:
        escaped = found.group(1)
        if not escaped.startswith("u"):
            return _NAMED.get(escaped, escaped)
        if not _HEX4.match(escaped):
            raise CorruptFileError(path, offset, "\\u and four hexadecimal digits", f"\\{escaped}")
        return chr(int(escaped[1:], 16))

    return _joined_surrogates(_ESCAPE.sub(replace, text))


def _joined_surrogates(text: str) -> str:
    """Characters beyond the basic plane are written as two escapes; a lone half is kept as it is."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escape_key(key: str) -> str:
    escaped = "".join("\\" + c if c in " =:" else _NAMED_BACK.get(c, c) for c in key)
    return _ascii("\\" + escaped if escaped[:1] in ("#", "!") else escaped)


def _escape_value(value: str) -> str:
    escaped = "".join(_NAMED_BACK.get(c, c) for c in value)
    return _ascii("\\" + escaped if escaped.startswith(" ") else escaped)


def _ascii(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04X}" for code in codes)
