"""Which indexes a table has: `.hoodie/.index_defs/index.json`.

    {"indexDefinitions": {<name>: {indexName, indexType, indexFunction, sourceFields [], indexOptions {}, version}}}

`version` is "V1" or "V2" and is absent in tables of version 8, where it means V1. Files and partition statistics have no entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import sealed_json, verify_json

if TYPE_CHECKING:
    from hudimeta.storage import Storage

__all__ = [
    "COMPLETE_KEY",
    "DEFAULT_PATH",
    "VERSION_KEY",
    "IndexDefinition",
    "decode_definitions",
    "encode_definitions",
    "load_definitions",
]

DEFAULT_PATH = ".hoodie/.index_defs/index.json"

COMPLETE_KEY = "hudimeta.indexes.complete"
"""Entry of a data commit's extraMetadata: names, separated by commas, of the indexes of whole tables that lack no row."""

VERSION_KEY = "hudimeta.indexes.version"
"""Beside it: version of the table when that was said."""


@dataclass(frozen=True)
class IndexDefinition:
    """One index.

    Attributes:
        name: Metadata partition.
        kind: `indexType`: column_stats, secondary_index, bloom_filters, record_index …
        function: `identity`, a Spark function of an expression index, or the kind again.
        source_fields: Indexed columns.
        options: Arguments of the function.
        version: "V1" or "V2"; None where the file does not say, which means V1.
    """

    name: str
    kind: str
    function: str
    source_fields: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None

    @property
    def is_v2(self) -> bool:
        """True for the second form of bounds and of secondary keys' sharding."""
        return self.version == "V2"

    @property
    def is_partitioned(self) -> bool:
        """True for a record index that each partition of the table has for itself."""
        return self.options.get("isPartitioned", "false").lower() == "true"


def decode_definitions(data: bytes, path: str = DEFAULT_PATH) -> dict[str, IndexDefinition]:
    """Definitions by name; none of an empty file: Apache Hudi, which writes it in place, reads what a kill left there so.

    Raises:
        CorruptFileError: Not the JSON that it should be, or not what was sealed.
    """
    if not data:
        return {}
    verify_json(data, path, taken_over=True)
    try:
        found = parse_json(data)["indexDefinitions"]
        return {
            name: IndexDefinition(
                entry["indexName"],
                entry["indexType"],
                entry.get("indexFunction") or "",
                tuple(entry.get("sourceFields") or ()),
                dict(entry.get("indexOptions") or {}),
                entry.get("version"),
            )
            for name, entry in found.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(path, 0, "JSON with indexDefinitions", repr(error)) from error


def load_definitions(storage: Storage, path: str | None = None) -> dict[str, IndexDefinition]:
    """Definitions of a table's indexes by name; none where the table has no such file. One request.

    Args:
        storage: Rooted at the table.
        path: Of the file; None for where it usually is.

    Raises:
        CorruptFileError: See `decode_definitions`.
    """
    path = path or DEFAULT_PATH
    try:
        return decode_definitions(storage.read(path), path)
    except NotFound:
        return {}


def encode_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """The file's bytes, sealed; the inverse of `decode_definitions`.

    Each says its version, as Apache Hudi does from 1.1 on; older releases pass over what they do not know.
    """
    entries = {}
    for name, definition in definitions.items():
        entries[name] = {
            "indexName": definition.name,
            "indexType": definition.kind,
            "indexFunction": definition.function,
            "sourceFields": list(definition.source_fields),
            "indexOptions": dict(definition.options),
            "version": definition.version or "V1",
        }
    return sealed_json(json.dumps({"indexDefinitions": entries}, indent=2).encode(), DEFAULT_PATH.rpartition("/")[2])
