"""What a table's properties say about merging."""

from __future__ import annotations

import pytest

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.slices.merge_rules import MergeRules, PartialUpdateMode
from hudimeta.types import MergeMode

MODEL = "org.apache.hudi.common.model."
COMMIT, EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
V8 = {"hoodie.table.precombine.field": "ts", "hoodie.record.merge.mode": "CUSTOM"}


def test_a_stated_mode_counts_before_any_payload_class() -> None:
    properties = {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "a, b"}
    payload = {"hoodie.compaction.payload.class": MODEL + "OverwriteWithLatestAvroPayload"}
    assert MergeRules.from_properties(properties | payload) == MergeRules(EVENT, ("a", "b"))


@pytest.mark.parametrize(
    ("payload", "rules"),
    [
        ("OverwriteWithLatestAvroPayload", MergeRules(COMMIT, ("ts",))),
        ("DefaultHoodieRecordPayload", MergeRules(EVENT, ("ts",))),
        ("EventTimeAvroPayload", MergeRules(EVENT, ("ts",))),
        ("AWSDmsAvroPayload", MergeRules(COMMIT, ("ts",), "Op", "D", deletes_always=True)),
        (
            "OverwriteNonDefaultsWithLatestAvroPayload",
            MergeRules(COMMIT, ("ts",), partial_mode=PartialUpdateMode.IGNORE_DEFAULTS, deletes_always=True),
        ),
        (
            "PartialUpdateAvroPayload",
            MergeRules(
                EVENT, ("ts",), partial_mode=PartialUpdateMode.IGNORE_DEFAULTS, last_keeps_meta=True, deletes_always=True
            ),
        ),
    ],
)
def test_payload_classes_are_translated(payload: str, rules: MergeRules) -> None:
    assert MergeRules.from_properties(V8 | {"hoodie.compaction.payload.class": MODEL + payload}) == rules
    older = {"hoodie.table.precombine.field": "ts", "hoodie.compaction.payload.class": MODEL + payload}
    assert MergeRules.from_properties(older) == rules


def test_without_a_word_an_ordering_field_decides() -> None:
    assert MergeRules.from_properties({"hoodie.table.precombine.field": "ts"}) == MergeRules(EVENT, ("ts",))
    assert MergeRules.from_properties({}) == MergeRules(COMMIT)
    assert not MergeRules.from_properties({"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}).by_event_time


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"hoodie.compaction.payload.class": "com.example.Mine"}, "com.example.Mine"),
        ({"hoodie.compaction.payload.class": MODEL + "debezium.PostgresDebeziumAvroPayload"}, "PostgresDebezium"),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "a custom record merger"),
    ],
)
def test_what_is_not_done_is_refused_by_name(properties: dict[str, str], named: str) -> None:
    with pytest.raises(UnsupportedFeature, match=named):
        MergeRules.from_properties(properties)


def test_delete_markers_come_from_the_table_or_the_options() -> None:
    prefix = "hoodie.record.merge.property."
    options = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    expected = MergeRules(COMMIT, (), "op", "D")
    assert MergeRules.from_properties({}, options) == expected
    assert MergeRules.from_properties({prefix + key: value for key, value in options.items()}) == expected
    with pytest.raises(ConfigError, match="neither"):
        MergeRules.from_properties({}, {"hoodie.payload.delete.field": "op"})


def test_the_columns_that_merging_needs_are_named() -> None:
    rules = MergeRules(EVENT, ("meta.at", "ts"), "op", "D")
    assert rules.columns == ("_hoodie_record_key", "meta", "ts", "op", "_hoodie_is_deleted", "_hoodie_operation")


def test_a_mode_that_does_not_exist_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="EVENT_TIME_ORDERING"):
        MergeRules.from_properties({"hoodie.record.merge.mode": "EVENT"})
