"""Odd timelines of version 6 and stand-alone commit files, with what they hold."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hudimeta.errors import CorruptFileError, TableError
from hudimeta.storage import open_storage
from hudimeta.table import properties as table_properties
from hudimeta.timeline import Timeline
from hudimeta.timeline.content import decode_instant
from tests.recorded_tables import SHARED

FACTS = SHARED / "conformance" / "expected_fixtures"


def recorded(name: str) -> dict[str, Any]:
    """Facts by fixture; empty where the recorded files are absent."""
    path = FACTS / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else {}


@pytest.fixture(scope="module")
def fixtures(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("fixtures")
    with zipfile.ZipFile(shared / "conformance/fixtures/core_tests_data_open.zip") as packed:
        packed.extractall(to)
    return to


@pytest.mark.parametrize("name", sorted(recorded("timelines")))
def test_odd_timelines(fixtures: Path, name: str) -> None:
    facts = recorded("timelines")[name]
    timeline = Timeline.load(open_storage(fixtures / "timeline" / name), ".hoodie", 1, sleep=lambda seconds: None)
    found = [{"requested_time": i.time, "action": i.action.value, "state": i.state.name.lower()} for i in timeline]
    assert found == facts["instants"]
    readable = True
    for instant in timeline.writes:
        expected = facts["metadata"][instant.time]
        if "error" in expected:
            readable = False
            with pytest.raises(CorruptFileError, match="is damaged at byte 0") as caught:
                timeline.metadata(instant)
            assert caught.value.path == f".hoodie/{instant.file_name}"
            continue
        metadata = timeline.metadata(instant)
        assert metadata["operationType"] == expected["operation"]
        assert sorted(metadata["partitionToWriteStats"]) == expected["partitions"]
        assert bool(metadata["extraMetadata"].get("schema")) == expected["has_schema"]
    if readable:
        schema = timeline.latest_schema()
        known = facts["hudi_rs"]["latest_avro_schema"]
        assert (schema is None) == ("error" in known)
        assert schema is None or json.loads(schema[1]) == known
    counts = {"commit": facts["hudi_rs"]["n_commits"], "deltacommit": facts["hudi_rs"]["n_deltacommits"]}
    assert counts == {action: sum(i.action.value == action for i in timeline.completed) for action in counts}


@pytest.mark.parametrize("name", sorted(recorded("timelines")))
def test_none_of_them_has_properties_to_open_a_table_with(fixtures: Path, name: str) -> None:
    with pytest.raises(TableError):
        table_properties.load(open_storage(fixtures / "timeline" / name), lambda seconds: None)


@pytest.mark.parametrize("name", sorted(recorded("commit_metadata")))
def test_stand_alone_commit_metadata(fixtures: Path, name: str) -> None:
    found = decode_instant((fixtures / "commit_metadata" / name).read_bytes(), name, is_commit=True)
    expected = recorded("commit_metadata")[name]
    if isinstance(expected["extraMetadata"]["schema"], dict):
        extra = dict(found["extraMetadata"])
        found = {**found, "extraMetadata": {**extra, "schema": json.loads(extra["schema"])}}
    for key, fact in expected.items():
        if key != "partitionToWriteStats":
            assert found[key] == fact, key
    assert set(found["partitionToWriteStats"]) == set(expected["partitionToWriteStats"])
    for partition, stats in expected["partitionToWriteStats"].items():
        for stat, fact in zip(found["partitionToWriteStats"][partition], stats, strict=True):
            known = {key: value for key, value in fact.items() if key in stat}
            assert {key: stat[key] for key in known} == known
            assert set(fact) - set(stat) <= {"recordsStats"}, "of version 6 only"
