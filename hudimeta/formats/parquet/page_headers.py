"""The headers of a column's pages, and what the footer says of all of them.

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
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from hudimeta.formats.parquet.thrift import VARINT, Fields, decode_struct, zigzag

__all__ = ["HeaderSums", "PageHeader", "read_header", "read_strictly"]

_TRUE, _FALSE, _I32, _STRUCT = 1, 2, 5, 12
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8
"""Fields of a header that say of which kind of page it is."""
_SECOND_KIND, _RUNS = 3, 3
"""The kind of pages of the second version, and the encoding of levels in those of the first."""
_STATISTICS, _IS_SORTED, _STATS = 5, 3, 13
_SIZE, _CHECKSUM = 3, 4
_KIND, _ENCODING = rb"\x15([\x00\x04])", rb"\x15([\x00\x04\x06\x08\x0a\x0c\x0e\x10\x12])"
"""Those that there are, twice the number each, since they are not negative."""
_DATA_HEADER = rb"\x1c\x15(%b)%b\x15\x06\x15\x06" % (VARINT, _ENCODING)
_DICTIONARY_HEADER = rb"\x3c\x15%b%b[\x11\x12]?" % (VARINT, _ENCODING)
_PLAIN_HEADER = re.compile(
    rb"%b\x15(%b)\x15(%b)\x15(%b)(?:%b|%b)\x00\x00" % (_KIND, VARINT, VARINT, VARINT, _DATA_HEADER, _DICTIONARY_HEADER)
)
"""With a checksum, of data of the first version without statistics or of a dictionary, as most are: kind, sizes without and
with compression, checksum, and of data the number of values and the encoding, of a dictionary its encoding."""


class PageHeader(NamedTuple):
    """What a header says of its page.

    Attributes:
        start: Where the content begins, after the header.
        packed: Bytes of the content as it is stored.
        checksum: Of these bytes; None for a page without one.
        kind: The kind of page; None where the header was not read any further.
        plain: Bytes without compression.
        values: In a page of data; 0 for a dictionary.
        encoding: Of the values.
    """

    start: int
    packed: int
    checksum: int | None
    kind: int | None = None
    plain: int = 0
    values: int = 0
    encoding: int = 0


class HeaderSums:
    """The headers of a column's pages, summed up as the footer has it."""

    def __init__(self) -> None:
        self.size = self.values = 0
        self.kinds: Counter[tuple[int | None, int]] = Counter()

    def add(self, header: PageHeader, at: int) -> None:
        """Add a header that begins at a byte."""
        self.size += header.start - at + header.plain
        self.values += header.values
        self.kinds[header.kind, header.encoding] += 1

    def odd(self, column: Fields) -> Iterator[tuple[str, str]]:
        """What the footer tells otherwise than the headers do, and what they say; nothing where one is of the second version.

        Args:
            column: The metadata of the column, as `decode_footer` gives it.
        """
        told: dict[str, tuple[Any, Any]] = {
            "values": (column[5][1], self.values),
            "bytes without compression": (column[6][1], self.size),
        }
        if _STATS in column:
            told["pages by kind and encoding"] = _counted(column[_STATS][1]), dict(self.kinds)
        if all(kind is not None for kind, _ in self.kinds):
            yield from ((f"{what}: {stated}", f"{found}") for what, (stated, found) in told.items() if stated != found)


def read_header(pages: memoryview, at: int) -> PageHeader:
    """The header at a byte, of any writer's page: the sizes and the checksum are right, the rest only where it is a plain one.

    Raises:
        KeyError, TypeError, ValueError: No header.
    """
    return _plain(pages, at) or _sized(*decode_struct(pages, at))


def read_strictly(pages: memoryview, at: int) -> PageHeader:
    """The header at a byte, of a page as Arrow writes it: nothing is passed over, except in those of the second version.

    Raises:
        KeyError, TypeError, ValueError: No such header.
    """
    plain = _plain(pages, at)
    if plain is not None:
        return plain
    fields, start = decode_struct(pages, at)
    known = _sized(fields, start)
    if (fields[1][1], fields.get(_DATA_2, (0,))[0]) == (_SECOND_KIND, _STRUCT):
        return known
    of = _DATA if _DATA in fields else _DICTIONARY
    kind, size, packed = _numbers(fields, 3, {_CHECKSUM: (_I32,), of: (_STRUCT,)})
    inner: Fields = fields[of][1]
    if of == _DICTIONARY:
        _, encoding = _numbers(inner, 2, {_IS_SORTED: (_TRUE, _FALSE)})
        return PageHeader(start, packed, known.checksum, kind, size, 0, encoding)
    count, encoding, *levels = _numbers(inner, 4, {_STATISTICS: (_STRUCT,)})
    if levels != [_RUNS, _RUNS]:
        raise ValueError(f"levels encoded as {levels}")
    return PageHeader(start, packed, known.checksum, kind, size, count, encoding)


def _plain(pages: memoryview, at: int) -> PageHeader | None:
    """The header at a byte, if it is as most are."""
    found = _PLAIN_HEADER.match(pages, at)
    if found is None:
        return None
    kind, plain, packed, checksum, values, encoding, of_dictionary = found.groups(b"\0")
    return PageHeader(
        found.end(),
        zigzag(packed),
        zigzag(checksum) & 0xFFFFFFFF,
        kind[0] >> 1,
        zigzag(plain),
        zigzag(values),
        (encoding[0] | of_dictionary[0]) >> 1,
    )


def _sized(fields: Fields, start: int) -> PageHeader:
    """A header of which no more is known than the sizes and the checksum."""
    size, checksum = fields[_SIZE], fields.get(_CHECKSUM)
    if size[0] != _I32 or (checksum is not None and checksum[0] != _I32):
        raise ValueError("a size or a checksum that is no number of 32 bits")
    return PageHeader(start, size[1], None if checksum is None else checksum[1] & 0xFFFFFFFF)


def _numbers(fields: Fields, count: int, others: dict[int, tuple[int, ...]]) -> list[int]:
    """The first fields of a structure, numbers of 32 bits; of others it has only some, of known kinds."""
    known = dict.fromkeys(range(1, count + 1), (_I32,)) | others
    strange = [number for number, (kind, _) in fields.items() if kind not in known.get(number, ())]
    if strange:
        raise ValueError(f"field {strange[0]} of kind {fields[strange[0]][0]}")
    return [fields[number][1] for number in range(1, count + 1)]


@lru_cache(256)
def _counted(stats: bytes) -> dict[tuple[int, int], int]:
    """How many pages there are of each kind and encoding. Most columns say the same."""
    listed: list[Fields] = decode_struct(b"\x19" + stats + b"\0")[0][1][1].values
    return {(one[1][1], one[2][1]): one[3][1] for one in listed}
