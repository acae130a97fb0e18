r"""Rows as JSON texts: the images of change data capture, rendered column by column.

Apache Hudi prints an image in one of two ways, depending on where it comes from, and so do we:

====================  ==========================================  =========================================
\                     row of a data file (`row_images`)           record of a change file (`record_images`)
====================  ==========================================  =========================================
columns               all of the table, meta columns included     data columns of the table
nulls                 left out                                    `null`
spaces                none                                        after `,` and `:`
binary                base64                                      text, one character for each byte
timestamp             microseconds since 1970                     the stored number
====================  ==========================================  =========================================

In both a date is the number of days since 1970, a decimal a number of full scale, a number what Java prints, NaN and the
infinities are texts, a struct or map is an object (keys that are no text become their text) and a list an array.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import UnsupportedFeature
from hudimeta.schema import list_runs
from hudimeta.schema.java_text import java_text

__all__ = ["record_images", "row_images"]

_SHORT_ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_FIRST_PRINTABLE = 32
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)

_Bytes = npt.NDArray[np.uint8]
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Style:
    """How objects are printed: between members, after a name, whether nulls are members, and what binary becomes."""

    comma: str
    colon: str
    shows_nulls: bool
    micros: bool
    binary: Callable[[pa.Array], pa.Array]


def row_images(rows: pa.RecordBatch) -> pa.StringArray:
    """Each row as the JSON text that Hudi makes of a row of a data file; see the module's table.

    Raises:
        UnsupportedFeature: A column of a type that no Hudi table has.
    """
    names = rows.schema.names
    return _object(names, rows.columns, rows.num_rows, _Style(",", ":", False, True, _base64))


def record_images(records: pa.StructArray) -> pa.StringArray:
    """Each record as the JSON text that Hudi makes of an image in a change file, null for null; see the module's table."""
    return _text(records, _Style(", ", ": ", True, False, _bytes_as_text))


def _text(values: pa.Array, style: _Style) -> pa.Array:
    """JSON text of each value; null stays null."""
    import pyarrow.compute as pc

    kind, types = values.type, pa.types
    if types.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if types.is_dictionary(kind):
        return _text(values.dictionary_decode(), style)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _quoted(values.cast(pa.string()))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _quoted(style.binary(values.cast(pa.binary())))
    if types.is_floating(kind):
        text = java_text(values)
        return pc.if_else(pc.is_finite(values), text, _joined('"', text, '"'))
    if types.is_timestamp(kind) and style.micros:
        return values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(pa.string())
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        number = pa.int32() if kind.bit_width == pa.int32().bit_width else pa.int64()
        return values.cast(number).cast(pa.string())
    if types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        objects = _object(names, values.flatten(), len(values), style)
        return pc.if_else(values.is_valid(), objects, pa.scalar(None, pa.string()))
    if types.is_map(kind):
        return _map(values, style)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        offsets, inner = list_runs(values, "image")
        parts = pc.fill_null(_text(inner, style), "null")
        return _bracketed(values, np.diff(np.frombuffer(offsets, np.int32)), parts, style, "[]")
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return java_text(values)
    raise UnsupportedFeature(f"a change image with a column of type {kind}")


def _object(names: Sequence[str], columns: Sequence[pa.Array], rows: int, style: _Style) -> pa.Array:
    """One object per row."""
    import pyarrow.compute as pc

    members = []
    for name, column in zip(names, columns, strict=True):
        text = _text(column, style)
        if style.shows_nulls:
            text = pc.fill_null(text, "null")
        members.append(pc.fill_null(_joined(json.dumps(name, ensure_ascii=False) + style.colon, text, style.comma), ""))
    if not members:
        return pa.array(["{}"] * rows, pa.string())
    # Every member ends in a comma: the last one is cut off. (Joining with nulls skipped loses rows that have nothing else.)
    joined = pc.utf8_slice_codeunits(_joined(*members), 0, -len(style.comma))
    return _joined("{", joined, "}")


