"""Time-based partition paths. Samples were printed by Joda-Time 2.12."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta import Table
from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.keys import KeyGenerator
from hudimeta.keys.joda import format_times, parse_times
from hudimeta.keys.timestamp_partition import TimestampPartition
from hudimeta.snapshot.partition_columns import partitions_of_values

T = "hoodie.keygen.timebased."
MOMENT = 1_705_489_872_123  # 2024-01-17T11:11:12.123Z


OLD_PREFIXES = ("hoodie.deltastreamer.keygen.timebased.", "hoodie.streamer.keygen.timebased.")


@pytest.mark.parametrize("prefix", OLD_PREFIXES)
def test_a_table_is_made_with_the_names_of_older_writers(tmp_path: Path, prefix: str) -> None:
    rows = pa.table({"id": ["a"], "ms": [1578283932000]})
    time = {f"{prefix}timestamp.type": "EPOCHMILLISECONDS", f"{prefix}output.dateformat": "yyyy-MM-dd hh"}
    zone = {f"{prefix}timezone": "GMT+8:00", "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}
    made = Table.create(tmp_path / "t", rows.schema, key="id", partition_by=["ms"], options={**time, **zone})
    assert made.properties["hoodie.keygen.timebased.timezone"] == "GMT+8:00"
    Table(tmp_path / "t").insert(rows)
    assert Table(tmp_path / "t").scan().to_table()["_hoodie_partition_path"].to_pylist() == ["2020-01-06 12"]
    with pytest.raises(ConfigError, match=r"timebased\.timezone"):
        Table(tmp_path / "t", {f"{prefix}timezone": "UTC"}).insert(rows)


def paths(values, pattern="yyyy/MM/dd/HH", **options):
    named = {T + k.replace("_", "."): v for k, v in options.items()} | {T + "output.dateformat": pattern}
    return TimestampPartition.from_properties(named).segment(pa.table({"at": values}), "at").to_pylist()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ({"timestamp_type": "UNIX_TIMESTAMP"}, pa.array([MOMENT // 1000])),
        ({"timestamp_type": "UNIX_TIMESTAMP"}, pa.array([MOMENT // 1000], pa.int32())),
        ({"timestamp_type": "UNIX_TIMESTAMP"}, pa.array([MOMENT / 1000])),
        ({"timestamp_type": "UNIX_TIMESTAMP"}, pa.array([decimal.Decimal(MOMENT) / 1000])),
        ({"timestamp_type": "EPOCHMILLISECONDS"}, pa.array([MOMENT])),
        ({"timestamp_type": "EPOCHMICROSECONDS"}, pa.array([MOMENT * 1000])),
        ({"timestamp_type": "EPOCHMICROSECONDS"}, pa.array([MOMENT * 1000], pa.timestamp("us", "UTC"))),
        ({"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "hours"}, pa.array([MOMENT // 3_600_000])),
    ],
)
def test_numbers(kind, values):
    assert paths(values, **kind) == ["2024/01/17/11"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"timestamp_type": "UNIX_TIMESTAMP"}, MOMENT),
        ({"timestamp_type": "UNIX_TIMESTAMP"}, -(2**63)),
        ({"timestamp_type": "EPOCHMILLISECONDS"}, MOMENT * 1000),
        ({"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "DAYS"}, 2**62),
        ({"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy-MM-dd"}, "0000-01-01"),
    ],
)
def test_what_is_no_moment_is_refused_by_its_row(kind, value):
    given_values = pa.array([None, value])
    with pytest.raises(SchemaMismatch, match=rf"'?{value}'? in row 1"):
        paths(given_values, **kind)


def test_a_filter_on_what_is_no_moment_leaves_no_partition_out():
    named = {T + "timestamp.type": "UNIX_TIMESTAMP", T + "output.dateformat": "yyyy/MM", T + "timezone": "UTC"}
    stored = {"hoodie.table.keygenerator.type": "TIMESTAMP", "hoodie.table.partition.fields": "at"}
    generator = KeyGenerator.from_properties({**named, **stored})
    assert partitions_of_values(generator, pa.array([MOMENT // 1000])).to_pylist() == ["2024/01"]
    assert partitions_of_values(generator, pa.array([MOMENT * 1000])) is None


def test_the_widest_moments_are_shown():
    ends = [dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)]
    seconds = [(end - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1) for end in ends]
    assert paths(pa.array(seconds), "yyyy-MM-dd", timestamp_type="UNIX_TIMESTAMP") == ["0001-01-02", "9999-12-30"]
    assert paths(pa.array([2**63 - 1]), "yyyy", timestamp_type="SCALAR", timestamp_scalar_time_unit="NANOSECONDS") == ["2262"]


def test_days():
    kind = {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "DAYS"}
    assert paths(pa.array([dt.date(2024, 1, 17)]), "yyyyMM", **kind) == ["202401"]


def test_a_null_is_the_number_one():
    values = pa.array([None], pa.int64())
    assert paths(values, "yyyy-MM-dd HH:mm:ss.SSS", timestamp_type="UNIX_TIMESTAMP") == ["1970-01-01 00:00:01.000"]
    assert paths(values, "yyyy-MM-dd HH:mm:ss.SSS", timestamp_type="EPOCHMILLISECONDS") == ["1970-01-01 00:00:00.001"]
    text = pa.array([None], pa.string())
    assert paths(text, "yyyy-MM-dd HH", timestamp_type="DATE_STRING", input_dateformat="dd.MM.yyyy") == ["1970-01-01 00"]


def test_text_keeps_the_offset_that_it_states_unless_a_zone_is_set():
    text = pa.array(["2024-01-17T23:30:00.000-0800", "2024-01-17T23:30:00.000Z"])
    given_options = {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy-MM-dd'T'HH:mm:ss.SSSZ"}
    assert paths(text, **given_options) == ["2024/01/17/23", "2024/01/17/23"]
    assert paths(text, output_timezone="UTC", **given_options) == ["2024/01/18/07", "2024/01/17/23"]
    assert paths(text, timezone="GMT+8:00", **given_options) == ["2024/01/18/15", "2024/01/18/07"]


def test_several_input_patterns_are_tried_in_order():
    text = pa.array(["2024-01-17", "17.01.2024", "20240117 05"])
    options = {"timestamp_type": "MIXED", "input_dateformat": "yyyy-MM-dd, dd.MM.yyyy,yyyyMMdd HH"}
    assert paths(text, **options) == ["2024/01/17/00", "2024/01/17/00", "2024/01/17/05"]


def test_the_example_of_apache_hudi_leaves_the_delimiter_empty():
    text = pa.array(["2020-04-01T13:01:33Z", "2020-04-01T13:01:33.428Z"])
    patterns = "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ"
    options = {"timestamp_type": "DATE_STRING", "input_dateformat": patterns, "input_timezone": "", "output_timezone": "GMT"}
    for empty in ("", " "):
        found = paths(text, "yyyyMMddHH", **options, input_dateformat_list_delimiter_regex=empty)
        assert found == ["2020040113", "2020040113"]


def test_text_that_fits_no_pattern_names_value_and_row():
    options = {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy-MM-dd"}
    with pytest.raises(SchemaMismatch, match=r"'2023-02-29' in row 1, the table needs a date like yyyy-MM-dd"):
        paths(pa.array(["2024-02-29", "2023-02-29"]), **options)
    with pytest.raises(SchemaMismatch, match=r"as the table's timestamp\.type says"):
        paths(pa.array([5]), **options)
    with pytest.raises(SchemaMismatch, match=r"set timestamp\.type=DATE_STRING"):
        paths(pa.array(["2024-01-01"]), timestamp_type="UNIX_TIMESTAMP")


def test_an_hour_that_a_clock_jumps_over_is_refused():
    options = {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy-MM-dd HH:mm", "timezone": "America/Chicago"}
    assert paths(pa.array(["2024-03-10 03:30", "2024-11-03 01:30"]), **options) == ["2024/03/10/03", "2024/11/03/01"]
    with pytest.raises(SchemaMismatch, match="2024-03-10 02:30"):
        paths(pa.array(["2024-03-10 02:30"]), **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "UNIX_TIMESTAMP, EPOCHMILLISECONDS"),
        ({"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "weeks"}, "from nanoseconds to days"),
        ({"timestamp_type": "DATE_STRING"}, "Joda date patterns"),
        ({"timestamp_type": "UNIX_TIMESTAMP", "output_timezone": "Mars/Base"}, "IANA zone"),
    ],
)
def test_settings_that_are_missing_or_wrong(options, says):
    with pytest.raises(ConfigError, match=says):
        paths(pa.array([1]), **options)


@pytest.mark.parametrize("pattern", ["yyyy-MM-ddTHH", "yyyy 'open", "q"])
def test_patterns_that_joda_refuses(pattern):
    with pytest.raises(ConfigError, match=r"Joda|quotes"):
        paths(pa.array([1]), pattern, timestamp_type="UNIX_TIMESTAMP")


@pytest.mark.parametrize(
    ("pattern", "zone", "expected"),
    [
        ("yyyy/MM/dd/HH", "UTC", "2024/01/17/11"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "Asia/Kolkata", "2024-01-17T16:41:12.123+0530"),
        ("yyyy-MM-dd HH:mm:ss ZZ", "America/Chicago", "2024-01-17 05:11:12 -06:00"),
        ("yy/M/d", "UTC", "24/1/17"),
        ("EEE, d MMM yyyy", "UTC", "Wed, 17 Jan 2024"),
        ("EEEE MMMM dd hh:mm a", "UTC", "Wednesday January 17 11:11 AM"),
        ("xxxx-'W'ww-e", "UTC", "2024-W03-3"),
        ("D kk K S SS SSSS", "UTC", "17 11 11 1 12 1230"),
        ("'year='yyyy'/month='MM", "UTC", "year=2024/month=01"),
        ("yyyy''MM", "UTC", "2024'01"),
    ],
)
def test_formatting(pattern, zone, expected):
    assert format_times(np.array([MOMENT]), pattern, zone).to_pylist() == [expected]


def test_summer_time_holds_beyond_2037():
    """Compiled zone files end there; 2052-09-11T03 in Chicago is summer time."""
    assert format_times(np.array([2_609_657_221_235]), "yyyy/MM/dd/HH Z", "America/Chicago").to_pylist() == [
        "2052/09/11/03 -0500"
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd", "2024-1-5", "2024-01-05T00:00"),
        ("yy-MM-dd", "99-12-31", "1999-12-31T00:00"),
        ("yy-MM-dd", "24-01-05", "2024-01-05T00:00"),
        ("yy-MM-dd", "2024-01-05", "2024-01-05T00:00"),
        ("dd MMM yyyy", "5 january 2024", "2024-01-05T00:00"),
        ("hh:mm a dd/MM/yyyy", "12:30 am 01/02/2024", "2024-02-01T00:30"),
        ("yyyyMMddHHmmss", "20240105101112", "2024-01-05T10:11:12"),
        ("yyyy-DDD", "2024-366", "2024-12-31T00:00"),
        ("MM/dd", "02/29", "2000-02-29T00:00"),
        ("kk:mm", "24:30", "1970-01-01T00:30"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-01-05T10:11:12.1", "2024-01-05T10:11:12.100"),
    ],
)
def test_parsing(pattern, text, expected):
    parsed = parse_times(pa.array([text]), pattern, this_year=2026)
    assert parsed.matched.all()
    assert np.datetime64(int(parsed.local[0]), "ms") == np.datetime64(expected)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2024-13-01"),
        ("yyyy-MM-dd", "2024-01-05 "),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2024-01-05T24:11:12.000Z"),
        ("yyyy-DDD", "2023-366"),
        ("hh:mm a dd/MM/yyyy", "13:00 PM 01/02/2024"),
        ("dd MMM yyyy", "05 Foo 2024"),
        ("yyyyMMdd", "202401"),
    ],
)
def test_text_that_does_not_fit_is_marked(pattern, text):
    assert not parse_times(pa.array([text]), pattern).matched.any()


def test_input_patterns_that_nothing_can_be_read_with():
    for pattern in ("EEE yyyy", "yyyy yyyy", "'only text'", "yyyy ZZZ"):
        with pytest.raises(ConfigError):
            parse_times(pa.array(["x"]), pattern, "key")


moments = st.lists(st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9000, 1, 1)), min_size=1, max_size=10)


@given(moments, st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "+05:45"]))
def test_what_is_formatted_with_its_offset_is_read_back(times, zone):
    ms = np.array([(t - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1) for t in times])
    ms = ms[ms > 0] if zone != "UTC" else ms  # old offsets have seconds, which no pattern shows
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSZZ"
    parsed = parse_times(format_times(ms, pattern, zone), pattern)
    assert parsed.matched.all()
    assert (parsed.local - parsed.offset == ms).all()
