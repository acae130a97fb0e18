"""Does the metadata table have the bloom filter of every live base file, the same as in its footer, knowing every key?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudimeta.formats.bloom import BloomFilter
from hudimeta.formats.parquet import read_footer
from hudimeta.metadata import answers, bloom_filters
from hudimeta.services.validation.result import CheckResult, Findings
from hudimeta.services.validation.subject import Subject, Unreadable
from hudimeta.slices.single_files import SingleFile

__all__ = ["check_filters", "missed_by"]

_AT_ONCE = 64
"""Filters that are in memory at the same time: one takes some 400 kB."""


def check_filters(subject: Subject) -> CheckResult:
    """The partition `bloom_filters`."""
    parts = [part for part in subject.parts if not part.is_log and part.name.endswith(".parquet")]
    findings = Findings(compared=len(parts))
    task = subject.task(subject.key_columns)
    for start in range(0, len(parts), _AT_ONCE):
        some = parts[start : start + _AT_ONCE]
        stated = filters_of(subject, some, bloom_filters.PARTITION)

        def compare(part: SingleFile, stated: dict[tuple[str, str], tuple[str, bytes]] = stated) -> tuple[str, str] | None:
            given = stated.get((part.partition_path, part.name))
            with subject.snapshot.storage.open_input(part.path) as source:
                footer = read_footer(source, part.path)
                of_file = footer.bloom
            if given is None:
                return ("base files without a filter", part.path) if footer.num_rows else None
            bloom = filter_at(part, bloom_filters.PARTITION, *given)
            keys = (subject.keys(rows) for rows in subject.rows(part.alone, task))
            missed = sum(missed_by(bloom, some_keys) for some_keys in keys)
            if missed:
                return "filters that deny keys of their file", f"{part.path}: {missed:,} keys"
            if bloom.type_code != given[0]:
                return "filters labelled as another type than theirs, which Apache Hudi cannot read", part.path
            if of_file is not None and of_file.encode() != bloom.encode():
                return "filters unlike that of the file's footer", part.path
            return None

        results = subject.map(compare, some)
        findings.wrong("files that cannot be read", [one.what for one in results if isinstance(one, Unreadable)])
        wrong = [one for one in results if one is not None and not isinstance(one, Unreadable)]
        for what in sorted({one for one, _ in wrong}):
            findings.wrong(what, [path for one, path in wrong if one == what])
    return findings.result(bloom_filters.PARTITION, "base files")


def filters_of(subject: Subject, parts: list[SingleFile], index: str) -> dict[tuple[str, str], tuple[str, bytes]]:
    """Type code and base64 text of the filters of some files, by partition path and name."""
    found = answers.file_filters(subject.metadata, [(p.partition_path, p.name) for p in parts], index)
    rows = zip(*(found[c].to_pylist() for c in ("partition_path", "file_name", "type_code", "bloom")), strict=True)
    return {(path, name): (code, text) for path, name, code, text in rows}


def filter_at(part: SingleFile, index: str, type_code: str, text: bytes) -> BloomFilter:
    """The filter that an index holds for a file. Raises CorruptFileError when the bytes are none."""
    return BloomFilter.from_base64(text, type_code, bloom_filters.place_of(index, part.partition_path, part.name))


def missed_by(bloom: BloomFilter, texts: pa.ChunkedArray) -> int:
    """How many texts a filter denies."""
    present = texts.drop_null().combine_chunks()
    return int(np.count_nonzero(~bloom.might_contain_many(present))) if len(present) else 0
