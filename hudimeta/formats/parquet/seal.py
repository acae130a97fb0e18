"""The seal in the footers that hudimeta writes: entries of the key/value metadata, which other readers pass over.

=========================  ===========================================================================================
key                        value
=========================  ===========================================================================================
`hudimeta.footer.crc32`    CRC-32 of the footer, 8 hexadecimal digits, computed with these digits as zeros
`hudimeta.index.crc32`     CRC-32 of the bytes between the last page and the footer, which are the page indexes
`hudimeta.file`            the name under which the file was written
=========================  ===========================================================================================

Pages carry checksums of their own, so that each byte of a file is covered but those of the pages' headers, where Arrow or a
wrong number of rows tells. Footers of others have no seal. What is known of them twice is compared: the names of the columns
stand in the Avro schema too, and the file's name in a column of Hudi's, whose bounds the footer has.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from hudimeta.errors import CorruptFileError

__all__ = ["FILE_KEY", "FOOTER_KEY", "INDEX_KEY", "blank_entries", "check_contents", "check_name", "check_seal", "sealed_end"]

FOOTER_KEY, INDEX_KEY, FILE_KEY = "hudimeta.footer.crc32", "hudimeta.index.crc32", "hudimeta.file"
_BLANK = "0" * 8
_TAIL = 8
"""Bytes behind the footer: its length and the magic."""
_STRING = 0x18
"""Header of a Thrift field of type binary whose number is one above that of the field before it."""
_NAME_COLUMN = "_hoodie_file_name"
_NAME_COLUMN_AT = 4
_AVRO_KEY = b"parquet.avro.schema"


def blank_entries(name: str | None) -> dict[str, str]:
    """The entries of a footer that `sealed_end` has yet to seal. Args: name: Of the file, without its folder, if it has one."""
    return {FOOTER_KEY: _BLANK, INDEX_KEY: _BLANK, **({FILE_KEY: name} if name else {})}


def sealed_end(end: bytes) -> bytes:
    """The end of a file with its checksums. Args: end: From behind the last page on, with the blank entries in its footer."""
    start = len(end) - _TAIL - int.from_bytes(end[-_TAIL:-4], "little")
    footer = bytearray(end[start:-_TAIL])
    for key, data in ((INDEX_KEY, end[:start]), (FOOTER_KEY, footer)):
        at = footer.index(_before(key)) + len(_before(key))
        footer[at : at + len(_BLANK)] = f"{zlib.crc32(data):08x}".encode()
    return end[:start] + bytes(footer) + end[-_TAIL:]


def check_seal(footer: bytes, path: str, offset: int) -> bool:
    """Compare a footer with its seal, before anybody looks into it; False when it has none.

    Args:
        footer: Its bytes. path: For errors. offset: Where it begins in the file.

    Raises:
        CorruptFileError: Its bytes changed.
    """
    at = footer.find(_before(FOOTER_KEY))
    if at < 0:
        return False
    at += len(_before(FOOTER_KEY))
    stated = footer[at : at + len(_BLANK)]
    checksum = zlib.crc32(footer[at + len(_BLANK) :], zlib.crc32(_BLANK.encode(), zlib.crc32(footer[:at])))
    if stated != f"{checksum:08x}".encode():
        raise CorruptFileError(path, offset, f"a footer with the checksum {stated.decode(errors='replace')}", f"{checksum:08x}")
    return True


def check_name(entries: Mapping[bytes, bytes], metadata: Any, path: str, offset: int) -> None:
    """Refuse a file that was written under another name: an older one, or one of another file group.

    Args:
        entries: Key/value metadata. metadata: pyarrow's `FileMetaData`. path: Of the file. offset: Of the footer.
    """
    name = path.rpartition("/")[2]
    stated = entries.get(FILE_KEY.encode())
    try:
        found = stated.decode(errors="replace") if stated is not None else _name_in_rows(metadata)
    except (ValueError, OSError) as error:
        raise CorruptFileError(path, offset, f"readable statistics of {_NAME_COLUMN}", error) from error
    if found is not None and "." in name and found != name:
        raise CorruptFileError(path, offset, f"the file {name}", f"the content of {found}")


def check_contents(entries: Mapping[bytes, bytes], metadata: Any, path: str, offset: int, *, sealed: bool) -> None:
    """Compare what a footer says twice: the number of rows, and in files of others the names of the columns."""
    if not sealed and any(key.encode() in entries for key in (FOOTER_KEY, INDEX_KEY, FILE_KEY)):
        raise CorruptFileError(path, offset, f"the entry {FOOTER_KEY} in the footer", "none")
    rows = sum(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    if rows != metadata.num_rows:
        raise CorruptFileError(path, offset, f"{metadata.num_rows} rows in the row groups", rows)
    schema = entries.get(_AVRO_KEY)
    if schema is None or sealed:
        return
    try:
        stated = [field["name"] for field in json.loads(schema)["fields"]]
    except (ValueError, KeyError, TypeError):
        raise CorruptFileError(path, offset, "an Avro record schema in the footer", repr(schema[:60])) from None
    names = _top_names(metadata.schema)
    if sorted(stated) != sorted(names):
        odd = sorted(set(stated) ^ set(names))[:3]
        raise CorruptFileError(path, offset, "the columns of the footer's Avro schema", f"a difference in {odd}")


def _top_names(schema: Any) -> list[str]:
    """Columns of a Parquet schema; a leaf's path begins with its column."""
    return list(dict.fromkeys(_top(schema.column(number).path, schema, number) for number in range(len(schema))))


def _top(path: str, schema: Any, number: int) -> str:
    leaf = schema.column(number)
    # A plain column may have dots in its name; nothing but its depth tells it from a field of a struct.
    return str(leaf.name) if path == leaf.name else path.partition(".")[0]


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
