"""Record keys and values with quotes, line ends, right-to-left and other odd characters are the same to both writers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, TABLE_VERSION

SCHEMA = pa.schema([("id", pa.string()), ("sub", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
ODD = (
    "it's",
    'say "so"',
    "two\nlines",
    "cr\r\n",
    "tab\tand \x01 bell \x07",
    "back\\slash",
    "a:b,c:d",
    "$1 ${x} %s %41",
    "שלום",
    "\u202edesrever\u202c",
    "\u200bnothing",
    "🙂",
    "__null__",
    " ",
    "' OR '1'='1",
)
CASES = [
    ("COPY_ON_WRITE", "id"),
    ("MERGE_ON_READ", "id,sub"),
    ("COPY_ON_WRITE", "id,sub"),
    ("MERGE_ON_READ", "id"),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "key"), CASES if FULL else CASES[:2])
def test_odd_keys_are_the_same_rows_to_both(hudi: ApacheHudi, tmp_path: Path, kind: str, key: str) -> None:
    java = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.write.table.version": TABLE_VERSION,
        "hoodie.write.auto.upgrade": "false",
    }
    options = {"hoodie.metadata.record.index.enable": "true", "hoodie.write.table.version": TABLE_VERSION}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    hudimeta.Table.create(ours, SCHEMA, key=key.split(","), ordering="ts", type=kind, options=options, name="t").insert(rows(1))
    hudi.write(theirs, rows(1), java, operation="insert", mode="overwrite")
    hudi.write(ours, rows(2), java)
    hudimeta.Table(theirs).upsert(rows(2))
    assert keys(ours) == keys(theirs)
    for path in (ours, theirs):
        for found in (hudimeta.Table(path).scan().to_table(), hudi.read(path).table):
            assert sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == sorted(
                (t, f"{t}2") for t in ODD
            )
        for text in ODD:
            assert hudimeta.Table(path).scan(where=[("id", "=", text)]).to_table()["v"].to_pylist() == [f"{text}2"]
        report = hudimeta.Table(path).metadata.validate()
        assert report.holds, report


def rows(turn: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": text, "sub": text[::-1], "v": f"{text}{turn}", "ts": turn} for text in ODD], SCHEMA)


def keys(path: Path) -> list[str]:
    return sorted(hudimeta.Table(path).scan().to_table()["_hoodie_record_key"].to_pylist())
