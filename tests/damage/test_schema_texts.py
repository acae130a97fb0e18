"""A schema that is none is damage of the file that holds it, whoever wrote the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import HudiWarning, Table
from hudimeta.errors import CorruptFileError, HudiError, UnsupportedFeature
from tests.conftest import Unpack


def changed(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert old in content
    assert len(old) == len(new)
    file.write_bytes(content.replace(old, new, 1))


def test_the_properties_are_named_that_hold_it(tmp_path: Path) -> None:
    Table.create(tmp_path, pa.schema([("id", pa.string())]), key="id")
    file = tmp_path / ".hoodie" / "hoodie.properties"
    (tmp_path / ".hoodie" / "hoodie.properties.backup").unlink(missing_ok=True)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "hudimeta.seal" not in line))  # as other software writes it
    changed(file, b'"fields"', b'"fields*')
    with pytest.raises(CorruptFileError) as told:
        Table(tmp_path).scan().to_table()
    assert told.value.path == ".hoodie/hoodie.properties"


def test_the_commit_is_named_that_holds_it(rich_table: Unpack) -> None:
    path = rich_table("deletes_cow", fresh=True)
    newest = max((path / ".hoodie" / "timeline").glob("*.commit"))
    changed(newest, b'"fields"', b'"fields*')
    for read in (lambda: Table(path).scan().to_table(), lambda: Table(path).scan(as_of=newest.name[:17]).to_table()):
        with pytest.raises(CorruptFileError) as told:
            read()
        assert told.value.path == f".hoodie/timeline/{newest.name}"


def test_the_commit_is_named_that_holds_a_version_of_altered_columns(rich_table: Unpack) -> None:
    path = rich_table("alter_rename_mor", fresh=True)
    timeline = Table(path).timeline
    commit, _ = timeline.latest_schema()
    changed(path / timeline.path_of(commit), b'"version_id"', b'"version*id"')
    with pytest.raises(CorruptFileError) as told:
        Table(path).scan().to_table()
    assert told.value.path == timeline.path_of(commit)


NO_LIST = (b'"fields":[', b'"fields":{', CorruptFileError)
NO_TYPE = (b'"type":["null","int"]', b'"tzpe":["null","int"]', CorruptFileError)
ODD_UNION = (b'"type":["null","int"]', b'"type":["nulm","int"]', UnsupportedFeature)


@pytest.mark.parametrize("name", ["hfile_blocks", "multi_block_avro"])
@pytest.mark.parametrize(("old", "new", "kind"), [NO_LIST, NO_TYPE, ODD_UNION])
def test_the_log_file_is_named_that_holds_it(
    name: str, old: bytes, new: bytes, kind: type[HudiError], rich_table: Unpack
) -> None:
    path = rich_table(name, fresh=True)
    log = max(path.glob(".*.log.*"))
    changed(log, old, new)
    with pytest.raises(kind, match=log.name.replace(".", r"\.")):
        Table(path).scan().to_table()


def test_reads_past_damage_leave_such_a_log_out(rich_table: Unpack) -> None:
    path = rich_table("multi_block_avro", fresh=True)
    changed(max(path.glob(".*.log.*")), *NO_LIST[:2])
    with pytest.warns(HudiWarning, match="Avro record schema"):
        assert Table(path, {"hudimeta.read.corrupt": "skip"}).scan().count() < 45
