"""Procedures that tell which files a table has: its slices, its log files, what lies in folders, what became of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.formats.log import BlockType, LogBlock, decode_data_block, decode_delete_block, read_blocks
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows
from hudimeta.redaction import without_user
from hudimeta.storage import FileInfo, join
from hudimeta.table.discovery import list_table
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.globs import Glob
from hudimeta.table.slices import build_slices, place_files
from hudimeta.table.text_arrays import instant_text
from hudimeta.table.visibility import Visibility
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.types import Action

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.storage import CountingStorage

__all__ = ["FILESYSTEM_VIEW", "PROCEDURES", "filesystem_view"]

_ALL = "ALL_PARTITIONS"
_TABLE = "@table string, @path string"
_VIEW = (
    f"{_TABLE}, max_instant string = '', include_max boolean = false, include_in_flight boolean = false, "
    f"exclude_compaction boolean = false, limit int = 10, path_regex string = '{_ALL}', filter string = ''"
)
_SLICE = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size bigint, num_delta_files bigint, "
    "total_delta_file_size bigint"
)
_UNITS = ("B", "KB", "MB", "GB", "TB")


# File slices


def _files(call: ProcedureCall, pattern: str, said: str) -> pa.Table:
    """Files of the partitions that a pattern of folders names."""
    partitions = call.snapshot.listing.partitions().to_pylist()
    if pattern != _ALL:
        glob = Glob.of(pattern, said)
        partitions = [path for path in partitions if glob.names_path(path)]
    return call.snapshot.listing.files(partitions)


def _visibility(call: ProcedureCall) -> Visibility:
    """What the call's instants let through; files of what is pending stay out."""
    if call["include_in_flight"]:
        hint = "Files of a pending write may vanish while they are shown; leave include_in_flight out."
        raise ConfigError("include_in_flight", True, "false", hint)
    last = call.bound("max_instant")
    if not last:
        return call.snapshot.visibility
    inside = [i.time for i in call.timeline.writes if i.time < last or (call["include_max"] and i.time == last)]
    return call.snapshot.visibility.without({i.time for i in call.timeline.writes} - set(inside))


FILESYSTEM_VIEW = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("File_ID", "Partition_Path", "Base_Instant_Time", "Base_File_Path")),
        *(pa.field(name, pa.int64()) for name in ("Base_File_Size", "Log_File_Count", "Log_File_Size")),
        *(pa.field(name, pa.int64()) for name in ("Log_File_Scheduled", "Log_File_Unscheduled")),
    ]
)
"""The columns of Hudi's table function `hudi_filesystem_view`."""


def filesystem_view(storage: CountingStorage, options: Options, pattern: str = _ALL) -> pa.Table:
    """Every committed file slice, in the columns of Hudi's table function.

    Args:
        storage: Rooted at the table.
        options: Of the table.
        pattern: Of partition paths, as `path_regex` of `show_fsview_all`.
    """
    call = ProcedureCall({"include_in_flight": False, "max_instant": ""}, storage, options)
    rows = []
    for partition, group, instant, base, base_size, logs in _every_slice(call, pattern, "partitions"):
        total = sum(size for _, size in logs)
        own = sum(size for log, size in logs if (parsed := parse_log_file(log)) is not None and parsed.instant == instant)
        where = _shown(call, partition, base) if base else ""
        rows.append((group, partition, instant, where, base_size if base else -1, len(logs), total, own, total - own))
    columns = list(zip(*rows, strict=True)) or [()] * len(FILESYSTEM_VIEW)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, FILESYSTEM_VIEW, strict=True)], schema=FILESYSTEM_VIEW)


def _every_slice(
    call: ProcedureCall, pattern: str, said: str
) -> Iterator[tuple[str, str, str, str | None, int, list[tuple[str, int]]]]:
    """Partition, file group, instant, base file and its size, log files and theirs; in this order, the newest first."""
    files = _files(call, pattern, said)
    placed = place_files(files, _visibility(call))
    sizes = {(partition, name): size for partition, name, size in _columns(files, "partition_path", "name", "size")}
    slices: dict[tuple[str, str, str], list[str]] = {}
    begun = instant_text(np.asarray(placed["slice"])).to_pylist()
    for (partition, name, group), instant in zip(_columns(placed, "partition_path", "name", "file_id"), begun, strict=True):
        slices.setdefault((partition, group, instant), []).append(name)
    newest_first = sorted(slices.items(), key=lambda one: one[0][2], reverse=True)
    for (partition, group, instant), names in sorted(newest_first, key=lambda one: one[0][:2]):
        base = next((name for name in names if parse_base_file(name) is not None), None)
        logs = sorted(name for name in names if parse_log_file(name) is not None)
        size = sizes[partition, base] if base else 0
        yield partition, group, instant, base, size, [(log, sizes[partition, log]) for log in logs]


