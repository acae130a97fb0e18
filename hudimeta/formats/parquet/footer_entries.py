"""What Hudi keeps in the footer of a base file: the schema, the range of the record keys, and a bloom filter over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from hudimeta.formats.parquet.footer import (
    AVRO_SCHEMA_KEY,
    BLOOM_CHECKSUM_KEY,
    BLOOM_KEY,
    BLOOM_TYPE_KEY,
    CALENDAR_KEY,
    MAX_KEY_KEY,
    MIN_KEY_KEY,
    MODEL_KEY,
)
from hudimeta.formats.parquet.known_keys import KnownKeys, checksum_of
from hudimeta.formats.vectors import COLUMNS_KEY, vector_columns

__all__ = ["BloomSettings", "footer_entries"]

_CALENDAR = "3.5.0"


@dataclass(frozen=True)
class BloomSettings:
    """The bloom filter of a base file.

    Attributes:
        kind: `hoodie.bloom.index.filter.type`. Either is one row of bits, sized to the keys that are there; the dynamic one of
            files that are put together may have their rows.
        false_positives: `hoodie.index.bloom.fpp`.
        max_entries: `hoodie.bloom.index.filter.dynamic.max.entries`: keys that a filter is sized for at most; beyond it more
            foreign keys pass.
    """

    kind: Literal["SIMPLE", "DYNAMIC_V0"] = "DYNAMIC_V0"
    false_positives: float = 1e-9
    max_entries: int = 100_000


def footer_entries(
    keys: Callable[[], pa.ChunkedArray],
    avro_schema: str | None,
    bloom: BloomSettings | None,
    known: KnownKeys | None = None,
    told: tuple[int, str, str] | None = None,
) -> tuple[dict[str, str], str | None, str | None]:
    """What Hudi keeps in a footer, and the smallest and greatest key; None where no row has one.

    Args:
        keys: Record keys of all rows; asked for where they are needed.
        avro_schema: Of the columns; None leaves it out.
        bloom: Of the filter; None for no filter.
        known: A filter over the keys, where there is one.
        told: How many keys there are, the smallest and the greatest, where that is known.
    """
    entries = {CALENDAR_KEY: _CALENDAR}
    if avro_schema is not None:
        entries |= {AVRO_SCHEMA_KEY: avro_schema, MODEL_KEY: "avro"}
        vectors = vector_columns(avro_schema)
        if vectors:
            entries[COLUMNS_KEY] = ",".join(f"{name}:{vector}" for name, vector in vectors.items())
    if told is None and keys().null_count:  # a table with virtual keys: no keys in the file, so nothing to look up by
        return entries, None, None
    count, low, high = _counted(keys()) if told is None else told
    if low is not None and high is not None:
        entries |= {MIN_KEY_KEY: low, MAX_KEY_KEY: high}
    if bloom is not None:
        entries |= _bloom_entries(keys, count, bloom, known)
    return entries, low, high


def _counted(keys: pa.ChunkedArray) -> tuple[int, str | None, str | None]:
    import pyarrow.compute as pc

    if not len(keys):
        return 0, None, None
    found = pc.min_max(keys)
    return len(keys), str(found["min"]), str(found["max"])


def _bloom_entries(
    keys: Callable[[], pa.ChunkedArray], count: int, settings: BloomSettings, known: KnownKeys | None
) -> dict[str, str]:
    from hudimeta.formats.bloom import BloomFilter

    kind, p = settings.kind, settings.false_positives
    capacity = max(1, min(count, settings.max_entries))
    text = known.filter_text(kind, capacity, p, count) if known is not None else None
    if text is None:
        if known is not None and len(known.added):  # more will follow, which are then added to this filter
            capacity = max(capacity, min(capacity + capacity // 2, settings.max_entries))
        text = BloomFilter.create_sized(keys(), kind, p, capacity).to_base64()
    return {BLOOM_KEY: text, BLOOM_TYPE_KEY: settings.kind, BLOOM_CHECKSUM_KEY: checksum_of(text)}
