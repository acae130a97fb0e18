"""Hudi's record schemas: the same as the ones that its files embed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudimeta.formats.avro import schemas
from hudimeta.formats.avro.container import decode_container_schema

SCHEMA_PLACES = ("type", "items", "values", "fields")
SEEN_IN_FILES = [
    schemas.CLEANER_PLAN,
    schemas.CLEAN_METADATA,
    schemas.COMMIT_METADATA,
    schemas.COMPACTION_PLAN,
    schemas.INDEX_COMMIT_METADATA,
    schemas.INDEX_PLAN,
    schemas.REPLACE_COMMIT_METADATA,
    schemas.REQUESTED_REPLACE_METADATA,
    schemas.RESTORE_METADATA,
    schemas.RESTORE_PLAN,
    schemas.ROLLBACK_METADATA,
    schemas.ROLLBACK_PLAN,
    schemas.SAVEPOINT_METADATA,
]


def without_remarks(schema: Any) -> Any:
    """The schema without documentation and without Java's note of which string class it likes."""
    if isinstance(schema, list):
        return [without_remarks(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if k not in ("doc", "avro.java.string")}
    plain = {k: without_remarks(v) if k in SCHEMA_PLACES else v for k, v in kept.items()}
    return plain["type"] if set(plain) == {"type"} and isinstance(plain["type"], str) else plain


@pytest.fixture(scope="module")
def embedded(recorded_containers: dict[str, bytes]) -> dict[str, list[Any]]:
    """By record name the distinct schemas that files embed."""
    found: dict[str, dict[str, Any]] = {}
    for name, data in recorded_containers.items():
        plain = without_remarks(decode_container_schema(data, name))
        found.setdefault(plain["name"], {})[json.dumps(plain)] = plain
    return {name: list(variants.values()) for name, variants in found.items()}


@pytest.mark.parametrize("schema", SEEN_IN_FILES, ids=lambda schema: schema["name"])
def test_schema_is_the_embedded_one(embedded: dict[str, list[Any]], schema: dict[str, Any]) -> None:
    assert schema in embedded[schema["name"]]


def test_no_recorded_record_is_unknown(embedded: dict[str, list[Any]]) -> None:
    assert embedded.keys() == {schema["name"] for schema in SEEN_IN_FILES}


def test_only_clustering_plans_of_version_6_differ(embedded: dict[str, list[Any]]) -> None:
    varied = {name: variants for name, variants in embedded.items() if len(variants) > 1}
    assert list(varied) == ["HoodieRequestedReplaceMetadata"]
    plans = [variant["fields"][1]["type"][1]["fields"] for variant in varied["HoodieRequestedReplaceMetadata"]]
    short, long = sorted(plans, key=len)
    assert long[: len(short)] == short
    assert [field["name"] for field in long[len(short) :]] == ["missingSchedulePartitions"]


def test_delete_list_of_1_1_appends_one_branch() -> None:
    def branches(schema: dict[str, Any]) -> list[str]:
        union = schema["fields"][0]["type"]["items"]["fields"][2]["type"]
        return [b if b == "null" else b["name"] for b in union]

    old, new = branches(schemas.DELETE_RECORD_LIST_1_0), branches(schemas.DELETE_RECORD_LIST)
    assert new == [*old, "ArrayWrapper"]
    assert [old.index(n) for n in ("null", "IntWrapper", "LongWrapper", "StringWrapper", "DecimalWrapper")] == [0, 2, 3, 7, 9]


def test_cdc_schemas_are_those_of_recorded_blocks() -> None:
    row = {
        "type": "record",
        "name": "trips_record",
        "namespace": "hoodie.trips",
        "fields": [{"name": "id", "type": ["null", "string"], "default": None}],
    }
    image = {"type": "record", "name": "trips_record", "fields": row["fields"]}
    op = {"name": "op", "type": ["null", "string"], "default": None}
    before = {"name": "before", "type": ["null", image], "default": None}
    assert schemas.cdc_with_before(row) == {
        "type": "record",
        "name": "CDC",
        "namespace": "hoodie.trips",
        "fields": [op, {"name": "record_key", "type": ["null", "string"], "default": None}, before],
    }
    assert schemas.cdc_with_before_and_after(row)["fields"] == [
        op,
        {"name": "ts_ms", "type": ["null", "string"], "default": None},
        before,
        {"name": "after", "type": ["null", "trips_record"], "default": None},
    ]
    assert row["namespace"] == "hoodie.trips"  # the caller's schema is left alone
