"""Rows of one key in several places, which inserts may bring about: a change of one of them must not reach the others.

Rows that were read from the table know in which file group they lie, and are changed there, as Apache Hudi does. Within one
file group a key is all that says which row a change is of: there all rows of the key are changed, or none. Apache Hudi then
gives all of them the values of one, or changes another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import CommitConflict, CommitError
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of
from hudimeta.indexes.tagging import Tagging
from hudimeta.table.key_file import FilesOf, KeyFile, KeyReader, RunAll
from hudimeta.write.batch import KeyedBatch, concatenated

__all__ = [
    "combined_where_new",
    "doubled_keys",
    "is_of_known_rows",
    "of_live_rows",
    "of_own_groups",
    "of_read_groups",
    "refuse_gone",
    "refuse_to_choose",
]

_CURE = (
    "Nothing was published; run the write again. If it fails so again though nobody else writes, the index lacks the key: "
    "t.metadata.validate() tells."
)


def of_own_groups(batch: KeyedBatch, tagging: Tagging) -> Tagging:
    """Where the keys of a batch are, of rows of the table only where each was read, if its key is there more than once.

    Args:
        batch: The rows.
        tagging: All places of their keys.
    """
    if batch.groups is None or len(np.unique(tagging.row)) == len(tagging.row):
        return tagging
    held = array_of([file.file_id for file in tagging.files], pa.string()).take(array_of(tagging.file))
    own = numpy_of(fill_null(pc.equal(batch.groups.take(array_of(tagging.row)), held), False))
    found = np.zeros(len(batch), dtype=bool)
    found[tagging.row[own]] = True
    kept = own | ~found[tagging.row]  # a name of a file that is none of these says nothing
    return replace(tagging, row=tagging.row[kept], file=tagging.file[kept])


def of_read_groups(batch: KeyedBatch, tagging: Tagging, files_of: FilesOf, read: KeyReader, run_all: RunAll) -> Tagging:
    """Where the keys of a batch are, with the file groups in which rows of the table were read.

    An index that tells one place a key, or the keys of some days, may tell of another row of the key alone.

    Args:
        batch: The rows.
        tagging: Places of their keys.
        files_of: The table's latest slices.
        read: Reads the keys of a file slice that are not deleted.
        run_all: See `RunAll`.
    """
    if batch.groups is None or batch.keys is None:
        return tagging
    held = array_of([file.file_id for file in tagging.files], pa.string()).take(array_of(tagging.file))
    own = numpy_of(fill_null(pc.equal(batch.groups.take(array_of(tagging.row)), held), False)).astype(bool)
    lacking = np.zeros(len(batch), dtype=bool)
    lacking[tagging.row] = True
    lacking[tagging.row[own]] = False
    lacking &= numpy_of(batch.groups.is_valid())
    if not lacking.any():
        return tagging
    rows = np.flatnonzero(lacking)
    keys, groups = batch.keys.take(array_of(rows)), batch.groups.take(array_of(rows))
    named = set(groups.unique().to_pylist())
    files = [file for of_path in files_of(None).values() for file in of_path if file.file_id in named]

    def look(number: int) -> np.ndarray[Any, Any]:
        at = np.flatnonzero(numpy_of(pc.equal(groups, files[number].file_id)))
        there = read(files[number], wanted := keys.take(array_of(at)))
        return rows[at[:0] if there is None else at[numpy_of(pc.is_in(wanted, value_set=there)).astype(bool)]]

    found = run_all(look, range(len(files)))
    row = np.concatenate([tagging.row, *found])
    file = np.concatenate([tagging.file, *(np.full(len(one), len(tagging.files) + n) for n, one in enumerate(found))])
    order = np.argsort(row, kind="stable")
    return replace(tagging, row=row[order], file=file[order], files=[*tagging.files, *files])


def of_live_rows(keys: pa.StringArray, tagging: Tagging, read: KeyReader, run_all: RunAll, *, one: bool) -> Tagging:
    """Where the keys of a batch are, without places of which a log file has deleted the key.

    An index of base files names those as well. Once the key was inserted anew, which looks for no place, it has another one,
    and a change that reached both would be two rows.

    Args:
        keys: Of the batch.
        tagging: All places of them.
        read: Reads the keys of a file slice that are not deleted.
        run_all: See `RunAll`.
        one: Look only at keys that have several places, and leave one to each: there a new row belongs as well as anywhere.
    """
    row, file = tagging.row, tagging.file
    asked = np.array([bool(held.logs) for held in tagging.files], dtype=bool)[file]
    if one:
        asked &= np.bincount(row, minlength=len(keys))[row] > 1
    if not asked.any():
        return tagging

    def alive(number: int) -> np.ndarray[Any, Any]:
        own = keys.take(array_of(row[asked & (file == number)]))
        there = read(tagging.files[number], own)
        return np.zeros(len(own), dtype=bool) if there is None else numpy_of(pc.is_in(own, value_set=there))

    numbers = [int(number) for number in np.unique(file[asked])]
    kept = np.ones(len(row), dtype=bool)
    for number, found in zip(numbers, run_all(alive, numbers), strict=True):
        kept[asked & (file == number)] = found
    if one:
        last = np.append(row[1:] != row[:-1], True)
        kept |= last & (np.bincount(row[kept], minlength=len(keys))[row] == 0)
    return replace(tagging, row=row[kept], file=file[kept])


def refuse_gone(batch: KeyedBatch, tagging: Tagging, action: str) -> None:
    """Refuse to write rows of the table whose keys an index does not find.

    An index may tell of a later moment than the one in which the rows were read. Whoever took them away meanwhile was not
    seen: they would come back as new rows, or stay though they were to be deleted, when that write is taken back.

    Args:
        batch: The rows.
        tagging: All places of their keys.
        action: For the error.

    Raises:
        CommitConflict: With how many there are, and one of their keys.
    """
    if batch.groups is None or batch.keys is None:
        return
    gone = numpy_of(batch.groups.is_valid()).copy()
    gone[tagging.row] = False
    if not gone.any():
        return
    rows = array_of(np.flatnonzero(gone))
    places = sorted(set(zip(batch.partitions.take(rows).to_pylist(), batch.groups.take(rows).to_pylist(), strict=True)))
    sample = str(batch.keys[rows[0].as_py()])
    raise CommitConflict(action, places, "another write", _CURE, len(rows), sample, did="took away meanwhile")


def is_of_known_rows(*batches: KeyedBatch) -> bool:
    """True where one of them has a row that was read in the table."""
    return any(batch.groups is not None and batch.groups.null_count < len(batch) for batch in batches)


def doubled_keys(part: KeyedBatch) -> np.ndarray[Any, Any]:
    """Which rows, of one file group, are rows of the table whose keys other such rows have too: bool."""
    if part.groups is None or part.keys is None:
        return np.zeros(len(part), dtype=bool)
    known = numpy_of(part.groups.is_valid())
    codes = numpy_of(part.keys.dictionary_encode().indices)
    counts = np.bincount(codes[known], minlength=len(codes) + 1)
    several: np.ndarray[Any, Any] = known & (counts[codes] > 1)
    return several


def refuse_to_choose(base: KeyFile, changed: KeyedBatch, gone: KeyedBatch, there: pa.StringArray | None) -> None:
    """Refuse changes of some of the rows that have one key in one file group.

    Args:
        base: The file group.
        changed: Rows with new values.
        gone: Rows to delete.
        there: All keys of its base file; None where it has none of theirs.

    Raises:
        CommitError: A key is there more often than rows of it are changed.
    """
    keys = pa.concat_arrays([_read_keys(changed), _read_keys(gone)])
    if there is None or len(there := there.filter(pc.is_in(there, value_set=keys))) <= len(keys):
        return
    _refuse(base.partition_path, _above(there, keys))


def combined_where_new(batch: KeyedBatch, combine: Callable[[KeyedBatch], KeyedBatch]) -> KeyedBatch:
    """New rows combined; rows of the table stay, each for itself.

    Args:
        batch: Both.
        combine: Keeps one row a key.
    """
    if batch.groups is None or not is_of_known_rows(batch):
        return combine(batch)
    known = numpy_of(batch.groups.is_valid())
    new = batch.take(np.flatnonzero(~known))
    return concatenated([batch.take(np.flatnonzero(known)), *([combine(new)] if len(new) else [])])


def _read_keys(batch: KeyedBatch) -> pa.StringArray:
    """Keys of rows of the table whose file group is known."""
    if batch.groups is None or batch.keys is None:
        return array_of([], pa.string())
    return batch.keys.filter(batch.groups.is_valid())


def _above(some: pa.StringArray, others: pa.StringArray) -> str:
    """A value that comes more often in one array than in another."""
    counts, asked = some.value_counts(), others.value_counts()
    own = asked.field("counts").take(pc.index_in(counts.field("values"), value_set=asked.field("values")))
    found: str = counts.field("values").filter(pc.greater(counts.field("counts"), own))[0].as_py()
    return found


def _refuse(partition: str, key: str) -> NoReturn:
    where = f" of partition '{partition}'" if partition else ""
    raise CommitError(
        f"a file group{where} holds several rows of key {key!r}, and the change of one of them would reach the others",
        "No row was changed; delete all rows of the key, then insert those that shall be there.",
    )