def _show_fsview_all(call: ProcedureCall) -> Rows:
    rows = []
    for partition, group, instant, base, size, logs in _every_slice(call, call["path_regex"], "path_regex"):
        shown = f"[{', '.join(_shown(call, partition, name) for name, _ in logs)}]"
        where = _shown(call, partition, base) if base else ""
        rows.append((partition, group, instant, where, size, len(logs), sum(size for _, size in logs), shown))
    return call.first(rows)


def _columns(rows: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].to_pylist() for name in names), strict=True)


def _shown(call: ProcedureCall, *parts: str) -> str:
    """A path as Hadoop shows it: local ones as URIs too."""
    root = without_user(call.storage.root)
    return join(f"file:{root}" if root.startswith("/") else root, *parts)


def _show_fsview_latest(call: ProcedureCall) -> Rows:
    pattern, said = call["path_regex"], "path_regex"
    if call["partition_path"] != _ALL:
        if pattern != _ALL:
            raise ConfigError("partition_path", call["partition_path"], "path_regex or partition_path, not both")
        pattern, said = call["partition_path"], "partition_path"
    slices = build_slices(_files(call, pattern, said), _visibility(call))
    return call.first(_latest(call, row) for row in slices.to_pylist())


def _latest(call: ProcedureCall, row: Mapping[str, Any]) -> tuple[Any, ...]:
    partition, base, size = row["partition_path"], row["base_file"], row["base_size"] or 0
    logs, sizes = row["log_files"] or [], row["log_sizes"] or []
    total = sum(sizes)
    ratio = total / size if size else -1.0
    who = (partition, row["file_id"], row["base_instant"], _shown(call, partition, base) if base else "", size)
    # Every log file that is shown is of a completed write, hence the next compaction's: none is unscheduled.
    own = [log for log in logs if (parsed := parse_log_file(log)) is not None and parsed.instant == row["base_instant"]]
    lists = (
        ",".join(_shown(call, partition, log) for log in group) for group in (own, [one for one in logs if one not in own])
    )
    return (*who, len(logs), total, total, 0, ratio, 0.0 if size else -1.0, *(f"[{text}]" for text in lists))


# Log files


def _log_paths(call: ProcedureCall) -> list[str]:
    """Log files whose paths match the call's pattern, which may begin with the table's."""
    wanted = call["log_file_path_pattern"].removeprefix("file:")
    wanted = wanted.removeprefix(call.storage.root.removeprefix("file:")).lstrip("/")
    glob, files = Glob.of(wanted, "log_file_path_pattern"), call.snapshot.listing.files(None)
    paths = (join(p, n) for p, n in zip(files["partition_path"].to_pylist(), files["name"].to_pylist(), strict=True))
    found = sorted(path for path in paths if glob.names_path(path))
    return [path for path in found if parse_log_file(path.rpartition("/")[2]) is not None]


def _blocks(call: ProcedureCall) -> Iterator[LogBlock]:
    for path in _log_paths(call):
        yield from read_blocks(call.storage.read(path), path).blocks


def _show_logfile_metadata(call: ProcedureCall) -> Rows:
    return call.first(
        (
            block.instant,
            _rows_in(block),
            f"{block.type.name}_BLOCK",
            json.dumps({key.name: text for key, text in block.header.items()}, separators=(",", ":")),
            json.dumps({str(key): text for key, text in (block.footer or {}).items()}, separators=(",", ":")),
        )
        for block in _blocks(call)
    )


def _rows_in(block: LogBlock) -> int:
    if block.type.holds_records:
        return int(decode_data_block(block).num_rows)
    return int(decode_delete_block(block).num_rows) if block.type is BlockType.DELETE else 0


