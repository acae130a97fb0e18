"""The bloom filter of a file, made of the filters of the files that its rows come from: hashing every key again is dear.

A filter tells nothing of the keys that it was made of, so it is taken over only with the checksum that was written beside it.
Filters of one size become one row, where that is, bit for bit, the row that hashing all keys would give. That of one file takes
more keys, where it has room for them. Filters of files that are put together become the rows of a dynamic one. It lets as many
foreign keys pass as they did, and asks each row for a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudimeta.formats.bloom import BloomFilter, TypeCode, size_of_filter
from hudimeta.formats.crc32 import crc32
from hudimeta.formats.parquet.footer import BLOOM_CHECKSUM_KEY, ParquetFooter
from hudimeta.formats.parquet.seal import FOOTER_KEY

__all__ = ["FileKeys", "KnownKeys", "checksum_of"]

_MOST_ROWS = 16
"""Of a filter that is put together. A key is looked for in one row after the other, and by Apache Hudi hashed for each."""
_MOST_ROOM, _MOST_HASHES = 2, 1.5
"""So many times the bits, and the hashes of a key, a filter may have of one that is made anew."""
_BITS_OF_A_CHARACTER = 6
"""In base64."""
_MOST_TIMES = 4
"""So many times the size of one that is made anew it may have, since whoever opens the file reads it with the footer."""


def checksum_of(text: str) -> str:
    """What the footer says of the text of a bloom filter."""
    return f"{crc32(text.encode()):08x}"


@dataclass(frozen=True)
class FileKeys:
    """The keys of a file whose rows are written again.

    Attributes:
        text: A filter over these keys and no others, base64; None where there is none that can be trusted.
        read: Reads the keys; None where nobody would.
        count: How many they are, where that is known.
        bounds: The smallest and the greatest of them, where these are known.
    """

    text: str | None
    read: Callable[[], pa.ChunkedArray] | None = None
    count: int = 0
    bounds: tuple[str, str] | None = None

    @classmethod
    def of(cls, footer: ParquetFooter, read: Callable[[], pa.ChunkedArray] | None = None) -> FileKeys:
        """Those of a file with a footer; one with a seal is believed what it says of them."""
        text, low, high = footer.bloom_text, footer.min_key, footer.max_key
        trusted = text is not None and footer.key_value.get(BLOOM_CHECKSUM_KEY) == checksum_of(text)
        told = (low, high) if FOOTER_KEY in footer.key_value and low is not None and high is not None else None
        return cls(text if trusted else None, read, footer.num_rows, told)

    def filter_of(self, bits: int, hashes: int, *, exactly: bool = True) -> BloomFilter | None:
        """The filter, if it has one row of such a size.

        Args:
            bits: Of the row.
            hashes: Of a key.
            exactly: Some more of either will not do.
        """
        size = None if self.text is None else BloomFilter.size_in(self.text)
        if self.text is None or size is None or (exactly and size != (bits, hashes)):
            return None
        if not (bits <= size[0] <= _MOST_ROOM * bits and hashes <= size[1] <= _MOST_HASHES * hashes):
            return None
        found = BloomFilter.from_base64(self.text)
        return found if len(found.rows) == 1 else None


@dataclass(frozen=True)
class KnownKeys:
    """The record keys of rows to write.

    Attributes:
        files: The files whose rows they are, all of them.
        added: Keys of other rows.
        side_by_side: Whether their filters may become the rows of one.
    """

    files: Sequence[FileKeys]
    added: pa.ChunkedArray = field(default_factory=lambda: pa.chunked_array([], pa.string()))
    side_by_side: bool = False

    @property
    def told(self) -> tuple[int, str, str] | None:
        """How many they are, the smallest and the greatest, if the footers of the files tell."""
        import pyarrow.compute as pc

        bounds = [one.bounds for one in self.files if one.count]
        if not bounds or None in bounds:
            return None
        if len(self.added):
            more = pc.min_max(self.added).as_py()
            bounds.append((more["min"], more["max"]))
        low, high = zip(*(one for one in bounds if one is not None), strict=True)
        return sum(one.count for one in self.files) + len(self.added), min(low), max(high)

    def filter_text(self, kind: TypeCode, capacity: int, p: float, count: int) -> str | None:
        """Base64 of the filter over all keys.

        Args:
            kind: Its type.
            capacity: Keys that it is sized for.
            p: Share of foreign keys that may pass.
            count: How many keys that are.

        Returns:
            None where no filter has that size, or one has another size and its keys are not known.
        """
        beside = self._side_by_side(capacity, p) if self.side_by_side and kind == "DYNAMIC_V0" else None
        if beside is not None:
            return beside.to_base64()
        size, alone = size_of_filter(capacity, p, count), len(self.files) == 1
        filters = [one.filter_of(*size, exactly=not alone) for one in self.files]
        known = [one for one in filters if one is not None]
        unread = [one for one, found in zip(self.files, filters, strict=True) if found is None]
        readers = [one.read for one in unread if one.read is not None]
        if not known or len(readers) < len(unread):
            return None
        unknown = [self.added, *(read() for read in readers)]
        more = pa.chunked_array([chunk for keys in unknown for chunk in keys.chunks], pa.string())
        if not len(more) and alone and known[0].type_code == kind:
            return self.files[0].text
        whole = BloomFilter.united(known, more)
        return (whole if kind == "SIMPLE" else whole.as_dynamic(capacity, count)).to_base64()

    def _side_by_side(self, capacity: int, p: float) -> BloomFilter | None:
        """The filters of all files as rows of one; None where that is too large, or where one of them is not to be trusted."""
        texts = [one.text for one in self.files if one.text is not None]
        most = _MOST_TIMES * size_of_filter(capacity, p)[0] / _BITS_OF_A_CHARACTER
        if len(texts) < len(self.files) or len(self.added) or len(texts) > _MOST_ROWS or sum(map(len, texts)) > most:
            return None
        found = [BloomFilter.from_base64(text) for text in texts]
        return BloomFilter.side_by_side(found) if sum(len(one.rows) for one in found) <= _MOST_ROWS else None
