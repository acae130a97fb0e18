"""Writing the archived part of a timeline: new files, the manifest that names them, and merging of many small files into few.

A run adds files of level 0, then `manifest_<N+1>`: readers see the old history until that step, and all of the new one after
it. Then it points `_version_`, which readers in Java ask, at that manifest. The next run goes on from the newest manifest there
is, whatever `_version_` says: the run that wrote it may have died before that step, or the number may be damaged. Ten files of
a level are merged into one of the next. Files that only older manifests name stay for a while, because a reader may just have
read such a manifest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.avro.schemas import LSM_TIMELINE_INSTANT
from hudimeta.formats.parquet import blank_entries, sealed_file
from hudimeta.storage import Storage, join, put_own
from hudimeta.storage.at_once import delete_files, files_at_once
from hudimeta.timeline.history import (
    COLUMNS,
    MANIFEST_PREFIX,
    VERSION_FILE,
    History,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
    is_history_file,
    is_manifest,
)

__all__ = ["FILES_TO_MERGE", "MANIFESTS_KEPT", "HistoryWriter", "archived_rows", "without"]

FILES_TO_MERGE = 10
"""So many files of a level become one of the next (`hoodie.timeline.compaction.batch.size`)."""

MANIFESTS_KEPT = 3
"""Manifests, the newest among them, whose files stay in the folder."""

INSTANTS_A_FILE = 1_000
ROW_VERSION = 1
_TOP_LEVEL = 9
"""A file's level is one digit of its name."""

_STORED = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_FOOTER = {"parquet.avro.schema": json.dumps(LSM_TIMELINE_INSTANT), "writer.model.name": "avro"}


class HistoryWriter:
    """Adds instants to a history. The caller holds the table lock.

    Args:
        storage: Rooted at the table (for the metadata table at `.hoodie/metadata`).
        history: What is there.
    """

    def __init__(self, storage: Storage, history: History) -> None:
        self._storage, self._history = storage, history

    def add(self, instants: pa.Table) -> None:
        """Archive instants that the history does not hold yet.

        Args:
            instants: The columns of `History.load`, sorted by instant_time.
        """
        if not instants.num_rows:
            return
        starts = range(0, instants.num_rows, INSTANTS_A_FILE)
        current, known = self._history.current()
        fresh = [self._write(instants.slice(start, INSTANTS_A_FILE), 0) for start in starts]
        entries = [*known, *fresh]
        self._publish(self._merged(entries), current)
        self.remove_unnamed()

    def known(self, first: str) -> pa.StringArray:
        """Requested times from `first` on that the history holds: a run that died may have added them already."""
        names = [entry.name for entry in self._history.files_between(first)]
        found = [rows["instant_time"].combine_chunks() for rows in self._read(names)]
        return pa.concat_arrays([pa.array([], pa.string()), *found])

    def _write(self, rows: pa.Table, level: int) -> ManifestEntry:
        import pyarrow.parquet as pq

        times = rows["instant_time"]
        name = f"{times[0].as_py()}_{times[-1].as_py()}_{level}.parquet"
        version = pa.array([ROW_VERSION] * rows.num_rows, pa.int32())
        stored = pa.table([*(rows[c] for c in COLUMNS), version], schema=_STORED)
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, _STORED, compression="gzip", store_schema=False, write_page_checksum=True) as writer:
            writer.write_table(stored)
            writer.add_key_value_metadata({**_FOOTER, **blank_entries(name)})
        data = sealed_file(sink.getvalue().to_pybytes())
        self._storage.put(join(self._history.folder, name), data)
        return ManifestEntry(name, len(data))

    def _merged(self, entries: list[ManifestEntry]) -> list[ManifestEntry]:
        """Entries after all merging that is due, level by level."""
        for level in range(_TOP_LEVEL):
            while True:
                here = sorted((e for e in entries if _level(e) == level), key=lambda e: e.name)[:FILES_TO_MERGE]
                if len(here) < FILES_TO_MERGE:
                    break
                rows = pa.concat_tables(self._read([e.name for e in here])).sort_by("instant_time")
                entries = [e for e in entries if e not in here] + [self._write(rows, level + 1)]
        return entries

    def _read(self, names: Sequence[str]) -> list[pa.Table]:
        return files_at_once(self._history.read_file, names, self._storage)

    def _publish(self, entries: Sequence[ManifestEntry], current: int) -> None:
        number = current + 1
        in_order, name = sorted(entries, key=lambda e: e.name), f"{MANIFEST_PREFIX}{number}"
        # Whoever stood still, and put it although others have archived meanwhile, must not replace theirs.
        put_own(self._storage, join(self._history.folder, name), encode_manifest(in_order, name))
        self._storage.put(join(self._history.folder, VERSION_FILE), str(number).encode())

    def remove_unnamed(self) -> None:
        """Delete manifests that are not among the kept ones, and files that none of those names, a run that died among them."""
        sizes = {entry.name: entry.size for entry in self._storage.list(self._history.folder)}
        there = sizes.keys()
        newest = self._history.current()[0] if there else 0
        kept = {f"{MANIFEST_PREFIX}{number}" for number in range(newest - MANIFESTS_KEPT + 1, newest + 1)} & there
        written = {manifest for manifest in kept if sizes[manifest]}
        kept = written | ({f"{MANIFEST_PREFIX}{newest}"} & there)  # what is empty serves nobody; the newest may be at work
        named = {name for manifest in written for name in self._names(join(self._history.folder, manifest))}
        unnamed = [name for name in sorted(there - kept - named) if is_manifest(name) or is_history_file(name)]
        delete_files(self._storage, [join(self._history.folder, name) for name in unnamed])

    def _names(self, path: str) -> set[str]:
        return {entry.name for entry in decode_manifest(self._storage.read(path), path)}


def archived_rows(rows: Sequence[tuple[str, str | None, str, bytes | None, bytes | None]]) -> pa.Table:
    """Rows of `History.load` from (instant_time, completion_time, action, metadata, plan), sorted; empty bytes are null."""
    types = dict(zip(COLUMNS, (pa.string(), pa.string(), pa.string(), pa.binary(), pa.binary()), strict=True))
    ordered = sorted(rows, key=lambda row: row[0])
    columns = [[row[i] or None for row in ordered] for i in range(len(COLUMNS))]
    return pa.table([pa.array(c, t) for c, t in zip(columns, types.values(), strict=True)], names=list(types))


def without(rows: pa.Table, times: pa.StringArray) -> pa.Table:
    """The rows whose instant_time is none of `times`."""
    return rows.filter(pc.invert(pc.is_in(rows["instant_time"], value_set=times)))


def _level(entry: ManifestEntry) -> int:
    return int(entry.name.rpartition("_")[2].partition(".")[0])
