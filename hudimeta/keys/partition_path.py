r"""Partition paths of plain values: null, URL encoding, hive style.

A value v of field f becomes `__HIVE_DEFAULT_PARTITION__` when null or empty, else its text, URL encoded when the table does so;
then `f=` in front in hive style. Fields are joined with `/`. URL encoding writes `%XX` for control characters, 0x7F and
``"#%'*/:=?\{[]^`` and leaves all else, blanks and letters of any alphabet, as it is; the field's name is never encoded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.bulk_texts import coded, distinct
from hudimeta.formats.plain_arrays import array_of, fill_null, scalar_of
from hudimeta.keys.columns import Rows, column, first_row, text_of

__all__ = [
    "DEFAULT_PARTITION",
    "LEGACY_DEFAULT_PARTITION",
    "check_new_partition",
    "escape",
    "finish_path",
    "is_readable_by_hudi",
    "simple_segment",
    "unescape",
]

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
LEGACY_DEFAULT_PARTITION = "default"
"""What releases before 0.12 wrote for null."""

PURPOSE = "partition path"

_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPED_RE2 = r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]"""
_CODE = re.compile("%([0-9A-Fa-f]{2})")
_BAD_PATH_RE2 = r"(^|/)(\.|%2[eE]){0,2}(/|$)|^\.hoodie(/|$)|\x00"
"""Parts that name no folder below the table (web stores take `%2e` for a dot), Hudi's own folder, and what no path can hold."""
_MOST_NAME_BYTES = 255
"""Longer names of folders neither local disks nor HDFS have."""


def escape(value: str) -> str:
    """URL-encode one value as Hudi does; the inverse of `unescape`."""
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", value)


def unescape(text: str) -> str:
    """The value behind an encoded text; a `%` that begins no code stays."""
    return _CODE.sub(lambda m: chr(int(m[1], 16)), text)


def escape_many(values: pa.Array) -> pa.Array:
    """`escape` over an array: most values need nothing, the rest are few distinct ones."""
    import pyarrow.compute as pc

    needs = pc.match_substring_regex(values, _ESCAPED_RE2)
    if not pc.any(needs).as_py():
        return values
    coded = values.dictionary_encode()
    return array_of([escape(v) for v in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def simple_segment(rows: Rows, field: str, *, hive: bool, encode: bool, consistent_timestamp: bool = False) -> pa.Array:
    """The part of the path that a plain field gives, one text per row, never null.

    Raises:
        SchemaMismatch: The column is missing or of a nested type.
    """
    import pyarrow.compute as pc

    values, codes = distinct(column(rows, field, PURPOSE))
    text = fill_null(text_of(values, field, consistent_timestamp), "")
    text = pc.if_else(pc.equal(text, scalar_of("")), scalar_of(DEFAULT_PARTITION), text)
    segment = decorate(text, field, hive=hive, encode=encode)
    return segment if codes is None else segment.take(codes)


def decorate(text: pa.Array, field: str, *, hive: bool, encode: bool) -> pa.Array:
    """URL encoding, then the hive prefix."""
    import pyarrow.compute as pc

    if encode:
        text = escape_many(text)
    return pc.binary_join_element_wise(scalar_of(f"{field}="), text, scalar_of("")) if hive else text


def _has_long_name(path: str | None) -> bool:
    return path is not None and any(len(name.encode()) > _MOST_NAME_BYTES for name in path.split("/"))


def _shown(path: str) -> str:
    return repr(path if len(path) <= _MOST_NAME_BYTES else f"{path[:40]}…{path[-40:]}")


def finish_path(segments: Sequence[pa.Array], fields: Sequence[str]) -> pa.StringArray:
    """Join the segments and refuse paths that would leave the table or fall together on a file system.

    Raises:
        SchemaMismatch: A segment is empty, `.` or `..`: such a folder is not below the table, or not a folder of its own. Or
            the path is in `.hoodie`, or holds the character NUL, or a name is too long for a folder.
    """
    import pyarrow.compute as pc

    paths = segments[0] if len(segments) == 1 else pc.binary_join_element_wise(*segments, scalar_of("/"))
    codes = coded(paths)  # there are far fewer paths than rows
    bad = first_row(pc.match_substring_regex(codes.dictionary, _BAD_PATH_RE2))
    if bad is None and (pc.max(pc.binary_length(codes.dictionary)).as_py() or 0) > _MOST_NAME_BYTES:
        bad = next((at for at, path in enumerate(codes.dictionary.to_pylist()) if _has_long_name(path)), None)
    if bad is not None:
        row = pc.index(codes.indices, bad).as_py()
        raise SchemaMismatch(
            ", ".join(fields),
            f"{_shown(paths[row].as_py())} as a partition path in row {row}",
            f"folder names without empty, '.' or '..' parts, outside of .hoodie, of {_MOST_NAME_BYTES} bytes each at most",
            "Change the value, or create the table with hoodie.datasource.write.partitionpath.urlencode=true.",
        )
    return paths


def is_readable_by_hudi(path: str) -> bool:
    """False for a partition that would keep Apache Hudi from the whole table.

    Java takes what stands before a colon in the first folder's name for the scheme of a URI: Hudi cannot make such a partition.
    Where a folder's name begins with `=` it looks for a column without a name: Hudi makes such a partition, and fails then.
    """
    return ":" not in path.partition("/")[0] and not path.startswith("=") and "/=" not in path


def check_new_partition(path: str) -> None:
    """Refuse a partition that would keep Apache Hudi from the whole table; those that are there already are left as they are.

    Raises:
        SchemaMismatch: See `is_readable_by_hudi`.
    """
    if not is_readable_by_hudi(path):
        raise SchemaMismatch(
            "_hoodie_partition_path",
            f"{path!r}",
            "no colon in the first folder's name and none that begins with '=': Apache Hudi could not read the table any more",
            "Change the value, or create the table with hoodie.datasource.write.partitionpath.urlencode=true.",
        )
