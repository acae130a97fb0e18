"""Do statistics, key ranges and bloom filters hold for every value of every live base file? By looking at every value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import ValidationFailed
from hudimeta.formats.parquet import read_footer
from hudimeta.metadata import answers, column_stats, partition_stats
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.schema import avro_to_arrow, conform, normalise_type, with_meta_columns
from hudimeta.schema.promotion import Fit, fit
from hudimeta.snapshot.column_history import column_history
from hudimeta.storage import join
from hudimeta.table.file_names import parse_base_file
from hudimeta.testing.inspection import Inspection

if TYPE_CHECKING:
    from hudimeta.metadata import MetadataTable
    from hudimeta.schema import SchemaHistory

__all__ = ["footers_tell_the_truth", "statistics_enclose_every_value"]

_KEY = "_hoodie_record_key"
_WORTH_KEEPING = 1 << 18
"""Bytes; larger files come once."""


def footers_tell_the_truth(table: Inspection) -> None:
    """The bloom filter in each live base file's footer knows every key, and the smallest and greatest key are right."""
    _refuse("footers", [f"{path}: {why}" for path in _base_files(table) for why in _judged(table, path).wrong])


@dataclass(frozen=True, slots=True)
class _Judged:
    """The rows of a base file, and what its footer says wrongly of them."""

    rows: pa.Table
    wrong: tuple[str, ...]


def _judged(table: Inspection, path: str) -> _Judged:
    """One look at a table after the other meets the same files: of the same bytes the judgement is the same."""
    content = table.storage.read(path)
    return _judge(path, content) if len(content) < _WORTH_KEEPING else _judge.__wrapped__(path, content)


@lru_cache(maxsize=256)
def _judge(path: str, content: bytes) -> _Judged:
    import pyarrow.parquet as pq

    source = pa.BufferReader(content)
    footer, rows = read_footer(source, path), pq.ParquetFile(source).read(use_threads=False)
    keys, wrong = rows[_KEY].combine_chunks(), []
    if footer.bloom is not None and len(keys) and not footer.bloom.might_contain_many(keys).all():
        wrong.append("the bloom filter misses a key")
    texts = sorted(keys.drop_null().to_pylist(), key=str.encode)
    stated = (footer.min_key, footer.max_key)
    if stated != (None, None) and stated != ((texts[0], texts[-1]) if texts else (None, None)):
        wrong.append(f"key range {stated}, found {texts[:1]} to {texts[-1:]}")
    return _Judged(rows, tuple(wrong))


def statistics_enclose_every_value(table: Inspection) -> None:
    """Column and partition statistics bound every value, NaN and nulls included, of every live base file."""
    metadata = table.metadata
    if metadata is None or column_stats.PARTITION not in metadata.ready:
        return
    definition = metadata.index_definitions.get(column_stats.PARTITION)
    found = table.timeline.latest_schema()
    if definition is None or found is None:
        return
    schema = with_meta_columns(avro_to_arrow(found[1]))
    types = {c: kind for c in definition.source_fields if (kind := column_type(schema, c)) is not None}
    stored = {path: _judged(table, path).rows for path in _base_files(table)}
    history = column_history(table.storage, table.timeline)
    named = {path: _with_names_of_today(part, history, path) for path, part in stored.items()}
    rows = {path: conform(part, schema, altered=True) for path, part in named.items()}
    held = {path.rpartition("/")[2]: part.schema for path, part in stored.items()}
    wrong = _file_statistics(metadata, types, rows, held)
    if partition_stats.PARTITION in metadata.ready:
        retyped = {column for column in types if any(_is_retyped(part, column, types) for part in held.values())}
        wrong += _partition_statistics(metadata, {c: kind for c, kind in types.items() if c not in retyped}, rows)
    _refuse("statistics", wrong)


def _with_names_of_today(rows: pa.Table, history: SchemaHistory | None, path: str) -> pa.Table:
    name = parse_base_file(path.rpartition("/")[2])
    return rows if history is None or name is None else history.with_newest_names(rows, name.instant)


