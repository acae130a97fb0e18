"""File slices: which files of a listing belong together, and which of them a reader at one moment sees.

A file group is a partition and a file id; a slice of it is a base file and the log files written on top (`slice_instants`).
All of it is array work: a table of two million files is a matter of seconds and of a few hundred megabytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.plain_arrays import booleans, integers, no_rows, numbers, numpy_of, single_array, texts
from hudimeta.table.slice_instants import slice_instants
from hudimeta.table.text_arrays import instant_number, instant_text
from hudimeta.timeline.naming import EXTERNAL_SUFFIX

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from hudimeta.table.file_names import ParsedNames
    from hudimeta.table.visibility import Visibility

__all__ = ["build_slices", "place_files", "slices_and_waiting", "slices_schema", "without_logs"]

_SEGMENT_ROWS = 1 << 15


def slices_schema() -> pa.Schema:
    """Columns of a slice listing.

    `base_file` and `base_size` are null for a slice of log files only; log files are in reading order, without CDC files.
    """
    import pyarrow as pa

    return pa.schema(
        [
            ("partition_path", pa.string()),
            ("file_id", pa.string()),
            ("base_instant", pa.string()),
            ("base_file", pa.string()),
            ("base_size", pa.int64()),
            ("log_files", pa.list_(pa.string())),
            ("log_sizes", pa.list_(pa.int64())),
        ]
    )


def build_slices(files: pa.Table, visibility: Visibility) -> pa.Table:
    """The newest visible slice of every file group.

    Args:
        files: Columns partition_path (string, or dictionary of it), name (string), size (int64): all files of a listing.
        visibility: What the timeline says.

    Returns:
        A table of `slices_schema()`, one row a file group, in the order of the listing.
    """
    return slices_and_waiting([files], visibility)[0]


def slices_and_waiting(pieces: Iterable[pa.Table], visibility: Visibility) -> tuple[pa.Table, int]:
    """As `build_slices` of files in pieces, in each of which partitions are whole; and how many of the files belong to instants
    that are not completed, so that a later moment may show them without any change of the listing."""
    import pyarrow as pa

    parts = [_build(names, partitions, sizes, visibility) for files in pieces for names, partitions, sizes in _segments(files)]
    if not parts:
        return no_rows(slices_schema()), 0
    return pa.concat_tables([table for table, _ in parts]), sum(waiting for _, waiting in parts)


def without_logs(slices: pa.Table) -> pa.Table:
    """Slices as a read-optimised query sees them: those with a base file, without their log files.

    A file group with any base file has one in its newest slice, because logs without one are older.

    Args:
        slices: Columns of `slices_schema()`.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = slices.filter(pc.is_valid(slices.column("base_file")))
    offsets, none = integers(np.zeros(len(kept) + 1, dtype=np.int32)), np.empty(0, np.int64)
    logs = pa.ListArray.from_arrays(offsets, texts([])), pa.ListArray.from_arrays(offsets, integers(none))
    return pa.Table.from_arrays([*kept.columns[:5], *logs], schema=slices_schema())


def place_files(files: pa.Table, visibility: Visibility) -> pa.Table:
    """Every committed file with the slice that it belongs to, superseded slices and CDC files included.

    Args:
        files: All files of a listing, see `build_slices`.
        visibility: What the timeline says; `as_of` is not looked at.

    Returns:
        partition_path, name, file_id string; slice int64, the slice's instant as a number (a CDC file's own, which is that of
        the base file beside it);
        replaced bool, True for file groups that a replacecommit took out.
    """
    import numpy as np
    import pyarrow as pa

    from hudimeta.table.file_names import parse_names

    names, partitions = _plain_text(files["name"]), _plain_text(files["partition_path"]).dictionary_encode()
    parsed = parse_names(names)
    _refuse_external_files(names, parsed)
    rows = np.flatnonzero(parsed.valid & _committed(parsed, visibility))
    at = parsed.instants[rows].copy()
    plain = np.flatnonzero(~parsed.is_cdc[rows])
    if len(plain):
        group = _group_numbers(partitions, parsed.file_ids, rows[plain])
        at[plain] = slice_instants(parsed, rows[plain], group, visibility)
    take = integers(rows)
    return pa.table(
        {
            "partition_path": partitions.take(take).cast(pa.string()),
            "name": names.take(take),
            "file_id": parsed.file_ids.take(take).cast(pa.string()),
            "slice": at,
            "replaced": _replaced(partitions, parsed.file_ids, rows, visibility.replaced),
        }
    )


