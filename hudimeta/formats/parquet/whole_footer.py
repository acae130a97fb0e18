"""Footers of Parquet files as structures that can be changed, and as the end of a file.

A file ends in its footer, a Thrift structure, four bytes of its length, little-endian, and the magic `PAR1`, with which it
also begins. Source: Apache Parquet format, "File format".
"""

from __future__ import annotations

import io
from typing import Any

from hudimeta.formats.parquet.thrift import Fields, decode_struct, encode_struct

__all__ = ["LENGTH_BYTES", "MAGIC", "decode_footer", "encode_footer"]

MAGIC = b"PAR1"
LENGTH_BYTES = 4


def decode_footer(metadata: Any) -> Fields:
    """A footer as Parquet's own structure.

    Args:
        metadata: Pyarrow's `FileMetaData`.

    Raises:
        ValueError: It is none.
    """
    sink = io.BytesIO()
    metadata.write_metadata_file(sink)
    return decode_struct(memoryview(sink.getvalue()), len(MAGIC))[0]


def encode_footer(footer: Fields) -> bytes:
    """The end of a file, from its footer on."""
    text = encode_struct(dict(sorted(footer.items())))
    return text + len(text).to_bytes(LENGTH_BYTES, "little") + MAGIC