def _file_statistics(
    metadata: MetadataTable, types: dict[str, pa.DataType], rows: dict[str, pa.Table], held: dict[str, pa.Schema]
) -> list[str]:
    by_name = {path.rpartition("/")[2]: part for path, part in rows.items()}
    wrong = []
    for column, stats in answers.column_stats(metadata, types).items():
        stated = {row["file_name"]: row for row in stats.to_pylist()}
        for name, part in by_name.items():
            if _is_retyped(held[name], column, types):
                continue  # bounds of the values as they were
            if name in stated:
                wrong += [f"{name}, {column}: {why}" for why in _breaches(_values(part, column), stated[name], exact=True)]
            elif len(part) and column_type(held[name], column) is not None:  # else it was added, or got its name, later
                wrong.append(f"{name}, {column}: no statistics")
    return wrong


def _is_retyped(held: pa.Schema, column: str, types: dict[str, pa.DataType]) -> bool:
    """True where a file holds a column in a type all of whose values need not fit the one of today."""
    kind = column_type(held, column)
    return kind is not None and fit(normalise_type(kind, column), types[column]) is Fit.ALTERED


def _partition_statistics(metadata: MetadataTable, types: dict[str, pa.DataType], rows: dict[str, pa.Table]) -> list[str]:
    partitions: dict[str, list[pa.Table]] = {}
    for path, part in rows.items():
        partitions.setdefault(path.rpartition("/")[0], []).append(part)
    wrong = []
    for column, stats in answers.partition_stats(metadata, types).items():
        stated = {row["partition_path"]: row for row in stats.to_pylist()}
        for partition, parts in partitions.items():
            values = pa.chunked_array([c for part in parts for c in _values(part, column).chunks], types[column])
            # Where nothing is known of some file there is no record, and readers must look into every file.
            if partition in stated:
                wrong += [f"{partition!r}, {column}: {why}" for why in _breaches(values, stated[partition], exact=False)]
    return wrong


def _breaches(values: pa.ChunkedArray, stated: dict[str, Any], *, exact: bool) -> list[str]:
    """In what ways statistics are not true of values. NaN is the greatest value of all."""
    import pyarrow.compute as pc

    low, high = stated["min"], stated["max"]
    present = values.drop_null()
    nans = 0
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(present)
        nans = pc.sum(is_nan).as_py() or 0
        present = present.filter(pc.invert(is_nan))
    wrong = []
    if low is not None and pc.any(pc.less(present, pa.scalar(low, values.type))).as_py():
        wrong.append(f"a value below the minimum {low!r}")
    if high is not None and pc.any(pc.greater(present, pa.scalar(high, values.type))).as_py():
        wrong.append(f"a value above the maximum {high!r}")
    if high is not None and nans and high == high:
        wrong.append(f"NaN above the maximum {high!r}")
    if None in (stated["total_size"], stated["total_uncompressed_size"]):
        wrong.append("no sizes, which Apache Hudi adds up")
    nulls, rows = stated["null_count"], stated["value_count"]
    if exact and (nulls, rows) != (values.null_count, len(values)):
        wrong.append(f"{nulls} nulls of {rows} values stated, {values.null_count} of {len(values)} found")
    if values.null_count and nulls == 0:
        wrong.append("nulls, where none are stated")
    if len(values) > values.null_count and nulls == rows:
        wrong.append("values, where only nulls are stated")
    return wrong


def _values(rows: pa.Table, column: str) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    top, *rest = column.split(".")
    return pc.struct_field(rows[top], rest) if rest else rows[top]


def _base_files(table: Inspection) -> list[str]:
    slices = table.slices
    pairs = zip(slices["partition_path"].to_pylist(), slices["base_file"].to_pylist(), strict=True)
    return [join(partition, name) for partition, name in pairs if name is not None and name.endswith(".parquet")]


def _refuse(what: str, wrong: Iterable[str]) -> None:
    found = list(wrong)
    if found:
        raise ValidationFailed(f"{what}: {'; '.join(found[:8])}" + (f" and {len(found) - 8} more" if len(found) > 8 else ""))
