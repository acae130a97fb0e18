"""Packs and unpacks gzip members: by Intel's ISA-L, several times quicker, where the package `isal` is; by zlib elsewhere.

Any reader unpacks what either writes; only the sizes differ, by some 10 percent.
"""

from __future__ import annotations

import zlib
from typing import Any

try:
    from isal import isal_zlib
except ImportError:  # a processor for which there is no wheel
    isal_zlib = None

__all__ = ["DEFLATE_ERRORS", "gunzip", "gzip_member"]

DEFLATE_ERRORS: tuple[type[Exception], ...] = (zlib.error,) if isal_zlib is None else (zlib.error, isal_zlib.error)
"""What unpacking raises over damaged bytes."""

_GZIP_WINDOW = 31
_BEST_EFFORT = 2
"""Of ISA-L: its next level takes three times as long, and is 3 percent smaller."""


def gzip_member(data: bytes | memoryview, level: int) -> bytes:
    """One gzip member.

    Args:
        data: What to pack.
        level: Effort in zlib's numbers, 1 to 9; 0 stores the bytes as they are.
    """
    if isal_zlib is None or not level:
        packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)
    else:
        packer = isal_zlib.compressobj(min(level, _BEST_EFFORT), isal_zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def gunzip() -> Any:
    """What unpacks one gzip member, as `zlib.decompressobj` does: checks its sum and length, raises `DEFLATE_ERRORS`."""
    return (isal_zlib or zlib).decompressobj(_GZIP_WINDOW)
