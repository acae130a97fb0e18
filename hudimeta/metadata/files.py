"""Partition `files` (types 1 and 2): which partitions a table has, and which files with which sizes each partition has.

    key "__all_partitions__" (type 1)   map of partition path -> {size 0, isDeleted}; isDeleted drops the partition
    key <partition path>     (type 2)   map of file name -> {size, isDeleted}

The map is Avro's: blocks of `count, count x (name, size long, isDeleted boolean)`, closed by the count 0; a negative count is
followed by the block's size in bytes.

A map has no index, so its entries must be chained from the first to the last. `_chain` finds all offsets where an entry could
begin (one after every byte 0 or 1, because an entry ends with its boolean), computes for all of them at once where the next
entry would begin, drops those that no other leads to, and then only follows the chain of the true ones, by stretches.

As a table, one row per map entry:

    key string (as stored: "." for the table without partitions), name string, size int64, is_deleted bool
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import (
    array_of,
    booleans,
    integers,
    no_rows,
    numbers,
    numpy_of,
    places,
    scalar_of,
    single_array,
    texts,
)
from hudimeta.metadata.datum import DatumCursor, Ints, Spans, binary_parts, encode_longs, encode_texts, join_binary
from hudimeta.metadata.keys import ALL_PARTITIONS
from hudimeta.metadata.payload import Cells, column_of, decode_payloads, encode_payloads, sorted_cells
from hudimeta.metadata.record import RecordLayout, RecordType, layout_of

__all__ = [
    "PARTITION",
    "SCHEMA",
    "apply_to_base",
    "as_live_entries",
    "decode_values",
    "encode_values",
    "fold",
    "live",
    "without_partition_list",
]

PARTITION = "files"
_THINNING = 3
"""Rounds of dropping places that no entry leads to: each takes away what only the places dropped before led to."""
SCHEMA = pa.schema([("key", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("is_deleted", pa.bool_())])
"""Columns of `decode_values`."""


def decode_values(cells: Cells, schema_text: str, path: str = "") -> pa.Table:
    """Records to a table of `SCHEMA`, entries in the order of the records; a record with an empty map has no row.

    Raises:
        CorruptFileError: Bytes that are not such records.
    """
    layout = layout_of(schema_text, path)
    rows, tables = 0, []
    keys = cells.keys.cast(pa.string())
    for types, entries in decode_payloads(cells.values, layout, "filesystemMetadata", _read_map, path):
        record = numbers(entries.column(0).chunk(0)) + rows
        key = keys.take(integers(record))
        tables.append(pa.Table.from_arrays([key, *entries.columns[1:]], schema=SCHEMA))
        rows += len(types)
    return pa.concat_tables(tables) if tables else no_rows(SCHEMA)


def _read_map(cursor: DatumCursor) -> pa.Table:
    """Entries of one map of every datum: record int64 (ordinal of the datum), name, size, is_deleted."""
    counts = cursor.long()
    simple = counts >= 0
    record, start = _chain(cursor, np.where(simple, counts, 0))
    entries = cursor.at(record)
    entries.pos = start
    names = entries.bytes()
    size, deleted = entries.long(), entries.boolean()
    parts: list[tuple[Any, ...]] = [(record, names.start, names.end, size, deleted)]
    # Writers close a map after one block; whatever else Avro allows is read entry by entry.
    after = cursor.data[cursor.pos]
    odd = np.flatnonzero(~simple | ((counts > 0) & (after != 0)))
    cursor.pos = cursor.pos + ((counts > 0) & (after == 0))
    parts += [_read_blocks(cursor, int(row), int(counts[row])) for row in odd]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if len(odd) else list(parts[0])
    if len(odd):
        order = np.lexsort((columns[1], columns[0]))
        columns = [column[order] for column in columns]
    record, first, last, size, deleted = columns
    text = Spans(cursor.buffer, first, last).column(pa.string())
    columns_of = {"record": integers(record), "name": text, "size": integers(size), "is_deleted": booleans(deleted)}
    return pa.table(columns_of)


def _chain(cursor: DatumCursor, counts: Ints) -> tuple[npt.NDArray[np.int64], Ints]:
    """Record and offset of every entry of the first block of every map; moves the cursor past those blocks."""
    busy = np.flatnonzero(counts)
    if not len(busy):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, last = int(cursor.pos[busy[0]]), int(cursor.end[busy[-1]])
    candidate = np.empty(last - first + 1, np.bool_)
    candidate[0] = False
    np.less_equal(cursor.data[first:last], 1, out=candidate[1:])
    candidate[cursor.pos[busy] - first] = True
    starts = np.flatnonzero(candidate) + first
    follow = _next_entries(cursor, starts)
    if (counts > len(starts)).any() or int(counts.sum()) > len(starts):
        raise cursor.fail(int(busy[0]), "a map whose entries fit its record")
    for _ in range(_THINNING):
        reached = np.zeros(len(starts), np.bool_)
        reached[np.searchsorted(starts, follow[follow <= starts[-1]])] = True
        reached[np.searchsorted(starts, cursor.pos[busy])] = True
        if reached.all():
            break
        starts, follow = starts[reached], follow[reached]
    where = _followed(starts, follow, np.searchsorted(starts, cursor.pos[busy]), counts[busy])
    record = np.repeat(busy, counts[busy])
    wrong = (where >= len(starts)) | (follow[np.minimum(where, len(starts) - 1)] > cursor.end[record])
    if wrong.any():
        raise cursor.fail(int(record[np.argmax(wrong)]), "a map entry inside the record")
    ends = np.cumsum(counts[busy]) - 1
    cursor.pos[busy] = follow[where[ends]]
    return record.astype(np.int64), starts[where]


def _followed(starts: Ints, follow: Ints, begin: Ints, counts: Ints) -> Ints:
    """Numbers of the entries on every chain: `counts` of them from each number in `begin` on.

    Nearly every entry is followed by the next possible one, so whole stretches are taken at once, each up to an entry that is
    followed by another one.
    """
    following = np.append(np.searchsorted(starts, follow), len(starts))
    leaps = np.append(np.flatnonzero(following[:-1] != np.arange(1, len(starts) + 1)), len(starts))
    next_leap: list[int] = np.searchsorted(leaps, begin).tolist()
    leap_at, leap_to = leaps.tolist(), following[leaps].tolist()
    firsts: list[int] = []
    lengths: list[int] = []
    for at, count, leap in zip(begin.tolist(), counts.tolist(), next_leap, strict=True):
        while count:
            while leap_at[leap] < at:
                leap += 1
            stretch = min(count, leap_at[leap] - at + 1)
            firsts.append(at)
            lengths.append(stretch)
            count -= stretch
            at = leap_to[leap]
    stretches = np.array(lengths, np.int64)
    return np.repeat(np.array(firsts, np.int64) - np.cumsum(stretches) + stretches, stretches) + np.arange(stretches.sum())


def _next_entries(cursor: DatumCursor, starts: Ints) -> Ints:
    """Where the entry after the one at each offset would begin; far beyond everything where no entry can stand.

    Offsets that are no entries give nonsense that nobody follows, but must not leave the buffer.
    """
    nowhere = len(cursor.data)
    limit = int(cursor.end[-1])
    trial = DatumCursor(cursor.data, starts, np.full(len(starts), limit), cursor.path)
    first = cursor.data[starts].astype(np.int64)
    second = cursor.data[starts + 1].astype(np.int64)
    third = cursor.data[starts + 2].astype(np.int64)
    # Names are far shorter than 2^20 bytes: three bytes of length are enough, and cheaper than the general form.
    two, three = first >= 128, (first >= 128) & (second >= 128)
    length = (first & 127) | np.where(two, (second & 127) << 7, 0) | np.where(three, (third & 127) << 14, 0)
    head = 1 + two.astype(np.int64) + three
    size_at = starts + head + (length >> 1)
    possible = ((length & 1) == 0) & (size_at < limit) & ~(three & (third >= 128))
    trial.pos = np.where(possible, size_at, limit)
    width = np.zeros(len(starts), np.int64)
    more = np.ones(len(starts), np.bool_)
    for _ in range(10):
        more &= cursor.data[trial.pos + width] >= 128
        if not more.any():
            break
        width += more
    follow = trial.pos + width + 2
    return np.where(possible & (cursor.data[follow - 1] <= 1), follow, nowhere)


def _read_blocks(cursor: DatumCursor, row: int, count: int) -> tuple[Any, ...]:
    """All entries of one map that is not a single plain block; `count` is the count read last, moves the cursor past it."""
    one = cursor.at(np.array([row]))
    starts, ends, sizes, flags = [], [], [], []
    if count >= 0:
        count = int(one.long()[0])
    while count:
        if count < 0:
            one.long()
            count = -count
        if count > int(one.end[0] - one.pos[0]):
            raise one.fail(0, "a map whose entries fit its record")
        for _ in range(count):
            name = one.bytes()
            starts.append(int(name.start[0]))
            ends.append(int(name.end[0]))
            sizes.append(int(one.long()[0]))
            flags.append(bool(one.boolean()[0]))
        count = int(one.long()[0])
    cursor.resume(np.array([row]), one)
    columns = (np.full(len(starts), row, np.int64), np.array(starts, np.int64), np.array(ends, np.int64))
    return (*columns, np.array(sizes, np.int64), np.array(flags, np.bool_))


def encode_values(table: pa.Table, layout: RecordLayout, empty_keys: tuple[str, ...] = ()) -> KeyValues:
    """Rows of `SCHEMA` to records sorted by key, one record for all rows of a key.

    Args:
        table: Names must be unique within a key.
        layout: What the records of the partition look like.
        empty_keys: Keys to write with an empty map; they must have no row.
    """
    import pyarrow.compute as pc

    order = pc.sort_indices(column_of(table, "key").cast(pa.binary()))
    table = table.take(order)
    keys = column_of(table, "key")
    entries = join_binary(
        encode_texts(column_of(table, "name")),
        encode_longs(numpy_of(column_of(table, "size"))),
        _flag_bytes(numpy_of(column_of(table, "is_deleted"))),
    )
    changed = np.ones(len(keys), np.bool_)
    if len(keys) > 1:
        changed[1:] = numpy_of(pc.not_equal(keys[1:], keys[:-1]))
    first = np.flatnonzero(changed)
    counts = np.diff(np.append(first, len(keys)))
    data, borders = binary_parts(entries)
    # The entries of a key already lie side by side: fewer borders over the same bytes make them one value.
    group = pa.py_buffer(np.append(borders[first], borders[-1:]).astype(np.int32))
    joined = pa.Array.from_buffers(pa.binary(), len(first), [None, group, pa.py_buffer(np.ascontiguousarray(data))])
    bodies = join_binary(encode_longs(counts), joined, b"\x00")
    names = keys.take(array_of(first))
    if empty_keys:
        names = pa.concat_arrays([names, array_of(empty_keys, names.type)])
        bodies = pa.concat_arrays([bodies, array_of([b"\x00"] * len(empty_keys), pa.binary())])
    all_partitions = numpy_of(pc.equal(names, scalar_of(ALL_PARTITIONS)))
    types = np.where(all_partitions, int(RecordType.ALL_PARTITIONS), int(RecordType.FILES)).astype(np.int64)
    return KeyValues(*sorted_cells(names, encode_payloads(types, layout, "filesystemMetadata", bodies)))


def with_partition_list(pieces: Iterable[KeyValues], layout: RecordLayout) -> Iterator[KeyValues]:
    """Records of a base file, in the order of their keys, which tell of all partitions even where there are none."""
    import pyarrow.compute as pc

    mark, is_told = scalar_of(ALL_PARTITIONS.encode()), False
    empty = encode_values(no_rows(SCHEMA), layout, (ALL_PARTITIONS,))
    for piece in pieces:
        keys = piece.keys.cast(pa.binary())
        if not is_told and pc.any(pc.greater_equal(keys, mark)).as_py():
            is_told = True
            if not pc.any(pc.equal(keys, mark)).as_py():
                together = KeyValues.concat([KeyValues(keys, piece.values), empty])
                piece = KeyValues(*sorted_cells(together.keys, together.values))
        yield piece
    if not is_told:
        yield empty


def _flag_bytes(flags: npt.NDArray[np.bool_]) -> pa.Array:
    borders = np.arange(len(flags) + 1, dtype=np.int32)
    data = np.ascontiguousarray(flags.astype(np.uint8))
    return pa.Array.from_buffers(pa.binary(), len(flags), [None, pa.py_buffer(borders), pa.py_buffer(data)])


def fold(entries: pa.Table) -> pa.Table:
    """Merge entries that were written one after the other.

    Both live: the larger size. Newer deleted, older live: the entry is gone. Deleted and unknown before: the deletion stays,
    it may yet meet an older base. Deleted before and live now: live.

    The rule is not associative: fold all logs of a slice first, then apply the result to the base.

    Args:
        entries: Rows of `SCHEMA`, oldest first.

    Returns:
        Rows of `SCHEMA`, one for each (key, name) at most.
    """
    if not len(entries):
        return entries
    names = _codes(entries.column("name"))
    pairs = _codes(entries.column("key")) * (int(names.max()) + 1) + names
    distinct, first, which, counts = np.unique(pairs, return_index=True, return_inverse=True, return_counts=True)
    if len(distinct) == len(entries):
        return entries
    if int(counts.max()) > 2:
        return _fold_one_by_one(entries)
    last = np.empty(len(distinct), np.int64)
    last[which] = np.arange(len(entries))
    sizes = numbers(column_of(entries, "size"))
    deleted = np.zeros(len(entries), np.bool_)
    deleted[places(column_of(entries, "is_deleted"))] = True
    kept = np.flatnonzero(~deleted[last] | deleted[first])
    first, last = first[kept].astype(np.int64), last[kept]
    size = np.where(deleted[last], 0, np.maximum(sizes[first], sizes[last]))
    named = entries.select(["key", "name"]).take(integers(first))
    return pa.Table.from_arrays([*named.columns, integers(size), booleans(deleted[last])], schema=SCHEMA)


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each text, the same for the same text."""
    return numbers(single_array(column).dictionary_encode().indices)


