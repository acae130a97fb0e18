"""Keys and partition values that cannot be, or that Hudi has a rule for: refused before the write begins, or kept its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import SchemaMismatch
from hudimeta.keys import DEFAULT_PARTITION, escape
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
VERBS = ["insert", "upsert", "bulk_insert", "delete", "insert_overwrite"]
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def rows(*given: tuple[Any, ...]) -> pa.Table:
    """(id, n, part, v) as a table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in given], SCHEMA)


def create(path: Path, kind: str = "COPY_ON_WRITE", key: Any = "id", **options: str) -> hudimeta.Table:
    given = {f"hoodie.datasource.write.{name}": value for name, value in options.items()}
    table = hudimeta.Table.create(path, SCHEMA, key=key, partition_by="part", type=kind, options=given, name="t")
    table.insert(rows(("kept", 1, "p", 1)))
    return table


def contents(path: Path) -> list[tuple[str, str | None, str, int]]:
    """(id, part, partition path, v), sorted."""
    found = hudimeta.Table(path).scan().to_table()
    columns = (found[c].to_pylist() for c in ("id", "part", "_hoodie_partition_path", "v"))
    return sorted(zip(*columns, strict=True), key=str)


def everything(path: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.rotation(5)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("key", "bad", "says"),
    [
        ("id", (None, 1, "p", 2), "null or empty in row [01]"),
        ("id", ("", 1, "p", 2), "null or empty in row [01]"),
        ("n", ("x", None, "p", 2), "null or empty in row [01]"),
        (["id", "n"], (None, None, "p", 2), "null or empty in row [01]"),
        ("id", ("x", 1, "..", 2), "as a partition path in row [01]"),
        ("id", ("x", 1, "a/../../b", 2), "as a partition path in row [01]"),
        ("id", ("x", 1, "/etc", 2), "as a partition path in row [01]"),
        ("id", ("x", 1, "a//b", 2), "as a partition path in row [01]"),
        ("id", ("x", 1, ".hoodie", 2), "outside of .hoodie"),
        ("id", ("x", 1, ".hoodie/timeline", 2), "outside of .hoodie"),
        ("id", ("x", 1, "nul\0", 2), "as a partition path in row [01]"),
        ("id", ("x", 1, "%2e%2E", 2), "as a partition path in row [01]"),
        ("id", ("x", 1, "a/" + "ä" * 128, 2), "of 255 bytes each at most"),
        ("id", ("k" * 32_768, 1, "p", 2), "32,768 bytes in row [01]"),
        (["id", "n"], ("k" * 32_768, 1, "p", 2), "32,7[0-9]* bytes in row [01]"),
    ],
)
def test_rows_that_have_no_place_are_refused(
    tmp_path: Path, door: str, verb: str, key: Any, bad: tuple[Any, ...], says: str
) -> None:
    table = create(tmp_path / "t", key=key)
    before = contents(tmp_path / "t")
    instants = table.timeline.instants
    with pytest.raises(SchemaMismatch, match=says):
        getattr(table, verb)(rows(("kept", 1, "p", 9), bad))
    assert contents(tmp_path / "t") == before
    timeline = hudimeta.Table(tmp_path / "t").timeline
    if door != "engine":  # tasks see the rows when the write has begun: it is rolled back
        assert (timeline.writes, timeline.pending) == (instants, ())
    else:
        assert timeline.instants == instants, "nothing was begun"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["t"]


@BOTH
@pytest.mark.parametrize("key", ["id", ["id", "n"]])
def test_rows_without_a_partition_value_have_hives_default_partition(tmp_path: Path, kind: str, key: Any) -> None:
    table = create(tmp_path, kind, key, hive_style_partitioning="true")
    table.upsert(rows(("a", 1, None, 1), ("b", 1, "", 1)))
    table.upsert(rows(("a", 1, None, 2)))
    folder = f"part={DEFAULT_PARTITION}"
    assert [(i, path, v) for i, _, path, v in contents(tmp_path)] == [
        ("a", folder, 2),
        ("b", folder, 1),
        ("kept", "part=p", 1),
    ]
    assert (tmp_path / folder / ".hoodie_partition_metadata").is_file()
    assert hudimeta.Table(tmp_path).scan(where="part is null").to_table()["id"].to_pylist() == ["a", "b"]
    table.delete(rows(("a", 1, None, 0)))
    assert [i for i, *_ in contents(tmp_path)] == ["b", "kept"]
    check_all(open_storage(tmp_path))


