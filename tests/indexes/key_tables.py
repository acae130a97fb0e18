"""Tables that are nothing but keys in file groups, for tests of every index over the same contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudimeta.engine import LocalEngine
from hudimeta.formats.bloom import BloomFilter
from hudimeta.indexes.bloom_filters.look_up import BloomFiltersLookUp
from hudimeta.indexes.record_index.look_up import RecordIndexLookUp
from hudimeta.indexes.simple.look_up import SimpleLookUp
from hudimeta.indexes.tagging import Tagging
from hudimeta.table.key_file import KeyFile

T = "20260102030405678"
RUN = LocalEngine(1).map


@dataclass
class KeyTable:
    """Keys by partition and file id.

    Attributes:
        held: The keys.
        ranges: Whether key ranges are known.
        in_logs: File ids that are slices of log files alone.
        read: File ids whose key columns were read.
    """

    held: Mapping[str, Mapping[str, Sequence[str]]]
    ranges: bool = True
    in_logs: frozenset[str] = frozenset()
    read: list[str] = field(default_factory=list)

    def files_of(self, partitions: Sequence[str] | None) -> dict[str, list[KeyFile]]:
        wanted = self.held if partitions is None else [p for p in partitions if p in self.held]
        return {p: [self._file(p, f, keys) for f, keys in self.held[p].items()] for p in wanted}

    def _file(self, partition: str, file_id: str, keys: Sequence[str]) -> KeyFile:
        known = self.ranges and keys
        low, high = (min(keys, key=str.encode), max(keys, key=str.encode)) if known else (None, None)
        if file_id in self.in_logs:
            return KeyFile(partition, file_id, "", 0, low, high, (f".{file_id}_{T}.log.1_0-0-0",), log_sizes=(1,))
        return KeyFile(partition, file_id, f"{file_id}_0-0-0_{T}.parquet", 1, low, high)

    def read_keys(self, file: KeyFile, wanted: pa.StringArray) -> pa.StringArray | None:
        self.read.append(file.file_id)
        return pa.array(self.held[file.partition_path][file.file_id], pa.string())

    def filters(self, files: Sequence[tuple[str, str]]) -> pa.Table:
        """Bloom filters of base files; every third one is missing."""
        rows = []
        for number, (partition, name) in enumerate(files):
            if number % 3 != 2:
                keys = pa.array(self.held[partition][name.partition("_")[0]], pa.string())
                bloom = BloomFilter.create_simple(keys, 0.01, max(1, len(keys)))
                rows.append((partition, name, bloom.type_code, bloom.to_base64()))
        names = ("partition_path", "file_name", "type_code", "bloom")
        return pa.table({n: pa.array([row[i] for row in rows], pa.string()) for i, n in enumerate(names)})

    def locate(self, keys: pa.Array) -> pa.Table:
        wanted = set(keys.to_pylist())
        rows = [(k, p, f) for p, files in self.held.items() for f, own in files.items() for k in own if k in wanted]
        names = ("record_key", "partition_path", "file_id")
        return pa.table({n: pa.array([row[i] for row in rows], pa.string()) for i, n in enumerate(names)})

    def simple(self, *, is_global: bool = False) -> SimpleLookUp:
        return SimpleLookUp(self.files_of, self.read_keys, RUN, is_global=is_global)

    def bloom(self, *, is_global: bool = False) -> BloomFiltersLookUp:
        return BloomFiltersLookUp(self.files_of, self.read_keys, RUN, self.filters, is_global=is_global)

    def record(self, *, partitioned: bool = False) -> RecordIndexLookUp:
        return RecordIndexLookUp(self.locate, self.files_of, partitioned=partitioned)


def pairs(tagging: Tagging) -> set[tuple[int, str, str]]:
    """(row, partition, file id) of every hit."""
    files = [tagging.files[int(number)] for number in tagging.file]
    return {(int(row), f.partition_path, f.file_id) for row, f in zip(tagging.row, files, strict=True)}


def texts(values: Sequence[str]) -> pa.StringArray:
    return pa.array(values, pa.string())
