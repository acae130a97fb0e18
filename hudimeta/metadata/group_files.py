"""Files and file groups of the metadata table, and what their names say.

The id of a file group is the name of its partition, a number and a zero:

    files-0000-0, col-stats-0001-0, record-index-0007-0, secondary-index-rider-idx-0000-0

Of a record index by partition, the table's partition stands before the number, encoded as folders are, dashes and underscores
too: Apache Hudi takes what stands between the number and the dash before that for it.

    record-index-south-0000-0, record-index-day%3D2026%2D01%2D02-0000-0
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudimeta.keys import escape, unescape
from hudimeta.storage import join

__all__ = [
    "ANEW_KEY",
    "NAME_KEY",
    "GroupBaseFile",
    "FileGroup",
    "LogFile",
    "base_name",
    "data_partition_of",
    "file_group_id",
    "file_group_ids",
    "file_stem",
    "group_number",
    "group_stem",
    "instant_in",
    "log_file",
    "spelling_in",
    "spelt_in_ids",
]

NAME_KEY = "hudimeta.file"
"""Entry of the file info of our base files: the name under which the file was written."""

ANEW_KEY = "hudimeta.anew"
"""Entry of the extraMetadata of a delta commit that laid a metadata partition out: nothing that completed before lies in it."""

_STEMS = {"column_stats": "col-stats"}

_BASE = re.compile(r"^(?P<id>.+)_\d+-\d+-\d+_(?P<instant>\d+)\.hfile$")
_LOG = re.compile(r"^\.(?P<id>.+)_(?P<instant>\d+)\.log\.(?P<version>\d{1,18})_(?P<token>\d{1,18}-\d{1,18}-\d{1,18})$")
_GROUP = re.compile(r"^(?P<stem>.+)-(?P<number>\d{4,18})-\d+$")


@dataclass(frozen=True, slots=True)
class GroupBaseFile:
    """A base file.

    Attributes:
        path: Below the metadata table.
        size: In bytes, None when it is not known.
        instant: In its name.
        since: Logs lie on top of it whose delta commits completed at or after this time. It is the instant, but where the
            file began its partition anew: such a file bears an instant before all time.
    """

    path: str
    size: int | None
    instant: str
    since: str


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file: path below the metadata table, size (None when it is not known), and its place in reading order."""

    path: str
    size: int | None
    instant: str
    version: int
    write_token: tuple[int, ...]

    @property
    def order(self) -> tuple[str, int, tuple[int, ...]]:
        """Files of a slice are read in this order."""
        return self.instant, self.version, self.write_token


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The newest slice of one file group; logs in reading order."""

    file_id: str
    base: GroupBaseFile | None
    logs: tuple[LogFile, ...]


def file_stem(partition: str, data_partition: str | None = None) -> str:
    """What the ids of a metadata partition's file groups begin with.

    Args:
        partition: Metadata partition.
        data_partition: Of the table as `spelt_in_ids`, for a record index that is kept by partition; that of a table without
            partitions is empty.
    """
    stem = _STEMS.get(partition, partition.replace("_", "-"))
    return stem if data_partition is None else f"{stem}-{data_partition}"


def file_group_id(partition: str, group: int, data_partition: str | None = None) -> str:
    """File id of one file group of a metadata partition; see `file_stem`."""
    return f"{file_stem(partition, data_partition)}-{group:04d}-0"


def file_group_ids(partition: str, groups: int, data_partition: str | None = None) -> list[str]:
    """File ids of so many file groups, in the order of their numbers; see `file_stem`."""
    return [file_group_id(partition, group, data_partition) for group in range(groups)]


def spelt_in_ids(path: str) -> str:
    """A partition path of the table as ids of file groups have it."""
    return escape(path).replace("-", "%2D").replace("_", "%5F")


def data_partition_of(spelling: str) -> str:
    """The partition path behind a spelling in ids; dashes and underscores may stand there as they are."""
    return unescape(spelling)


def spelling_in(partition: str, file_id: str) -> str | None:
    """How the id of a file group spells a partition of the table; None in an index over the whole table."""
    stem, own = file_stem(partition), group_stem(file_id)
    return None if own == stem else own.removeprefix(f"{stem}-")


def group_stem(file_id: str) -> str:
    """What the file ids of one set of shards share: `record-index` of `record-index-0003-0`."""
    match = _GROUP.match(file_id)
    return match["stem"] if match else file_id


def group_number(file_id: str) -> int | None:
    """The number of a shard: 3 of `record-index-0003-0`; None when the id has none."""
    match = _GROUP.match(file_id)
    return int(match["number"]) if match else None


def base_name(name: str) -> tuple[str, str] | None:
    """File id and instant of a base file; None when it is none."""
    match = _BASE.match(name)
    return (match["id"], match["instant"]) if match else None


def log_file(folder: str, name: str, size: int | None) -> tuple[str, LogFile] | None:
    """A log file with its file id; None when the name is not that of one."""
    match = _LOG.match(name)
    if match is None:
        return None
    token = tuple(int(n) for n in match["token"].split("-"))
    return match["id"], LogFile(join(folder, name), size, match["instant"], int(match["version"]), token)


def instant_in(name: str) -> str | None:
    """The instant that the name of a base or log file bears; None for other files."""
    match = _BASE.match(name) or _LOG.match(name)
    return match["instant"] if match else None