def _segments(files: pa.Table) -> Iterator[tuple[pa.StringArray, pa.DictionaryArray, np.ndarray[Any, Any]]]:
    """Names, partitions and sizes of some files at a time, each partition whole: what is at work stays small, and near.

    All at once where the rows of a partition do not lie together.
    """
    import numpy as np

    partitions = _plain_text(files["partition_path"]).dictionary_encode()
    steps = np.diff(numbers(partitions.indices))
    cuts = [0]
    if len(steps) >= _SEGMENT_ROWS and (steps >= 0).all():
        borders = np.flatnonzero(steps) + 1
        for wanted in range(_SEGMENT_ROWS, len(files), _SEGMENT_ROWS):
            at = int(np.searchsorted(borders, wanted))
            if at < len(borders) and borders[at] > cuts[-1]:
                cuts.append(int(borders[at]))
    for start, end in itertools.pairwise([*cuts, len(files)]):
        part = files.slice(start, end - start)
        yield _plain_text(part["name"]), partitions.slice(start, end - start), numbers(single_array(part["size"]))


def _build(
    names: pa.StringArray, partitions: pa.DictionaryArray, sizes: np.ndarray[Any, Any], visibility: Visibility
) -> tuple[pa.Table, int]:
    import numpy as np

    from hudimeta.table.file_names import parse_names

    parsed = parse_names(names)
    _refuse_external_files(names, parsed)
    files = parsed.valid & ~parsed.is_cdc
    keep = files & _committed(parsed, visibility)
    rows = np.flatnonzero(keep)
    waiting = int(np.count_nonzero(files)) - len(rows)
    if not len(rows):
        return no_rows(slices_schema()), waiting
    group = _group_numbers(partitions, parsed.file_ids, rows)
    slice_at = slice_instants(parsed, rows, group, visibility)
    chosen = _newest(rows, group, slice_at, parsed, visibility)
    chosen = chosen[~_replaced(partitions, parsed.file_ids, rows[chosen], visibility.replaced)]
    if not len(chosen):
        return no_rows(slices_schema()), waiting
    listed = _Listed(names, partitions, sizes, parsed, rows, group)
    return _assemble(listed, slice_at, chosen).cast(slices_schema()), waiting


@dataclass(frozen=True)
class _Listed:
    """A listing, and which of its files count.

    Attributes:
        names, partitions, sizes: Of all files.
        parsed: The parts of the names.
        rows: int64, numbers of the committed base and log files.
        group: int64, for each of these a number for its file group.
    """

    names: pa.StringArray
    partitions: pa.DictionaryArray
    sizes: np.ndarray[Any, Any]
    parsed: ParsedNames
    rows: np.ndarray[Any, Any]
    group: np.ndarray[Any, Any]


def _refuse_external_files(names: pa.StringArray, parsed: ParsedNames) -> None:
    """Refuse a listing with files that other tools wrote: the metadata table has them as `<name>_<instant>_hudiext`.

    They lie on storage by their own names, which say neither the file group nor the instant; passed over, their rows were lost.
    """
    import pyarrow.compute as pc

    if parsed.valid.all():
        return
    others = names.filter(booleans(~parsed.valid))
    found = others.filter(pc.ends_with(others, EXTERNAL_SUFFIX))
    if len(found):
        raise UnsupportedFeature(
            f"base files that Apache Hudi did not write, such as {found[0]}", "Read them with Apache Hudi."
        )


