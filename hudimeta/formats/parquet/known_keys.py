"""The bloom filter of a file's next version, made of the filter that the file has: hashing every key again is dear.

A filter tells nothing of the keys that it was made of, so it is taken over only with the checksum that was written beside it,
and only where it is, bit for bit, the filter that hashing all keys would give.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.formats.bloom import BloomFilter, TypeCode, size_of_filter
from hudimeta.formats.parquet.footer import BLOOM_CHECKSUM_KEY, ParquetFooter

__all__ = ["KnownKeys", "checksum_of"]


def checksum_of(text: str) -> str:
    """What the footer says of the text of a bloom filter."""
    return f"{zlib.crc32(text.encode()):08x}"


@dataclass(frozen=True)
class KnownKeys:
    """The record keys of rows to write, told by a filter of one row over some of them.

    Attributes:
        text: The filter, base64; made of keys of these rows and of no others.
        added: The keys that it was not made of.
    """

    text: str
    added: pa.ChunkedArray

    @classmethod
    def of(cls, footer: ParquetFooter, added: pa.ChunkedArray) -> KnownKeys | None:
        """Those of a file and some more; None where its filter cannot be trusted."""
        text = footer.bloom_text
        if text is None or footer.key_value.get(BLOOM_CHECKSUM_KEY) != checksum_of(text):
            return None
        return cls(text, added)

    def filter_text(self, kind: TypeCode, capacity: int, p: float, count: int) -> str | None:
        """Base64 of the filter over all keys.

        Args:
            kind: Its type.
            capacity: Keys that it is sized for.
            p: Share of foreign keys that may pass.
            count: How many keys that are.

        Returns:
            None where the known filter has another size.
        """
        known = BloomFilter.from_base64(self.text)
        if len(known.rows) != 1 or (known.bit_count, known.hash_count) != size_of_filter(capacity, p):
            return None
        if not len(self.added) and known.type_code == kind:
            return self.text
        whole = known.with_keys(self.added)
        return (whole if kind == "SIMPLE" else whole.as_dynamic(capacity, count)).to_base64()