def _show_logfile_records(call: ProcedureCall) -> Rows:
    if call["merge"]:
        hint = "Read the table, which merges them: SELECT … FROM the table."
        raise ConfigError("merge", True, "false", hint)
    blocks = (block for block in _blocks(call) if block.type.holds_records)
    return call.first((json.dumps(row, default=str),) for block in blocks for row in decode_data_block(block).to_pylist())


# Folders


def _below(call: ProcedureCall, folder: str) -> Iterator[FileInfo]:
    for entry in call.storage.list(folder):
        yield entry
        if entry.is_folder:
            yield from _below(call, entry.path)


def _relative(call: ProcedureCall) -> str:
    """The call's path below the table."""
    path = (call["path"] or call.storage.root).removeprefix("file:").rstrip("/")
    root = call.storage.root.removeprefix("file:")
    if path != root and not path.startswith(root + "/"):
        raise ConfigError("path", call["path"], f"a folder of the table, below {call.storage.root}")
    return path[len(root) :].lstrip("/")


def _show_fs_path_detail(call: ProcedureCall) -> Rows:
    folder = _relative(call)
    chosen = [entry for entry in call.storage.list(folder) if entry.is_folder] if call["is_sub"] else [None]
    rows = []
    for one in chosen:
        path = folder if one is None else one.path
        entries = list(_below(call, path))
        files = [entry for entry in entries if not entry.is_folder]
        size = sum(entry.size for entry in files)
        # Counted with the folder itself, as Hadoop does; what HDFS would add (replicas, quotas) no other store has.
        rows.append((len(entries) - len(files) + 1, len(files), size, _with_unit(size), _shown(call, path), size, -1, -1))
    return call.first(sorted(rows, key=lambda row: row[2], reverse=True) if call["sort"] else rows)


def _with_unit(size: int) -> str:
    number, unit = float(size), 0
    while number >= 1024 and unit + 1 < len(_UNITS):
        number, unit = number / 1024, unit + 1
    return f"{number:.2f}{_UNITS[unit]}"


def _show_invalid_parquet(call: ProcedureCall) -> Rows:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    if call["needDelete"]:
        hint = "Look at what is damaged, then restore the file from a copy, or roll its write back."
        raise ConfigError("needDelete", True, "false", hint)
    partitions, instants, folder = call.names("partitions"), call.names("instants"), _relative(call)
    folder = f"{folder}/" if folder else ""
    bad = []
    for row in list_table(call.storage).to_pylist():
        parsed = parse_base_file(row["name"])
        if parsed is None or not row["name"].endswith(".parquet") or not f"{row['partition_path']}/".startswith(folder):
            continue
        if (partitions and row["partition_path"] not in partitions) or (instants and parsed.instant not in instants):
            continue
        try:
            with call.storage.open_input(join(row["partition_path"], row["name"])) as file:
                read_metadata(file)
        except (ArrowException, OSError):
            bad.append((_shown(call, row["partition_path"], row["name"]),))
    return call.first(bad)


# One file


def _show_file_status(call: ProcedureCall) -> Rows:
    partition, name = call["partition"], call["file"]
    if partition is None and call.properties.is_partitioned:
        hint = "Say in which partition the file is, or was: partition => '…'."
        raise ConfigError("partition", None, "the path of a partition: the table is partitioned", hint)
    for action in (Action.CLEAN, Action.ROLLBACK, Action.RESTORE):
        active = [(i, call.timeline.metadata(i), "active") for i in reversed(call.timeline.completed) if i.action is action]
        old = ArchivedRecords(call.timeline.history, [action])
        for instant, said, where in (*active, *((i, old.metadata(i), "archived") for i in reversed(old.instants))):
            if any(name in deleted for deleted in _deleted(said)):
                return [("deleted", action.value, instant.time, where, "")]
    found = call.storage.stat(join(partition or "", name))
    if found is None:
        return [("unknown", "", "", "", "")]
    return [("exist", "", "", "active", _shown(call, partition or "", name))]


def _deleted(said: Mapping[str, Any]) -> Iterator[str]:
    """Files that a clean, a rollback or the rollbacks of a restore say they deleted."""
    for one in (said.get("partitionMetadata") or {}).values():
        yield from one["successDeleteFiles"] or ()
    for rollbacks in (said.get("hoodieRestoreMetadata") or {}).values():
        for record in rollbacks:
            yield from _deleted(record)


# Sizes