@BOTH
def test_parts_of_a_composite_key_may_be_missing(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, ["id", "n"])
    table.upsert(rows((None, 1, "p", 1), ("", 1, "p", 1), ("x", None, "p", 1)))
    table.upsert(rows((None, 1, "p", 2), ("", 1, "p", 2), ("x", None, "p", 2)))
    found = hudimeta.Table(tmp_path).scan(where="v = 2").to_table()
    assert sorted(found["_hoodie_record_key"].to_pylist()) == ["id:__empty__,n:1", "id:__null__,n:1", "id:x,n:__null__"]
    assert len(contents(tmp_path)) == 4


@BOTH
def test_slashes_make_folders_unless_they_are_encoded(tmp_path: Path, kind: str) -> None:
    for name, encode, folder in (("plain", "false", "a/b"), ("encoded", "true", "a%2Fb")):
        path = tmp_path / name
        table = create(path, kind, **{"partitionpath.urlencode": encode})
        table.upsert(rows(("x", 1, "a/b", 1), ("y", 1, "a", 1)))
        table.upsert(rows(("x", 1, "a/b", 2)))
        assert contents(path) == [("kept", "p", "p", 1), ("x", "a/b", folder, 2), ("y", "a", "a", 1)]
        marked = (path / folder / ".hoodie_partition_metadata").read_text()
        assert f"partitionDepth={folder.count('/') + 1}" in marked
        check_all(open_storage(path))
    with pytest.raises(SchemaMismatch, match="as a partition path"):
        hudimeta.Table(tmp_path / "encoded").insert(rows(("z", 1, "..", 1)))
    hudimeta.Table(tmp_path / "encoded").insert(rows(("z", 1, "a/../b", 1), ("w", 1, "nul\0", 1)))
    assert {("z", "a/../b"), ("w", "nul\0")} <= {(i, part) for i, part, *_ in contents(tmp_path / "encoded")}


@pytest.mark.rotation(3)
@BOTH
@pytest.mark.parametrize(
    ("hive", "value", "fine"),
    [("false", "10:30", "a/10:30"), ("true", "10:30", "a/10:30"), ("false", "=x", "x="), ("false", "a/=x", "a/x=")],
)
def test_a_name_that_apache_hudi_cannot_read_is_refused_unless_it_is_encoded(
    door: str, tmp_path: Path, kind: str, hive: str, value: str, fine: str
) -> None:
    path = tmp_path / "plain"
    table = create(path, kind, hive_style_partitioning=hive)
    before, kept = everything(path), contents(path)
    with pytest.raises(SchemaMismatch, match=r"urlencode=true"):
        table.upsert(rows(("x", 1, value, 1)))
    assert contents(path) == kept
    assert everything(path) == before or door != "engine"  # tasks find out when their write is under way
    check_all(open_storage(path))
    table.upsert(rows(("x", 1, fine, 1)))
    assert table.scan().to_table().num_rows == 2
    table.delete(rows(("x", 1, value, 1)))  # which names nothing
    encoded = tmp_path / "encoded"
    create(encoded, kind, **{"partitionpath.urlencode": "true"}).upsert(rows(("x", 1, value, 1)))
    assert ("x", value, escape(value), 1) in contents(encoded)


def test_a_partition_that_is_there_already_stays_in_use(tmp_path: Path) -> None:
    """Another writer may have made it."""
    path = tmp_path / "t"
    table = create(path)
    table.insert(rows(("x", 1, "10", 1)))
    mark = path / "10:30" / ".hoodie_partition_metadata"
    mark.parent.mkdir()
    mark.write_bytes((path / "10" / mark.name).read_bytes())
    table.upsert(rows(("y", 1, "10:30", 1)))
    assert ("y", "10:30", "10:30", 1) in contents(path)
