"""Timelines of real tables: the instants that Apache Hudi saw are those that we see."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from hudimeta.storage import CountingStorage, RequestLog, open_storage
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.clock import timeline_zone
from hudimeta.types import Action, Instant, State
from tests.conftest import Unpack
from tests.recorded_tables import CONFORMANCE, RICH


def no_waiting(seconds: float) -> None:
    pytest.fail(f"nobody writes these tables, yet the timeline was listed again after {seconds} s")


def load(path: Path, layout: int) -> Timeline:
    folder = ".hoodie" if layout == 1 else ".hoodie/timeline"
    return Timeline.load(open_storage(path), folder, layout, zone=timeline_zone("UTC"), sleep=no_waiting)


def facts(instants: Iterable[Instant], layout: int) -> set[tuple[str, str | None, str]]:
    """Savepoints are left out: the recorded lists have one action per requested time."""
    return {
        (i.time, i.completion if layout == 2 else None, i.action.value) for i in instants if i.action is not Action.SAVEPOINT
    }


@pytest.mark.parametrize("name", RICH.names())
def test_rich_set(rich_table: Unpack, name: str) -> None:
    answer = RICH.answer(name)
    layout = answer["timeline_layout"]
    timeline = load(rich_table(name), layout)
    recorded = {
        where: {
            (i["requested_time"], i["completion_time"], i["action"])
            for i in answer["instants"]
            if (i["where"] == "active") == (where == "active")
        }
        for where in ("active", "archived")
    }
    assert facts(timeline.completed, layout) == recorded["active"]
    assert facts(timeline.history.instants(), layout) >= recorded["archived"]
    assert facts(timeline.history.instants(), layout) <= recorded["active"] | recorded["archived"]
    open_states = {time: {tuple(state.split(".")) for state in states} for time, states in answer["open_instants"].items()}
    found = {i.time: {(i.action.value, state.name.lower()) for state in State if state <= i.state} for i in timeline.pending}
    assert found == open_states
    assert [i.time for i in timeline.instants] == sorted(i.time for i in timeline.instants)


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_conformance_set(conformance_table: Unpack, name: str) -> None:
    answer = CONFORMANCE.answer(name)
    layout = answer["timeline_layout"]
    timeline = load(conformance_table(name), layout)
    expected = {(i["requested_time"], i["completion_time"], i["action"]) for i in answer["instants"]}
    assert facts(timeline.completed, layout) == expected
    assert timeline.pending == ()
    for recorded in answer["instants"]:
        instant = timeline.get(recorded["requested_time"], Action(recorded["action"]))
        assert instant is not None
        assert (instant.pending_action or instant.action).value == recorded["requested_action"]
        if instant.action.writes_data:
            assert timeline.metadata(instant).get("operationType") == recorded["operation"]
    assert [i.time for i in timeline.writes] == answer.get("write_instants", [i.time for i in timeline.writes])


@pytest.mark.parametrize("name", ["archived_lsm", "mdt_all_v9", "v6_mor_written_by_12"])
def test_one_request_opens_a_timeline(rich_table: Unpack, name: str) -> None:
    log = RequestLog()
    layout = RICH.answer(name)["timeline_layout"]
    storage = CountingStorage(open_storage(rich_table(name)), log)
    timeline = Timeline.load(storage, ".hoodie" if layout == 1 else ".hoodie/timeline", layout)
    assert timeline.first_active_write is not None
    assert timeline.is_committed("0")
    assert timeline.last_time >= timeline.writes[-1].time
    assert len(log) == 1


def test_metadata_tables_have_timelines_too(rich_table: Unpack) -> None:
    timeline = Timeline.load(open_storage(rich_table("mdt_all_v9")).sub(".hoodie/metadata"))
    assert timeline.instants[0].time == "0" * 17
    assert timeline.instants[0].action is Action.DELTA_COMMIT
    assert timeline.metadata(timeline.instants[0])["operationType"].startswith("BULK_INSERT")


def test_savepoint_and_its_commit_are_two_instants(rich_table: Unpack) -> None:
    timeline = load(rich_table("savepoint_restore"), 2)
    saved = "20261121040005314"
    write, savepoint = timeline.get(saved), timeline.get(saved, Action.SAVEPOINT)
    assert write is not None
    assert savepoint is not None
    assert (write.action, write.completion) == (Action.DELTA_COMMIT, "20261121040007324")
    assert savepoint.completion == "20261121040007732"
    assert timeline.savepoints == {saved}
    assert "partitionMetadata" in timeline.metadata(savepoint)
    assert timeline.rolled_back, "the restore names what it took back"
    assert not timeline.rolled_back & {i.time for i in timeline.writes}


def test_archived_writes_keep_their_completion_times(rich_table: Unpack) -> None:
    timeline = load(rich_table("archived_lsm"), 2)
    archived = {i["requested_time"]: i["completion_time"] for i in RICH.answer("archived_lsm")["instants"]}
    writes = [i["requested_time"] for i in RICH.answer("archived_lsm")["instants"] if i["action"] == "commit"]
    assert timeline.completion_of(writes[0]) == archived[writes[0]] != writes[0]
    asked = [*writes, "20261121035611145", "20991121035611145"]
    many = [timeline.completion_of(time) for time in asked]
    assert many == [archived[time] for time in writes] + ["20261121035611145", None]
    assert [timeline.is_committed(time) for time in asked] == [*[True] * len(writes), True, False]
    assert timeline.archived_completions([writes[0], "1"]) == {writes[0]: archived[writes[0]]}


def test_history_gives_metadata_and_plans(rich_table: Unpack) -> None:
    history = load(rich_table("archived_lsm"), 2).history
    rows = history.load()
    assert rows.column_names == ["instant_time", "completion_time", "action", "metadata", "plan"]
    times = rows["instant_time"].to_pylist()
    assert times == sorted(set(times)), "the merged leftovers in the folder are not read"
    for row in rows.to_pylist():
        assert row["metadata"].startswith(b"Obj\x01")
        assert (row["plan"] is not None) == (row["action"] == "clean")
    assert history.manifest_number() == 8
    assert len(history.manifest()) == 2


def test_replaced_file_groups_grow_with_time(rich_table: Unpack) -> None:
    """What clustering replaced is gone from Hudi's latest slices, and was there before."""
    timeline = load(rich_table("clustered_sorted"), 2)
    replaced = timeline.replaced_file_groups()
    clusterings = [i for i in timeline.writes if i.pending_action is Action.CLUSTERING]
    assert clusterings
    assert set(replaced["instant"].to_pylist()) <= {i.time for i in timeline.writes if i.action is Action.REPLACE_COMMIT}
    pairs = set(zip(replaced["partition_path"].to_pylist(), replaced["file_id"].to_pylist(), strict=True))
    latest = {(s["partition"], s["file_id"]) for s in RICH.answer("clustered_sorted")["file_slices"]["latest"]}
    assert pairs
    assert not pairs & latest
    assert timeline.replaced_file_groups("20000101000000000").num_rows == 0


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_the_newest_schema_is_that_of_the_table(conformance_table: Unpack, name: str) -> None:
    import json

    answer = CONFORMANCE.answer(name)
    timeline = load(conformance_table(name), answer["timeline_layout"])
    found = timeline.latest_schema()
    if not timeline.writes:
        assert found is None
        return
    assert found is not None
    assert json.loads(found[1]) == answer["avro_schema"]


def test_a_timeline_prints_as_a_table(rich_table: Unpack) -> None:
    text = repr(load(rich_table("pending_compaction"), 2)).splitlines()
    assert text[0].startswith("Timeline .hoodie/timeline (layout 2):")
    assert text[0].endswith("1 pending")
    assert text[1].split() == ["requested", "completed", "action", "state", "bytes"]
    assert any(line.split()[1:4] == ["-", "compaction", "requested"] for line in text)
