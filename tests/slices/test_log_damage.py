"""Damaged log files of completed writes: never older rows without a word, and never made permanent by a service."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import CorruptFileError
from hudimeta.formats.log import verify_log_file
from hudimeta.testing.builders import SIMPLE_OPTIONS, simple_rows
from tests.conftest import Unpack

Damage = Callable[[bytes], bytes]

KINDS: Mapping[str, Mapping[str, str]] = {
    "avro": {"hoodie.logfile.data.block.format": "avro"},
    "parquet": {"hoodie.logfile.data.block.format": "parquet"},
    "hfile": {"hoodie.logfile.data.block.format": "hfile"},
    "no metadata table": {"hoodie.metadata.enable": "false"},
}


def flipped(share: float) -> Damage:
    """One bit of the byte at a share of the file."""

    def flip(data: bytes) -> bytes:
        raw = bytearray(data)
        raw[int(share * (len(raw) - 1))] ^= 8
        return bytes(raw)

    return flip


DAMAGES: Mapping[str, Damage] = {
    "empty": lambda data: b"",
    "shorter": lambda data: data[:-20],
    "half": lambda data: data[: len(data) // 2],
    "the first block alone": lambda data: data[: data.index(b"#HUDI#", 6)],
    "magic": flipped(0.0),
    "trailer": flipped(1.0),
    "middle": flipped(0.5),
    "zeros": lambda data: data[:40] + bytes(40) + data[80:],
}


EXCHANGED = ("an older log file", "another file group's")
WHATEVER_THE_FORM = ("the first block alone", "middle", "zeros")
CASES = [
    *((kind, damage) for kind in ("parquet", "no metadata table") for damage in (*DAMAGES, *EXCHANGED)),
    *((kind, damage) for kind in ("avro", "hfile") for damage in WHATEVER_THE_FORM),
]


@pytest.fixture(scope="module")
def pristine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose slice in p0 has two log files; the second has rows and deletes."""
    folder = tmp_path_factory.mktemp("log_damage") / "t"
    options = {**SIMPLE_OPTIONS, "hoodie.compact.inline": "false", **KINDS[request.param]}
    schema, kind = simple_rows([], 0).schema, "MERGE_ON_READ"
    table = hudimeta.Table.create(folder, schema, key="id", partition_by=["part"], ordering=["ts"], type=kind, options=options)
    table.insert(simple_rows(range(20), 1))
    table.upsert(simple_rows(range(8), 2))
    gone = pa.array([True] * 4 + [False] * 4)
    table.upsert(simple_rows(range(8, 16), 3).append_column("_hoodie_is_deleted", gone))
    return folder


def logs_of(folder: Path, partition: str = "p0") -> list[Path]:
    """The log files of a partition, oldest first."""
    return sorted(folder.glob(f"{partition}/.*.log.*"), key=lambda p: p.name.split("_")[1])


def copy_of(pristine: Path, to: Path) -> Path:
    shutil.copytree(pristine, to)
    return to


@pytest.mark.rotation(5)
@pytest.mark.parametrize(("pristine", "damage"), CASES, indirect=["pristine"])
def test_damage_of_a_completed_log_file_stops_reads_writes_and_services(pristine: Path, damage: str, tmp_path: Path) -> None:
    folder = copy_of(pristine, tmp_path / "t")
    older, log = logs_of(folder)
    whole = log.read_bytes()
    assert verify_log_file(whole, str(log)) == []
    others = {"an older log file": older, "another file group's": logs_of(folder, "p1")[1]}
    log.write_bytes(others[damage].read_bytes() if damage in others else DAMAGES[damage](whole))
    files = sorted(folder.glob("p0/*.parquet"))

    table = hudimeta.Table(folder, {"hudimeta.log.keys": "false"})  # else a write need not read the logs
    for attempt in (table.scan().to_table, lambda: table.upsert(simple_rows(range(20), 9)), table.compact):
        with pytest.raises(CorruptFileError) as caught:
            attempt()
        assert caught.value.path == f"p0/{log.name}"
    assert sorted(folder.glob("p0/*.parquet")) == files, "nothing was made of it"

    log.write_bytes(whole)
    hudimeta.Table(folder).compact()
    assert hudimeta.Table(folder).scan(where="ts > 1").count() == 12


@pytest.mark.parametrize("pristine", ["avro", "no metadata table"], indirect=True)
def test_what_was_added_behind_the_end_is_passed_over_and_reported(pristine: Path, tmp_path: Path) -> None:
    folder = copy_of(pristine, tmp_path / "t")
    log = logs_of(folder)[1]
    log.write_bytes(log.read_bytes() + log.read_bytes()[:100])
    scan = hudimeta.Table(folder).scan()
    assert scan.to_table().num_rows == 16
    (span,) = scan.report.corrupt
    assert span.startswith(f"p0/{log.name}")
    assert "100 bytes: after" in span


