"""What a task hands back of the files that it wrote: summaries; what grows with the rows stays on storage.

The facts that indexes of keys want (every key that a file adds) are laid aside by index and file group of the index, for the
task that will write that file group's records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import no_rows, scalar_of
from hudimeta.indexes.facts import FileFacts, KeyChanges
from hudimeta.indexes.record_index.keep import key_changes
from hudimeta.indexes.record_window.runs import RunStamp
from hudimeta.indexes.secondary_index.keep import value_changes
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, record_index, secondary_index
from hudimeta.metadata.delta import Hashed
from hudimeta.metadata.keys import secondary_heads, shard_to_write
from hudimeta.storage import Storage
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.exchange import Span, StagedFile

__all__ = ["FactsSpec", "IndexOfKeys", "RoutedFiles", "handed_back", "key_facts", "laid_aside"]

KINDS = ("added", "removed", "maybe_added")
"""The columns of `KeyChanges`, by the number that staged facts give them."""
FACTS = pa.schema([("kind", pa.int8()), ("file", pa.int32()), ("key", pa.string())])
"""Staged facts; `file` is the position in `RoutedFiles.files`."""


@dataclass(frozen=True)
class IndexOfKeys:
    """How an index of keys is cut.

    Attributes:
        partition: Its metadata partition.
        groups: Its file groups.
        by_value: Their choice goes by the value alone.
        by_path: Each partition of the table has an index of its own.
    """

    partition: str
    groups: int
    by_value: bool = False
    by_path: bool = False

    @property
    def hashed(self) -> Hashed | None:
        """What of a key decides about its file group; None for all of it."""
        return secondary_heads if self.by_value else None

    def shares(self, keys: pa.Array, path_number: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """The share of each key; with an index by partition the one of the whole partition."""
        if self.by_path:
            return np.full(len(keys), path_number, np.int32)
        return shard_to_write(keys if self.hashed is None else self.hashed(keys), self.groups)


@dataclass(frozen=True)
class FactsSpec:
    """The indexes of keys that a table has."""

    indexes: tuple[IndexOfKeys, ...] = ()

    @classmethod
    def of(cls, table: MetadataTable | None) -> FactsSpec:
        """Of a metadata table; None for a table that has none."""
        found = []
        for name in table.ready if table is not None else ():
            if table is None or not (name == record_index.PARTITION or name.startswith(secondary_index.PREFIX)):
                continue
            definition = table.index_definitions.get(name)
            by_path = definition is not None and name == record_index.PARTITION and definition.is_partitioned
            by_value = definition is not None and name != record_index.PARTITION and definition.is_v2
            found.append(IndexOfKeys(name, 0 if by_path else len(table.all_groups(name)), by_value, by_path))
        return cls(tuple(found))


@dataclass(frozen=True)
class RoutedFiles:
    """Files, and where their facts wait.

    Attributes:
        files: Without the facts of indexes of keys and without bloom filters, which stand in the files as well.
        facts: By metadata partition and share: staged rows of `FACTS`.
        added: How many of them are keys that are added for certain, by metadata partition.
        window: What the record window gets of them.
    """

    files: tuple[WrittenFile, ...] = ()
    facts: Mapping[tuple[str, int | str], Sequence[Span]] = field(default_factory=dict)
    added: Mapping[str, int] = field(default_factory=dict)
    window: Sequence[RunStamp] = ()


def handed_back(
    opened: OpenedTable, write: RoutedWrite, spec: FactsSpec, files: Sequence[WrittenFile], number: int, attempt: int
) -> RoutedFiles:
    """Lay the facts of files aside.

    Raises:
        CommitError: The write is over; then the files are gone.
    """
    path, storage = write.staged_path("facts", number, attempt), opened.storage
    facts = laid_aside(storage, path, spec, files)
    added = {index.partition: sum(len(_changes(f, index.partition).added) for f in files) for index in spec.indexes}
    light = tuple(replace(f, facts=replace(f.facts, keys=None, values={}, bloom=None)) for f in files)
    found = RoutedFiles(light, facts, added, opened.table.window.run_of(files))
    write.refuse_when_over(storage, [p for file in files for p in file.paths] + ([path] if facts else []))
    return found


def laid_aside(
    storage: Storage, path: str, spec: FactsSpec, files: Sequence[WrittenFile]
) -> dict[tuple[str, int | str], list[Span]]:
    """Stage the facts of files in one Arrow file; returns where those of each index and share are.

    Raises:
        MetadataError: A file without the facts that an index wants.
    """
    found: dict[tuple[str, int | str], list[Span]] = {}
    paths = list(dict.fromkeys(file.partition_path for file in files))
    with StagedFile(storage, path) as staged:
        for index in spec.indexes:
            parts, shares = [no_rows(FACTS)], [np.zeros(0, np.int32)]
            for number, file in enumerate(files):
                changes = _changes(file, index.partition)
                for kind, texts in enumerate(getattr(changes, name) for name in KINDS):
                    parts.append(_rows(kind, number, texts))
                    shares.append(index.shares(texts, paths.index(file.partition_path)))
            for share, spans in staged.add_by(pa.concat_tables(parts), np.concatenate(shares)).items():
                found[index.partition, paths[share] if index.by_path else share] = spans
    return found


def _changes(file: WrittenFile, partition: str) -> KeyChanges:
    return key_changes(file) if partition == record_index.PARTITION else value_changes(file, partition)


def _rows(kind: int, number: int, texts: pa.StringArray) -> pa.Table:
    kinds = pa.repeat(scalar_of(kind, pa.int8()), len(texts))
    return pa.table([kinds, pa.repeat(scalar_of(number, pa.int32()), len(texts)), texts.cast(pa.string())], schema=FACTS)


def key_facts(rows: pa.Table, partition: str, number: int) -> FileFacts:
    """The inverse: the facts of one file and index out of staged rows."""
    import pyarrow.compute as pc

    own = rows.filter(pc.equal(rows["file"], number))
    texts = [own.filter(pc.equal(own["kind"], kind))["key"].combine_chunks() for kind in range(len(KINDS))]
    changes = KeyChanges(*texts)
    return FileFacts(keys=changes) if partition == record_index.PARTITION else FileFacts(values={partition: changes})