def _fold_one_by_one(entries: pa.Table) -> pa.Table:
    """For files that three entries name or more: logs that grew (version 6), or writers at odds."""
    merged: dict[tuple[str, str], tuple[int, bool]] = {}
    for key, name, size, deleted in zip(*(c.to_pylist() for c in entries.columns), strict=True):
        older = merged.get((key, name))
        if older is None or (older[1] and deleted):
            merged[key, name] = (size, deleted)
        elif deleted:
            del merged[key, name]
        else:
            merged[key, name] = (max(older[0], size), False)
    sizes = np.fromiter((size for size, _ in merged.values()), np.int64, len(merged))
    are_deleted = np.fromiter((deleted for _, deleted in merged.values()), np.bool_, len(merged))
    columns = [texts([key for key, _ in merged]), texts([name for _, name in merged]), integers(sizes), booleans(are_deleted)]
    return pa.table(columns, schema=SCHEMA)


def apply_to_base(base: pa.Table, logs: pa.Table) -> pa.Table:
    """Apply the folded logs of a slice to its base file.

    Args:
        base: Rows of the base file, without the keys that a delete block removed.
        logs: All logs of the slice, folded.
    """
    import pyarrow.compute as pc

    if not len(logs) or not len(base):
        return logs if not len(base) else base
    touched = pc.is_in(base.column("key"), single_array(logs.column("key")).unique())
    return pa.concat_tables([base.filter(pc.invert(touched)), fold(pa.concat_tables([base.filter(touched), logs]))])


def live(table: pa.Table) -> pa.Table:
    """The rows that are not deletions, without the column `is_deleted`."""
    import pyarrow.compute as pc

    deleted = table.column("is_deleted")
    if pc.any(deleted).as_py():
        table = table.filter(pc.invert(deleted))
    return table.drop_columns(["is_deleted"])


def without_partition_list(table: pa.Table) -> pa.Table:
    """The rows that stand for files, of a table as `live` gives it; what it leaves out is a few rows in one place, mostly."""
    import pyarrow.compute as pc

    mark = texts([ALL_PARTITIONS])[0]
    listed = places(single_array(pc.equal(table.column("key"), mark)))
    if not len(listed):
        return table
    first, after = int(listed[0]), int(listed[-1]) + 1
    if after - first == len(listed):
        return pa.concat_tables([table.slice(0, first), table.slice(after)])
    return table.filter(pc.not_equal(table.column("key"), mark))


def as_live_entries(table: pa.Table) -> pa.Table:
    """The inverse of `live`: rows without `is_deleted`, none of them a deletion, as rows of `SCHEMA`."""
    return table.append_column("is_deleted", array_of(np.zeros(len(table), np.bool_))).cast(SCHEMA)
