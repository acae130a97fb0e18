"""Partition values of every sort: both writers make the same folders, name them alike everywhere, and read the same values."""

from __future__ import annotations

import string
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.testing.inspection import Inspection
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL

SCHEMA = pa.schema([("id", pa.string()), ("place", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
DEFAULT = "__HIVE_DEFAULT_PARTITION__"
VALUES: tuple[str | None, ...] = (
    *(f"a{mark}b" for mark in string.punctuation),
    *("%", "=", "#", "_x", ".x", " ", " a", "a b", "%41", "a\tb", "ünï", "🙂"),
    *(None, "", DEFAULT, "default", "place=x"),
)
HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


@dataclass(frozen=True)
class Case:
    """A kind of table and how its folders are named."""

    kind: str
    hive: bool
    encode: bool

    def __str__(self) -> str:
        return f"{self.kind}{', hive style' * self.hive}{', encoded' * self.encode}"

    @property
    def options(self) -> dict[str, str]:
        return {HIVE: str(self.hive).lower(), ENCODE: str(self.encode).lower()}

    @property
    def values(self) -> list[str | None]:
        """Those that Apache Hudi keeps apart from others.

        It can write no colon in the first folder's name and not read a `=` in front. It reads %41 as A, and without hive style
        takes what stands before a `=` for the name of a column; hudimeta does so with the column's own name only.
        """
        if self.encode:
            return list(VALUES)
        lost = {"a:b", "%41"} if self.hive else {"a:b", "=", "place=x", "a=b", "%41"}
        return [value for value in VALUES if value not in lost]


@dataclass(frozen=True)
class Names:
    """Everywhere that a table names its partitions."""

    marks: dict[str, str]
    """What each folder's `.hoodie_partition_metadata` says of its depth."""
    commits: set[tuple[str, str, str]]
    """Of each write: the partition, that of the file, the folder in the file's path."""
    listed: set[str]

    @classmethod
    def of(cls, path: Path) -> Names:
        look = Inspection(open_storage(path))
        marks = {}
        for mark in path.rglob(PARTITION_METAFILE):
            depth = [line for line in mark.read_text().splitlines() if line.startswith("partitionDepth")]
            marks[str(mark.parent.relative_to(path))] = ",".join(depth)
        commits = {
            (partition, stat["partitionPath"], stat["path"].rpartition("/")[0])
            for write in look.timeline.writes
            for partition, stats in look.timeline.metadata(write)["partitionToWriteStats"].items()
            for stat in stats
        }
        assert look.metadata is not None
        return cls(marks, commits, set(look.metadata.partitions().to_pylist()))


CASES = [Case(kind, hive, encode) for kind in KINDS for hive in (False, True) for encode in (False, True)]
QUICK = (Case("MERGE_ON_READ", hive=True, encode=True), Case("COPY_ON_WRITE", hive=False, encode=False))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES if FULL else QUICK, ids=str)
def test_partitions_are_called_the_same(hudi: ApacheHudi, tmp_path: Path, case: Case) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    java = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": case.kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "place",
        "hoodie.write.table.version": "8",
        **case.options,
    }
    table = hudimeta.Table.create(
        ours, SCHEMA, key="id", partition_by="place", ordering="ts", type=case.kind, options=case.options, name="t"
    )
    table.insert(rows(case, "first"))
    hudi.write(theirs, rows(case, "first"), java, operation="insert", mode="overwrite")
    assert Names.of(ours) == Names.of(theirs)
    hudi.write(ours, rows(case, "second"), java)
    hudimeta.Table(theirs).upsert(rows(case, "second"))
    assert Names.of(ours) == Names.of(theirs)
    expected = [(n, None if value in (None, "", DEFAULT) else value, "second") for n, value in enumerate(case.values)]
    for path in (ours, theirs):
        assert seen(hudimeta.Table(path).scan().to_table()) == expected
        assert seen(hudimeta.Table(path, {"hoodie.metadata.enable": "false"}).scan().to_table()) == expected
        assert seen(hudi.read(path).table) == expected
        assert seen(hudi.read(path, metadata=False).table) == expected
        report = hudimeta.Table(path).metadata.validate()
        assert report.holds, report


def rows(case: Case, v: str) -> pa.Table:
    """A row a value; the key is its number."""
    ts = ("first", "second").index(v)
    given = [{"id": f"{n:03d}", "place": place, "v": v, "ts": ts} for n, place in enumerate(case.values)]
    return pa.Table.from_pylist(given, SCHEMA)


def seen(table: pa.Table) -> list[tuple[int, str | None, str]]:
    return sorted((int(row["id"]), row["place"], row["v"]) for row in table.to_pylist())
