"""The seal in the footers that hudimeta writes: entries of the key/value metadata, which other readers pass over.

=========================  ===========================================================================================
key                        value
=========================  ===========================================================================================
`hudimeta.footer.crc32`    CRC-32 of the footer, 8 hexadecimal digits, computed with these digits as zeros
`hudimeta.index.crc32`     CRC-32 of the bytes between the last page and the footer, which are the page indexes
`hudimeta.file`            the name under which the file was written
=========================  ===========================================================================================

Pages carry checksums of their own, so that each byte of a file is covered but those of the pages' headers, where Arrow tells,
a wrong number of rows, or one of values (see `page_counts`). Footers of others have no seal. What is known of them twice is
compared: the names of the columns stand in a second schema too, and the file's name in a column of Hudi's, whose bounds the
footer has.

Apache Hudi from 1.1 on puts row groups of other files together, and takes over the entries of their footers, ours among them,
which mean nothing there. Such a file names another writer, and has an entry in which that says whose row groups they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.crc32 import crc32

__all__ = [
    "FILE_KEY",
    "FOOTER_KEY",
    "INDEX_KEY",
    "blank_entries",
    "check_contents",
    "check_name",
    "check_seal",
    "entry_in",
    "named_in",
    "own_entries",
    "sealed_end",
    "sealed_file",
]

FOOTER_KEY, INDEX_KEY, FILE_KEY = "hudimeta.footer.crc32", "hudimeta.index.crc32", "hudimeta.file"
_OURS = b"hudimeta."
"""How our entries begin."""
_BLANK = "0" * 8
_TAIL = 8
"""Bytes after the footer: its length and the magic."""
_STRING = 0x18
"""Header of a Thrift field of type binary whose number is one above that of the field before it."""
_NAME_COLUMN = "_hoodie_file_name"
_NAME_COLUMN_AT = 4
_SCHEMA_KEYS = (b"parquet.avro.schema", b"org.apache.spark.sql.parquet.row.metadata")
"""Entries in which Hudi's writers state the columns once more, as JSON."""
_COPIED_KEY, _COPIER = b"original.created.by", "parquet-mr"
"""What Java's writer of copied row groups says of their writer, and how its own name begins."""
_INNER = ("type", "items", "values", "elementType", "keyType", "valueType")


def blank_entries(name: str | None) -> dict[str, str]:
    """The entries of a footer that `sealed_end` has yet to seal.

    Args:
        name: Of the file, without its folder, if it has one.
    """
    return {FOOTER_KEY: _BLANK, INDEX_KEY: _BLANK, **({FILE_KEY: name} if name else {})}


def sealed_end(end: bytes) -> bytes:
    """The end of a file with its checksums.

    Args:
        end: From after the last page on, with the blank entries in its footer.
    """
    start = len(end) - _TAIL - int.from_bytes(end[-_TAIL:-4], "little")
    footer = bytearray(end[start:-_TAIL])
    for key, data in ((INDEX_KEY, end[:start]), (FOOTER_KEY, footer)):
        at = footer.rindex(_before(key)) + len(_before(key))  # a text among the bounds may look the same
        footer[at : at + len(_BLANK)] = f"{crc32(data):08x}".encode()
    return end[:start] + bytes(footer) + end[-_TAIL:]


def sealed_file(content: bytes) -> bytes:
    """A whole file with its checksums.

    Args:
        content: Without page indexes, and with the blank entries in its footer.
    """
    start = len(content) - _TAIL - int.from_bytes(content[-_TAIL:-4], "little")
    return content[:start] + sealed_end(content[start:])


def check_seal(end: bytes, path: str, offset: int, start: int = 0) -> bool:
    """Compare a footer with its seal, before anybody looks into it; False when it has none of its own.

    Args:
        end: The end of the file.
        path: For errors.
        offset: Where the footer begins in the file.
        start: Where it begins in `end`.

    Raises:
        CorruptFileError: Its bytes changed.
    """
    at = end.rfind(_before(FOOTER_KEY), start) - start
    if at < 0:
        return False
    at += len(_before(FOOTER_KEY))
    footer = memoryview(end)[start:-_TAIL]
    stated = bytes(footer[at : at + len(_BLANK)])
    checksum = crc32(footer[at + len(_BLANK) :], crc32(_BLANK.encode(), crc32(footer[:at])))
    if stated == f"{checksum:08x}".encode():
        return True
    if _may_be_copied(end, start):
        return False
    raise CorruptFileError(path, offset, f"a footer with the checksum {stated.decode(errors='replace')}", f"{checksum:08x}")


def own_entries(metadata: Any) -> dict[bytes, bytes]:
    """The key/value metadata of a file, without what its writer took over from files of ours.

    Args:
        metadata: pyarrow's `FileMetaData`.
    """
    entries: dict[bytes, bytes] = metadata.metadata or {}
    return {k: v for k, v in entries.items() if not k.startswith(_OURS)} if _is_copied(metadata) else entries


def _is_copied(metadata: Any) -> bool:
    return (metadata.created_by or "").startswith(_COPIER) and _COPIED_KEY in (metadata.metadata or {})


