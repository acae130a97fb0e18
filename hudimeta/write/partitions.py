"""Which partitions a write names: those to delete, and those that an overwrite replaces though it has no row for them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.formats.plain_arrays import single_array
from hudimeta.keys import KeyGenerator, check_new_partition, is_readable_by_hudi
from hudimeta.schema import conform
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.write.batch import KeyedBatch, deleted_rows, with_unstored

__all__ = ["check_new_partitions", "live_partitions", "named_partitions", "partition_batch"]


def check_new_partitions(storage: Storage, batch: KeyedBatch) -> None:
    """Refuse rows for partitions that Apache Hudi could not read, while nothing is written yet.

    Raises:
        SchemaMismatch: See `check_new_partition`.
    """
    doubtful = {path for path in batch.partitions.unique().to_pylist() if not is_readable_by_hudi(path)}
    if doubtful:
        doubtful &= set(batch.partitions.filter(pa.array(~batch.deleted)).to_pylist())  # a delete begins no partition
    for path in sorted(doubtful):
        if storage.stat(join(path, PARTITION_METAFILE)) is None:
            check_new_partition(path)


def live_partitions(snapshot: Snapshot) -> list[str]:
    """Paths of all partitions that have a file slice, sorted."""
    return sorted(set(snapshot.slices()["partition_path"].unique().to_pylist()))


def named_partitions(snapshot: Snapshot, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Partitions that have rows, by their paths.

    Args:
        snapshot: The table.
        names: Paths as folders are named; `*` stands for any text, slashes included, as in Apache Hudi.

    Returns:
        Paths that are there, sorted, and names that stand for none.

    Raises:
        ConfigError: No name at all, or an empty one for a table with partitions.
    """
    wanted = [name.strip().strip("/") for name in names]
    have = live_partitions(snapshot)
    if not wanted or ("" in wanted and have not in ([], [""])):
        raise ConfigError("partitions", ",".join(wanted), "paths of partitions", f"The table has {_some(have)}.")
    found: set[str] = set()
    missing = []
    for name in wanted:
        hits = [path for path in have if fnmatch.fnmatchcase(path, _pattern(name))] if "*" in name else {name} & set(have)
        found.update(hits)
        missing += [] if hits else [name]
    return sorted(found), missing


def _pattern(name: str) -> str:
    """Only `*` means something: `[` and `?` are characters of names."""
    return "".join(f"[{c}]" if c in "[?" else c for c in name)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(repr(p) for p in paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "") or "none"


def partition_batch(rows: pa.Table, generator: KeyGenerator, schema: pa.Schema, rules: MergeRules) -> KeyedBatch:
    """Rows that only say which partitions are meant: other columns than the partition's are not looked at.

    Raises:
        SchemaMismatch: A partition column is missing or does not fit.
    """
    tops = {field.name.partition(".")[0] for field in generator.partitions}
    kept = [place for place, name in enumerate(rows.column_names) if name in tops]
    fitted = conform(rows.select(kept), pa.schema([f for f in schema if f.name in tops]))
    fitted = with_unstored(fitted, rows, generator)
    if not generator.partitions:
        fitted = pa.table({"": pa.nulls(rows.num_rows)})
    paths = generator.partition_paths(fitted)
    one = single_array(paths)
    return KeyedBatch(fitted, None, one, deleted_rows(fitted, rules))
