"""Columns of types that Arrow has no word for, as tests state them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["BLOB_STRUCT", "inline", "typed"]

_PLACE = pa.struct([("external_path", pa.string()), ("offset", pa.int64()), ("length", pa.int64()), ("managed", pa.bool_())])
BLOB_STRUCT = pa.struct([("type", pa.string()), ("data", pa.binary()), ("reference", _PLACE)])


def typed(name: str, kind: pa.DataType, hudi_type: str) -> pa.Field:
    """A field that states its type as SQL spells it."""
    return pa.field(name, kind, metadata={"hudi_type": hudi_type})


def inline(content: bytes) -> dict[str, Any]:
    """A BLOB whose bytes lie in the row."""
    return {"type": "INLINE", "data": content, "reference": None}
