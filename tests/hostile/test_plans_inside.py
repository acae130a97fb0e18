"""Plans and markers that name files of the table which are not theirs to delete: refused, and nothing is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.markers import Marker, MarkerKind, write_marker
from hudimeta.errors import CorruptFileError
from hudimeta.storage import open_storage
from hudimeta.timeline.clean_record import CleanPlan, encode_plan
from hudimeta.timeline.rollback_record import encode_rollback_plan
from hudimeta.types import Action

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
DEAD = "20260101000000000"
LATE = "29991231000000000"


def rollback(table: Path, folder: str, name: str) -> None:
    plan = encode_rollback_plan(str(table), DEAD, Action.COMMIT, {folder: [name]})
    (table / ".hoodie/timeline" / f"{LATE}.rollback.requested").write_bytes(plan)
    (table / ".hoodie/timeline" / f"{LATE}.rollback.inflight").write_bytes(b"")


def clean(table: Path, folder: str, name: str) -> None:
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, {folder: (name,)}, (), DEAD)
    (table / ".hoodie/timeline" / f"{DEAD}.clean.requested").write_bytes(encode_plan(str(table), plan))
    (table / ".hoodie/timeline" / f"{DEAD}.clean.inflight").write_bytes(b"")


def marker(table: Path, folder: str, name: str) -> None:
    (table / ".hoodie/timeline" / f"{DEAD}.commit.requested").write_bytes(b"")
    write_marker(open_storage(table), DEAD, Marker(f"{folder}/{name}".lstrip("/"), MarkerKind.MERGE))


@pytest.mark.filterwarnings("ignore:clean .* is left unfinished:hudimeta.config.HudiWarning")  # the plan that is refused
@pytest.mark.parametrize("what", ["a live base file", "the properties", "the file of partition metadata"])
@pytest.mark.parametrize("note", [rollback, clean, marker])
def test_nothing_but_files_of_a_dead_write_go(note: Callable[[Path, str, str], None], what: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudimeta.Table.create(path, SCHEMA, key="id").insert({"id": ["a", "b"], "v": [1, 2]})
    (base,) = path.glob("*.parquet")
    folder, name = {"a live base file": ("", base.name), "the properties": (".hoodie", "hoodie.properties")}.get(
        what, ("", ".hoodie_partition_metadata")
    )
    note(path, folder, name)
    for act in (lambda t: t.recover(), lambda t: t.insert({"id": ["c"], "v": [3]}), lambda t: t.clean()):
        with contextlib.suppress(CorruptFileError):
            act(hudimeta.Table(path))
        assert (path / folder / name).exists()
    assert {"a", "b"} <= set(hudimeta.Table(path).scan().to_table()["id"].to_pylist())