def _stats_file_sizes(call: ProcedureCall) -> Rows:
    glob = Glob.of(call["partition_path"] or "", "partition_path")
    by_instant: dict[str, list[int]] = {}
    for row in list_table(call.storage).to_pylist():
        parsed = parse_base_file(row["name"]) or parse_log_file(row["name"])
        if parsed is not None and (not glob.words or glob.names_path(row["partition_path"])):
            by_instant.setdefault(parsed.instant, []).append(row["size"])
    rows = [(instant, *_spread(sizes)) for instant, sizes in sorted(by_instant.items())]
    everything = [size for sizes in by_instant.values() for size in sizes]
    return call.first([*rows, ("ALL", *_spread(everything))])


def _spread(sizes: list[int]) -> tuple[Any, ...]:
    """Smallest, quantiles, mean, largest, number and deviation, by the rule of the histograms that Hudi uses."""
    values = np.sort(np.array(sizes or [0], np.float64))
    n = len(values)

    def at(share: float) -> float:
        place = share * (n + 1)
        if place < 1:
            return float(values[0])
        if place >= n:
            return float(values[-1])
        low = values[int(place) - 1]
        return float(low + (place - int(place)) * (values[int(place)] - low))

    spread = float(values.std(ddof=1)) if n > 1 else 0.0
    return (int(values[0]), at(0.1), at(0.5), float(values.mean()), at(0.95), int(values[-1]), len(sizes), spread)


PROCEDURES = (
    Procedure(
        "show_fsview_all",
        _VIEW,
        f"{_SLICE}, delta_files string",
        "Every committed file slice, replaced ones included.",
        _show_fsview_all,
        note="Files of pending writes are not shown.",
    ),
    Procedure(
        "show_fsview_latest",
        f"{_VIEW}, partition_path string = '{_ALL}', merge boolean = true",
        f"{_SLICE}, delta_size_compaction_scheduled bigint, delta_size_compaction_unscheduled bigint, "
        "delta_to_base_radio_compaction_scheduled double, delta_to_base_radio_compaction_unscheduled double, "
        "delta_files_compaction_scheduled string, delta_files_compaction_unscheduled string",
        "The file slices that readers see.",
        _show_fsview_latest,
        note="Files of pending writes are not shown.",
    ),
    Procedure(
        "show_logfile_metadata",
        f"{_TABLE}, log_file_path_pattern string!, limit int = 10, filter string = ''",
        "instant_time string, record_count int, block_type string, header_metadata string, footer_metadata string",
        "The blocks of log files.",
        _show_logfile_metadata,
    ),
    Procedure(
        "show_logfile_records",
        f"{_TABLE}, log_file_path_pattern string!, merge boolean = false, limit int = 10, filter string = ''",
        "records string",
        "The rows of log files, as JSON.",
        _show_logfile_records,
        note="`merge => true` is refused.",
    ),
    Procedure(
        "show_fs_path_detail",
        "@path string!, is_sub boolean = false, sort boolean = true, limit int = 100, filter string = ''",
        "path_num bigint, file_num bigint, storage_size bigint, storage_size(unit) string, storage_path string, "
        "space_consumed bigint, quota bigint, space_quota bigint",
        "How many files and bytes a table's folder holds, or each folder in it.",
        _show_fs_path_detail,
        note="The path is that of a table, or of a folder in one. `space_consumed` is the size and the quotas are -1, which "
        "Apache Hudi puts into each other's columns.",
    ),
    Procedure(
        "show_invalid_parquet",
        "@path string!, parallelism int = 100, limit int = 100, needDelete boolean = false, partitions string = '', "
        "instants string = '', filter string = ''",
        "path string",
        "Base files whose footer cannot be read.",
        _show_invalid_parquet,
        note="`needDelete => true` is refused.",
    ),
    Procedure(
        "show_file_status",
        f"{_TABLE}, partition string, file string!, filter string = ''",
        "status string!, action string, instant string, timeline string, full_path string",
        "Whether a file is there, or which clean, rollback or restore deleted it.",
        _show_file_status,
    ),
    Procedure(
        "stats_file_sizes",
        "@table string!, partition_path string = '', limit int = 10",
        "commit_time string, min bigint, 10th double, 50th double, avg double, 95th double, max bigint, num_files int, "
        "std_dev double",
        "Sizes of the files that each write left, and of all.",
        _stats_file_sizes,
    ),
)
