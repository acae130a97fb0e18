"""Change files (`*.cdc`): what a rewrite of a base file did to its rows, for CDC queries.

Written for every base file that is rewritten, where `hoodie.table.cdc.enabled` says so: readers infer the changes of new file
groups, of log files and of replaced groups, but refuse a rewritten base file that comes without one. The three modes of
`hoodie.table.cdc.supplemental.logging.mode` hold operation and key; these and the row before; or operation, instant and both
rows. Rows that stay as they were are not mentioned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.commit.markers import Marker, MarkerKind, marked_output
from hudimeta.formats.avro.schemas import CDC_KEY_ONLY, cdc_with_before, cdc_with_before_and_after
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.log import BlockType, HeaderKey, encode_avro_content, frame_block, seal_blocks
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.same_keys import told_apart
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import LogFileName
from hudimeta.table.properties import CdcMode
from hudimeta.types import META_COLUMNS

__all__ = ["ChangeFormat", "Changes", "changed_rows", "write_change_file"]

_TIME_COLUMN = META_COLUMNS[0]
BLOCK_ROWS = 1 << 16
"""Rows a block: Java reads a block at once."""


@dataclass(frozen=True)
class ChangeFormat:
    """How a table captures changes. Attributes: mode: What is kept. data_schema: Avro schema as JSON, without meta columns."""

    mode: CdcMode
    data_schema: str

    @property
    def avro_schema(self) -> str:
        """Schema of the records as JSON."""
        if self.mode is CdcMode.OP_KEY_ONLY:
            return json.dumps(CDC_KEY_ONLY)
        data = parse_json(self.data_schema)
        return json.dumps(cdc_with_before(data) if self.mode is CdcMode.DATA_BEFORE else cdc_with_before_and_after(data))


@dataclass(frozen=True)
class Changes:
    """Changes of rows, in the order of the file.

    Attributes:
        operations: `i`, `u` or `d`.
        keys: Record keys.
        before, after: Rows with meta columns, and for each change the position in them, -1 for none.
    """

    operations: pa.StringArray
    keys: pa.Array
    before: pa.Table
    after: pa.Table
    before_at: npt.NDArray[np.int64]
    after_at: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.operations)


def changed_rows(before: pa.Table, after: pa.Table, instant: str | None, *, compare: bool = False) -> Changes:
    """What a write did to the rows of a base file.

    Args:
        before: Rows with meta columns; may lack columns.
        after: Rows with meta columns, of the same schema but for those.
        instant: Of the write, which rows that it wrote bear as commit time; None for a compaction, whose rows bear what the
            logs say.
        compare: Look at values too: a row may have been filled from a late version and keep its commit time.
    """
    import pyarrow.compute as pc

    old_keys, new_keys = told_apart(before[KEY_COLUMN], after[KEY_COLUMN])

    was_at = pc.fill_null(pc.index_in(new_keys, value_set=old_keys), -1).to_numpy().astype(np.int64)
    stays = np.zeros(before.num_rows, bool)
    stays[was_at[was_at >= 0]] = True
    known = np.flatnonzero(was_at >= 0)
    if instant is None:
        written = was_at < 0
        written[known[_other_versions(before, was_at[known], after, known)]] = True
        compare = compare or after[_TIME_COLUMN].null_count > 0
    else:
        # Rows of tables with virtual keys bear no commit time, those of this write excepted.
        written = pc.fill_null(pc.equal(after[_TIME_COLUMN], instant), False).to_numpy().astype(bool)
    if compare:
        written[known[_differ(before.take(pa.array(was_at[known])), after.take(pa.array(known)))]] = True
    changed, gone = np.flatnonzero(written), np.flatnonzero(~stays)
    before_at = np.concatenate([was_at[changed], gone])
    after_at = np.concatenate([changed, np.full(len(gone), -1)])
    operations = np.where(after_at < 0, "d", np.where(before_at < 0, "i", "u"))
    keys = pa.chunked_array([*after[KEY_COLUMN].take(changed).chunks, *before[KEY_COLUMN].take(gone).chunks], pa.string())
    return Changes(pa.array(operations, pa.string()), keys.combine_chunks(), before, after, before_at, after_at)


def _other_versions(
    before: pa.Table, was_at: npt.NDArray[np.int64], after: pa.Table, at: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Of rows on both sides those that another write has written since."""
    import pyarrow.compute as pc

    differs = np.zeros(len(at), bool)
    for name in META_COLUMNS[:2]:
        changed = pc.not_equal(before[name].take(pa.array(was_at)), after[name].take(pa.array(at)))
        differs |= pc.fill_null(changed, False).to_numpy().astype(bool)
    return differs


