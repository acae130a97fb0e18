"""One row a key among the rows of a write, before the table is looked at (`hoodie.combine.before.*`).

The table's own rule decides, with two additions that Apache Hudi's payload classes make. AWSDmsAvroPayload and
OverwriteNonDefaultsWithLatestAvroPayload, where a table of version 8 names them, compare the ordering values of rows of one
batch, though against the table the later write wins. And under IGNORE_DEFAULTS rows of one key are merged as they would be
with the table. Deletes are ordered among them as rows are, by whatever class. Of equal rows the last one wins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.slices.fold import fold_log_records
from hudimeta.slices.log_parts import DataPart
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.table.properties import TableProperties
from hudimeta.types import MergeMode
from hudimeta.write.batch import KeyedBatch, concatenated

__all__ = ["combine", "combining_rules"]

_BY_ORDERING_AMONG_THEMSELVES = ("AWSDmsAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload")


def combining_rules(properties: TableProperties, rules: MergeRules) -> MergeRules:
    """How rows of one write are combined, which is not always how they are merged with the table's."""
    if (properties.payload_class or "").rpartition(".")[2] in _BY_ORDERING_AMONG_THEMSELVES:
        rules = replace(rules, mode=MergeMode.EVENT_TIME_ORDERING, partial_mode=PartialUpdateMode.NONE)
    return replace(rules, deletes_always=False)


def combine(batch: KeyedBatch, rules: MergeRules, *, whole_table: bool = False) -> KeyedBatch:
    """One row for each (partition, key), or for each key where keys are unique in the whole table.

    Args:
        batch: Rows with keys; without them nothing is combined.
        rules: See `combining_rules`.
        whole_table: Keys are unique in the whole table.
    """
    if rules.partial_mode is PartialUpdateMode.NONE or batch.keys is None or not len(batch):
        return batch.combined(rules, whole_table=whole_table)
    pairs = batch.names(whole_table=whole_table)
    coded = pairs.dictionary_encode()
    codes = coded.indices.to_numpy()
    if len(coded.dictionary) == len(batch):
        return batch
    # A delete takes the place of whatever its key had, so that keys with one have nothing to merge.
    with_delete = np.zeros(len(coded.dictionary), dtype=bool)
    with_delete[codes[batch.deleted]] = True
    plain_rules = replace(rules, partial_mode=PartialUpdateMode.NONE)
    plain = batch.take(np.flatnonzero(with_delete[codes])).combined(plain_rules, whole_table=whole_table)
    merged = _merged(batch, pairs, np.flatnonzero(~with_delete[codes]), rules)
    return concatenated([merged, plain])


def _merged(batch: KeyedBatch, pairs: pa.StringArray, at: np.ndarray[Any, Any], rules: MergeRules) -> KeyedBatch:
    part = batch.take(at)
    own = pairs.take(pa.array(at))
    rows = part.rows.append_column(KEY_COLUMN, own)
    none = np.zeros(len(part), dtype=bool)
    folded = fold_log_records([DataPart(rows, none, none)], rows.schema, rules)
    first = part.take(pc.index_in(folded.keys, value_set=own).to_numpy())
    taken = folded.rows.take(pa.array(folded.row_of)).drop_columns([KEY_COLUMN])
    return replace(first, rows=taken)
