"""What the headers of a column's pages say, compared with what the footer says of all of them.

No checksum covers the headers. Whoever decodes pages notices damage there; whoever copies them does not, and would leave a file
that nobody can read. So headers are summed up, as the footer has the sums. Fields of Parquet's Thrift structures that are read
here (Apache Parquet format, `parquet.thrift`)::

    ColumnMetaData        5 num_values  6 total_uncompressed_size, with headers  13 encoding_stats
    PageEncodingStats     1 page_type  2 encoding  3 count
    PageHeader            1 type  2 uncompressed_page_size  3 compressed_page_size  4 crc  5 data_page_header
                          7 dictionary_page_header  8 data_page_header_v2
    DataPageHeader        1 num_values  2 encoding  3 definition_level_encoding  4 repetition_level_encoding  5 statistics
    DictionaryPageHeader  1 num_values  2 encoding  3 is_sorted
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hudimeta.formats.parquet.thrift import VARINT, Fields, decode_struct, zigzag

__all__ = ["odd_headers"]

_TRUE, _FALSE, _I32, _STRUCT = 1, 2, 5, 12
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8
"""Fields of a header that say of which kind of page it is."""
_SECOND_KIND, _RUNS = 3, 3
"""The kind of pages of the second version, and the encoding of levels in those of the first."""
_STATISTICS, _IS_SORTED, _STATS = 5, 3, 13
_PLAIN_HEADER = re.compile(
    rb"\x15([\x00-\x7f])\x15(%b)\x15(%b)\x15%b"
    rb"(?:\x1c\x15(%b)\x15([\x00-\x7f])\x15\x06\x15\x06|\x3c\x15%b\x15([\x00-\x7f])[\x11\x12]?)\x00\x00" % ((VARINT,) * 5)
)
"""With a checksum, of data without statistics or of a dictionary, as most are: kind, sizes without and with compression, and of
data the number of values and the encoding, of a dictionary its encoding."""


@dataclass(frozen=True, slots=True)
class _Header:
    """Attributes: start: Of the page's content. plain, packed: Bytes of it without and with compression."""

    start: int
    kind: int
    plain: int
    packed: int
    values: int
    encoding: int


def odd_headers(pages: memoryview, column: Fields) -> tuple[str, str] | None:
    """What the footer tells of the headers of pages, and what they say; None where these agree.

    Args:
        pages: All of the column's, as Arrow writes them; their sizes are right. Of those of the second version it is not known.
        column: The metadata of the column, as `decode_footer` gives it.
    """
    at = size = values = 0
    kinds: Counter[tuple[int, int]] = Counter()
    while at < len(pages):
        try:
            header = _header(pages, at)
        except (KeyError, ValueError, TypeError) as error:
            return "the header of a page", f"an odd one {at} bytes into the pages ({error})"
        if header is None:
            return None
        size += header.start - at + header.plain
        values += header.values
        kinds[header.kind, header.encoding] += 1
        at = header.start + header.packed
    told: dict[str, tuple[Any, Any]] = {"values": (column[5][1], values), "bytes without compression": (column[6][1], size)}
    if _STATS in column:
        told["pages by kind and encoding"] = _counted(column[_STATS][1]), dict(kinds)
    return next(((f"{what}: {stated}", f"{found}") for what, (stated, found) in told.items() if stated != found), None)


def _header(pages: memoryview, at: int) -> _Header | None:
    """The header at a byte; None for one of the second version."""
    plain = _PLAIN_HEADER.match(pages, at)
    if plain is not None:
        kind, size, packed, count, encoding, of_dictionary = (0 if part is None else zigzag(part) for part in plain.groups())
        return _Header(plain.end(), kind, size, packed, count, encoding or of_dictionary)
    fields, start = decode_struct(pages, at)
    if (fields[1][1], fields.get(_DATA_2, (0,))[0]) == (_SECOND_KIND, _STRUCT):
        return None
    of = _DATA if _DATA in fields else _DICTIONARY
    kind, size, packed = _numbers(fields, 3, {4: (_I32,), of: (_STRUCT,)})
    inner: Fields = fields[of][1]
    if of == _DICTIONARY:
        _, encoding = _numbers(inner, 2, {_IS_SORTED: (_TRUE, _FALSE)})
        return _Header(start, kind, size, packed, 0, encoding)
    count, encoding, *levels = _numbers(inner, 4, {_STATISTICS: (_STRUCT,)})
    if levels != [_RUNS, _RUNS]:
        raise ValueError(f"levels encoded as {levels}")
    return _Header(start, kind, size, packed, count, encoding)


def _numbers(fields: Fields, count: int, others: dict[int, tuple[int, ...]]) -> list[int]:
    """The first fields of a structure, numbers of 32 bits; of others it has only some, of known kinds."""
    known = dict.fromkeys(range(1, count + 1), (_I32,)) | others
    strange = [number for number, (kind, _) in fields.items() if kind not in known.get(number, ())]
    if strange:
        raise ValueError(f"field {strange[0]} of kind {fields[strange[0]][0]}")
    return [fields[number][1] for number in range(1, count + 1)]


def _counted(stats: bytes) -> dict[tuple[int, int], int]:
    """How many pages there are of each kind and encoding."""
    listed: list[Fields] = decode_struct(b"\x19" + stats + b"\0")[0][1][1].values
    return {(one[1][1], one[2][1]): one[3][1] for one in listed}
