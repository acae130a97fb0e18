"""Tables with the indexes of keys, and whether a write proved them."""

from __future__ import annotations

import hudimeta
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.testing.builders import SIMPLE_OPTIONS

BOTH = ("record_index", "secondary_index_ts")
INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.secondary.column": "ts",
}
KINDS = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in ("8", "9")]


def proven(path: str) -> frozenset[str]:
    """Indexes of keys that the newest write proved; statistics of partitions are proven alike, and left out here."""
    return proven_indexes(hudimeta.Table(path).snapshot().metadata) - {"partition_stats"}
