"""Rules that say how many buckets a partition has: as Apache Hudi reads them, and which of several files count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudimeta.errors import ConfigError, CorruptFileError, UnsupportedFeature
from hudimeta.indexes.bucket.partition_rules import (
    FIRST_INSTANT,
    PartitionRules,
    decode_rules,
    encode_rules,
    forget_rules,
    load_rules,
    put_rules,
)
from hudimeta.storage import LocalStorage
from hudimeta.timeline import Timeline

RULES = PartitionRules(r"\d{4}-(06-(01|17|18)|11-11),256;^north,2;;", 10)
HUDIS = {"expressions": "a,3", "defaultBucketNumber": 4, "rule": "regex", "version": 1, "instant": "20260102030405678"}


@pytest.mark.parametrize(
    ("path", "count"),
    [("day=2026-06-17", 256), ("2025-11-11/x", 256), ("2026-06-02", 10), ("north/7", 2), ("a/north", 10), ("", 10)],
)
def test_the_first_expression_that_is_found_in_the_path_counts(path: str, count: int) -> None:
    assert RULES.count_of(path) == count


@pytest.mark.parametrize("text", ["a", "a,", "a,0", "a,-1", "a,x", "a{1,2},3", "a,3;;b,4", "a,3; ", ",", "a,1000000000", "a,٣"])
def test_rules_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.bucket\.index\.partition\.expressions"):
        PartitionRules(text, 1).check()


@pytest.mark.parametrize("text", ["(,3", "(?=a),3", r"(a)\1,3"])
def test_expressions_that_cannot_be_searched_for_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="regular expression"):
        PartitionRules(text, 1).check()


def test_files_of_apache_hudi_are_read() -> None:
    assert decode_rules(json.dumps(HUDIS).encode()) == PartitionRules("a,3", 4, "20260102030405678")


@pytest.mark.parametrize(
    "changes",
    [{"expressions": None}, {"expressions": "a"}, {"defaultBucketNumber": 0}, {"defaultBucketNumber": "x"}, {"rule": None}],
)
def test_damaged_rules_are_named(changes: dict[str, object]) -> None:
    told = {key: value for key, value in (HUDIS | changes).items() if value is not None}
    with pytest.raises(CorruptFileError, match="the/path"):
        decode_rules(json.dumps(told).encode(), "the/path")


@pytest.mark.parametrize("changes", [{"rule": "range"}, {"version": 2}])
def test_rules_of_another_kind_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UnsupportedFeature, match="buckets by rules"):
        decode_rules(json.dumps(HUDIS | changes).encode())


def test_each_changed_byte_of_rules_of_ours_is_noticed() -> None:
    data, path = encode_rules(RULES), f"{FIRST_INSTANT}.hashing_config"
    assert decode_rules(data, path) == RULES
    for at in range(data.index(b'"expressions"'), data.index(b',"hudimeta.seal"')):
        with pytest.raises(CorruptFileError):
            decode_rules(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], path)


def test_the_newest_file_of_a_completed_write_counts(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    for name in ("20260102000000000_20260102000000009.commit", "20260104000000000.commit.requested"):
        storage.put(f".hoodie/timeline/{name}", b"{}")
    timeline = Timeline.load(storage)
    assert load_rules(storage, timeline, {}) is None
    for number, time in enumerate([FIRST_INSTANT, "20260101000000000", "20260102000000000", "20260104000000000"]):
        put_rules(storage, PartitionRules(f"a,{number + 1}", 9, time))
    found = []
    for _ in range(4):
        rules = load_rules(storage, timeline, {})
        found.append(rules and (rules.instant, rules.count_of("a")))
        forget_rules(storage, [rules.instant] if rules else [])
    assert found == [("20260102000000000", 3), ("20260101000000000", 2), (FIRST_INSTANT, 1), None]


def test_lost_rules_are_noticed(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put(".hoodie/timeline/20260102000000000_20260102000000009.commit", b"{}")
    timeline, stated = Timeline.load(storage), {"hudimeta.bucket.rules": "20260102000000000"}
    put_rules(storage, PartitionRules("a,1", 9, "20260101000000000"))
    with pytest.raises(CorruptFileError, match=r"20260102000000000\.hashing_config.*no file"):
        load_rules(storage, timeline, stated)
    put_rules(storage, PartitionRules("a,2", 9, "20260102000000000"))
    assert load_rules(storage, timeline, stated) is not None
    for gone in ("20260101500000000", "20260109000000000"):
        forget_rules(storage, ["20260101000000000", "20260102000000000"])
        assert load_rules(storage, timeline, {"hudimeta.bucket.rules": gone}) is None, "it was taken back"
