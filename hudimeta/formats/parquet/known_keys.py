"""The bloom filter of a file, made of the filters of the files that its rows come from: hashing every key again is dear.

A filter tells nothing of the keys that it was made of, so it is taken over only with the checksum that was written beside it,
and only where it is, bit for bit, the filter that hashing all keys would give.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hudimeta.formats.bloom import BloomFilter, TypeCode, size_of_filter
from hudimeta.formats.parquet.footer import BLOOM_CHECKSUM_KEY, ParquetFooter

__all__ = ["FileKeys", "KnownKeys", "checksum_of"]


def checksum_of(text: str) -> str:
    """What the footer says of the text of a bloom filter."""
    return f"{zlib.crc32(text.encode()):08x}"


@dataclass(frozen=True)
class FileKeys:
    """The keys of a file whose rows are written again.

    Attributes:
        text: A filter over these keys and no others, base64; None where there is none that can be trusted.
        keys: The keys; None where nobody has read them.
    """

    text: str | None
    keys: pa.ChunkedArray | None = None

    @classmethod
    def of(cls, footer: ParquetFooter, keys: pa.ChunkedArray | None = None) -> FileKeys:
        """Those of a file with a footer."""
        text = footer.bloom_text
        trusted = text is not None and footer.key_value.get(BLOOM_CHECKSUM_KEY) == checksum_of(text)
        return cls(text if trusted else None, keys)

    def filter_of(self, bits: int, hashes: int) -> BloomFilter | None:
        """The filter, if it has one row of such a size."""
        found = None if self.text is None else BloomFilter.from_base64(self.text)
        fits = found is not None and len(found.rows) == 1 and (found.bit_count, found.hash_count) == (bits, hashes)
        return found if fits else None


@dataclass(frozen=True)
class KnownKeys:
    """The record keys of rows to write.

    Attributes:
        files: The files whose rows they are, all of them.
        added: Keys of other rows.
    """

    files: Sequence[FileKeys]
    added: pa.ChunkedArray

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
        filters = [one.filter_of(*size_of_filter(capacity, p)) for one in self.files]
        known = [one for one in filters if one is not None]
        unknown = [one.keys for one, found in zip(self.files, filters, strict=True) if found is None]
        if not known or any(keys is None for keys in unknown):
            return None
        more = pa.chunked_array(
            [chunk for keys in [*unknown, self.added] if keys is not None for chunk in keys.chunks], pa.string()
        )
        if not len(more) and len(self.files) == 1 and known[0].type_code == kind:
            return self.files[0].text
        whole = replace(known[0], rows=np.bitwise_or.reduce([one.rows for one in known])).with_keys(more)
        return (whole if kind == "SIMPLE" else whole.as_dynamic(capacity, count)).to_base64()
