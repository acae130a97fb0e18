"""CRC-32 of gzip, Parquet and HFile: by ISA-L, ten times quicker, where the package `isal` is; by zlib elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Callable

try:
    from isal import isal_zlib
except ImportError:  # a processor for which there is no wheel
    isal_zlib = None

__all__ = ["crc32"]

crc32: Callable[..., int] = (isal_zlib or zlib).crc32
"""`crc32(data, checksum_so_far=0)`; the same numbers whichever computes them."""
