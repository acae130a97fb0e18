"""Folders of timestamps that writers of Apache Hudi name by texts: what 1.2.0 was seen to write, in Tokyo."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudimeta.errors import SchemaMismatch
from hudimeta.keys import KeyGenerator
from hudimeta.keys.moment_text import MomentForm

MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 500_000, dt.timezone.utc)
BEFORE_EPOCH = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc)
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


def paths(fields: str, form: MomentForm, zone: str, columns: dict[str, pa.Array], **more: str) -> list[str]:
    properties = {
        "hoodie.table.version": "9",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": fields,
        "hoodie.table.keygenerator.type": "COMPLEX" if "," in fields else "SIMPLE",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    known = KeyGenerator.from_properties({**properties, **more}).with_forms({"at": form})
    told = {"_hoodie_partition_path": pa.array([f"at={FIRST[form, zone]}" + "/s=x" * ("," in fields)])}
    first = pa.table({**told, "at": moments(MOMENT), "s": ["x"]})
    return known.learned_from(first).partition_paths(pa.table(columns)).to_pylist()


FIRST = {
    (MomentForm.CLOCK, "Asia/Tokyo"): "2026-01-02 12%3A04%3A05",
    (MomentForm.STAMP, "Asia/Tokyo"): "2026-01-02 12:04:05.5",
    (MomentForm.CLOCK, "UTC"): "2026-01-02 03%3A04%3A05",
}


def moments(*values: dt.datetime | None) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


@pytest.fixture(autouse=True)
def tokyo(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine in that zone, to those that ask for its name."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")


def test_seconds_are_cut_as_java_cuts_them() -> None:
    """Towards zero to milliseconds, then down."""
    found = paths("at", MomentForm.CLOCK, "Asia/Tokyo", {"at": moments(MOMENT, BEFORE_EPOCH, None)})
    assert found == ["at=2026-01-02 12%3A04%3A05", "at=1970-01-01 09%3A00%3A00", "at=__HIVE_DEFAULT_PARTITION__"]


def test_milliseconds_are_cut_as_java_cuts_them() -> None:
    found = paths("at", MomentForm.STAMP, "Asia/Tokyo", {"at": moments(MOMENT, BEFORE_EPOCH, None)})
    assert found == ["at=2026-01-02 12:04:05.5", "at=1970-01-01 08:59:59.999", "at=__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize(("consistent", "uncut"), [("false", "1767323045500000"), ("true", "2026-01-02 12:04:05.5")])
def test_a_slash_in_another_column_leaves_what_sql_begins_with(consistent: str, uncut: str) -> None:
    columns = {"at": moments(MOMENT, MOMENT), "s": pa.array(["x", "x/y"])}
    found = paths("at,s", MomentForm.CLOCK, "Asia/Tokyo", columns, **{CONSISTENT: consistent})
    assert found == ["at=2026-01-02 12%3A04%3A05/s=x", f"at={uncut}/s=x/y"]


def test_years_without_a_text_are_refused() -> None:
    far = pa.array([-(10**17)], pa.int64()).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(SchemaMismatch, match=r"at.*years 1 to 9999"):
        paths("at", MomentForm.CLOCK, "UTC", {"at": far})
