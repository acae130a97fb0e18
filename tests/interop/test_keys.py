"""Both writers give the same rows the same keys and partitions, byte by byte, and so update each other's rows."""

from __future__ import annotations

import datetime
import re
import urllib.parse
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi, HudiFailed, Installation
from tests.interop.sides import FULL, OLD

UTC = datetime.timezone.utc
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("sub", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("place", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("v", pa.string()),
        ("ts", pa.int64()),
    ]
)
PLACES = ["plain", "with space", "a/b", "50%", "a=b", "ümläut", "x:y", None, "", "q?*#&+", "dot.", "[tag]{1}"]
SAFE_PLACES = ["plain", "with space", "ümläut", None, "dot.", "a=b", "", "1+1"]


_OF_THE_ORDER = ("hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id", "hoodie.table.precombine.field")


@dataclass(frozen=True)
class Case:
    """A way to name rows."""

    name: str
    key: str
    partition: str = ""
    options: dict[str, str] = field(default_factory=dict)
    places: tuple[str | None, ...] = ()
    quick: bool = False
    kind: str = "COPY_ON_WRITE"
    hudi_reads: bool = True
    """False where Apache Hudi cannot read what it has written itself."""

    @property
    def generates_keys(self) -> bool:
        return not self.key


TIME = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd HH",
    "hoodie.keygen.timebased.timezone": "UTC",
}
CUSTOM = {
    **{key: value for key, value in TIME.items() if "class" not in key},
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
COMPLEX = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    # Or 1.2.0 writes to no such table of version 8.
    "hoodie.write.complex.keygen.validation.enable": "false",
}
NO_PARTITION = "hoodie.datasource.write.partitionpath.field"
VIRTUAL = {"hoodie.populate.meta.fields": "false"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
MOR = "MERGE_ON_READ"
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
CASES = [
    Case("simple", "id", "place", places=tuple(SAFE_PLACES)),
    Case("not partitioned", "id"),
    Case("number as key", "sub"),
    Case("several keys", "id,sub", "place", places=tuple(SAFE_PLACES)),
    Case("one key of the complex generator", "id", "place", COMPLEX, places=tuple(SAFE_PLACES)),
    Case("one key of the complex generator, not partitioned", "id", "", {**COMPLEX, NO_PARTITION: ""}),
    Case("several keys, not partitioned", "id,sub,price"),
    Case("all types as keys", "id,price,x,day,at,flag", "day,flag", quick=True),
    Case("several partitions", "id", "day,place,flag", HIVE, places=tuple(SAFE_PLACES), quick=True),
    Case("numbers as partitions", "id", "sub,price,x", HIVE),
    Case("hive style", "id", "place", HIVE, places=tuple(SAFE_PLACES)),
    Case("encoded", "id", "place", ENCODED, places=tuple(PLACES)),
    Case("hive style and encoded", "id,sub", "place,day", {**HIVE, **ENCODED}, places=tuple(PLACES), quick=True),
    Case("moments as partition", "id", "at", ENCODED),
    Case("bytes as key and partition", "id,raw", "raw", HIVE),
    Case("time based", "id", "ts", TIME, quick=True),
    Case("time based, hive style and encoded", "id", "ts", {**TIME, **HIVE, **ENCODED}),
    Case(
        "custom",
        "id,sub",
        "place:SIMPLE,ts:TIMESTAMP",
        CUSTOM,
        places=("plain", "b c", "ü", None),
        quick=True,
        hudi_reads=False,
    ),
    Case("custom with one key", "id", "ts:TIMESTAMP", {**CUSTOM, **HIVE}, kind=MOR, hudi_reads=False),
    Case("custom without time", "sub", "flag:SIMPLE,place:SIMPLE", {**CUSTOM, **HIVE, **ENCODED}, places=tuple(PLACES)),
    Case("generated keys", "", "place", places=tuple(SAFE_PLACES), quick=True),
    Case("generated keys, not partitioned", "", ""),
    Case("virtual keys", "id", "place", VIRTUAL, places=tuple(SAFE_PLACES), quick=True),
    Case("virtual keys of several columns", "id,sub", "place", VIRTUAL, places=tuple(SAFE_PLACES)),
    Case("virtual keys, not partitioned", "sub", "", VIRTUAL),
    Case("dropped partition columns", "id", "place", {**DROPPED, **HIVE}, places=("a", "b c", "d"), kind=MOR, quick=True),
    Case("two dropped partition columns", "id", "day,place", {**DROPPED, **ENCODED}, places=("a", "b/c", "d")),
]


def _rows(case: Case, value: str, ts: int) -> pa.Table:
    moment = datetime.datetime(2026, 2, 27, 23, 59, 58, 120_000, tzinfo=UTC)
    numbers = [0.0, 1.0, 0.1, 1e21, -2.5e-7, 123456789.125]
    keys = ["a", "b c", "k:v", "ä,ö", "$1", "_x_"]
    rows: list[dict[str, Any]] = []
    for n in range(24):
        row = {
            "id": f"{keys[n % 6]}{n}",
            "sub": (n - 3) * 10 ** (n % 16),
            "price": Decimal(n * 37 - 50) / 100,
            "x": numbers[n % 6],
            "place": case.places[n % len(case.places)] if case.places else "here",
            "day": (moment + datetime.timedelta(days=n % 4)).date(),
            "at": moment + datetime.timedelta(hours=n % 3, microseconds=n % 2),
            "flag": n % 2 == 0,
            "raw": [b"ab", b"\x00\xff", "é".encode()][n % 3],
            "v": value,
            "ts": 1_790_000_000_000 + 3_600_000 * (n % 5) + ts,
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, SCHEMA)


def _java_options(case: Case) -> dict[str, str]:
    partition = {"hoodie.datasource.write.partitionpath.field": case.partition} if case.partition else {}
    key = {"hoodie.datasource.write.recordkey.field": case.key} if case.key else {}
    return {
        "hoodie.table.name": "keys",
        "hoodie.datasource.write.table.type": case.kind,
        **key,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.timeline.timezone": "UTC",
        **partition,
        **case.options,
    }


def _named(table: pa.Table) -> dict[str, tuple[str | None, str | None]]:
    """Key and partition path by id; where meta columns are not stored Apache Hudi does not show them either."""
    names = ("_hoodie_record_key", "_hoodie_partition_path")
    nothing = [None] * table.num_rows
    columns = [table[name].to_pylist() if name in table.column_names else nothing for name in names]
    # Generated keys begin with the instant.
    keys = [key and re.sub(r"^\d{17}_", "<instant>_", key) for key in columns[0]]
    return dict(zip(table["id"].to_pylist(), zip(keys, columns[1], strict=True), strict=True))


def _folders(path: Path) -> set[str]:
    return {str(f.parent.relative_to(path)) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts}


def _unstored(case: Case) -> tuple[str, ...]:
    """What of our settings Apache Hudi does not store: 1.2.0 no ordering column beside keys that it generates."""
    found = Installation.find()
    newer = found is not None and found.release == "1.2.0"
    return _OF_THE_ORDER if newer and case.generates_keys else ()


def _settings(path: Path) -> dict[str, str]:
    """Properties that must not depend on who created the table."""
    mine = dict(hudimeta.Table(path).properties)
    about = ("recordkey", "partition.fields", "keygen", "hive_style", "urlencode", "precombine", "merge", "payload", "type")
    # Later releases of Hudi have this as an option; and the settings of times are stored with TIMESTAMP, not with CUSTOM.
    custom = mine["hoodie.table.keygenerator.type"] == "CUSTOM"
    only_ours = ("hoodie.write.complex.keygen.new.encoding", *(["hoodie.keygen.timebased"] if custom else []))
    return {k: v for k, v in mine.items() if v and any(word in k for word in about) and not k.startswith(only_ours)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", [c for c in CASES if FULL or c.quick], ids=lambda c: c.name)
def test_rows_are_called_the_same(hudi: ApacheHudi, tmp_path: Path, case: Case) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    first = _rows(case, "first", 0)
    table = hudimeta.Table.create(
        ours,
        SCHEMA,
        key=case.key or None,
        partition_by=case.partition,
        ordering="ts",
        type=case.kind,
        options={**case.options, "hoodie.write.table.version": "8" if OLD else "9"},  # that of tables that it makes by itself
        name="keys",
    )
    table.insert(first)
    hudi.write(theirs, first, _java_options(case), operation="insert", mode="overwrite")
    by_them = hudimeta.Table(theirs).scan().to_table()
    assert _named(hudimeta.Table(ours).scan().to_table()) == _named(by_them)
    assert _folders(ours) == _folders(theirs)
    assert _settings(theirs) == {key: value for key, value in _settings(ours).items() if key not in _unstored(case)}
    if not case.hudi_reads:
        with pytest.raises(HudiFailed, match="Failed to cast value"):
            hudi.read(theirs)
        return
    assert _named(hudi.read(ours).table) == _named(by_them)
    later = _rows(case, "second", 1)
    hudi.write(ours, later, _java_options(case), operation="upsert")
    hudimeta.Table(theirs, options=case.options).upsert(later)
    for path in (ours, theirs):
        for found in (hudimeta.Table(path).scan().to_table(), hudi.read(path).table, hudi.read(path, metadata=False).table):
            # Rows whose keys are generated are never the same row.
            assert found.num_rows == first.num_rows * (2 if case.generates_keys else 1)
            assert set(found["v"].to_pylist()) == ({"first", "second"} if case.generates_keys else {"second"})
            assert _named(found) == _named(by_them)
        assert all(hudi.validate(path).values())


def test_the_folder_names_are_urls(tmp_path: Path) -> None:
    """What the cases above compare is not two empty sets."""
    case = next(c for c in CASES if c.name == "hive style and encoded")
    table = hudimeta.Table.create(
        tmp_path / "t", SCHEMA, key=case.key, partition_by=case.partition, options=case.options, name="keys"
    )
    table.insert(_rows(case, "first", 0))
    places = {urllib.parse.unquote(f.split("/")[0]) for f in _folders(tmp_path / "t")}
    assert {"place=a/b", "place=50%", "place=x:y", "place=__HIVE_DEFAULT_PARTITION__"} <= places
