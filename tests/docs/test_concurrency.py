"""The example of docs/concurrency.md runs, and the options and errors that the page names exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hudimeta
from hudimeta import errors
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.config import OPTIONS
from hudimeta.config import options as keys
from hudimeta.storage import LocalStorage

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "concurrency.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_run(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(compile(example.replace("/tmp/", f"{tmp_path}/"), "docs/concurrency.md", "exec"), names)
    assert len(EXAMPLES) == 3
    for name in ("trips", "rides"):
        assert hudimeta.Table(tmp_path / "hudimeta/concurrency" / name).scan().to_table().num_rows == 3
    buckets = hudimeta.Table(tmp_path / "hudimeta/concurrency/rides").file_slices()["file_id"].to_pylist()
    assert {bucket[8:] for bucket in buckets} == {"-0000-0000-0000-000000000000-0"}


def test_what_the_page_names_exists(tmp_path: Path) -> None:
    for option in re.findall(r"`(hoodie\.[a-z_.]+)`", PAGE):
        assert OPTIONS.find(option) is not None, option
    for error in re.findall(r"^\| `(Lock\w+|CommitConflict)` \|", PAGE, re.MULTILINE):
        assert issubclass(getattr(errors, error), errors.HudiError)


def test_strategies_of_the_page_are_known() -> None:
    conflicts = set(re.findall(r"`(\w+ConflictResolutionStrategy)`", PAGE))
    early = set(re.findall(r"`(\w+DetectionStrategy)`", PAGE))
    assert (len(conflicts), len(early)) == (3, 3)
    for name in conflicts:
        given = {"hoodie.write.lock.conflict.resolution.strategy": f"org.apache.hudi.client.transaction.{name}"}
        assert OPTIONS.read(given).get(keys.CONFLICT_STRATEGY) == name
    for name in early:
        given = {"hoodie.write.concurrency.early.conflict.detection.strategy": f"org.apache.hudi.table.marker.{name}"}
        assert OPTIONS.read(given).get(keys.EARLY_STRATEGY) == name


def test_providers_of_the_page_are_chosen_by_name(tmp_path: Path) -> None:
    named = set(re.findall(r"^\| (?:not set, or )?`(\w+LockProvider)`", PAGE, re.MULTILINE))
    assert len(named) == 7
    zookeeper = {"hoodie.write.lock.zookeeper.url": "localhost:2181", "hoodie.write.lock.zookeeper.base_path": "/hudi"}
    servers = {**zookeeper, "hoodie.write.lock.dynamodb.table": "locks"}
    for provider in named:
        options = OPTIONS.read({"hoodie.write.lock.provider": provider, **servers})
        assert table_lock(LocalStorage(str(tmp_path)), options, "trips") is not None
