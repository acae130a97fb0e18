"""What our commits and cleans state of the metadata table, so that readers need not ask for it: entries of `extraMetadata`.

=========================  ===========================================================================================
key                        value
=========================  ===========================================================================================
`hudimeta.metadata.logs`   JSON, metadata partition -> names of the log files that went with the commit
`hudimeta.metadata.groups` JSON, metadata partition -> number of its file groups, which no one else records
=========================  ===========================================================================================

Whatever is not understood is not stated: the metadata table is asked then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hudimeta.formats.json_text import parse_json

__all__ = ["GROUPS_KEY", "LOGS_KEY", "decode_counts", "decode_logs", "encode_stated"]

LOGS_KEY, GROUPS_KEY = "hudimeta.metadata.logs", "hudimeta.metadata.groups"
_MOST_GROUPS = 100_000
"""File groups of one metadata partition; Hudi makes 10,000 at most."""


def encode_stated(logs: Iterable[tuple[str, str]], counts: Mapping[str, int]) -> dict[str, str]:
    """The entries of a commit.

    Args:
        logs: Metadata partition and name of each log file.
        counts: Number of file groups by metadata partition.
    """
    by_partition: dict[str, list[str]] = {}
    for partition, name in logs:
        by_partition.setdefault(partition, []).append(name)
    return {LOGS_KEY: json.dumps(by_partition, sort_keys=True), GROUPS_KEY: json.dumps(dict(counts), sort_keys=True)}


def decode_logs(metadata: Mapping[str, Any]) -> dict[str, list[str]] | None:
    """Names of log files by metadata partition; None where a commit does not state them.

    Args:
        metadata: Of the commit.
    """
    found = _stated(metadata, LOGS_KEY)
    return found if isinstance(found, dict) else None


def decode_counts(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of file groups by metadata partition, those that can be.

    Args:
        metadata: Of the commit.
    """
    found = _stated(metadata, GROUPS_KEY)
    try:
        return {name: int(count) for name, count in (found or {}).items() if 0 <= int(count) <= _MOST_GROUPS}
    except (ValueError, TypeError, AttributeError):
        return {}


def _stated(metadata: Mapping[str, Any], key: str) -> Any:
    text = (metadata.get("extraMetadata") or {}).get(key)
    try:
        return parse_json(text) if text else None
    except (ValueError, TypeError):
        return None
