"""Damaged and exchanged base files: never wrong rows without a word, and never made permanent by a write or a service."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.config.registry import HudiWarning
from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet import verify_parquet_file
from hudimeta.testing.builders import SIMPLE_OPTIONS, simple_rows
from tests.conftest import Unpack

Damage = Callable[[bytes], bytes]


def changed(old: bytes, new: bytes) -> Damage:
    """Other bytes in the footer, of which the name of a column comes first."""

    def change(data: bytes) -> bytes:
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        assert data.index(old, start) > 0
        return data[:start] + data[start:].replace(old, new, 1)

    return change


def of_the_keys(data: bytes) -> tuple[int, int]:
    """Where the page of the record keys begins, and a byte in it, after the magic of zstd."""
    start = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(2).data_page_offset
    return start, data.index(b"\x28\xb5\x2f\xfd", start) + 6


def flipped(data: bytes, at: int) -> bytes:
    """One bit of a byte."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGES: Mapping[str, Damage] = {
    "a column's name": changed(b"\x01x", b"\x01y"),
    "a key's name": changed(b"parquet.avro.schema", b"parquet.avro.schemb"),
    "a statistic": changed(b"k0000", b"k0001"),
    "a page": lambda data: flipped(data, of_the_keys(data)[1]),
    "shorter": lambda data: data[:-7],
    "longer": lambda data: data + b"PAR1",
    "empty": lambda data: b"",
    "zeros": lambda data: data[:-200] + bytes(100) + data[-100:],
}


COW, MOR, UNLISTED = "COPY_ON_WRITE", "MERGE_ON_READ", "no metadata table"
EXCHANGED = ("an older base file", "another file group's")
CASES = [
    *((COW, damage) for damage in (*DAMAGES, *EXCHANGED)),
    *((MOR, damage) for damage in ("a column's name", "a page", "another file group's")),
    *((UNLISTED, damage) for damage in ("a statistic", "longer", *EXCHANGED)),
]


@pytest.fixture(scope="module")
def pristine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two partitions; a copy-on-write one has two versions of each base file, the other has log files."""
    folder = tmp_path_factory.mktemp("base_damage") / "t"
    kind = "MERGE_ON_READ" if request.param == "MERGE_ON_READ" else "COPY_ON_WRITE"
    options = {**SIMPLE_OPTIONS, "hoodie.compact.inline": "false"}
    if request.param == "no metadata table":
        options["hoodie.metadata.enable"] = "false"
    schema = simple_rows([], 0).schema
    table = hudimeta.Table.create(folder, schema, key="id", partition_by=["part"], ordering=["ts"], type=kind, options=options)
    table.insert(simple_rows(range(20), 1))
    table.upsert(simple_rows(range(8), 2))
    return folder


def bases_of(folder: Path, partition: str) -> list[Path]:
    """The base files of a partition, oldest first."""
    return sorted(folder.glob(f"{partition}/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])


@pytest.mark.rotation(5)
@pytest.mark.parametrize(("pristine", "damage"), CASES, indirect=["pristine"])
def test_damage_of_a_base_file_stops_reads_writes_and_services(pristine: Path, damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    shutil.copytree(pristine, folder)
    older, base = bases_of(folder, "p0")[0], bases_of(folder, "p0")[-1]
    whole = base.read_bytes()
    others = {"an older base file": older, "another file group's": bases_of(folder, "p1")[-1]}
    content = others[damage].read_bytes() if damage in others else DAMAGES[damage](whole)
    base.write_bytes(content)
    files = sorted(folder.glob("p0/*"))

    table = hudimeta.Table(folder)
    attempts: list[Callable[[], object]] = [
        table.scan().to_table,
        table.scan(where="x >= 1.0", columns=["_hoodie_record_key"]).to_table,
        lambda: table.upsert(simple_rows(range(20), 9)),
    ]
    attempts += [table.compact] if list(folder.glob("p0/.*.log.*")) else []
    for attempt in attempts:
        with pytest.raises(CorruptFileError) as caught:
            attempt()
        assert caught.value.path == f"p0/{base.name}"
    with pytest.raises(CorruptFileError):
        verify_parquet_file(content, base.name, len(whole))
    assert sorted(folder.glob("p0/*")) == files, "nothing was made of it"

    base.write_bytes(whole)
    assert verify_parquet_file(whole, base.name, len(whole)).num_rows == 10
    assert hudimeta.Table(folder).scan(where="x = 2.0").count() == 8


@pytest.mark.parametrize("pristine", [COW], indirect=True)
def test_the_place_of_the_damaged_page_is_told(pristine: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    shutil.copytree(pristine, folder)
    base = bases_of(folder, "p0")[-1]
    page, at = of_the_keys(base.read_bytes())
    base.write_bytes(flipped(base.read_bytes(), at))
    with pytest.raises(CorruptFileError, match="column _hoodie_record_key") as caught:
        hudimeta.Table(folder).scan().to_table()
    assert caught.value.offset == page


@pytest.mark.parametrize("pristine", [COW, MOR], indirect=True)
def test_a_read_may_skip_what_is_damaged_and_says_so_each_time(pristine: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    shutil.copytree(pristine, folder)
    base = bases_of(folder, "p0")[-1]
    base.write_bytes(DAMAGES["a column's name"](base.read_bytes()))
    table = hudimeta.Table(folder, {"hudimeta.read.corrupt": "skip"})
    for _ in range(2):
        scan = table.scan()
        with pytest.warns(HudiWarning, match="left out as hudimeta.read.corrupt=skip asks for"):
            assert scan.to_table()["part"].unique().to_pylist() == ["p1"]
        (told,) = scan.report.corrupt
        assert f"p0/{base.name} is damaged" in told
        assert told in str(scan.report)
    with pytest.warns(HudiWarning, match="left out"):
        assert table.scan().count() == 10
    writes = [lambda: table.upsert(simple_rows(range(20), 9)), lambda: table.delete("x > 0")]
    for write in [*writes, table.compact] if list(folder.glob("p0/.*.log.*")) else writes:
        with pytest.raises(CorruptFileError):
            write()


# By Apache Hudi


def test_a_column_of_apache_hudis_file_that_changed_its_name_is_not_null(rich_table: Unpack) -> None:
    folder = rich_table("deletes_cow", fresh=True)
    base = folder / hudimeta.Table(folder).scan().plan().files[0]
    column = hudimeta.Table(folder).schema.names[-1]
    name = bytes([len(column)]) + column.encode()
    base.chmod(0o644)
    base.write_bytes(changed(name, name[:-1] + b"~")(base.read_bytes()))
    with pytest.raises(CorruptFileError, match=r"own schema|pages of"):
        hudimeta.Table(folder).scan(columns=[column]).to_table()


def test_an_older_base_file_of_apache_hudis_is_refused(rich_table: Unpack) -> None:
    folder = rich_table("deletes_cow", fresh=True)
    used = hudimeta.Table(folder, {"hoodie.metadata.enable": "false"}).scan().plan().files
    base = folder / used[0]
    group = base.name.split("_")[0]
    older = min(base.parent.glob(f"{group}_*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])
    assert older != base
    base.chmod(0o644)
    base.write_bytes(older.read_bytes())
    for options in ({}, {"hoodie.metadata.enable": "false"}):
        with pytest.raises(CorruptFileError) as caught:
            hudimeta.Table(folder, options).scan().to_table()
        assert caught.value.path == used[0]