@pytest.mark.parametrize("pristine", ["no metadata table"], indirect=True)
@pytest.mark.parametrize("length", [0, 3, -9])
def test_what_another_attempt_left_is_passed_over_and_reported(pristine: Path, length: int, tmp_path: Path) -> None:
    """Where storage is listed, its file is found too; the commit names that of the attempt which came to its end."""
    folder = copy_of(pristine, tmp_path / "t")
    log = logs_of(folder)[1]
    left = log.with_name(log.name.rpartition("_")[0] + "_9-9-9")
    left.write_bytes(log.read_bytes()[:length])
    scan = hudimeta.Table(folder).scan()
    assert scan.to_table().num_rows == 16
    assert [span.partition(" ")[0] for span in scan.report.corrupt] == [f"p0/{left.name}"]
    assert hudimeta.Table(folder).compact()
    assert hudimeta.Table(folder).scan(where="ts > 1").count() == 12


# By Apache Hudi


@pytest.mark.parametrize("name", ["deletes_mor", "multi_block_avro"])
def test_what_another_attempt_of_apache_hudi_left_is_passed_over(rich_table: Unpack, name: str) -> None:
    folder, listed = rich_table(name, fresh=True), {"hoodie.metadata.enable": "false"}
    expected = hudimeta.Table(folder, listed).scan().to_table()
    for path in [path for path in hudimeta.Table(folder).scan().plan().files if ".log." in path]:
        left = folder / (path.rpartition("_")[0] + "_99-9-9")
        left.write_bytes((folder / path).read_bytes()[:-3])
        scan = hudimeta.Table(folder, listed).scan()
        assert scan.to_table().equals(expected)
        assert [span.partition(" ")[0] for span in scan.report.corrupt] == [path.rpartition("_")[0] + "_99-9-9"]
        left.unlink()


def test_what_a_commit_wrote_is_told_from_what_a_dead_write_left(rich_table: Unpack) -> None:
    """A table without metadata table: only the commit knows where the write ended."""
    folder = rich_table("corrupt_tail_log", fresh=True)
    log = logs_of(folder, ".")[0]
    data = bytearray(log.read_bytes())
    assert hudimeta.Table(folder).scan().to_table().num_rows == 14
    data[3] ^= 1  # the magic of the block that the write completed
    log.chmod(0o644)
    log.write_bytes(data)
    with pytest.raises(CorruptFileError, match="a block of a completed write"):
        hudimeta.Table(folder).scan().to_table()


@pytest.mark.parametrize("name", ["v6_mor_written_by_12", "upgraded_6_8_9_mor", "deletes_mor", "multi_block_avro"])
def test_a_torn_block_of_apache_hudis_is_refused(rich_table: Unpack, name: str) -> None:
    folder = rich_table(name, fresh=True)
    used = {path for path in hudimeta.Table(folder).scan().plan().files if ".log." in path}
    for path in sorted(used):
        log = folder / path
        whole = log.read_bytes()
        log.chmod(0o644)
        for data in (whole[:-1], b"", b"#HUDJ#" + whole[6:], whole[:8] + b"\xff" + whole[9:]):
            log.write_bytes(data)
            with pytest.raises(CorruptFileError):
                hudimeta.Table(folder).scan().to_table()
        log.write_bytes(whole)


def test_a_dead_append_to_a_version_6_log_is_passed_over(rich_table: Unpack) -> None:
    folder = rich_table("v6_mor_written_by_12", fresh=True)
    expected = hudimeta.Table(folder).scan().to_table()
    path = next(path for path in hudimeta.Table(folder).scan().plan().files if ".log." in path)
    log = folder / path
    log.chmod(0o644)
    log.write_bytes(log.read_bytes() + log.read_bytes()[:200])
    scan = hudimeta.Table(folder).scan()
    assert scan.to_table().equals(expected)
    assert len(scan.report.corrupt) == 1


@pytest.mark.parametrize("name", ["dms_payload_mor8", "deletes_mor"])
def test_log_files_of_apache_hudis_that_are_exchanged_are_refused(rich_table: Unpack, name: str) -> None:
    """Of one instant, so that nothing but their rows tells which file group they are of."""
    folder = rich_table(name, fresh=True)
    used = sorted(path for path in hudimeta.Table(folder).scan().plan().files if ".log." in path)
    one, other = next(
        (a, b) for a in used for b in used if a.split("_")[1] == b.split("_")[1] and a.split("_")[0] != b.split("_")[0]
    )
    contents = [(folder / path).read_bytes() for path in (one, other)]
    for path, content in zip((one, other), reversed(contents), strict=True):
        (folder / path).chmod(0o644)
        (folder / path).write_bytes(content)
    with pytest.raises(CorruptFileError):
        hudimeta.Table(folder, {"hoodie.metadata.enable": "false"}).scan().to_table()
