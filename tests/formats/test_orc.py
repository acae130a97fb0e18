"""Base files in ORC: rows, types, projection, filters, log files beside them, and damage."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

import hudimeta
from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.base_file import open_base_file
from hudimeta.formats.orc_tail import writer_zones
from hudimeta.storage import open_storage
from tests.edited_properties import edit_properties, forget_properties
from tests.examples import at_most

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
    forget_properties(folder)
    edit_properties(folder, lambda text: text + "hoodie.table.base.file.format=ORC\n")
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


# Moments


def orc_bytes(compression: str) -> bytes:
    sink = io.BytesIO()
    moments = pa.array([0, 1_767_225_600_123_456, None], pa.timestamp("us")).cast(pa.timestamp("ns"))
    orc.write_table(pa.table({"at": moments, "n": [1, 2, 3]}), sink, compression=compression)
    return sink.getvalue()


def zones(data: bytes) -> list[str]:
    return writer_zones(lambda offset, length: data[offset : offset + length], len(data), "f.orc")


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy"])
def test_the_writers_zone_is_found(compression: str) -> None:
    assert zones(orc_bytes(compression)) == ["GMT"]


def test_moments_are_those_of_the_writers_zone(tmp_path: Path) -> None:
    """The wall clock of a file stays, whatever zone its stripes name; the moments move with it."""
    data = orc_bytes("uncompressed")
    found = {}
    for zone in (b"GMT", b"EST"):
        (tmp_path / "f_0-0-0_1.orc").write_bytes(data.replace(b"GMT", zone))
        with open_base_file(open_storage(tmp_path), "f_0-0-0_1.orc") as file:
            column = file.piece(0, ["at"]).column(0)
        assert column.type == pa.timestamp("us", "UTC")
        found[zone] = column.cast(pa.int64()).to_pylist()
    assert found[b"GMT"] == [0, 1_767_225_600_123_456, None]
    assert found[b"EST"] == [5 * 3_600_000_000, 1_767_225_600_123_456 + 5 * 3_600_000_000, None]


@given(st.data())
@settings(max_examples=at_most(300), deadline=None)
def test_a_damaged_end_is_reported(draw: st.DataObject) -> None:
    data = bytearray(orc_bytes(draw.draw(st.sampled_from(["uncompressed", "zlib", "snappy"]))))
    if draw.draw(st.booleans()):
        data[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    else:
        del data[draw.draw(st.integers(0, len(data))) :]
    with contextlib.suppress(CorruptFileError, UnsupportedFeature):
        zones(bytes(data))
