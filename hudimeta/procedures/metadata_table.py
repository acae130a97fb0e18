"""Procedures about the metadata table: what it lists and knows, whether it holds, and making and removing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from hudimeta.engine.machine import now_ms
from hudimeta.errors import ConfigError, IndexNotReady, TableError
from hudimeta.metadata import MetadataTable, answers, files
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows
from hudimeta.schema import java_text
from hudimeta.services.metadata_table import create, delete, stats_of
from hudimeta.snapshot.listing_check import ListingPair
from hudimeta.types import META_COLUMNS

__all__ = ["PROCEDURES"]

_TABLE = "@table string, @path string"
_FOLDER = ".hoodie/metadata"
_STATS = ("baseFileCount", "totalBaseFileSizeInBytes", "logFileCount", "totalLogFileSizeInBytes")
_SHARES = (50, 75, 95, 99)


def _opened(call: ProcedureCall) -> MetadataTable:
    found = call.snapshot.metadata
    if found is None:
        raise IndexNotReady(files.PARTITION, f"not there: {call.snapshot.listing_reason}")
    return found


# What it lists


def _show_partitions(call: ProcedureCall) -> Rows:
    return [(path,) for path in _opened(call).partitions().to_pylist()]


def _show_files(call: ProcedureCall) -> Rows:
    partition = call["partition"]
    if not partition and call.properties.is_partitioned:
        raise ConfigError("partition", partition, "the path of a partition: the table is partitioned")
    return call.first((name,) for name in _opened(call).files([partition or ""])["name"].to_pylist())


def _show_stats(call: ProcedureCall) -> Rows:
    rows = []
    for one in stats_of(call.snapshot).partitions:
        figures = (one.base_files, one.base_bytes, one.log_files, one.log_bytes)
        rows += [(f"{one.name}.{name}", str(figure)) for name, figure in zip(_STATS, figures, strict=True)]
    return rows


def _validate_files(call: ProcedureCall) -> Rows:
    _opened(call)
    pair = ListingPair(call.snapshot)
    stored, listed = (_sizes(listing) for listing in (pair.stored, pair.listed))
    for path in sorted(stored.keys() | listed.keys()):
        there, known = stored.get(path), listed.get(path)
        if call["verbose"] or there != known:
            yield (*path, there is not None, known is not None, there or 0, known or 0)


def _sizes(listing: pa.Table) -> dict[tuple[str, str], int]:
    columns = (listing[name].to_pylist() for name in ("partition_path", "name", "size"))
    return {(partition, name): size for partition, name, size in zip(*columns, strict=True)}


# What it knows of columns


def _column_types(call: ProcedureCall) -> dict[str, pa.DataType]:
    """The columns that the call names; all that have a plain type where it names none."""
    schema = call.snapshot.schema.arrow
    asked = call.names("targetColumns")
    unknown = [name for name in asked if name not in schema.names]
    if unknown:
        raise ConfigError("targetColumns", unknown[0], f"columns of the table: {', '.join(schema.names)}")
    names = asked or [f.name for f in schema if f.name not in META_COLUMNS and not pa.types.is_nested(f.type)]
    return {name: schema.field(name).type for name in names}


def _bounds(call: ProcedureCall) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Column, partition and statistics of each base file that readers see; of log files Hudi shows none either."""
    metadata, kinds = _opened(call), _column_types(call)
    wanted = call.names("partition")
    of_file = {}
    for row in call.snapshot.slices().to_pylist():
        if not wanted or any(row["partition_path"].startswith(prefix) for prefix in wanted):
            of_file[row["base_file"]] = row["partition_path"]
    for column, found in answers.column_stats(metadata, kinds).items():
        yield from ((column, of_file[row["file_name"]], row) for row in found.to_pylist() if row["file_name"] in of_file)


def _show_column_stats(call: ProcedureCall) -> Rows:
    """Bounds as Hudi stores and prints them: dates and times as numbers."""
    kinds = _column_types(call)
    rows = [
        (row["file_name"], column, *(_text(row[bound], kinds[column]) for bound in ("min", "max")), row["null_count"])
        for column, _, row in _bounds(call)
    ]
    return sorted(rows, key=lambda row: (row[1], row[0]))


def _text(value: Any, kind: pa.DataType) -> str | None:
    values = pa.array([value], kind)
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    text: str | None = java_text(values)[0].as_py()
    return text


