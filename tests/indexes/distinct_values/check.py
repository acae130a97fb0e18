"""Are the values of every base file those that the metadata partition `distinct_values` says?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from hudimeta.services.validation.result import CheckResult, Difference
from hudimeta.services.validation.run import Check
from hudimeta.services.validation.subject import Subject
from tests.indexes.distinct_values import codec
from tests.indexes.distinct_values.keep import values_of


def checks(subject: Subject, wanted: Sequence[str]) -> Iterator[Check]:
    """The one check of this kind, where it is asked for."""
    if codec.PARTITION in wanted:
        yield codec.PARTITION, partial(check_values, subject)


def check_values(subject: Subject) -> CheckResult:
    """Both ways: no value that the file lacks, none that the index lacks."""
    (column,) = subject.metadata.index_definitions[codec.PARTITION].source_fields
    said: dict[str, set[str]] = {}
    for row in subject.metadata.records(codec.PARTITION).to_pylist():
        said.setdefault(row["file_name"], set()).add(row["value"])
    parts = [part for part in subject.parts if not part.is_log]
    held = {part.name: set(values_of(subject.snapshot.storage, part.path, column).to_pylist()) for part in parts}
    wrong = [name for name, values in held.items() if said.get(name, set()) != values]
    return CheckResult(codec.PARTITION, len(parts), "base files", tuple(Difference.of("other values than the file's", wrong)))
