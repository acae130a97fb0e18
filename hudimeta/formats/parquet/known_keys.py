"""The bloom filter of a file's next version, made of the filter that the file has: hashing every key again is dear.

A filter tells nothing of the keys that it was made of, so it is taken over only with the checksum that was written beside it,
and only where it is, bit for bit, the filter that hashing all keys would give.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.formats.bloom import BloomFilter, size_of_filter
from hudimeta.formats.parquet.footer import BLOOM_CHECKSUM_KEY, BLOOM_TYPE_KEY, ParquetFooter

__all__ = ["KnownKeys", "checksum_of"]


def checksum_of(text: str) -> str:
    """What the footer says of the text of a bloom filter."""
    return f"{zlib.crc32(text.encode()):08x}"


@dataclass(frozen=True)
class KnownKeys:
    """The record keys of rows to write, told by a simple filter over some of them.

    Attributes:
        text: The filter, base64; made of keys of these rows and of no others. added: The keys that it was not made of.
    """

    text: str
    added: pa.ChunkedArray

    @classmethod
    def of(cls, footer: ParquetFooter, added: pa.ChunkedArray) -> KnownKeys | None:
        """Those of a file and some more; None where its filter is no simple one or cannot be trusted."""
        text, entries = footer.bloom_text, footer.key_value
        if text is None or entries.get(BLOOM_TYPE_KEY) != "SIMPLE" or entries.get(BLOOM_CHECKSUM_KEY) != checksum_of(text):
            return None
        return cls(text, added)

    def filter_text(self, capacity: int, p: float) -> str | None:
        """Base64 of the simple filter over all keys.

        Args:
            capacity: Keys that it is sized for. p: Share of foreign keys that may pass.

        Returns:
            None where the known filter has another size.
        """
        known = BloomFilter.from_base64(self.text, "SIMPLE")
        if (known.bit_count, known.hash_count) != size_of_filter(capacity, p):
            return None
        return known.with_keys(self.added).to_base64() if len(self.added) else self.text