def _show_overlap(call: ProcedureCall) -> Rows:
    groups: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for column, partition, row in _bounds(call):
        if row["min"] is not None and row["max"] is not None:
            groups.setdefault((partition, column), []).append((row["min"], row["max"]))
    totals: dict[str, int] = {}
    for path in call.snapshot.slices()["partition_path"].to_pylist():
        totals[path] = totals.get(path, 0) + 1
    rows = [(partition, column, *_overlap(bounds, totals[partition])) for (partition, column), bounds in groups.items()]
    return sorted(rows, key=lambda row: (row[1], row[2], row[0]))


def _overlap(bounds: list[tuple[Any, Any]], files_in_all: int) -> tuple[Any, ...]:
    """How many files overlap at each of their bounds: mean, most, number of files, shares, number of bounds."""
    points = sorted([(low, 0) for low, _ in bounds] + [(high, 1) for _, high in bounds])
    open_now, most, at = 0, 0, dict[Any, int]()
    for value, ends in points:
        if ends:
            at.setdefault(value, open_now)
            open_now -= 1
        else:
            open_now += 1
            most = max(most, open_now)
            at[value] = open_now
    counts = sorted(at.values())
    shares = (counts[int(share / 100 * (len(counts) - 1))] for share in _SHARES)
    return (sum(counts) / len(counts), most, files_in_all, *shares, len(counts))


# Making and removing it


def _create(call: ProcedureCall) -> Rows:
    made = create(call.session())
    return [(f"Created Metadata Table in {call.storage.root}/{_FOLDER} (duration={made.seconds:.3f}secs)",)]


def _init(call: ProcedureCall) -> Rows:
    if not call.properties.has_metadata_table:
        raise TableError("the table has no metadata table", "CALL create_metadata_table makes one.")
    begin = now_ms()
    _opened(call)  # every commit keeps it in step: there is nothing to catch up with
    return [(f"Opened Metadata Table in {call.storage.root}/{_FOLDER} (duration={_seconds(begin)}secs)",)]


def _delete(call: ProcedureCall) -> Rows:
    delete(call.session())
    return [(f"Removed Metadata Table from {call.storage.root}/{_FOLDER}",)]


def _seconds(begin: int) -> str:
    return f"{(now_ms() - begin) / 1000:.3f}"


def _shows(name: str, more: str, gives: str, doc: str, run: Callable[[ProcedureCall], Rows]) -> Procedure:
    return Procedure(name, f"{_TABLE}, {more}", gives, doc, run)


PROCEDURES = (
    _shows(
        "show_metadata_table_partitions",
        "filter string = ''",
        "partition string",
        "Partitions that it lists.",
        _show_partitions,
    ),
    _shows(
        "show_metadata_table_files",
        "partition string = '', limit int = 100, filter string = ''",
        "file_path string",
        "Files that it lists of a partition.",
        _show_files,
    ),
    _shows(
        "show_metadata_table_stats",
        "filter string = ''",
        "stat_key string, stat_value string",
        "Files and bytes of its partitions.",
        _show_stats,
    ),
    _shows(
        "show_metadata_table_column_stats",
        "partition string, targetColumns string, filter string = ''",
        "file_name string, column_name string, min_value string, max_value string, null_number bigint",
        "What its index `column_stats` knows of the newest base files, by column.",
        _show_column_stats,
    ),
    _shows(
        "show_metadata_column_stats_overlap",
        "partition string, targetColumns string, filter string = ''",
        "Partition path string, Field name string, Average overlap double, Maximum file overlap int, Total file number int, "
        "50% overlap int, 75% overlap int, 95% overlap int, 99% overlap int, Total value number int",
        "How far the files of a partition overlap in each column: the less, the more files a filter leaves out.",
        _show_overlap,
    ),
    Procedure(
        "validate_metadata_table_files",
        "@table string!, verbose boolean = false",
        "partition string, file_name string, is_present_in_fs boolean, is_present_in_metadata boolean, fs_size bigint, "
        "metadata_size bigint",
        "Files of which it and storage say different things; all files with `verbose`.",
        _validate_files,
        note="Files of unfinished writes are left out. `table.metadata.validate()` checks the indexes too.",
    ),
    Procedure(
        "create_metadata_table",
        "@table string!",
        "result string",
        "Make the metadata table of a table that has none.",
        _create,
        acts=True,
    ),
    Procedure(
        "init_metadata_table",
        "@table string!, read_only boolean = false",
        "result string",
        "Open it, and say how long that took.",
        _init,
        note="Every commit keeps it in step, so nothing is synchronised.",
    ),
    Procedure(
        "delete_metadata_table",
        "@table string!",
        "result string",
        "Remove it, with all indexes; a statement may name several tables, separated by commas.",
        _delete,
        acts=True,
        takes_several=True,
    ),
)