def _differ(old: pa.Table, new: pa.Table) -> npt.NDArray[np.bool_]:
    from hudimeta.read.cdc_images import row_images

    names = [name for name in new.column_names if name not in META_COLUMNS and name in old.column_names]
    if not new.num_rows:
        return np.zeros(0, bool)
    images = [row_images(rows.select(names).combine_chunks().to_batches()[0]) for rows in (old, new)]
    import pyarrow.compute as pc

    differs: npt.NDArray[np.bool_] = pc.not_equal(*images).to_numpy(zero_copy_only=False)
    return differs


def write_change_file(
    storage: Storage,
    instant: str,
    form: ChangeFormat,
    partition_path: str,
    file_id: str,
    token: str,
    changes: Changes,
    *,
    in_task: bool = False,
) -> tuple[str, int]:
    """Write the change file of one file group, also where nothing changed: Apache Hudi's readers miss the file otherwise.

    Args:
        storage: Rooted at the table.
        instant: Of the write.
        form: What to keep.
        partition_path: Of the file group.
        file_id: Of the file group.
        token: Write token of the base file.
        changes: What was done.
        in_task: See `marked_output`.

    Returns:
        Its name and its size in bytes.
    """
    name = str(LogFileName(file_id, instant, 1, token, is_cdc=True))
    path = join(partition_path, name)
    schema = form.avro_schema
    header = {HeaderKey.SCHEMA: schema, HeaderKey.INSTANT_TIME: instant}
    blocks = []
    for start in range(0, max(len(changes), 1), BLOCK_ROWS):
        records = _records(changes, form, instant, slice(start, start + BLOCK_ROWS))
        blocks.append(frame_block(BlockType.CDC_DATA, header, encode_avro_content(records, schema)))
    seal_blocks(blocks, name)
    with marked_output(storage, instant, Marker(path, MarkerKind.CREATE), in_task=in_task) as stream:
        for block in blocks:
            stream.write(block)
    return name, sum(map(len, blocks))


def _records(changes: Changes, form: ChangeFormat, instant: str, part: slice) -> pa.Table:
    operations = changes.operations[part]
    columns: dict[str, Any] = {"op": operations}
    if form.mode is not CdcMode.DATA_BEFORE_AFTER:
        columns["record_key"] = changes.keys[part]
    else:
        columns["ts_ms"] = pa.repeat(pa.scalar(instant), len(operations))
    if form.mode is not CdcMode.OP_KEY_ONLY:
        columns["before"] = _images(changes.before, changes.before_at[part], changes.after.schema)
    if form.mode is CdcMode.DATA_BEFORE_AFTER:
        columns["after"] = _images(changes.after, changes.after_at[part], changes.after.schema)
    return pa.table(columns)


def _images(rows: pa.Table, at: npt.NDArray[np.int64], schema: pa.Schema) -> pa.StructArray:
    """Data columns of the rows at some positions as one struct column, null where there is no row."""
    data = [field for field in schema if field.name not in META_COLUMNS]
    there = pa.array(at, mask=at < 0)
    fields = [field.with_nullable(True) for field in data]
    arrays = [rows[field.name].take(there).combine_chunks() for field in data]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(at < 0))
