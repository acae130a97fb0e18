"""File slices as the text of an option: what a read of the Python source has to read, instead of planning by itself.

The text is base64 of an Arrow file with the columns of `table.slices.slices_schema()`, compressed: some 60 bytes a slice.
"""

from __future__ import annotations

import base64
import binascii

import pyarrow as pa

from hudimeta.config.options import LISTED_SLICES
from hudimeta.errors import ConfigError, CorruptFileError
from hudimeta.formats.arrow_ipc import decode_table, encode_table
from hudimeta.table.slices import slices_schema

__all__ = ["decode_slices", "encode_slices"]


def encode_slices(slices: pa.Table) -> str:
    """The text of some slices.

    Args:
        slices: Columns of `slices_schema()`.
    """
    return base64.b64encode(encode_table(slices.cast(slices_schema()))).decode("ascii")


def decode_slices(text: str) -> pa.Table:
    """The inverse of `encode_slices`.

    Raises:
        ConfigError: Another text.
    """
    try:
        found = decode_table(base64.b64decode(text, validate=True))
    except (binascii.Error, CorruptFileError):
        found = pa.table({})
    if not found.schema.equals(slices_schema()):
        raise ConfigError(LISTED_SLICES.key, text[:40], "what HudiTable.scan wrote", "Leave it out to read the whole table.")
    return found
