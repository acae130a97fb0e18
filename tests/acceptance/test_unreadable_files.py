"""Files that cannot be read are refused by name, and a write that meets one changes no row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudimeta.cli.exits import Exit, exit_of
from hudimeta.errors import CorruptFileError, MetadataFileMissing, NotFound
from tests.acceptance.refusals import ROWS, WRITES, Table, contents, refused
from tests.conftest import Unpack

# Files that cannot be read


def truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def garbage(data: bytes) -> bytes:
    return bytes((37 * i + 11) % 256 for i in range(len(data)))


def cut_tail(data: bytes) -> bytes:
    return data[:-4]


DAMAGES = [truncate, garbage, cut_tail]


def newest(path: Path, pattern: str) -> Path:
    return sorted(path.glob(pattern), key=lambda p: p.name)[-1]


def damage(file: Path, how: Callable[[bytes], bytes]) -> None:
    file.write_bytes(how(file.read_bytes()))


@pytest.mark.parametrize("how", [*DAMAGES, lambda data: b""], ids=["truncated", "garbage", "cut tail", "empty"])
def test_data_files_that_cannot_be_read(how: Callable[[bytes], bytes], copy: Path) -> None:
    rows = Table(copy).scan().to_table().num_rows
    file = Path(Table(copy).scan(where="part = 'a'").plan().files[0])
    damage(copy / file, how)
    reads: list[Callable[[], Any]] = [
        lambda: Table(copy).scan().to_table(),
        lambda: Table(copy).scan(where="n > 0 AND part = 'a'").to_table(),
        lambda: list(Table(copy).scan(columns=["n"]).to_batches()),
        lambda: Table(copy).scan(where="n > 0").count(),
    ]
    for read in reads:
        error = refused(CorruptFileError, f"{file.name} is damaged at byte .*Restore the file", copy, read)
        assert isinstance(error, CorruptFileError)
        assert error.path == str(file)
    assert Table(copy).scan(where="part = 'b'").count() == 2, "other files can still be read"
    assert Table(copy).scan().count() == rows, "commits tell how many rows there are"


def test_data_files_that_are_gone(copy: Path) -> None:
    (file,) = Table(copy).scan(where="part = 'a'").plan().files
    (copy / file).unlink()
    refused(NotFound, f"{file}: no such file.*open the table again", copy, lambda: Table(copy).scan().to_table())


@pytest.mark.parametrize("how", DAMAGES)
def test_writes_over_a_file_that_cannot_be_read_change_no_row(how: Callable[[bytes], bytes], copy: Path) -> None:
    """The write is rolled back: its error names the file, and what could be read before can be read after."""
    (file,) = Table(copy).scan(where="part = 'a'").plan().files
    damage(copy / file, how)
    data = {name: fact for name, fact in contents(copy).items() if not name.startswith(".hoodie")}
    before = Table(copy).scan(where="part = 'b'").to_table()
    with pytest.raises(CorruptFileError, match=Path(file).name):
        Table(copy).upsert(ROWS)
    assert {name: fact for name, fact in contents(copy).items() if not name.startswith(".hoodie")} == data
    assert Table(copy).scan(where="part = 'b'").to_table().equals(before)
    assert not Table(copy).timeline.pending


@pytest.mark.parametrize("how", DAMAGES)
def test_timeline_files_that_cannot_be_read(how: Callable[[bytes], bytes], copy: Path) -> None:
    file = newest(copy, ".hoodie/timeline/*.commit")
    damage(file, how)
    says = f"{file.relative_to(copy)} is damaged at byte .*Restore the file"
    refused(CorruptFileError, says, copy, lambda: Table(copy).scan().to_table())
    refused(CorruptFileError, says, copy, lambda: Table(copy).schema)
    for verb in WRITES:
        refused(CorruptFileError, says, copy, lambda verb=verb: getattr(Table(copy), verb)(ROWS))


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("partition", ["files", "column_stats"])
def test_hfiles_that_cannot_be_read(partition: str, how: Callable[[bytes], bytes], rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9", fresh=True)
    everything = Table(path).scan().count()
    file = newest(path, f".hoodie/metadata/{partition}/*.hfile")
    damage(file, how)
    says = f"CORRUPT_FILE: {file.relative_to(path)} is damaged at byte .*hoodie.metadata.enable=false"
    refused(CorruptFileError, says, path, lambda: Table(path).scan(where="note > 'a'").to_table())
    assert Table(path, {"hoodie.metadata.enable": "false"}).scan().count() == everything


@pytest.mark.parametrize(
    ("partition", "pattern"), [("files", "*.hfile"), ("column_stats", "*.hfile"), ("column_stats", ".*.log.*")]
)
def test_files_of_the_metadata_table_that_are_gone(partition: str, pattern: str, copy: Path) -> None:
    options = {"hoodie.metadata.compact.max.delta.commits": "2"}
    while not Table(copy, options).upsert(ROWS).compacted_metadata:
        pass
    Table(copy).upsert(ROWS)
    everything = Table(copy).scan().count()
    file = newest(copy, f".hoodie/metadata/{partition}/{pattern}")
    file.unlink()
    says = f"METADATA_FILE_MISSING: {file.relative_to(copy)}: no such file, .*{partition!r} has it.*enable=false and rebuild"
    error = refused(MetadataFileMissing, says, copy, lambda: Table(copy).scan(where="n > 1").to_table())
    assert isinstance(error, MetadataFileMissing)
    assert (error.partition, exit_of(error)) == (partition, Exit.DAMAGED)
    assert Table(copy, {"hoodie.metadata.enable": "false"}).scan().count() == everything
    Table(copy).metadata.rebuild()
    assert Table(copy).scan(where="n > 1").count() == 3


@pytest.mark.parametrize("how", DAMAGES)
def test_timeline_files_of_the_metadata_table_that_cannot_be_read(how: Callable[[bytes], bytes], rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9", fresh=True)
    file = newest(path, ".hoodie/metadata/.hoodie/timeline/*.commit")
    damage(file, how)
    says = f"CORRUPT_FILE: {file.relative_to(path)} is damaged at byte .*hoodie.metadata.enable=false"
    refused(CorruptFileError, says, path, lambda: Table(path).scan().to_table())


@pytest.mark.parametrize("how", DAMAGES)
def test_logs_of_the_metadata_table_that_cannot_be_read(how: Callable[[bytes], bytes], copy: Path) -> None:
    file = next(f for f in copy.glob(".hoodie/metadata/column_stats/.*.log.*") if f.stat().st_size > 1000)
    damage(file, how)
    says = f"CORRUPT_FILE: {file.relative_to(copy)} is damaged at byte .*hoodie.metadata.enable=false"
    refused(CorruptFileError, says, copy, lambda: Table(copy).scan(where="n > 1").to_table())
    assert Table(copy).scan().count() == 4, "a read without a filter needs no statistics"
    assert Table(copy, {"hoodie.enable.data.skipping": "false"}).scan(where="n > 1").count() == 3


@pytest.mark.parametrize("how", DAMAGES)
def test_history_that_cannot_be_read(how: Callable[[bytes], bytes], rich_table: Unpack) -> None:
    path = rich_table("archived_lsm", fresh=True)
    damage(newest(path, ".hoodie/timeline/history/manifest_*"), how)
    refused(CorruptFileError, "manifest_.*Restore", path, lambda: Table(path).timeline.history.load())
