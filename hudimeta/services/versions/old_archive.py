"""The archived instants of version 6, as version 8 keeps them: a history of Parquet files instead of Avro log files.

    .hoodie/archived/.commits_.archive.<N>_<token>    log files; Avro blocks of HoodieArchivedMetaEntry

An entry is one state of an instant: commitTime, actionType, actionState, newer ones stateTransitionTime, and a field for each
kind of record that there is. The history has one row an instant: its completed state, with the plan of a service beside it.
Instants whose completion nobody wrote down completed at their request, as in Apache Hudi. The old files stay.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.avro.commit_metadata import encode_commit_metadata
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import (
    CLEAN_METADATA,
    CLEANER_PLAN,
    COMPACTION_PLAN,
    REQUESTED_REPLACE_METADATA,
    ROLLBACK_METADATA,
)
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.log import BlockType, CorruptSpan, HeaderKey, LogBlock, avro_datums, read_blocks
from hudimeta.storage import Storage, join
from hudimeta.timeline.history import History
from hudimeta.timeline.history_writer import HistoryWriter, archived_rows, without
from hudimeta.types import Action

__all__ = ["CopiedArchive", "copy_archive"]

_NAME = re.compile(r"^\.commits_\.archive\.(\d{1,18})")
_COMPLETED = "COMPLETED"

Row = tuple[str, str | None, str, bytes | None, bytes | None]
_Encode = Callable[[Mapping[str, Any]], bytes]


def _commit(record: Mapping[str, Any]) -> bytes:
    return encode_commit_metadata(dict(record))


def _replace(record: Mapping[str, Any]) -> bytes:
    return encode_commit_metadata(dict(record), replace=True)


def _container(schema: dict[str, Any]) -> _Encode:
    return lambda record: encode_container(schema, [dict(record)])


_RECORDS: Mapping[str, tuple[str, _Encode]] = {
    Action.COMMIT.value: ("hoodieCommitMetadata", _commit),
    Action.DELTA_COMMIT.value: ("hoodieCommitMetadata", _commit),
    Action.REPLACE_COMMIT.value: ("hoodieReplaceCommitMetadata", _replace),
    Action.CLEAN.value: ("hoodieCleanMetadata", _container(CLEAN_METADATA)),
    Action.ROLLBACK.value: ("hoodieRollbackMetadata", _container(ROLLBACK_METADATA)),
}
"""Of each action that is archived the field of an entry that says what it did."""

_PLANS: tuple[tuple[str, _Encode], ...] = (
    ("hoodieCompactionPlan", _container(COMPACTION_PLAN)),
    ("hoodieCleanerPlan", _container(CLEANER_PLAN)),
    ("hoodieRequestedReplaceMetadata", _container(REQUESTED_REPLACE_METADATA)),
)


@dataclass(frozen=True)
class CopiedArchive:
    """What came of an old archive.

    Attributes:
        instants: How many were written.
        bare: Of these how many without what they did, because it has a form that is not known.
        damaged: How many stretches of old files were left out.
    """

    instants: int
    bare: int
    damaged: int


def copy_archive(storage: Storage, folder: str, history: History) -> CopiedArchive:
    """Write the archived instants of version 6 into the history of version 8, without those that it has already.

    Args:
        storage: Rooted at the table.
        folder: Of the old files.
        history: The new one.

    Raises:
        CorruptFileError: A block is whole, but holds no archived instants.
    """
    spans: list[CorruptSpan] = []
    rows = _rows(storage, folder, spans)
    if not rows:
        return CopiedArchive(0, 0, len(spans))
    writer, found = HistoryWriter(storage, history), archived_rows(rows)
    fresh = without(found, writer.known(found["instant_time"][0].as_py()))
    writer.add(fresh)
    return CopiedArchive(fresh.num_rows, fresh["metadata"].null_count, len(spans))


def _rows(storage: Storage, folder: str, spans: list[CorruptSpan]) -> list[Row]:
    states: dict[tuple[str, str], Mapping[str, Any]] = {}
    plans: dict[str, bytes] = {}
    for entry in _entries(storage, folder, spans):
        time, action = entry.get("commitTime") or "", entry.get("actionType") or ""
        for name, encode in _PLANS:
            plan = _encoded(encode, entry.get(name))
            if plan is not None:
                plans[time] = plan
        if action in _RECORDS and (entry.get("actionState") or _COMPLETED) == _COMPLETED:
            states.setdefault((time, action), entry)
    return [
        (time, _completion(time, entry), action, _said(action, entry), plans.get(time))
        for (time, action), entry in sorted(states.items())
    ]


def _said(action: str, entry: Mapping[str, Any]) -> bytes | None:
    name, encode = _RECORDS[action]
    return _encoded(encode, entry.get(name))


def _encoded(encode: _Encode, record: Mapping[str, Any] | None) -> bytes | None:
    """A record in the form of version 8; None where there is none, or where it cannot be put so."""
    try:
        return None if record is None else encode(record)
    except (ValueError, KeyError, TypeError, AttributeError):  # what fastavro raises on values that its schema does not have
        return None


def _completion(time: str, entry: Mapping[str, Any]) -> str:
    return str(entry.get("stateTransitionTime") or time)


def _entries(storage: Storage, folder: str, spans: list[CorruptSpan]) -> Iterator[Mapping[str, Any]]:
    """All entries, of the newest file first: where archived twice, the later word counts. What an archival that died left torn
    is passed over, as Apache Hudi does, and counted.
    """
    names = [e.name for e in storage.list(folder) if not e.is_folder and _NAME.match(e.name)]
    for name in sorted(names, key=_number, reverse=True):
        path = join(folder, name)
        scan = read_blocks(storage.read(path), path)
        spans += scan.corrupt
        for block in scan.blocks:
            if block.type is BlockType.AVRO_DATA:
                yield from _of_block(block, path)


def _number(name: str) -> int:
    found = _NAME.match(name)
    return int(found[1]) if found else 0


def _of_block(block: LogBlock, path: str) -> Iterator[Mapping[str, Any]]:
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema

    datums = avro_datums(block)
    try:
        parsed = parse_schema(parse_json(block.header[HeaderKey.SCHEMA].encode()))
        for at, length in zip(datums.offsets.tolist(), datums.lengths.tolist(), strict=True):
            entry = fastavro.schemaless_reader(io.BytesIO(datums.data[at : at + length]), parsed)
            if not isinstance(entry, dict) or "commitTime" not in entry:
                raise CorruptFileError(path, block.offset, "archived instants", "records of another kind")
            yield entry
    except (ValueError, KeyError, TypeError, IndexError, EOFError, SchemaParseException, UnknownType) as error:
        raise CorruptFileError(path, block.offset, "archived instants", f"{type(error).__name__} {error}") from error