def _plain_text(column: pa.ChunkedArray | pa.Array) -> pa.StringArray:
    import pyarrow as pa

    array = single_array(column)
    return array if array.type == pa.string() else array.cast(pa.string())


def _committed(parsed: ParsedNames, visibility: Visibility) -> np.ndarray[Any, Any]:
    """Files of completed instants, and of instants older than the active timeline.

    In version 6 a log file bears its base's instant and may hold blocks of many commits: it stays, its blocks are judged
    when it is read. The time of the reader is applied by `_newest`, once every file knows its slice.
    """
    import numpy as np

    done = np.array(sorted(instant_number(t) for t in visibility.completed), dtype=np.int64)
    result: np.ndarray[Any, Any] = np.isin(parsed.instants, done)
    if visibility.first_active is not None:
        result |= parsed.instants < instant_number(visibility.first_active)
    if visibility.unseen:
        result &= ~np.isin(parsed.instants, [instant_number(t) for t in visibility.unseen])
    if visibility.logs_name_base:
        result |= parsed.is_log
    return result


def _group_numbers(
    partitions: pa.DictionaryArray, file_ids: pa.StringArray, rows: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """One number for each (partition, file id), in order of first appearance among `rows`."""

    ids = file_ids.take(integers(rows)).dictionary_encode()
    codes: np.ndarray[Any, Any] = numbers(ids.indices)
    if len(ids.dictionary) == len(rows):
        return codes
    pair = numbers(partitions.indices)[rows] * len(ids.dictionary) + codes
    return numbers(integers(pair).dictionary_encode().indices)


def _newest(
    rows: np.ndarray[Any, Any],
    group: np.ndarray[Any, Any],
    slice_at: np.ndarray[Any, Any],
    parsed: ParsedNames,
    visibility: Visibility,
) -> np.ndarray[Any, Any]:
    """Positions in `rows` of the files of each group's newest slice, as the reader's time allows; sorted."""
    import numpy as np

    visible: np.ndarray[Any, Any] = np.arange(len(rows))
    if visibility.as_of is not None:
        limit = instant_number(visibility.as_of)
        seen = slice_at <= limit
        if not visibility.logs_name_base:
            seen &= ~parsed.is_log[rows] | (parsed.instants[rows] <= limit)
        visible = np.flatnonzero(seen)
    newest = np.full(int(group.max()) + 1 if len(group) else 0, -1, dtype=np.int64)
    np.maximum.at(newest, group[visible], slice_at[visible])
    result: np.ndarray[Any, Any] = visible[slice_at[visible] == newest[group[visible]]]
    return result


def _replaced(
    partitions: pa.DictionaryArray, file_ids: pa.StringArray, rows: np.ndarray[Any, Any], gone: pa.Table | None
) -> np.ndarray[Any, Any]:
    """Which rows belong to a replaced file group."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if gone is None or not len(gone) or not len(rows):
        return np.zeros(len(rows), dtype=bool)
    take = integers(rows)
    ids = file_ids.take(take)
    # File ids are all but unique: only the few that match at all are compared together with their partition.
    suspect = pc.is_in(ids, value_set=_plain_text(gone["file_id"]))
    result: np.ndarray[Any, Any] = numpy_of(suspect).copy()
    hits = np.flatnonzero(result)
    if len(hits):
        own = _pairs(partitions.take(take.take(integers(hits))).cast(pa.string()), ids.take(integers(hits)))
        gone_pairs = _pairs(_plain_text(gone["partition_path"]), _plain_text(gone["file_id"]))
        result[hits] = numpy_of(pc.is_in(own, value_set=gone_pairs))
    return result


def _pairs(partitions: pa.StringArray, file_ids: pa.StringArray) -> pa.StringArray:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(partitions, file_ids, texts(["\0"])[0])


def _assemble(listed: _Listed, slice_at: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> pa.Table:
    """One slice for each file group of the chosen files, which are numbers of `listed.rows`."""
    import numpy as np
    import pyarrow as pa

    parsed, rows, group = listed.parsed, listed.rows, listed.group
    is_log = parsed.is_log[rows[chosen]]
    base, logs = chosen[~is_log], chosen[is_log]
    # One slice a group: its first row stands for it, a base file where there is one.
    groups, first = np.unique(np.concatenate([group[base], group[logs]]), return_index=True)
    head = np.concatenate([base, logs])[first]
    order = np.argsort(head, kind="stable")
    groups, head = groups[order], head[order]
    head_rows = rows[head]
    without_base = parsed.is_log[head_rows]
    log_files, log_sizes = _log_lists(listed, groups, logs)
    take = integers(head_rows)
    mask = booleans(without_base)
    base_file = _masked(listed.names.take(take), mask)
    return pa.table(
        {
            "partition_path": listed.partitions.take(take).cast(pa.string()),
            "file_id": parsed.file_ids.take(take).cast(pa.string()),
            "base_instant": _instant_texts(slice_at[head], parsed.instant_digits[head_rows]),
            "base_file": base_file,
            "base_size": _masked(integers(listed.sizes[head_rows].astype(np.int64, copy=False)), mask),
            "log_files": log_files,
            "log_sizes": log_sizes,
        }
    )


def _masked(values: pa.Array, mask: pa.BooleanArray) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(mask, pa.nulls(1, values.type)[0], values) if mask.true_count else values


def _instant_texts(instants: np.ndarray[Any, Any], digits: np.ndarray[Any, Any]) -> pa.StringArray:
    import numpy as np

    distinct, place = np.unique(instants, return_inverse=True)
    spelled = instant_text(distinct).take(integers(place))
    if (digits == 17).all():
        return spelled
    return texts([t[: int(n)] for t, n in zip(spelled.to_pylist(), digits, strict=True)])


def _log_lists(listed: _Listed, groups: np.ndarray[Any, Any], logs: np.ndarray[Any, Any]) -> tuple[pa.ListArray, pa.ListArray]:
    """Names and sizes of the log files of each group as lists, in reading order: instant, version, write token."""
    import numpy as np
    import pyarrow as pa

    if not len(logs):
        offsets, none = integers(np.zeros(len(groups) + 1, dtype=np.int32)), np.empty(0, np.int64)
        return pa.ListArray.from_arrays(offsets, texts([])), pa.ListArray.from_arrays(offsets, integers(none))
    place = np.empty(int(groups.max()) + 1, dtype=np.int64)
    place[groups] = np.arange(len(groups))
    slot, rows = place[listed.group[logs]], listed.rows[logs]
    instants = listed.parsed.instants[rows]
    order = np.lexsort((instants, slot))
    alike = (np.diff(slot[order]) == 0) & (np.diff(instants[order]) == 0)
    if alike.any():
        some = np.sort(order[np.append(alike, False) | np.append(False, alike)])
        rank = np.zeros(len(logs), dtype=np.int64)
        rank[some] = _ranks_by_name(listed.names.take(integers(rows[some])))
        order = np.lexsort((rank, instants, slot))
    offsets = integers(np.r_[0, np.cumsum(np.bincount(slot, minlength=len(groups)))].astype(np.int32))
    ordered = rows[order]
    return (
        pa.ListArray.from_arrays(offsets, listed.names.take(integers(ordered))),
        pa.ListArray.from_arrays(offsets, integers(listed.sizes[ordered].astype(np.int64, copy=False))),
    )


def _ranks_by_name(names: pa.StringArray) -> np.ndarray[Any, Any]:
    """The place of each log file among all of them, as their names order them."""
    import numpy as np

    from hudimeta.table.file_names import parse_log_file

    keys = []
    for text in names.to_pylist():
        name = parse_log_file(text)
        keys.append(name.order if name is not None else (text, 0, (), False))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks
