"""Do proven record and secondary indexes, and a record window, know exactly the rows of the table? By reading every row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hudimeta.errors import ValidationFailed
from hudimeta.indexes.facts import value_texts
from hudimeta.indexes.record_window.chains import slice_print
from hudimeta.indexes.record_window.runs import Prints, whole_prints
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.indexes.record_window.window import kept_prints
from hudimeta.metadata import answers, record_index, secondary_index
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.schema import avro_to_arrow, strip_meta_columns
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.testing.inspection import Inspection

__all__ = ["record_index_is_live_keys", "record_window_is_live_keys", "secondary_answers_as_scan"]

_SHOWN = 8


def record_index_is_live_keys(table: Inspection) -> None:
    """A proven record index knows every live key, where it lives, and no other key."""
    if table.metadata is None or record_index.PARTITION not in _proven(table):
        return
    records = table.metadata.records(record_index.PARTITION).to_pylist()
    stated = Counter((r["record_key"], r["partition_path"], r["file_id"]) for r in records)
    live = Counter(
        (key, one.partition_path, one.file_id) for one, rows in _slices(table, []) for key in set(rows[KEY_COLUMN].to_pylist())
    )
    _refuse("live keys that the record index lacks, or has elsewhere", live - stated)
    _refuse("records of no live key", stated - live)


def record_window_is_live_keys(table: Inspection) -> None:
    """What a record window knows of a slice are its live keys. It need not know every slice: what it does not know is read."""
    if WindowSettings.of(table.properties) is None:
        return
    found = [(f"{one.partition_path}\0{one.file_id}", one, rows) for one, rows in _slices(table, [])]
    now = {name: slice_print(one.base_file or "", one.log_files, one.log_sizes) for name, one, _ in found}
    keys = {name: rows[KEY_COLUMN].combine_chunks().cast("string") for name, _, rows in found}
    for name, stated in kept_prints(table.storage, now).items():
        prints = Prints.of(keys[name])
        live = whole_prints(prints.first, prints.second)
        _refuse(f"keys of {name!r} that the record window lacks", np.setdiff1d(live, stated))
        _refuse(f"keys of {name!r} that the record window has and the slice not", np.setdiff1d(stated, live))


def secondary_answers_as_scan(table: Inspection) -> None:
    """A proven secondary index gives, for every value of its column, the keys that a scan finds, and no others."""
    if table.metadata is None:
        return
    for name in sorted(n for n in _proven(table) if n.startswith(secondary_index.PREFIX)):
        definition = table.metadata.index_definitions[name]
        (column,) = definition.source_fields
        wanted: Counter[tuple[Any, str]] = Counter()
        for _, rows in _slices(table, [column]):
            pairs = set(zip(value_texts(rows, column).to_pylist(), rows[KEY_COLUMN].to_pylist(), strict=True))
            wanted.update(pair for pair in pairs if definition.is_v2 or pair[0] is not None)
        values = sorted({value for value, _ in wanted if value is not None})
        asked: list[str | None] = [*values, None] if definition.is_v2 else [*values]
        found = answers.keys_with_values(table.metadata, name, asked).to_pylist()
        _refuse(f"rows that {name} does not find", set(wanted) - {(r["secondary"], r["record_key"]) for r in found})
        entries = Counter((r["secondary"], r["record_key"]) for r in table.metadata.records(name).to_pylist())
        _refuse(f"entries of {name} that are no row's", entries - wanted)


def _proven(table: Inspection) -> frozenset[str]:
    return frozenset() if table.metadata is None else proven_indexes(table.metadata)


def _slices(table: Inspection, columns: list[str]) -> list[Any]:
    found = table.timeline.latest_schema()
    if found is None:
        return []
    reader = SliceRows.at(table.storage, table.properties, strip_meta_columns(avro_to_arrow(found[1])), table.timeline)
    return [(one, reader.columns(one, columns)) for one in slices_of(table.slices)]


def _refuse(what: str, wrong: Any) -> None:
    found = sorted(str(one) for one in wrong)
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise ValidationFailed(f"{what}: {'; '.join(found[:_SHOWN])}{more}")
