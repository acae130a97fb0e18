"""What moving a table to another version will do, and what of that must outlive a process that dies.

While a move goes on, `.hoodie/.aux/hudimeta/version_change.json` says which metadata partitions the table had:

    {"from": 6, "to": 8, "metadata_partitions": ["files", "record_index"]}

Nobody but the next call looks at it. Without it a metadata table that was taken down would come back with default indexes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudimeta.errors import ConfigError, CorruptFileError, NotFound
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.reports import Report
from hudimeta.services.versions.property_changes import STEPS_DOWN, STEPS_UP
from hudimeta.storage import Storage

__all__ = ["UNFINISHED_PATH", "Unfinished", "VersionPlan", "VersionReport", "steps_between"]

UNFINISHED_PATH = ".hoodie/.aux/hudimeta/version_change.json"


@dataclass(frozen=True, repr=False)
class VersionPlan(Report):
    """What a move will do; prints as a list.

    Attributes:
        version: The table's version now.
        to: The version that it will have.
        versions: The versions on the way, `to` last; empty when nothing is to be done.
        actions: What is done, in order, in words.
    """

    version: int
    to: int
    versions: tuple[int, ...]
    actions: tuple[str, ...]

    def __str__(self) -> str:
        if not self.actions:
            return f"the table has version {self.version}: nothing to do"
        way = " -> ".join(str(version) for version in (self.version, *self.versions))
        return "\n".join([f"version {way}", *(f"  {action}" for action in self.actions)])


@dataclass(frozen=True, repr=False)
class VersionReport(Report):
    """What a move did.

    Attributes:
        version: The table's version before.
        to: Its version now.
        done: What was done, in order, in words.
        seconds: What it took.
    """

    version: int
    to: int
    done: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        if not self.done:
            return f"the table has version {self.to} already"
        head = f"version {self.version} -> {self.to} in {self.seconds:.2f} s"
        return "\n".join([head, *(f"  {one}" for one in self.done)])


def steps_between(version: int, to: int, verb: str) -> tuple[int, ...]:
    """The versions on the way, `to` last.

    Args:
        version: Of the table.
        to: The version that it shall have.
        verb: `upgrade` or `downgrade`.

    Raises:
        ConfigError: The verb does not lead there.
    """
    steps = STEPS_UP if verb == "upgrade" else STEPS_DOWN
    way = [version]
    while way[-1] != to and way[-1] in steps:
        way.append(steps[way[-1]])
    if way[-1] != to:
        reached = sorted({*steps.values()} - {v for v in steps.values() if (v < version) == (verb == "upgrade")})
        hint = "Version 6 is not written here: downgrade from 8 to 6 with Apache Hudi." if verb == "downgrade" else ""
        raise ConfigError(f"{verb}(to=…)", to, ", ".join(map(str, reached)) or f"{version}, which the table has", hint)
    return tuple(way[1:])


@dataclass(frozen=True)
class Unfinished:
    """A move that has begun and is not over.

    Attributes:
        version: The version that the table had.
        to: The version of the step.
        metadata_partitions: The metadata partitions that it had.
    """

    version: int
    to: int
    metadata_partitions: tuple[str, ...]

    def store(self, storage: Storage) -> None:
        """Remember it."""
        said = {"from": self.version, "to": self.to, "metadata_partitions": list(self.metadata_partitions)}
        storage.put(UNFINISHED_PATH, sealed_json(json.dumps(said).encode(), UNFINISHED_PATH.rpartition("/")[2]))

    @staticmethod
    def find(storage: Storage) -> Unfinished | None:
        """What a call that died left; None when none did. Raises CorruptFileError."""
        try:
            data = storage.read(UNFINISHED_PATH)
        except NotFound:
            return None
        verify_json(data, UNFINISHED_PATH)
        try:
            said = parse_json(data)
            return Unfinished(said["from"], said["to"], tuple(said["metadata_partitions"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(UNFINISHED_PATH, 0, "JSON with from, to and metadata_partitions", repr(error)) from error

    @staticmethod
    def forget(storage: Storage) -> None:
        """The move is over."""
        storage.delete(UNFINISHED_PATH)
