"""Base files in ORC: rows, types, projection, filters, log files beside them, and damage."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import hudimeta
from hudimeta.errors import CorruptFileError

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("ratio", pa.float64()),
    ]
)


def rows(numbers: range, ts: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": f"k{n:02}",
                "ts": ts,
                "n": n if n % 5 else None,
                "at": datetime.datetime(2026, 1, 1, 2, 3, 4, 123_456 + n, tzinfo=datetime.timezone.utc),
                "day": datetime.date(2026, 1, 1 + n % 20),
                "price": decimal.Decimal("12.34"),
                "flag": bool(n % 2),
                "raw": bytes([n]),
                "tags": ["x", None],
                "place": {"x": n, "y": "z"} if n % 3 else None,
                "ratio": n / 3,
            }
            for n in numbers
        ],
        SCHEMA,
    )


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def tables(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[hudimeta.Table, hudimeta.Table]:
    """The same table twice: with base files in Parquet, and in ORC."""
    found = []
    for name in ("parquet", "orc"):
        options = {"hoodie.metadata.enable": "false"}
        table = hudimeta.Table.create(
            tmp_path / name, SCHEMA, name="t", key="id", ordering="ts", type=request.param, options=options
        )
        table.insert(rows(range(40), 1))
        table.upsert(rows(range(5, 12), 2))
        found.append(table)
    folder = Path(found[1].path)
    for base in folder.glob("*.parquet"):
        orc.write_table(pq.read_table(base), base.with_suffix(".orc"), stripe_size=4096, batch_size=16)
        base.unlink()
    properties = folder / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.table.base.file.format=ORC\n")
    return found[0], hudimeta.Table(folder, {"hoodie.metadata.enable": "false"})


def test_rows_are_those_of_parquet(tables: tuple[hudimeta.Table, hudimeta.Table]) -> None:
    parquet, table = tables
    assert table.schema == parquet.schema
    names = SCHEMA.names
    assert table.scan(columns=names).to_table().sort_by("id").equals(parquet.scan(columns=names).to_table().sort_by("id"))
    assert table.scan().count() == 40


@pytest.mark.parametrize(
    "where",
    ["n > 20", "at < TIMESTAMP'2026-01-01 02:03:04.123470Z'", "price = 12.34 AND flag", "place.x IN (4, 5)", "id = 'k07'"],
)
def test_filters_choose_the_same_rows(tables: tuple[hudimeta.Table, hudimeta.Table], where: str) -> None:
    parquet, table = tables
    expected = sorted(parquet.scan(where=where, columns=["id"]).to_table()["id"].to_pylist())
    scan = table.scan(where=where, columns=["id"])
    assert sorted(scan.to_table()["id"].to_pylist()) == expected
    assert expected
    assert scan.count() == len(expected)


def test_damage_names_the_file(tables: tuple[hudimeta.Table, hudimeta.Table]) -> None:
    _, table = tables
    victims = list(Path(table.path).glob("*.orc"))
    for victim in victims:
        victim.write_bytes(victim.read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match="a readable ORC file") as caught:
        table.scan().to_table()
    assert caught.value.path in [victim.name for victim in victims]
