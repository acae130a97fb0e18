"""Files of the timeline: no bit of them, and no file in another's place, goes unseen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.errors import CorruptFileError
from hudimeta.formats.avro.container import decode_container, encode_container, sealed_container, sealed_name
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.types import Operation
from tests.conftest import Unpack

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}


def test_every_bit_of_a_sealed_container_counts() -> None:
    plain = encode_container(SCHEMA, [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
    sealed = sealed_container(plain, "1_2.commit")
    assert decode_container(sealed) == decode_container(plain)
    assert (sealed_name(sealed), sealed_name(plain)) == ("1_2.commit", None)
    for at in range(len(sealed)):
        for bit in range(8):
            damaged = sealed[:at] + bytes([sealed[at] ^ 1 << bit]) + sealed[at + 1 :]
            try:
                found = decode_container(damaged)
            except CorruptFileError:
                continue
            # Only a seal that does not look like one any more is passed over.
            assert found == decode_container(plain)
            assert sealed_name(damaged) is None


@pytest.mark.parametrize("text", [b"{}", b'{"a": [1, 2]}', b'{\n  "a": {}\n}'])
def test_every_bit_of_sealed_json_counts(text: bytes) -> None:
    sealed = sealed_json(text, "f.json")
    assert verify_json(sealed, "x/f.json")
    assert not verify_json(text, "x/f.json")
    for at in range(len(text) - 1):
        with pytest.raises(CorruptFileError, match=r"f\.json"):
            verify_json(sealed[:at] + bytes([sealed[at] ^ 2]) + sealed[at + 1 :], "x/f.json")
    with pytest.raises(CorruptFileError, match=r"the content of g\.json, found that of f\.json"):
        verify_json(sealed, "g.json")
    assert not verify_json(sealed, "g.json", taken_over=True)


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_commit_in_the_place_of_another_is_refused(type: str, tmp_path: Path) -> None:
    table = ModelledTable(
        str(tmp_path / "t"),
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": type,
        },
    )
    for ts in (1, 2):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    first, second = sorted((tmp_path / "t/.hoodie/timeline").glob("*_*commit"))
    shutil.copy(first, second)
    with pytest.raises(CorruptFileError, match=f"the content of {second.name}, found that of {first.name}"):
        Table(table.path).scan().to_table()


def test_a_commit_of_others_that_contradicts_itself_is_refused(rich_table: Unpack) -> None:
    """Java seals nothing, but says where a file is three times."""
    path = rich_table("deletes_cow", fresh=True)
    newest = max((path / ".hoodie/timeline").glob("*_*.commit"))
    older = min((path / ".hoodie/timeline").glob("*_*.commit"))
    newest.chmod(0o644)
    newest.write_bytes(older.read_bytes())
    with pytest.raises(CorruptFileError, match=f"expected files of instant {newest.name.partition('_')[0]}"):
        Table(path).scan().to_table()


def test_a_clean_that_says_nothing_is_refused(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    for ts in range(4):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    first = next(iter(table.model.past))
    Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    (done,) = (tmp_path / "t/.hoodie/timeline").glob("*_*.clean")
    done.write_bytes(b"")
    with pytest.raises(
        CorruptFileError, match="is damaged at byte 0: expected the metadata of a completed action, found an empty file"
    ):
        Table(table.path).scan(as_of=first).to_table()


@pytest.mark.parametrize("ask", ["clean", "savepoints"])
def test_a_savepoint_that_says_nothing_is_refused(tmp_path: Path, ask: str) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    for ts in range(4):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    opened = Table(table.path, {"hoodie.clean.commits.retained": "1"})
    opened.savepoint()
    (done,) = (tmp_path / "t/.hoodie/timeline").glob("*_*.savepoint")
    done.write_bytes(b"")
    before = sorted(str(path) for path in (tmp_path / "t").rglob("*"))
    asked = {"clean": opened.clean, "savepoints": opened.savepoints}
    with pytest.raises(CorruptFileError, match="expected the metadata of a completed action, found an empty file"):
        asked[ask]()
    assert sorted(str(path) for path in (tmp_path / "t").rglob("*")) == before


def test_the_schema_of_a_commit_of_others_is_not_lost_to_one_bit(rich_table: Unpack) -> None:
    """The commit before it would be believed, and columns be missing."""
    path = rich_table("evolve_write_cow8", fresh=True)
    newest = max((path / ".hoodie/timeline").glob("*_*.commit"))
    newest.chmod(0o644)
    newest.write_bytes(newest.read_bytes().replace(b"\x0cschema", b"\x0cschemc"))
    with pytest.raises(CorruptFileError, match="expected the entry schema of extraMetadata, found 'schemc'"):
        Table(path).scan().to_table()
