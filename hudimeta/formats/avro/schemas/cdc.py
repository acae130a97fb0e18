"""Schemas of change data blocks, one for each supplemental logging mode."""

from __future__ import annotations

import copy
from typing import Any

from hudimeta.formats.avro.schemas.notation import optional, record, required

__all__ = ["CDC_KEY_ONLY", "cdc_with_before", "cdc_with_before_and_after"]

CDC_KEY_ONLY = record("Record", required("op", ["string", "null"]), required("record_key", ["string", "null"]))
"""Mode OP_KEY_ONLY: operation (`i`, `u`, `d`) and record key."""


def cdc_with_before(data_schema: dict[str, Any]) -> dict[str, Any]:
    """Mode DATA_BEFORE: the row before the change.

    Args:
        data_schema: The table's record schema without meta columns; its namespace becomes that of the record.
    """
    image = _image(data_schema)
    return _cdc(data_schema, optional("record_key", "string"), optional("before", image))


def cdc_with_before_and_after(data_schema: dict[str, Any]) -> dict[str, Any]:
    """Mode DATA_BEFORE_AFTER: commit instant as `ts_ms`, the row before and after the change.

    Args:
        data_schema: The table's record schema without meta columns; its namespace becomes that of the record.
    """
    image = _image(data_schema)
    return _cdc(data_schema, optional("ts_ms", "string"), optional("before", image), optional("after", data_schema["name"]))


def _cdc(data_schema: dict[str, Any], *fields: dict[str, Any]) -> dict[str, Any]:
    return record("CDC", optional("op", "string"), *fields, namespace=data_schema.get("namespace"))


def _image(data_schema: dict[str, Any]) -> dict[str, Any]:
    """The row's schema as it stands within the change record, whose namespace it inherits."""
    image = copy.deepcopy(data_schema)
    image.pop("namespace", None)
    return image