def _map(values: pa.Array, style: _Style) -> pa.Array:
    import pyarrow.compute as pc

    offsets, entries = list_runs(values, "image")
    counts = np.diff(np.frombuffer(offsets, np.int32)).astype(np.int64)
    keys, items = entries.flatten()
    names, parts = _text(keys, style), _text(items, style)
    if not pa.types.is_string(keys.type):
        names = _joined('"', names, '"')
    if style.shows_nulls:
        parts = pc.fill_null(parts, "null")
    members = _joined(names, style.colon, parts)
    if members.null_count:
        kept = members.is_valid().to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(len(counts)), counts)[kept]
        members, counts = members.drop_null(), np.bincount(owners, minlength=len(counts))
    return _bracketed(values, counts, members, style, "{}")


def _bracketed(values: pa.Array, counts: npt.NDArray[Any], parts: pa.Array, style: _Style, brackets: str) -> pa.Array:
    """The parts of each value joined and put into brackets; null where the value is null."""
    import pyarrow.compute as pc

    offsets = pa.array(np.r_[0, np.cumsum(counts)].astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, parts), style.comma)
    return pc.if_else(values.is_valid(), _joined(brackets[0], joined, brackets[1]), pa.scalar(None, pa.string()))


def _joined(*parts: Any) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")


def _quoted(text: pa.Array) -> pa.Array:
    """Texts as JSON strings: quotes, backslashes and control characters escaped."""
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
        text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
        if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
            for code in range(_FIRST_PRINTABLE):
                text = pc.replace_substring(text, chr(code), _SHORT_ESCAPES.get(code, f"\\u{code:04X}"))
    return _joined('"', text, '"')


# Binary


def _runs(values: pa.Array) -> tuple[_Bytes, _Counts]:
    """All bytes of binary values one after the other, and how many each value has (null: none)."""
    import pyarrow.compute as pc

    values = pc.fill_null(values, b"")
    if not len(values):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return data, np.diff(offsets).astype(np.int64)


def _strings(data: _Bytes, lengths: _Counts, values: pa.Array) -> pa.Array:
    """Strings of the given lengths cut from `data`, null where `values` is."""
    import pyarrow.compute as pc

    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int32)
    made = pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data)))
    return pc.if_else(values.is_valid(), made, pa.scalar(None, pa.string()))


def _bytes_as_text(values: pa.Array) -> pa.Array:
    """Each byte as the character of that number (ISO-8859-1), in UTF-8: one byte below 128, two from there on."""
    data, counts = _runs(values)
    wide = data >= 0x80
    ends = np.cumsum(1 + wide)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    out[ends - 1] = np.where(wide, 0x80 | (data & 0x3F), data)
    out[ends[wide] - 2] = 0xC0 | (data[wide] >> 6)
    borders = np.r_[0, ends][np.r_[0, np.cumsum(counts)]]
    return _strings(out, np.diff(borders), values)


def _base64(values: pa.Array) -> pa.Array:
    """Standard alphabet, padded; every value padded to whole groups of three bytes, then all looked up at once."""
    data, counts = _runs(values)
    groups = -(-counts // 3)
    padded = np.zeros(int(groups.sum()) * 3, np.uint8)
    begins = np.r_[0, np.cumsum(groups * 3)][:-1]
    padded[np.repeat(begins - np.r_[0, np.cumsum(counts)][:-1], counts) + np.arange(len(data))] = data
    a, b, c = (padded[n::3].astype(np.uint32) for n in range(3))
    bits = a << 16 | b << 8 | c
    text = np.stack([_BASE64[bits >> shift & 0x3F] for shift in (18, 12, 6, 0)], axis=1).reshape(-1)
    ends, missing = np.cumsum(groups * 4), groups * 3 - counts
    text[ends[missing >= 1] - 1] = ord("=")
    text[ends[missing == 2] - 2] = ord("=")
    return _strings(text, groups * 4, values)