def _may_be_copied(end: bytes, start: int) -> bool:
    """Whether a footer that is not what its seal says is one that another writer made."""
    if end.find(_COPIED_KEY, start) < 0 or end.find(_COPIER.encode(), start) < 0:
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _is_copied(pq.read_metadata(pa.BufferReader(end)))
    except (pa.ArrowException, OSError):
        return False


def named_in(end: bytes, start: int = 0) -> dict[bytes, bytes]:
    """The entry of the file's name, of a footer whose seal was found to be right; none when it has none. See `entry_in`."""
    found = entry_in(end, FILE_KEY, start)
    return {} if found is None else {FILE_KEY.encode(): found}


def entry_in(end: bytes, name: str, start: int = 0) -> bytes | None:
    """The value of an entry of a footer whose seal was found to be right, without decoding the others; None without it.

    Args:
        end: The end of the file.
        name: The entry's key.
        start: Where the footer begins in `end`.
    """
    key = name.encode()
    at = end.rfind(key + bytes((_STRING,)), start)
    if at < 0:
        return None
    at += len(key) + 1
    length, shift = end[at] & 0x7F, 7
    while end[at] & 0x80:
        at += 1
        length, shift = length | (end[at] & 0x7F) << shift, shift + 7
    return bytes(end[at + 1 : at + 1 + length])


def check_name(entries: Mapping[bytes, bytes], metadata: Any, path: str, offset: int) -> None:
    """Refuse a file that was written under another name: an older one, or one of another file group.

    Args:
        entries: Key/value metadata.
        metadata: pyarrow's `FileMetaData`.
        path: Of the file.
        offset: Of the footer.
    """
    name = path.rpartition("/")[2]
    stated = entries.get(FILE_KEY.encode())
    found = stated.decode(errors="replace") if stated is not None else _name_in_rows(metadata)
    if found is not None and "." in name and found != name:
        raise CorruptFileError(path, offset, f"the file {name}", f"the content of {found}")


def check_contents(entries: Mapping[bytes, bytes], metadata: Any, path: str, offset: int, *, sealed: bool) -> None:
    """Compare what a footer says twice: the number of rows, and in files of others the columns."""
    if not sealed and any(key.encode() in entries for key in (FOOTER_KEY, INDEX_KEY, FILE_KEY)):
        raise CorruptFileError(path, offset, f"the entry {FOOTER_KEY} in the footer", "none")
    rows = sum(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    if rows != metadata.num_rows:
        raise CorruptFileError(path, offset, f"{metadata.num_rows} rows in the row groups", rows)
    if sealed:
        return
    for number in range(metadata.num_columns if metadata.num_row_groups else 0):
        chunk, column = metadata.row_group(0).column(number), metadata.schema.column(number)
        if (chunk.path_in_schema, chunk.physical_type) != (column.path, column.physical_type):
            raise CorruptFileError(path, offset, f"pages of column {column.path}", f"pages of {chunk.path_in_schema}")
    for key in _SCHEMA_KEYS:
        if key in entries:
            _compare_names(entries[key], metadata.schema, path, offset)


def _compare_names(text: bytes, schema: Any, path: str, offset: int) -> None:
    """Hold the names of a Parquet schema against those of the same schema as JSON."""
    try:
        stated = json.loads(text)
        top = [field["name"] for field in stated["fields"]]
    except (ValueError, KeyError, TypeError):
        raise CorruptFileError(path, offset, "a record schema in the footer", repr(text[:60])) from None
    paths = [(schema.column(number).path, schema.column(number).name) for number in range(len(schema))]
    # A plain column may have dots in its name; nothing but its leaf's name tells it from a field of a struct.
    columns = {name if whole == name else whole.partition(".")[0] for whole, name in paths}
    known = {part for whole, name in paths for part in (name, *whole.split("."))}
    odd = (set(top) ^ columns) or (_field_names(stated) - known)
    if odd:
        raise CorruptFileError(path, offset, "the columns of the footer's own schema", f"a difference in {sorted(odd)[:3]}")


def _field_names(schema: Any) -> set[str]:
    """Names of the fields of all records in a schema of Avro's or Spark's."""
    names: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            fields = node.get("fields")
            names.update(field["name"] for field in fields or () if isinstance(field, dict))
            waiting += [node[key] for key in _INNER if key in node] + list(fields or ())
    return names


def _name_in_rows(metadata: Any) -> str | None:
    """The one name that all rows state, by the bounds of Hudi's column; None when they do not tell."""
    if metadata.num_columns <= _NAME_COLUMN_AT:
        return None
    column, names = metadata.schema.column(_NAME_COLUMN_AT), set[str]()
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(_NAME_COLUMN_AT)
        # Asked for statistics of another type than the column's, pyarrow would end the process.
        if (chunk.path_in_schema, chunk.physical_type) != (_NAME_COLUMN, column.physical_type):
            return None
        if chunk.statistics is None or not chunk.statistics.has_min_max:
            return None
        names.update((str(chunk.statistics.min), str(chunk.statistics.max)))
    found = next(iter(names), "")
    return found if len(names) == 1 and "." in found else None


def _before(key: str) -> bytes:
    """What stands before the value of an entry of 8 characters."""
    return key.encode() + bytes((_STRING, len(_BLANK)))
