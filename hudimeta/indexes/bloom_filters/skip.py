"""Bloom filters of the record keys of base files: the metadata partition `bloom_filters`.

A filter speaks of a base file only. A slice with log files is left out when, beside that, the statistics of the key column say
of every log file that it holds none of the keys.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.indexes.allowed import may_use
from hudimeta.indexes.question import Candidates, Exclusion, Question
from hudimeta.metadata import answers, bloom_filters, column_stats
from hudimeta.slices.record_keys import KEY_COLUMN, WantedKeys

__all__ = ["BloomFiltersSkip", "without_any"]

_AT_ONCE = 64
"""Filters that are in memory at the same time: one takes some 400 kB."""

_MOST_KEYS = 10_000
"""Beyond so many keys their range holds nearly every file's."""

Mask = npt.NDArray[np.bool_]


class BloomFiltersSkip:
    """Leaves out slices whose base file surely holds none of the keys that the predicate asks for."""

    name = kind = bloom_filters.PARTITION

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        keys = question.keys
        return keys if isinstance(keys, str) else None

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """See `SkippingIndex`."""
        keys, files = question.keys, candidates.files
        assert isinstance(keys, WantedKeys)
        bounds = _key_bounds(question, candidates)
        lacking = _outside_bounds(candidates, bounds, keys.texts)
        lacking |= without_any(question, candidates, self.name, keys.texts, ~lacking)
        excluded = files.all_of(lacking)
        held = np.zeros(files.count, np.bool_)
        held[files.of_slice[~lacking]] = True
        logs = int((held & (files.files_per_slice > 1)).sum())
        unknown = logs and KEY_COLUMN not in bounds and KEY_COLUMN not in candidates.bounds
        remarks = [f"bloom_filters: {logs:,} slices have log files, of which it knows nothing"] if unknown else []
        return Exclusion.of(~excluded, keys.because, bounds, remarks)


def without_any(question: Question, candidates: Candidates, index: str, texts: pa.StringArray, asked: Mask) -> Mask:
    """Files whose filter proves that they hold none of some texts.

    Args:
        question: What the scan asks.
        candidates: What is left of the read.
        index: Metadata partition of the filters.
        texts: The texts, such as record keys.
        asked: The files to look up, one bool a file.

    Returns:
        One bool a file; False for files without a filter.
    """
    from hudimeta.formats.bloom import BloomFilter, hash_chain

    names, partitions = candidates.files.names, candidates.file_partitions
    lacking = np.zeros(len(names), np.bool_)
    chain = hash_chain(texts, 0)
    places = np.flatnonzero(asked)
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        picked = array_of(some)
        pairs = list(zip(partitions.take(picked).to_pylist(), names.take(picked).to_pylist(), strict=True))
        at = {pair: int(place) for pair, place in zip(pairs, some, strict=True)}
        found = answers.file_filters(question.metadata, pairs, index)
        columns = (found.column(c) for c in ("partition_path", "file_name", "type_code", "bloom"))
        for partition, name, code, text in zip(*columns, strict=True):
            place = bloom_filters.place_of(index, partition.as_py(), name.as_py())
            bloom = BloomFilter.from_base64(text.as_py(), code.as_py(), place)
            if bloom.hash_count > chain.shape[1]:  # which serves filters with fewer hashes as well
                chain = hash_chain(texts, bloom.hash_count)
            holds = bloom.might_contain_hashes(chain).any()
            lacking[at[partition.as_py(), name.as_py()]] = not holds
    return lacking


def _key_bounds(question: Question, candidates: Candidates) -> dict[str, pa.Table]:
    """Statistics of the record key, where there are slices with log files; none where there are no such statistics."""
    usable = column_stats.PARTITION in question.ready and may_use(question.snapshot, column_stats.PARTITION)
    if not usable or not (candidates.files.files_per_slice > 1).any():
        return {}
    if KEY_COLUMN in candidates.bounds:
        return {KEY_COLUMN: candidates.bounds[KEY_COLUMN]}
    return answers.column_stats(question.metadata, {KEY_COLUMN: pa.string()}, candidates.partitions)


def _outside_bounds(candidates: Candidates, stats: Mapping[str, pa.Table], texts: pa.StringArray) -> Mask:
    """Files whose smallest and greatest record key prove the same; none where there are no such statistics."""
    from hudimeta.predicate import FileStats, bind, may_match
    from hudimeta.predicate.tree import Column, In, Literal

    files = candidates.files
    nothing = np.zeros(len(files), np.bool_)
    kind, bounds = pa.string(), candidates.ordered(stats)
    if not bounds or not 0 < len(texts) <= _MOST_KEYS:
        return nothing
    items = tuple(Literal(scalar_of(text, kind), type=kind) for text in texts.to_pylist())
    asked = bind(In(Column((KEY_COLUMN,)), items), pa.schema([(KEY_COLUMN, kind)]))
    outside: Mask = ~may_match(asked, FileStats(len(files), bounds)).keep
    return outside
