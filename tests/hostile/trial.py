"""One hostile folder's trial: everything is done with it, while what it must not do is looked out for."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta
from hudimeta.errors import HudiError

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
PARTS = ("aaaaaaaaa", "bbbbbbbbb")
"""As long as `../victim`."""
MOST_SECONDS = 5.0
MOST_BYTES = 64 << 20
STEPS: dict[str, Callable[[Any], object]] = {
    "scan": lambda t: t.scan().to_table(),
    "skip": lambda t: t.scan(where="v = 'b'").to_table(),
    "old": lambda t: t.scan(as_of="20300101000000000").to_table(),
    "listed": lambda t: hudimeta.Table(t.path, options={"hoodie.metadata.enable": "false"}).scan().to_table(),
    "report": lambda t: str(t.report()) + str(t.timeline) + repr(t),
    "validate": lambda t: str(t.metadata.validate()),
    "upsert": lambda t: t.upsert(rows([1, 7], "c", 3)),
    "recover": lambda t: t.recover(),
    "clean": lambda t: t.clean(),
    "compact": lambda t: t.compact(),
    "archive": lambda t: t.archive(),
    "rebuild": lambda t: t.metadata.rebuild(),
    "delete": lambda t: t.delete("id = 7"),
    "scan again": lambda t: t.scan().to_table(),
}

SERVICES: dict[str, Callable[[Any], object]] = {
    "log_compact": lambda t: t.log_compact(),
    "cluster": lambda t: t.cluster("v"),
    "savepoint": lambda t: t.savepoint(),
    "deduplicate": lambda t: t.repair.deduplicate(),
    "orphans": lambda t: t.repair.orphans(dry_run=False),
    "metafiles": lambda t: t.repair.metafiles(),
    "cleans": lambda t: t.repair.cleans(),
    "maintain": lambda t: t.maintain(),
    "restore": lambda t: t.restore(t.timeline.writes[-1].time),
    "upgrade": lambda t: t.upgrade(),
    "change_type": lambda t: t.change_type("COW"),
    "read last of all": lambda t: t.scan().to_table(),
}
"""What is done besides over folders whose plans, markers or savepoints are hostile."""


def rows(ids: list[int], v: str, ts: int) -> pa.Table:
    columns = {"id": ids, "part": [PARTS[i % 2] for i in ids], "v": [v] * len(ids), "ts": [ts] * len(ids)}
    return pa.table(columns, schema=SCHEMA)


class Watch:
    """Writes down the paths outside that are opened, listed, written or deleted, as Python's audit events tell."""

    def __init__(self) -> None:
        self.folders: tuple[str, ...] = ()
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folders and args and event.startswith(("open", "os.", "shutil.")) and isinstance(args[0], (str, bytes)):
            path = os.path.normpath(os.fsdecode(args[0]))
            if path.startswith(self.folders):
                self.seen.append(f"{event} {path}")

    @contextlib.contextmanager
    def over(self, folders: list[Path]) -> Iterator[None]:
        """Listen meanwhile."""
        self.folders, self.seen = tuple(str(path) for path in folders), []
        try:
            yield
        finally:
            self.folders = ()


def _peak_reset() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def is_right(step: str, result: object, done: set[str]) -> bool:
    """Whether rows are those that the steps before made; a step that failed may have been done or not."""
    if not isinstance(result, pa.Table):
        return True
    values = dict(zip(result["id"].to_pylist(), result["v"].to_pylist(), strict=True))
    before = {1: "b", 2: "b", 3: "a", 4: "a"}
    if step == "skip":
        return values == {1: "b", 2: "b"}
    if step not in ("scan again", "read last of all"):
        return values == before
    after = {**before, 1: "c"}
    if "delete" in done and "upsert" in done:
        return values == after
    return values in (before, after, {**after, 7: "c"})


def snapshot_of(folder: Path) -> dict[str, object]:
    """All that lies below a folder: names and content; of what a test moves there too."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes() if path.is_file() else "link" if path.is_symlink() else "folder"
    return found


def make_sound(path: Path) -> None:
    """A merge-on-read table with indexes, base files and logs."""
    layout = {"key": "id", "partition_by": "part", "ordering": "ts", "type": "MERGE_ON_READ"}
    table = hudimeta.Table.create(path, SCHEMA, indexes=["column_stats", "record_index"], **layout)
    table.insert(rows([1, 2, 3, 4], "a", 1))
    table.upsert(rows([1, 2], "b", 2))


def try_everything(
    sound: Path, at: Path, watch: Watch, spoil: Callable[[Path], object], *, rows_are_right: bool, serviced: bool = False
) -> None:
    """Spoil a copy of a table and do everything with it.

    Args:
        sound: The table.
        at: An empty folder, where the copy and the canaries beside it go.
        watch: Hears what is opened.
        spoil: Changes the copy.
        rows_are_right: Rows that come must be the right ones.
        serviced: The services of `SERVICES` are run as well.
    """
    table, victim, other = at / "table", at / "victim", at / "x"
    shutil.copytree(sound, table)
    for folder in (victim, other):
        folder.mkdir()
        (folder / "canary").write_bytes(b"canary")
        (folder / ".hoodie_partition_metadata").write_bytes(b"commitTime=0\npartitionDepth=1\n")
    spoil(table)
    before = {folder: snapshot_of(folder) for folder in (victim, other)}
    size = sum(p.lstat().st_size for p in table.rglob("*"))
    done: set[str] = set()
    for step, act in {**STEPS, **(SERVICES if serviced else {})}.items():
        base, start = _peak_reset(), time.perf_counter()
        with watch.over([victim, other]), contextlib.suppress(HudiError):
            result = act(hudimeta.Table(table))
            done.add(step)
            assert not rows_are_right or is_right(step, result, done), f"{step}: {result}"
        assert watch.seen == [], step
        assert time.perf_counter() - start < MOST_SECONDS, step
        assert _peak() - base < MOST_BYTES + 4 * size, step
        assert {folder: snapshot_of(folder) for folder in (victim, other)} == before, step
        assert sorted(p.name for p in at.iterdir()) == ["table", "victim", "x"], step
