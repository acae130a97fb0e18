"""Bloom filters of the record keys of base files: the metadata partition `bloom_filters`.

A filter speaks of a base file only. A slice with log files is left out when, beside that, the statistics of the key column say
of every log file that it holds none of the keys.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.indexes.allowed import may_use
from hudimeta.indexes.question import Exclusion, Question
from hudimeta.metadata import bloom_filters, column_stats
from hudimeta.slices.record_keys import KEY_COLUMN, WantedKeys

__all__ = ["BloomFilters", "without_any"]

_AT_ONCE = 64
"""Filters that are in memory at the same time: one takes some 400 kB."""

_MOST_KEYS = 10_000
"""Beyond so many keys their range holds nearly every file's."""

Mask = npt.NDArray[np.bool_]


class BloomFilters:
    """Leaves out slices whose base file surely holds none of the keys that the predicate asks for."""

    name = kind = bloom_filters.PARTITION

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        keys = question.keys
        return keys if isinstance(keys, str) else None

    def exclude(self, question: Question) -> Exclusion:
        """See `SkippingIndex`."""
        keys, files = question.keys, question.files
        assert isinstance(keys, WantedKeys)
        lacking = _outside_bounds(question, keys.texts)
        lacking |= without_any(question, self.name, keys.texts, ~lacking)
        excluded = files.all_of(lacking)
        held = np.zeros(files.count, np.bool_)
        held[files.of_slice[~lacking]] = True
        logs = int((held & (files.files_per_slice > 1)).sum())
        if logs and KEY_COLUMN not in question.bounds:
            question.notes.append(f"bloom_filters: {logs:,} slices have log files, of which it knows nothing")
        return Exclusion.of(~excluded, keys.because)


def without_any(question: Question, index: str, texts: pa.StringArray, asked: Mask) -> Mask:
    """Files whose filter proves that they hold none of some texts.

    Args:
        question: What the scan asks.
        index: Metadata partition of the filters.
        texts: The texts, such as record keys.
        asked: The files to look up, one bool a file.

    Returns:
        One bool a file; False for files without a filter.
    """
    from hudimeta.formats.bloom import BloomFilter, hash_chain

    names, partitions = question.files.names, question.file_partitions
    lacking = np.zeros(len(names), np.bool_)
    chains: dict[int, npt.NDArray[np.uint32]] = {}
    places = np.flatnonzero(asked)
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        picked = pa.array(some)
        pairs = list(zip(partitions.take(picked).to_pylist(), names.take(picked).to_pylist(), strict=True))
        at = {pair: int(place) for pair, place in zip(pairs, some, strict=True)}
        found = question.metadata.bloom_filters(pairs, index)
        columns = (found.column(c) for c in ("partition_path", "file_name", "type_code", "bloom"))
        for partition, name, code, text in zip(*columns, strict=True):
            place = bloom_filters.place_of(index, partition.as_py(), name.as_py())
            bloom = BloomFilter.from_base64(text.as_py(), code.as_py(), place)
            if bloom.hash_count not in chains:
                chains[bloom.hash_count] = hash_chain(texts, bloom.hash_count)
            holds = bloom.might_contain_hashes(chains[bloom.hash_count]).any()
            lacking[at[partition.as_py(), name.as_py()]] = not holds
    return lacking


def _outside_bounds(question: Question, texts: pa.StringArray) -> Mask:
    """Files whose smallest and greatest record key prove the same; none where there are no such statistics."""
    from hudimeta.predicate import FileStats, bind, may_match
    from hudimeta.predicate.tree import Column, In, Literal

    files = question.files
    nothing = np.zeros(len(files.names), np.bool_)
    usable = column_stats.PARTITION in question.ready and may_use(question.snapshot, column_stats.PARTITION)
    if not usable or not (files.files_per_slice > 1).any():
        return nothing
    kind = pa.string()
    if KEY_COLUMN not in question.bounds:
        question.bounds |= question.metadata.column_stats({KEY_COLUMN: kind}, question.partitions)
    bounds = question.ordered({KEY_COLUMN: question.bounds[KEY_COLUMN]})
    if not bounds or not 0 < len(texts) <= _MOST_KEYS:
        return nothing
    items = tuple(Literal(pa.scalar(text, kind), type=kind) for text in texts.to_pylist())
    asked = bind(In(Column((KEY_COLUMN,)), items), pa.schema([(KEY_COLUMN, kind)]))
    outside: Mask = ~may_match(asked, FileStats(len(files.names), bounds)).keep
    return outside
